//! Host memory for tensors and scratch: [`HostBuffer`] and [`ScratchPool`]. Buffers start at a cache line, and running
//! out of memory is an error, never an abort.

use crate::error::{Error, Result, Status, fail};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Every buffer starts at a multiple of this many bytes: a cache line.
pub const ALIGNMENT: usize = 64;

/// The alignment that allocators give without a request for more.
const OWN: usize = 16;

/// Returns the layout to allocate for `size` bytes: enough to move the start up to a multiple of `ALIGNMENT`.
#[inline]
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(ALIGNMENT - OWN)?, OWN).ok()
}

/// Buffers of at least this many bytes ask for large pages. A column of so large a matrix touches more pages than a TLB
/// holds.
const LARGE: usize = 4 << 20;

/// Asks the system for large pages. Most Linux systems give them only on request.
#[cold]
#[inline(never)]
fn ask_for_large_pages(start: NonNull<u8>, size: usize) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
        }
        const MADV_HUGEPAGE: i32 = 14;
        /// Linux's largest ordinary page, over all processors.
        const PAGE: usize = 64 << 10;
        let skipped = start.as_ptr().addr().wrapping_neg() % PAGE;
        // SAFETY: the range is whole pages inside the allocation, which is larger than a page. The advice changes no
        // contents, and a refusal changes nothing.
        unsafe { madvise(start.as_ptr().add(skipped), (size - skipped) / PAGE * PAGE, MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, size);
}

#[cold]
#[inline(never)]
fn refused(size: usize) -> Error {
    let why = if layout(size).is_none() { "more than any process can address" } else { "refused by the system" };
    Error::new(Status::OutOfMemory, format!("can't allocate {size} bytes of host memory: {why}"))
}

/// Owned host memory, aligned to [`ALIGNMENT`].
pub struct HostBuffer {
    data: NonNull<u8>,
    /// The start of the allocation, a little before `data`. Allocators are several times slower when asked for more
    /// than their own alignment, and then they can't use the system's zeros either.
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: the buffer owns its memory, as a `Box<[u8]>` does.
unsafe impl Send for HostBuffer {}
// SAFETY: as above. Writes go through raw pointers, and their users vouch for exclusive access.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Allocates `size` bytes of zeros. `out_of_memory` if the system refuses.
    pub fn zeroed(size: usize) -> Result<HostBuffer> {
        // SAFETY: `allocate` passes a layout whose size is not zero.
        Self::allocate(size, |layout| unsafe { alloc_zeroed(layout) })
    }

    /// Allocates `size` bytes that the caller must write before reading. `out_of_memory` if the system refuses.
    #[inline]
    pub fn uninitialised(size: usize) -> Result<HostBuffer> {
        // SAFETY: `allocate` passes a layout whose size is not zero.
        Self::allocate(size, |layout| unsafe { alloc(layout) })
    }

    #[inline(always)]
    fn allocate(size: usize, allocator: impl FnOnce(Layout) -> *mut u8) -> Result<HostBuffer> {
        let Some(start) = layout(size).and_then(|layout| NonNull::new(allocator(layout))) else {
            return Err(refused(size));
        };
        if size >= LARGE {
            ask_for_large_pages(start, size);
        }
        let skipped = start.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        // SAFETY: the start is aligned to `OWN`, so at most `ALIGNMENT - OWN` bytes are skipped. The layout has that
        // many more.
        Ok(HostBuffer { data: unsafe { start.add(skipped) }, start, size })
    }

    /// Returns the address of the first byte.
    #[inline]
    pub fn pointer(&self) -> NonNull<u8> {
        self.data
    }

    /// Returns the size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.size
    }

    /// Returns whether the buffer has 0 bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.size) {
            // SAFETY: `allocate` got `start` from the global allocator with this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// Locks a mutex. Returns `None` if another thread holds the lock for long: in a forked child, the lock may belong to a thread of the
/// parent, which never releases it there.
pub(crate) fn lock_unless_stuck<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..1000 {
        match mutex.try_lock() {
            Ok(guarded) => return Some(guarded),
            Err(TryLockError::Poisoned(guarded)) => return Some(guarded.into_inner()),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    None
}

/// Scratch memory that kernels borrow before they write any result, so running out of memory leaves results untouched.
/// Returned buffers are kept for reuse.
#[derive(Default)]
pub struct ScratchPool(Mutex<Vec<HostBuffer>>);

/// Borrowed scratch memory. Dropping it returns it to its pool.
pub struct Scratch<'a> {
    pool: &'a ScratchPool,
    buffer: Option<HostBuffer>,
}

impl ScratchPool {
    /// The pool keeps at most this many buffers, and frees any others.
    const KEPT: usize = 64;

    /// Frees the buffers that are kept for reuse.
    pub fn trim(&self) {
        drop(lock_unless_stuck(&self.0).map(|mut kept| std::mem::take(&mut *kept)));
    }

    /// Borrows uninitialised scratch for at least `floats` f32 values. `out_of_memory` if the system refuses.
    pub fn take(&self, floats: usize) -> Result<Scratch<'_>> {
        let Some(size) = floats.checked_mul(4) else {
            fail!(OutOfMemory, "scratch for {floats} values is more than any process can address");
        };
        let Some(mut kept) = lock_unless_stuck(&self.0) else {
            return Ok(Scratch { pool: self, buffer: Some(HostBuffer::uninitialised(size)?) });
        };
        let fit = kept.iter().enumerate().filter(|(_, buffer)| buffer.len() >= size).min_by_key(|(_, b)| b.len());
        let buffer = match fit.map(|(i, _)| i) {
            Some(i) => kept.swap_remove(i),
            None => {
                // Dropping a buffer that is too small makes room for the larger one.
                kept.pop();
                drop(kept);
                HostBuffer::uninitialised(size.next_multiple_of(4096))?
            }
        };
        Ok(Scratch { pool: self, buffer: Some(buffer) })
    }
}

impl Scratch<'_> {
    /// Returns the address of the first value.
    #[inline]
    pub fn pointer(&self) -> *mut f32 {
        match &self.buffer {
            Some(buffer) => buffer.pointer().as_ptr().cast(),
            None => unreachable!("scratch holds its buffer until it is dropped"),
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Some(mut kept) = lock_unless_stuck(&self.pool.0)
            && kept.len() < ScratchPool::KEPT
        {
            kept.extend(self.buffer.take());
        }
    }
}
