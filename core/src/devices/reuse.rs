//! Device memory of results that are gone, used again by the next results.
//!
//! A backend keeps memory until the work that uses it is done. A model whose layers are enqueued faster than the device computes
//! them would take new memory for each. What is enqueued later on the same stream may have it at once, unless another device still
//! copies from it.

use crate::error::Result;
use crate::hal::{Buffer, Event};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Blocks that are kept, at most.
const MOST: usize = 24;

/// Sizes are multiples of this: no allocator of a backend gives less.
const UNIT: usize = 256;

/// The part of a device's memory that is kept, at most, and that of a device which does not report its memory.
const SHARE: u64 = 8;
const UNKNOWN: u64 = 256 << 20;

/// Memory that no tensor has, on a device's one stream for tensors: the smallest first.
pub(crate) struct Reuse {
    /// Bytes that are kept, at most.
    most: u64,
    blocks: Mutex<Vec<Arc<dyn Buffer>>>,
    /// Memory that other devices copy from, until their events.
    lent: Mutex<Vec<Loan>>,
}

/// Memory that another device copies from until its event.
struct Loan {
    until: Arc<dyn Event>,
    memory: Arc<dyn Buffer>,
}

impl Reuse {
    /// Keeps nothing yet of a device with this much memory.
    pub fn new(memory: u64) -> Arc<Reuse> {
        let most = if memory == 0 { UNKNOWN } else { memory / SHARE };
        Arc::new(Reuse { most, blocks: Mutex::default(), lent: Mutex::default() })
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Arc<dyn Buffer>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps memory from being used again before `until`.
    pub fn lend(&self, memory: Arc<dyn Buffer>, until: Arc<dyn Event>) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).push(Loan { until, memory });
    }

    /// Lets go of lent memory whose events are past. What nobody else has comes back to the blocks.
    fn take_back(&self) {
        let mut past = Vec::new();
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).retain(|Loan { until, memory }| {
            // A device that is lost copies no more.
            let is_past = until.is_done().unwrap_or(true);
            if is_past {
                past.push(memory.clone());
            }
            !is_past
        });
    }

    /// Memory for a result: what is kept, if that fits, else what `new` gives for a number of bytes.
    pub fn take(
        self: &Arc<Reuse>,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<Arc<dyn Buffer>>,
    ) -> Result<Arc<dyn Buffer>> {
        self.take_back();
        let bytes = bytes.max(1).next_multiple_of(UNIT);
        let found = {
            let mut blocks = self.blocks();
            let at = blocks.partition_point(|block| block.size() < bytes);
            // One much larger stays for a result that needs it.
            let fits = blocks.get(at).is_some_and(|block| block.size() / 4 <= bytes);
            fits.then(|| blocks.remove(at))
        };
        let memory = found.map_or_else(|| new(bytes), Ok)?;
        Ok(Arc::new(PooledBuffer { memory, pool: Arc::downgrade(self) }))
    }

    fn put(&self, memory: Arc<dyn Buffer>) {
        let surplus = {
            let mut blocks = self.blocks();
            let kept: u64 = blocks.iter().map(|block| block.size() as u64).sum();
            if kept + memory.size() as u64 > self.most {
                return;
            }
            let at = blocks.partition_point(|block| block.size() < memory.size());
            blocks.insert(at, memory);
            // The smallest is taken again soonest.
            (blocks.len() > MOST).then(|| blocks.remove(0))
        };
        // A block goes to its backend unlocked.
        drop(surplus);
    }

    /// Gives what is kept back to the backend.
    pub fn clear(&self) {
        self.take_back();
        let blocks = std::mem::take(&mut *self.blocks());
        drop(blocks);
    }
}

/// Memory that goes back to its pool when nobody has it any more; to the backend if the pool is gone.
struct PooledBuffer {
    memory: Arc<dyn Buffer>,
    pool: Weak<Reuse>,
}

// SAFETY: the memory's own answers.
unsafe impl Buffer for PooledBuffer {
    fn size(&self) -> usize {
        self.memory.size()
    }

    fn device_name(&self) -> &str {
        self.memory.device_name()
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        self.memory.host_pointer()
    }

    fn device_address(&self) -> Option<u64> {
        self.memory.device_address()
    }

    fn as_any(&self) -> &dyn Any {
        self.memory.as_any()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.put(self.memory.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operand::CpuBuffer;

    fn new(bytes: usize) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(CpuBuffer::zeroed(bytes)?))
    }

    /// Where it is: no two that are there at once are at one place.
    fn start(memory: &Arc<dyn Buffer>) -> Option<NonNull<u8>> {
        memory.host_pointer()
    }

    #[test]
    fn memory_that_nobody_has_is_used_again_where_it_fits() {
        let pool = Reuse::new(1 << 30);
        let (one, other) = (pool.take(4000, new).unwrap(), pool.take(4000, new).unwrap());
        assert_eq!((one.size(), start(&one) == start(&other)), (4096, false));
        let first = start(&one);
        drop(one.clone());
        assert_ne!(start(&pool.take(4000, new).unwrap()), first, "it has an owner");
        pool.clear();
        drop(one);
        assert_ne!(start(&pool.take(4097, new).unwrap()), first, "too small");
        assert_ne!(start(&pool.take(700, new).unwrap()), first, "too large");
        assert_eq!(start(&pool.take(4000, new).unwrap()), first);
        let refused = pool.take(1 << 20, |_| Err(crate::Error::new(crate::Status::OutOfMemory, "")));
        assert_eq!(refused.err().map(|error| error.status()), Some(crate::Status::OutOfMemory));
    }

    #[test]
    fn so_much_is_kept_and_nothing_behind_the_pool() {
        let pool = Reuse::new(1 << 30);
        let made: Vec<_> = (1..100).map(|i| pool.take(UNIT * i, new).unwrap()).collect();
        drop(made);
        let sizes: Vec<usize> = pool.blocks().iter().map(|block| block.size() / UNIT).collect();
        assert_eq!(sizes, (100 - MOST..100).collect::<Vec<_>>());
        let large = pool.take(1 << 27, new).unwrap();
        drop(large);
        assert_eq!(pool.blocks().len(), MOST, "more than the device's memory allows");
        let last = pool.take(UNIT * 99, new).unwrap();
        let memory = Arc::downgrade(&pool);
        drop(pool);
        assert!(memory.upgrade().is_none() && last.size() == 99 * UNIT);
    }
}
