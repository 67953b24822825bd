//! NVIDIA's GPUs through the CUDA driver API, which is found at run time. Nothing of CUDA's toolkit or runtime is used.
//!
//! A device is used through its primary context, which other code in the process may use too.

pub(crate) mod api;
mod architectures;
mod batch;
mod cubin;
mod encoder;
mod event;
#[cfg(any(test, feature = "cts"))]
pub mod fake;
mod flow;
mod images;
mod instructions;
mod kernels;
mod memory;
mod physical;
mod ptx;
mod recording;
mod registers;
mod scratch;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod tiles;
mod transfer;
mod user;

#[cfg(test)]
pub use tiles::tests::limits as test_limits;

use super::lowering::Limits;
use super::lowering::tiles::number;
use super::{Buffer, Device, DeviceInfo, Kernel, KernelSource, MemoryUse, Priority, Stream, TileCosts, Workers};
use crate::error::{Result, fail};
use crate::fpenv::default_environment;
use api::Driver;
use memory::{Allocation, Space};
use shared::Shared;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use stream::{CudaStream, peer_of};
use user::UserKernel;
#[cfg(feature = "lend")]
use {super::Event, event::Mark, shared::DEFAULT_STREAM};

/// An opened GPU.
pub struct CudaDevice {
    shared: Arc<Shared>,
}

/// Options for opening a device.
#[derive(Default)]
pub struct Opening {
    /// Threads that help with copies from and to the host.
    pub workers: Option<Arc<dyn Workers>>,
    /// Uses this driver instead of the machine's, for tests.
    #[cfg(any(test, feature = "cts"))]
    pub(crate) driver: Option<&'static Driver>,
}

impl Opening {
    /// Makes options with threads that help with copies.
    #[allow(clippy::needless_update, reason = "there are more fields in tests")]
    pub fn with(workers: Option<Arc<dyn Workers>>) -> Opening {
        Opening { workers, ..Opening::default() }
    }

    fn driver(&self) -> Result<&'static Driver> {
        #[cfg(any(test, feature = "cts"))]
        if let Some(driver) = self.driver {
            return Ok(driver);
        }
        api::driver()
    }
}

/// Lists this machine's GPUs in the driver's order; a GPU's position is its number. `backend_unavailable` without a
/// driver or a device. A GPU that adead can't use is listed too; opening it returns an error that says why.
pub fn enumerate() -> Result<Vec<DeviceInfo>> {
    // Drivers compute on the CPU, and don't expect the caller's floating-point traps.
    let all = default_environment(|| physical::enumerate(api::driver()?))?;
    Ok(all.into_iter().map(|physical| physical.info).collect())
}

impl CudaDevice {
    /// Opens the GPU with this number.
    pub fn open(number: usize, opening: &Opening) -> Result<CudaDevice> {
        default_environment(|| {
            let all = physical::enumerate(opening.driver()?)?;
            let Some(physical) = all.get(number) else {
                fail!(BackendUnavailable, "there is no cuda:{number}: this machine has {} CUDA devices", all.len());
            };
            Ok(CudaDevice { shared: Arc::new(Shared::open(physical, opening)?) })
        })
    }

    /// Returns the number of allocations of every kind in use. 0 once everything made from the device is dropped.
    #[cfg(any(test, feature = "cts"))]
    pub fn live(&self) -> usize {
        self.shared.memory.live()
    }

    fn buffer(&self, bytes: usize) -> Result<CudaBuffer> {
        let memory = Allocation::new(&self.shared, bytes, Space::Local, "buffers")?;
        Ok(CudaBuffer { memory, shared: self.shared.clone(), bytes })
    }
}

// SAFETY: buffers, streams and kernels are types of this backend, which keep the promises of their traits.
unsafe impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.physical.info
    }

    fn reaches(&self, memory: &dyn Buffer) -> bool {
        peer_of(memory, &self.shared).is_some()
    }

    fn memory(&self) -> MemoryUse {
        let total = self.shared.physical.info.memory;
        let (held, used, live) = self.shared.memory.local();
        let (held, used) = (held as u64, used as u64);
        // Memory that is held but not in use is free for this process.
        let free = self.shared.free_memory().map_or(total.saturating_sub(used), |free| free + (held - used));
        MemoryUse { total, free, held, used, allocations: live as u64 }
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        let buffer = self.buffer(bytes)?;
        if bytes > 0 {
            let (api, address) = (self.shared.api(), buffer.memory.address);
            self.shared.run_and_wait("clearing memory", &|stream| {
                // SAFETY: whole words of an allocation that nothing else uses. `at_once` waits for the work.
                unsafe { (api.set_words)(address, 0, bytes.div_ceil(4), stream) }
            })?;
        }
        Ok(Arc::new(buffer))
    }

    fn allocate_unset(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(self.buffer(bytes)?))
    }

    #[cfg(feature = "lend")]
    fn lend(&self, after: &dyn Event, give: &mut dyn FnMut() -> Result<()>) -> Result<Arc<dyn Event>> {
        let Some(mark) = after.as_any().downcast_ref::<Mark>().filter(|mark| mark.is_of(&self.shared)) else {
            fail!(InvalidArgument, "the event is not from this opening of {}", self.shared.id());
        };
        let entered = self.shared.enter()?;
        if !mark.is_done()? {
            mark.enqueue_wait(&self.shared, DEFAULT_STREAM)?;
        }
        give()?;
        Ok(Mark::record(&self.shared, DEFAULT_STREAM, &entered)?)
    }

    unsafe fn over(&self, address: u64, bytes: usize, owner: Box<dyn Send + Sync>) -> Result<Arc<dyn Buffer>> {
        let memory = Allocation::over(&self.shared, address, bytes, owner)?;
        self.shared.wait_for_default()?;
        Ok(Arc::new(CudaBuffer { memory, shared: self.shared.clone(), bytes }))
    }

    fn wait_for_others(&self) -> Result<()> {
        self.shared.wait_for_default()
    }

    fn stream_with(self: Arc<Self>, priority: Priority) -> Result<Box<dyn Stream>> {
        Ok(Box::new(CudaStream::new(&self.shared, priority)?))
    }

    fn kernel(&self, source: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(UserKernel::new(&self.shared, source)?))
    }

    fn trim(&self) {
        self.shared.memory.trim(&self.shared, 0);
    }

    fn tiles(&self) -> Option<&TileCosts> {
        Some(&self.shared.tiles)
    }

    fn tile_of(&self, sizes: [u32; 3]) -> Option<usize> {
        number(sizes, &Limits::of_cuda(&self.shared), &self.shared.tiles)
    }
}

/// Memory on the GPU.
struct CudaBuffer {
    memory: Arc<Allocation>,
    shared: Arc<Shared>,
    bytes: usize,
}

// SAFETY: the buffer owns its allocation, which has at least `bytes` bytes at its address.
unsafe impl Buffer for CudaBuffer {
    fn size(&self) -> usize {
        self.bytes
    }

    fn device_name(&self) -> &str {
        self.shared.id()
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        None
    }

    fn device_address(&self) -> Option<u64> {
        Some(self.memory.address)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
