//! Batches: what enqueued work uses, which must live until the work is done.

use super::memory::{Allocation, Space};
use super::shared::Shared;
use crate::error::Result;
use crate::hal::lowering::Explain;
use std::any::Any;
use std::sync::Arc;

/// Something that work uses, kept alive until the work is done.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// Four words of device memory that kernels write if they find invalid data.
#[derive(Clone)]
pub struct Fault {
    pub words: Arc<Allocation>,
    pub explain: Explain,
}

/// The work between two points of a stream, or in a recording.
#[derive(Default)]
pub struct Batch {
    kept: Vec<KeepAlive>,
    pub faults: Vec<Fault>,
    /// Host memory for the faults' words, and what the words mean.
    answers: Vec<(Arc<Allocation>, Explain)>,
    /// The number of commands.
    pub count: u32,
    /// Bytes of device memory that the batch keeps.
    pub bytes: usize,
}

impl Batch {
    /// Keeps something alive until the work is done.
    pub fn keep(&mut self, what: KeepAlive) {
        self.kept.push(what);
    }

    /// Keeps memory alive until the work is done.
    pub fn keep_memory(&mut self, memory: Arc<Allocation>) {
        self.bytes += memory.bytes();
        self.kept.push(memory);
    }

    /// Enqueues a copy of a fault's words to the host, after the work that writes them.
    pub fn fetch(&mut self, shared: &Arc<Shared>, stream: super::api::Handle, fault: Fault) -> Result<()> {
        let _entered = shared.enter()?;
        let answer = Allocation::new(shared, 16, Space::Host, "faults")?;
        // SAFETY: pinned memory of at least 16 bytes that no work uses yet.
        unsafe { answer.host().write_bytes(0, 16) };
        // SAFETY: 16 bytes of device memory go to 16 bytes of pinned memory, and the batch keeps both.
        let result = unsafe { (shared.api().copy_to_host)(answer.host().cast(), fault.words.address, 16, stream) };
        shared.check(result, "fetching a fault")?;
        self.keep(fault.words);
        self.answers.push((answer, fault.explain));
        Ok(())
    }

    /// Returns whether the batch has no work and keeps nothing. An operation without results keeps operands without any
    /// work.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.kept.is_empty()
    }

    /// Empties the batch for reuse; its work must be done. Returns the first error that its kernels found.
    pub fn finish(&mut self) -> Result<()> {
        let mut found = Ok(());
        for (answer, explain) in self.answers.drain(..) {
            // SAFETY: four pinned words that the device has finished writing.
            let words = unsafe { answer.host().cast::<[u32; 4]>().read_volatile() };
            if words[0] != 0 && found.is_ok() {
                found = Err(explain(words));
            }
        }
        self.kept.clear();
        self.faults.clear();
        (self.count, self.bytes) = (0, 0);
        found
    }
}
