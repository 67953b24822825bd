//! The GPUs of this machine, and the work of a context's own stream.

use crate::buffer::adead_buffer;
use crate::context::{adead_context, adead_device_info, device_info};
use crate::kernel::{Call, adead_kernel};
use crate::pointers::{Out, fail, growing, reference, report};
use crate::status::{adead_status, guard};
use adead_core::config::Config;
use adead_core::hal::MemoryUse;
use adead_core::hardware::Gpu;
use adead_core::{Result, Status, devices};
use std::ffi::c_void;
use std::ptr::null;

/// A kind of device, one of `ADEAD_KIND_…`.
pub type adead_device_kind = i32;

/// A device's memory, in bytes. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_memory_use {
    /// `sizeof(adead_memory_use)`.
    pub struct_size: usize,
    /// All memory of the device.
    pub total: u64,
    /// Bytes that the driver reports as available to this process. If the driver reports nothing: the bytes that adead
    /// has not allocated.
    pub free: u64,
    /// Bytes that this process has allocated from the driver through adead.
    pub held: u64,
    /// Bytes of `held` in use.
    pub used: u64,
    /// The number of allocations in use.
    pub allocations: u64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_memory_use, 48);

/// Returns every GPU that may be used.
#[inline(never)]
pub(crate) fn gpus() -> Result<Vec<Gpu>> {
    match devices::gpus(&Config::load()?) {
        Err(error) if error.status() == Status::BackendUnavailable => Ok(Vec::new()),
        gpus => Ok(Gpu::join(gpus?)),
    }
}

/// Returns how many GPUs this machine has, among those that `ADEAD_VISIBLE_DEVICES` allows; 0 without a driver. A GPU
/// that both CUDA and Vulkan see counts once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_gpu_count(out: *mut usize) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(gpus()?.len());
        Ok(())
    })
}

/// Opens the best GPU, as the name "vulkan" does. Discrete GPUs come before integrated ones; a software device is used
/// only if there is no other. CUDA is used if Vulkan has no GPU. `backend_unavailable` says why there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_gpu_open(out: *mut *mut adead_context) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.give(adead_context(adead_core::Gpu::new()?.context().clone()));
        Ok(())
    })
}

/// Describes GPU `index`. 0 is the preferred one; software devices come last. The call opens no GPU. For a Vulkan GPU
/// whose arithmetic was not tested yet, the contract level is `ADEAD_CONTRACT_EMULATED`. The caller sets
/// `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_gpu_info(index: usize, out: *mut adead_device_info) -> adead_status {
    // SAFETY: passed on.
    unsafe { adead_gpu_backend_info(index, 0, out) }
}

/// Returns how many backends see GPU `index`: 2 if CUDA and Vulkan do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_gpu_backend_count(index: usize, out: *mut usize) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        out.write(gpu(index)?.backends().count());
        Ok(())
    })
}

/// Returns GPU `index`.
pub(crate) fn gpu(index: usize) -> Result<Gpu> {
    let mut gpus = gpus()?;
    if index >= gpus.len() {
        fail!(InvalidArgument, "index is {index}; there are {} GPUs", gpus.len());
    }
    Ok(gpus.swap_remove(index))
}

/// Describes GPU `index` as its backend `backend` sees it. Backend 0 is the preferred one, which `adead_gpu_info`
/// describes. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_gpu_backend_info(
    index: usize,
    backend: usize,
    out: *mut adead_device_info,
) -> adead_status {
    guard(|| {
        let make = |struct_size| {
            let gpu = gpu(index)?;
            let mut backends = gpu.backends();
            match backends.nth(backend) {
                Some(info) => Ok(device_info(struct_size, info)),
                None => fail!(InvalidArgument, "backend is {backend}; the GPU has {}", gpu.others.len() + 1),
            }
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { report(out, "out", make) }
    })
}

/// Reports the memory of the context's GPU, or of the host if the context has no GPU. The caller sets
/// `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_memory(context: *const adead_context, out: *mut adead_memory_use) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let context = reference(context, "context")?;
            report(out, "out", |struct_size| {
                let MemoryUse { total, free, held, used, allocations } = context.0.memory()?;
                Ok(adead_memory_use { struct_size, total, free, held, used, allocations })
            })
        }
    })
}

/// Enqueues a kernel over `groups[0]`·`groups[1]`·`groups[2]` workgroups, with `count` buffers in the order of set and
/// binding. The call returns without waiting. Reading a buffer waits, and so does `adead_wait`. `invalid_argument`
/// names what does not fit: the number of buffers, their sizes, the groups, missing push constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_dispatch(
    context: *const adead_context,
    kernel: *const adead_kernel,
    buffers: *const *mut adead_buffer,
    count: usize,
    groups: *const u32,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { adead_dispatch_with(context, kernel, buffers, count, null(), 0, groups) }
}

/// Works like `adead_dispatch`, and passes the `push_bytes` bytes at `push` as the kernel's push constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_dispatch_with(
    context: *const adead_context,
    kernel: *const adead_kernel,
    buffers: *const *mut adead_buffer,
    count: usize,
    push: *const c_void,
    push_bytes: usize,
    groups: *const u32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let context = reference(context, "context")?;
            let Call { kernel, buffers, push, groups } = Call::new(kernel, buffers, count, push, push_bytes, groups)?;
            context.0.dispatch_with(kernel, buffers, push, groups)
        }
    })
}

/// Waits until everything that the context has enqueued has finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_wait(context: *const adead_context) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { reference(context, "context") }?.0.wait())
}
