//! Device memory, and pinned host memory for copies: blocks from the driver, cut into parts.

use super::api::code;
use super::shared::Shared;
use crate::error::{Error, Result, Status, fail};
use crate::log::log;
#[cfg(feature = "details")]
use crate::memory::MemoryRefused;
use crate::memory::pool::{Listed, Part, Pool};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The device's own memory.
    Local,
    /// Pinned host memory, at the same address for host and device.
    Host,
}

/// The memory pools of a device. Blocks are named by their addresses.
pub struct Memory {
    pools: [Mutex<Pool<u64>>; 2],
}

/// A part of a block, freed when dropped; or memory of another library.
pub struct Allocation {
    shared: Arc<Shared>,
    space: Space,
    owner: Owner,
    /// The address that kernels use.
    pub address: u64,
}

/// The owner of the memory.
enum Owner {
    Pool(Part),
    /// The bytes, and the owner, which is dropped with the allocation.
    Other(usize, #[allow(dead_code, reason = "it is only dropped")] Box<dyn Send + Sync>),
}

impl Memory {
    /// Makes pools without blocks.
    pub fn new() -> Memory {
        Memory { pools: [Mutex::new(Pool::new()), Mutex::new(Pool::new())] }
    }

    fn pool(&self, space: Space) -> MutexGuard<'_, Pool<u64>> {
        self.pools[space as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes held, the bytes in use and the allocations in use of local memory.
    pub fn local(&self) -> (usize, usize, usize) {
        let pool = self.pool(Space::Local);
        (pool.held(), pool.used(), pool.live())
    }

    /// Describes the local memory in use by purpose, as the end of a message.
    fn uses(&self) -> String {
        let uses = self.pool(Space::Local).uses();
        if uses.is_empty() { String::new() } else { format!(": {}", Listed(&uses)) }
    }

    /// Returns the number of allocations in use in both spaces.
    #[cfg(any(test, feature = "cts"))]
    pub fn live(&self) -> usize {
        self.pool(Space::Local).live() + self.pool(Space::Host).live()
    }

    /// Returns idle blocks to the driver, until at most `keep` bytes are idle.
    pub fn trim(&self, shared: &Shared, keep: usize) {
        for space in [Space::Local, Space::Host] {
            let blocks = self.pool(space).trim(keep);
            shared.free_blocks(blocks, space);
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
                let mut size = good;
                let mut block = shared.new_block(good, space)?;
                if block.is_none() {
                    log!(
                        Warn,
                        "memory",
                        "{} has no {good} bytes left: returning idle memory to the driver",
                        shared.id()
                    );
                    shared.free_blocks(pool.trim(0), space);
                    size = least;
                    block = shared.new_block(least, space)?;
                }
                let Some(block) = block else {
                    drop(pool);
                    return Err(shared.exhausted(bytes, space));
                };
                if let Err(error) = pool.add(block, size) {
                    shared.free_blocks(vec![block], space);
                    return Err(error);
                }
                let Some(part) = pool.find(bytes, name) else {
                    return Err(Error::new(Status::Internal, "a new block of memory has no room"));
                };
                part
            }
        };
        let Some(&block) = pool.block(part.block) else {
            return Err(Error::new(Status::Internal, "an allocation belongs to no block"));
        };
        let address = block + part.offset as u64;
        Ok(Arc::new(Allocation { shared: shared.clone(), space, owner: Owner::Pool(part), address }))
    }

    /// Wraps device memory that another library owns. `invalid_argument` if the address is not aligned as kernels need.
    pub fn over(
        shared: &Arc<Shared>,
        address: u64,
        bytes: usize,
        owner: Box<dyn Send + Sync>,
    ) -> Result<Arc<Allocation>> {
        if !address.is_multiple_of(16) {
            fail!(
                InvalidArgument,
                "memory at {address:#x} can't be a buffer: buffers start at multiples of 16 bytes; copy it first"
            );
        }
        Ok(Arc::new(Allocation {
            shared: shared.clone(),
            space: Space::Local,
            owner: Owner::Other(bytes, owner),
            address,
        }))
    }

    /// Returns the host's pointer to pinned memory.
    pub fn host(&self) -> *mut u8 {
        debug_assert_eq!(self.space, Space::Host);
        ptr::with_exposed_provenance_mut(self.address as usize)
    }

    /// Returns whether it belongs to this opening of a device.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Returns the device that it is on.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the bytes that it occupies.
    pub fn bytes(&self) -> usize {
        match self.owner {
            Owner::Pool(part) => part.bytes,
            Owner::Other(bytes, _) => bytes,
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let Owner::Pool(part) = self.owner else { return };
        let mut pool = self.shared.memory.pool(self.space);
        pool.free(part);
        // Blocks from a short peak are returned to the driver. The rest is kept for later requests.
        let keep = (pool.used() / 2).max(KEEP_IDLE);
        let blocks = if pool.held() > pool.used() + 2 * keep { pool.trim(keep) } else { Vec::new() };
        drop(pool);
        self.shared.free_blocks(blocks, self.space);
    }
}

/// At least this many idle bytes are kept.
const KEEP_IDLE: usize = 512 << 20;

impl Shared {
    /// Allocates a block from the driver; `None` if there is no memory for it.
    fn new_block(&self, bytes: usize, space: Space) -> Result<Option<u64>> {
        /// The memory is pinned in every context.
        const PORTABLE: u32 = 1;
        let _entered = self.enter()?;
        let (mut address, mut host) = (0, ptr::null_mut());
        // SAFETY: each call writes one address.
        let result = unsafe {
            match space {
                Space::Local if bytes as u64 > self.physical.info.memory => code::OUT_OF_MEMORY,
                Space::Local => (self.api().memory_allocate)(&mut address, bytes),
                Space::Host => (self.api().host_allocate)(&mut host, bytes, PORTABLE),
            }
        };
        if space == Space::Host {
            address = host.expose_provenance() as u64;
        }
        match result {
            code::SUCCESS if address != 0 => Ok(Some(address)),
            code::SUCCESS | code::OUT_OF_MEMORY => Ok(None),
            _ => self.check(result, "taking memory").map(|()| None),
        }
    }

    /// Returns blocks to the driver. No part of them may be in use.
    fn free_blocks(&self, blocks: Vec<u64>, space: Space) {
        if blocks.is_empty() {
            return;
        }
        let Some(_entered) = self.enter_to_destroy() else { return };
        for block in blocks {
            // SAFETY: a block of this space. No part of it is in use, so no work uses it either.
            let _ = unsafe {
                match space {
                    Space::Local => (self.api().memory_free)(block),
                    Space::Host => (self.api().host_free)(ptr::with_exposed_provenance_mut(block as usize)),
                }
            };
        }
    }

    /// Makes the error for memory that the driver refused, with the numbers.
    #[cold]
    fn exhausted(&self, bytes: usize, space: Space) -> Error {
        let id = self.id();
        if space == Space::Host {
            return Error::new(Status::OutOfMemory, format!("{id}: no pinned host memory for {bytes} bytes"));
        }
        let total = self.physical.info.memory;
        let (held, used, live) = self.memory.local();
        let free = self.free_memory().unwrap_or(total.saturating_sub(held as u64));
        let text = format!(
            "{id}: no memory for {bytes} bytes: {free} of {total} bytes are free, and {live} allocations of adead have {used}{}",
            self.memory.uses()
        );
        let error = Error::new(Status::OutOfMemory, text);
        #[cfg(feature = "details")]
        let error = error.with_detail(MemoryRefused { bytes, free: Some(free) });
        error
    }
}
