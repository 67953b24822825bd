//! Bytes from the host and to it, through pinned memory: while the device copies one piece, the host copies another.

use super::event::Mark;
use super::memory::{Allocation, Space};
use super::shared::Shared;
use super::stream::CudaStream;
use crate::error::{Result, fail};
use crate::hal::{Download, Event};
use std::slice;
use std::sync::Arc;

/// Bytes of pinned memory that one copy takes at a time, at most.
const PIECE: usize = 4 << 20;
/// Bytes that are not worth cutting.
const LEAST: usize = 512 << 10;
/// Pieces of a long copy that are under way: together they stay in the processor's last cache.
const PIECES: usize = 4;

/// The bytes of a piece of a copy of so many: enough pieces that the device copies one while the host copies another, and that
/// the first and the last one, beside which nothing is copied, are short.
fn piece(bytes: usize) -> usize {
    (bytes / 8).next_multiple_of(LEAST / 2).clamp(LEAST, PIECE)
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
            let staging = Allocation::new(&self.shared, piece.len(), Space::Host, "copies")?;
            let to = memory.address + (offset + i * size) as u64;
            // SAFETY: new pinned memory of at least as many bytes, and a part of the allocation; both are kept.
            let result = unsafe {
                self.shared.copy(piece, staging.host());
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
        let size = piece(into.len());
        if into.len() <= size {
            let staging = self.fetch_piece(memory, offset, into.len())?;
            self.finish()?;
            self.take_failure()?;
            // SAFETY: the device has written that many bytes of the pinned memory, and nobody else has it.
            unsafe { self.shared.copy(slice::from_raw_parts(staging.host(), into.len()), into.as_mut_ptr()) };
            return Ok(());
        }
        let mut under_way: [Option<Pending>; PIECES] = Default::default();
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
        let staging = self.fetch_piece(memory, offset, bytes)?;
        Ok(Pending { shared: self.shared.clone(), staging, mark: self.point()?, bytes })
    }

    /// Enqueues a copy of part of a buffer to pinned memory.
    fn fetch_piece(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: usize) -> Result<Arc<Allocation>> {
        let _entered = self.shared.enter()?;
        let staging = Allocation::new(&self.shared, bytes, Space::Host, "downloads")?;
        if bytes > 0 {
            let from = memory.address + offset as u64;
            // SAFETY: both parts are inside their allocations, which are kept.
            let result = unsafe { (self.shared.api().copy_to_host)(staging.host().cast(), from, bytes, self.stream) };
            self.issued(result, "copying to the host")?;
            self.keep_memory(memory);
            self.keep(staging.clone());
        }
        Ok(staging)
    }
}

/// Bytes on their way to the host.
pub struct Pending {
    shared: Arc<Shared>,
    staging: Arc<Allocation>,
    mark: Arc<Mark>,
    bytes: usize,
}

impl Pending {
    fn finish(self, into: &mut [u8]) -> Result<()> {
        self.mark.wait_for(u64::MAX)?;
        // SAFETY: the device has written that many bytes of the pinned memory, and nobody else has it.
        unsafe { self.shared.copy(slice::from_raw_parts(self.staging.host(), self.bytes), into.as_mut_ptr()) };
        Ok(())
    }
}

// SAFETY: its memory is its own, and is written before the point that it waits for.
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
        // SAFETY: the device has written that many bytes of the pinned memory, and nobody writes it again.
        Ok(unsafe { slice::from_raw_parts(self.staging.host(), self.bytes) })
    }

    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()> {
        if into.len() != self.bytes {
            fail!(InvalidArgument, "the download has {} bytes and the place for it {}", self.bytes, into.len());
        }
        self.finish(into)
    }
}
