//! Layers: parts of a network with parameters. Parameters have PyTorch's names, shapes and initial distributions. `name` is the
//! prefix of their names.

use super::network::{Init, Network};
use adead_core::pipeline::Value;
use adead_core::{Attrs, Axis, Error, Op, PerAxis, Permutation, Result, Status, Tensor};

fn wrong_shape<T>(text: String) -> Result<T> {
    Err(Error::new(Status::ShapeMismatch, text))
}

/// PyTorch's bound for the initial weights and biases: 1 / √inputs.
fn bound(inputs: usize) -> Init {
    Init::Uniform((1.0 / (inputs.max(1) as f64).sqrt()) as f32)
}

/// Computes `x·Wᵀ + b` for x of `[…, inputs]`, with the parameters `NAME.weight`, `[outputs, inputs]`, and `NAME.bias`.
pub fn linear(net: &mut Network, name: &str, x: Value, outputs: usize) -> Result<Value> {
    let y = linear_without_bias(net, name, x, outputs)?;
    let inputs = net.dims(x)?.last().copied().unwrap_or(1);
    let bias = net.parameter(&format!("{name}.bias"), &[outputs], &bound(inputs))?;
    net.op(Op::Add, &[y, bias])
}

/// Computes [`linear`] without a bias.
pub fn linear_without_bias(net: &mut Network, name: &str, x: Value, outputs: usize) -> Result<Value> {
    let Some(&inputs) = net.dims(x)?.last() else { return wrong_shape(format!("linear '{name}': x is a scalar")) };
    let weight = net.parameter(&format!("{name}.weight"), &[outputs, inputs], &bound(inputs))?;
    net.op_with(Op::Matmul, &Attrs { trans_b: true, ..Attrs::DEFAULT }, &[x, weight])
}

/// Looks up rows of the table `NAME.weight`, `[count, width]`. Its initial values are normal with this standard deviation
/// (PyTorch: 1).
pub fn embedding(
    net: &mut Network,
    name: &str,
    ids: Value,
    count: usize,
    width: usize,
    deviation: f32,
) -> Result<Value> {
    let table = net.parameter(&format!("{name}.weight"), &[count, width], &Init::Normal(deviation))?;
    net.op(Op::Embedding, &[table, ids])
}

/// Normalises the last axis, with `NAME.weight` and `NAME.bias`.
pub fn layer_norm(net: &mut Network, name: &str, x: Value, eps: f32) -> Result<Value> {
    let width = net.dims(x)?.last().copied().unwrap_or(1);
    let weight = net.parameter(&format!("{name}.weight"), &[width], &Init::Constant(1.0))?;
    let bias = net.parameter(&format!("{name}.bias"), &[width], &Init::Constant(0.0))?;
    net.op_with(Op::Layernorm, &Attrs { eps, ..Attrs::DEFAULT }, &[x, weight, bias])
}

/// Divides the last axis by its root mean square, with `NAME.weight`.
pub fn rms_norm(net: &mut Network, name: &str, x: Value, eps: f32) -> Result<Value> {
    let width = net.dims(x)?.last().copied().unwrap_or(1);
    let weight = net.parameter(&format!("{name}.weight"), &[width], &Init::Constant(1.0))?;
    net.op_with(Op::Rmsnorm, &Attrs { eps, ..Attrs::DEFAULT }, &[x, weight])
}

/// A window that moves over images, `[batch, channels, height, width]`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Rows and columns.
    pub size: usize,
    /// The step from one position to the next.
    pub stride: usize,
    /// The number of zeros added on each side of the image.
    pub padding: usize,
}

impl Window {
    /// Returns the dimensions of the images, and the number of positions in each direction.
    fn over(&self, net: &Network, what: &str, x: Value) -> Result<([usize; 4], [usize; 2])> {
        let dims = net.dims(x)?;
        let &[batch, channels, height, width] = dims.as_slice() else {
            return wrong_shape(format!("{what}: x is {dims:?}; it must be [batch, channels, height, width]"));
        };
        let Window { size, stride, padding } = *self;
        let places =
            |n: usize| (n + 2 * padding).checked_sub(size).filter(|_| size > 0 && stride > 0).map(|n| n / stride + 1);
        match (places(height), places(width)) {
            (Some(rows), Some(columns)) => Ok(([batch, channels, height, width], [rows, columns])),
            _ => wrong_shape(format!(
                "{what}: a window of {size} × {size} with a step of {stride} does not fit {height} × {width} with {padding} zeros around"
            )),
        }
    }

    /// The values at one place of the window, for every position: `[batch, channels, rows, columns]` of the padded image.
    fn at(&self, net: &mut Network, x: Value, [row, column]: [usize; 2], [rows, columns]: [usize; 2]) -> Result<Value> {
        let stride = self.stride;
        let last = |first: usize, count: usize| (first + (count - 1) * stride + 1) as i32;
        let numbers = |numbers: [i32; 4]| PerAxis::new(&numbers);
        let attrs = Attrs {
            start: numbers([0, 0, row as i32, column as i32])?,
            stop: numbers([i32::MAX, i32::MAX, last(row, rows), last(column, columns)])?,
            step: numbers([1, 1, stride as i32, stride as i32])?,
            ..Attrs::DEFAULT
        };
        net.op_with(Op::Slice, &attrs, &[x])
    }

    fn padded(&self, net: &mut Network, x: Value, with: f32) -> Result<Value> {
        if self.padding == 0 {
            return Ok(x);
        }
        let around = PerAxis::new(&[0, 0, self.padding as i32, self.padding as i32])?;
        let value = net.pipeline().constant(&Tensor::new(&[with], &[])?)?;
        net.op_with(Op::Pad, &Attrs { start: around, stop: around, ..Attrs::DEFAULT }, &[x, value])
    }

    /// The values at all places, in the order of rows and columns.
    fn places(&self, net: &mut Network, x: Value, positions: [usize; 2]) -> Result<Vec<Value>> {
        let mut places = Vec::new();
        for row in 0..self.size {
            for column in 0..self.size {
                places.push(self.at(net, x, [row, column], positions)?);
            }
        }
        Ok(places)
    }
}

/// Convolves images with `NAME.weight`, `[outputs, channels, size, size]`, and adds `NAME.bias`: `[batch, outputs, rows, columns]`. The
/// values under the window at each position become a column of a matrix product.
pub fn conv2d(net: &mut Network, name: &str, x: Value, outputs: usize, window: Window) -> Result<Value> {
    let ([batch, channels, ..], [rows, columns]) = window.over(net, "conv2d", x)?;
    let (places, positions) = (window.size * window.size, rows * columns);
    let inputs = channels * places;
    let weight =
        net.parameter(&format!("{name}.weight"), &[outputs, channels, window.size, window.size], &bound(inputs))?;
    let bias = net.parameter(&format!("{name}.bias"), &[outputs], &bound(inputs))?;
    let x = window.padded(net, x, 0.0)?;
    let mut parts = window.places(net, x, [rows, columns])?;
    for part in &mut parts {
        *part = net.pipeline().reshape(*part, &[batch, channels, 1, positions])?;
    }
    let stacked = match parts.as_slice() {
        [one] => *one,
        all => net.op_with(Op::Concat, &Attrs { axis: Axis::At(2), ..Attrs::DEFAULT }, all)?,
    };
    let under = net.pipeline().reshape(stacked, &[batch, inputs, positions])?;
    let weight = net.pipeline().reshape(weight, &[outputs, inputs])?;
    let y = net.op(Op::Matmul, &[weight, under])?;
    let bias = net.pipeline().reshape(bias, &[outputs, 1])?;
    let y = net.op(Op::Add, &[y, bias])?;
    net.pipeline().reshape(y, &[batch, outputs, rows, columns])
}

/// Takes the greatest value under the window. If several are equal, the first one gets the gradient.
pub fn max_pool2d(net: &mut Network, x: Value, window: Window) -> Result<Value> {
    pooled(net, "max_pool2d", x, window, Op::Maximum, f32::NEG_INFINITY)
}

/// Takes the mean of the values under the window, including padding.
pub fn avg_pool2d(net: &mut Network, x: Value, window: Window) -> Result<Value> {
    let sum = pooled(net, "avg_pool2d", x, window, Op::Add, 0.0)?;
    net.op_with(Op::Scale, &Attrs { alpha: 1.0 / (window.size * window.size) as f32, ..Attrs::DEFAULT }, &[sum])
}

fn pooled(net: &mut Network, what: &str, x: Value, window: Window, op: Op, around: f32) -> Result<Value> {
    let (_, positions) = window.over(net, what, x)?;
    let x = window.padded(net, x, around)?;
    let places = window.places(net, x, positions)?;
    places[1..].iter().try_fold(places[0], |all, &place| net.op(op, &[all, place]))
}

/// Makes one row of each sample: `[batch, …]` becomes `[batch, n]`.
pub fn flatten(net: &mut Network, x: Value) -> Result<Value> {
    let dims = net.dims(x)?;
    let Some((&batch, rest)) = dims.split_first() else { return wrong_shape("flatten: x is a scalar".into()) };
    net.pipeline().reshape(x, &[batch, rest.iter().product()])
}

/// The heads of [`attention`] and [`transformer_block`].
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// The number of heads; a divisor of the width.
    pub count: usize,
    /// Whether a position attends only to itself and earlier positions.
    pub causal: bool,
}

/// Computes multi-head self-attention of x, `[batch, positions, width]`. `NAME.qkv` and `NAME.out` are [`linear`] layers.
pub fn attention(net: &mut Network, name: &str, x: Value, heads: Heads) -> Result<Value> {
    let dims = net.dims(x)?;
    let &[batch, positions, width] = dims.as_slice() else {
        return wrong_shape(format!("attention '{name}': x is {dims:?}; it must be [batch, positions, width]"));
    };
    if heads.count == 0 || !width.is_multiple_of(heads.count) {
        return wrong_shape(format!("attention '{name}': {} heads don't divide a width of {width}", heads.count));
    }
    let size = width / heads.count;
    let all = linear(net, &format!("{name}.qkv"), x, 3 * width)?;
    let all = net.pipeline().reshape(all, &[batch, positions, 3, heads.count, size])?;
    let order = Permutation::new(&[2, 0, 3, 1, 4])?;
    let all = net.op_with(Op::Transpose, &Attrs { perm: order, ..Attrs::DEFAULT }, &[all])?;
    let mut parts = Vec::new();
    for part in 0..3 {
        let own = net.pipeline().rows(all, part, 1)?;
        parts.push(net.pipeline().reshape(own, &[batch, heads.count, positions, size])?);
    }
    let y = net.op_with(Op::Attention, &Attrs { causal: heads.causal, ..Attrs::DEFAULT }, &parts)?;
    let order = Permutation::new(&[0, 2, 1, 3])?;
    let y = net.op_with(Op::Transpose, &Attrs { perm: order, ..Attrs::DEFAULT }, &[y])?;
    let y = net.pipeline().reshape(y, &[batch, positions, width])?;
    linear(net, &format!("{name}.out"), y, width)
}

/// Computes a transformer block with the norms first, as in GPT-2: h = x + attention(norm(x)), then h + feed_forward(norm(h)).
/// The feed-forward part has `hidden` values and GELU. Dropout follows both parts.
pub fn transformer_block(
    net: &mut Network,
    name: &str,
    x: Value,
    heads: Heads,
    hidden: usize,
    dropout: f32,
) -> Result<Value> {
    let width = net.dims(x)?.last().copied().unwrap_or(1);
    let normed = layer_norm(net, &format!("{name}.norm1"), x, 1e-5)?;
    let attended = attention(net, &format!("{name}.attention"), normed, heads)?;
    let attended = net.dropout(attended, dropout)?;
    let x = net.op(Op::Add, &[x, attended])?;
    let normed = layer_norm(net, &format!("{name}.norm2"), x, 1e-5)?;
    let between = linear(net, &format!("{name}.inner"), normed, hidden)?;
    let between = net.op(Op::Gelu, &[between])?;
    let y = linear(net, &format!("{name}.outer"), between, width)?;
    let y = net.dropout(y, dropout)?;
    net.op(Op::Add, &[x, y])
}
