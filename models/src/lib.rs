#![doc = include_str!("../README.md")]

pub mod gguf;
mod sentences;

pub use sentences::{EmbeddingPart, Embeddings, EncodeOptions, SentenceEncoder};

/// The example of the guide runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/sentences.md")]
mod guide {}
