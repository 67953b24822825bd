//! The operations: one file each, one row each in the table below.
//!
//! A file holds the operation's operands and attributes, its shape rule, its cost and its scalar reference, written
//! from [`crate::contract`]. No device is named here, and no rule stands anywhere else.

mod attrs;
mod bound;
mod metas;
mod rules;
mod scalar;
mod split;

pub(crate) use attention::AttentionPlan;
pub(crate) use attrs::parse_f32;
pub use attrs::{Attrs, Axis, Permutation};
pub(crate) use concat::axis as concat_axis;
pub(crate) use embedding::{check_id, check_ids, id};
pub(crate) use ffn::{FfnPlan, activation as ffn_activation};
pub(crate) use matmul::MatmulPlan;
pub(crate) use metas::MetaList;
pub use metas::Metas;
pub(crate) use rules::Lines;
pub use scalar::Values;
pub(crate) use softmax::axis as softmax_axis;
pub(crate) use split::{Cut, Part};
pub(crate) use transpose::axes as transpose_axes;

use crate::error::{Result, fail};
pub(crate) use crate::family::Family;
use crate::operand::Turns;
use crate::operand::{Meta, View};
use std::fmt;

/// The work of a command, for pricing and for GFLOP/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations; a multiply-add is two.
    pub flops: f64,
    /// Bytes read and written, each operand once; of an embedding's table, the rows that are taken.
    pub bytes: f64,
}

/// One row of the table: everything the runtime knows of an operation.
pub struct OpInfo {
    /// The name in every language, in programs and in conformance cases.
    pub name: &'static str,
    /// The operands' names, in order; a trailing `?` marks an optional one, a trailing `*` one that repeats.
    pub operands: &'static [&'static str],
    /// The attributes it has (names of [`Attrs::set`]).
    pub attrs: &'static [&'static str],
    /// Whether the output may be exactly an input.
    pub in_place: bool,
    /// The shape rule. It describes the result in its last argument, whose value before is nobody's.
    shape: fn(&Attrs, Metas<'_>, &mut Meta) -> Result<()>,
    /// Floating-point operations, given inputs and output.
    flops: fn(&Attrs, Metas<'_>, &Meta) -> f64,
}

impl OpInfo {
    /// What the result looks like; the error, with numbers, if the operands or attributes don't fit.
    pub fn infer<'a>(&self, attrs: &Attrs, inputs: impl Into<Metas<'a>>) -> Result<Meta> {
        let mut output = Meta::scalar();
        self.describe(attrs, inputs.into(), &mut output)?;
        Ok(output)
    }

    /// The same in a place of the caller's: a description is large for a call of tens of nanoseconds.
    #[inline]
    pub(crate) fn describe(&self, attrs: &Attrs, inputs: Metas<'_>, output: &mut Meta) -> Result<()> {
        rules::operand_count(self, inputs)?;
        (self.shape)(attrs, inputs, output)
    }

    /// The work, for operands that fit.
    pub fn cost<'a>(&self, attrs: &Attrs, inputs: impl Into<Metas<'a>>, output: &Meta) -> Cost {
        let inputs = inputs.into();
        let (flops, written) = ((self.flops)(attrs, inputs, output), output.bytes());
        // Without arithmetic nothing is read that isn't written: rows of a table, not the table.
        let read = |bytes: usize| if flops == 0.0 { bytes.min(written) } else { bytes };
        let read: f64 = inputs.present().map(|meta| read(meta.bytes()) as f64).sum();
        Cost { flops, bytes: read + written as f64 }
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident = $module:ident: $family:ident;)*) => {
        $(mod $module;)*

        /// An operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Op { $($(#[$doc])* $variant,)* }

        impl Op {
            /// Every operation, in the table's order.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            /// The operation's row.
            #[inline]
            pub fn info(self) -> &'static OpInfo {
                static TABLE: [OpInfo; Op::ALL.len()] = [$($module::INFO,)*];
                &TABLE[self as usize]
            }

            /// Which operations cost alike.
            #[inline]
            pub fn family(self) -> Family {
                const FAMILIES: [Family; Op::ALL.len()] = [$(Family::$family,)*];
                FAMILIES[self as usize]
            }
        }

        /// Computes a command's result with the scalar reference, on any shape that [`OpInfo::infer`] accepts. Slow; the
        /// measure of every kernel.
        pub fn reference(op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
            let _turns = Turns::of_operands(inputs, None)?;
            match op { $(Op::$variant => $module::reference(attrs, inputs, output),)* }
        }
    };
}

// Rows are only ever appended: their positions are numbers in programs and in the C ABI.
operations! {
    /// `alpha·(a·b) + beta·c + bias`, then an activation.
    Matmul = matmul: Matmul;
    /// The inner product of two vectors.
    Dot = dot: Reduction;
    /// `a + b`.
    Add = add: Elementwise;
    /// `a − b`.
    Sub = sub: Elementwise;
    /// `a·b`, element by element.
    Mul = mul: Elementwise;
    /// `a / b`.
    Div = div: Elementwise;
    /// `x·alpha`.
    Scale = scale: Elementwise;
    /// `−x`.
    Neg = neg: Elementwise;
    /// `|x|`.
    Abs = abs: Elementwise;
    /// `e^x`.
    Exp = exp: Function;
    /// The natural logarithm.
    Log = log: Function;
    /// The square root.
    Sqrt = sqrt: Elementwise;
    /// `1 / sqrt(x)`.
    Rsqrt = rsqrt: Elementwise;
    /// `max(x, 0)`.
    Relu = relu: Elementwise;
    /// `1 / (1 + e^−x)`.
    Sigmoid = sigmoid: Function;
    /// The hyperbolic tangent.
    Tanh = tanh: Function;
    /// The Gaussian error linear unit.
    Gelu = gelu: Function;
    /// `x·sigmoid(x)`.
    Silu = silu: Function;
    /// `e^x` over its sum, along an axis.
    Softmax = softmax: Reduction;
    /// The sum along an axis or of all.
    Sum = sum: Reduction;
    /// The mean along an axis or of all.
    Mean = mean: Reduction;
    /// The maximum along an axis or of all.
    Max = max: Reduction;
    /// The lowest index of the maximum.
    Argmax = argmax: Reduction;
    /// Mean and variance normalised over the last axis.
    Layernorm = layernorm: Reduction;
    /// Root mean square normalised over the last axis.
    Rmsnorm = rmsnorm: Reduction;
    /// Softmax-weighted values: scaled dot-product attention.
    Attention = attention: Attention;
    /// Two matrix products with an activation between them.
    Ffn = ffn: Matmul;
    /// Rows of a table by id.
    Embedding = embedding: Move;
    /// The axes permuted.
    Transpose = transpose: Move;
    /// Tensors joined along an axis.
    Concat = concat: Move;
    /// Another element type.
    Cast = cast: Elementwise;
}

impl Op {
    /// The name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Whether it keeps shape and dtype and looks at one element of each operand at a time.
    pub(crate) fn is_elementwise(self) -> bool {
        self.info().in_place && matches!(self.family(), Family::Elementwise | Family::Function)
    }

    /// The operation of that name.
    pub fn from_name(name: &str) -> Result<Op> {
        match Op::ALL.iter().find(|op| op.name() == name) {
            Some(&op) => Ok(op),
            None => fail!(InvalidArgument, "no operation '{name}'"),
        }
    }

    /// The operation of that number.
    pub fn from_code(code: u32) -> Option<Op> {
        Op::ALL.get(code as usize).copied()
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
