//! Training jobs: what to train, with which data and how, in a TOML file. `docs/training.md` is the guide.
//!
//! A job has the same bits on every device and with any number of threads: its weights are a function of the file and the data.

mod data;
mod job;
mod model;
mod run;

pub use data::Data;
pub use job::{Checkpoint, Job, LayerSpec, ModelSpec, OptimizerSpec, Source};
pub use run::{Epoch, Event, Outcome, RunOptions};

use adead::{Error, Status};
use std::path::Path;

/// An error about a file.
fn fault(status: Status, path: &Path, text: impl std::fmt::Display) -> Error {
    Error::new(status, format!("{}: {text}", path.display()))
}
