//! Host memory for tensors and scratch: aligned to a cache line, allocated without ever aborting.

use crate::error::{Error, Result, Status, fail};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Every allocation begins on a multiple of this.
pub const ALIGNMENT: usize = 64;

/// The alignment that allocators give without being asked.
const OWN: usize = 16;

/// What is asked of the allocator for `size` bytes.
#[inline]
fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(ALIGNMENT - OWN)?, OWN).ok()
}

/// Bytes from which memory is asked for in large pages: columns of a matrix that large touch more pages than a processor
/// remembers.
const LARGE: usize = 4 << 20;

/// Asks the system for large pages where it gives them only when asked, as most Linux systems are set up.
#[cold]
#[inline(never)]
fn ask_for_large_pages(start: NonNull<u8>, size: usize) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
        }
        const MADV_HUGEPAGE: i32 = 14;
        /// No page of Linux is larger, unless it is a large page.
        const PAGE: usize = 64 << 10;
        let skipped = start.as_ptr().addr().wrapping_neg() % PAGE;
        // SAFETY: whole pages inside the allocation, which is larger than a page; advice changes no contents, and where it
        // is refused nothing is lost.
        unsafe { madvise(start.as_ptr().add(skipped), (size - skipped) / PAGE * PAGE, MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, size);
}

#[cold]
#[inline(never)]
fn refused(size: usize) -> Error {
    let why = if layout(size).is_none() { "more than any process can address" } else { "refused by the system" };
    Error::new(Status::OutOfMemory, format!("{size} bytes of host memory were asked for: {why}"))
}

/// Owned host memory.
pub struct HostBuffer {
    data: NonNull<u8>,
    /// Where the allocation begins, a little before `data`: an allocator is several times as fast where it is not asked
    /// for an alignment beyond its own, and gets zeros from the system only then.
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: it owns its memory, as a Box<[u8]> would.
unsafe impl Send for HostBuffer {}
// SAFETY: as above; writing goes through raw pointers whose users vouch for exclusivity.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Memory whose contents are zero.
    pub fn zeroed(size: usize) -> Result<HostBuffer> {
        // SAFETY: `allocate` passes a layout whose size is not zero.
        Self::allocate(size, |layout| unsafe { alloc_zeroed(layout) })
    }

    /// Memory that the caller writes before reading it.
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
        // SAFETY: the start is aligned to OWN, so that at most ALIGNMENT - OWN bytes are skipped, which are there.
        Ok(HostBuffer { data: unsafe { start.add(skipped) }, start, size })
    }

    /// The first byte.
    #[inline]
    pub fn pointer(&self) -> NonNull<u8> {
        self.data
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.size
    }

    /// Whether it has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.size) {
            // SAFETY: what `allocate` got for this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// What a mutex guards, unless somebody has had it for long: in a forked child that may be a thread of its parent's, which will
/// never give it back.
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

/// Scratch memory that kernels borrow before they write anything, so that running out changes nothing. Buffers are kept
/// and reused, the largest first.
#[derive(Default)]
pub struct ScratchPool(Mutex<Vec<HostBuffer>>);

/// Borrowed scratch; it goes back when dropped.
pub struct Scratch<'a> {
    pool: &'a ScratchPool,
    buffer: Option<HostBuffer>,
}

impl ScratchPool {
    /// More kept than this is given back to the system.
    const KEPT: usize = 64;

    /// Gives what is kept back to the system.
    pub fn trim(&self) {
        drop(lock_unless_stuck(&self.0).map(|mut kept| std::mem::take(&mut *kept)));
    }

    /// At least `floats` f32 of uninitialised scratch.
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
                // One that was too small makes room for the larger one.
                kept.pop();
                drop(kept);
                HostBuffer::uninitialised(size.next_multiple_of(4096))?
            }
        };
        Ok(Scratch { pool: self, buffer: Some(buffer) })
    }
}

impl Scratch<'_> {
    /// The first value.
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
