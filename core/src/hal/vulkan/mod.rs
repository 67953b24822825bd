//! GPUs through Vulkan 1.2. The loader is found at run time: neither the build nor the CPU needs it.
//!
//! A device must have timeline semaphores, buffer device addresses, scalar block layouts and 128 bytes of push
//! constants. Operations' kernels take addresses as push constants and use no descriptors; users' kernels use
//! descriptors.

mod api;
mod concurrent;
mod encoder;
mod logical;
mod memory;
mod packing;
mod physical;
mod pipelines;
mod probe;
mod recorder;
mod requirements;
mod shaders;
mod shared;
mod steps;
mod stream;
#[cfg(test)]
mod tests;
mod timeline;
mod transfer;
mod user;

use super::lowering::Limits;
use super::lowering::tiles::number;
use super::{
    Buffer, Device, DeviceInfo, Kernel, KernelSource, MemoryUse, Priority, Recording, Slice, Stream, TileCosts, Workers,
};
use crate::error::{Result, fail};
use memory::{Allocation, Space};
use physical::Physical;
use recorder::Recorder;
use shared::Shared;
use std::any::Any;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;
use stream::VulkanStream;
use user::UserKernel;

/// Options for opening a device.
#[derive(Default)]
pub struct Opening {
    /// The folder of the pipeline cache file; `None` keeps no file.
    pub cache: Option<PathBuf>,
    /// Threads that help with copies from and to the host.
    pub workers: Option<Arc<dyn Workers>>,
    /// Turns `robustBufferAccess` off, so users' kernels run unchecked: for measuring the cost of the checks.
    pub unchecked: bool,
    /// Replaces driver functions before they are used: a test's faults.
    #[cfg(any(test, feature = "cts"))]
    pub faults: Option<fn(&mut api::DeviceApi)>,
    /// Ignores the transfer queue and push descriptors, so that tests cover the code without them.
    #[cfg(any(test, feature = "cts"))]
    pub plain: bool,
    /// Uses marks for progress (see `timeline.rs`) on a software device too.
    #[cfg(any(test, feature = "cts"))]
    pub marks: bool,
}

impl Opening {
    /// Makes options with a folder for the pipeline cache, and threads that help with copies.
    pub fn with(cache: Option<PathBuf>, workers: Option<Arc<dyn Workers>>) -> Opening {
        Opening { cache, workers, ..Opening::default() }
    }

    /// Returns whether this opening can use the logical device that the process shares.
    fn shares(&self) -> bool {
        #[cfg(any(test, feature = "cts"))]
        if self.faults.is_some() || self.plain || self.marks {
            return false;
        }
        !self.unchecked
    }
}

/// An opened GPU.
pub struct VulkanDevice {
    shared: Arc<Shared>,
}

/// Lists this machine's GPUs, the preferred one first; a GPU's position is its number. `backend_unavailable` without
/// Vulkan. A GPU that lacks a needed feature is listed too; opening it returns an error that names the feature.
pub fn enumerate() -> Result<Vec<DeviceInfo>> {
    Ok(physical::enumerate()?.iter().enumerate().map(|(i, physical)| Shared::describe(physical, id(i))).collect())
}

fn id(index: usize) -> String {
    format!("vulkan:{index}")
}

impl VulkanDevice {
    /// Opens the GPU with this number.
    pub fn open(index: usize, opening: &Opening) -> Result<VulkanDevice> {
        let all = physical::enumerate()?;
        let Some(physical) = all.get(index) else {
            fail!(BackendUnavailable, "there is no vulkan:{index}: this machine has {} Vulkan devices", all.len());
        };
        VulkanDevice::of(physical, id(index), opening)
    }

    fn of(physical: &Physical, id: String, opening: &Opening) -> Result<VulkanDevice> {
        Ok(VulkanDevice { shared: Arc::new(Shared::open(physical, id, opening)?) })
    }

    /// Returns whether the GPU is a program on the processor. Contexts use such a device only when it is named.
    pub fn is_software(&self) -> bool {
        self.shared.is_software()
    }

    /// Returns the number of allocations in use through this opening. 0 once everything made from it is dropped.
    #[cfg(any(test, feature = "cts"))]
    pub fn live(&self) -> usize {
        self.shared.uses.of(Space::Local).1 + self.shared.uses.of(Space::Host).1
    }

    fn buffer(&self, bytes: usize) -> Result<VulkanBuffer> {
        Ok(VulkanBuffer {
            memory: Allocation::new(&self.shared, bytes, Space::Local, "buffers")?,
            shared: self.shared.clone(),
            bytes,
        })
    }
}

// SAFETY: buffers, streams and kernels are types of this backend, which keep the promises of their traits.
unsafe impl Device for VulkanDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn memory(&self) -> MemoryUse {
        let (total, free) = self.shared.physical.memory_now();
        let (held, taken) = self.shared.memory.local();
        let (used, live) = self.shared.uses.of(Space::Local);
        // Memory that is held but not in use is free for this process.
        let free = free.map_or(total.saturating_sub(taken as u64), |free| free + (held - taken) as u64);
        MemoryUse { total, free, held: held as u64, used: used as u64, allocations: live as u64 }
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        let buffer = self.buffer(bytes)?;
        if bytes > 0 {
            let mut stream = VulkanStream::new(&self.shared)?;
            stream.clear(Slice { buffer: &buffer, offset: 0, bytes })?;
            stream.synchronize()?;
        }
        Ok(Arc::new(buffer))
    }

    fn allocate_unset(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(self.buffer(bytes)?))
    }

    fn stream_with(self: Arc<Self>, _: Priority) -> Result<Box<dyn Stream>> {
        Ok(Box::new(VulkanStream::new(&self.shared)?))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(UserKernel::new(&self.shared, source)?))
    }

    fn trim(&self) {
        let shared = &*self.shared;
        shared.memory.trim(shared, 0);
        shared.pipelines.save(&shared.api, shared.device, &shared.physical);
    }

    fn tiles(&self) -> Option<&TileCosts> {
        Some(&self.shared.tiles)
    }

    fn tile_of(&self, sizes: [u32; 3]) -> Option<usize> {
        number(sizes, &Limits::of(&self.shared), &self.shared.tiles)
    }
}

/// Memory on the GPU.
struct VulkanBuffer {
    memory: Arc<Allocation>,
    shared: Arc<Shared>,
    bytes: usize,
}

// SAFETY: the host can't address the memory. The buffer owns its allocation, which has at least `bytes` bytes.
unsafe impl Buffer for VulkanBuffer {
    fn size(&self) -> usize {
        self.bytes
    }

    fn device_name(&self) -> &str {
        &self.shared.info.id
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A command buffer that can be submitted any number of times.
struct VulkanRecording(Arc<Recorder>);

// SAFETY: `as_any` returns `self`.
unsafe impl Recording for VulkanRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
