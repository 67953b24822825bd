//! Host memory for tensors and scratch: aligned to a cache line, allocated without ever aborting.

use crate::error::{Result, fail};
use crate::hal::Buffer;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Every allocation begins on a multiple of this.
pub const ALIGNMENT: usize = 64;

/// Owned host memory.
pub struct HostBuffer {
    data: NonNull<u8>,
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
    pub fn uninitialised(size: usize) -> Result<HostBuffer> {
        // SAFETY: `allocate` passes a layout whose size is not zero.
        Self::allocate(size, |layout| unsafe { alloc(layout) })
    }

    fn allocate(size: usize, allocator: impl FnOnce(Layout) -> *mut u8) -> Result<HostBuffer> {
        let Ok(layout) = Layout::from_size_align(size.max(1), ALIGNMENT) else {
            fail!(OutOfMemory, "{size} bytes of host memory were asked for, more than any process can address");
        };
        match NonNull::new(allocator(layout)) {
            Some(data) => Ok(HostBuffer { data, size }),
            None => fail!(OutOfMemory, "{size} bytes of host memory were asked for and refused by the system"),
        }
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
        // SAFETY: the same layout that `allocate` used, which was valid.
        unsafe { dealloc(self.data.as_ptr(), Layout::from_size_align_unchecked(self.size.max(1), ALIGNMENT)) }
    }
}

impl Buffer for HostBuffer {
    fn size(&self) -> usize {
        self.size
    }

    fn device_name(&self) -> &str {
        "cpu"
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        Some(self.data)
    }
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

    /// At least `floats` f32 of uninitialised scratch.
    pub fn take(&self, floats: usize) -> Result<Scratch<'_>> {
        let Some(size) = floats.checked_mul(4) else {
            fail!(OutOfMemory, "scratch for {floats} values is more than any process can address");
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut kept = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < ScratchPool::KEPT {
            kept.extend(self.buffer.take());
        }
    }
}
