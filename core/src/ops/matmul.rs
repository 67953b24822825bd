//! `matmul`: `activation(alpha·(a·b) + beta·c + bias)`, batched, with broadcast batch dimensions.

use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract::{self, Activation, Precision};
use crate::dtype::DType;
use crate::error::{Error, Result, Status, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "matmul",
    operands: &["a", "b", "c?", "bias?"],
    attrs: &["trans_a", "trans_b", "alpha", "beta", "activation", "precision"],
    in_place: false,
    shape: |attrs, inputs, output| {
        if attrs.trans_b || attrs.precision.is_some() {
            unpacked(attrs, inputs)?;
        }
        let plan = MatmulPlan::new(attrs, inputs)?;
        plan.describe(output)?;
        // Most calls have neither C nor a bias.
        if inputs.len() > 2 || attrs.beta != 0.0 { added(attrs, inputs, plan.n, output) } else { Ok(()) }
    },
    flops: |attrs, inputs, output| {
        let k = sides(&rules::required(inputs, 0).shape, attrs.trans_a).map_or(0, |(_, k)| k);
        2.0 * output.shape.elements() as f64 * k as f64
    },
};

/// A matrix product as every backend sees it: `m × k` times `k × n` for each batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatmulPlan<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The number of matrices in the result.
    pub batches: usize,
    dtype: DType,
    batch_rank: usize,
    a: &'a Shape,
    b: &'a Shape,
}

impl<'a> MatmulPlan<'a> {
    /// Checks A and B. Small and inlined, because a product of 4 × 4 takes no longer than a few calls.
    #[inline(always)]
    pub fn new(attrs: &Attrs, inputs: impl Into<Metas<'a>>) -> Result<MatmulPlan<'a>> {
        let inputs = inputs.into();
        let dtype = rules::one_float("matmul", inputs)?;
        let (a, b) = (&rules::required(inputs, 0).shape, &rules::required(inputs, 1).shape);
        let (Some((m, a_k)), Some((n, b_k))) = (sides(a, attrs.trans_a), sides(b, !attrs.trans_b)) else {
            return Err(refused(attrs, a, b));
        };
        let turned_vector = (attrs.trans_a && a.rank() == 1) || (attrs.trans_b && b.rank() == 1);
        if a_k != b_k || turned_vector {
            return Err(refused(attrs, a, b));
        }
        let batch_rank = a.rank().max(b.rank()).saturating_sub(2);
        let mut batches = 1usize;
        for i in 1..=batch_rank {
            let (a_n, b_n) = (from_end(leading(a), i), from_end(leading(b), i));
            if a_n != b_n && a_n != 1 && b_n != 1 {
                return Err(refused(attrs, a, b));
            }
            batches = batches.wrapping_mul(if a_n == 1 { b_n } else { a_n });
        }
        Ok(MatmulPlan { m, n, k: a_k, batches, dtype, batch_rank, a, b })
    }

    /// Describes the result. M or N is missing if an operand is a vector. The batch dimensions come first.
    fn describe(&self, output: &mut Meta) -> Result<()> {
        let mut dims = [0; MAX_RANK];
        let mut rank = self.batch_rank;
        (0..rank).for_each(|i| dims[i] = self.batch(rank - i));
        if self.a.rank() > 1 {
            dims[rank] = self.m;
            rank += 1;
        }
        if self.b.rank() > 1 {
            dims[rank] = self.n;
            rank += 1;
        }
        output.set(self.dtype, &dims[..rank])
    }

    /// Returns batch dimension `i` of the result, counted from the last, which is 1.
    pub fn batch(&self, i: usize) -> usize {
        match from_end(leading(self.a), i) {
            1 => from_end(leading(self.b), i),
            n => n,
        }
    }

    /// Returns which matrices of A and B make batch `i` of the result.
    pub fn operands(&self, i: usize) -> (usize, usize) {
        if i == 0 {
            return (0, 0);
        }
        let (a, b) = (leading(self.a), leading(self.b));
        if a == b { (i, i) } else { (self.matrix(a, i), self.matrix(b, i)) }
    }

    /// Returns which matrix of an operand with these leading dimensions belongs to batch `i`.
    fn matrix(&self, lead: &[usize], i: usize) -> usize {
        let (mut rest, mut step, mut index) = (i, 1, 0);
        for axis in 1..=self.batch_rank {
            let (n, own) = (self.batch(axis), from_end(lead, axis));
            if own != 1 {
                index += rest % n * step;
            }
            step *= own;
            rest /= n;
        }
        index
    }

    /// Returns the number of batch dimensions of the result.
    pub fn batch_rank(&self) -> usize {
        self.batch_rank
    }

    /// Returns where batch `i` begins in an operand with these strides.
    pub fn batch_offset(&self, i: usize, strides: &[usize; MAX_RANK]) -> usize {
        let (mut rest, mut at) = (i, 0);
        for axis in (0..self.batch_rank).rev() {
            let n = self.batch(self.batch_rank - axis);
            at += rest % n * strides[axis];
            rest /= n;
        }
        at
    }

    /// Returns whether C's batches follow each other like further rows, `m` rows in each batch.
    pub fn c_follows(&self, strides: &[usize; MAX_RANK], m: usize) -> bool {
        let mut step = strides[self.batch_rank] * m;
        (0..self.batch_rank).rev().all(|axis| {
            let n = self.batch(self.batch_rank - axis);
            let follows = strides[axis] == step || n == 1;
            step *= n;
            follows
        })
    }

    /// Returns whether all batches multiply the same B. A's batches are then rows of one product.
    pub fn shares_b(&self) -> bool {
        leading(self.b).iter().all(|&n| n == 1) && leading(self.a).iter().product::<usize>() == self.batches
    }

    /// Returns C's strides in the result as `[batch…, M, N]`. A stride is 0 if C is repeated along the dimension, or if
    /// the result lacks M or N.
    pub fn c_strides(&self, c: &Shape) -> [usize; MAX_RANK] {
        let full = c.strides_at(self.batch_rank + (self.a.rank() > 1) as usize + (self.b.rank() > 1) as usize);
        let mut strides = [0; MAX_RANK];
        strides[..self.batch_rank].copy_from_slice(&full[..self.batch_rank]);
        let mut next = self.batch_rank;
        for (to, operand) in [(self.batch_rank, self.a), (self.batch_rank + 1, self.b)] {
            if operand.rank() > 1 {
                strides[to] = full[next];
                next += 1;
            }
        }
        strides
    }
}

/// Refuses options that a packed B can't have: it is always `[K, N]`, and for one precision.
#[cold]
#[inline(never)]
fn unpacked(attrs: &Attrs, inputs: Metas<'_>) -> Result<()> {
    let Some(packed) = inputs.packed(1) else { return Ok(()) };
    let own = packed.precision();
    if let Some(said) = attrs.precision.filter(|&said| said != own) {
        let (own, said) = (own.name(), said.name());
        fail!(InvalidArgument, "matmul: b is packed for products in {own}, so precision can't be {said}: pack it for {said}");
    }
    if attrs.trans_b {
        fail!(InvalidArgument, "matmul: b is packed, so trans_b must be 0: b is transposed when it is packed");
    }
    Ok(())
}

/// Checks C and the bias.
fn added(attrs: &Attrs, inputs: Metas<'_>, n: usize, output: &Meta) -> Result<()> {
    match rules::optional(inputs, 2) {
        Some(c) if !c.shape.broadcasts_to(&output.shape) => {
            fail!(ShapeMismatch, "matmul: C is {} and doesn't broadcast to the result {}", c.shape, output.shape)
        }
        None if attrs.beta != 0.0 => {
            fail!(InvalidArgument, "matmul: beta is not 0 but there is no C: give C, or set beta to 0")
        }
        _ => {}
    }
    rules::vector_of("matmul", "bias", rules::optional(inputs, 3), n)
}

/// Returns the side of an operand that the result keeps, and the side that the product sums over. The second is the
/// columns, or the rows if the operand is `turned`. `None` for a scalar.
#[inline(always)]
fn sides(shape: &Shape, turned: bool) -> Option<(usize, usize)> {
    match (shape.dims(), turned) {
        ([k], _) => Some((1, *k)),
        ([.., m, k], false) | ([.., k, m], true) => Some((*m, *k)),
        _ => None,
    }
}

/// Returns the error for an A and a B that can't be multiplied.
#[cold]
#[inline(never)]
fn refused(attrs: &Attrs, a: &Shape, b: &Shape) -> Error {
    let (status, text) = if a.rank() == 0 || b.rank() == 0 {
        (Status::ShapeMismatch, format!("matmul: A is {a} and B is {b}; both need at least one dimension"))
    } else if (a.rank() == 1 && attrs.trans_a) || (b.rank() == 1 && attrs.trans_b) {
        (Status::InvalidArgument, format!("matmul: A is {a} and B is {b}; a vector can't be transposed"))
    } else {
        let inner = |shape, turned| sides(shape, turned).map_or(0, |(_, k)| k);
        let (a_k, b_k) = (inner(a, attrs.trans_a), inner(b, !attrs.trans_b));
        let text = if a_k == b_k {
            format!("matmul: the batch dimensions of A {a} and B {b} don't broadcast")
        } else {
            let word = |transposed| if transposed { " (transposed)" } else { "" };
            format!(
                "matmul: A is {a}{} and B is {b}{}; A's columns ({a_k}) must equal B's rows ({b_k})",
                word(attrs.trans_a),
                word(attrs.trans_b)
            )
        };
        (Status::ShapeMismatch, text)
    };
    Error::new(status, text)
}

/// Returns the dimensions before the last two.
fn leading(shape: &Shape) -> &[usize] {
    &shape.dims()[..shape.rank().saturating_sub(2)]
}

/// Returns dimension `i` counted from the last, which is 1. Returns 1 if there is no such dimension.
fn from_end(dims: &[usize], i: usize) -> usize {
    if i <= dims.len() { dims[dims.len() - i] } else { 1 }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let plan = MatmulPlan::new(attrs, inputs)?;
    let (a, b) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?);
    let c = if attrs.beta != 0.0 { scalar::optional_floats(inputs, 2)? } else { None };
    let c_index = scalar::broadcast_index(rules::optional(inputs, 2).copied(), output);
    let bias = scalar::optional_floats(inputs, 3)?;
    let activation = attrs.activation.unwrap_or(Activation::None);
    let MatmulPlan { m, n, k, .. } = plan;
    let mut y = Vec::with_capacity(output.shape.elements());
    for batch in 0..plan.batches {
        let (a_at, b_at) = plan.operands(batch);
        let (a, b) = (&a[a_at * m * k..], &b[b_at * k * n..]);
        for i in 0..m {
            for j in 0..n {
                let row = |p| if attrs.trans_a { a[p * m + i] } else { a[i * k + p] };
                let column = |p| if attrs.trans_b { b[j * k + p] } else { b[p * n + j] };
                let t = match attrs.precision() {
                    Precision::F32 => contract::dot(k, row, column),
                    precision => contract::fixed_dot(precision, k, row, column),
                };
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
