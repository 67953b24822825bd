//! Suballocation of memory that this process can't address: blocks from a driver, cut into parts.
//!
//! Drivers take long to hand out memory and limit how often it may be asked for. A [`Pool`] asks for a block that is larger
//! than what is needed, at first [`FIRST_BLOCK`], then twice as much each time up to [`LARGEST_BLOCK`], and cuts it with the
//! deterministic allocator: the same calls give the same offsets. A request that is too large for that gets a block of its own.
//! Empty blocks are kept for reuse until [`Pool::trim`]. Each part has the name of what it is for, so that a pool can say what is
//! still in use of it.

use super::deterministic::DeterministicAllocator;
use crate::error::Result;
use std::fmt;

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

/// Part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub block: usize,
    pub offset: usize,
    /// What it occupies, at least what was asked for.
    pub bytes: usize,
    /// Its name's place among those of the pool.
    name: usize,
}

/// What parts of one name have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub name: &'static str,
    pub parts: usize,
    pub bytes: usize,
}

/// The longest free run of each block, in a tree of the larger of two, so that the first block with room is found in logarithmic
/// time.
struct Room {
    /// The root is 1, the nodes below `i` are `2i` and `2i + 1`; the last `leaves` nodes are the blocks.
    tree: Vec<usize>,
    leaves: usize,
}

impl Room {
    /// Says what a block has, 0 where there is none.
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

    /// The first block with so many bytes in a row.
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
    /// A pool without blocks.
    pub fn new() -> Pool<B> {
        let room = Room { tree: vec![0; 2], leaves: 1 };
        Pool { blocks: Vec::new(), room, uses: Vec::new(), next: FIRST_BLOCK, held: 0, used: 0, live: 0 }
    }

    /// A part of at least so many bytes of the first block that has room, if one has; `name` says what it is for.
    pub fn find(&mut self, bytes: usize, name: &'static str) -> Option<Part> {
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN)?;
        let index = self.room.first(bytes)?;
        let block = self.blocks.get_mut(index)?.as_mut()?;
        let offset = block.parts.alloc(bytes).ok()?;
        self.room.set(index, block.parts.largest_free());
        // There are as many as places in the code that take memory.
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

    /// The bytes of the block to ask the driver for when nothing has room for so many: what pays first, then what just
    /// suffices, for when the driver has no more.
    pub fn block_sizes(&self, bytes: usize) -> [usize; 2] {
        let least = bytes.max(1).saturating_add(GRAIN - 1) / GRAIN * GRAIN;
        if least > self.next / 2 { [least, least] } else { [self.next, least] }
    }

    /// Takes a block of so many bytes, a multiple of [`GRAIN`].
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

    /// A block by its index.
    pub fn block(&self, index: usize) -> Option<&B> {
        Some(&self.blocks.get(index)?.as_ref()?.memory)
    }

    /// Gives a part back.
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

    /// What is in use, by name, most bytes first.
    pub fn uses(&self) -> Vec<Use> {
        let mut uses: Vec<Use> = Vec::new();
        // In their order as they come: there are few names, and this is a tenth of a sort's code.
        for own in self.uses.iter().filter(|own| own.parts > 0) {
            let place = uses.partition_point(|other| (other.bytes, other.name) > (own.bytes, own.name));
            uses.insert(place, *own);
        }
        uses
    }

    /// Takes the blocks out of which nothing is in use, until no more than `keep` bytes are held idle; the caller returns them
    /// to the driver.
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

    /// Bytes taken from the driver.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Parts in use.
    #[cfg(any(test, feature = "cuda"))]
    pub fn live(&self) -> usize {
        self.live
    }
}

/// Uses as a text: `buffers 3 (4096 bytes), staging 1 (256 bytes)`; nothing where there are none.
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

    /// The block that a walk through all of them finds.
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
