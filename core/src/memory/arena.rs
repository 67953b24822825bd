//! Bump allocation with nested scopes: [`ArenaAllocator`] and its [`Scope`]. It uses host memory only.

use super::Region;
use crate::error::{Error, Result, Status, fail};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr::NonNull;

/// The largest alignment that [`ArenaAllocator::alloc`] accepts. Chunks start at multiples of it.
pub const MAX_ALIGN: usize = 4096;

/// The first chunk of [`ArenaAllocator::new`], in bytes.
const FIRST_CHUNK: usize = 64 << 10;
/// A new chunk is at most this large, unless one allocation needs more.
const LARGEST_STEP: usize = 64 << 20;
/// The highest limit an arena can have: the address space, less room for rounding up.
const LIMIT: usize = isize::MAX as usize - 2 * MAX_ALIGN;

/// Hands out scratch memory by advancing a pointer, and releases all of it together.
///
/// Memory comes in chunks. When the last chunk is full, the arena adds one as large as all previous chunks together. A
/// new chunk has at most 64 MiB, unless the first chunk or one allocation is larger. All chunks stay within the arena's
/// limit. Released chunks are kept and reused in the same order; dropping the arena frees them. Padding depends only on
/// sizes and alignments. So the same calls since the start or the last [`reset`](Self::reset) give the same
/// [`used`](Self::used). The exception is an arena that still has chunks from before a reset, which it fills first.
///
/// Allocations borrow the arena, so no allocation outlives a reset:
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
/// Reused memory keeps its previous bytes; fresh memory is zero. A failing call changes nothing.
pub struct ArenaAllocator {
    chunks: RefCell<Vec<Region<u8>>>,
    /// The index of the current chunk, its start and its length. The length is 0 before the first chunk.
    chunk: Cell<usize>,
    base: Cell<NonNull<u8>>,
    end: Cell<usize>,
    /// Bytes taken from the current chunk, and from the chunks before it.
    taken: Cell<usize>,
    before: Cell<usize>,
    capacity: Cell<usize>,
    first: usize,
    limit: usize,
}

// SAFETY: `base` points into `chunks`, which the arena owns. Everything that `alloc` lends out borrows the arena,
// so no other thread uses a chunk when the arena is sent away.
unsafe impl Send for ArenaAllocator {}

/// A position to release back to.
#[derive(Clone, Copy)]
struct Mark {
    chunk: usize,
    taken: usize,
    before: usize,
}

impl ArenaAllocator {
    /// Makes an arena that allocates 64 KiB at first use and grows without a limit.
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

    /// Makes an arena with a first chunk of `bytes` bytes that grows when the chunk is full. Errors: see
    /// [`with_limit`](Self::with_limit).
    pub fn with_capacity(bytes: usize) -> Result<ArenaAllocator> {
        ArenaAllocator::with_limit(bytes, LIMIT.max(bytes))
    }

    /// Makes an arena of `bytes` bytes that never grows.
    pub fn fixed(bytes: usize) -> Result<ArenaAllocator> {
        ArenaAllocator::with_limit(bytes, bytes)
    }

    /// Makes an arena with a first chunk of `bytes` bytes that grows to at most `limit` bytes. `invalid_argument` if
    /// `bytes` is 0 or above `limit`; `out_of_memory` if the system refuses `bytes`.
    pub fn with_limit(bytes: usize, limit: usize) -> Result<ArenaAllocator> {
        if bytes == 0 || bytes > limit {
            fail!(InvalidArgument, "an arena starts with 1 to {limit} bytes, its limit; got {bytes}");
        }
        let arena = ArenaAllocator { first: bytes, limit, ..ArenaAllocator::new() };
        arena.grow(bytes)?;
        arena.enter(0);
        Ok(arena)
    }

    /// Returns `bytes` bytes at a multiple of `align`, which is a power of two up to 4096. A request of 0 bytes takes
    /// nothing. `invalid_argument` for another alignment; `out_of_memory` at the limit, or when the system has no
    /// memory left.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "every call returns bytes that no other call does")]
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<&mut [u8]> {
        let start = self.bump(bytes, align)?;
        // SAFETY: `bump` gave these `bytes` initialised bytes to this call alone. They stay valid until `reset`, a drop
        // or the end of the scope. Each of these needs an exclusive borrow of the arena, and so does every scope begun
        // after this call.
        Ok(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })
    }

    /// Runs `body` and releases what it allocated, even if it panics. Allocations made through the [`Scope`] can't
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

    /// Releases all allocations and keeps the chunks.
    pub fn reset(&mut self) {
        self.release(Mark { chunk: 0, taken: 0, before: 0 });
    }

    /// Returns the bytes taken, including the padding between allocations.
    pub fn used(&self) -> usize {
        self.before.get() + self.taken.get()
    }

    /// Returns the bytes of all chunks.
    pub fn capacity(&self) -> usize {
        self.capacity.get()
    }

    /// Returns the start of `bytes` free bytes at a multiple of `align`, and marks them as taken.
    #[inline]
    fn bump(&self, bytes: usize, align: usize) -> Result<NonNull<u8>> {
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return Err(misaligned(align));
        }
        if bytes == 0 {
            return Ok(dangling(align));
        }
        // This addition can't overflow: a chunk is far shorter than `usize::MAX`. Its start is a multiple of
        // `MAX_ALIGN`.
        let start = (self.taken.get() + align - 1) & !(align - 1);
        if start > self.end.get() || bytes > self.end.get() - start {
            return self.bump_elsewhere(bytes);
        }
        self.taken.set(start + bytes);
        // SAFETY: `start` is within the chunk at `base`, as it is at most the chunk's length.
        Ok(unsafe { self.base.get().add(start) })
    }

    /// Takes `bytes` from a later chunk, or from a new one.
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

    /// Adds a chunk of at least `bytes` bytes and returns its index.
    fn grow(&self, bytes: usize) -> Result<usize> {
        let capacity = self.capacity.get();
        let room = self.limit - capacity;
        if bytes > room {
            let (used, limit) = (self.used(), self.limit);
            fail!(
                OutOfMemory,
                "the arena has no room for {bytes} bytes in one piece: {used} of its {capacity} bytes are taken, and its \
                 limit is {limit}; release some memory, or make the arena with a higher limit"
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

    /// Releases everything taken after `mark`.
    #[inline]
    fn release(&self, mark: Mark) {
        if mark.chunk != self.chunk.get() {
            self.enter(mark.chunk);
        }
        self.taken.set(mark.taken);
        self.before.set(mark.before);
    }

    /// Makes `chunk` the current chunk.
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

/// A part of an arena's life, made by [`ArenaAllocator::scope`]. Its allocations live for `'a`, until the scope ends.
pub struct Scope<'a> {
    // Invariant: while one `Scope` is usable, no other scope of the same arena is, nor the arena itself.
    arena: &'a ArenaAllocator,
}

impl<'a> Scope<'a> {
    /// Allocates as [`ArenaAllocator::alloc`] does. The bytes live as long as the scope.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "every call returns bytes that no other call does")]
    pub fn alloc(&self, bytes: usize, align: usize) -> Result<&'a mut [u8]> {
        let start = self.arena.bump(bytes, align)?;
        // SAFETY: as in `ArenaAllocator::alloc`. The bytes stay valid until this scope ends: inner scopes release only
        // later allocations. The bodies of inner scopes can't use this scope, because `scope` borrows it exclusively.
        Ok(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })
    }

    /// Runs `body` as [`ArenaAllocator::scope`] does. This scope's own allocations stay usable inside.
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

    /// Returns the bytes taken in the whole arena, as [`ArenaAllocator::used`] does.
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
    let text = format!("an arena aligns to powers of two up to {MAX_ALIGN}; got {align}");
    Error::new(Status::InvalidArgument, text)
}
