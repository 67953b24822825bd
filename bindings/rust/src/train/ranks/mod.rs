//! Several processes that train one network.
//!
//! A batch is cut into shards ([`Trainer::in_shards`](super::Trainer::in_shards)). Each process, a rank, computes the gradients of
//! neighbouring shards, and [`Trainer::join`](super::Trainer::join) makes them add up their sums in the tree over the shards'
//! numbers. A [`Transport`] only moves bytes, so the weights have the same bits with any number of ranks, on any devices.
//!
//! ```
//! use adead::train::ranks::{Place, Tcp};
//! use std::time::Duration;
//!
//! # fn main() -> adead::Result<()> {
//! // Rank 0 of 1: a training with four ranks says 0/4 to 3/4, with the address of rank 0.
//! let place: Place = "0/1@127.0.0.1:29500".parse()?;
//! let ranks = Tcp::connect(&place, Duration::from_secs(60))?;
//! # Ok(())
//! # }
//! ```

mod place;
mod tcp;

pub use place::Place;
pub use tcp::Tcp;

use adead_core::Result;

/// Moves bytes between the ranks of a training.
pub trait Transport: Send {
    /// The number of this rank, from 0 on.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Sends each rank its part, the pieces of `parts[rank]` behind each other, and returns what each rank sent to this one. All
    /// ranks call it equally often. The own rank is sent nothing, and its place in the result is empty. `io` if a rank is lost: the
    /// transport can't be used after an error.
    fn exchange(&mut self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>>;
}
