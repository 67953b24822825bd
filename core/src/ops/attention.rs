//! `attention`: scaled dot-product attention in blocks of 64 keys, with a causal mask, an additive mask and grouped
//! heads.

use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract::{self, KEY_BLOCK, NAN, Precision};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "attention",
    operands: &["q", "k", "v", "mask?"],
    attrs: &["causal", "scale", "precision"],
    in_place: false,
    shape: |attrs, inputs, output| {
        if !cfg!(feature = "integers") && attrs.precision() != Precision::F32 {
            fail!(
                Unsupported,
                "this build has no attention in exact integers: build it with the feature integers, or without ADEAD_MINIMAL"
            );
        }
        *output = AttentionPlan::new(inputs)?.output;
        Ok(())
    },
    flops: |attrs, inputs, _| match AttentionPlan::new(inputs) {
        Ok(plan) => {
            let pairs = if attrs.causal { plan.causal_pairs() } else { plan.queries as f64 * plan.keys as f64 };
            2.0 * (plan.batches * plan.heads) as f64 * pairs * (plan.width + plan.value_width) as f64
        }
        Err(_) => 0.0,
    },
};

/// Attention as every backend sees it: `batches × heads` independent heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionPlan {
    pub batches: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub width: usize,
    pub value_width: usize,
    pub output: Meta,
    /// `[…, heads, queries, keys]`: the shape that the mask broadcasts to.
    pub scores: Shape,
}

impl AttentionPlan {
    pub fn new(inputs: Metas<'_>) -> Result<AttentionPlan> {
        let dtype = rules::one_float("attention", inputs)?;
        let shape = |i| &rules::required(inputs, i).shape;
        let (q, k, v) = (shape(0), shape(1), shape(2));
        let rank = q.rank();
        if rank < 2 || k.rank() != rank || v.rank() != rank {
            fail!(ShapeMismatch, "attention: q is {q}, k {k}, v {v}; they must have the same rank, at least 2");
        }
        let lead = rank.saturating_sub(3);
        if q.dims()[..lead] != k.dims()[..lead] || q.dims()[..lead] != v.dims()[..lead] {
            fail!(ShapeMismatch, "attention: q is {q}, k {k}, v {v}; their batch dimensions must be equal");
        }
        let (heads, kv_heads) = (q.from_end(2), k.from_end(2));
        if v.from_end(2) != kv_heads || (heads != kv_heads && (kv_heads == 0 || heads % kv_heads != 0)) {
            fail!(
                ShapeMismatch,
                "attention: q has {heads} heads, k {kv_heads}, v {}; k and v must have the same number, a divisor of q's",
                v.from_end(2)
            );
        }
        let (queries, keys, width, value_width) = (q.from_end(1), k.from_end(1), q.from_end(0), v.from_end(0));
        if k.from_end(0) != width || v.from_end(1) != keys {
            fail!(
                ShapeMismatch,
                "attention: q is {q}, k {k}, v {v}; k's width must be {width} and v must have {keys} rows"
            );
        }
        let mut dims = [0; MAX_RANK];
        dims[..rank].copy_from_slice(q.dims());
        dims[rank - 1] = keys;
        let scores = Shape::new(&dims[..rank])?;
        dims[rank - 1] = value_width;
        let output = Meta::new(dtype, Shape::new(&dims[..rank])?);
        if let Some(mask) = rules::optional(inputs, 3)
            && !mask.shape.broadcasts_to(&scores)
        {
            fail!(ShapeMismatch, "attention: the mask is {} and doesn't broadcast to {scores}", mask.shape);
        }
        let batches = q.dims()[..lead].iter().product();
        Ok(AttentionPlan { batches, heads, kv_heads, queries, keys, width, value_width, output, scores })
    }

    /// Returns the factor of the scores.
    pub fn scale(&self, attrs: &Attrs) -> f32 {
        if attrs.scale != 0.0 { attrs.scale } else { contract::rsqrt(self.width as f32) }
    }

    /// Returns how many keys query `i` sees, counted from the first key. Without `causal`, it sees all keys.
    pub fn visible(&self, causal: bool, i: usize) -> usize {
        if causal { (i + 1 + self.keys).saturating_sub(self.queries).min(self.keys) } else { self.keys }
    }

    fn causal_pairs(&self) -> f64 {
        let hidden_rows = self.queries.saturating_sub(self.keys);
        let (first, last) = (self.visible(true, hidden_rows) as f64, self.keys as f64);
        (first + last) / 2.0 * (self.queries - hidden_rows) as f64
    }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let plan = AttentionPlan::new(inputs.into())?;
    let AttentionPlan { heads, kv_heads, queries, keys, width, value_width, .. } = plan;
    let (q, k, v) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?, scalar::floats(inputs, 2)?);
    let mask = scalar::optional_floats(inputs, 3)?;
    let mask_meta = rules::optional(inputs, 3).copied();
    let mask_index = scalar::broadcast_index(mask_meta, &Meta::new(output.dtype, plan.scores));
    let (scale, precision) = (plan.scale(attrs), attrs.precision());
    let mut y = Vec::with_capacity(output.shape.elements());
    for head in 0..plan.batches * heads {
        let kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
        let (k, v) = (&k[kv * keys * width..], &v[kv * keys * value_width..]);
        for i in 0..queries {
            let q = &q[(head * queries + i) * width..];
            let visible = plan.visible(attrs.causal, i);
            let score = |j: usize| {
                if j >= visible {
                    return f32::NEG_INFINITY;
                }
                let x = dot(precision, width, |d| q[d], |d| k[j * width + d]) * scale;
                mask.as_ref().map_or(x, |mask| x + mask[mask_index((head * queries + i) * keys + j)])
            };
            y.extend(row(precision, keys, value_width, score, v));
        }
    }
    Ok(scalar::stored(y, output.dtype))
}

/// Returns the total of `k` products of elements given by index.
fn dot(precision: Precision, k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f32 {
    match precision {
        Precision::F32 => contract::dot(k, a, b),
        _ => contract::fixed_dot(precision, k, a, b),
    }
}

/// Computes the output of one query.
fn row(precision: Precision, keys: usize, value_width: usize, score: impl Fn(usize) -> f32, v: &[f32]) -> Vec<f32> {
    let (mut m, mut l, mut o) = (f32::NEG_INFINITY, 0.0f32, vec![0.0f32; value_width]);
    let mut live = false;
    let factor = |v: &[f32]| {
        contract::value_factor(v.iter().map(|v| v.to_bits() & 0x7fff_ffff).max().unwrap_or(0), precision)
    };
    let factors: Vec<_> = (0..keys).map(|j| factor(&v[j * value_width..][..value_width])).collect();
    for start in (0..keys).step_by(KEY_BLOCK) {
        let end = keys.min(start + KEY_BLOCK);
        let x: Vec<f32> = (start..end).map(&score).collect();
        let m_b = contract::max(&x).unwrap_or(NAN);
        if m_b == f32::NEG_INFINITY {
            continue;
        }
        live = true;
        let p: Vec<f32> = x.iter().map(|x| contract::exp(x - m_b)).collect();
        let l_b = contract::sum(&p);
        let merged = contract::max(&[m, m_b]).unwrap_or(NAN);
        let (a, c) = (contract::exp(m - merged), contract::exp(m_b - merged));
        l = l * a + l_b * c;
        for (d, o) in o.iter_mut().enumerate() {
            let value = |j: usize| v[(start + j) * value_width + d];
            let o_b = match precision {
                Precision::F32 => contract::dot(end - start, |j| p[j], value),
                _ => contract::fixed_weighted(precision, &p, &factors[start..end], value),
            };
            *o = *o * a + o_b * c;
        }
        m = merged;
    }
    if live { o.into_iter().map(|o| o / l).collect() } else { o }
}
