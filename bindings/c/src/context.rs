//! Contexts: opened devices.

use crate::call::{asked, made};
use crate::gpu::adead_device_kind;
use crate::hardware::adead_contract_level;
use crate::pointers::{Out, fail, fixed, growing, reference, report, text};
use crate::status::{adead_status, guard, guard_destroy};
use adead_c_support::context::{self, adead_context_options, adead_precision, open};
use adead_core::hal::DeviceInfo;
use adead_core::{Context, TensorCacheUse};
use std::ffi::c_char;

/// The devices that a program has opened. Threads may share one context.
pub struct adead_context(pub(crate) Context);

/// A description of a device. The caller sets `struct_size`. Texts end with NUL and are cut if they are too long.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_device_info {
    /// `sizeof(adead_device_info)`.
    pub struct_size: usize,
    /// Bytes of memory; 0 if unknown.
    pub memory: u64,
    /// The number of execution units that work at the same time: threads or multiprocessors.
    pub units: u32,
    /// How the device keeps the arithmetic contract: `ADEAD_CONTRACT_…`.
    pub contract: adead_contract_level,
    /// The name that opens it: "cpu", "cuda:0", "vulkan:1".
    pub id: [c_char; 32],
    /// The target of its kernels: an instruction set or a compute capability.
    pub arch: [c_char; 32],
    /// The vendor's name for it.
    pub name: [c_char; 128],
    /// Its kind: `ADEAD_KIND_…`.
    pub kind: adead_device_kind,
    /// Whether `uuid` is valid: 0 or 1. It is 0 for a CPU.
    pub has_uuid: i32,
    /// The device's unique identifier, as the driver reports it.
    pub uuid: [u8; 16],
    /// Its vendor.
    pub vendor: [c_char; 32],
    /// Its driver, with the version; "" for a CPU.
    pub driver: [c_char; 128],
    /// Its address on the PCI bus: domain, bus, device and function, as in "0000:65:00.0". "" for a CPU, and if the
    /// driver doesn't report it.
    pub bus: [c_char; 32],
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_device_info, 216);

pub(crate) fn device_info(struct_size: usize, info: &DeviceInfo) -> adead_device_info {
    adead_device_info {
        struct_size,
        memory: info.memory,
        units: info.units.try_into().unwrap_or(u32::MAX),
        contract: info.contract as adead_contract_level,
        id: fixed(&info.id),
        arch: fixed(&info.arch),
        name: fixed(&info.name),
        kind: info.kind as adead_device_kind,
        has_uuid: info.uuid.is_some().into(),
        uuid: info.uuid.unwrap_or_default(),
        vendor: fixed(&info.vendor),
        driver: fixed(&info.driver),
        bus: fixed(info.bus.as_deref().unwrap_or_default()),
    }
}

/// Opens a device by name. A name is "auto", "cpu", "cuda" or "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a
/// part of a GPU's name, or its UUID. "hybrid" (the CPU and every GPU), or names separated by commas, open several
/// devices as one. NULL takes the name in `ADEAD_DEVICE`, or else in adead.toml, or else "auto". `opts` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_open(
    device: *const c_char,
    opts: *const adead_context_options,
    out: *mut *mut adead_context,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let out = unsafe { Out::new(out, "out") }?;
        // SAFETY: as above.
        out.give(adead_context(unsafe { open(device, opts) }?));
        Ok(())
    })
}

/// Closes a context; NULL is allowed. Tensors that it made stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_destroy(context: *mut adead_context) {
    guard_destroy(context);
}

/// The memory of tensors' copies on a device. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_tensor_cache_use {
    /// `sizeof(adead_tensor_cache_use)`.
    pub struct_size: usize,
    /// The most bytes that tensors may keep on the device.
    pub budget: u64,
    /// Bytes that they keep now. More than the budget only while a single operation needs them.
    pub used: u64,
    /// The number of tensors that have a copy on the device.
    pub tensors: u64,
    /// How often an operation found an operand on the device.
    pub hits: u64,
    /// How often an operand had to be moved to the device.
    pub misses: u64,
    /// How often a tensor's copy was evicted for others.
    pub evictions: u64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_tensor_cache_use, 56);

/// Reports the memory that tensors use on one of the context's devices, by its name. All counts are 0 for the CPU and
/// for a GPU that was not used yet. The caller sets `out->struct_size`. `invalid_argument` for a device that the
/// context does not have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_tensor_cache(
    context: *const adead_context,
    device: *const c_char,
    out: *mut adead_tensor_cache_use,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (context, device) = (reference(context, "context")?, text(device, "device")?);
            report(out, "out", |struct_size| {
                let kept = context.0.tensor_cache(device)?;
                let TensorCacheUse { budget, used, tensors, hits, misses, evictions } = kept;
                Ok(adead_tensor_cache_use { struct_size, budget, used, tensors, hits, misses, evictions })
            })
        }
    })
}

/// Sets the most bytes that tensors may keep on each of the context's GPUs. The default is half of the GPU's memory.
/// The least recently used copies are evicted, now and when others arrive. No value is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_set_tensor_cache(context: *const adead_context, bytes: u64) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { reference(context, "context") }?.0.set_tensor_cache(bytes)
    })
}

/// Sets the default precision, which products with `ADEAD_PRECISION_DEFAULT` have. It applies to calls, pipelines and programs that start
/// or are compiled later. The initial value is the one that the context was opened with, `ADEAD_PRECISION_F32` without options. Layers keep
/// the precision that the context had when they were made. `invalid_argument` for an unknown precision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_set_precision(
    context: *const adead_context,
    precision: adead_precision,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let context = unsafe { reference(context, "context") }?;
        context.0.set_precision(context::precision(precision)?);
        Ok(())
    })
}

/// Creates a context with the same devices, threads, profile and settings, and a default precision of its own: setting it on
/// either context does not change the other. So a layer or a pipeline can have another precision than the rest of a model.
/// `invalid_argument` for an unknown precision. Close it with `adead_context_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_with_precision(
    context: *const adead_context,
    precision: adead_precision,
    out: *mut *mut adead_context,
) -> adead_status {
    let own = |context: &adead_context| Ok(adead_context(context.0.with_precision(context::precision(precision)?)));
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(context, "context", out, own) }
}

/// Returns the default precision, which `adead_context_set_precision` sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_precision(
    context: *const adead_context,
    out: *mut adead_precision,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(context, "context", out, |context| Ok(context.0.precision() as adead_precision)) }
}

/// Frees the resources that the context keeps for later work. Scratch memory returns to the system. Worker threads finish their
/// current work and exit. GPU copies of tensors whose values are also in host memory are freed. The next call allocates again
/// what it needs. Other threads may compute meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_trim(context: *const adead_context) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { reference(context, "context") }?.0.trim();
        Ok(())
    })
}

/// Describes the context's device. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_device_info(
    context: *const adead_context,
    out: *mut adead_device_info,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let context = reference(context, "context")?;
            report(out, "out", |struct_size| Ok(device_info(struct_size, context.0.device_info())))
        }
    })
}

/// Returns how many devices the context can use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_device_count(context: *const adead_context, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(context, "context", out, |context| Ok(context.0.devices().len())) }
}

/// Describes device `index` of those that the context can use. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_device_at(
    context: *const adead_context,
    index: usize,
    out: *mut adead_device_info,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let devices = reference(context, "context")?.0.devices();
            report(out, "out", |struct_size| match devices.get(index) {
                Some(info) => Ok(device_info(struct_size, info)),
                None => fail!(InvalidArgument, "index is {index}; the context has {} devices", devices.len()),
            })
        }
    })
}
