//! Host memory: allocators whose offsets depend only on the calls.

use adead::memory;
use adead_node_support::args::Size;
use adead_node_support::array::{Array, bytes_of, external};
use adead_node_support::error::{fail, guard};
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates blocks of host memory by offset. The same calls give the same offsets on every machine.
#[napi]
pub struct DeterministicAllocator {
    inner: Arc<Mutex<memory::DeterministicAllocator>>,
}

/// The state of an allocator; sizes are in bytes.
#[napi(object)]
pub struct AllocatorStats {
    /// The size of a block.
    pub block_size: f64,
    /// The size of all blocks.
    pub capacity: f64,
    /// The size of the blocks in use.
    pub used: f64,
    /// The size of the free blocks, contiguous or not.
    pub available: f64,
    /// The largest allocation that succeeds, or 0 if none does.
    pub largest_free: f64,
    /// The highest end of an allocation since the start or the last reset, as an offset.
    pub high_water: f64,
    /// The number of live allocations.
    pub live: f64,
}

#[napi]
impl DeterministicAllocator {
    /// Makes an allocator of `blocks` blocks of `blockSize` bytes. `blockSize` is a power of two from 64 bytes to 1 GiB. The
    /// default is 65,536 blocks of 4 KiB. A block uses memory once it is first written.
    #[napi(constructor, ts_args_type = "blockSize?: number, blocks?: number")]
    pub fn new(env: Env, block_size: Option<Size>, blocks: Option<Size>) -> napi::Result<DeterministicAllocator> {
        guard(env, || {
            let block_size = block_size.map_or(memory::DEFAULT_BLOCK_SIZE, |size| size.0);
            let blocks = blocks.map_or(memory::DEFAULT_BLOCKS, |blocks| blocks.0);
            let inner = memory::DeterministicAllocator::with_capacity(block_size, blocks)?;
            Ok(DeterministicAllocator { inner: Arc::new(Mutex::new(inner)) })
        })
    }

    /// Allocates at least `bytes` bytes and returns their offset. `out_of_memory` if no free run of blocks is long enough.
    #[napi(ts_args_type = "bytes: number")]
    pub fn alloc(&self, env: Env, bytes: Size) -> napi::Result<f64> {
        guard(env, || Ok(lock(&self.inner).alloc(bytes.0)? as f64))
    }

    /// Frees the allocation at an offset. `invalid_argument` if none starts there; nothing changes then.
    #[napi(ts_args_type = "offset: number")]
    pub fn free(&self, env: Env, offset: Size) -> napi::Result<()> {
        guard(env, || lock(&self.inner).free(offset.0))
    }

    /// Frees all allocations. Later allocations get the offsets that a new allocator would give.
    #[napi]
    pub fn reset(&self) {
        lock(&self.inner).reset();
    }

    /// Returns the size in bytes of the allocation at an offset.
    #[napi(ts_args_type = "offset: number")]
    pub fn size(&self, env: Env, offset: Size) -> napi::Result<f64> {
        guard(env, || Ok(lock(&self.inner).size(offset.0)? as f64))
    }

    /// Returns a copy of the contents of the allocation at an offset.
    #[napi(ts_args_type = "offset: number", ts_return_type = "Uint8Array")]
    pub fn read(&self, env: Env, offset: Size) -> napi::Result<Unknown<'static>> {
        let allocator = lock(&self.inner);
        let bytes = guard(env, || allocator.bytes(offset.0))?;
        bytes_of(env, bytes)
    }

    /// Copies the bytes of an array to the beginning of the allocation at an offset.
    #[napi(ts_args_type = "offset: number, data: TypedArray")]
    pub fn write(&self, env: Env, offset: Size, data: Array) -> napi::Result<()> {
        guard(env, || {
            let allocator = lock(&self.inner);
            let (to, size) = (allocator.ptr(offset.0)?, allocator.size(offset.0)?);
            let bytes = data.bytes();
            if bytes.len() > size {
                fail!(InvalidArgument, "{} bytes don't fit in an allocation of {size}", bytes.len());
            }
            // SAFETY: the allocation has that many bytes. They may overlap the array, which may be a view of this memory;
            // `copy` allows that.
            unsafe { std::ptr::copy(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
            Ok(())
        })
    }

    /// Returns the memory of the allocation at an offset, without a copy. The allocator keeps owning it: after `free` or
    /// `reset` another allocation may use it.
    #[napi(ts_args_type = "offset: number", ts_return_type = "Uint8Array")]
    pub fn view(&self, env: Env, offset: Size) -> napi::Result<Unknown<'static>> {
        let (pointer, bytes) = guard(env, || {
            let allocator = lock(&self.inner);
            Ok((allocator.ptr(offset.0)?, allocator.size(offset.0)?))
        })?;
        external(env, pointer.as_ptr(), bytes, None, self.inner.clone())
    }

    /// Returns the state of the allocator.
    #[napi]
    pub fn stats(&self) -> AllocatorStats {
        let allocator = lock(&self.inner);
        AllocatorStats {
            block_size: allocator.block_size() as f64,
            capacity: allocator.capacity() as f64,
            used: allocator.used() as f64,
            available: allocator.available() as f64,
            largest_free: allocator.largest_free() as f64,
            high_water: allocator.high_water() as f64,
            live: allocator.live() as f64,
        }
    }
}

/// Allocates scratch memory by advancing a pointer, and releases all of it together.
#[napi]
pub struct ArenaAllocator {
    inner: Arc<Mutex<memory::ArenaAllocator>>,
}

#[napi]
impl ArenaAllocator {
    /// Makes an arena of `bytes` bytes that grows to at most `limit` bytes. Without `bytes` it allocates 64 KiB at first use.
    /// Without `limit` it grows without a limit. A limit needs `bytes`.
    #[napi(constructor, ts_args_type = "bytes?: number, limit?: number")]
    pub fn new(env: Env, bytes: Option<Size>, limit: Option<Size>) -> napi::Result<ArenaAllocator> {
        guard(env, || {
            let arena = match (bytes, limit) {
                (None, None) => memory::ArenaAllocator::new(),
                (Some(bytes), None) => memory::ArenaAllocator::with_capacity(bytes.0)?,
                (Some(bytes), Some(limit)) => memory::ArenaAllocator::with_limit(bytes.0, limit.0)?,
                (None, Some(_)) => fail!(InvalidArgument, "an arena with a limit needs an initial size"),
            };
            Ok(ArenaAllocator { inner: Arc::new(Mutex::new(arena)) })
        })
    }

    /// Returns `bytes` bytes of the arena's memory, without a copy, at a multiple of `align`, a power of two up to 4096. Fresh
    /// memory is zero. After `reset` the arena may reuse it. The memory stays valid, because the array keeps the arena alive.
    #[napi(ts_args_type = "bytes: number, align: number", ts_return_type = "Uint8Array")]
    pub fn alloc(&self, env: Env, bytes: Size, align: Size) -> napi::Result<Unknown<'static>> {
        let pointer = guard(env, || Ok(lock(&self.inner).alloc(bytes.0, align.0)?.as_mut_ptr()))?;
        external(env, pointer, bytes.0, None, self.inner.clone())
    }

    /// Releases all allocations. The arena keeps the memory.
    #[napi]
    pub fn reset(&self) {
        lock(&self.inner).reset();
    }

    /// The bytes taken, including padding between allocations.
    #[napi(getter)]
    pub fn used(&self) -> f64 {
        lock(&self.inner).used() as f64
    }

    /// The bytes that the arena holds from the system.
    #[napi(getter)]
    pub fn capacity(&self) -> f64 {
        lock(&self.inner).capacity() as f64
    }
}
