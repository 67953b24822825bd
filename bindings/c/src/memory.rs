//! The allocators: deterministic blocks and arenas.

use crate::call::{asked, asked_of};
use crate::pointers::{Out, exclusive, fail, growing, reference, report};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::memory::{ArenaAllocator, DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, DeterministicAllocator};
use std::ffi::c_void;

/// Blocks in one region of host memory: the same calls give the same offsets, on every machine. One thread at a time.
pub struct adead_allocator(DeterministicAllocator);

/// What an allocator has. The caller sets `struct_size`.
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
    /// Bytes of the free blocks, in one piece or not.
    pub available: usize,
    /// The largest allocation that succeeds, 0 if none does.
    pub largest_free: usize,
    /// The highest end of an allocation since the start or the last reset, as an offset.
    pub high_water: usize,
    /// The number of live allocations.
    pub live: usize,
}

// SAFETY: as asked.
growing!(unsafe adead_allocator_stats, 64);

/// An allocator of `blocks` blocks (0: 65536) of `block_size` bytes (0: 4096), a power of two from 64 bytes to 1 GiB.
/// Memory is used when it is first written. `out_of_memory` if the system refuses.
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

/// Gives an allocator and its memory up; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_destroy(allocator: *mut adead_allocator) {
    guard_destroy(allocator);
}

/// The offset of at least `bytes` bytes, a multiple of the block size; 0 bytes take one block. `out_of_memory` if no
/// free run of blocks is long enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_alloc(
    allocator: *mut adead_allocator,
    bytes: usize,
    out: *mut usize,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked_of(allocator, "allocator", out, |allocator| allocator.0.alloc(bytes)) }
}

/// Gives back the allocation at `offset`. `invalid_argument`, and nothing changes, if none starts there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_free(allocator: *mut adead_allocator, offset: usize) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { exclusive(allocator, "allocator") }?.0.free(offset))
}

/// Frees everything. What follows gets the offsets that a new allocator would give.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_reset(allocator: *mut adead_allocator) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { exclusive(allocator, "allocator") }?.0.reset();
        Ok(())
    })
}

/// The memory of the allocation at `offset`, until it is freed or the allocator reset or destroyed. Fresh memory is
/// zero, memory used again keeps its bytes. `invalid_argument` if none starts there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_pointer(
    allocator: *const adead_allocator,
    offset: usize,
    out: *mut *mut c_void,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(allocator, "allocator", out, |allocator| Ok(allocator.0.ptr(offset)?.as_ptr().cast())) }
}

/// The bytes of the allocation at `offset`, a multiple of the block size. `invalid_argument` if none starts there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_allocator_size(
    allocator: *const adead_allocator,
    offset: usize,
    out: *mut usize,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(allocator, "allocator", out, |allocator| allocator.0.size(offset)) }
}

/// What the allocator has. The caller sets `out->struct_size`.
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

/// Scratch memory: an allocation advances a pointer, and everything is released together. One thread at a time.
pub struct adead_arena(ArenaAllocator);

/// An arena of `bytes` bytes that grows to `limit` bytes at most. `bytes` 0: it takes 64 KiB when it is first used;
/// `limit` 0: no limit. With both the same it never grows. `invalid_argument` if `bytes` is above `limit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_create(bytes: usize, limit: usize, out: *mut *mut adead_arena) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let arena = match (bytes, limit) {
            (0, 0) => ArenaAllocator::new(),
            (0, _) => {
                fail!(InvalidArgument, "bytes is 0 and limit {limit}; an arena with a limit says where it starts")
            }
            (_, 0) => ArenaAllocator::with_capacity(bytes)?,
            _ => ArenaAllocator::with_limit(bytes, limit)?,
        };
        out.give(adead_arena(arena));
        Ok(())
    })
}

/// Gives an arena and its memory up; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_destroy(arena: *mut adead_arena) {
    guard_destroy(arena);
}

/// `bytes` bytes on a multiple of `align`, a power of two up to 4096, until the arena is reset or destroyed. Fresh
/// memory is zero, memory used again keeps its bytes. `out_of_memory` at the limit or when the system has no more.
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

/// Releases everything. The memory stays with the arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_reset(arena: *mut adead_arena) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { exclusive(arena, "arena") }?.0.reset();
        Ok(())
    })
}

/// The bytes taken, padding between allocations included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_used(arena: *const adead_arena, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(arena, "arena", out, |arena| Ok(arena.0.used())) }
}

/// The bytes that the arena has from the system.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_arena_capacity(arena: *const adead_arena, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(arena, "arena", out, |arena| Ok(arena.0.capacity())) }
}
