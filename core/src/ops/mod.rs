//! The operations. Each has a row in `table.rs`. Operations of the table's section `own` also have a file each.
//!
//! Row and file define the operation's operands, attributes, shape rule, cost and scalar reference. References are written
//! from [`crate::contract`]. No code here depends on a device, and no rule is defined elsewhere.

mod attrs;
mod bound;
pub(crate) use bound::most;
mod compare;
mod decimal;
mod metas;
mod reduction;
mod rules;
mod scalar;
mod split;
mod table;

pub(crate) use attention::AttentionPlan;
pub use attrs::{Attrs, Axis, PerAxis, Permutation};
pub(crate) use concat::axis as concat_axis;
pub(crate) use cumsum::axis as cumsum_axis;
#[cfg(any(feature = "settings", feature = "text"))]
pub(crate) use decimal::parse_f32;
#[cfg(feature = "text")]
pub(crate) use decimal::parse_f64;
#[cfg(not(feature = "quantized"))]
pub(crate) use dequantize::without_quantized;
pub(crate) use embedding::{check_id, check_ids, id};
pub(crate) use ffn::{FfnPlan, activation as ffn_activation};
pub(crate) use gather::{axis as gather_axis, check_index};
pub(crate) use layernorm::RESIDUAL as LAYERNORM_RESIDUAL;
pub(crate) use matmul::MatmulPlan;
pub(crate) use metas::MetaList;
pub use metas::Metas;
#[cfg(feature = "autograd")]
pub(crate) use pad::PadPlan;
pub(crate) use pad::plan as pad_plan;
#[cfg(feature = "quantized")]
pub(crate) use quantized_matmul::QuantizedPlan;
pub use reduction::Gives;
pub(crate) use reduction::Reduced;
pub(crate) use rmsnorm::RESIDUAL as RMSNORM_RESIDUAL;
pub(crate) use rope::tables as rope_tables;
pub(crate) use rules::Lines;
pub use scalar::Values;
pub(crate) use slice::{SlicePlan, plan as slice_plan};
pub(crate) use softmax::axis as softmax_axis;
pub(crate) use split::{Cut, Part};
pub(crate) use table::table;
pub(crate) use topk::axis as topk_axis;
pub(crate) use transpose::axes as transpose_axes;

use crate::contract;
use crate::error::{Result, fail};
pub(crate) use crate::family::Family;
use crate::operand::Turns;
use crate::operand::{Meta, View};
use std::fmt;

/// The work of a command, for cost estimates and for GFLOP/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations. A multiply-add counts as two.
    pub flops: f64,
    /// Bytes read and written, each operand counted once. Of an embedding's table, only the rows that are read.
    pub bytes: f64,
}

/// Everything the runtime knows about an operation.
#[derive(Clone, Copy)]
pub struct OpInfo {
    /// The name in every language, in programs and in conformance cases.
    pub name: &'static str,
    /// The operands' names, in order. A trailing `?` marks an optional operand, a trailing `*` one that repeats.
    pub operands: &'static [&'static str],
    /// The names of its attributes, for [`Attrs::set`].
    pub attrs: &'static [&'static str],
    /// Whether the output may have exactly the memory of an input.
    pub in_place: bool,
    /// The shape rule. It writes the result's description to its last argument, whatever value that had.
    shape: fn(&Attrs, Metas<'_>, &mut Meta) -> Result<()>,
    /// Floating-point operations, given inputs and output.
    flops: fn(&Attrs, Metas<'_>, &Meta) -> f64,
}

impl OpInfo {
    /// Returns the result's description. If the operands or attributes don't fit, returns an error with the numbers.
    pub fn infer<'a>(&self, attrs: &Attrs, inputs: impl Into<Metas<'a>>) -> Result<Meta> {
        let mut output = Meta::scalar();
        self.describe(attrs, inputs.into(), &mut output)?;
        Ok(output)
    }

    /// Writes the result's description in place: a copy would take too long in a call of tens of nanoseconds.
    #[inline]
    pub(crate) fn describe(&self, attrs: &Attrs, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
        let fits = rules::operand_count(self, inputs).and_then(|()| (self.shape)(attrs, inputs, output));
        #[cfg(feature = "details")]
        let fits = fits.map_err(|error| error.with_detail(FailedOperation::new(self, inputs)));
        fits
    }

    /// Returns the work, for operands that fit.
    pub fn cost<'a>(&self, attrs: &Attrs, inputs: impl Into<Metas<'a>>, output: &Meta) -> Cost {
        let inputs = inputs.into();
        let (flops, written) = ((self.flops)(attrs, inputs, output), output.bytes());
        // An operation without arithmetic reads no more than it writes: rows of a table, not the whole table.
        let read = |bytes: usize| if flops == 0.0 { bytes.min(written) } else { bytes };
        let read: f64 = inputs.present().map(|meta| read(meta.bytes()) as f64).sum();
        Cost { flops, bytes: read + written as f64 }
    }
}

/// The operation of an error, and the operands that it was given: [`Error::detail`](crate::Error::detail).
#[cfg(feature = "details")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedOperation {
    /// The operation's name.
    pub op: &'static str,
    /// The dtype and shape of each operand; `None` for one that is absent.
    pub operands: Vec<Option<Meta>>,
}

#[cfg(feature = "details")]
impl FailedOperation {
    #[cold]
    fn new(info: &OpInfo, inputs: Metas<'_>) -> FailedOperation {
        FailedOperation { op: info.name, operands: inputs.iter().map(|meta| meta.copied()).collect() }
    }
}

/// How an operation is called and computed. All operations of a kind share code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// `y = f(x)`, element by element.
    Unary,
    /// `y = f(a, b)`, element by element with broadcasting.
    Binary,
    /// A comparison of a with b, element by element with broadcasting. The result is bool.
    Comparison,
    /// A reduction along one axis, several axes or all.
    Reduction,
    /// An operation with code of its own.
    Own,
}

macro_rules! operations {
    (
        unary { $($(#[doc = $unary_doc:literal])+ $unary:ident = $unary_number:literal
            $unary_name:ident ($($attr:ident: $attr_type:ty),*): $unary_family:ident $unary_flops:literal, $unary_functions:tt $($unary_integers:ident)?;)* }
        binary { $($(#[doc = $binary_doc:literal])+ $binary:ident = $binary_number:literal
            $binary_name:ident: $binary_family:ident $binary_flops:literal, $binary_functions:tt $($binary_integers:ident)?;)* }
        comparison { $($(#[doc = $comparison_doc:literal])+ $comparison:ident = $comparison_number:literal
            $comparison_name:ident: $comparison_family:ident $comparison_flops:literal, $truths:literal;)* }
        reduction { $($(#[doc = $reduction_doc:literal])+ $reduction:ident = $reduction_number:literal
            $reduction_name:ident: $reduction_family:ident, $reduction_function:ident = $reduction_code:literal $gives:ident $($reduction_integers:ident)?;)* }
        own { $($(#[doc = $own_doc:literal])+ $own:ident = $own_number:literal
            $own_name:ident: $own_family:ident, $room:ident::$kernel:ident;)* }
    ) => {
        $(mod $own_name;)*

        /// Elementwise operations with one operand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Unary { $($unary,)* }

        /// Elementwise operations with two operands, which are broadcast.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Binary { $($binary,)* }

        /// The reductions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Reduction { $($reduction,)* }

        /// An operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Op {
            $($(#[doc = $unary_doc])+ $unary = $unary_number,)*
            $($(#[doc = $binary_doc])+ $binary = $binary_number,)*
            $($(#[doc = $comparison_doc])+ $comparison = $comparison_number,)*
            $($(#[doc = $reduction_doc])+ $reduction = $reduction_number,)*
            $($(#[doc = $own_doc])+ $own = $own_number,)*
        }

        /// The rows of the table, in its order.
        const ROWS: &[(Op, OpKind, Family, OpInfo)] = &[
            $((Op::$unary, OpKind::Unary, Family::$unary_family, OpInfo {
                name: stringify!($unary_name),
                operands: &["x"],
                attrs: &[$(stringify!($attr)),*],
                in_place: true,
                shape: |_, inputs, output| rules::unary(Op::$unary, inputs, output),
                flops: |_, _, output| f64::from($unary_flops) * output.shape.elements() as f64,
            }),)*
            $((Op::$binary, OpKind::Binary, Family::$binary_family, OpInfo {
                name: stringify!($binary_name),
                operands: &["a", "b"],
                attrs: &[],
                in_place: true,
                shape: |_, inputs, output| rules::broadcasting(Op::$binary, inputs, output),
                flops: |_, _, output| f64::from($binary_flops) * output.shape.elements() as f64,
            }),)*
            $((Op::$comparison, OpKind::Comparison, Family::$comparison_family, OpInfo {
                name: stringify!($comparison_name),
                operands: &["a", "b"],
                attrs: &[],
                in_place: false,
                shape: |_, inputs, output| compare::rule(stringify!($comparison_name), inputs, output),
                flops: |_, _, output| f64::from($comparison_flops) * output.shape.elements() as f64,
            }),)*
            $((Op::$reduction, OpKind::Reduction, Family::$reduction_family, OpInfo {
                name: stringify!($reduction_name),
                operands: &["x"],
                attrs: Gives::$gives.attrs(),
                in_place: false,
                shape: |attrs, inputs, output| reduction::rule(Op::$reduction, Gives::$gives, attrs, inputs, output),
                flops: |_, inputs, _| rules::required(inputs, 0).shape.elements() as f64,
            }),)*
            $((Op::$own, OpKind::Own, Family::$own_family, $own_name::INFO),)*
        ];

        impl Reduction {
            /// Returns what the reduction computes from a line.
            pub fn gives(self) -> Gives {
                match self {
                    $(Reduction::$reduction => Gives::$gives,)*
                }
            }
        }

        impl Op {
            /// Returns what a reduction computes from a line, or `None` for another operation.
            pub fn gives(self) -> Option<Gives> {
                match self {
                    $(Op::$reduction => Some(Gives::$gives),)*
                    _ => None,
                }
            }

            /// Returns whether it also computes on integers and bools. In a library without the feature `integers`, none does.
            pub const fn takes_integers(self) -> bool {
                const fn marked(mark: &str) -> bool {
                    cfg!(feature = "integers") && !mark.is_empty()
                }
                match self {
                    $(Op::$unary => marked(stringify!($($unary_integers)?)),)*
                    $(Op::$binary => marked(stringify!($($binary_integers)?)),)*
                    $(Op::$reduction => marked(stringify!($($reduction_integers)?)),)*
                    _ => false,
                }
            }

            /// Returns its description, one or two sentences.
            pub fn about(self) -> &'static str {
                match self {
                    $(Op::$unary => concat!($($unary_doc),+),)*
                    $(Op::$binary => concat!($($binary_doc),+),)*
                    $(Op::$comparison => concat!($($comparison_doc),+),)*
                    $(Op::$reduction => concat!($($reduction_doc),+),)*
                    $(Op::$own => concat!($($own_doc),+),)*
                }
                .trim_start()
            }
        }

        /// Computes a command's result with the scalar reference, for any shape that [`OpInfo::infer`] accepts. It is slow.
        /// Every kernel is checked against it.
        pub fn reference(op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
            let _turns = Turns::of_operands(inputs, None)?;
            if op.takes_integers() && !rules::required(inputs, 0).dtype.is_float() {
                return match op {
                    $($(Op::$unary => scalar::map_integers(inputs, output, contract::$unary_integers::$unary_name),)?)*
                    $($(Op::$binary => scalar::zip_integers(inputs, output, contract::$binary_integers::$binary_name),)?)*
                    $($(Op::$reduction => {
                        let x = scalar::integers(inputs, 0)?;
                        reduction::reference(attrs, inputs, output, &x, contract::$reduction_integers::$reduction_name)
                    })?)*
                    _ => unreachable!("the operation takes integers"),
                };
            }
            match op {
                $(Op::$unary => scalar::map(inputs, output, |x| contract::$unary_name(x $(, attrs.$attr)*)),)*
                $(Op::$binary => scalar::zip(inputs, output, contract::$binary_name),)*
                $(Op::$comparison => compare::reference(inputs, output, $truths),)*
                $(Op::$reduction => {
                    reduction::reference(attrs, inputs, output, &scalar::floats(inputs, 0)?, contract::$reduction_name)
                })*
                $(Op::$own => $own_name::reference(attrs, inputs, output),)*
            }
        }
    };
}
table!(operations);

/// One more than the largest operation number.
const NUMBERS: usize = {
    let (mut numbers, mut row) = (0, 0);
    while row < ROWS.len() {
        if ROWS[row].0 as usize >= numbers {
            numbers = ROWS[row].0 as usize + 1;
        }
        row += 1;
    }
    numbers
};

/// By operation number: the index of the operation's row, or `usize::MAX` for an unused number. Two operations with the same
/// number are a compile error.
const PLACES: [usize; NUMBERS] = {
    let mut places = [usize::MAX; NUMBERS];
    let mut row = 0;
    while row < ROWS.len() {
        let number = ROWS[row].0 as usize;
        assert!(places[number] == usize::MAX, "two operations have the same number");
        places[number] = row;
        row += 1;
    }
    places
};

/// Collects a field of every row, by operation number. Unused numbers get the first row's.
macro_rules! by_number {
    ($field:tt) => {{
        let mut all = [ROWS[0].$field; NUMBERS];
        let mut number = 0;
        while number < NUMBERS {
            if PLACES[number] < ROWS.len() {
                all[number] = ROWS[PLACES[number]].$field;
            }
            number += 1;
        }
        all
    }};
}

impl Op {
    /// All operations, in the order of their numbers.
    pub const ALL: &'static [Op] = &{
        let mut all = [ROWS[0].0; ROWS.len()];
        let (mut number, mut count) = (0, 0);
        while number < NUMBERS {
            if PLACES[number] < ROWS.len() {
                all[count] = ROWS[PLACES[number]].0;
                count += 1;
            }
            number += 1;
        }
        all
    };

    /// One more than the largest operation number. Smaller numbers may be unused.
    pub const NUMBERS: usize = NUMBERS;

    /// Returns the operation's row of the table.
    #[inline]
    pub fn info(self) -> &'static OpInfo {
        static TABLE: [OpInfo; NUMBERS] = by_number!(3);
        &TABLE[self as usize]
    }

    /// Returns the family. Operations of a family have similar costs.
    #[inline]
    pub fn family(self) -> Family {
        const FAMILIES: [Family; NUMBERS] = by_number!(2);
        FAMILIES[self as usize]
    }

    /// Returns how the operation is called and computed.
    #[inline]
    pub fn kind(self) -> OpKind {
        const KINDS: [OpKind; NUMBERS] = by_number!(1);
        KINDS[self as usize]
    }

    /// Returns whether it only moves elements or converts their type. Then it takes operands of any dtype as they are stored.
    #[inline]
    pub(crate) fn is_move(self) -> bool {
        self.family() == Family::Move || self == Op::Cast
    }

    /// Returns whether it rejects some elements of its second operand, even if the result is empty.
    #[inline]
    pub(crate) fn checks_ids(self) -> bool {
        matches!(self, Op::Embedding | Op::Gather)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns whether it keeps shape and dtype and reads one element of each operand at a time.
    pub(crate) fn is_elementwise(self) -> bool {
        matches!(self.kind(), OpKind::Unary | OpKind::Binary)
    }

    /// Returns the operation with this name, or `invalid_argument`.
    pub fn from_name(name: &str) -> Result<Op> {
        match Op::ALL.iter().find(|op| op.name() == name) {
            Some(&op) => Ok(op),
            None => fail!(InvalidArgument, "no operation '{name}'"),
        }
    }

    /// Returns the operation with this number.
    pub fn from_code(code: u32) -> Option<Op> {
        PLACES.get(code as usize).and_then(|&place| ROWS.get(place)).map(|row| row.0)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
