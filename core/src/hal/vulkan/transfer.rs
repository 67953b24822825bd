//! Copies from and to the host, through staging memory: while the device copies one piece, the host copies another.

use super::logical::Lane;
use super::memory::{Allocation, Space};
use super::stream::{VulkanStream, of_device};
use super::timeline::Point;
use crate::error::{Result, fail};
use crate::hal::{Buffer, Download, Event, Slice, Stream};
use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

/// The most bytes that one piece of a copy stages.
const PIECE: usize = 8 << 20;
/// The most pieces of a long copy in flight.
const PIECES: usize = 3;
/// Copies from and to the host of at least this many bytes use the transfer queue.
const LARGE: usize = 1 << 20;

/// Returns the lane for a copy from or to the host.
pub(super) fn lane_of(bytes: usize) -> Lane {
    if bytes >= LARGE { Lane::Transfer } else { Lane::Compute }
}

impl VulkanStream {
    /// Enqueues a copy of host bytes to memory. When it returns, the caller may reuse the bytes.
    pub(super) fn upload(&mut self, memory: &Arc<Allocation>, offset: usize, bytes: &[u8]) -> Result<()> {
        let lane = lane_of(bytes.len());
        let mut in_flight = VecDeque::new();
        for (i, piece) in bytes.chunks(PIECE).enumerate() {
            if in_flight.len() == PIECES
                && let Some(oldest) = in_flight.pop_front()
            {
                self.timeline.wait(oldest, u64::MAX)?;
                self.reap()?;
            }
            let staging = Allocation::new(&self.shared, piece.len(), Space::Host, "copies")?;
            // SAFETY: new mapped memory of at least `piece.len()` bytes.
            unsafe { self.shared.copy(piece, staging.mapped) };
            self.enqueue(lane, |recorder| {
                recorder.copy(&staging, 0, memory, offset + i * PIECE, piece.len());
                Ok(())
            })?;
            if bytes.len() > PIECE {
                self.submit_open()?;
                in_flight.push_back(self.last);
            }
        }
        Ok(())
    }

    /// Copies from a buffer to the host after all enqueued work, and waits for the copy.
    pub(super) fn read_back(&mut self, from: &dyn Buffer, offset: usize, into: &mut [u8]) -> Result<()> {
        let lane = lane_of(into.len());
        let mut in_flight: VecDeque<Pending> = VecDeque::new();
        let mut arrived = 0;
        let mut finish = |pending: Pending, into: &mut [u8]| {
            let part = arrived..arrived + pending.bytes;
            arrived = part.end;
            pending.finish(&mut into[part])
        };
        for start in (0..into.len()).step_by(PIECE) {
            let bytes = PIECE.min(into.len() - start);
            in_flight.push_back(self.fetch(Slice { buffer: from, offset: offset + start, bytes }, lane)?);
            if start == 0 {
                // The bytes may result from invalid data. Then the error is the answer, and nothing is copied.
                self.synchronize()?;
            }
            if in_flight.len() == PIECES
                && let Some(oldest) = in_flight.pop_front()
            {
                finish(oldest, into)?;
            }
        }
        in_flight.into_iter().try_for_each(|pending| finish(pending, into))
    }

    /// Enqueues a copy of part of a buffer to staging memory, and returns the pending download.
    pub(super) fn fetch(&mut self, from: Slice<'_>, lane: Lane) -> Result<Pending> {
        let memory = of_device(from.buffer, &self.shared)?.clone();
        let staging = Allocation::new(&self.shared, from.bytes, Space::Host, "downloads")?;
        self.enqueue(lane, |recorder| {
            recorder.copy(&memory, from.offset, &staging, 0, from.bytes);
            Ok(())
        })?;
        Ok(Pending { staging, point: self.point()?, bytes: from.bytes })
    }
}

/// A download that may be in flight.
pub struct Pending {
    staging: Arc<Allocation>,
    point: Point,
    bytes: usize,
}

impl Pending {
    fn finish(self, into: &mut [u8]) -> Result<()> {
        self.point.wait(u64::MAX)?;
        // SAFETY: the device has finished writing these bytes of mapped memory, and nothing else uses them.
        unsafe { self.staging.shared.copy(slice::from_raw_parts(self.staging.mapped, self.bytes), into.as_mut_ptr()) };
        Ok(())
    }
}

// SAFETY: it owns its memory, which the device finishes writing before the point that `bytes` and `take` wait for.
unsafe impl Download for Pending {
    fn size(&self) -> usize {
        self.bytes
    }

    fn is_done(&self) -> Result<bool> {
        self.point.is_done()
    }

    fn event(&self) -> Option<&dyn Event> {
        Some(&self.point)
    }

    fn bytes(&self) -> Result<&[u8]> {
        self.point.wait(u64::MAX)?;
        // SAFETY: the device has finished writing these bytes of mapped memory, and nothing writes them again.
        Ok(unsafe { slice::from_raw_parts(self.staging.mapped, self.bytes) })
    }

    fn take(self: Box<Self>, into: &mut [u8]) -> Result<()> {
        if into.len() != self.bytes {
            fail!(InvalidArgument, "the download has {} bytes, but its destination has {}", self.bytes, into.len());
        }
        self.finish(into)
    }
}
