//! Copies from and to the host through pinned memory: the host copies one piece while the device copies another.

use super::event::Mark;
use super::memory::{Allocation, Space};
use super::shared::Shared;
use super::stream::CudaStream;
use crate::error::{Result, fail};
use crate::hal::{Download, Event};
use std::slice;
use std::sync::Arc;

/// The most bytes of a piece.
const PIECE: usize = 4 << 20;
/// Shorter copies are not cut into pieces.
const LEAST: usize = 512 << 10;
/// The pieces of a long copy in flight. Together they stay in the processor's last-level cache.
const PIECES: usize = 4;

/// Returns the bytes of a piece of a copy. Many pieces let host and device copy at the same time. The first and last
/// piece are short, because nothing is copied beside them.
fn piece(bytes: usize) -> usize {
    (bytes / 8).next_multiple_of(LEAST / 2).clamp(LEAST, PIECE)
}

impl CudaStream {
    /// Enqueues a copy of host bytes to memory. When it returns, the caller may reuse the bytes.
    pub(super) fn upload(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: &[u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        let mut in_flight: [Option<Arc<Mark>>; PIECES] = Default::default();
        let size = piece(bytes.len());
        for (i, piece) in bytes.chunks(size).enumerate() {
            let oldest = &mut in_flight[i % PIECES];
            if let Some(mark) = oldest.take() {
                mark.wait_for(u64::MAX)?;
                self.reap()?;
            }
            let staging = Allocation::new(&self.shared, piece.len(), Space::Host, "copies")?;
            let to = memory.address + (offset + i * size) as u64;
            // SAFETY: new pinned memory of at least `piece.len()` bytes, and a range of the allocation. Both are kept.
            let result = unsafe {
                self.shared.copy(piece, staging.host());
                (self.shared.api().copy_to_device)(to, staging.host().cast(), piece.len(), self.stream)
            };
            self.check_enqueued(result, "copying from the host")?;
            self.keep_memory(memory);
            self.keep(staging);
            self.close_if_full()?;
            if bytes.len() > size {
                *oldest = Some(self.point()?);
            }
        }
        Ok(())
    }

    /// Copies from memory to the host after all enqueued work, and waits for the copy.
    pub(super) fn read_back(&mut self, memory: &Arc<Allocation>, offset: usize, into: &mut [u8]) -> Result<()> {
        let _entered = self.shared.enter()?;
        let size = piece(into.len());
        if into.len() <= size {
            let staging = self.fetch_piece(memory, offset, into.len())?;
            self.finish()?;
            self.take_failure()?;
            // SAFETY: the device has finished writing these bytes of pinned memory, and nothing else uses them.
            unsafe { self.shared.copy(slice::from_raw_parts(staging.host(), into.len()), into.as_mut_ptr()) };
            return Ok(());
        }
        let mut in_flight: [Option<Pending>; PIECES] = Default::default();
        let count = into.len().div_ceil(size);
        for i in 0..count + PIECES {
            let oldest = &mut in_flight[i % PIECES];
            if let Some(pending) = oldest.take() {
                pending.mark.wait_for(u64::MAX)?;
                self.reap()?;
                // The bytes may result from invalid data. Then the error is the answer, and nothing is copied.
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

    /// Enqueues a copy of part of a buffer to pinned memory, and returns the pending download.
    pub(super) fn fetch(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: usize) -> Result<Pending> {
        let staging = self.fetch_piece(memory, offset, bytes)?;
        Ok(Pending { shared: self.shared.clone(), staging, mark: self.point()?, bytes })
    }

    /// Enqueues a copy of part of a buffer to pinned memory.
    fn fetch_piece(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: usize) -> Result<Arc<Allocation>> {
        let _entered = self.shared.enter()?;
        let staging = Allocation::new(&self.shared, bytes, Space::Host, "downloads")?;
        if bytes > 0 {
            let from = memory.address + offset as u64;
            // SAFETY: both ranges lie inside their allocations, which are kept.
            let result = unsafe { (self.shared.api().copy_to_host)(staging.host().cast(), from, bytes, self.stream) };
            self.check_enqueued(result, "copying to the host")?;
            self.keep_memory(memory);
            self.keep(staging.clone());
        }
        Ok(staging)
    }
}

/// A download that may be in flight.
pub struct Pending {
    shared: Arc<Shared>,
    staging: Arc<Allocation>,
    mark: Arc<Mark>,
    bytes: usize,
}

impl Pending {
    fn finish(self, into: &mut [u8]) -> Result<()> {
        self.mark.wait_for(u64::MAX)?;
        // SAFETY: the device has finished writing these bytes of pinned memory, and nothing else uses them.
        unsafe { self.shared.copy(slice::from_raw_parts(self.staging.host(), self.bytes), into.as_mut_ptr()) };
        Ok(())
    }
}

// SAFETY: it owns its memory, which the device finishes writing before the point that `bytes` and `take` wait for.
unsafe impl Download for Pending {
    fn size(&self) -> usize {
        self.bytes
    }

    fn is_done(&self) -> Result<bool> {
        self.mark.is_done()
    }

    fn event(&self) -> Option<&dyn Event> {
        Some(&*self.mark)
    }

    fn bytes(&self) -> Result<&[u8]> {
        self.mark.wait_for(u64::MAX)?;
        // SAFETY: the device has finished writing these bytes of pinned memory, and nothing writes them again.
        Ok(unsafe { slice::from_raw_parts(self.staging.host(), self.bytes) })
    }

    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()> {
        if into.len() != self.bytes {
            fail!(InvalidArgument, "the download has {} bytes, but its destination has {}", self.bytes, into.len());
        }
        self.finish(into)
    }
}
