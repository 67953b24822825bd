//! A layer of a decoder: the parts before and after its attention. Both are computed immediately, or recorded.

use super::architecture::Gate;
use super::config::Config;
use super::weights::{Linear, Weights};
use adead::pipeline::{Pipeline, Value};
use adead::{Attrs, Context, GeluForm, Op, PerAxis, Result, Tensor};

/// A layer's weights.
pub(crate) struct Layer {
    attention_norm: Tensor,
    /// Queries, keys and values.
    parts: Products<3>,
    /// The norms of each head's queries and keys.
    query_norm: Option<Tensor>,
    key_norm: Option<Tensor>,
    output: Linear,
    /// The norms of what attention and the feed-forward layers give.
    attention_after: Option<Tensor>,
    feed_after: Option<Tensor>,
    feed_norm: Tensor,
    /// Gate and up.
    feed: Products<2>,
    down: Linear,
}

/// Products of the same rows with several matrices.
enum Products<const N: usize> {
    Apart([Linear; N]),
    /// With one matrix that has the rows of all, and how many of each. On a GPU, one product takes hardly longer than each of them.
    Joined(Linear, [usize; N]),
}

impl<const N: usize> Products<N> {
    /// Finds the matrices `[outputs, inputs]` of these names. Those of a GPU are joined if they have one format.
    fn new(
        weights: &Weights,
        names: [String; N],
        inputs: usize,
        outputs: [usize; N],
        context: &Context,
    ) -> Result<Products<N>> {
        if let Some(joined) = weights.joined(&names, inputs, &outputs, context)? {
            return Ok(Products::Joined(joined, outputs));
        }
        let mut all = Vec::with_capacity(N);
        for (name, outputs) in names.iter().zip(outputs) {
            all.push(weights.linear(name, inputs, outputs, context)?);
        }
        Ok(Products::Apart(all.try_into().unwrap_or_else(|_| unreachable!("there are as many matrices as names"))))
    }

    fn is_of_blocks(&self) -> bool {
        match self {
            Products::Apart(all) => all.iter().all(Linear::is_of_blocks),
            Products::Joined(joined, _) => joined.is_of_blocks(),
        }
    }

    /// Computes the products of `rows` rows, each `[rows, outputs]`.
    fn compute<C: Compute>(&self, to: &mut C, rows: usize, x: &C::Value) -> Result<[C::Value; N]> {
        let mut all = Vec::with_capacity(N);
        match self {
            Products::Apart(linears) => {
                for linear in linears {
                    all.push(to.product(linear, x)?);
                }
            }
            Products::Joined(joined, outputs) => {
                let y = to.product(joined, x)?;
                let mut first = 0;
                for &count in outputs {
                    all.push(if rows == 1 {
                        // Contiguous, so no copy.
                        let column = to.reshape(&y, &[outputs.iter().sum(), 1])?;
                        let part = to.rows(&column, first, count)?;
                        to.reshape(&part, &[1, count])?
                    } else {
                        let columns = |list: [usize; 2]| PerAxis::new(&list.map(|n| n as i32));
                        let attrs = Attrs {
                            start: columns([0, first])?,
                            stop: columns([rows, first + count])?,
                            ..Attrs::DEFAULT
                        };
                        to.op(Op::Slice, &attrs, &[&y])?
                    });
                    first += count;
                }
            }
        }
        Ok(all.try_into().unwrap_or_else(|_| unreachable!("there is a product for each matrix")))
    }
}

/// A backend for a layer's operations.
pub(crate) trait Compute {
    type Value: Clone;

    /// A weight as a value.
    fn weight(&mut self, tensor: &Tensor) -> Result<Self::Value>;
    fn op(&mut self, op: Op, attrs: &Attrs, operands: &[&Self::Value]) -> Result<Self::Value>;
    fn reshape(&mut self, x: &Self::Value, dims: &[usize]) -> Result<Self::Value>;
    /// Entries of the first axis, without a copy.
    fn rows(&mut self, x: &Self::Value, first: usize, count: usize) -> Result<Self::Value>;
    fn product(&mut self, linear: &Linear, x: &Self::Value) -> Result<Self::Value>;
}

/// Computes immediately.
pub(crate) struct Now<'a>(pub &'a Context);

impl Compute for Now<'_> {
    type Value = Tensor;

    fn weight(&mut self, tensor: &Tensor) -> Result<Tensor> {
        Ok(tensor.clone())
    }

    fn op(&mut self, op: Op, attrs: &Attrs, operands: &[&Tensor]) -> Result<Tensor> {
        let operands: Vec<Option<&Tensor>> = operands.iter().map(|&operand| Some(operand)).collect();
        self.0.run(op, attrs, &operands)
    }

    fn reshape(&mut self, x: &Tensor, dims: &[usize]) -> Result<Tensor> {
        x.reshape(dims)
    }

    fn rows(&mut self, x: &Tensor, first: usize, count: usize) -> Result<Tensor> {
        x.rows(first, count)
    }

    fn product(&mut self, linear: &Linear, x: &Tensor) -> Result<Tensor> {
        linear.apply(x)
    }
}

/// Records, to be computed later. Products need matrices in blocks.
impl Compute for Pipeline {
    type Value = Value;

    fn weight(&mut self, tensor: &Tensor) -> Result<Value> {
        self.constant(tensor)
    }

    fn op(&mut self, op: Op, attrs: &Attrs, operands: &[&Value]) -> Result<Value> {
        let operands: Vec<Option<Value>> = operands.iter().map(|&&operand| Some(operand)).collect();
        Pipeline::op(self, op, attrs, &operands)
    }

    fn reshape(&mut self, x: &Value, dims: &[usize]) -> Result<Value> {
        Pipeline::reshape(self, *x, dims)
    }

    fn rows(&mut self, x: &Value, first: usize, count: usize) -> Result<Value> {
        Pipeline::rows(self, *x, first, count)
    }

    fn product(&mut self, linear: &Linear, x: &Value) -> Result<Value> {
        linear.record(self, *x)
    }
}

impl Layer {
    /// Finds a layer's weights. `invalid_argument` for a missing one, `shape_mismatch` for one of another shape.
    pub fn new(number: usize, config: &Config, weights: &Weights, context: &Context) -> Result<Layer> {
        let Config { width, heads, kv_heads, head_width, hidden, architecture, .. } = *config;
        let name = |rest: &str| format!("blk.{number}.{rest}");
        let linear = |rest: &str, inputs, outputs| weights.linear(&name(rest), inputs, outputs, context);
        let after = |rest: &str| architecture.norms_after.then(|| weights.vector(&name(rest), width)).transpose();
        Ok(Layer {
            attention_norm: weights.vector(&name("attn_norm.weight"), width)?,
            parts: Products::new(
                weights,
                ["attn_q", "attn_k", "attn_v"].map(name),
                width,
                [heads, kv_heads, kv_heads].map(|heads| heads * head_width),
                context,
            )?,
            query_norm: weights.optional_vector(&name("attn_q_norm.weight"), head_width)?,
            key_norm: weights.optional_vector(&name("attn_k_norm.weight"), head_width)?,
            output: linear("attn_output", heads * head_width, width)?,
            attention_after: after("post_attention_norm.weight")?,
            feed_after: after("post_ffw_norm.weight")?,
            feed_norm: weights.vector(&name("ffn_norm.weight"), width)?,
            feed: Products::new(weights, ["ffn_gate", "ffn_up"].map(name), width, [hidden; 2], context)?,
            down: linear("ffn_down", hidden, width)?,
        })
    }

    /// Whether all products can be recorded.
    pub fn is_of_blocks(&self) -> bool {
        let others = [&self.output, &self.down].iter().all(|linear| linear.is_of_blocks());
        others && self.parts.is_of_blocks() && self.feed.is_of_blocks()
    }

    /// The queries, keys and values of rows, each `[rows, heads, head_width]`, at positions with these cosines and sines.
    pub fn before<C: Compute>(
        &self,
        to: &mut C,
        config: &Config,
        rows: usize,
        x: &C::Value,
        angles: [&C::Value; 2],
    ) -> Result<[C::Value; 3]> {
        let Config { heads, kv_heads, head_width, eps, architecture, .. } = *config;
        let normed = norm(to, x, Some(&self.attention_norm), eps)?;
        let turned = |to: &mut C, x: &C::Value| {
            let attrs = Attrs { interleaved: architecture.interleaved, ..Attrs::DEFAULT };
            to.op(Op::Rope, &attrs, &[x, angles[0], angles[1]])
        };
        if let (Products::Joined(joined, _), 1, None, None) = (&self.parts, rows, &self.query_norm, &self.key_norm) {
            // The heads of queries and of keys are neighbours, so one operation turns both.
            let y = to.product(joined, &normed)?;
            let y = to.reshape(&y, &[heads + 2 * kv_heads, head_width])?;
            let both = to.rows(&y, 0, heads + kv_heads)?;
            let both = to.reshape(&both, &[1, heads + kv_heads, head_width])?;
            let both = turned(to, &both)?;
            let both = to.reshape(&both, &[heads + kv_heads, head_width])?;
            let mut part = |of: &C::Value, first: usize, heads: usize| -> Result<C::Value> {
                let part = to.rows(of, first, heads)?;
                to.reshape(&part, &[1, heads, head_width])
            };
            return Ok([part(&both, 0, heads)?, part(&both, heads, kv_heads)?, part(&y, heads + kv_heads, kv_heads)?]);
        }
        let [query, key, value] = self.parts.compute(to, rows, &normed)?;
        let mut part = |x: C::Value, heads: usize, of_heads: Option<&Tensor>, turns: bool| -> Result<C::Value> {
            let mut x = to.reshape(&x, &[rows, heads, head_width])?;
            if of_heads.is_some() {
                x = norm(to, &x, of_heads, eps)?;
            }
            if turns {
                x = turned(to, &x)?;
            }
            Ok(x)
        };
        Ok([
            part(query, heads, self.query_norm.as_ref(), true)?,
            part(key, kv_heads, self.key_norm.as_ref(), true)?,
            part(value, kv_heads, None, false)?,
        ])
    }

    /// What follows from rows and from what their attention gave, `[rows, heads·head_width]`.
    pub fn behind<C: Compute>(
        &self,
        to: &mut C,
        config: &Config,
        rows: usize,
        x: &C::Value,
        attended: &C::Value,
    ) -> Result<C::Value> {
        let eps = config.eps;
        let attended = to.product(&self.output, attended)?;
        let attended = norm(to, &attended, self.attention_after.as_ref(), eps)?;
        let x = to.op(Op::Add, &Attrs::DEFAULT, &[x, &attended])?;
        let normed = norm(to, &x, Some(&self.feed_norm), eps)?;
        let [gate, up] = self.feed.compute(to, rows, &normed)?;
        let gate = match config.architecture.gate {
            Gate::Silu => to.op(Op::Silu, &Attrs::DEFAULT, &[&gate])?,
            Gate::Gelu => to.op(Op::Gelu, &Attrs { form: GeluForm::Tanh, ..Attrs::DEFAULT }, &[&gate])?,
        };
        let between = to.op(Op::Mul, &Attrs::DEFAULT, &[&gate, &up])?;
        let down = to.product(&self.down, &between)?;
        let down = norm(to, &down, self.feed_after.as_ref(), eps)?;
        to.op(Op::Add, &Attrs::DEFAULT, &[&x, &down])
    }
}

/// The last axis divided by its root mean square, where there is a norm.
fn norm<C: Compute>(to: &mut C, x: &C::Value, weight: Option<&Tensor>, eps: f32) -> Result<C::Value> {
    match weight {
        Some(weight) => {
            let weight = to.weight(weight)?;
            to.op(Op::Rmsnorm, &Attrs { eps, ..Attrs::DEFAULT }, &[x, &weight])
        }
        None => Ok(x.clone()),
    }
}
