#![doc = include_str!("../README.md")]

pub mod gguf;
mod sentences;
pub mod text;

pub use sentences::{EmbeddingPart, Embeddings, EncodeOptions, SentenceEncoder};
pub use text::TextGenerator;

/// The example of the guide runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/sentences.md")]
mod guide {}
