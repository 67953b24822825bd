//! Device memory: one Vulkan buffer covers each block of a pool, so an allocation creates no Vulkan object.

use super::logical::Logical;
use super::shared::Shared;
use crate::error::{Error, Result, Status};
use crate::fpenv::DefaultEnvironment;
use crate::log::log;
#[cfg(feature = "details")]
use crate::memory::MemoryRefused;
use crate::memory::pool::{Listed, Part, Pool};
use ash::vk;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The device's own memory.
    Local,
    /// Pinned host memory, which both host and device can access.
    Host,
}

/// A block: device memory, and the buffer that covers it.
pub struct Block {
    memory: vk::DeviceMemory,
    buffer: vk::Buffer,
    address: u64,
    mapped: *mut u8,
}

// SAFETY: it holds handles, and an address that is only used through allocations.
unsafe impl Send for Block {}

/// The memory pools of a device.
pub struct Memory {
    pools: [Mutex<Pool<Block>>; 2],
    types: [u32; 2],
    families: Vec<u32>,
}

/// A part of a block. Dropping it frees the part.
pub struct Allocation {
    pub shared: Arc<Shared>,
    space: Space,
    part: Part,
    pub buffer: vk::Buffer,
    /// The host's pointer; null for local memory.
    pub mapped: *mut u8,
    /// The address that kernels use.
    pub address: u64,
}

// SAFETY: the memory stays mapped while the allocation exists. Streams decide who writes it and when.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

/// The permitted uses of a buffer.
const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw()
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw(),
);

impl Memory {
    /// Makes empty pools in the best memory types. Queues of all `families` will use the memory.
    pub fn new(types: &vk::PhysicalDeviceMemoryProperties, families: Vec<u32>) -> Result<Memory> {
        type Flags = vk::MemoryPropertyFlags;
        let list = &types.memory_types[..types.memory_type_count as usize];
        let first = |flags: Flags| list.iter().position(|kind| kind.property_flags.contains(flags));
        let visible = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        let local = first(Flags::DEVICE_LOCAL).unwrap_or(0);
        // The host reads downloads from this memory. Uncached memory would send each byte over the bus alone.
        let host = first(visible | Flags::HOST_CACHED).or_else(|| first(visible));
        let Some(host) = host else {
            return Err(Error::new(Status::BackendUnavailable, "the device has no memory that the host can map"));
        };
        Ok(Memory {
            pools: [Mutex::new(Pool::new()), Mutex::new(Pool::new())],
            types: [local as u32, host as u32],
            families,
        })
    }

    fn pool(&self, space: Space) -> MutexGuard<'_, Pool<Block>> {
        self.pools[space as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes held and the bytes in use of local memory, over all openings.
    pub fn local(&self) -> (usize, usize) {
        let pool = self.pool(Space::Local);
        (pool.held(), pool.used())
    }

    /// Describes the local memory in use by purpose, as the end of a message.
    fn uses(&self) -> String {
        let uses = self.pool(Space::Local).uses();
        if uses.is_empty() { String::new() } else { format!(": {}", Listed(&uses)) }
    }

    /// Returns idle blocks to the driver, until at most `keep` bytes are idle.
    pub fn trim(&self, logical: &Logical, keep: usize) {
        for pool in &self.pools {
            let blocks = pool.lock().unwrap_or_else(PoisonError::into_inner).trim(keep);
            blocks.into_iter().for_each(|block| logical.free_block(block));
        }
    }
}

impl Allocation {
    /// Allocates at least `bytes` bytes; `name` says what for. If the driver has no memory left, idle blocks are
    /// returned to it and it is asked again. `out_of_memory` after that.
    pub fn new(shared: &Arc<Shared>, bytes: usize, space: Space, name: &'static str) -> Result<Arc<Allocation>> {
        shared.usable()?;
        let mut pool = shared.memory.pool(space);
        let part = match pool.find(bytes, name) {
            Some(part) => part,
            None => {
                let [good, least] = pool.block_sizes(bytes);
                let mut block = shared.new_block(&shared.memory, good, space);
                if block.is_err() {
                    log!(
                        Warn,
                        "memory",
                        "{} has no {good} bytes left: returning idle memory to the driver",
                        shared.info.id
                    );
                    pool.trim(0).into_iter().for_each(|block| shared.free_block(block));
                    block = shared.new_block(&shared.memory, least, space);
                }
                let (block, size) = match block {
                    Ok(block) => block,
                    Err(result) => {
                        drop(pool);
                        return Err(shared.exhausted(bytes, result));
                    }
                };
                pool.add(block, size)?;
                let Some(part) = pool.find(bytes, name) else {
                    return Err(Error::new(Status::Internal, "a new block of memory has no room"));
                };
                part
            }
        };
        let Some(&Block { buffer, address, mapped, .. }) = pool.block(part.block) else {
            return Err(Error::new(Status::Internal, "an allocation belongs to no block"));
        };
        let mapped = if mapped.is_null() { mapped } else { mapped.wrapping_add(part.offset) };
        let address = address + part.offset as u64;
        shared.uses.add(space, part.bytes);
        Ok(Arc::new(Allocation { shared: shared.clone(), space, part, buffer, mapped, address }))
    }

    /// Returns its offset in its Vulkan buffer.
    pub fn offset(&self) -> u64 {
        self.part.offset as u64
    }

    /// Returns whether it belongs to this opening of a device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Returns the bytes that it occupies.
    pub fn bytes(&self) -> usize {
        self.part.bytes
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        self.shared.uses.remove(self.space, self.part.bytes);
        let mut pool = self.shared.memory.pool(self.space);
        pool.free(self.part);
        // Blocks from a short peak are returned to the driver. The rest is kept for later requests.
        let keep = (pool.used() / 2).max(KEEP_IDLE);
        let blocks = if pool.held() > pool.used() + 2 * keep { pool.trim(keep) } else { Vec::new() };
        drop(pool);
        blocks.into_iter().for_each(|block| self.shared.free_block(block));
    }
}

/// At least this many idle bytes are kept.
const KEEP_IDLE: usize = 512 << 20;

impl Logical {
    /// Allocates a block from the driver, and returns it with its size.
    fn new_block(&self, memory: &Memory, bytes: usize, space: Space) -> Result<(Block, usize), vk::Result> {
        let api = &self.api;
        if bytes as u64 > self.physical.max_allocation.max(1 << 30) {
            return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        let mut info = vk::BufferCreateInfo::default().size(bytes as u64).usage(USAGE);
        if memory.families.len() > 1 {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&memory.families);
        }
        let mut block =
            Block { memory: vk::DeviceMemory::null(), buffer: vk::Buffer::null(), address: 0, mapped: ptr::null_mut() };
        // SAFETY: the device is alive, the structures live until each call returns, and a block that fails half-way is
        // destroyed.
        let made = unsafe {
            (api.create_buffer)(self.device, &info, ptr::null(), &mut block.buffer).result().and_then(|()| {
                let mut requirements = vk::MemoryRequirements::default();
                (api.buffer_requirements)(self.device, block.buffer, &mut requirements);
                let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
                let mut kind = memory.types[space as usize];
                if requirements.memory_type_bits & (1 << kind) == 0 {
                    kind = requirements.memory_type_bits.trailing_zeros();
                }
                let info = vk::MemoryAllocateInfo::default()
                    .allocation_size(requirements.size)
                    .memory_type_index(kind)
                    .push_next(&mut flags);
                (api.allocate_memory)(self.device, &info, ptr::null(), &mut block.memory).result()?;
                (api.bind_buffer_memory)(self.device, block.buffer, block.memory, 0).result()?;
                if space == Space::Host {
                    let mut mapped = ptr::null_mut();
                    let flags = vk::MemoryMapFlags::empty();
                    (api.map_memory)(self.device, block.memory, 0, vk::WHOLE_SIZE, flags, &mut mapped).result()?;
                    block.mapped = mapped.cast();
                }
                let info = vk::BufferDeviceAddressInfo::default().buffer(block.buffer);
                block.address = (api.buffer_address)(self.device, &info);
                Ok(())
            })
        };
        match made {
            Ok(()) => Ok((block, bytes)),
            Err(result) => {
                self.free_block(block);
                Err(result)
            }
        }
    }

    /// Returns a block to the driver. No part of it may be in use.
    pub fn free_block(&self, block: Block) {
        if !self.opened_in_this_process() {
            return;
        }
        // SAFETY: both handles are null or of this device. No part of the block is in use, so no work uses it either.
        unsafe {
            (self.api.destroy_buffer)(self.device, block.buffer, ptr::null());
            (self.api.free_memory)(self.device, block.memory, ptr::null());
        }
    }
}

impl Shared {
    /// Makes the error for memory that the driver refused, with the numbers.
    #[cold]
    fn exhausted(&self, bytes: usize, result: vk::Result) -> Error {
        if result == vk::Result::ERROR_DEVICE_LOST {
            return self.lost();
        }
        let (total, free) = self.physical.memory_now();
        let (held, _) = self.memory.local();
        let (used, live) = self.uses.of(Space::Local);
        let free = free.unwrap_or(total.saturating_sub(held as u64));
        let name = &self.info.id;
        let text = format!(
            "{name}: no memory for {bytes} bytes: {free} of {total} bytes are free, and {live} allocations of adead have \
             {used}{}; one allocation has at most {} (Vulkan: {})",
            self.memory.uses(),
            self.physical.max_allocation,
            result.as_raw()
        );
        let error = Error::new(Status::OutOfMemory, text);
        #[cfg(feature = "details")]
        let error = error.with_detail(MemoryRefused { bytes, free: Some(free) });
        error
    }
}
