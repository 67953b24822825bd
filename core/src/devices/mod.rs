//! Devices: their names (`names.rs`), what a context keeps of an opened device (`opened.rs`), how a device runs a
//! command (`running.rs`), which values stay in its memory (`residency.rs`), which memory it reuses (`reuse.rs`), and guards around
//! users' buffers (`guard.rs`).

pub(crate) mod guard;
mod names;
mod opened;
#[cfg(feature = "integers")]
mod packing;
mod residency;
mod reuse;
mod running;

pub(crate) use names::{Choice, Described, Named, choose, names_device, no_gpu, same_through};
pub use names::{gpus, unknown_visible};
pub(crate) use opened::{Opened, Slot};
pub(crate) use residency::{are_on_host, device_of, download_inputs};
