//! Layers of neural networks, and their weights from safetensors files. docs/sentences.md is the guide. The library
//! implements the layers, so every language has them.
//!
//! A layer computes on the context that it was made for. It keeps the tensors that it needs. Threads may share a layer. A layer
//! owns the layers that it was made from, and its deinit destroys them.

const layers = @import("nn/layers.zig");
const sequential = @import("nn/sequential.zig");

pub const Weights = @import("nn/weights.zig").Weights;
pub const Linear = layers.Linear;
pub const Embedding = layers.Embedding;
pub const LayerNorm = layers.LayerNorm;
pub const ReLU = layers.ReLU;
pub const GELU = layers.GELU;
pub const FeedForward = layers.FeedForward;
pub const Sequential = sequential.Sequential;
pub const MultiHeadAttention = layers.MultiHeadAttention;
pub const TransformerConfig = layers.TransformerConfig;
pub const TransformerLayer = layers.TransformerLayer;
pub const TransformerEncoder = layers.TransformerEncoder;
