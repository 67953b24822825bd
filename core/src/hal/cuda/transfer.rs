//! Bytes from the host and to it, through pinned memory: while the device copies one piece, the host copies another.

use super::event::Mark;
use super::memory::{Allocation, Space};
use super::stream::CudaStream;
use crate::error::{Result, fail};
use crate::hal::{Download, Event};
use std::sync::Arc;

/// Bytes of pinned memory that one copy takes at a time, at most.
const PIECE: usize = 8 << 20;
/// Pieces of a long copy that are under way.
const PIECES: usize = 3;

/// The bytes of a piece of a copy of so many: enough pieces that the device copies one while the host copies another.
fn piece(bytes: usize) -> usize {
    (bytes / 4).next_multiple_of(1 << 20).clamp(1 << 20, PIECE)
}

impl CudaStream {
    /// Enqueues the copying of host bytes to memory; they are the caller's again when it returns.
    pub(super) fn send(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: &[u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        let mut under_way: [Option<Arc<Mark>>; PIECES] = Default::default();
        let size = piece(bytes.len());
        for (i, piece) in bytes.chunks(size).enumerate() {
            let oldest = &mut under_way[i % PIECES];
            if let Some(mark) = oldest.take() {
                mark.wait_for(u64::MAX)?;
                self.reap()?;
            }
            let staging = Allocation::new(&self.shared, piece.len(), Space::Host)?;
            let to = memory.address + (offset + i * size) as u64;
            // SAFETY: new pinned memory of at least as many bytes, and a part of the allocation; both are kept.
            let result = unsafe {
                staging.host().copy_from_nonoverlapping(piece.as_ptr(), piece.len());
                (self.shared.api().copy_to_device)(to, staging.host().cast(), piece.len(), self.stream)
            };
            self.issued(result, "copying from the host")?;
            self.keep_memory(memory);
            self.keep(staging);
            self.close_if_full()?;
            if bytes.len() > size {
                *oldest = Some(self.point()?);
            }
        }
        Ok(())
    }

    /// Copies from memory to the host, behind everything enqueued, and waits for it.
    pub(super) fn bring(&mut self, memory: &Arc<Allocation>, offset: usize, into: &mut [u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        let mut under_way: [Option<Pending>; PIECES] = Default::default();
        let size = piece(into.len());
        let count = into.len().div_ceil(size);
        for i in 0..count + PIECES {
            let oldest = &mut under_way[i % PIECES];
            if let Some(pending) = oldest.take() {
                pending.mark.wait_for(u64::MAX)?;
                self.reap()?;
                // What is read may be the result of wrong data: then that is the answer, and nothing is copied.
                self.take_failure()?;
                let start = (i - PIECES) * size;
                let bytes = pending.bytes;
                pending.finish(&mut into[start..start + bytes])?;
            }
            if i < count {
                let start = i * size;
                *oldest = Some(self.fetch(memory, offset + start, size.min(into.len() - start))?);
            }
        }
        Ok(())
    }

    /// Begins to bring part of a buffer to the host.
    pub(super) fn fetch(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: usize) -> Result<Pending> {
        let _entered = self.shared.enter()?;
        let staging = Allocation::new(&self.shared, bytes, Space::Host)?;
        if bytes > 0 {
            let from = memory.address + offset as u64;
            // SAFETY: both parts are inside their allocations, which are kept.
            let result = unsafe { (self.shared.api().copy_to_host)(staging.host().cast(), from, bytes, self.stream) };
            self.issued(result, "copying to the host")?;
            self.keep_memory(memory);
            self.keep(staging.clone());
        }
        Ok(Pending { staging, mark: self.point()?, bytes })
    }
}

/// Bytes on their way to the host.
pub struct Pending {
    staging: Arc<Allocation>,
    mark: Arc<Mark>,
    bytes: usize,
}

impl Pending {
    fn finish(self, into: &mut [u8]) -> Result<()> {
        self.mark.wait_for(u64::MAX)?;
        // SAFETY: the device has written that many bytes of the pinned memory, and nobody else has it.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(self.staging.host(), self.bytes) };
        Ok(())
    }
}

impl Download for Pending {
    fn size(&self) -> usize {
        self.bytes
    }

    fn is_done(&self) -> Result<bool> {
        self.mark.is_done()
    }

    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()> {
        if into.len() != self.bytes {
            fail!(InvalidArgument, "the download has {} bytes and the place for it {}", self.bytes, into.len());
        }
        self.finish(into)
    }
}
