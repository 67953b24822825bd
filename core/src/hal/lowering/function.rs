//! What `elementwise.comp` and `elementwise.cu` compute, by number: the functions of the table of operations, and the last steps of
//! operations that have kernels of their own. A step of a run has six bits for it.

use crate::contract::{Activation, GeluForm};
use crate::ops::{Attrs, Binary, Op, Unary, table};

/// The last step of softmax, of x, maximum and sum.
pub const SOFTMAX: u32 = 18;
/// The last step of layernorm, of x, mean and factor.
pub const LAYERNORM: u32 = 19;
/// The last step of rmsnorm, of x and factor.
pub const RMSNORM: u32 = 20;
/// Several functions one after another.
pub const RUN: u32 = 21;
/// Of x, cosine and sine, and of the element that is `blocks` from x.
pub const ROPE: u32 = 63;

/// An attribute as a kernel gets it.
trait Given {
    /// It, if it is a number.
    fn number(self) -> Option<f32>;
}

impl Given for f32 {
    fn number(self) -> Option<f32> {
        Some(self)
    }
}

impl Given for GeluForm {
    fn number(self) -> Option<f32> {
        None
    }
}

/// Whether a row has a mark behind its number.
#[cfg(test)]
const fn is_called(marks: &[&str]) -> bool {
    !marks.is_empty()
}

macro_rules! functions {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident = $unary_number:literal $unary_name:ident
            ($($attr:ident: $attr_type:ty),*): $unary_family:ident $unary_flops:literal, [$($of_x:ident = $of_x_number:literal $($of_x_called:ident)?),+] $($of_x_integers:ident)?;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident = $binary_number:literal $binary_name:ident:
            $binary_family:ident $binary_flops:literal, [$of_both:ident = $of_both_number:literal $($of_both_called:ident)?] $($of_both_integers:ident)?;)* }
        comparison $comparisons:tt
        reduction $reductions:tt
        own $own:tt
    ) => {
        $($(pub const $of_x: u32 = $of_x_number;)+)*
        $(pub const $of_both: u32 = $of_both_number;)*

        /// Every function: its name in kernels, its number, which operation it is of, and whether kernels call it by number.
        #[cfg(test)]
        const ALL: &[(&str, u32, Option<Op>, bool)] = &[
            $($((stringify!($of_x), $of_x, Some(Op::$unary), is_called(&[$(stringify!($of_x_called))?])),)+)*
            $((stringify!($of_both), $of_both, Some(Op::$binary), is_called(&[$(stringify!($of_both_called))?])),)*
            ("SOFTMAX", SOFTMAX, None, false),
            ("LAYERNORM", LAYERNORM, None, false),
            ("RMSNORM", RMSNORM, None, false),
            ("RUN", RUN, None, false),
            ("ROPE", ROPE, None, false),
        ];

        /// Does not compile where two functions have one number, or one has no room in six bits.
        const _: () = {
            let all = [$($($of_x,)+)* $($of_both,)* SOFTMAX, LAYERNORM, RMSNORM, RUN, ROPE];
            let (mut taken, mut i) = (0u64, 0);
            while i < all.len() {
                assert!(all[i] > 0 && all[i] < 64, "a function's number is one of 1 to 63");
                assert!(taken >> all[i] & 1 == 0, "two functions have one number");
                taken |= 1 << all[i];
                i += 1;
            }
        };

        /// What a function of one operand takes besides: the numbers among the operation's attributes.
        pub fn values(op: Op, attrs: &Attrs) -> [f32; 2] {
            let mut values = [0.0; 2];
            match op {
                $(Op::$unary => {
                    let given: &[Option<f32>] = &[$(Given::number(attrs.$attr)),*];
                    given.iter().flatten().zip(&mut values).for_each(|(given, value)| *value = *given);
                })*
                _ => {}
            }
            values
        }

        /// The function of an operation of one operand.
        pub fn of_unary(op: Unary, attrs: &Attrs) -> u32 {
            match op {
                $(Unary::$unary => {
                    const FORMS: &[u32] = &[$($of_x),+];
                    if FORMS.len() == 1 { FORMS[0] } else { FORMS[attrs.form as usize] }
                })*
            }
        }

        /// The function of an operation of two operands.
        pub fn of_binary(op: Binary) -> u32 {
            match op {
                $(Binary::$binary => $of_both,)*
            }
        }

        /// The function of an operation of either; `None` of another one.
        pub fn of(op: Op, attrs: &Attrs) -> Option<u32> {
            match op {
                $(Op::$unary => Some(of_unary(Unary::$unary, attrs)),)*
                $(Op::$binary => Some(of_binary(Binary::$binary)),)*
                _ => None,
            }
        }
    };
}
table!(functions);

// Products' kernels know activations by the same numbers.
const _: () = {
    assert!(
        RELU == Activation::Relu as u32 && SIGMOID == Activation::Sigmoid as u32 && TANH == Activation::Tanh as u32
    );
    assert!(GELU_TANH == Activation::GeluTanh as u32 && GELU_ERF == Activation::GeluErf as u32);
    assert!(SILU == Activation::Silu as u32);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::lowering::{cumsum, normalise, reduce, topk};
    use crate::ops::{Gives, OpKind};
    use std::fmt::Write;
    use std::path::Path;

    /// core/kernels/vulkan/operations.glsl.
    fn glsl() -> String {
        let mut text = String::from(
            "// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-core --lib function`; don't edit.\n\
             // CUDA's kernels include it too.\n\n// The functions of elementwise kernels.\n",
        );
        let mut all = ALL.to_vec();
        all.sort_by_key(|&(_, number, ..)| number);
        for (name, number, ..) in &all {
            writeln!(text, "const uint {name} = {number}u;").unwrap();
        }
        let both = |op: Option<Op>| op.is_none_or(|op| op.kind() == OpKind::Binary);
        let takes = all
            .iter()
            .filter(|&&(_, number, op, _)| number != RUN && both(op))
            .map(|&(name, number, ..)| (name, number));
        let takes: Vec<(&str, u32)> = takes.collect();
        let bits = |high: bool| {
            let half = takes.iter().filter(|&&(_, number)| (number >= 32) == high);
            let less = if high { " - 32u" } else { "" };
            half.map(|(name, _)| format!("1u << {name}{less}")).collect::<Vec<_>>().join(" | ")
        };
        writeln!(text, "\n// Those that have a second operand, as bits: numbers below 32, then the others.").unwrap();
        writeln!(text, "const uint OF_TWO = {};\nconst uint HIGH_OF_TWO = {};", bits(false), bits(true)).unwrap();
        text.push_str(
            "\nbool of_two(const uint function) {\n    \
             return ((function < 32u ? OF_TWO : HIGH_OF_TWO) >> (function & 31u) & 1u) != 0u;\n}\n",
        );
        text.push_str(
            "\n// What kernels call by number: of x, and of the second operand or what else the operation was given; NaN of another\n\
             // number.\nfloat called(const uint function, const float x, const float a, const float b) {\n    \
             precise float y = f(NAN);\n",
        );
        for (i, (name, _, op, _)) in all.iter().filter(|(.., called)| *called).enumerate() {
            let op = op.unwrap();
            let arguments = ["x", "x, a", "x, a, b"][op.info().operands.len() + op.info().attrs.len() - 1];
            let begin = if i == 0 { "    " } else { " else " };
            write!(text, "{begin}if (function == {name}) {{\n        y = function_{op}({arguments});\n    }}").unwrap();
        }
        text.push_str("\n    return y;\n}\n");
        text
    }

    /// core/kernels/vulkan/reductions.glsl, and the names that kernels have cases for.
    fn reductions() -> (String, Vec<&'static str>) {
        let mut text = String::from(
            "// Generated from the table of operations by `ADEAD_BLESS=1 cargo test -p adead-core --lib function`; don't edit.\n\
             // CUDA's kernels include it too.\n\n// The functions of lines, then those of contiguous rows, then others of lines.\n",
        );
        let rows = [
            ("SOFTMAX", normalise::SOFTMAX),
            ("LAYERNORM", normalise::LAYERNORM),
            ("RMSNORM", normalise::RMSNORM),
            ("CUMSUM", cumsum::CUMSUM),
            ("TOPK_SORT", topk::SORT),
            ("TOPK_MERGE", topk::MERGE),
        ];
        let mut all: Vec<(&str, u32)> =
            reduce::ALL.iter().map(|&(name, number, _)| (name, number)).chain(rows).collect();
        all.sort_by_key(|&(_, number)| number);
        all.dedup();
        assert!(all.windows(2).all(|pair| pair[0].1 != pair[1].1), "two functions have one number: {all:?}");
        for (name, number) in &all {
            writeln!(text, "const uint {name} = {number}u;").unwrap();
        }
        let bits = |gives: Gives| {
            let names =
                reduce::ALL.iter().filter(|(.., op)| op.gives() == gives).map(|(name, ..)| format!("1u << {name}"));
            names.collect::<Vec<_>>().join(" | ")
        };
        writeln!(
            text,
            "\n// Those of lines that give an index, as bits.\nconst uint OF_INDEX = {};",
            bits(Gives::Index)
        )
        .unwrap();
        (text, reduce::ALL.iter().map(|&(name, ..)| name).collect())
    }

    #[test]
    fn kernels_have_the_tables_numbers() {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let (of_lines, lines) = reductions();
        for (file, expected) in [("vulkan/operations.glsl", glsl()), ("vulkan/reductions.glsl", of_lines)] {
            let path = kernels.join(file);
            if std::env::var_os("ADEAD_BLESS").is_some() {
                std::fs::write(&path, &expected).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == expected, "{}: ADEAD_BLESS=1 cargo test -p adead-core --lib function", path.display());
        }
        // What a kernel does not name would fall through its cases.
        let elementwise: Vec<&str> = ALL.iter().filter(|(.., called)| !called).map(|(name, ..)| *name).collect();
        for (sources, names) in [
            (&["vulkan/elementwise.comp"][..], &elementwise),
            (&["cuda/elementwise.cu"], &elementwise),
            (&["vulkan/reduce.glsl"], &lines),
            (&["cuda/lines.cu"], &lines),
        ] {
            let source: String =
                sources.iter().map(|kernel| std::fs::read_to_string(kernels.join(kernel)).unwrap()).collect();
            let words: Vec<&str> = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
            for name in names {
                assert!(words.contains(name), "core/kernels/{sources:?} have no case for {name}");
            }
        }
    }
}
