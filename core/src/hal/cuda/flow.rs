//! A stream's batches: when they end, and how the stream waits for them.
//!
//! An event is recorded only when a caller may need a point of the stream, or when much is in flight. A wait for the
//! whole stream polls the driver for the stream.

use super::batch::Batch;
use super::event::{Mark, POLL_TIME};
use super::stream::CudaStream;
use crate::error::{Result, fail};
use std::sync::Arc;
use std::time::Instant;

/// A batch ends after this many commands.
const FULL: u32 = 64;
/// A batch also ends when it keeps more than this part of the device's memory, so that dropped memory is soon reused.
const FULL_PART: u64 = 16;
/// The most batches in flight. One more waits for the oldest.
const IN_FLIGHT: usize = 32;

impl CudaStream {
    /// Returns the batch of the next command.
    pub(super) fn batch(&mut self) -> &mut Batch {
        self.recording.as_mut().unwrap_or(&mut self.open)
    }

    /// Ends the batch if it is full. Called after each command.
    #[inline]
    pub fn close_if_full(&mut self) -> Result<()> {
        let full = self.open.count >= FULL || self.open.bytes as u64 > self.shared.physical.info.memory / FULL_PART;
        if full && self.recording.is_none() { self.close() } else { Ok(()) }
    }

    /// Enqueues copies to the host of what the open batch's kernels found.
    fn fetch_faults(&mut self) -> Result<()> {
        while let Some(fault) = self.open.faults.first().cloned() {
            self.open.fetch(&self.shared, self.stream, fault)?;
            self.open.faults.remove(0);
        }
        Ok(())
    }

    /// Ends the batch with an event behind all enqueued work.
    fn close(&mut self) -> Result<()> {
        if self.open.count == 0 {
            return Ok(());
        }
        let entered = self.shared.enter()?;
        self.fetch_faults()?;
        let mark = Mark::record(&self.shared, self.stream, &entered)?;
        self.last = Some(mark.clone());
        let next = self.idle.pop().unwrap_or_default();
        self.in_flight.push_back((mark, std::mem::replace(&mut self.open, next)));
        self.reap()?;
        while self.in_flight.len() > IN_FLIGHT {
            self.in_flight[0].0.wait_for(u64::MAX)?;
            self.reap()?;
        }
        Ok(())
    }

    /// Releases the batches that are done.
    pub(super) fn reap(&mut self) -> Result<()> {
        while let Some((mark, _)) = self.in_flight.front()
            && mark.is_reached()?
        {
            self.retire_oldest();
        }
        if self.in_flight.is_empty() && self.open.count == 0 {
            self.scratch.clear();
        }
        Ok(())
    }

    /// Takes back the oldest batch in flight; its work must be done.
    fn retire_oldest(&mut self) {
        if let Some((_, mut batch)) = self.in_flight.pop_front() {
            self.record_failure(batch.finish());
            self.idle.push(batch);
        }
    }

    /// Keeps the first error that kernels found.
    fn record_failure(&mut self, found: Result<()>) {
        if self.failure.is_ok() {
            self.failure = found;
        }
    }

    /// Returns the first error that the device found in finished work.
    pub(super) fn take_failure(&mut self) -> Result<()> {
        std::mem::replace(&mut self.failure, Ok(()))
    }

    /// Returns the point that the stream reaches when all enqueued work is done.
    pub(super) fn point(&mut self) -> Result<Arc<Mark>> {
        self.refuse_wait_while_recording()?;
        self.shared.usable()?;
        self.close()?;
        Ok(self.last.get_or_insert_with(|| Mark::reached(&self.shared)).clone())
    }

    /// Returns whether nothing was enqueued since all work was last seen to be done. An error if the stream can't be
    /// asked.
    fn is_empty(&self) -> Result<bool> {
        self.refuse_wait_while_recording()?;
        self.shared.usable()?;
        Ok(self.open.is_empty() && self.in_flight.is_empty())
    }

    fn refuse_wait_while_recording(&self) -> Result<()> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "a stream can't be waited for while it records: finish the recording first");
        }
        Ok(())
    }

    /// Returns whether all enqueued work is done. Releases what is done.
    pub(super) fn poll_idle(&mut self) -> Result<bool> {
        if self.is_empty()? {
            return Ok(true);
        }
        let _entered = self.shared.enter()?;
        self.poll()
    }

    /// Asks the driver whether a stream with work is done. The context must be current.
    fn poll(&mut self) -> Result<bool> {
        // SAFETY: a stream of this device that is not capturing.
        let done = self.shared.is_done(unsafe { (self.shared.api().stream_query)(self.stream) })?;
        if done {
            while let Some((mark, _)) = self.in_flight.front() {
                mark.set_reached();
                self.retire_oldest();
            }
            // Faults must be copied to the host before the batch is finished.
            if self.open.faults.is_empty() {
                let found = self.open.finish();
                self.record_failure(found);
            }
            self.scratch.clear();
        }
        Ok(done)
    }

    /// Waits until all enqueued work is done. A short wait needs no event.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.is_empty()? {
            return Ok(());
        }
        let _entered = self.shared.enter()?;
        self.fetch_faults()?;
        let begin = Instant::now();
        loop {
            for _ in 0..16 {
                if self.poll()? {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= POLL_TIME {
                break;
            }
        }
        self.point()?.sleep()?;
        self.reap()
    }
}
