//! `matmul`: `activation(alpha·(a·b) + beta·c + bias)`, batched, with broadcast batch dimensions.

use super::{Attrs, OpInfo, Values, scalar, rules};
use crate::command::{Meta, View};
use crate::contract::{self, Activation};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "matmul",
    operands: &["a", "b", "c?", "bias?"],
    attrs: &["trans_a", "trans_b", "alpha", "beta", "activation"],
    in_place: false,
    shape: |attrs, inputs| Ok(Plan::new(attrs, inputs)?.output),
    flops: |attrs, inputs, output| match Plan::new(attrs, inputs) {
        Ok(plan) => 2.0 * output.shape.elements() as f64 * plan.k as f64,
        Err(_) => 0.0,
    },
};

/// A matrix product as every backend sees it: `m × k` times `k × n` for each batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Batches of the result.
    pub batches: usize,
    /// The result, its M or N gone where an operand was a vector.
    pub output: Meta,
    a_batch: Shape,
    b_batch: Shape,
    batch: Shape,
}

impl Plan {
    /// Checks a command's operands and attributes.
    #[inline]
    pub fn new(attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Plan> {
        let dtype = rules::one_float("matmul", inputs)?;
        let (a, b) = (&rules::required(inputs, 0).shape, &rules::required(inputs, 1).shape);
        if a.rank() == 0 || b.rank() == 0 {
            fail!(ShapeMismatch, "matmul: A is {a} and B is {b}; both need at least one dimension");
        }
        if (a.rank() == 1 && attrs.trans_a) || (b.rank() == 1 && attrs.trans_b) {
            fail!(InvalidArgument, "matmul: A is {a} and B is {b}; a vector can't be transposed");
        }
        let (m, a_k) = match (a.rank(), attrs.trans_a) {
            (1, _) => (1, a.from_end(0)),
            (_, false) => (a.from_end(1), a.from_end(0)),
            (_, true) => (a.from_end(0), a.from_end(1)),
        };
        let (b_k, n) = match (b.rank(), attrs.trans_b) {
            (1, _) => (b.from_end(0), 1),
            (_, false) => (b.from_end(1), b.from_end(0)),
            (_, true) => (b.from_end(0), b.from_end(1)),
        };
        if a_k != b_k {
            let word = |transposed| if transposed { " (transposed)" } else { "" };
            fail!(
                ShapeMismatch,
                "matmul: A is {a}{} and B is {b}{}; A's columns ({a_k}) must equal B's rows ({b_k})",
                word(attrs.trans_a),
                word(attrs.trans_b)
            );
        }
        let (a_batch, b_batch) = (leading(a)?, leading(b)?);
        let batch = if a_batch == b_batch {
            a_batch
        } else {
            match a_batch.broadcast(&b_batch) {
                Some(batch) => batch,
                None => fail!(ShapeMismatch, "matmul: the batch dimensions of A {a} and B {b} don't broadcast"),
            }
        };
        let mut dims = [0; MAX_RANK];
        let mut rank = batch.rank();
        dims[..rank].copy_from_slice(batch.dims());
        for (size, there) in [(m, a.rank() > 1), (n, b.rank() > 1)] {
            if there {
                dims[rank] = size;
                rank += 1;
            }
        }
        let output = Shape::new(&dims[..rank])?;
        if let Some(c) = rules::optional(inputs, 2) {
            if !c.shape.broadcasts_to(&output) {
                fail!(ShapeMismatch, "matmul: C is {} and doesn't broadcast to the result {output}", c.shape);
            }
        } else if attrs.beta != 0.0 {
            fail!(InvalidArgument, "matmul: beta is not 0 and there is no C");
        }
        rules::vector_of("matmul", "bias", rules::optional(inputs, 3), n)?;
        let batches = batch.elements();
        Ok(Plan { m, n, k: a_k, batches, output: Meta::new(dtype, output), a_batch, b_batch, batch })
    }

    /// Which matrices of A and B make batch `i` of the result.
    pub fn operands(&self, i: usize) -> (usize, usize) {
        if self.a_batch == self.batch && self.b_batch == self.batch {
            return (i, i);
        }
        let at = |shape: &Shape| self.batch_offset(i, &shape.broadcast_strides(&self.batch));
        (at(&self.a_batch), at(&self.b_batch))
    }

    /// Batch dimensions of the result.
    pub fn batch_rank(&self) -> usize {
        self.batch.rank()
    }

    /// Where batch `i` begins in an operand of these strides.
    pub fn batch_offset(&self, i: usize, strides: &[usize; MAX_RANK]) -> usize {
        let (mut rest, mut at) = (i, 0);
        for axis in (0..self.batch.rank()).rev() {
            at += rest % self.batch.dims()[axis] * strides[axis];
            rest /= self.batch.dims()[axis];
        }
        at
    }

    /// Whether C's batches follow each other as further rows would, `m` rows each.
    pub fn c_follows(&self, strides: &[usize; MAX_RANK], m: usize) -> bool {
        let mut step = strides[self.batch.rank()] * m;
        (0..self.batch.rank()).rev().all(|axis| {
            let follows = strides[axis] == step || self.batch.dims()[axis] == 1;
            step *= self.batch.dims()[axis];
            follows
        })
    }

    /// Whether every batch of the result multiplies the same B, so that A's batches are rows of one product.
    pub fn shares_b(&self) -> bool {
        self.b_batch.elements() == 1 && self.a_batch.elements() == self.batches
    }

    /// The result as `[batch…, M, N]`, for broadcasting C to it. C's own shape is given; where M or N is gone from the
    /// result, C gets a 1 in its place.
    pub fn c_strides(&self, c: &Shape, a_is_vector: bool, b_is_vector: bool) -> [usize; MAX_RANK] {
        let full = c.broadcast_strides(&self.output.shape);
        let mut strides = [0; MAX_RANK];
        let (batch, rank) = (self.batch.rank(), self.output.shape.rank());
        strides[..batch].copy_from_slice(&full[..batch]);
        let mut next = batch;
        for (to, gone) in [(batch, a_is_vector), (batch + 1, b_is_vector)] {
            if !gone && next < rank {
                // MAX_RANK bounds the result, and `to` stays below it whenever the dimension is there.
                strides[to] = full[next];
                next += 1;
            }
        }
        strides
    }
}

/// The dimensions before the last two.
fn leading(shape: &Shape) -> Result<Shape> {
    let rank = shape.rank();
    if rank <= 2 { Ok(Shape::SCALAR) } else { Shape::new(&shape.dims()[..rank - 2]) }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let plan = Plan::new(attrs, inputs)?;
    let (a, b) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?);
    let c = if attrs.beta != 0.0 { scalar::optional_floats(inputs, 2)? } else { None };
    let c_index = scalar::broadcast_index(rules::optional(inputs, 2).copied(), output);
    let bias = scalar::optional_floats(inputs, 3)?;
    let activation = attrs.activation.unwrap_or(Activation::None);
    let Plan { m, n, k, .. } = plan;
    let mut y = Vec::with_capacity(output.shape.elements());
    for batch in 0..plan.batches {
        let (a_at, b_at) = plan.operands(batch);
        let (a, b) = (&a[a_at * m * k..], &b[b_at * k * n..]);
        for i in 0..m {
            for j in 0..n {
                let t = contract::dot(
                    k,
                    |p| if attrs.trans_a { a[p * m + i] } else { a[i * k + p] },
                    |p| if attrs.trans_b { b[j * k + p] } else { b[p * n + j] },
                );
                let mut t = t * attrs.alpha;
                if let Some(c) = &c {
                    t += attrs.beta * c[c_index(y.len())];
                }
                if let Some(bias) = &bias {
                    t += bias[j];
                }
                y.push(activation.apply(t));
            }
        }
    }
    Ok(scalar::stored(y, output.dtype))
}
