//! The network of a job.

use super::data::SIDE;
use super::job::{LayerSpec, ModelSpec};
use adead::pipeline::Value;
use adead::train::layers::{self, Heads, Window};
use adead::train::{Init, Network, losses};
use adead::{DType, Op, Result, Tensor};

/// A recorded network: its loss and its logits.
pub(super) struct Recorded {
    pub loss: Value,
    pub logits: Value,
}

/// The bytes that texts are made of.
const BYTES: usize = 256;

/// Records the network for a batch of so many samples.
pub(super) fn record(net: &mut Network, spec: &ModelSpec, batch: usize) -> Result<Recorded> {
    let (logits, targets) = match spec {
        ModelSpec::Layers { layers } => {
            let x = net.input(DType::F32, &[batch, 1, SIDE, SIDE])?;
            let targets = net.input(DType::I64, &[batch])?;
            let mut value = x;
            for (number, layer) in layers.iter().enumerate() {
                value = one(net, layer, number, value)?;
            }
            (value, targets)
        }
        ModelSpec::Gpt { layers, heads, width, context, dropout } => {
            let ids = net.input(DType::I64, &[batch, *context])?;
            let targets = net.input(DType::I64, &[batch, *context])?;
            // As GPT-2 begins.
            let table = net.parameter("words.weight", &[BYTES, *width], &Init::Normal(0.02))?;
            let words = net.op(Op::Embedding, &[table, ids])?;
            let positions = net.parameter("positions.weight", &[*context, *width], &Init::Normal(0.02))?;
            let mut x = net.op(Op::Add, &[words, positions])?;
            x = net.dropout(x, *dropout)?;
            for number in 0..*layers {
                let heads = Heads { count: *heads, causal: true };
                x = layers::transformer_block(net, &format!("blocks.{number}"), x, heads, 4 * width, *dropout)?;
            }
            let x = layers::layer_norm(net, "norm", x, 1e-5)?;
            (layers::linear_without_bias(net, "head", x, BYTES)?, targets)
        }
    };
    Ok(Recorded { loss: losses::cross_entropy(net, logits, targets)?, logits })
}

fn one(net: &mut Network, layer: &LayerSpec, number: usize, x: Value) -> Result<Value> {
    let name = number.to_string();
    let apart = |size: usize| Window { size, stride: size, padding: 0 };
    match *layer {
        LayerSpec::Relu => net.op(Op::Relu, &[x]),
        LayerSpec::Gelu => net.op(Op::Gelu, &[x]),
        LayerSpec::Silu => net.op(Op::Silu, &[x]),
        LayerSpec::Tanh => net.op(Op::Tanh, &[x]),
        LayerSpec::Flatten => layers::flatten(net, x),
        LayerSpec::LayerNorm => layers::layer_norm(net, &name, x, 1e-5),
        LayerSpec::Linear(outputs) => layers::linear(net, &name, x, outputs),
        LayerSpec::Conv { channels, size, stride, padding } => {
            layers::conv2d(net, &name, x, channels, Window { size, stride, padding })
        }
        LayerSpec::MaxPool(size) => layers::max_pool2d(net, x, apart(size)),
        LayerSpec::AvgPool(size) => layers::avg_pool2d(net, x, apart(size)),
        LayerSpec::Dropout(probability) => net.dropout(x, probability),
    }
}

/// What logits of the first samples say about their targets.
#[derive(Default)]
pub(super) struct Measure {
    pub rows: usize,
    /// Rows whose greatest number is the target's.
    pub right: usize,
    /// The sum of the rows' cross-entropies.
    pub loss: f64,
}

impl Measure {
    pub fn add(&mut self, logits: &Tensor, targets: &Tensor, samples: usize) -> Result<()> {
        let width = logits.dims().last().copied().unwrap_or(1);
        let targets = targets.as_slice::<i64>()?;
        let rows = targets.len() / logits.dims()[0] * samples;
        for (row, &target) in logits.as_slice::<f32>()?.chunks(width).zip(targets).take(rows) {
            let greatest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row.iter().map(|x| f64::from(x - greatest).exp()).sum();
            let own = row[target as usize];
            self.rows += 1;
            // The first of equal ones, as argmax has it.
            self.right += usize::from(row.iter().position(|&x| x == greatest) == Some(target as usize));
            self.loss += sum.ln() - f64::from(own - greatest);
        }
        Ok(())
    }
}
