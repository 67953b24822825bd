//! Memory of arrays, used again once nobody has it.

use adead_core::gpu::Buffer;
use adead_core::{Context, DType, Result, Tensor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks that are kept for the next arrays, at most, for each thread that may compute layers of its own.
const MOST: usize = 24;

/// A block's size is a multiple of this: neither allocator gives less.
const UNIT: usize = 256;

/// Bytes on a device.
pub(super) enum Memory {
    /// The bytes of a tensor. Where they came from the pool nobody else has the tensor, and they are written.
    Host(Tensor),
    Gpu(Buffer),
}

impl Memory {
    fn size(&self) -> usize {
        match self {
            Memory::Host(tensor) => tensor.byte_len(),
            Memory::Gpu(buffer) => buffer.size(),
        }
    }
}

/// Memory that goes back to its pool, if it is from one, with the last array in it.
pub(super) struct Block {
    memory: Option<Memory>,
    pool: Option<Arc<Pool>>,
}

impl Block {
    /// Memory of no pool, which is only read.
    pub fn of(tensor: &Tensor) -> Block {
        Block { memory: Some(Memory::Host(tensor.clone())), pool: None }
    }

    pub fn memory(&self) -> &Memory {
        match &self.memory {
            Some(memory) => memory,
            // It is taken out when the block is dropped.
            None => unreachable!("a block without memory"),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let (Some(pool), Some(memory)) = (&self.pool, self.memory.take()) {
            pool.put(memory);
        }
    }
}

/// Blocks that nobody has, smallest first. On a GPU one may be handed out while work that used it is under way: what uses it
/// next is enqueued behind that, on the same stream.
pub(super) struct Pool {
    blocks: Mutex<Vec<Memory>>,
    most: usize,
}

impl Pool {
    /// A pool for so many threads.
    pub fn new(threads: usize) -> Pool {
        Pool { blocks: Mutex::default(), most: MOST * threads.max(1) }
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<Memory>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At least so many bytes, with any contents, on the context's GPU or in host memory.
    pub fn take(self: &Arc<Pool>, context: &Context, gpu: bool, bytes: usize) -> Result<Block> {
        let bytes = bytes.max(1).next_multiple_of(UNIT);
        let memory = {
            let mut blocks = self.blocks();
            let at = blocks.partition_point(|block| block.size() < bytes);
            // One much larger stays for whoever needs it.
            match blocks.get(at) {
                Some(block) if block.size() / 4 <= bytes => Some(blocks.remove(at)),
                _ => None,
            }
        };
        let memory = match memory {
            Some(memory) => memory,
            None if gpu => Memory::Gpu(context.buffer_zeroed(bytes)?),
            None => Memory::Host(Tensor::zeros(DType::U32, &[bytes / 4])?),
        };
        Ok(Block { memory: Some(memory), pool: Some(self.clone()) })
    }

    fn put(&self, memory: Memory) {
        let surplus = {
            let mut blocks = self.blocks();
            let at = blocks.partition_point(|block| block.size() < memory.size());
            blocks.insert(at, memory);
            // The smallest is made again soonest.
            if blocks.len() > self.most { Some(blocks.remove(0)) } else { None }
        };
        // What is given back is given back unlocked.
        drop(surplus);
    }

    /// Lets go of all of them.
    pub fn clear(&self) {
        let blocks = std::mem::take(&mut *self.blocks());
        drop(blocks);
    }
}
