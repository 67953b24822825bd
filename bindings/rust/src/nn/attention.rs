//! Multi-head self-attention.

use super::{Layer, Linear, Sequences, Weights};
use adead_core::contract::{Activation, Precision};
use adead_core::{Attrs, Context, Error, Op, Permutation, Result, Status, Tensor};

/// Computes multi-head self-attention: one product for queries, keys and values, then attention, then the output's product.
#[derive(Clone)]
pub struct MultiHeadAttention {
    qkv: Linear,
    output: Linear,
    heads: usize,
    /// Of attention's products. `None`: the context's.
    precision: Option<Precision>,
}

impl MultiHeadAttention {
    /// Loads the layer from four linear layers, given by their prefixes: query, key, value, output. Each maps `width` values to
    /// `width`. `invalid_argument` unless `heads` divides the width.
    pub fn load(
        weights: &Weights,
        [query, key, value, output]: [&str; 4],
        width: usize,
        heads: usize,
        context: &Context,
    ) -> Result<MultiHeadAttention> {
        let part = |prefix: &str| {
            let weight = weights.tensor(&format!("{prefix}.weight"), &[width, width])?;
            Ok((weight, weights.tensor(&format!("{prefix}.bias"), &[width])?))
        };
        let parts = [query, key, value].map(part).into_iter().collect::<Result<Vec<_>>>()?;
        let joined = |each: fn(&(Tensor, Tensor)) -> &Tensor| {
            let tensors: Vec<&Tensor> = parts.iter().map(each).collect();
            context.concat(&tensors, 0)
        };
        let qkv = Linear::new(&joined(|part| &part.0)?, Some(&joined(|part| &part.1)?), context)?;
        MultiHeadAttention::new(qkv, Linear::load(weights, output, width, width, context)?, heads)
    }

    /// Makes the layer from two linear layers. `qkv` returns queries, keys and values, concatenated; `output` maps the attended
    /// values. `shape_mismatch` if the two don't fit each other, `invalid_argument` unless `heads` divides the width.
    pub fn new(qkv: Linear, output: Linear, heads: usize) -> Result<MultiHeadAttention> {
        let width = output.inputs();
        if qkv.outputs() != 3 * width {
            let text = format!("attention: {} values are no queries, keys and values of {width}", qkv.outputs());
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        if heads == 0 || !width.is_multiple_of(heads) {
            let text = format!("attention: {heads} heads don't divide a width of {width}");
            return Err(Error::new(Status::InvalidArgument, text));
        }
        Ok(MultiHeadAttention { qkv, output, heads, precision: None })
    }

    /// Computes the products of queries with keys, and of weights with values, in this precision. Without this call they have the
    /// context's default precision at the time of the call.
    pub fn with_precision(self, precision: Precision) -> MultiHeadAttention {
        MultiHeadAttention { precision: Some(precision), ..self }
    }

    /// Computes attention within each sequence of a matrix `[rows, width]`, and adds a residual. `shape_mismatch` unless the
    /// sequences have `rows` rows in total.
    pub fn forward_with(&self, x: &Tensor, sequences: &Sequences, residual: Option<&Tensor>) -> Result<Tensor> {
        let rows = sequences.rows();
        if x.dims() != [rows, self.qkv.inputs()] {
            let text = format!("attention: x is {} and the sequences have {rows} rows", x.shape());
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        let (width, heads, context) = (self.output.inputs(), self.heads, self.qkv.context());
        let qkv = self.qkv.forward(x)?;
        let attrs = Attrs { precision: self.precision, ..Attrs::DEFAULT };
        let mut attended = Vec::with_capacity(sequences.groups().len());
        let mut first = 0;
        for group in sequences.groups() {
            let (count, length) = (group.count(), group.length());
            let own = qkv.rows(first, group.rows())?.reshape(&[count, length, 3, heads, width / heads])?;
            let apart = context.permute(&own, &[2, 0, 3, 1, 4])?;
            let part = |i| apart.rows(i, 1)?.reshape(&[count, heads, length, width / heads]);
            let (q, k, v) = (part(0)?, part(1)?, part(2)?);
            let operands = [Some(&q), Some(&k), Some(&v), group.mask()];
            attended.push(context.run(Op::Attention, &attrs, &operands)?);
            first += group.rows();
        }
        // Concatenates the heads of each row, and the rows of all groups.
        let attrs = Attrs { perm: Permutation::new(&[0, 2, 1, 3])?, ..Attrs::default() };
        let attended: Vec<&Tensor> = attended.iter().collect();
        let joined = context.run_joined(Op::Transpose, &attrs, &attended, &[rows, width])?;
        self.output.forward_with(&joined, residual, Activation::None)
    }

    /// Computes attention within each sequence of `[count, length, width]`, or within one sequence `[length, width]`, and adds a
    /// residual. If `lengths` has a length for each sequence, the rows after it are padding: see `Group::padded`.
    pub fn forward_padded(&self, x: &Tensor, lengths: Option<&[usize]>, residual: Option<&Tensor>) -> Result<Tensor> {
        let (sequences, rows) = self.batch(x, lengths)?;
        let residual = match residual {
            Some(residual) if residual.dims() == x.dims() => Some(residual.reshape(rows.dims())?),
            other => other.cloned(),
        };
        self.forward_with(&rows, &sequences, residual.as_ref())?.reshape(x.dims())
    }

    /// Returns a batch's sequences, and its rows as a matrix.
    pub(super) fn batch(&self, x: &Tensor, lengths: Option<&[usize]>) -> Result<(Sequences, Tensor)> {
        let width = self.qkv.inputs();
        let (count, length) = match *x.dims() {
            [length, own] if own == width => (1, length),
            [count, length, own] if own == width => (count, length),
            _ => {
                let text = format!("attention: x is {}; it must be [count, length, {width}]", x.shape());
                return Err(Error::new(Status::ShapeMismatch, text));
            }
        };
        let sequences = Sequences::of_batch(count, length, lengths)?;
        Ok((sequences, x.reshape(&[count * length, width])?))
    }
}

impl Layer for MultiHeadAttention {
    /// Computes attention within one sequence `[length, width]`, or within each of `[count, length, width]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_padded(x, None, None)
    }
}
