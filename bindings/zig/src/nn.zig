//! Layers of neural networks, and their weights from safetensors files: docs/sentences.md. Names of tensors, configuration and
//! order of operations are those of the crate's feature nn, and so are the bits.
//!
//! A layer computes on the context that it was made for, which must stay as long as the layer does. It keeps what it needs of
//! the tensors that it was given; threads may share one. What it is made of, other layers, becomes its own, and goes with its
//! deinit.

const layers = @import("nn/layers.zig");
const sequential = @import("nn/sequential.zig");
const transformer = @import("nn/transformer.zig");

pub const Weights = @import("nn/weights.zig").Weights;
pub const Linear = layers.Linear;
pub const Embedding = layers.Embedding;
pub const LayerNorm = layers.LayerNorm;
pub const ReLU = layers.ReLU;
pub const GELU = layers.GELU;
pub const FeedForward = layers.FeedForward;
pub const Sequential = sequential.Sequential;
pub const MultiHeadAttention = transformer.MultiHeadAttention;
pub const TransformerConfig = transformer.TransformerConfig;
pub const TransformerLayer = transformer.TransformerLayer;
pub const TransformerEncoder = transformer.TransformerEncoder;
