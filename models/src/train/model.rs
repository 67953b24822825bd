//! Records the network of a description.

use super::Measured;
use super::job::{GradientSum, LayerSpec, LossScaleSpec, LossSpec, ModelSpec, StorageSpec};
use adead::pipeline::Value;
use adead::train::layers::{self, Heads, Window};
use adead::train::{Init, Network, losses};
use adead::{Attrs, Context, DType, Error, Op, Result, Status, Tensor};

/// A recorded network: its loss and its logits.
pub(super) struct Recorded {
    pub loss: Value,
    pub logits: Value,
    pub sample: Sample,
}

/// The types and shapes of a network's samples, without the axis of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The type of a sample's values: f32, or i64 for ids.
    pub dtype: DType,
    /// Its shape.
    pub dims: Vec<usize>,
    /// The type of its target: i64 for classes, else f32.
    pub target: DType,
    /// The target's shape.
    pub targets: Vec<usize>,
    /// The shape of the network's output for it.
    pub outputs: Vec<usize>,
}

impl Sample {
    /// Targets that say nothing, for a network that only computes.
    pub(super) fn no_targets(&self, count: usize) -> Result<Tensor> {
        Tensor::zeros(self.target, &[&[count][..], &self.targets].concat())
    }
}

/// Begins a network to be trained.
pub(super) fn network(
    context: &Context,
    seed: u64,
    loss_scale: Option<&LossScaleSpec>,
    recompute: bool,
    gradient_sum: GradientSum,
) -> Result<Network> {
    let net = Network::new(context, seed).with_recompute(recompute);
    let net = net.with_fixed_gradients(gradient_sum == GradientSum::Fixed);
    match loss_scale {
        Some(scale) => net.with_loss_scale(scale.scale().map_err(|text| Error::new(Status::InvalidArgument, text))?),
        None => Ok(net),
    }
}

/// Rounds values, and the gradients by them.
fn stored(net: &mut Network, x: Value, storage: Option<StorageSpec>) -> Result<Value> {
    let Some(storage) = storage else { return Ok(x) };
    let narrow = match storage {
        StorageSpec::F16 => DType::F16,
        StorageSpec::Bf16 => DType::BF16,
    };
    let mut to = |dtype: DType, x: Value| net.op_with(Op::Cast, &Attrs { dtype: Some(dtype), ..Attrs::DEFAULT }, &[x]);
    let x = to(narrow, x)?;
    to(DType::F32, x)
}

/// The bytes that texts are made of.
const BYTES: usize = 256;

/// Records the network for a batch of samples of the shape `input`. A decoder's samples have its context's shape. Values between
/// layers are rounded to `storage`.
pub(super) fn record(
    net: &mut Network,
    spec: &ModelSpec,
    input: &[usize],
    loss: LossSpec,
    batch: usize,
    storage: Option<StorageSpec>,
) -> Result<Recorded> {
    let invalid = |text: String| Err(Error::new(Status::InvalidArgument, text));
    let (dtype, dims) = match spec {
        ModelSpec::Layers { .. } => (DType::F32, input.to_vec()),
        ModelSpec::Gpt { context, .. } if input.is_empty() || input == [*context] => (DType::I64, vec![*context]),
        ModelSpec::Gpt { context, .. } => {
            return invalid(format!("input is {input:?}; samples of a gpt are its context, [{context}]"));
        }
        ModelSpec::Sentences { .. } | ModelSpec::Adapters { .. } => {
            return invalid(
                "models of the kinds 'sentences' and 'adapters' are trained by jobs, not with arrays".into(),
            );
        }
    };
    let x = net.input(dtype, &[&[batch][..], &dims].concat())?;
    let logits = match spec {
        ModelSpec::Layers { layers } => {
            let mut value = x;
            for (number, layer) in layers.iter().enumerate() {
                let since = net.pipeline().values();
                value = one(net, layer, number, value)?;
                if number + 1 < layers.len() {
                    value = stored(net, value, storage)?;
                }
                net.end_part(since)?;
            }
            value
        }
        ModelSpec::Gpt { layers, heads, width, context, dropout } => {
            // As GPT-2 begins.
            let table = net.parameter("words.weight", &[BYTES, *width], &Init::Normal(0.02))?;
            let words = net.op(Op::Embedding, &[table, x])?;
            let positions = net.parameter("positions.weight", &[*context, *width], &Init::Normal(0.02))?;
            let mut x = net.op(Op::Add, &[words, positions])?;
            x = net.dropout(x, *dropout)?;
            x = stored(net, x, storage)?;
            for number in 0..*layers {
                let since = net.pipeline().values();
                let heads = Heads { count: *heads, causal: true };
                x = layers::transformer_block(net, &format!("blocks.{number}"), x, heads, 4 * width, *dropout)?;
                x = stored(net, x, storage)?;
                net.end_part(since)?;
            }
            let x = layers::layer_norm(net, "norm", x, 1e-5)?;
            layers::linear_without_bias(net, "head", x, BYTES)?
        }
        ModelSpec::Sentences { .. } | ModelSpec::Adapters { .. } => unreachable!("it was refused above"),
    };
    let outputs = net.dims(logits)?.split_off(1);
    let (target, targets) = match (loss, outputs.split_last()) {
        (LossSpec::CrossEntropy, Some((_, rows))) => (DType::I64, rows.to_vec()),
        (LossSpec::CrossEntropy, None) => {
            return invalid("the network computes one number for a sample, and no classes".into());
        }
        _ => (DType::F32, outputs.clone()),
    };
    let given = net.input(target, &[&[batch][..], &targets].concat())?;
    let loss = match loss {
        LossSpec::CrossEntropy => losses::cross_entropy(net, logits, given)?,
        LossSpec::Mse => losses::mse(net, logits, given)?,
        LossSpec::BinaryCrossEntropy => losses::binary_cross_entropy(net, logits, given)?,
    };
    Ok(Recorded { loss, logits, sample: Sample { dtype, dims, target, targets, outputs } })
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
    /// The means over all rows.
    pub fn mean(&self) -> Measured {
        let of = |number: f64| number / self.rows.max(1) as f64;
        Measured { loss: of(self.loss), accuracy: of(self.right as f64) }
    }

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
