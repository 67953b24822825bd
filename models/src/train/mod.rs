//! Training jobs, described by TOML files: the network, the data, the optimiser. `docs/training.md` is the guide.
//!
//! A job's weights depend only on the file and the data: they have the same bits on every device and with any number of threads.

mod adapting;
mod data;
mod job;
mod model;
mod pairs;
mod run;
mod task;
mod trainer;

pub use data::Data;
pub use job::{
    Checkpoint, GradientSum, Job, LayerSpec, LossScaleSpec, LossSpec, ModelSpec, OptimizerSpec, Source, StorageSpec,
};
pub use model::Sample;
pub use run::{Epoch, Event, Outcome, RunOptions};

pub use adead::train::ranks::Transport;
pub use trainer::{Description, Trainer};

use adead::train::ranks::{Nccl, Place, Tcp};
use adead::{Error, Result, Status, Tensor};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

/// Loss and accuracy on samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The mean loss.
    pub loss: f64,
    /// The fraction of the samples, or of a text's bytes, whose most likely class is the right one.
    pub accuracy: f64,
}

/// Connects with the other ranks of a training. `place` is `RANK/RANKS@HOST:PORT`, or `env`, which reads the variables of torchrun,
/// Open MPI, MPICH or Slurm. A rank may take `patience` to connect, and to compute its part of a step. If every rank has its own
/// NVIDIA GPU and finds NCCL, gradients go through NCCL, otherwise over TCP.
pub fn connect(place: &str, patience: Duration) -> Result<Box<dyn Transport>> {
    let place = if place == "env" { Place::from_environment()? } else { place.parse()? };
    Ok(Box::new(Nccl::over(Tcp::connect(&place, patience)?)))
}

/// Returns how long a rank may take. `invalid_argument` unless it is a number of seconds above 0.
pub fn patience(seconds: f64) -> Result<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(patience) if !patience.is_zero() => Ok(patience),
        _ => {
            let text = format!("patience is {seconds}; it is a number of seconds above 0");
            Err(Error::new(Status::InvalidArgument, text))
        }
    }
}

/// Returns the SHA-256 of parameters in the order of their names: f32, little endian.
pub fn hash(parameters: &[(String, Tensor)]) -> Result<String> {
    let mut sorted: Vec<_> = parameters.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hash = Sha256::new();
    for (_, tensor) in sorted {
        for value in tensor.as_slice::<f32>()? {
            hash.update(value.to_le_bytes());
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// An error about a file.
fn fault(status: Status, path: &Path, text: impl std::fmt::Display) -> Error {
    Error::new(status, format!("{}: {text}", path.display()))
}
