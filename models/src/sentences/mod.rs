//! Sentence embeddings: models of sentence-transformers.

mod batches;
mod divide;
mod embeddings;
mod encoder;
mod files;
mod model;
mod recorded;
mod stream;
mod tokens;
mod tuned;

pub use embeddings::Embeddings;
pub use encoder::{EncodeOptions, SentenceEncoder};
pub use stream::EmbeddingPart;
pub(crate) use tuned::Tuned;

use adead::{Error, Precision, Status};
use std::path::Path;

/// The precision of attention's products, whatever the context's is. Sentences are short and heads narrow, and there `f32` is faster than
/// integers on processors and through Vulkan, and through CUDA in most shapes.
const ATTENTION: Precision = Precision::F32;

/// An error about a file of a model.
fn fault(status: Status, path: &Path, text: impl std::fmt::Display) -> Error {
    Error::new(status, format!("{}: {text}", path.display()))
}
