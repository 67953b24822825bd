//! Several processes that train one network.
//!
//! A batch is cut into shards ([`Trainer::in_shards`](super::Trainer::in_shards)). Each process, a rank, computes the gradients
//! of neighbouring shards. After [`Trainer::join`](super::Trainer::join), the ranks add their sums in a binary tree over the
//! shards' numbers. A [`Transport`] only moves bytes, so the weights have the same bits with any number of ranks, on any
//! devices.
//!
//! ```
//! use adead::train::ranks::{Place, Tcp};
//! use std::time::Duration;
//!
//! # fn main() -> adead::Result<()> {
//! // Rank 0 of 1. Four ranks use 0/4 to 3/4, all with the address of rank 0.
//! let place: Place = "0/1@127.0.0.1:29500".parse()?;
//! let ranks = Tcp::connect(&place, Duration::from_secs(60))?;
//! # Ok(())
//! # }
//! ```

mod nccl;
mod place;
mod tcp;

pub use nccl::Nccl;
pub use place::Place;
pub use tcp::Tcp;

use adead_core::{Context, DType, Error, Result, Status, Tensor, Writing};
use std::sync::mpsc;

/// Moves bytes between the ranks of a training.
pub trait Transport: Send {
    /// Returns the number of this rank, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Sends each rank its part, the concatenated pieces of `parts[rank]`, and returns the bytes that each rank sent to this
    /// one. All ranks must call it equally often. A rank sends nothing to itself: its own entry in the result is empty. `io` if
    /// a rank is lost. The transport can't be used after an error.
    fn exchange(&mut self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>>;

    /// Returns a name for messages, such as `TCP`.
    fn name(&self) -> String;

    /// Prepares to exchange tensors that are on a device of a context. All ranks call it.
    fn attach(&mut self, _context: &Context, _device: &str) -> Result<()> {
        Ok(())
    }

    /// Begins to exchange vectors of a dtype as [`exchange`](Transport::exchange) does bytes, and need not wait for it. `expected` has the
    /// number of elements of each vector that the ranks send to this one. All ranks begin their exchanges in the same order. By default
    /// the vectors go through host memory, and the exchange is over when this returns.
    fn begin(&mut self, parts: Vec<Vec<Tensor>>, dtype: DType, expected: Vec<Vec<usize>>) -> Result<Exchange> {
        let found = through_host(self.rank(), |bytes| self.exchange(bytes), &parts, dtype, &expected);
        found.map(|found| Exchange(Under::Done(found)))
    }

    /// Returns what the ranks sent to this one, when it has come. Exchanges end in the order in which they began.
    fn end(&mut self, exchange: Exchange) -> Result<Vec<Vec<Tensor>>> {
        match exchange.0 {
            Under::Done(found) => Ok(found),
            _ => Err(Error::new(Status::InvalidArgument, "the exchange began with another transport".to_owned())),
        }
    }

    /// Ends the connections after an error of this rank. Later exchanges must fail, here and on the other ranks, because this rank has
    /// begun fewer of them than the others.
    fn leave(&mut self, error: &Error);
}

/// An exchange of tensors that has begun.
pub struct Exchange(Under);

/// Where an exchange is.
enum Under {
    Done(Vec<Vec<Tensor>>),
    /// In the thread that moves bytes over TCP.
    Thread(mpsc::Receiver<Result<Vec<Vec<Tensor>>>>),
    /// On a GPU: the tensors, and the rank that each comes from.
    Gpu(Writing, Vec<usize>),
}

/// Exchanges tensors as bytes in host memory.
fn through_host(
    own: usize,
    exchange: impl FnOnce(&[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>>,
    parts: &[Vec<Tensor>],
    dtype: DType,
    expected: &[Vec<usize>],
) -> Result<Vec<Vec<Tensor>>> {
    let bytes = parts.iter().map(|part| part.iter().map(Tensor::host_bytes).collect());
    let found = exchange(&bytes.collect::<Result<Vec<_>>>()?)?;
    let read = |(rank, (bytes, counts)): (usize, (&Vec<u8>, &Vec<usize>))| {
        let mut from = Reader { bytes, rank };
        let counts = if rank == own { &[] } else { &counts[..] };
        let tensors = counts.iter().map(|&count| from.tensor(dtype, &[count])).collect::<Result<Vec<_>>>()?;
        from.end().map(|()| tensors)
    };
    found.iter().zip(expected).enumerate().map(read).collect()
}

/// Sends every other rank the same bytes, and returns what the ranks sent: `own` for this one.
pub(super) fn tell<T: Transport + ?Sized>(ranks: &mut T, own: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut all = ranks.exchange(&vec![vec![own]; ranks.size()])?;
    all[ranks.rank()] = own.to_vec();
    Ok(all)
}

/// Reads what a rank sent.
pub(super) struct Reader<'a> {
    pub bytes: &'a [u8],
    pub rank: usize,
}

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(Error::new(Status::Io, format!("rank {} sent too little", self.rank)));
        };
        self.bytes = rest;
        Ok(taken)
    }

    pub fn tensor(&mut self, dtype: DType, dims: &[usize]) -> Result<Tensor> {
        Tensor::from_bytes(self.take(dtype.size() * dims.iter().product::<usize>())?, dtype, dims)
    }

    pub fn end(&self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err(Error::new(Status::Io, format!("rank {} sent {} bytes too many", self.rank, self.bytes.len())))
    }
}
