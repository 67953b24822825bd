//! Host memory: [`DeterministicAllocator`] for what lives long, [`ArenaAllocator`] for scratch.
//!
//! Neither looks at addresses, time or threads, so the same calls give the same places on every machine. Both take
//! memory from the system in large zeroed regions that cost address space only until they are written, and neither
//! aborts when the system has none: that is `out_of_memory`. Algorithms, bounds and proofs are in `docs/memory.md`.
//!
//! This file has what they are made of: a `Region` of lazily mapped memory and the `Runs` of free blocks.

mod arena;
mod deterministic;
pub(crate) mod host;
pub(crate) mod pool;
pub(crate) mod results;

pub use arena::{ArenaAllocator, MAX_ALIGN, Scope};
pub use deterministic::{DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, DeterministicAllocator, MAX_BLOCKS};

use crate::error::{Result, fail};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Types for which all-zero bytes are a value, without padding and without drop.
///
/// # Safety
/// Both must hold for the implementing type.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: integers have no padding, no drop, and zero is one of them.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Zeroed memory of a fixed length, as mapped lazily by the system, at an address aligned as asked.
pub(crate) struct Region<T: Plain> {
    start: NonNull<T>,
    len: usize,
    raw: NonNull<u8>,
    layout: Layout,
    owns: PhantomData<T>,
}

// SAFETY: a region owns its memory, and shares it only through the borrow rules or raw pointers.
unsafe impl<T: Plain + Send> Send for Region<T> {}
// SAFETY: as above; `&Region` only reads or hands out raw pointers.
unsafe impl<T: Plain + Sync> Sync for Region<T> {}

impl<T: Plain> Region<T> {
    /// `len` zeros, at least one, at a multiple of `align`, a power of two.
    pub(crate) fn new(len: usize, align: usize) -> Result<Region<T>> {
        // What malloc aligns to everywhere. A stricter layout would make `alloc_zeroed` write the zeros, and so touch
        // every page; asking for `align` more and rounding the address up doesn't.
        const NATURAL: usize = 16;
        let slack = if align > NATURAL { align } else { 0 };
        let bytes = len.max(1).checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(slack));
        let Some(layout) = bytes.and_then(|bytes| Layout::from_size_align(bytes, NATURAL).ok()) else {
            fail!(OutOfMemory, "{len} elements of {} bytes don't fit in the address space", size_of::<T>());
        };
        // SAFETY: the layout's size is not zero.
        let Some(raw) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            fail!(OutOfMemory, "the system has no {} bytes of memory left", layout.size());
        };
        let shift = if slack > 0 { raw.addr().get().wrapping_neg() & (align - 1) } else { 0 };
        // SAFETY: `shift` is below `align` and is 0 unless the allocation is `align` bytes longer than `len` elements.
        let start = unsafe { raw.add(shift) }.cast();
        Ok(Region { start, len: len.max(1), raw, layout, owns: PhantomData })
    }

    /// The first element, valid for reads and writes of [`Region::len`] elements.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<T> {
        self.start
    }

    /// The number of elements.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All elements. Not for a region whose parts were lent out through [`Region::start`].
    #[inline]
    pub(crate) fn all(&self) -> &[T] {
        // SAFETY: `start` is valid for `len` initialised elements, aligned, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All elements. Not for a region whose parts were lent out through [`Region::start`].
    #[inline]
    pub(crate) fn all_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `all`, and borrowed exclusively with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Region<T> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `alloc_zeroed` with this layout.
        unsafe { dealloc(self.raw.as_ptr(), self.layout) }
    }
}

/// Classes of one octave, as a power of two: run lengths 4, 5, 6, 7, then 8, 10, 12, 14 and so on start a class.
const FINE: u32 = 2;
const PER_OCTAVE: usize = 1 << FINE;
/// Octaves told apart. The last class takes every longer run.
const OCTAVES: usize = 16;
const CLASSES: usize = OCTAVES * PER_OCTAVE;
/// No run: larger than any block's number.
const NONE: u32 = u32::MAX;

/// The free runs of a [`DeterministicAllocator`], by class of length. A run is named by its last block, which stays the
/// same while blocks are taken from its front or given back there.
///
/// Each class has a bitmap with a bit per block, and bitmaps above it where a bit says that 64 bits aren't all 0. The
/// classes' words for the same blocks lie side by side. The lowest run of each class and octave is kept apart.
struct Runs {
    words: Region<u64>,
    /// Where each level starts in `words`, lowest first.
    levels: [usize; 5],
    height: usize,
    lowest: [u32; CLASSES + PER_OCTAVE],
    // Both arrays go on with NONE, so that looking beyond the last class needs no test.
    lowest_of_octave: [u32; 2 * OCTAVES + 1],
}

impl Runs {
    /// No runs, among up to [`MAX_BLOCKS`] blocks.
    fn new(blocks: usize) -> Result<Runs> {
        let (mut levels, mut height, mut words, mut bits) = ([0; 5], 0, 0, blocks);
        loop {
            levels[height] = words;
            height += 1;
            // One more than there are bits, for `next` to look at.
            let groups = bits / 64 + 1;
            words += groups * CLASSES;
            if groups == 1 {
                break;
            }
            bits = groups;
        }
        let (lowest, lowest_of_octave) = ([NONE; _], [NONE; _]);
        Ok(Runs { words: Region::new(words, 1)?, levels, height, lowest, lowest_of_octave })
    }

    /// The class of runs of this length, at least 1.
    #[inline]
    fn class_of(blocks: usize) -> usize {
        let octave = blocks.ilog2();
        let within = (blocks << FINE >> octave) - PER_OCTAVE;
        (((octave as usize) << FINE) + within).min(CLASSES - 1)
    }

    /// The lowest run of this class, at most [`CLASSES`], or any above, or [`NONE`].
    #[inline]
    fn lowest_from(&self, class: usize) -> u32 {
        let (octave, within) = (class / PER_OCTAVE, class % PER_OCTAVE);
        let mut lowest = NONE;
        // Fixed lengths, so that these loops have no branches.
        for (at, &run) in self.lowest[octave * PER_OCTAVE..][..PER_OCTAVE].iter().enumerate() {
            lowest = lowest.min(if at >= within { run } else { NONE });
        }
        for &run in &self.lowest_of_octave[octave + 1..][..OCTAVES] {
            lowest = lowest.min(run);
        }
        lowest
    }

    /// The lowest run of this class, or [`NONE`].
    #[inline]
    fn lowest_in(&self, class: usize) -> u32 {
        self.lowest[class]
    }

    /// All runs of this class, lowest first.
    fn all_in(&self, class: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.next(class, 0), move |&run| self.next(class, run + 1))
    }

    /// The lowest run of this class that ends at block `from` or above.
    #[inline]
    fn next(&self, class: usize, from: usize) -> Option<usize> {
        let words = self.words.all();
        let mut at = from;
        for up in 0..self.height {
            let word = words[self.levels[up] + at / 64 * CLASSES + class] & (!0 << (at % 64));
            if word != 0 {
                at = at / 64 * 64 + word.trailing_zeros() as usize;
                for &level in self.levels[..up].iter().rev() {
                    at = at * 64 + words[level + at * CLASSES + class].trailing_zeros() as usize;
                }
                return Some(at);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// Adds the run that ends at block `last`.
    #[inline]
    fn insert(&mut self, class: usize, last: usize) {
        let words = self.words.all_mut();
        let mut at = last;
        for &level in &self.levels[..self.height] {
            let word = &mut words[level + at / 64 * CLASSES + class];
            let before = *word;
            *word |= 1 << (at % 64);
            if before != 0 {
                break;
            }
            at /= 64;
        }
        let octave = class / PER_OCTAVE;
        self.lowest[class] = self.lowest[class].min(last as u32);
        self.lowest_of_octave[octave] = self.lowest_of_octave[octave].min(last as u32);
    }

    /// Removes the run that ends at block `last`.
    #[inline]
    fn remove(&mut self, class: usize, last: usize) {
        let words = self.words.all_mut();
        let mut at = last;
        for &level in &self.levels[..self.height] {
            let word = &mut words[level + at / 64 * CLASSES + class];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        if self.lowest[class] == last as u32 {
            self.lowest[class] = self.next(class, last).map_or(NONE, |run| run as u32);
            let octave = class / PER_OCTAVE;
            let classes = &self.lowest[octave * PER_OCTAVE..][..PER_OCTAVE];
            self.lowest_of_octave[octave] = classes.iter().fold(NONE, |lowest, &run| lowest.min(run));
        }
    }

    /// Moves a run whose length changed to its new class.
    #[inline]
    fn change(&mut self, from: usize, to: usize, last: usize) {
        if from != to {
            self.remove(from, last);
            self.insert(to, last);
        }
    }

    /// Removes all runs.
    fn clear(&mut self) {
        for class in 0..CLASSES {
            while self.lowest[class] != NONE {
                self.remove(class, self.lowest[class] as usize);
            }
        }
    }
}
