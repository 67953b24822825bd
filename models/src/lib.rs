#![doc = include_str!("../README.md")]

pub mod convert;
pub mod gguf;
mod sentences;
mod spread;
pub mod text;
pub mod train;

pub use sentences::{EmbeddingPart, Embeddings, EncodeOptions, SentenceEncoder};
pub use text::TextGenerator;

/// The examples of the guides run as tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../docs/sentences.md")]
    mod sentences {}
    #[doc = include_str!("../../docs/text-generation.md")]
    mod text_generation {}
    #[doc = include_str!("../../docs/training.md")]
    mod training {}
}
