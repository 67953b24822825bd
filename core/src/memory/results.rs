//! Memory of large results, used again once nobody has them.
//!
//! A system zeroes every page that it hands out, page by page as they are touched, which for a large result can take as long as
//! computing it. Layers that compute one behind the other then share a few blocks that stay in the caches.

use super::host::{HostBuffer, lock_unless_stuck};
use crate::error::Result;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

/// Results of at least this many bytes come from a pool. Allocators keep the pages of smaller ones.
pub(crate) const LEAST: usize = 128 << 10;

/// Blocks that are kept for each thread that computes, at most.
const BLOCKS: usize = 24;

/// Bytes that are kept for each thread that computes, at most.
const BYTES: usize = 32 << 20;

/// Blocks that nobody has.
pub(crate) struct ResultPool {
    free: Mutex<Free>,
    most_blocks: usize,
    most_bytes: usize,
}

#[derive(Default)]
struct Free {
    /// The one that was used last behind.
    blocks: VecDeque<HostBuffer>,
    bytes: usize,
}

impl ResultPool {
    /// A pool for so many threads.
    pub fn new(threads: usize) -> Arc<ResultPool> {
        Arc::new(ResultPool { free: Mutex::default(), most_blocks: BLOCKS * threads, most_bytes: BYTES * threads })
    }

    /// Memory of any contents for a result of so many bytes.
    #[cold]
    #[inline(never)]
    pub fn take(self: &Arc<ResultPool>, bytes: usize) -> Result<Box<Lent>> {
        let found = lock_unless_stuck(&self.free).and_then(|mut free| {
            // A block much larger stays for a result that needs it.
            let at = free.blocks.iter().rposition(|block| (bytes..=2 * bytes).contains(&block.len()))?;
            let block = free.blocks.remove(at)?;
            free.bytes -= block.len();
            Some(block)
        });
        let block = found.map_or_else(|| HostBuffer::uninitialised(bytes), Ok)?;
        Ok(Box::new(Lent { block: ManuallyDrop::new(block), pool: Arc::downgrade(self) }))
    }

    fn put(&self, block: HostBuffer) {
        let mut surplus = Vec::new();
        if block.len() <= self.most_bytes
            && let Some(mut free) = lock_unless_stuck(&self.free)
        {
            free.bytes += block.len();
            free.blocks.push_back(block);
            while free.bytes > self.most_bytes || free.blocks.len() > self.most_blocks {
                let Some(oldest) = free.blocks.pop_front() else { break };
                free.bytes -= oldest.len();
                surplus.push(oldest);
            }
        }
        // Blocks go to the system unlocked.
        drop(surplus);
    }

    /// Gives what is kept back to the system.
    pub fn trim(&self) {
        drop(lock_unless_stuck(&self.free).map(|mut free| std::mem::take(&mut *free)));
    }
}

/// A block that goes back to its pool when it is dropped; to the system if the pool is gone.
pub(crate) struct Lent {
    block: ManuallyDrop<HostBuffer>,
    pool: Weak<ResultPool>,
}

impl Lent {
    /// The first byte.
    pub fn pointer(&self) -> NonNull<u8> {
        self.block.pointer()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: the block is taken once, and nobody uses it after this.
        let block = unsafe { ManuallyDrop::take(&mut self.block) };
        if let Some(pool) = self.pool.upgrade() {
            pool.put(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pool: &ResultPool) -> Vec<usize> {
        pool.free.lock().unwrap().blocks.iter().map(HostBuffer::len).collect()
    }

    #[test]
    fn a_block_is_used_again_where_it_fits() {
        let pool = ResultPool::new(1);
        let (one, other) = (pool.take(LEAST).unwrap(), pool.take(LEAST).unwrap());
        let (first, second) = (one.pointer(), other.pointer());
        assert_ne!(first, second);
        drop(one);
        assert_eq!(pool.take(LEAST / 2).unwrap().pointer(), first);
        assert_ne!(pool.take(LEAST / 2 - 1).unwrap().pointer(), first, "too large a block");
        assert_ne!(pool.take(LEAST + 1).unwrap().pointer(), first, "too small a block");
        drop(other);
        assert_eq!(pool.take(LEAST).unwrap().pointer(), second, "the one that was used last");
    }

    #[test]
    fn so_many_blocks_and_bytes_are_kept_and_the_oldest_leave() {
        let pool = ResultPool::new(2);
        drop((0..100).map(|i| pool.take(LEAST + i).unwrap()).collect::<Vec<_>>());
        assert_eq!(kept(&pool), (100 - 2 * BLOCKS..100).map(|i| LEAST + i).collect::<Vec<_>>());
        drop(pool.take(2 * BYTES).unwrap());
        assert_eq!(kept(&pool), [2 * BYTES]);
        drop(pool.take(2 * BYTES + 1).unwrap());
        assert_eq!(kept(&pool), [2 * BYTES], "a block beyond what may be kept goes");
        pool.trim();
        assert!(kept(&pool).is_empty());
        let last = pool.take(LEAST).unwrap();
        drop(pool);
        // SAFETY: the block has its memory without its pool.
        unsafe { last.pointer().write(1) };
    }
}
