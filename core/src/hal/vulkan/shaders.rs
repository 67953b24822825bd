//! The operations' kernels in SPIR-V, as `ci/kernels` compiles them from `core/kernels/vulkan`.

use crate::error::{Result, fail};
use miniz_oxide::inflate::decompress_to_vec;

/// A module. One holds kernels that share functions; its first specialization constant chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Shader {
    /// Elementwise operations, reductions, softmax and norms, casts; the probe.
    Arithmetic,
    /// transpose, concat, embedding.
    Moves,
}

impl Shader {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// The module's words.
    pub fn code(self) -> Result<Vec<u32>> {
        let packed: &[u8] = match self {
            Shader::Arithmetic => include_bytes!(concat!(env!("OUT_DIR"), "/arithmetic.deflate")),
            Shader::Moves => include_bytes!(concat!(env!("OUT_DIR"), "/moves.deflate")),
        };
        match decompress_to_vec(packed) {
            Ok(bytes) => {
                Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
            }
            Err(_) => fail!(Internal, "the kernels in this library are damaged"),
        }
    }
}
