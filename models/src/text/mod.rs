//! Text generation with models in GGUF files, with the same bits on every device.
//!
//! [`TextGenerator`] opens a file and generates text. `docs/text-generation.md` is the guide.

mod adapted;
mod adapters;
pub(crate) mod architecture;
mod batch;
pub(crate) mod blocks;
mod cache;
mod config;
mod conversation;
mod decoder;
mod generator;
mod grammar;
mod layer;
mod on_device;
mod options;
pub(crate) mod pieces;
mod recordings;
mod rope;
mod run;
mod sampling;
mod scores;
mod slots;
mod stops;
mod stream;
mod template;
pub(crate) mod tokenizer;
pub(crate) mod vocabulary;
mod weights;
mod window;

pub(crate) use adapted::{Adapted, Wanted as AdaptersWanted};
pub(crate) use adapters::SCALE as ADAPTERS_SCALE;
pub use conversation::Conversation;
pub use generator::TextGenerator;
pub use options::{Finish, GenerateOptions, Generation, OpenOptions, Progress};
pub use sampling::Sampling;
pub use stream::TextStream;
pub use template::Message;

use adead::{Error, Status};
use std::path::Path;

/// An error about a model's file.
pub(crate) fn fault(status: Status, path: &Path, text: impl std::fmt::Display) -> Error {
    Error::new(status, format!("{}: {text}", path.display()))
}
