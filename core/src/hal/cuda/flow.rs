//! A stream's batches: when they end, and waiting for them.
//!
//! An event is recorded only where somebody may ask for a point of the stream, or where much is under way. Who waits for all of
//! it asks the driver for the stream.

use super::batch::Batch;
use super::event::{LOOK_OUT, Mark};
use super::stream::CudaStream;
use crate::error::{Result, fail};
use std::sync::Arc;
use std::time::Instant;

/// Commands after which a batch ends.
const FULL: u32 = 64;
/// The part of the device's memory after whose use it does too, that what is dropped may be used again soon.
const FULL_PART: u64 = 16;
/// Batches under way; the next one waits for the oldest.
const IN_FLIGHT: usize = 32;

impl CudaStream {
    /// What the next command is part of.
    pub(super) fn batch(&mut self) -> &mut Batch {
        self.recording.as_mut().unwrap_or(&mut self.open)
    }

    /// Ends the batch if it is enough: behind each command.
    #[inline]
    pub fn close_if_full(&mut self) -> Result<()> {
        let full = self.open.count >= FULL || self.open.bytes as u64 > self.shared.physical.info.memory / FULL_PART;
        if full && self.recording.is_none() { self.close() } else { Ok(()) }
    }

    /// Enqueues the bringing of what the open batch's kernels found to the host.
    fn fetch_faults(&mut self) -> Result<()> {
        while let Some(fault) = self.open.faults.first().cloned() {
            self.open.fetch(&self.shared, self.stream, fault)?;
            self.open.faults.remove(0);
        }
        Ok(())
    }

    /// Puts an event behind what is enqueued.
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

    /// Lets go of what is done.
    pub(super) fn reap(&mut self) -> Result<()> {
        while let Some((mark, _)) = self.in_flight.front()
            && mark.is_reached()?
        {
            self.let_go();
        }
        Ok(())
    }

    /// Takes back the oldest batch under way, which is done.
    fn let_go(&mut self) {
        if let Some((_, mut batch)) = self.in_flight.pop_front() {
            self.found(batch.finish());
            self.idle.push(batch);
        }
    }

    /// Keeps the first error that kernels found.
    fn found(&mut self, found: Result<()>) {
        if self.failure.is_ok() {
            self.failure = found;
        }
    }

    /// The first error that the device found in what is done.
    pub(super) fn take_failure(&mut self) -> Result<()> {
        std::mem::replace(&mut self.failure, Ok(()))
    }

    /// The point after everything enqueued.
    pub(super) fn point(&mut self) -> Result<Arc<Mark>> {
        self.has_a_point()?;
        self.shared.usable()?;
        self.close()?;
        Ok(self.last.get_or_insert_with(|| Mark::reached(&self.shared)).clone())
    }

    /// Whether nothing was enqueued since all of it was seen to be done. An error where that can't be said.
    fn is_empty(&self) -> Result<bool> {
        self.has_a_point()?;
        self.shared.usable()?;
        Ok(self.open.is_empty() && self.in_flight.is_empty())
    }

    fn has_a_point(&self) -> Result<()> {
        if self.recording.is_some() {
            fail!(InvalidArgument, "a stream that records has nothing to wait for: finish the recording first");
        }
        Ok(())
    }

    /// Whether everything enqueued is done. What is, is let go of.
    pub(super) fn is_through(&mut self) -> Result<bool> {
        if self.is_empty()? {
            return Ok(true);
        }
        let _entered = self.shared.enter()?;
        self.ask()
    }

    /// The same where something was, while the context is current.
    fn ask(&mut self) -> Result<bool> {
        // SAFETY: a stream of this device that does not capture.
        let done = self.shared.is_done(unsafe { (self.shared.api().stream_query)(self.stream) })?;
        if done {
            while let Some((mark, _)) = self.in_flight.front() {
                mark.was_reached();
                self.let_go();
            }
            // What kernels found must come to the host first.
            if self.open.faults.is_empty() {
                let found = self.open.finish();
                self.found(found);
            }
        }
        Ok(done)
    }

    /// Waits until everything enqueued is done: without an event where that is soon.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.is_empty()? {
            return Ok(());
        }
        let _entered = self.shared.enter()?;
        self.fetch_faults()?;
        let begin = Instant::now();
        loop {
            for _ in 0..16 {
                if self.ask()? {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if begin.elapsed() >= LOOK_OUT {
                break;
            }
        }
        self.point()?.sleep()?;
        self.reap()
    }
}
