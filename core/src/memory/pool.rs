//! Suballocation of memory that the CPU can't address: a [`Pool`] cuts a driver's blocks into parts.
//!
//! Drivers take long to allocate memory and limit the number of allocations. So a [`Pool`] asks for more than is
//! needed: first [`FIRST_BLOCK`], then twice as much each time up to [`LARGEST_BLOCK`]. The deterministic allocator
//! cuts the blocks, so the same calls give the same offsets. A larger request gets its own block. Empty blocks are kept
//! for reuse until [`Pool::trim`]. Each part has a name for its purpose, so that a pool can list what is in use.

use super::deterministic::DeterministicAllocator;
use crate::error::Result;
use std::fmt;

/// Bytes of the first block that a pool asks for.
pub(crate) const FIRST_BLOCK: usize = 8 << 20;
/// Bytes at which blocks stop growing.
pub(crate) const LARGEST_BLOCK: usize = 64 << 20;
/// Offsets and sizes of parts are multiples of this many bytes: no GPU requires more.
pub(crate) const GRAIN: usize = 256;

/// Blocks and the parts in use. `B` is the driver's handle of a block.
pub(crate) struct Pool<B> {
    /// A block keeps its index, because parts refer to it.
    blocks: Vec<Option<Block<B>>>,
    room: Room,
    uses: Vec<Use>,
    next: usize,
    held: usize,
    used: usize,
    live: usize,
}

struct Block<B> {
    memory: B,
    parts: DeterministicAllocator,
}

/// A part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub block: usize,
    pub offset: usize,
    /// The bytes it occupies: the request, rounded up to [`GRAIN`].
    pub bytes: usize,
    /// The index of its name among the pool's names.
    name: usize,
}

/// The parts in use with one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub name: &'static str,
    pub parts: usize,
    pub bytes: usize,
}

/// The longest free run of each block, as a tree of maxima. It finds the first block with room in logarithmic time.
struct Room {
    /// The root is node 1; node `i` has the children `2i` and `2i + 1`. The last `leaves` nodes are the blocks.
    tree: Vec<usize>,
    leaves: usize,
}

impl Room {
    /// Stores the longest free run of a block; 0 if the block is gone.
    fn set(&mut self, block: usize, free: usize) {
        if block >= self.leaves {
            let leaves = (block + 1).next_power_of_two();
            let mut tree = vec![0; 2 * leaves];
            tree[leaves..leaves + self.leaves].copy_from_slice(&self.tree[self.leaves..]);
            (self.tree, self.leaves) = (tree, leaves);
            (1..leaves).rev().for_each(|node| self.sum(node));
        }
        let mut node = self.leaves + block;
        self.tree[node] = free;
        while node > 1 {
            node /= 2;
            self.sum(node);
        }
    }

    fn sum(&mut self, node: usize) {
        self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
    }

    /// Returns the first block with a free run of `bytes` bytes.
    fn first(&self, bytes: usize) -> Option<usize> {
        if *self.tree.get(1)? < bytes {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node = 2 * node + usize::from(self.tree[2 * node] < bytes);
        }
        Some(node - self.leaves)
    }
}

impl<B> Pool<B> {
    /// Makes a pool without blocks.
    pub fn new() -> Pool<B> {
        let room = Room { tree: vec![0; 2], leaves: 1 };
        Pool { blocks: Vec::new(), room, uses: Vec::new(), next: FIRST_BLOCK, held: 0, used: 0, live: 0 }
    }

    /// Takes at least `bytes` bytes from the first block that has room; `None` if no block has. `name` says what they
    /// are for.
    pub fn find(&mut self, bytes: usize, name: &'static str) -> Option<Part> {
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN)?;
        let index = self.room.first(bytes)?;
        let block = self.blocks.get_mut(index)?.as_mut()?;
        let offset = block.parts.alloc(bytes).ok()?;
        self.room.set(index, block.parts.largest_free());
        // A linear search is enough: there are only as many names as places in the code that allocate.
        let name = self.uses.iter().position(|own| own.name == name).unwrap_or_else(|| {
            self.uses.push(Use { name, parts: 0, bytes: 0 });
            self.uses.len() - 1
        });
        self.uses[name].parts += 1;
        self.uses[name].bytes += bytes;
        self.used += bytes;
        self.live += 1;
        Some(Part { block: index, offset, bytes, name })
    }

    /// Returns the sizes of the block to ask the driver for when no block has room for `bytes`. The first is the
    /// preferred size. The second is the least that suffices, for a driver that has no more.
    pub fn block_sizes(&self, bytes: usize) -> [usize; 2] {
        let least = bytes.max(1).saturating_add(GRAIN - 1) / GRAIN * GRAIN;
        if least > self.next / 2 { [least, least] } else { [self.next, least] }
    }

    /// Adds a block of `bytes` bytes, a multiple of [`GRAIN`].
    pub fn add(&mut self, memory: B, bytes: usize) -> Result<()> {
        let block = Block { memory, parts: DeterministicAllocator::offsets(GRAIN, bytes / GRAIN)? };
        let place = self.blocks.iter().position(Option::is_none).unwrap_or(self.blocks.len());
        self.room.set(place, block.parts.largest_free());
        if place == self.blocks.len() {
            self.blocks.push(None);
        }
        self.blocks[place] = Some(block);
        self.held += bytes;
        if bytes >= self.next {
            self.next = (self.next * 2).min(LARGEST_BLOCK);
        }
        Ok(())
    }

    /// Returns a block by its index.
    pub fn block(&self, index: usize) -> Option<&B> {
        Some(&self.blocks.get(index)?.as_ref()?.memory)
    }

    /// Frees a part.
    pub fn free(&mut self, part: Part) {
        if let Some(Some(block)) = self.blocks.get_mut(part.block)
            && block.parts.free(part.offset).is_ok()
        {
            self.room.set(part.block, block.parts.largest_free());
            self.used -= part.bytes;
            self.live -= 1;
            self.uses[part.name].parts -= 1;
            self.uses[part.name].bytes -= part.bytes;
        }
    }

    /// Lists what is in use by name; the name with the most bytes comes first.
    pub fn uses(&self) -> Vec<Use> {
        let mut uses: Vec<Use> = Vec::new();
        // Inserted in order: there are few names, and a sort would take ten times the code.
        for own in self.uses.iter().filter(|own| own.parts > 0) {
            let place = uses.partition_point(|other| (other.bytes, other.name) > (own.bytes, own.name));
            uses.insert(place, *own);
        }
        uses
    }

    /// Removes empty blocks until at most `keep` bytes of empty blocks are left. The caller returns the removed ones to
    /// the driver.
    pub fn trim(&mut self, keep: usize) -> Vec<B> {
        let mut idle: usize = self.blocks.iter().flatten().filter(|block| block.parts.live() == 0).map(size).sum();
        let mut taken = Vec::new();
        for (index, place) in self.blocks.iter_mut().enumerate() {
            if idle <= keep {
                break;
            }
            if let Some(block) = place.take_if(|block| block.parts.live() == 0) {
                self.room.set(index, 0);
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

    /// Returns the bytes of all blocks.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the bytes of the parts in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of parts in use.
    #[cfg(any(test, feature = "cuda"))]
    pub fn live(&self) -> usize {
        self.live
    }
}

/// Formats uses as `buffers 3 (4096 bytes), staging 1 (256 bytes)`; an empty text if there are none.
pub(crate) struct Listed<'a>(pub &'a [Use]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Use { name, parts, bytes }) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{name} {parts} ({bytes} bytes)")?;
        }
        Ok(())
    }
}

fn size<B>(block: &Block<B>) -> usize {
    block.parts.capacity()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pool: &mut Pool<usize>, bytes: usize) -> Part {
        named(pool, bytes, "test")
    }

    fn named(pool: &mut Pool<usize>, bytes: usize, name: &'static str) -> Part {
        pool.find(bytes, name).unwrap_or_else(|| {
            let [size, _] = pool.block_sizes(bytes);
            pool.add(size, size).unwrap();
            pool.find(bytes, name).unwrap()
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
    fn what_is_in_use_is_listed_by_name() {
        let mut pool = Pool::new();
        assert_eq!(Listed(&pool.uses()).to_string(), "");
        let buffer = named(&mut pool, 4000, "buffers");
        let scratch = named(&mut pool, 1, "scratch");
        named(&mut pool, 5 << 20, "buffers");
        let text = format!("buffers 2 ({} bytes), scratch 1 (256 bytes)", 4096 + (5 << 20));
        assert_eq!(Listed(&pool.uses()).to_string(), text);
        pool.free(buffer);
        pool.free(scratch);
        assert_eq!(pool.uses(), [Use { name: "buffers", parts: 1, bytes: 5 << 20 }]);
    }

    /// A linear search over all blocks gives the expected block.
    #[test]
    fn the_first_block_with_room_is_found() {
        let (mut pool, mut parts, mut state) = (Pool::new(), Vec::new(), 1u64);
        for _ in 0..4000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = (state >> 33) as usize;
            if draw % 5 < 2 && !parts.is_empty() {
                pool.free(parts.swap_remove(draw % parts.len()));
            } else if draw.is_multiple_of(97) {
                pool.trim(0);
            } else {
                let bytes = (draw % (9 << 20)).next_multiple_of(GRAIN).max(GRAIN);
                let has_room = |block: &Option<Block<usize>>| {
                    block.as_ref().is_some_and(|block| block.parts.largest_free() >= bytes)
                };
                let expected = pool.blocks.iter().position(has_room);
                let part = take(&mut pool, bytes);
                assert_eq!(part.block, expected.unwrap_or(part.block));
                parts.push(part);
            }
        }
        assert!(pool.blocks.len() > 5, "{}", pool.blocks.len());
    }

    #[test]
    fn absurd_sizes_find_nothing() {
        let mut pool = Pool::<()>::new();
        assert!(pool.find(usize::MAX, "test").is_none());
        let [first, least] = pool.block_sizes(usize::MAX);
        assert!(first >= usize::MAX - GRAIN && least >= usize::MAX - GRAIN);
    }
}
