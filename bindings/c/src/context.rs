//! Contexts: opened devices.

use crate::call::asked;
use crate::gpu::adead_device_kind;
use crate::hardware::adead_contract_level;
use crate::pointers::{Out, fail, fixed, growing, reference, report, text};
use crate::status::{adead_status, guard, guard_destroy};
use adead_c_support::context::{adead_context_options, open};
use adead_core::hal::DeviceInfo;
use adead_core::{Context, TensorCacheUse};
use std::ffi::c_char;

/// Opened devices. Threads may share one.
pub struct adead_context(pub(crate) Context);

/// What a device is. The caller sets `struct_size`; texts end with NUL and are cut if they are longer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_device_info {
    /// `sizeof(adead_device_info)`.
    pub struct_size: usize,
    /// Bytes of memory, 0 where unknown.
    pub memory: u64,
    /// Execution units that work at once: threads, multiprocessors.
    pub units: u32,
    /// How it keeps the arithmetic contract: `ADEAD_CONTRACT_…`.
    pub contract: adead_contract_level,
    /// How to open it: "cpu", "cuda:0", "vulkan:1".
    pub id: [c_char; 32],
    /// What its kernels are built for: an instruction set, a compute capability.
    pub arch: [c_char; 32],
    /// What its maker calls it.
    pub name: [c_char; 128],
    /// What kind it is: `ADEAD_KIND_…`.
    pub kind: adead_device_kind,
    /// Whether `uuid` is there: 0 or 1; 0 for a processor.
    pub has_uuid: i32,
    /// What names this very device among all, as the driver has it.
    pub uuid: [u8; 16],
    /// Its maker.
    pub vendor: [c_char; 32],
    /// Its driver, with the version; "" for a processor.
    pub driver: [c_char; 128],
    /// Where it is on the PCI bus: domain, bus, device and function, as "0000:65:00.0"; "" for a processor, and where the
    /// driver does not tell.
    pub bus: [c_char; 32],
}

// SAFETY: as asked.
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

/// Opens a device by name: "auto", "cpu", "cuda" and "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a part of a
/// GPU's name, or its UUID; several as one: "hybrid" (the CPU and every GPU), or names with commas between them. NULL is what
/// `ADEAD_DEVICE` names, else what adead.toml does, else "auto". `opts` may be NULL.
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

/// Closes a context; NULL is fine. Tensors that it made stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_destroy(context: *mut adead_context) {
    guard_destroy(context);
}

/// What tensors keep on a device. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_tensor_cache_use {
    /// `sizeof(adead_tensor_cache_use)`.
    pub struct_size: usize,
    /// The most bytes that tensors keep there.
    pub budget: u64,
    /// Bytes that they keep; more than the budget only where one operation needs them.
    pub used: u64,
    /// How many tensors do.
    pub tensors: u64,
    /// How often an operand of an operation was there.
    pub hits: u64,
    /// How often one had to be moved there.
    pub misses: u64,
    /// How often one had to leave for others.
    pub evictions: u64,
}

// SAFETY: as asked.
growing!(unsafe adead_tensor_cache_use, 56);

/// What tensors keep on one of the context's devices, by its name; nothing on the CPU and on a GPU that was not used yet. The
/// caller sets `out->struct_size`. `invalid_argument` for a device that the context has not.
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

/// The most bytes that tensors may keep on each of the context's GPUs; half of its memory where this was not called. Those that
/// were not used for longest leave, now and when others come; no value is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_set_tensor_cache(context: *const adead_context, bytes: u64) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { reference(context, "context") }?.0.set_tensor_cache(bytes)
    })
}

/// Gives back what the context keeps for its next work: scratch memory goes to the system, worker threads finish what
/// they have begun and end, copies on GPUs of tensors that are in host memory too go. The next call takes them anew. May be called while other threads compute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_trim(context: *const adead_context) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { reference(context, "context") }?.0.trim();
        Ok(())
    })
}

/// What the context's device is. The caller sets `out->struct_size`.
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

/// How many devices the context can use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_device_count(context: *const adead_context, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(context, "context", out, |context| Ok(context.0.devices().len())) }
}

/// What device `index` of those that the context can use is. The caller sets `out->struct_size`.
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
