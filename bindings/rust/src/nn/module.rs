//! Modules: any layer as one type, as the other languages have them.

use super::{
    Embedding, FeedForward, Gelu, Layer, LayerNorm, Linear, MultiHeadAttention, Relu, TransformerEncoder,
    TransformerLayer,
};
use adead_core::contract::Activation;
use adead_core::{Error, Result, Status, Tensor};
use std::sync::Arc;

/// Any layer: `Module::from(Linear::new(…)?)`. The layers of the other languages are these. Clones share what it has; threads may
/// share one.
#[derive(Clone)]
pub struct Module(Kind);

/// Every kind, and a module of each layer.
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
            /// What it is: `linear`, `embedding`, `layer_norm`, `relu`, `gelu`, `sequential`, `feed_forward`, `attention`,
            /// `transformer_layer` or `transformer_encoder`.
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
    /// Modules of which each takes the result of the one before. With none it returns what it is given.
    pub fn sequential(modules: &[Module]) -> Module {
        Arc::<[Module]>::from(modules).into()
    }

    /// Two linear layers with an activation between them: [`FeedForward::new`].
    pub fn feed_forward(inner: &Module, outer: &Module, activation: Activation) -> Result<Module> {
        Ok(FeedForward::new(inner.as_linear()?.clone(), outer.as_linear()?.clone(), activation)?.into())
    }

    /// Self-attention of two linear layers: [`MultiHeadAttention::new`].
    pub fn attention(qkv: &Module, output: &Module, heads: usize) -> Result<Module> {
        Ok(MultiHeadAttention::new(qkv.as_linear()?.clone(), output.as_linear()?.clone(), heads)?.into())
    }

    /// A transformer layer of its parts: [`TransformerLayer::new`].
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

    /// Transformer layers one after another.
    pub fn transformer_encoder(layers: &[Module]) -> Result<Module> {
        let layer = |module: &Module| match &module.0 {
            Kind::TransformerLayer(layer) => Ok((**layer).clone()),
            _ => Err(module.is_not("a transformer layer")),
        };
        Ok(TransformerEncoder::new(layers.iter().map(layer).collect::<Result<_>>()?).into())
    }

    /// Sizes: inputs and outputs of a linear layer, count and width of an embedding, and how many layers others have, with 0. Both 0
    /// for what has none of these.
    pub fn size(&self) -> [usize; 2] {
        match &self.0 {
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
        let text = format!("{what} is needed, and this is a layer of the kind {}", self.kind());
        Error::new(Status::InvalidArgument, text)
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({})", self.kind())
    }
}
