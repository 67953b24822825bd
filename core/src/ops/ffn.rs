//! `ffn`: `activation(x·w1 + b1)·w2 + b2`, the feed-forward part of a transformer block.

use super::{Attrs, Metas, OpInfo, Values, scalar, rules};
use crate::operand::{Meta, View};
use crate::contract::{self, Activation, Precision};
use crate::error::{Result, fail};
use crate::shape::{MAX_RANK, Shape};

pub(super) const INFO: OpInfo = OpInfo {
    name: "ffn",
    operands: &["x", "w1", "b1?", "w2", "b2?"],
    attrs: &["activation", "precision"],
    in_place: false,
    shape: |_, inputs, output| {
        *output = FfnPlan::new(inputs)?.output;
        Ok(())
    },
    flops: |_, inputs, _| match FfnPlan::new(inputs) {
        Ok(plan) => 2.0 * plan.rows as f64 * plan.hidden as f64 * (plan.width + plan.out) as f64,
        Err(_) => 0.0,
    },
};

/// Returns the activation, by default relu.
pub(crate) fn activation(attrs: &Attrs) -> Activation {
    attrs.activation.unwrap_or(Activation::Relu)
}

/// The sizes of both products: `rows × width` times `width × hidden` times `hidden × out`.
pub(crate) struct FfnPlan {
    pub rows: usize,
    pub width: usize,
    pub hidden: usize,
    pub out: usize,
    pub output: Meta,
}

impl FfnPlan {
    pub fn new(inputs: Metas<'_>) -> Result<FfnPlan> {
        let dtype = rules::one_float("ffn", inputs)?;
        let shape = |i| &rules::required(inputs, i).shape;
        let (x, w1, w2) = (shape(0), shape(1), shape(3));
        if x.rank() == 0 || w1.rank() != 2 || w2.rank() != 2 {
            fail!(ShapeMismatch, "ffn: x is {x}, w1 {w1}, w2 {w2}; they must be […, D], [D, H], [H, E]");
        }
        let (width, hidden, out) = (x.from_end(0), w1.from_end(0), w2.from_end(0));
        if w1.from_end(1) != width || w2.from_end(1) != hidden {
            fail!(
                ShapeMismatch,
                "ffn: x is {x}, w1 {w1}, w2 {w2}; w1's rows must be {width} and w2's rows {hidden}"
            );
        }
        rules::vector_of("ffn", "b1", rules::optional(inputs, 2), hidden)?;
        rules::vector_of("ffn", "b2", rules::optional(inputs, 4), out)?;
        let mut dims = [0; MAX_RANK];
        dims[..x.rank()].copy_from_slice(x.dims());
        dims[x.rank() - 1] = out;
        let output = Meta::new(dtype, Shape::new(&dims[..x.rank()])?);
        let rows = x.dims()[..x.rank() - 1].iter().product();
        Ok(FfnPlan { rows, width, hidden, out, output })
    }
}

pub(super) fn reference(attrs: &Attrs, inputs: &[Option<View<'_>>], output: &Meta) -> Result<Values> {
    let FfnPlan { rows, width, hidden, out, .. } = FfnPlan::new(inputs.into())?;
    let (x, w1, w2) = (scalar::floats(inputs, 0)?, scalar::floats(inputs, 1)?, scalar::floats(inputs, 3)?);
    let (b1, b2) = (scalar::optional_floats(inputs, 2)?, scalar::optional_floats(inputs, 4)?);
    let activation = activation(attrs);
    let product = |k: usize, a: &dyn Fn(usize) -> f32, b: &dyn Fn(usize) -> f32| match attrs.precision() {
        Precision::F32 => contract::dot(k, a, b),
        precision => contract::fixed_dot(precision, k, a, b),
    };
    let mut y = Vec::with_capacity(rows * out);
    for row in 0..rows {
        let x = &x[row * width..];
        let h: Vec<f32> = (0..hidden)
            .map(|j| {
                let t = product(width, &|k| x[k], &|k| w1[k * hidden + j]);
                // The hidden value is a result of its own, so its NaN is canonical, as if it had been stored.
                contract::canonical(activation.apply(b1.as_ref().map_or(t, |b| t + b[j])))
            })
            .collect();
        y.extend((0..out).map(|j| {
            let t = product(hidden, &|k| h[k], &|k| w2[k * out + j]);
            b2.as_ref().map_or(t, |b| t + b[j])
        }));
    }
    Ok(scalar::stored(y, output.dtype))
}
