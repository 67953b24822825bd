//! The allocators: deterministic blocks and arenas.

use crate::call::{asked, asked_of};
use crate::pointers::{Out, exclusive, fail, growing, reference, report};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::memory::{ArenaAllocator, DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, DeterministicAllocator};
use std::ffi::c_void;

/// An allocator of blocks in one region of host memory. The same calls give the same offsets on every machine. One
/// thread at a time may use it.
pub struct adead_allocator(DeterministicAllocator);

/// The state of an allocator. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_allocator_stats {
    /// `sizeof(adead_allocator_stats)`.
    pub struct_size: usize,
    /// Bytes of a block.
    pub block_size: usize,
    /// All bytes, free or not.
    pub capacity: usize,
    /// Bytes of the blocks in use.
    pub used: usize,
    /// Bytes of the free blocks, contiguous or not.
    pub available: usize,
    /// The largest allocation that would succeed; 0 if none would.
    pub largest_free: usize,
    /// The highest end of an allocation since the start or the last reset, as an offset.
    pub high_water: usize,
    /// The number of live allocations.
    pub live: usize,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_allocator_stats, 64);

/// Creates an allocator of `blocks` blocks (0: 65536) of `block_size` bytes (0: 4096), a power of two from 64 bytes to
/// 1 GiB. The system provides memory when it is first written. `out_of_memory` if the system refuses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_create(
    block_size: usize,
    blocks: usize,
    out: *mut *mut adead_allocator,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let or = |given, default| if given == 0 { default } else { given };
        let (block_size, blocks) = (or(block_size, DEFAULT_BLOCK_SIZE), or(blocks, DEFAULT_BLOCKS));
        out.give(adead_allocator(DeterministicAllocator::with_capacity(block_size, blocks)?));
        Ok(())
    })
}

/// Destroys an allocator and frees its memory; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_destroy(allocator: *mut adead_allocator) {
    guard_destroy(allocator);
}

/// Allocates at least `bytes` bytes and returns their offset, a multiple of the block size. 0 bytes take one block.
/// `out_of_memory` if no free run of blocks is long enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_alloc(
    allocator: *mut adead_allocator,
    bytes: usize,
    out: *mut usize,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked_of(allocator, "allocator", out, |allocator| allocator.0.alloc(bytes)) }
}

/// Frees the allocation at `offset`. `invalid_argument`, and nothing changes, if none starts there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_free(allocator: *mut adead_allocator, offset: usize) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { exclusive(allocator, "allocator") }?.0.free(offset))
}

/// Frees everything. Later allocations get the offsets that a new allocator would give.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_reset(allocator: *mut adead_allocator) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { exclusive(allocator, "allocator") }?.0.reset();
        Ok(())
    })
}

/// Returns the address of the allocation at `offset`. It is valid until the allocation is freed or the allocator is
/// reset or destroyed. Fresh memory is zero; reused memory keeps its bytes. `invalid_argument` if no allocation starts
/// there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_pointer(
    allocator: *const adead_allocator,
    offset: usize,
    out: *mut *mut c_void,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(allocator, "allocator", out, |allocator| Ok(allocator.0.ptr(offset)?.as_ptr().cast())) }
}

/// Returns the bytes of the allocation at `offset`, a multiple of the block size. `invalid_argument` if none starts
/// there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_size(
    allocator: *const adead_allocator,
    offset: usize,
    out: *mut usize,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(allocator, "allocator", out, |allocator| allocator.0.size(offset)) }
}

/// Reports the state of the allocator. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_report(
    allocator: *const adead_allocator,
    out: *mut adead_allocator_stats,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let allocator = &reference(allocator, "allocator")?.0;
            report(out, "out", |struct_size| {
                Ok(adead_allocator_stats {
                    struct_size,
                    block_size: allocator.block_size(),
                    capacity: allocator.capacity(),
                    used: allocator.used(),
                    available: allocator.available(),
                    largest_free: allocator.largest_free(),
                    high_water: allocator.high_water(),
                    live: allocator.live(),
                })
            })
        }
    })
}

/// An arena of scratch memory: an allocation advances a pointer, and a reset releases everything together. One thread
/// at a time may use it.
pub struct adead_arena(ArenaAllocator);

/// Creates an arena of `bytes` bytes that grows to at most `limit` bytes. With `bytes` 0 it allocates 64 KiB on first
/// use; with `limit` 0 it has no limit. If both are equal it never grows. `invalid_argument` if `bytes` is above
/// `limit`, or is 0 while `limit` is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_create(bytes: usize, limit: usize, out: *mut *mut adead_arena) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let arena = match (bytes, limit) {
            (0, 0) => ArenaAllocator::new(),
            (0, _) => {
                fail!(
                    InvalidArgument,
                    "bytes is 0 and limit is {limit}; an arena with a limit needs bytes, its initial size"
                )
            }
            (_, 0) => ArenaAllocator::with_capacity(bytes)?,
            _ => ArenaAllocator::with_limit(bytes, limit)?,
        };
        out.give(adead_arena(arena));
        Ok(())
    })
}

/// Destroys an arena and frees its memory; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_destroy(arena: *mut adead_arena) {
    guard_destroy(arena);
}

/// Allocates `bytes` bytes at a multiple of `align`, a power of two up to 4096. They are valid until the arena is reset
/// or destroyed. Fresh memory is zero; reused memory keeps its bytes. `out_of_memory` at the limit, or when the system
/// has no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_alloc(
    arena: *mut adead_arena,
    bytes: usize,
    align: usize,
    out: *mut *mut c_void,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked_of(arena, "arena", out, |arena| Ok(arena.0.alloc(bytes, align)?.as_mut_ptr().cast())) }
}

/// Releases all allocations. The arena keeps the memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_reset(arena: *mut adead_arena) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { exclusive(arena, "arena") }?.0.reset();
        Ok(())
    })
}

/// Returns the bytes in use, including padding between allocations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_used(arena: *const adead_arena, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(arena, "arena", out, |arena| Ok(arena.0.used())) }
}

/// Returns the bytes that the arena has taken from the system.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_capacity(arena: *const adead_arena, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(arena, "arena", out, |arena| Ok(arena.0.capacity())) }
}
