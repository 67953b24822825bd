//! The operations' kernels in SPIR-V, as `ci/kernels` compiles them from `core/kernels/vulkan`.

use crate::error::{Result, fail};
use miniz_oxide::inflate::decompress_to_vec;

/// A module: a family of kernels. Its first specialization constant chooses among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Shader {
    /// Attention.
    Attention,
    /// Elementwise operations, and the last step of softmax and the norms.
    Elementwise,
    /// Reductions, and softmax and norms of rows.
    Lines,
    /// Matrix products.
    Matmul,
    /// transpose, concat, embedding, cast.
    Moves,
    /// Known answers.
    Probe,
}

impl Shader {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// The module's words.
    pub fn code(self) -> Result<Vec<u32>> {
        let packed: &[u8] = match self {
            Shader::Attention => include_bytes!(concat!(env!("OUT_DIR"), "/attention.deflate")),
            Shader::Elementwise => include_bytes!(concat!(env!("OUT_DIR"), "/elementwise.deflate")),
            Shader::Lines => include_bytes!(concat!(env!("OUT_DIR"), "/lines.deflate")),
            Shader::Matmul => include_bytes!(concat!(env!("OUT_DIR"), "/matmul.deflate")),
            Shader::Moves => include_bytes!(concat!(env!("OUT_DIR"), "/moves.deflate")),
            Shader::Probe => include_bytes!(concat!(env!("OUT_DIR"), "/probe.deflate")),
        };
        match decompress_to_vec(packed) {
            // core/build.rs put the words' lowest bytes first, then all second ones, and so on.
            Ok(bytes) => {
                let n = bytes.len() / 4;
                Ok((0..n).map(|i| u32::from_le_bytes([0, 1, 2, 3].map(|plane| bytes[plane * n + i]))).collect())
            }
            Err(_) => fail!(Internal, "the kernels in this library are damaged"),
        }
    }
}
