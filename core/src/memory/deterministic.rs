//! First fit by address over one region of blocks: [`DeterministicAllocator`].

use super::{CLASSES, NONE, Region, Runs};
use crate::error::{Error, Result, Status, fail};
use std::fmt;
use std::ptr::NonNull;

/// The block size of [`DeterministicAllocator::new`], in bytes.
pub const DEFAULT_BLOCK_SIZE: usize = 4096;
/// The number of blocks of [`DeterministicAllocator::new`].
pub const DEFAULT_BLOCKS: usize = 65_536;
/// The most blocks an allocator can have.
pub const MAX_BLOCKS: usize = 1 << 24;

const MIN_BLOCK_SIZE: usize = 64;
const MAX_BLOCK_SIZE: usize = 1 << 30;

// A block's tag. The first block of an allocation has LIVE and the allocation's length. The first and last block of a
// free run have FREE and the run's length. All other tags are 0. Lengths are in blocks.
const LIVE: u32 = 1 << 31;
const FREE: u32 = 1 << 30;
const LENGTH: u32 = FREE - 1;

/// Allocates offsets in one region of fixed-size blocks, and the host memory behind them.
///
/// An allocation is a run of whole blocks, named by the byte offset of its first block. It takes the front of the
/// lowest free run that is certain to be long enough; `docs/memory.md` has the exact rule and proves the properties
/// below. Neighbouring free runs are merged at once.
///
/// - **Determinism.** Offsets depend only on the calls since the start or the last [`reset`](Self::reset): the same
///   calls give the same offsets on every machine.
/// - **Exactness.** An allocation succeeds if and only if a free run is long enough: a request of
///   [`largest_free`](Self::largest_free) bytes succeeds.
/// - **Internal fragmentation** is below one block per allocation.
/// - **External fragmentation** is bounded. In blocks, let `M` be the peak in use, including the current request, and
///   `n` the largest request. With a capacity of `M * (1 + 3 * ceil(log2 n))` no allocation fails, and no allocation
///   ends beyond that. If all requests are for one block, no space is lost. In the worst case, every allocator that
///   can't move its allocations needs about `M * log2(n) / 2` (Robson, 1971).
/// - **Cost.** Allocating and freeing read and write a few bitmap words, however many allocations are live: `O(log
///   blocks)`, to base 64. If no run is certain to be long enough, `alloc` checks the candidates of one class one by
///   one.
/// - **Memory.** The region is zeroed and mapped lazily: a block that is never written uses no memory. The bookkeeping
///   takes about 12 bytes per block, also mapped lazily.
///
/// Reused memory keeps its previous bytes. A failing call changes nothing.
///
/// ```
/// # use adead_core::memory::DeterministicAllocator;
/// # fn main() -> adead_core::Result<()> {
/// let mut memory = DeterministicAllocator::new()?;
/// let (a, b) = (memory.alloc(10_000)?, memory.alloc(1)?);
/// assert_eq!((a, b), (0, 12_288));
/// memory.bytes_mut(b)?.fill(7);
/// memory.free(a)?;
/// assert_eq!(memory.alloc(5_000)?, 0);
/// assert!(memory.free(4096).is_err());
/// # Ok(()) }
/// ```
pub struct DeterministicAllocator {
    memory: Region<u8>,
    tags: Region<u32>,
    runs: Runs,
    /// The block size is `1 << shift`.
    shift: u32,
    free: usize,
    live: usize,
    high_water: usize,
}

impl DeterministicAllocator {
    /// Makes an allocator of 65,536 blocks of 4 KiB: 256 MiB. `out_of_memory` if the system refuses.
    pub fn new() -> Result<DeterministicAllocator> {
        DeterministicAllocator::with_capacity(DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS)
    }

    /// Makes an allocator of `blocks` blocks of `block_size` bytes. The block size is a power of two from 64 bytes to 1
    /// GiB; the number of blocks is 1 to [`MAX_BLOCKS`]. `invalid_argument` for other values; `out_of_memory` if the
    /// system refuses.
    pub fn with_capacity(block_size: usize, blocks: usize) -> Result<DeterministicAllocator> {
        if !block_size.is_power_of_two() || !(MIN_BLOCK_SIZE..=MAX_BLOCK_SIZE).contains(&block_size) {
            fail!(InvalidArgument, "the block size must be a power of two from 64 bytes to 1 GiB; got {block_size}");
        }
        if blocks == 0 || blocks > MAX_BLOCKS {
            fail!(InvalidArgument, "an allocator has 1 to {MAX_BLOCKS} blocks; got {blocks}");
        }
        let Some(bytes) = blocks.checked_mul(block_size) else {
            fail!(OutOfMemory, "can't allocate {blocks} blocks of {block_size} bytes: the address space is too small");
        };
        DeterministicAllocator::over(Region::new(bytes, block_size)?, block_size, blocks)
    }

    /// Makes an allocator of offsets only. It has no memory behind them: callers must not ask for pointers or bytes.
    pub(super) fn offsets(block_size: usize, blocks: usize) -> Result<DeterministicAllocator> {
        DeterministicAllocator::over(Region::new(0, 1)?, block_size, blocks)
    }

    fn over(memory: Region<u8>, block_size: usize, blocks: usize) -> Result<DeterministicAllocator> {
        let mut allocator = DeterministicAllocator {
            memory,
            tags: Region::new(blocks, 1)?,
            runs: Runs::new(blocks)?,
            shift: block_size.trailing_zeros(),
            free: blocks,
            live: 0,
            high_water: 0,
        };
        allocator.start_over();
        Ok(allocator)
    }

    /// Allocates at least `bytes` bytes and returns their offset, a multiple of the block size. 0 bytes take one block.
    /// `out_of_memory` if no free run is long enough.
    #[inline]
    pub fn alloc(&mut self, bytes: usize) -> Result<usize> {
        let need = (bytes.saturating_sub(1) >> self.shift) + 1;
        let Some(last) = self.fit(need) else { return Err(self.full(bytes)) };
        let tags = self.tags.all_mut();
        let run = (tags[last] & LENGTH) as usize;
        let (first, rest) = (last + 1 - run, run - need);
        if rest == 0 {
            tags[last] = 0;
            self.runs.remove(Runs::class_of(run), last);
        } else {
            tags[first + need] = FREE | rest as u32;
            tags[last] = FREE | rest as u32;
            self.runs.change(Runs::class_of(run), Runs::class_of(rest), last);
        }
        tags[first] = LIVE | need as u32;
        self.free -= need;
        self.live += 1;
        self.high_water = self.high_water.max(first + need);
        Ok(first << self.shift)
    }

    /// Frees the allocation at `offset`. `invalid_argument`, and nothing changes, if no allocation starts there: it was
    /// freed before, it lies inside an allocation, or it never was an offset of this allocator. If the offset has been
    /// allocated again, the call frees the new allocation.
    #[inline]
    pub fn free(&mut self, offset: usize) -> Result<()> {
        let (middle, blocks) = self.find(offset)?;
        let tags = self.tags.all_mut();
        tags[middle] = 0;
        let (mut first, mut last) = (middle, middle + blocks - 1);
        // A run is named by its last block, so a run on the left is removed, and a run on the right only grows.
        if first > 0 && tags[first - 1] & FREE != 0 {
            let left = (tags[first - 1] & LENGTH) as usize;
            tags[first - 1] = 0;
            self.runs.remove(Runs::class_of(left), first - 1);
            first -= left;
        }
        if let Some(&right) = tags.get(last + 1)
            && right & FREE != 0
        {
            let right = (right & LENGTH) as usize;
            tags[last + 1] = 0;
            last += right;
            self.runs.change(Runs::class_of(right), Runs::class_of(last + 1 - first), last);
        } else {
            self.runs.insert(Runs::class_of(last + 1 - first), last);
        }
        let run = last + 1 - first;
        tags[first] = FREE | run as u32;
        tags[last] = FREE | run as u32;
        self.free += blocks;
        self.live -= 1;
        Ok(())
    }

    /// Frees all allocations. The next calls return the same offsets as on a new allocator.
    pub fn reset(&mut self) {
        // All tags beyond the high-water mark belong to one free run. Only its last tag is not 0, and `start_over`
        // writes it.
        let touched = (self.high_water + 1).min(self.tags.len());
        self.tags.all_mut()[..touched].fill(0);
        self.runs.clear();
        self.start_over();
    }

    /// Makes one free run of all blocks. All tags but the last must be 0, and the index empty.
    fn start_over(&mut self) {
        let tags = self.tags.all_mut();
        let last = tags.len() - 1;
        tags[0] = FREE | (last + 1) as u32;
        tags[last] = tags[0];
        self.runs.insert(Runs::class_of(last + 1), last);
        (self.free, self.live, self.high_water) = (last + 1, 0, 0);
    }

    /// Returns the last block of the free run to take `need` blocks from.
    #[inline]
    fn fit(&self, need: usize) -> Option<usize> {
        if need > self.free {
            return None;
        }
        let class = Runs::class_of(need);
        // Of the run's own class, only the lowest run is a candidate, and it may be too short. Every run of a higher
        // class is long enough.
        let (own, above) = (self.runs.lowest_in(class), self.runs.lowest_from(class + 1));
        if own < above && self.length(own as usize) >= need {
            return Some(own as usize);
        }
        if above == NONE { self.search(class, need) } else { Some(above as usize) }
    }

    /// Does as `fit` when no higher class has a run: searches the run's own class.
    #[cold]
    fn search(&self, class: usize, need: usize) -> Option<usize> {
        self.runs.all_in(class).find(|&last| self.length(last) >= need)
    }

    /// Returns the number of blocks of the free run that ends at `last`.
    #[inline]
    fn length(&self, last: usize) -> usize {
        (self.tags.all()[last] & LENGTH) as usize
    }

    /// Returns the first block and the number of blocks of the allocation at `offset`.
    #[inline]
    fn find(&self, offset: usize) -> Result<(usize, usize)> {
        let first = offset >> self.shift;
        match self.tags.all().get(first) {
            Some(&tag) if tag & LIVE != 0 && first << self.shift == offset => Ok((first, (tag & LENGTH) as usize)),
            _ => Err(self.unknown(offset)),
        }
    }

    #[cold]
    fn unknown(&self, offset: usize) -> Error {
        let (live, size) = (self.live, self.block_size());
        let text = format!(
            "no allocation starts at offset {offset}; {live} allocations are live, at multiples of {size} bytes"
        );
        Error::new(Status::InvalidArgument, text)
    }

    #[cold]
    fn full(&self, bytes: usize) -> Error {
        let (free, longest, capacity) = (self.available(), self.largest_free(), self.capacity());
        let text = format!(
            "no room for {bytes} bytes: {free} of {capacity} bytes are free, at most {longest} in one piece; free some, \
             or make the allocator with more blocks"
        );
        Error::new(Status::OutOfMemory, text)
    }

    /// Returns the memory of the allocation at `offset`, all of its blocks. `invalid_argument` if no allocation starts
    /// there.
    #[inline]
    pub fn bytes(&self, offset: usize) -> Result<&[u8]> {
        let len = self.size(offset)?;
        // SAFETY: the allocation lies in the region, whose bytes are initialised. The slice borrows `self`.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.start().add(offset).as_ptr(), len) })
    }

    /// Returns the memory of the allocation at `offset`, to write. `invalid_argument` if no allocation starts there.
    #[inline]
    pub fn bytes_mut(&mut self, offset: usize) -> Result<&mut [u8]> {
        let len = self.size(offset)?;
        // SAFETY: as in `bytes`, and the slice borrows `self` exclusively.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory.start().add(offset).as_ptr(), len) })
    }

    /// Returns the address of the allocation at `offset`, a multiple of the block size. It is valid for
    /// [`size`](Self::size) bytes until the allocation is freed, or the allocator reset or dropped. `invalid_argument`
    /// if none starts there.
    #[inline]
    pub fn ptr(&self, offset: usize) -> Result<NonNull<u8>> {
        self.find(offset)?;
        // SAFETY: the offset of an allocation lies in the region.
        Ok(unsafe { self.memory.start().add(offset) })
    }

    /// Returns the bytes of the allocation at `offset`, a multiple of the block size. `invalid_argument` if none starts
    /// there.
    #[inline]
    pub fn size(&self, offset: usize) -> Result<usize> {
        Ok(self.find(offset)?.1 << self.shift)
    }

    /// Returns the bytes of a block.
    pub fn block_size(&self) -> usize {
        1 << self.shift
    }

    /// Returns the bytes of all blocks, free or not.
    pub fn capacity(&self) -> usize {
        self.tags.len() << self.shift
    }

    /// Returns the bytes of the blocks in use.
    pub fn used(&self) -> usize {
        self.capacity() - self.available()
    }

    /// Returns the bytes of all free blocks, contiguous or not.
    pub fn available(&self) -> usize {
        self.free << self.shift
    }

    /// Returns the bytes of the longest free run, which is the largest allocation that succeeds. 0 if no block is free.
    pub fn largest_free(&self) -> usize {
        let Some(class) = (0..CLASSES).rev().find(|&class| self.runs.lowest_in(class) != NONE) else { return 0 };
        self.runs.all_in(class).map(|last| self.length(last)).max().unwrap_or(0) << self.shift
    }

    /// Returns the number of live allocations.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Returns the highest end of any allocation since the start or the last reset, as an offset.
    pub fn high_water(&self) -> usize {
        self.high_water << self.shift
    }
}

impl fmt::Debug for DeterministicAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeterministicAllocator({} of {} bytes used by {})", self.used(), self.capacity(), self.live)
    }
}
