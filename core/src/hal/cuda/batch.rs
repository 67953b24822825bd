//! What enqueued work uses and must live until it is done.

use super::memory::{Allocation, Space};
use super::shared::Shared;
use crate::error::Result;
use crate::hal::lowering::Explain;
use std::any::Any;
use std::sync::Arc;

/// Something that work uses.
pub type Kept = Arc<dyn Any + Send + Sync>;

/// Four words of the device that kernels write where data is wrong.
#[derive(Clone)]
pub struct Fault {
    pub words: Arc<Allocation>,
    pub explain: Explain,
}

/// Work between two points of a stream, or of a recording.
#[derive(Default)]
pub struct Batch {
    kept: Vec<Kept>,
    pub faults: Vec<Fault>,
    /// Where faults come to the host, and what they mean.
    answers: Vec<(Arc<Allocation>, Explain)>,
    /// Commands.
    pub count: u32,
    /// Bytes of the device's memory that it keeps.
    pub bytes: usize,
}

impl Batch {
    /// Keeps something until the work is done.
    pub fn keep(&mut self, what: Kept) {
        self.kept.push(what);
    }

    /// Keeps memory until the work is done.
    pub fn keep_memory(&mut self, memory: Arc<Allocation>) {
        self.bytes += memory.bytes();
        self.kept.push(memory);
    }

    /// Enqueues the bringing of a fault's words to the host, behind the work that writes them.
    pub fn fetch(&mut self, shared: &Arc<Shared>, stream: super::api::Handle, fault: Fault) -> Result<()> {
        let _entered = shared.enter()?;
        let answer = Allocation::new(shared, 16, Space::Host, "faults")?;
        // SAFETY: pinned memory of at least 16 bytes that no work has been given.
        unsafe { answer.host().write_bytes(0, 16) };
        // SAFETY: sixteen bytes of the device to sixteen of the host; both are kept until the work is done.
        let result = unsafe { (shared.api().copy_to_host)(answer.host().cast(), fault.words.address, 16, stream) };
        shared.check(result, "fetching a fault")?;
        self.keep(fault.words);
        self.answers.push((answer, fault.explain));
        Ok(())
    }

    /// Whether there is no work in it and nothing that it keeps: operands of an operation without results are kept without work.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.kept.is_empty()
    }

    /// Makes it empty for reuse; its work is done. The first error that its kernels found.
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
