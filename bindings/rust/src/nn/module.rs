//! Modules: one type for every kind of layer, used by the other languages' bindings.

use super::{
    Embedding, FeedForward, Gelu, Layer, LayerNorm, Linear, MultiHeadAttention, Relu, TransformerEncoder,
    TransformerLayer,
};
use adead_core::contract::Activation;
use adead_core::{Error, Result, Status, Tensor};
use std::sync::Arc;

/// Holds a layer of any kind: `Module::from(Linear::new(…)?)`. The other languages' layers are modules. Clones share the
/// weights. Threads may share a module.
#[derive(Clone)]
pub struct Module(Kind);

/// Defines the kinds, and makes modules from each kind of layer.
macro_rules! kinds {
    ($($kind:ident($layer:ty) = $name:literal,)*) => {
        #[derive(Clone)]
        enum Kind {
            $($kind($layer),)*
        }

        $(impl From<$layer> for Module {
            fn from(layer: $layer) -> Module {
                Module(Kind::$kind(layer))
            }
        })*

        impl Module {
            /// Returns the kind of layer: `linear`, `embedding`, `layer_norm`, `relu`, `gelu`, `sequential`, `feed_forward`,
            /// `attention`, `transformer_layer` or `transformer_encoder`.
            pub fn kind(&self) -> &'static str {
                match self.0 {
                    $(Kind::$kind(_) => $name,)*
                }
            }
        }
    };
}

kinds! {
    Linear(Linear) = "linear",
    Embedding(Embedding) = "embedding",
    LayerNorm(LayerNorm) = "layer_norm",
    Relu(Relu) = "relu",
    Gelu(Gelu) = "gelu",
    Sequential(Arc<[Module]>) = "sequential",
    FeedForward(FeedForward) = "feed_forward",
    Attention(MultiHeadAttention) = "attention",
    TransformerLayer(Arc<TransformerLayer>) = "transformer_layer",
    TransformerEncoder(TransformerEncoder) = "transformer_encoder",
}

impl From<TransformerLayer> for Module {
    fn from(layer: TransformerLayer) -> Module {
        Arc::new(layer).into()
    }
}

/// Sets the optional arguments of [`Module::forward_with`]. A module refuses an argument that its kind does not take.
#[derive(Clone, Copy, Default)]
pub struct Forward<'a> {
    /// A tensor that is added to the result. Linear, feed-forward and attention layers take it. A linear layer adds it before
    /// its activation.
    pub residual: Option<&'a Tensor>,
    /// The activation that is applied to the result. Linear layers take it.
    pub activation: Activation,
    /// The number of rows of each sequence; the rows after them are padding. Attention layers, transformer layers and
    /// transformer encoders take it.
    pub lengths: Option<&'a [usize]>,
}

impl Module {
    /// Makes a module that applies modules in order: each takes the result of the previous one. Without modules, it returns its
    /// input.
    pub fn sequential(modules: &[Module]) -> Module {
        Arc::<[Module]>::from(modules).into()
    }

    /// Makes a feed-forward layer from two linear layers: see [`FeedForward::new`].
    pub fn feed_forward(inner: &Module, outer: &Module, activation: Activation) -> Result<Module> {
        Ok(FeedForward::new(inner.as_linear()?.clone(), outer.as_linear()?.clone(), activation)?.into())
    }

    /// Makes a self-attention layer from two linear layers: see [`MultiHeadAttention::new`].
    pub fn attention(qkv: &Module, output: &Module, heads: usize) -> Result<Module> {
        Ok(MultiHeadAttention::new(qkv.as_linear()?.clone(), output.as_linear()?.clone(), heads)?.into())
    }

    /// Makes a transformer layer from its parts: see [`TransformerLayer::new`].
    pub fn transformer_layer(
        attention: &Module,
        attention_norm: &Module,
        feed_forward: &Module,
        output_norm: &Module,
    ) -> Result<Module> {
        let Kind::Attention(attention) = &attention.0 else { return Err(attention.is_not("an attention layer")) };
        let Kind::FeedForward(feed_forward) = &feed_forward.0 else {
            return Err(feed_forward.is_not("a feed-forward layer"));
        };
        let norm = |module: &Module| match &module.0 {
            Kind::LayerNorm(norm) => Ok(norm.clone()),
            _ => Err(module.is_not("a layer norm")),
        };
        let (first, second) = (norm(attention_norm)?, norm(output_norm)?);
        Ok(TransformerLayer::new(attention.clone(), first, feed_forward.clone(), second).into())
    }

    /// Makes an encoder that applies transformer layers in order.
    pub fn transformer_encoder(layers: &[Module]) -> Result<Module> {
        let layer = |module: &Module| match &module.0 {
            Kind::TransformerLayer(layer) => Ok((**layer).clone()),
            _ => Err(module.is_not("a transformer layer")),
        };
        Ok(TransformerEncoder::new(layers.iter().map(layer).collect::<Result<_>>()?).into())
    }

    /// Returns two sizes: a linear layer's inputs and outputs, or an embedding's count and width. For `sequential` and
    /// `transformer_encoder` they are the number of layers and 0. Other kinds return 0 and 0.
    pub fn size(&self) -> [usize; 2] {
        match &self.0 {
            Kind::Linear(linear) => [linear.inputs(), linear.outputs()],
            Kind::Embedding(table) => [table.count(), table.width()],
            Kind::Sequential(modules) => [modules.len(), 0],
            Kind::TransformerEncoder(encoder) => [encoder.layers(), 0],
            _ => [0, 0],
        }
    }

    /// Returns the module's result. The errors are those of its operations.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, Forward::default())
    }

    /// Returns the module's result, as [`Module::forward`] does, with optional arguments. `invalid_argument` for an argument that
    /// this kind of module does not take.
    pub fn forward_with(&self, x: &Tensor, with: Forward<'_>) -> Result<Tensor> {
        let kind = &self.0;
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
        match kind {
            Kind::Linear(layer) => layer.forward_with(x, with.residual, with.activation),
            Kind::Embedding(layer) => layer.forward(x),
            Kind::LayerNorm(layer) => layer.forward(x),
            Kind::Relu(layer) => layer.forward(x),
            Kind::Gelu(layer) => layer.forward(x),
            Kind::Sequential(modules) => modules.iter().try_fold(x.clone(), |x, module| module.forward(&x)),
            Kind::FeedForward(layer) => layer.forward_with(x, with.residual),
            Kind::Attention(layer) => layer.forward_padded(x, with.lengths, with.residual),
            Kind::TransformerLayer(layer) => TransformerLayer::all(std::slice::from_ref(layer), x, with.lengths),
            Kind::TransformerEncoder(layer) => layer.forward_padded(x, with.lengths),
        }
    }

    fn as_linear(&self) -> Result<&Linear> {
        match &self.0 {
            Kind::Linear(linear) => Ok(linear),
            _ => Err(self.is_not("a linear layer")),
        }
    }

    fn is_not(&self, what: &str) -> Error {
        let text = format!("expected {what}, but this is a layer of the kind {}", self.kind());
        Error::new(Status::InvalidArgument, text)
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({})", self.kind())
    }
}
