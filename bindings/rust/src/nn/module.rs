//! Modules: layers over tensors, as the other languages have them.

use super::{
    Array, Device, Embedding, FeedForward, Gelu, Layer, LayerNorm, Linear, MultiHeadAttention, Relu, TransformerConfig,
    TransformerEncoder, TransformerLayer, Weights,
};
use adead_core::contract::{Activation, GeluForm};
use adead_core::{Context, Error, Result, Status, Tensor};
use std::sync::Arc;

/// A layer that takes tensors and returns one, wherever its context computes and has their values. The layers of the other
/// languages are these. Clones share what it has; threads may share one.
#[derive(Clone)]
pub struct Module {
    /// None for a sequence of none.
    device: Option<Device>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Linear(Linear),
    Embedding(Embedding),
    LayerNorm(LayerNorm),
    Relu,
    Gelu(Gelu),
    Sequential(Arc<[Module]>),
    FeedForward(FeedForward),
    Attention(MultiHeadAttention),
    TransformerLayer(Box<TransformerLayer>),
    TransformerEncoder(TransformerEncoder),
}

/// What a call gives a module besides its tensor. A module that does not take one of them refuses it.
#[derive(Clone, Copy, Default)]
pub struct Forward<'a> {
    /// Added to the result: of linear and feed-forward layers and of attention.
    pub residual: Option<&'a Tensor>,
    /// What follows: of linear layers.
    pub activation: Activation,
    /// Rows of each sequence that are its own, the others being padding: of attention and transformers.
    pub lengths: Option<&'a [usize]>,
}

impl Module {
    fn of(device: &Device, kind: Kind) -> Module {
        Module { device: Some(device.clone()), kind }
    }

    /// `x·Wᵀ + bias`: [`Linear::new`].
    pub fn linear(context: &Context, weight: &Tensor, bias: Option<&Tensor>) -> Result<Module> {
        let device = Device::of_tensors(context);
        Ok(Module::of(&device, Kind::Linear(Linear::new(weight, bias, &device)?)))
    }

    /// Rows of a table: [`Embedding::new`].
    pub fn embedding(context: &Context, table: &Tensor) -> Result<Module> {
        let device = Device::of_tensors(context);
        Ok(Module::of(&device, Kind::Embedding(Embedding::new(table, &device)?)))
    }

    /// Layer normalisation: [`LayerNorm::new`].
    pub fn layer_norm(context: &Context, weight: &Tensor, bias: &Tensor, eps: f32) -> Result<Module> {
        let device = Device::of_tensors(context);
        Ok(Module::of(&device, Kind::LayerNorm(LayerNorm::new(weight, bias, eps, &device)?)))
    }

    /// max(x, 0).
    pub fn relu(context: &Context) -> Module {
        Module::of(&Device::of_tensors(context), Kind::Relu)
    }

    /// The Gaussian error linear unit.
    pub fn gelu(context: &Context, form: GeluForm) -> Module {
        Module::of(&Device::of_tensors(context), Kind::Gelu(Gelu(form)))
    }

    /// Modules of which each takes the result of the one before.
    pub fn sequential(modules: &[Module]) -> Module {
        let device = modules.first().and_then(|first| first.device.clone());
        Module { device, kind: Kind::Sequential(modules.into()) }
    }

    /// Two linear layers with an activation between them: [`FeedForward::new`].
    pub fn feed_forward(inner: &Module, outer: &Module, activation: Activation) -> Result<Module> {
        let (inner, outer, device) = (inner.as_linear()?, outer.as_linear()?, inner.device()?);
        let layer = FeedForward::new(inner.clone(), outer.clone(), activation)?;
        Ok(Module::of(device, Kind::FeedForward(layer)))
    }

    /// Self-attention of two linear layers: [`MultiHeadAttention::new`].
    pub fn attention(qkv: &Module, output: &Module, heads: usize) -> Result<Module> {
        let device = qkv.device()?;
        let layer = MultiHeadAttention::new(qkv.as_linear()?.clone(), output.as_linear()?.clone(), heads, device)?;
        Ok(Module::of(device, Kind::Attention(layer)))
    }

    /// A transformer layer of its parts: [`TransformerLayer::new`].
    pub fn transformer_layer(
        attention: &Module,
        attention_norm: &Module,
        feed_forward: &Module,
        output_norm: &Module,
    ) -> Result<Module> {
        let device = attention.device()?;
        let Kind::Attention(attention) = &attention.kind else { return Err(attention.is_not("an attention layer")) };
        let Kind::FeedForward(feed_forward) = &feed_forward.kind else {
            return Err(feed_forward.is_not("a feed-forward layer"));
        };
        let norm = |module: &Module| match &module.kind {
            Kind::LayerNorm(norm) => Ok(norm.clone()),
            _ => Err(module.is_not("a layer norm")),
        };
        let (first, second) = (norm(attention_norm)?, norm(output_norm)?);
        let layer = TransformerLayer::new(attention.clone(), first, feed_forward.clone(), second);
        Ok(Module::of(device, Kind::TransformerLayer(layer.into())))
    }

    /// Transformer layers one after another.
    pub fn transformer_encoder(layers: &[Module]) -> Result<Module> {
        let layer = |module: &Module| match &module.kind {
            Kind::TransformerLayer(layer) => Ok((**layer).clone()),
            _ => Err(module.is_not("a transformer layer")),
        };
        let device = layers.first().and_then(|first| first.device.clone());
        let encoder = TransformerEncoder::new(layers.iter().map(layer).collect::<Result<_>>()?);
        Ok(Module { device, kind: Kind::TransformerEncoder(encoder) })
    }

    /// [`Linear::load`].
    pub fn load_linear(
        context: &Context,
        weights: &Weights,
        prefix: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Module> {
        let device = Device::of_tensors(context);
        Ok(Module::of(&device, Kind::Linear(Linear::load(weights, prefix, inputs, outputs, &device)?)))
    }

    /// [`Embedding::load`].
    pub fn load_embedding(
        context: &Context,
        weights: &Weights,
        prefix: &str,
        count: usize,
        width: usize,
    ) -> Result<Module> {
        let device = Device::of_tensors(context);
        Ok(Module::of(&device, Kind::Embedding(Embedding::load(weights, prefix, count, width, &device)?)))
    }

    /// [`LayerNorm::load`].
    pub fn load_layer_norm(
        context: &Context,
        weights: &Weights,
        prefix: &str,
        width: usize,
        eps: f32,
    ) -> Result<Module> {
        let device = Device::of_tensors(context);
        Ok(Module::of(&device, Kind::LayerNorm(LayerNorm::load(weights, prefix, width, eps, &device)?)))
    }

    /// [`MultiHeadAttention::load`].
    pub fn load_attention(
        context: &Context,
        weights: &Weights,
        prefixes: [&str; 4],
        width: usize,
        heads: usize,
    ) -> Result<Module> {
        let device = Device::of_tensors(context);
        let layer = MultiHeadAttention::load(weights, prefixes, width, heads, &device)?;
        Ok(Module::of(&device, Kind::Attention(layer)))
    }

    /// [`TransformerLayer::load`].
    pub fn load_transformer_layer(
        context: &Context,
        weights: &Weights,
        prefix: &str,
        config: &TransformerConfig,
    ) -> Result<Module> {
        let device = Device::of_tensors(context);
        let layer = TransformerLayer::load(weights, prefix, config, &device)?;
        Ok(Module::of(&device, Kind::TransformerLayer(layer.into())))
    }

    /// [`TransformerEncoder::load`].
    pub fn load_transformer_encoder(
        context: &Context,
        weights: &Weights,
        prefix: &str,
        layers: usize,
        config: &TransformerConfig,
    ) -> Result<Module> {
        let device = Device::of_tensors(context);
        let encoder = TransformerEncoder::load(weights, prefix, layers, config, &device)?;
        Ok(Module::of(&device, Kind::TransformerEncoder(encoder)))
    }

    /// What it is: `linear`, `embedding`, `layer_norm`, `relu`, `gelu`, `sequential`, `feed_forward`, `attention`,
    /// `transformer_layer` or `transformer_encoder`.
    pub fn kind(&self) -> &'static str {
        match &self.kind {
            Kind::Linear(_) => "linear",
            Kind::Embedding(_) => "embedding",
            Kind::LayerNorm(_) => "layer_norm",
            Kind::Relu => "relu",
            Kind::Gelu(_) => "gelu",
            Kind::Sequential(_) => "sequential",
            Kind::FeedForward(_) => "feed_forward",
            Kind::Attention(_) => "attention",
            Kind::TransformerLayer(_) => "transformer_layer",
            Kind::TransformerEncoder(_) => "transformer_encoder",
        }
    }

    /// Sizes: inputs and outputs of a linear layer, count and width of an embedding, and how many layers others have, with 0. Both 0
    /// for what has none of these.
    pub fn size(&self) -> [usize; 2] {
        match &self.kind {
            Kind::Linear(linear) => [linear.inputs(), linear.outputs()],
            Kind::Embedding(table) => [table.count(), table.width()],
            Kind::Sequential(modules) => [modules.len(), 0],
            Kind::TransformerEncoder(encoder) => [encoder.layers(), 0],
            _ => [0, 0],
        }
    }

    /// Its result; the errors are those of its operations.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, Forward::default())
    }

    /// [`Module::forward`] with more than a tensor. `invalid_argument` for what this module does not take.
    pub fn forward_with(&self, x: &Tensor, with: Forward<'_>) -> Result<Tensor> {
        let kind = &self.kind;
        let takes_residual = matches!(kind, Kind::Linear(_) | Kind::FeedForward(_) | Kind::Attention(_));
        let takes_lengths =
            matches!(kind, Kind::Attention(_) | Kind::TransformerLayer(_) | Kind::TransformerEncoder(_));
        let wrong = match with {
            Forward { residual: Some(_), .. } if !takes_residual => "residual",
            Forward { lengths: Some(_), .. } if !takes_lengths => "lengths",
            Forward { activation, .. } if activation != Activation::None && !matches!(kind, Kind::Linear(_)) => {
                "activation"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            let text = format!("a layer of the kind {} takes no {wrong}", self.kind());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        if let Kind::Sequential(modules) = kind {
            return modules.iter().try_fold(x.clone(), |x, module| module.forward(&x));
        }
        let Some(device) = &self.device else { return Ok(x.clone()) };
        let residual = with.residual.map(|residual| device.array(residual)).transpose()?;
        self.compute(&device.array(x)?, residual.as_ref(), with)?.to_tensor()
    }

    fn compute(&self, x: &Array, residual: Option<&Array>, with: Forward<'_>) -> Result<Array> {
        match &self.kind {
            Kind::Linear(layer) => layer.forward_with(x, residual, with.activation),
            Kind::Embedding(layer) => layer.forward(x),
            Kind::LayerNorm(layer) => layer.forward(x),
            Kind::Relu => Relu.forward(x),
            Kind::Gelu(layer) => layer.forward(x),
            Kind::FeedForward(layer) => layer.forward_with(x, residual),
            Kind::Attention(layer) => layer.forward_padded(x, with.lengths, residual),
            Kind::TransformerLayer(layer) => TransformerLayer::all(std::slice::from_ref(layer), x, with.lengths),
            Kind::TransformerEncoder(layer) => layer.forward_padded(x, with.lengths),
            // It has none of its own.
            Kind::Sequential(_) => Ok(x.clone()),
        }
    }

    fn device(&self) -> Result<&Device> {
        self.device.as_ref().ok_or_else(|| self.is_not("a layer with weights"))
    }

    fn as_linear(&self) -> Result<&Linear> {
        match &self.kind {
            Kind::Linear(linear) => Ok(linear),
            _ => Err(self.is_not("a linear layer")),
        }
    }

    fn is_not(&self, what: &str) -> Error {
        let text = format!("{what} is needed, and this is a layer of the kind {}", self.kind());
        Error::new(Status::InvalidArgument, text)
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({})", self.kind())
    }
}
