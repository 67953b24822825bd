//! Host memory: [`DeterministicAllocator`] for long-lived allocations, [`ArenaAllocator`] for scratch.
//!
//! Neither depends on addresses, time or threads, so the same calls give the same positions on every machine. Both get
//! zeroed memory from the system in large regions, which use only address space until they are written. When the system
//! has no memory left, both return `out_of_memory` and never abort. `docs/memory.md` has the algorithms, bounds and
//! proofs.
//!
//! This file has what both are built on: a `Region` of lazily mapped memory, and the `Runs` of free blocks.

mod arena;
mod deterministic;
pub(crate) mod host;
pub(crate) mod pool;
pub(crate) mod results;

pub use arena::{ArenaAllocator, MAX_ALIGN, Scope};
pub use deterministic::{DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, DeterministicAllocator, MAX_BLOCKS};

use crate::error::{Error, Result, Status, fail};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Memory that the system or a driver refused: a detail of `out_of_memory` errors ([`Error::detail`]).
#[cfg(feature = "details")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryRefused {
    /// The bytes that were asked for.
    pub bytes: usize,
    /// The bytes that were free on the device, if the driver reported them.
    pub free: Option<u64>,
}

/// Types without padding or drop, for which all-zero bytes are a valid value.
///
/// # Safety
/// All three must hold for the implementing type.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: integers have no padding and no drop, and all-zero bytes are the integer 0.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Zeroed memory of a fixed length that the system maps lazily, at the requested alignment.
pub(crate) struct Region<T: Plain> {
    start: NonNull<T>,
    len: usize,
    raw: NonNull<u8>,
    layout: Layout,
    owns: PhantomData<T>,
}

// SAFETY: a region owns its memory. It shares the memory only under the borrow rules or through raw pointers.
unsafe impl<T: Plain + Send> Send for Region<T> {}
// SAFETY: as above; `&Region` only reads or hands out raw pointers.
unsafe impl<T: Plain + Sync> Sync for Region<T> {}

impl<T: Plain> Region<T> {
    /// Allocates `len` zeros, at least one, at a multiple of `align`, a power of two. `out_of_memory` if the system
    /// refuses.
    pub(crate) fn new(len: usize, align: usize) -> Result<Region<T>> {
        // What malloc aligns to everywhere. With a stricter layout, `alloc_zeroed` would write the zeros itself and so
        // touch every page. Allocating `align` bytes more and rounding the address up avoids that.
        const NATURAL: usize = 16;
        let slack = if align > NATURAL { align } else { 0 };
        let bytes = len.max(1).checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(slack));
        let Some(layout) = bytes.and_then(|bytes| Layout::from_size_align(bytes, NATURAL).ok()) else {
            fail!(
                OutOfMemory,
                "can't allocate {len} elements of {} bytes: the address space is too small",
                size_of::<T>()
            );
        };
        // SAFETY: the layout's size is not zero.
        let Some(raw) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            let bytes = layout.size();
            let text = format_args!("can't allocate {bytes} bytes of host memory: refused by the system");
            let error = Error::formatted(Status::OutOfMemory, text);
            #[cfg(feature = "details")]
            let error = error.with_detail(MemoryRefused { bytes, free: None });
            return Err(error);
        };
        let shift = if slack > 0 { raw.addr().get().wrapping_neg() & (align - 1) } else { 0 };
        // SAFETY: `shift` is below `align` and is 0 unless the allocation is `align` bytes longer than `len` elements.
        let start = unsafe { raw.add(shift) }.cast();
        Ok(Region { start, len: len.max(1), raw, layout, owns: PhantomData })
    }

    /// Returns the address of the first element, valid for reads and writes of [`Region::len`] elements.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<T> {
        self.start
    }

    /// Returns the number of elements.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns all elements. Not for a region whose parts were lent out through [`Region::start`].
    #[inline]
    pub(crate) fn all(&self) -> &[T] {
        // SAFETY: `start` is valid for `len` initialised elements, aligned, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Returns all elements, to write. Not for a region whose parts were lent out through [`Region::start`].
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

/// Classes per octave, as a power of two: a class starts at the run lengths 4, 5, 6, 7, then 8, 10, 12, 14, and so on.
const FINE: u32 = 2;
const PER_OCTAVE: usize = 1 << FINE;
/// The number of octaves with their own classes. The last class takes all longer runs.
const OCTAVES: usize = 16;
const CLASSES: usize = OCTAVES * PER_OCTAVE;
/// Stands for "no run": larger than any block's number.
const NONE: u32 = u32::MAX;

/// The free runs of a [`DeterministicAllocator`], by class of length. A run is named by its last block, because that
/// block stays the same while blocks are taken from the front of the run or returned there.
///
/// Each class has a bitmap with one bit per block. In the levels above, a bit says that 64 bits below are not all 0.
/// The words of all classes for the same blocks lie side by side. The lowest run of each class and octave is stored
/// apart.
struct Runs {
    words: Region<u64>,
    /// Where each level starts in `words`; the lowest level is first.
    levels: [usize; 5],
    height: usize,
    lowest: [u32; CLASSES + PER_OCTAVE],
    // Both arrays end with NONE, so reading beyond the last class needs no test.
    lowest_of_octave: [u32; 2 * OCTAVES + 1],
}

impl Runs {
    /// Makes an empty set of runs for `blocks` blocks, at most [`MAX_BLOCKS`].
    fn new(blocks: usize) -> Result<Runs> {
        let (mut levels, mut height, mut words, mut bits) = ([0; 5], 0, 0, blocks);
        loop {
            levels[height] = words;
            height += 1;
            // One group more than the bits need, so that `next` can read beyond the last.
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

    /// Returns the class of runs of `blocks` blocks, at least 1.
    #[inline]
    fn class_of(blocks: usize) -> usize {
        let octave = blocks.ilog2();
        let within = (blocks << FINE >> octave) - PER_OCTAVE;
        (((octave as usize) << FINE) + within).min(CLASSES - 1)
    }

    /// Returns the lowest run in `class` (at most [`CLASSES`]) or any class above, or [`NONE`].
    #[inline]
    fn lowest_from(&self, class: usize) -> u32 {
        let (octave, within) = (class / PER_OCTAVE, class % PER_OCTAVE);
        let mut lowest = NONE;
        // The loops have fixed lengths, so they compile without branches.
        for (at, &run) in self.lowest[octave * PER_OCTAVE..][..PER_OCTAVE].iter().enumerate() {
            lowest = lowest.min(if at >= within { run } else { NONE });
        }
        for &run in &self.lowest_of_octave[octave + 1..][..OCTAVES] {
            lowest = lowest.min(run);
        }
        lowest
    }

    /// Returns the lowest run in `class`, or [`NONE`].
    #[inline]
    fn lowest_in(&self, class: usize) -> u32 {
        self.lowest[class]
    }

    /// Iterates over all runs in `class`, the lowest first.
    fn all_in(&self, class: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.next(class, 0), move |&run| self.next(class, run + 1))
    }

    /// Returns the lowest run in `class` that ends at block `from` or later.
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
