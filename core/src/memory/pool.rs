//! Suballocation of memory that this process can't address: blocks from a driver, cut into parts.
//!
//! Drivers take long to hand out memory and limit how often it may be asked for. A [`Pool`] asks for a block that is larger
//! than what is needed, at first [`FIRST_BLOCK`], then twice as much each time up to [`LARGEST_BLOCK`], and cuts it with the
//! deterministic allocator: the same calls give the same offsets. A request that is too large for that gets a block of its own.
//! Empty blocks are kept for reuse until [`Pool::trim`].

use super::deterministic::DeterministicAllocator;
use crate::error::Result;

/// Bytes of a pool's first block.
pub(crate) const FIRST_BLOCK: usize = 8 << 20;
/// Bytes that blocks grow to.
pub(crate) const LARGEST_BLOCK: usize = 256 << 20;
/// Parts begin on multiples of this many bytes and are multiples of it: no GPU asks for more.
pub(crate) const GRAIN: usize = 256;

/// Blocks of `B`, a driver's handle of memory, with what is in use of them.
pub(crate) struct Pool<B> {
    /// A block keeps its place: parts name it by its index.
    blocks: Vec<Option<Block<B>>>,
    next: usize,
    held: usize,
    used: usize,
    live: usize,
}

struct Block<B> {
    memory: B,
    parts: DeterministicAllocator,
}

/// Part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub block: usize,
    pub offset: usize,
    /// What it occupies, at least what was asked for.
    pub bytes: usize,
}

impl<B> Pool<B> {
    /// A pool without blocks.
    pub fn new() -> Pool<B> {
        Pool { blocks: Vec::new(), next: FIRST_BLOCK, held: 0, used: 0, live: 0 }
    }

    /// A part of at least so many bytes of a block that is there, if one has room.
    pub fn find(&mut self, bytes: usize) -> Option<Part> {
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN)?;
        for (index, block) in self.blocks.iter_mut().enumerate() {
            let Some(block) = block else { continue };
            if block.parts.largest_free() >= bytes
                && let Ok(offset) = block.parts.alloc(bytes)
            {
                self.used += bytes;
                self.live += 1;
                return Some(Part { block: index, offset, bytes });
            }
        }
        None
    }

    /// The bytes of the block to ask the driver for when nothing has room for so many: what pays first, then what just
    /// suffices, for when the driver has no more.
    pub fn block_sizes(&self, bytes: usize) -> [usize; 2] {
        let least = bytes.max(1).saturating_add(GRAIN - 1) / GRAIN * GRAIN;
        if least > self.next / 2 { [least, least] } else { [self.next, least] }
    }

    /// Takes a block of so many bytes, a multiple of [`GRAIN`].
    pub fn add(&mut self, memory: B, bytes: usize) -> Result<()> {
        let block = Some(Block { memory, parts: DeterministicAllocator::offsets(GRAIN, bytes / GRAIN)? });
        match self.blocks.iter_mut().find(|block| block.is_none()) {
            Some(place) => *place = block,
            None => self.blocks.push(block),
        }
        self.held += bytes;
        if bytes >= self.next {
            self.next = (self.next * 2).min(LARGEST_BLOCK);
        }
        Ok(())
    }

    /// A block by its index.
    pub fn block(&self, index: usize) -> Option<&B> {
        Some(&self.blocks.get(index)?.as_ref()?.memory)
    }

    /// Gives a part back.
    pub fn free(&mut self, part: Part) {
        if let Some(Some(block)) = self.blocks.get_mut(part.block)
            && block.parts.free(part.offset).is_ok()
        {
            self.used -= part.bytes;
            self.live -= 1;
        }
    }

    /// Takes the blocks out of which nothing is in use, until no more than `keep` bytes are held idle; the caller returns them
    /// to the driver.
    pub fn trim(&mut self, keep: usize) -> Vec<B> {
        let mut idle: usize = self.blocks.iter().flatten().filter(|block| block.parts.live() == 0).map(size).sum();
        let mut taken = Vec::new();
        for place in &mut self.blocks {
            if idle <= keep {
                break;
            }
            if let Some(block) = place.take_if(|block| block.parts.live() == 0) {
                idle -= size(&block);
                self.held -= size(&block);
                taken.push(block.memory);
            }
        }
        if self.held == 0 {
            self.next = FIRST_BLOCK;
        }
        taken
    }

    /// Bytes taken from the driver.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Parts in use.
    pub fn live(&self) -> usize {
        self.live
    }
}

fn size<B>(block: &Block<B>) -> usize {
    block.parts.capacity()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pool: &mut Pool<usize>, bytes: usize) -> Part {
        pool.find(bytes).unwrap_or_else(|| {
            let [size, _] = pool.block_sizes(bytes);
            pool.add(size, size).unwrap();
            pool.find(bytes).unwrap()
        })
    }

    #[test]
    fn blocks_start_small_and_grow() {
        let mut pool = Pool::new();
        let parts: Vec<Part> = (0..40).map(|_| take(&mut pool, 1 << 20)).collect();
        let sizes: Vec<usize> = (0..3).filter_map(|i| pool.block(i).copied()).collect();
        assert_eq!(sizes, [8 << 20, 16 << 20, 32 << 20]);
        assert_eq!((pool.live(), pool.used(), pool.held()), (40, 40 << 20, 56 << 20));
        for (i, a) in parts.iter().enumerate() {
            for b in &parts[..i] {
                assert!(a.block != b.block || a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes);
            }
        }
        parts.into_iter().for_each(|part| pool.free(part));
        assert_eq!((pool.live(), pool.used(), pool.held()), (0, 0, 56 << 20));
        assert_eq!(pool.trim(32 << 20), [8 << 20, 16 << 20], "the last is kept");
        assert_eq!(pool.trim(0), [32 << 20]);
        assert_eq!(pool.held(), 0);
        take(&mut pool, 1);
        assert_eq!(pool.held(), FIRST_BLOCK, "and starts small again");
    }

    #[test]
    fn what_is_large_gets_a_block_of_its_own_and_comes_back() {
        let mut pool = Pool::new();
        let large = take(&mut pool, (100 << 20) + 1);
        assert_eq!((large.bytes, pool.held()), ((100 << 20) + GRAIN, (100 << 20) + GRAIN));
        pool.free(large);
        let again = take(&mut pool, 100 << 20);
        assert_eq!(again.block, large.block, "the block is used again");
        assert!(pool.trim(0).is_empty(), "a block in use is not taken");
        pool.free(again);
        pool.free(again);
        assert_eq!((pool.live(), pool.used()), (0, 0), "freed twice counts once");
    }

    #[test]
    fn offsets_are_the_same_every_time() {
        let run = || -> Vec<Part> {
            let mut pool = Pool::new();
            let mut parts: Vec<Part> = (1..60).map(|i| take(&mut pool, i * 7919 % 300_000)).collect();
            (0..20).for_each(|i| pool.free(parts.swap_remove(i)));
            parts.extend((1..30).map(|i| take(&mut pool, i * 104_729 % 70_000)));
            parts
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn absurd_sizes_find_nothing() {
        let mut pool = Pool::<()>::new();
        assert!(pool.find(usize::MAX).is_none());
        let [first, least] = pool.block_sizes(usize::MAX);
        assert!(first >= usize::MAX - GRAIN && least >= usize::MAX - GRAIN);
    }
}
