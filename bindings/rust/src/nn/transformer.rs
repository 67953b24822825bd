//! Transformer encoders.

use super::{FeedForward, Layer, LayerNorm, Linear, MultiHeadAttention, Sequences, Weights};
use adead_core::contract::{Activation, Precision};
use adead_core::{Context, Result, Tensor};

/// Configures the layers of an encoder. All layers are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerConfig {
    /// The number of values of a row.
    pub width: usize,
    /// The number of attention heads.
    pub heads: usize,
    /// The number of values between the two products of the feed-forward part.
    pub hidden: usize,
    /// The activation between those products.
    pub activation: Activation,
    /// The number that layer normalisation adds to a variance.
    pub eps: f32,
}

/// Computes a transformer layer with normalisation after each part, as in BERT: `h = norm(x + attention(x))`, then
/// `norm(h + feed_forward(h))`.
#[derive(Clone)]
pub struct TransformerLayer {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,
}

impl TransformerLayer {
    /// Makes the layer from its parts.
    pub fn new(
        attention: MultiHeadAttention,
        attention_norm: LayerNorm,
        feed_forward: FeedForward,
        output_norm: LayerNorm,
    ) -> TransformerLayer {
        TransformerLayer { attention, attention_norm, feed_forward, output_norm }
    }

    /// Loads the layer under a prefix, with BERT's names: `PREFIX.attention.self.query.weight` and so on.
    pub fn load(
        weights: &Weights,
        prefix: &str,
        config: &TransformerConfig,
        context: &Context,
    ) -> Result<TransformerLayer> {
        let TransformerConfig { width, heads, hidden, activation, eps } = *config;
        let name = |rest: &str| format!("{prefix}.{rest}");
        let parts =
            ["self.query", "self.key", "self.value", "output.dense"].map(|part| name(&format!("attention.{part}")));
        let inner = Linear::load(weights, &name("intermediate.dense"), width, hidden, context)?;
        let outer = Linear::load(weights, &name("output.dense"), hidden, width, context)?;
        Ok(TransformerLayer {
            attention: MultiHeadAttention::load(weights, parts.each_ref().map(String::as_str), width, heads, context)?,
            attention_norm: LayerNorm::load(weights, &name("attention.output.LayerNorm"), width, eps, context)?,
            feed_forward: FeedForward::new(inner, outer, activation)?,
            output_norm: LayerNorm::load(weights, &name("output.LayerNorm"), width, eps, context)?,
        })
    }

    /// Returns the layer's result for a matrix `[rows, width]` whose rows belong to these sequences.
    pub fn forward(&self, x: &Tensor, sequences: &Sequences) -> Result<Tensor> {
        let h = self.attention_norm.forward(&self.attention.forward_with(x, sequences, Some(x))?)?;
        self.output_norm.forward(&self.feed_forward.forward_with(&h, Some(&h))?)
    }
}

impl TransformerLayer {
    /// Applies layers in order to sequences `[count, length, width]`, or to one sequence `[length, width]`.
    pub(super) fn all(layers: &[TransformerLayer], x: &Tensor, lengths: Option<&[usize]>) -> Result<Tensor> {
        let Some(first) = layers.first() else { return Ok(x.clone()) };
        let (sequences, rows) = first.attention.batch(x, lengths)?;
        layers.iter().try_fold(rows, |x, layer| layer.forward(&x, &sequences))?.reshape(x.dims())
    }
}

/// Applies transformer layers in order.
#[derive(Clone)]
pub struct TransformerEncoder(Vec<TransformerLayer>);

impl TransformerEncoder {
    /// Makes an encoder from its layers, in order.
    pub fn new(layers: Vec<TransformerLayer>) -> TransformerEncoder {
        TransformerEncoder(layers)
    }

    /// Loads an encoder of `layers` layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
    pub fn load(
        weights: &Weights,
        prefix: &str,
        layers: usize,
        config: &TransformerConfig,
        context: &Context,
    ) -> Result<TransformerEncoder> {
        let layer = |i| TransformerLayer::load(weights, &format!("{prefix}.{i}"), config, context);
        Ok(TransformerEncoder((0..layers).map(layer).collect::<Result<_>>()?))
    }

    /// Computes attention's products in this precision, as [`MultiHeadAttention::with_precision`] does, in every layer.
    pub fn with_attention(self, precision: Precision) -> TransformerEncoder {
        let layer =
            |own: TransformerLayer| TransformerLayer { attention: own.attention.with_precision(precision), ..own };
        TransformerEncoder(self.0.into_iter().map(layer).collect())
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.0.len()
    }

    /// Returns the encoder's result for sequences `[count, length, width]`, or for one sequence `[length, width]`. For `lengths`
    /// see [`MultiHeadAttention::forward_padded`].
    pub fn forward_padded(&self, x: &Tensor, lengths: Option<&[usize]>) -> Result<Tensor> {
        TransformerLayer::all(&self.0, x, lengths)
    }

    /// Returns the encoder's result for a matrix `[rows, width]` whose rows belong to these sequences. A sequence's rows have the
    /// same bits alone, among other sequences, and padded.
    pub fn forward(&self, x: &Tensor, sequences: &Sequences) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward(&x, sequences))
    }
}
