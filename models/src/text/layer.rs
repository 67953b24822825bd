//! A layer of a decoder: what comes before its attention, and what comes behind it. Both are computed at once, or recorded.

use super::architecture::Gate;
use super::config::Config;
use super::weights::{Linear, Weights};
use adead::pipeline::{Pipeline, Value};
use adead::{Attrs, Context, GeluForm, Op, Result, Tensor};

/// A layer's weights.
pub(crate) struct Layer {
    attention_norm: Tensor,
    query: Linear,
    key: Linear,
    value: Linear,
    /// The norms of each head's queries and keys.
    query_norm: Option<Tensor>,
    key_norm: Option<Tensor>,
    output: Linear,
    /// The norms of what attention and the feed-forward layers give.
    attention_after: Option<Tensor>,
    feed_after: Option<Tensor>,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// Who computes a layer's operations.
pub(crate) trait Compute {
    type Value: Clone;

    /// A weight as a value.
    fn weight(&mut self, tensor: &Tensor) -> Result<Self::Value>;
    fn op(&mut self, op: Op, attrs: &Attrs, operands: &[&Self::Value]) -> Result<Self::Value>;
    fn reshape(&mut self, x: &Self::Value, dims: &[usize]) -> Result<Self::Value>;
    fn product(&mut self, linear: &Linear, x: &Self::Value) -> Result<Self::Value>;
}

/// Computes at once.
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
            query: linear("attn_q", width, heads * head_width)?,
            key: linear("attn_k", width, kv_heads * head_width)?,
            value: linear("attn_v", width, kv_heads * head_width)?,
            query_norm: weights.optional_vector(&name("attn_q_norm.weight"), head_width)?,
            key_norm: weights.optional_vector(&name("attn_k_norm.weight"), head_width)?,
            output: linear("attn_output", heads * head_width, width)?,
            attention_after: after("post_attention_norm.weight")?,
            feed_after: after("post_ffw_norm.weight")?,
            feed_norm: weights.vector(&name("ffn_norm.weight"), width)?,
            gate: linear("ffn_gate", width, hidden)?,
            up: linear("ffn_up", width, hidden)?,
            down: linear("ffn_down", hidden, width)?,
        })
    }

    /// Whether all products can be recorded.
    pub fn is_of_blocks(&self) -> bool {
        [&self.query, &self.key, &self.value, &self.output, &self.gate, &self.up, &self.down]
            .iter()
            .all(|linear| linear.is_of_blocks())
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
        // One after the other: on a GPU they share what a product makes of its rows.
        let [query, key, value] = [&self.query, &self.key, &self.value].map(|linear| to.product(linear, &normed));
        let (query, key, value) = (query?, key?, value?);
        let mut part = |x: C::Value, heads: usize, of_heads: Option<&Tensor>, turns: bool| -> Result<C::Value> {
            let mut x = to.reshape(&x, &[rows, heads, head_width])?;
            if of_heads.is_some() {
                x = norm(to, &x, of_heads, eps)?;
            }
            if turns {
                let attrs = Attrs { interleaved: architecture.interleaved, ..Attrs::DEFAULT };
                x = to.op(Op::Rope, &attrs, &[&x, angles[0], angles[1]])?;
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
        x: &C::Value,
        attended: &C::Value,
    ) -> Result<C::Value> {
        let eps = config.eps;
        let attended = to.product(&self.output, attended)?;
        let attended = norm(to, &attended, self.attention_after.as_ref(), eps)?;
        let x = to.op(Op::Add, &Attrs::DEFAULT, &[x, &attended])?;
        let normed = norm(to, &x, Some(&self.feed_norm), eps)?;
        let (gate, up) = (to.product(&self.gate, &normed)?, to.product(&self.up, &normed)?);
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
