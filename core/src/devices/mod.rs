//! Devices: which there are and which of them a name means (`names.rs`), what a context keeps of one that it opened (`opened.rs`), how
//! one runs a command (`running.rs`), which values stay on it (`residency.rs`), and which memory is used again (`reuse.rs`).

pub(crate) mod guard;
mod names;
mod opened;
mod residency;
mod reuse;
mod running;

pub(crate) use names::{Choice, Described, Named, choose, means, no_gpu, same_through};
pub use names::{gpus, unknown_visible};
pub(crate) use opened::{Opened, Slot};
pub(crate) use residency::{are_on_host, bring_to_host, place_of};
pub(crate) use reuse::Reuse;
