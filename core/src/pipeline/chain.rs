//! The short form of a pipeline: each operation takes the previous result as its first operand.

use super::compiled::Compiled;
use super::graph::{Pipeline, Value};
use crate::contract::GeluForm;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Attrs, Axis, Op, Permutation, table};
use crate::tensor::Tensor;

/// An operand of a chain: a tensor, which becomes a constant, or an earlier value.
#[derive(Clone, Copy)]
pub enum ChainOperand<'a> {
    /// A constant: every run uses this tensor.
    Tensor(&'a Tensor),
    /// A value that [`Chain::value`] or [`Pipeline::input`] returned.
    Value(Value),
}

impl<'a> From<&'a Tensor> for ChainOperand<'a> {
    fn from(tensor: &'a Tensor) -> ChainOperand<'a> {
        ChainOperand::Tensor(tensor)
    }
}

impl From<Value> for ChainOperand<'_> {
    fn from(value: Value) -> Self {
        ChainOperand::Value(value)
    }
}

/// Builds a pipeline in which each operation takes the previous value. [`Chain::execute`] or [`Chain::compile`] returns the first
/// error of an operation; the operations after it are not recorded.
#[derive(Clone)]
pub struct Chain {
    state: Result<(Pipeline, Value)>,
}

impl Pipeline {
    /// Turns a tensor into a constant of this pipeline. A value of this pipeline is returned unchanged.
    pub fn operand(&mut self, operand: ChainOperand<'_>) -> Result<Value> {
        match operand {
            ChainOperand::Tensor(tensor) => self.constant(tensor),
            ChainOperand::Value(value) => self.node(value).map(|_| value),
        }
    }

    /// Records an operation. `operands` are in the operation's order; tensors become constants. On an error nothing is recorded.
    pub fn record(&mut self, op: Op, attrs: &Attrs, operands: &[Option<ChainOperand<'_>>]) -> Result<Value> {
        let before = self.graph.nodes.len();
        let mut values = Vec::with_capacity(operands.len());
        let result = (|| {
            for operand in operands {
                values.push(operand.map(|operand| self.operand(operand)).transpose()?);
            }
            self.op(op, attrs, &values)
        })();
        if result.is_err() {
            self.graph.nodes.truncate(before);
        }
        result
    }

    /// Begins a chain with a value or a tensor.
    pub fn begin<'a>(mut self, operand: impl Into<ChainOperand<'a>>) -> Chain {
        let value = self.operand(operand.into());
        Chain { state: value.map(|value| (self, value)) }
    }

    /// Begins a chain with an input, which each [`Compiled::run`] receives.
    pub fn begin_with_input(mut self, dtype: DType, dims: &[usize]) -> Chain {
        let value = self.input(dtype, dims);
        Chain { state: value.map(|value| (self, value)) }
    }

    /// Begins a chain with the product of a and b: `[…, M, K]` and `[…, K, N]`.
    pub fn matmul<'a>(self, a: impl Into<ChainOperand<'a>>, b: impl Into<ChainOperand<'a>>) -> Chain {
        self.begin(a).matmul(b)
    }
}

macro_rules! methods {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident = $unary_number:literal $unary_name:ident
            ($($attr:ident: $attr_type:ty),*): $unary_family:ident $unary_flops:literal, $of_x:tt $($of_x_integers:ident)?;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident = $binary_number:literal $binary_name:ident:
            $binary_family:ident $binary_flops:literal, $of_both:tt $($of_both_integers:ident)?;)* }
        comparison { $($(#[$comparison_doc:meta])* $comparison:ident = $comparison_number:literal $comparison_name:ident:
            $comparison_family:ident $comparison_flops:literal, $truths:literal;)* }
        reduction $reductions:tt
        own $own:tt
    ) => {
        // The methods have the operations' names, also where a trait of `std::ops` has the same name.
        #[allow(clippy::should_implement_trait)]
        impl Chain {
            $($(#[$unary_doc])* pub fn $unary_name(self $(, $attr: $attr_type)*) -> Chain {
                self.then(Op::$unary, &Attrs { $($attr,)* ..Attrs::DEFAULT }, &[])
            })*

            $($(#[$binary_doc])* pub fn $binary_name<'a>(self, b: impl Into<ChainOperand<'a>>) -> Chain {
                self.then(Op::$binary, &Attrs::DEFAULT, &[Some(b.into())])
            })*

            $($(#[$comparison_doc])* pub fn $comparison_name<'a>(self, b: impl Into<ChainOperand<'a>>) -> Chain {
                self.then(Op::$comparison, &Attrs::DEFAULT, &[Some(b.into())])
            })*
        }
    };
}
table!(methods);

impl Chain {
    /// Applies any operation. Its first operand is the chain's value; `operands` are the others.
    pub fn then(self, op: Op, attrs: &Attrs, operands: &[Option<ChainOperand<'_>>]) -> Chain {
        let state = self.state.and_then(|(mut pipeline, value)| {
            let mut all = vec![Some(ChainOperand::Value(value))];
            all.extend_from_slice(operands);
            let value = pipeline.record(op, attrs, &all)?;
            Ok((pipeline, value))
        });
        Chain { state }
    }

    /// Multiplies by b, `[…, K, N]`.
    pub fn matmul<'a>(self, b: impl Into<ChainOperand<'a>>) -> Chain {
        self.then(Op::Matmul, &Attrs::DEFAULT, &[Some(b.into())])
    }

    /// Adds a row `[N]`. Directly after a product, the product adds it itself.
    pub fn bias<'a>(self, b: impl Into<ChainOperand<'a>>) -> Chain {
        self.add(b)
    }

    /// Divides e^x by its sum along an axis.
    pub fn softmax(self, axis: Axis) -> Chain {
        self.then(Op::Softmax, &Attrs { axis, ..Attrs::DEFAULT }, &[])
    }

    /// Normalises mean and variance over the last axis, multiplies by gamma and adds beta.
    pub fn layernorm<'a>(
        self,
        gamma: impl Into<ChainOperand<'a>>,
        beta: impl Into<ChainOperand<'a>>,
        eps: f32,
    ) -> Chain {
        let operands = [Some(gamma.into()), Some(beta.into())];
        self.then(Op::Layernorm, &Attrs { eps, ..Attrs::DEFAULT }, &operands)
    }

    /// Normalises the root mean square over the last axis and multiplies by gamma.
    pub fn rmsnorm<'a>(self, gamma: impl Into<ChainOperand<'a>>, eps: f32) -> Chain {
        self.then(Op::Rmsnorm, &Attrs { eps, ..Attrs::DEFAULT }, &[Some(gamma.into())])
    }

    /// Computes attention with the chain's value as queries, `[…, H, S, D]`.
    pub fn attention<'a>(self, k: impl Into<ChainOperand<'a>>, v: impl Into<ChainOperand<'a>>, causal: bool) -> Chain {
        self.then(Op::Attention, &Attrs { causal, ..Attrs::DEFAULT }, &[Some(k.into()), Some(v.into())])
    }

    /// Permutes the axes.
    pub fn transpose(self, perm: Permutation) -> Chain {
        self.then(Op::Transpose, &Attrs { perm, ..Attrs::DEFAULT }, &[])
    }

    /// Converts to another element type.
    pub fn cast(self, dtype: DType) -> Chain {
        self.then(Op::Cast, &Attrs { dtype: Some(dtype), ..Attrs::DEFAULT }, &[])
    }

    /// Gives the elements another shape of as many elements.
    pub fn reshape(self, dims: &[usize]) -> Chain {
        let state = self.state.and_then(|(mut pipeline, value)| {
            let value = pipeline.reshape(value, dims)?;
            Ok((pipeline, value))
        });
        Chain { state }
    }

    /// Continues from another value of the same pipeline, for a second branch.
    pub fn switch_to(self, operand: Value) -> Chain {
        let state = self.state.and_then(|(mut pipeline, _)| {
            let value = pipeline.operand(operand.into())?;
            Ok((pipeline, value))
        });
        Chain { state }
    }

    /// Returns the chain's current value, for a later operation.
    pub fn value(&self) -> Result<Value> {
        match &self.state {
            Ok((_, value)) => Ok(*value),
            Err(error) => Err(error.clone()),
        }
    }

    /// Ends the chain: returns the pipeline with the chain's value as its last output.
    pub fn finish(self) -> Result<Pipeline> {
        let (mut pipeline, value) = self.state?;
        pipeline.output(value)?;
        Ok(pipeline)
    }

    /// Plans the pipeline for a device: see [`Pipeline::compile`].
    pub fn compile(self) -> Result<Compiled> {
        self.finish()?.compile()
    }

    /// Runs the pipeline once and returns the chain's value: see [`Pipeline::execute`].
    pub fn execute(self) -> Result<Tensor> {
        let mut outputs = self.finish()?.execute()?;
        Ok(outputs.swap_remove(outputs.len() - 1))
    }
}
