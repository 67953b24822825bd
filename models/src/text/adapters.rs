//! Low-rank adapters: what is added to a model's products, from a file of `adead train`.

use super::fault;
use adead::nn::Weights;
use adead::pipeline::{Pipeline, Value};
use adead::{Attrs, Context, Op, Result, Status, Tensor};
use std::path::Path;

/// The matrices of a layer that can have adapters, by their names in GGUF files.
pub(crate) const MATRICES: [&str; 7] = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

/// The tensor of a file that is the factor of all its adapters.
pub(crate) const SCALE: &str = "adapters.scale";

/// The names of an adapter's two matrices, `[rank, inputs]` and `[outputs, rank]`.
pub(crate) fn names(prefix: &str) -> [String; 2] {
    [format!("{prefix}.lora_a"), format!("{prefix}.lora_b")]
}

/// An open file of adapters.
#[derive(Clone)]
pub(crate) struct Adapters {
    weights: Weights,
    scale: f32,
}

impl Adapters {
    /// Opens a safetensors file. `io` if it can't be read, `invalid_argument` for one without adapters, or with one for what is no
    /// matrix of a model with so many layers.
    pub fn open(path: &Path, layers: usize) -> Result<Adapters> {
        let weights = Weights::open(path)?;
        let scale = weights.tensor(SCALE, &[1])?.to_vec::<f32>()?[0];
        for name in weights.names().iter().filter(|name| *name != SCALE) {
            let parts: Vec<&str> = name.split('.').collect();
            let known = match parts[..] {
                ["blk", layer, matrix, "lora_a" | "lora_b"] => {
                    MATRICES.contains(&matrix) && layer.parse().is_ok_and(|layer: usize| layer < layers)
                }
                _ => false,
            };
            if !known {
                let matrices = MATRICES.join(", ");
                let text = format!(
                    "'{name}' is no adapter of a model with {layers} layers: blk.N.MATRIX.lora_a and .lora_b are, of {matrices}"
                );
                return Err(fault(Status::InvalidArgument, path, text));
            }
        }
        Ok(Adapters { weights, scale })
    }

    /// Whether a matrix has an adapter.
    pub fn contains(&self, prefix: &str) -> bool {
        names(prefix).iter().any(|name| self.weights.contains(name))
    }

    /// Returns the adapter of a matrix `[outputs, inputs]`. `shape_mismatch` for one of another shape.
    pub fn of(&self, prefix: &str, [outputs, inputs]: [usize; 2]) -> Result<Option<Adapter>> {
        if !self.contains(prefix) {
            return Ok(None);
        }
        let [down, up] = names(prefix);
        let rank = self.weights.dims(&down)?.first().copied().unwrap_or_default();
        let (down, up) = (self.weights.tensor(&down, &[rank, inputs])?, self.weights.tensor(&up, &[outputs, rank])?);
        Ok(Some(Adapter { down, up, scale: self.scale }))
    }
}

/// Adds `scale·(x·Aᵀ)·Bᵀ` to a product.
pub(crate) struct Adapter {
    down: Tensor,
    up: Tensor,
    scale: f32,
}

/// The attributes of the two products. The second one adds the product of the model's own matrix.
fn attributes(scale: f32) -> [Attrs; 2] {
    let first = Attrs { trans_b: true, ..Attrs::DEFAULT };
    [first, Attrs { alpha: scale, beta: 1.0, ..first }]
}

impl Adapter {
    /// Computes what is added to `y`, the product of the rows `x`.
    pub fn apply(&self, context: &Context, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let [first, second] = attributes(self.scale);
        let between = context.run(Op::Matmul, &first, &[Some(x), Some(&self.down)])?;
        context.run(Op::Matmul, &second, &[Some(&between), Some(&self.up), Some(y)])
    }

    /// Records the same.
    pub fn record(&self, pipeline: &mut Pipeline, x: Value, y: Value) -> Result<Value> {
        let matrices = [pipeline.constant(&self.down)?, pipeline.constant(&self.up)?];
        record(pipeline, x, matrices, self.scale, y)
    }
}

/// Records `y + scale·(x·Aᵀ)·Bᵀ`.
pub(crate) fn record(pipeline: &mut Pipeline, x: Value, [down, up]: [Value; 2], scale: f32, y: Value) -> Result<Value> {
    let [first, second] = attributes(scale);
    let between = pipeline.op(Op::Matmul, &first, &[Some(x), Some(down)])?;
    pipeline.op(Op::Matmul, &second, &[Some(between), Some(up), Some(y)])
}
