//! Transformer encoders.

use super::{FeedForward, Layer, LayerNorm, Linear, MultiHeadAttention, Sequences, Weights};
use adead_core::contract::Activation;
use adead_core::{Context, Result, Tensor};

/// What an encoder's layers are, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerConfig {
    /// Values of a row.
    pub width: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Values between the two products of the feed-forward part.
    pub hidden: usize,
    /// Between those products.
    pub activation: Activation,
    /// Added to variances.
    pub eps: f32,
}

/// A layer that is normalised behind each part, as BERT's are: `h = norm(x + attention(x))`, `norm(h + feed_forward(h))`.
#[derive(Clone)]
pub struct TransformerLayer {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,
}

impl TransformerLayer {
    /// The layer of its parts.
    pub fn new(
        attention: MultiHeadAttention,
        attention_norm: LayerNorm,
        feed_forward: FeedForward,
        output_norm: LayerNorm,
    ) -> TransformerLayer {
        TransformerLayer { attention, attention_norm, feed_forward, output_norm }
    }

    /// The layer under a prefix, by BERT's names: `PREFIX.attention.self.query.weight` and so on.
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

    /// Its result for a matrix whose rows are sequences'.
    pub fn forward(&self, x: &Tensor, sequences: &Sequences) -> Result<Tensor> {
        let h = self.attention_norm.forward(&self.attention.forward_with(x, sequences, Some(x))?)?;
        self.output_norm.forward(&self.feed_forward.forward_with(&h, Some(&h))?)
    }
}

impl TransformerLayer {
    /// The result of layers one after another for sequences `[count, length, width]`.
    pub(super) fn all(layers: &[TransformerLayer], x: &Tensor, lengths: Option<&[usize]>) -> Result<Tensor> {
        let Some(first) = layers.first() else { return Ok(x.clone()) };
        let (sequences, rows) = first.attention.batch(x, lengths)?;
        layers.iter().try_fold(rows, |x, layer| layer.forward(&x, &sequences))?.reshape(x.dims())
    }
}

/// Transformer layers one after another.
#[derive(Clone)]
pub struct TransformerEncoder(Vec<TransformerLayer>);

impl TransformerEncoder {
    /// Layers one after another.
    pub fn new(layers: Vec<TransformerLayer>) -> TransformerEncoder {
        TransformerEncoder(layers)
    }

    /// So many layers under a prefix: `PREFIX.0`, `PREFIX.1` and so on.
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

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.0.len()
    }

    /// Its result for sequences `[count, length, width]`, or the one of `[length, width]`, padded as of
    /// [`MultiHeadAttention::forward_padded`].
    pub fn forward_padded(&self, x: &Tensor, lengths: Option<&[usize]>) -> Result<Tensor> {
        TransformerLayer::all(&self.0, x, lengths)
    }

    /// Its result for a matrix `[rows, width]` whose rows are sequences'. A sequence's rows have the same bits alone, among
    /// others, and padded.
    pub fn forward(&self, x: &Tensor, sequences: &Sequences) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward(&x, sequences))
    }
}
