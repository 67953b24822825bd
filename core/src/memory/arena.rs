//! Bump allocation with nested scopes.

use super::Region;
use crate::error::{Error, Result, Status, fail};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr::NonNull;

/// The largest alignment an arena gives; its chunks start at multiples of it.
pub const MAX_ALIGN: usize = 4096;

/// The first chunk of [`ArenaAllocator::new`], in bytes.
const FIRST_CHUNK: usize = 64 << 10;
/// Chunks stop growing here, unless one allocation needs more.
const LARGEST_STEP: usize = 64 << 20;
/// The most an arena may hold: what fits in the address space, with room for rounding.
const LIMIT: usize = isize::MAX as usize - 2 * MAX_ALIGN;

/// Scratch memory: an allocation advances a pointer, and everything is released together.
///
/// Memory comes in chunks. When the last one is full, the arena takes another, as large as all before it together (at
/// most 64 MiB, or the allocation if that is larger), up to the limit it was made with. Released chunks are kept and
/// used again in the same order; dropping the arena gives them back. Padding depends on sizes and alignments only, so
/// equal calls since the start or the last [`reset`](Self::reset) give equal [`used`](Self::used), except that chunks
/// grown earlier are there already.
///
/// Allocations borrow the arena, so none can outlive a reset:
///
/// ```
/// # use adead_core::memory::ArenaAllocator;
/// # fn main() -> adead_core::Result<()> {
/// let mut arena = ArenaAllocator::new();
/// let row = arena.alloc(100, 64)?;
/// row.fill(1);
/// arena.reset();
/// assert_eq!(arena.used(), 0);
/// # Ok(()) }
/// ```
///
/// ```compile_fail,E0502
/// # use adead_core::memory::ArenaAllocator;
/// let mut arena = ArenaAllocator::new();
/// let row = arena.alloc(100, 64).unwrap();
/// arena.reset();
/// row.fill(1);
/// ```
///
/// Memory used again keeps the bytes it had; fresh memory is zero. An error changes nothing.
pub struct ArenaAllocator {
    chunks: RefCell<Vec<Region<u8>>>,
    /// The chunk that allocations come from, its memory and its length; 0 while there is none.
    chunk: Cell<usize>,
    base: Cell<NonNull<u8>>,
    end: Cell<usize>,
    /// Bytes taken from it, and from the chunks before it.
    taken: Cell<usize>,
    before: Cell<usize>,
    capacity: Cell<usize>,
    first: usize,
    limit: usize,
}

// SAFETY: `base` points into `chunks`, which the arena owns; what it lends out borrows the arena.
unsafe impl Send for ArenaAllocator {}

/// A place to return to.
#[derive(Clone, Copy)]
struct Mark {
    chunk: usize,
    taken: usize,
    before: usize,
}

impl ArenaAllocator {
    /// An arena that takes 64 KiB when it is first used, and grows without limit.
    pub fn new() -> ArenaAllocator {
        ArenaAllocator {
            chunks: RefCell::default(),
            chunk: Cell::new(0),
            base: Cell::new(dangling(MAX_ALIGN)),
            end: Cell::new(0),
            taken: Cell::new(0),
            before: Cell::new(0),
            capacity: Cell::new(0),
            first: FIRST_CHUNK,
            limit: LIMIT,
        }
    }

    /// An arena of `bytes` bytes that grows when they are taken.
    pub fn with_capacity(bytes: usize) -> Result<ArenaAllocator> {
        ArenaAllocator::with_limit(bytes, LIMIT.max(bytes))
    }

    /// An arena of `bytes` bytes that never grows.
    pub fn fixed(bytes: usize) -> Result<ArenaAllocator> {
        ArenaAllocator::with_limit(bytes, bytes)
    }

    /// An arena of `bytes` bytes that grows to `limit` bytes at most. `invalid_argument` if `bytes` is 0 or above
    /// `limit`; `out_of_memory` if the system refuses `bytes`.
    pub fn with_limit(bytes: usize, limit: usize) -> Result<ArenaAllocator> {
        if bytes == 0 || bytes > limit {
            fail!(InvalidArgument, "an arena starts with 1 byte to its limit of {limit}, not with {bytes}");
        }
        let arena = ArenaAllocator { first: bytes, limit, ..ArenaAllocator::new() };
        arena.grow(bytes)?;
        arena.enter(0);
        Ok(arena)
    }

    /// `bytes` bytes at a multiple of `align`, a power of two up to 4096; 0 bytes take nothing. `invalid_argument` for
    /// another alignment, `out_of_memory` at the limit or when the system has no more.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "every call returns bytes that no other call does")]
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<&mut [u8]> {
        let start = self.bump(bytes, align)?;
        // SAFETY: `bump` gave `bytes` initialised bytes to this call alone; they stay until `reset`, a drop or the end
        // of a scope of the arena, which all need an exclusive borrow, as does every scope begun after this call.
        Ok(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })
    }

    /// Runs `body` and releases what it allocated, also when it panics. What is allocated through the [`Scope`] can't
    /// leave it:
    ///
    /// ```
    /// # use adead_core::{Result, memory::ArenaAllocator};
    /// # fn main() -> Result<()> {
    /// let mut arena = ArenaAllocator::new();
    /// let sum = arena.scope(|outer| -> Result<u8> {
    ///     let kept = outer.alloc(4, 4)?;
    ///     outer.scope(|inner| inner.alloc(1000, 64).map(|scratch| scratch.fill(9)))?;
    ///     kept.fill(2);
    ///     Ok(kept.iter().sum::<u8>())
    /// })?;
    /// assert_eq!((sum, arena.used()), (8, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail
    /// # use adead_core::memory::ArenaAllocator;
    /// let mut arena = ArenaAllocator::new();
    /// let escaped = arena.scope(|scope| scope.alloc(4, 4).unwrap());
    /// ```
    pub fn scope<R>(&mut self, body: impl FnOnce(&mut Scope<'_>) -> R) -> R {
        Scope { arena: self }.scope(body)
    }

    /// Releases everything. The memory stays with the arena.
    pub fn reset(&mut self) {
        self.release(Mark { chunk: 0, taken: 0, before: 0 });
    }

    /// The bytes taken, padding between allocations included.
    pub fn used(&self) -> usize {
        self.before.get() + self.taken.get()
    }

    /// The bytes of all chunks.
    pub fn capacity(&self) -> usize {
        self.capacity.get()
    }

    /// Where `bytes` bytes at a multiple of `align` are, that were never given since they were last released.
    #[inline]
    fn bump(&self, bytes: usize, align: usize) -> Result<NonNull<u8>> {
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return Err(misaligned(align));
        }
        if bytes == 0 {
            return Ok(dangling(align));
        }
        // Chunks are far below `usize::MAX` and start at multiples of `MAX_ALIGN`.
        let start = (self.taken.get() + align - 1) & !(align - 1);
        if start > self.end.get() || bytes > self.end.get() - start {
            return self.bump_elsewhere(bytes);
        }
        self.taken.set(start + bytes);
        // SAFETY: `start` is below the length of the chunk at `base`.
        Ok(unsafe { self.base.get().add(start) })
    }

    /// As `bump`, from another chunk.
    #[cold]
    fn bump_elsewhere(&self, bytes: usize) -> Result<NonNull<u8>> {
        let (used, after) = (self.used(), self.chunk.get() + 1);
        let found = self.chunks.borrow().iter().skip(after).position(|chunk| chunk.len() >= bytes);
        let chunk = match found {
            Some(skipped) => after + skipped,
            None => self.grow(bytes)?,
        };
        self.enter(chunk);
        self.taken.set(bytes);
        self.before.set(used);
        Ok(self.base.get())
    }

    /// Adds a chunk of at least `bytes` bytes, and says which it is.
    fn grow(&self, bytes: usize) -> Result<usize> {
        let capacity = self.capacity.get();
        let room = self.limit - capacity;
        if bytes > room {
            let (used, limit) = (self.used(), self.limit);
            fail!(
                OutOfMemory,
                "{bytes} bytes asked for, more than is left in one piece: of the arena's {capacity} bytes \
                 {used} are taken, and it may hold {limit}; release some, or make it with a higher limit"
            );
        }
        let size = bytes.max(capacity.clamp(self.first, LARGEST_STEP.max(self.first))).min(room);
        let mut chunks = self.chunks.borrow_mut();
        if chunks.try_reserve(1).is_err() {
            fail!(OutOfMemory, "the system has no memory left for the arena's list of {} chunks", chunks.len());
        }
        chunks.push(Region::new(size, MAX_ALIGN)?);
        self.capacity.set(capacity + size);
        Ok(chunks.len() - 1)
    }

    #[inline]
    fn mark(&self) -> Mark {
        Mark { chunk: self.chunk.get(), taken: self.taken.get(), before: self.before.get() }
    }

    /// Releases what was taken after `mark`.
    #[inline]
    fn release(&self, mark: Mark) {
        if mark.chunk != self.chunk.get() {
            self.enter(mark.chunk);
        }
        self.taken.set(mark.taken);
        self.before.set(mark.before);
    }

    /// Makes `chunk` the one that allocations come from.
    fn enter(&self, chunk: usize) {
        if let Some(memory) = self.chunks.borrow().get(chunk) {
            self.chunk.set(chunk);
            self.base.set(memory.start());
            self.end.set(memory.len());
        }
    }
}

impl Default for ArenaAllocator {
    fn default() -> ArenaAllocator {
        ArenaAllocator::new()
    }
}

impl fmt::Debug for ArenaAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chunks = self.chunks.borrow().len();
        write!(f, "ArenaAllocator({} of {} bytes taken, {chunks} chunks)", self.used(), self.capacity())
    }
}

/// A part of an arena's life, from [`ArenaAllocator::scope`]. What it allocates lives for `'a`, until it ends.
pub struct Scope<'a> {
    // Invariant: while a `Scope` can be used, no other one of the same arena can, and the arena itself can't.
    arena: &'a ArenaAllocator,
}

impl<'a> Scope<'a> {
    /// As [`ArenaAllocator::alloc`], for the life of the scope.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "every call returns bytes that no other call does")]
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<&'a mut [u8]> {
        let start = self.arena.bump(bytes, align)?;
        // SAFETY: as in `ArenaAllocator::alloc`. They stay until this scope ends: scopes within it release only what
        // was taken later, and their bodies can't reach this one, which `scope` borrows exclusively.
        Ok(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })
    }

    /// As [`ArenaAllocator::scope`]; this scope's own allocations stay usable within it.
    pub fn scope<R>(&mut self, body: impl FnOnce(&mut Scope<'_>) -> R) -> R {
        struct Release<'a>(&'a ArenaAllocator, Mark);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.release(self.1);
            }
        }
        let release = Release(self.arena, self.arena.mark());
        body(&mut Scope { arena: release.0 })
    }

    /// As [`ArenaAllocator::used`].
    pub fn used(&self) -> usize {
        self.arena.used()
    }
}

#[inline]
fn dangling(align: usize) -> NonNull<u8> {
    NonNull::without_provenance(std::num::NonZero::new(align).unwrap_or(std::num::NonZero::<usize>::MIN))
}

#[cold]
fn misaligned(align: usize) -> Error {
    let text = format!("an arena aligns to powers of two up to {MAX_ALIGN}, not to {align}");
    Error::new(Status::InvalidArgument, text)
}
