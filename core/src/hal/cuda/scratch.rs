//! Memory for intermediate values. A stream's next commands use it again before the earlier ones are done, because they run in order. So
//! do those of a recording, whose memory is its own: they run later.

use super::memory::{Allocation, Space};
use super::stream::CudaStream;
use crate::error::Result;
use std::sync::Arc;

/// The most blocks that wait for a command.
const MOST: usize = 8;

/// A stream's memory for intermediate values, kept while the stream has work.
#[derive(Default)]
pub struct Scratch {
    /// That of the command which is being enqueued.
    taken: Vec<Arc<Allocation>>,
    /// That of earlier commands, the smallest first.
    free: Vec<Arc<Allocation>>,
}

impl Scratch {
    /// Takes memory of at least `bytes` bytes that earlier commands used, if there is any of about that size.
    pub fn take(&mut self, bytes: usize) -> Option<Arc<Allocation>> {
        let at = self.free.partition_point(|memory| memory.bytes() < bytes);
        // Much larger memory stays for a command that needs it.
        let fits = self.free.get(at).is_some_and(|memory| memory.bytes() / 4 <= bytes);
        let memory = fits.then(|| self.free.remove(at))?;
        self.taken.push(memory.clone());
        Some(memory)
    }

    /// Adds new memory, which the current command uses.
    pub fn add(&mut self, memory: Arc<Allocation>) {
        self.taken.push(memory);
    }

    /// Begins the next command: it may use what the one before used.
    pub fn next(&mut self) {
        for memory in self.taken.drain(..) {
            let at = self.free.partition_point(|other| other.bytes() < memory.bytes());
            self.free.insert(at, memory);
        }
        // The smallest is soonest allocated again.
        self.free.drain(..self.free.len().saturating_sub(MOST));
    }

    /// Lets go of everything. What enqueued commands use lives until they are done.
    pub fn clear(&mut self) {
        self.taken.clear();
        self.free.clear();
    }
}

impl CudaStream {
    /// Allocates device memory for intermediate values of the next command. Returns its address, a multiple of 256.
    pub fn scratch(&mut self, bytes: u64) -> Result<u64> {
        let memory = match self.scratch.take(bytes as usize) {
            Some(memory) => memory,
            None => {
                let memory = Allocation::new(&self.shared, bytes as usize, Space::Local, "scratch")?;
                self.scratch.add(memory.clone());
                memory
            }
        };
        Ok(self.keep_memory(&memory))
    }
}
