//! Which rule an operation has.

use super::recorder::Recorder;
use super::{attention, elementwise, moves, normalise, products};
use crate::error::{Result, fail};
use crate::ops::{Attrs, Op};
use crate::pipeline::Value;

/// An operation on the way back.
pub(super) struct Step<'a> {
    pub op: Op,
    pub attrs: &'a Attrs,
    pub inputs: &'a [Option<Value>],
    /// The operation's result, and the loss's gradient by it.
    pub output: Value,
    pub gradient: Value,
    /// By operand: whether its gradient is needed.
    pub wanted: &'a [bool],
}

impl Step<'_> {
    /// An operand that the operation must have.
    pub fn input(&self, i: usize) -> Result<Value> {
        match self.inputs.get(i) {
            Some(Some(value)) => Ok(*value),
            _ => fail!(Internal, "{}: operand {i} is missing", self.op),
        }
    }

    pub fn optional(&self, i: usize) -> Option<Value> {
        self.inputs.get(i).copied().flatten()
    }

    pub fn wants(&self, i: usize) -> bool {
        self.wanted.get(i).copied().unwrap_or(false)
    }
}

/// The gradients by an operation's operands, in their order. `None` for one that is not wanted, or has none.
pub(super) type Gradients = Vec<Option<Value>>;

/// Whether a result has a gradient by any operand. Comparisons, indices and roundings have none: they are constant almost everywhere.
pub(super) fn has_gradient(op: Op) -> bool {
    !matches!(
        op,
        Op::Equal
            | Op::NotEqual
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual
            | Op::Argmax
            | Op::Argmin
            | Op::Argtopk
            | Op::Floor
            | Op::Round
            | Op::Dequantize
    )
}

/// Records an operation's backward pass.
#[inline(never)]
pub(super) fn backward(to: &mut Recorder<'_>, step: &Step<'_>) -> Result<Gradients> {
    match step.op {
        Op::Matmul => products::matmul(to, step),
        Op::Dot => products::dot(to, step),
        Op::Ffn => products::ffn(to, step),
        Op::QuantizedMatmul => products::quantized(to, step),
        Op::Attention => attention::attention(to, step),
        Op::Softmax => normalise::softmax(to, step),
        Op::Layernorm => normalise::layernorm(to, step),
        Op::Rmsnorm => normalise::rmsnorm(to, step),
        Op::Sum | Op::Mean | Op::Max | Op::Min => normalise::reduction(to, step),
        Op::Cumsum => normalise::cumsum(to, step),
        Op::Embedding => moves::embedding(to, step),
        Op::Gather => moves::gather(to, step),
        Op::Topk => moves::topk(to, step),
        Op::Transpose => moves::transpose(to, step),
        Op::Concat => moves::concat(to, step),
        Op::Slice => moves::slice(to, step),
        Op::Pad => moves::pad(to, step),
        Op::Rope => moves::rope(to, step),
        Op::Where => moves::select(to, step),
        Op::Cast => moves::cast(to, step),
        Op::Prod => fail!(Unsupported, "gradients: {} has none in this version; use sum and log", step.op),
        _ => elementwise::backward(to, step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_decided() {
        // Those that are neither here nor in `elementwise` would be found by the tests of rules, which go through `Op::ALL`.
        let none: Vec<&str> = Op::ALL.iter().filter(|op| !has_gradient(**op)).map(|op| op.info().name).collect();
        assert_eq!(none.len(), 12, "{none:?}");
    }
}
