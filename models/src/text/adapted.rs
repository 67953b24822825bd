//! A model with adapters that learn: its own weights stay as the file has them.

use super::adapters::{self, MATRICES};
use super::config::{Config, vocabulary};
use super::decoder::Decoder;
use super::fault;
use super::layer::Compute;
use super::rope::Rope;
use super::tokenizer::Tokenizer;
use super::weights::{Linear, Weights};
use crate::gguf::Gguf;
use adead::pipeline::Value;
use adead::train::{Init, Network};
use adead::{Attrs, Context, Op, Permutation, Result, Status, Tensor};
use std::path::Path;
use std::sync::Arc;

/// Which adapters learn.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The rows of the smaller matrices.
    pub rank: usize,
    /// The factor of what they compute.
    pub scale: f32,
    /// The matrices of each layer that have adapters.
    pub on: Vec<String>,
    /// What of an adapter's input is set to 0 in training.
    pub dropout: f32,
}

/// A model of a GGUF file, and the adapters that learn.
pub(crate) struct Adapted {
    model: Decoder,
    tokenizer: Tokenizer,
    wanted: Wanted,
}

impl Adapted {
    /// Opens a model for a context. The errors are those of `TextGenerator::open`, and `invalid_argument` for adapters that no model
    /// can have.
    pub fn open(path: &Path, wanted: Wanted) -> Result<Adapted> {
        if wanted.rank == 0 || wanted.on.is_empty() || !(wanted.scale.is_finite() && wanted.scale != 0.0) {
            let text = format!(
                "adapters of rank {} and scale {} on {:?}: the rank is 1 or more, the scale not 0, and a matrix is named",
                wanted.rank, wanted.scale, wanted.on
            );
            return Err(fault(Status::InvalidArgument, path, text));
        }
        if let Some(other) = wanted.on.iter().find(|name| !MATRICES.contains(&name.as_str())) {
            let text = format!("model.on has '{other}'; it can have {}", MATRICES.join(", "));
            return Err(fault(Status::InvalidArgument, path, text));
        }
        let gguf = Arc::new(Gguf::open(path)?);
        let tokenizer =
            Tokenizer::new(vocabulary(&gguf, path)?).map_err(|error| fault(error.status(), path, error.message()))?;
        let config = Config::read(&gguf, path)?;
        // Only looked up: the network's own context computes.
        let context = Context::open("cpu")?;
        let model = Decoder::new(config, &Weights::new(gguf, path), &context)?;
        Ok(Adapted { model, tokenizer, wanted })
    }

    /// Returns a text's tokens.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        self.tokenizer.encode(text)
    }

    /// Returns the number of positions that the model was made for.
    pub fn positions(&self) -> usize {
        self.model.positions()
    }

    /// Returns the number of values of an embedding.
    pub fn width(&self) -> usize {
        self.model.width()
    }

    /// Returns the factor of what the adapters compute.
    pub fn scale(&self) -> f32 {
        self.wanted.scale
    }

    /// Returns the embeddings of tokens, `[tokens, width]`.
    pub fn embedded(&self, tokens: &[u32]) -> Result<Tensor> {
        self.model.embedded(tokens.iter())
    }

    /// Records the logits, `[samples, length, vocabulary]`, of embeddings `[samples, length, width]`.
    pub fn record(&self, net: &mut Network, x: Value) -> Result<Value> {
        let dims = net.dims(x)?;
        let (samples, length) = (dims[0], dims[1]);
        let (config, rows) = (&self.model.config, samples * length);
        let positions: Vec<usize> = (0..rows).map(|row| row % length).collect();
        let mut to = Recorder { net, wanted: &self.wanted };
        let sight = |to: &mut Recorder<'_>, rope: &Rope, mask: Option<Tensor>| -> Result<Sight> {
            let (cos, sin) = rope.tables(&positions)?;
            Ok(Sight {
                angles: [to.weight(&cos)?, to.weight(&sin)?],
                mask: mask.map(|mask| to.weight(&mask)).transpose()?,
            })
        };
        let everything = sight(&mut to, &self.model.rope, None)?;
        let local = match (&self.model.local_rope, &config.window) {
            (Some(rope), Some(window)) => Some((window, sight(&mut to, rope, window.seen(0, length)?.mask)?)),
            _ => None,
        };
        let mut x = to.reshape(&x, &[rows, config.width])?;
        for (number, layer) in self.model.layers.iter().enumerate() {
            let sight = match &local {
                Some((window, sight)) if window.applies_to(number) => sight,
                _ => &everything,
            };
            let since = to.net.pipeline().values();
            let [cos, sin] = &sight.angles;
            let parts = layer.before(&mut to, config, rows, &x, [cos, sin])?;
            let attended = attended(&mut to, config, [samples, length], parts, sight.mask)?;
            x = layer.behind(&mut to, config, rows, &x, &attended)?;
            to.net.end_part(since)?;
        }
        let norm = to.weight(&self.model.norm)?;
        let x = to.op(Op::Rmsnorm, &Attrs { eps: config.eps, ..Attrs::DEFAULT }, &[&x, &norm])?;
        let logits = self.model.head.record(to.net.pipeline(), x)?;
        to.reshape(&logits, &[samples, length, self.model.vocabulary()])
    }
}

/// What layers see: the cosines and sines of the rows' positions, and what hides keys outside a window.
struct Sight {
    angles: [Value; 2],
    mask: Option<Value>,
}

/// The attention of each sample's rows, `[rows, heads·head_width]`.
fn attended(
    to: &mut Recorder<'_>,
    config: &Config,
    [samples, length]: [usize; 2],
    parts: [Value; 3],
    mask: Option<Value>,
) -> Result<Value> {
    let Config { heads, kv_heads, head_width, score_scale, .. } = *config;
    let swapped = Attrs { perm: Permutation::new(&[0, 2, 1, 3])?, ..Attrs::DEFAULT };
    let mut operands = Vec::new();
    for (part, heads) in parts.into_iter().zip([heads, kv_heads, kv_heads]) {
        let part = to.reshape(&part, &[samples, length, heads, head_width])?;
        operands.push(to.op(Op::Transpose, &swapped, &[&part])?);
    }
    operands.extend(mask);
    let attrs = Attrs { causal: true, scale: score_scale, ..Attrs::DEFAULT };
    let y = to.op(Op::Attention, &attrs, &operands.iter().collect::<Vec<_>>())?;
    let y = to.op(Op::Transpose, &swapped, &[&y])?;
    to.reshape(&y, &[samples * length, heads * head_width])
}

/// Records a network with adapters.
struct Recorder<'a> {
    net: &'a mut Network,
    wanted: &'a Wanted,
}

impl Compute for Recorder<'_> {
    type Value = Value;

    fn weight(&mut self, tensor: &Tensor) -> Result<Value> {
        self.net.pipeline().constant(tensor)
    }

    fn op(&mut self, op: Op, attrs: &Attrs, operands: &[&Value]) -> Result<Value> {
        Compute::op(self.net.pipeline(), op, attrs, operands)
    }

    fn reshape(&mut self, x: &Value, dims: &[usize]) -> Result<Value> {
        self.net.pipeline().reshape(*x, dims)
    }

    fn rows(&mut self, x: &Value, first: usize, count: usize) -> Result<Value> {
        self.net.pipeline().rows(*x, first, count)
    }

    /// The product with the model's own matrix, and what an adapter adds: A is drawn as PyTorch draws a linear layer, B begins with 0.
    fn product(&mut self, linear: &Linear, x: &Value) -> Result<Value> {
        let y = linear.record(self.net.pipeline(), *x)?;
        let name = linear.name();
        if !self.wanted.on.iter().any(|matrix| name.rsplit('.').next() == Some(matrix)) {
            return Ok(y);
        }
        let (rank, [outputs, inputs]) = (self.wanted.rank, linear.dims());
        let [down, up] = adapters::names(name);
        let bound = Init::Uniform((1.0 / (inputs as f64).sqrt()) as f32);
        let down = self.net.parameter(&down, &[rank, inputs], &bound)?;
        let up = self.net.parameter(&up, &[outputs, rank], &Init::Constant(0.0))?;
        let x = self.net.dropout(*x, self.wanted.dropout)?;
        adapters::record(self.net.pipeline(), x, [down, up], self.wanted.scale, y)
    }
}
