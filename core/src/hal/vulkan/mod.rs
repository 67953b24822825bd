//! GPUs through Vulkan 1.2. The loader is found at run time; nothing of it is needed to build or to run on the CPU.
//!
//! What a device must have: timeline semaphores, buffer device addresses, scalar block layouts, 128 bytes of push constants.
//! Operations' kernels take addresses as push constants and no descriptors; users' kernels have descriptors.

mod api;
mod beside;
mod encoder;
mod logical;
mod memory;
mod packing;
mod physical;
mod pipelines;
mod probe;
mod recorder;
mod shaders;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod timeline;
mod user;

use super::{Buffer, Device, DeviceInfo, Kernel, KernelSource, MemoryUse, Priority, Recording, Slice, Stream, Workers};
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

/// How to open a device.
#[derive(Default)]
pub struct Opening {
    /// Where the pipeline cache is kept; `None` keeps none.
    pub cache: Option<PathBuf>,
    /// Help with copies from and to the host.
    pub workers: Option<Arc<dyn Workers>>,
    /// Leaves users' kernels unchecked (`robustBufferAccess` off), to measure what the checks cost.
    pub unchecked: bool,
    /// Changes functions before they are used: a test's faults.
    #[cfg(any(test, feature = "cts"))]
    pub faults: Option<fn(&mut api::DeviceApi)>,
    /// Uses no transfer queue and no push descriptors though they are there: the other ways want testing too.
    #[cfg(any(test, feature = "cts"))]
    pub plain: bool,
    /// Marks tell how far streams are, though the device is a program.
    #[cfg(any(test, feature = "cts"))]
    pub marks: bool,
}

impl Opening {
    /// With a folder for the pipeline cache, and threads that help.
    pub fn with(cache: Option<PathBuf>, workers: Option<Arc<dyn Workers>>) -> Opening {
        Opening { cache, workers, ..Opening::default() }
    }

    /// Whether the process's logical device will do.
    fn shares(&self) -> bool {
        #[cfg(any(test, feature = "cts"))]
        if self.faults.is_some() || self.plain || self.marks {
            return false;
        }
        !self.unchecked
    }
}

/// A GPU, opened.
pub struct VulkanDevice {
    shared: Arc<Shared>,
}

/// What the GPUs of this machine are, the preferred one first: their position is their number. `backend_unavailable` where there
/// is no Vulkan. A device that lacks what is needed is among them, and opening it says what.
pub fn enumerate() -> Result<Vec<DeviceInfo>> {
    Ok(physical::enumerate()?.iter().enumerate().map(|(i, physical)| Shared::describe(physical, id(i))).collect())
}

fn id(index: usize) -> String {
    format!("vulkan:{index}")
}

impl VulkanDevice {
    /// Opens the GPU of that number.
    pub fn open(index: usize, opening: &Opening) -> Result<VulkanDevice> {
        let all = physical::enumerate()?;
        let Some(physical) = all.get(index) else {
            fail!(BackendUnavailable, "there is no vulkan:{index}: this machine has {} of them", all.len());
        };
        VulkanDevice::of(physical, id(index), opening)
    }

    fn of(physical: &Physical, id: String, opening: &Opening) -> Result<VulkanDevice> {
        Ok(VulkanDevice { shared: Arc::new(Shared::open(physical, id, opening)?) })
    }

    /// Whether it is a program on the processor, which is only used when asked for.
    pub fn is_software(&self) -> bool {
        self.shared.is_software()
    }

    /// Allocations of every kind that are in use through this opening: none when nothing of it is.
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

// SAFETY: what it makes is its own, and does what the traits say.
unsafe impl Device for VulkanDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn memory(&self) -> MemoryUse {
        let (total, free) = self.shared.physical.memory_now();
        let (held, taken) = self.shared.memory.local();
        let (used, live) = self.shared.uses.of(Space::Local);
        // What is held and idle is free for this process.
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
}

/// Memory on a GPU.
struct VulkanBuffer {
    memory: Arc<Allocation>,
    shared: Arc<Shared>,
    bytes: usize,
}

// SAFETY: the host can't address it; its allocation, which has as many bytes, stays with it.
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

/// A command buffer to submit again.
struct VulkanRecording(Arc<Recorder>);

// SAFETY: `as_any` is itself.
unsafe impl Recording for VulkanRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
