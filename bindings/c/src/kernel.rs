//! The caller's own kernels: SPIR-V for Vulkan devices, PTX and machine code for CUDA devices.

use crate::buffer::adead_buffer;
use crate::context::adead_context;
use crate::pointers::{Out, array, fail, growing, optional_text, reference, report, text};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::Result;
use adead_core::gpu::{Buffer, Kernel, PipelineOptions};
use std::ffi::{CString, c_char, c_void};

/// A kernel that was compiled for a context's GPU. It never changes, so threads may share one.
pub struct adead_kernel {
    kernel: Kernel,
    name: CString,
}

/// What a dispatch of a kernel must pass. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_kernel_details {
    /// `sizeof(adead_kernel_details)`.
    pub struct_size: usize,
    /// The entry point. The text belongs to the kernel.
    pub name: *const c_char,
    /// The number of buffers.
    pub parameter_count: usize,
    /// Bytes of push constants; 0 if it has none.
    pub push_bytes: usize,
    /// Threads of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: as `Growing` requires; it is only written.
growing!(unsafe adead_kernel_details, 48);

/// A buffer parameter of a kernel. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_parameter {
    /// `sizeof(adead_parameter)`.
    pub struct_size: usize,
    /// The smallest allowed size of a buffer for it, in bytes.
    pub least: u64,
    /// Bytes of an element of its runtime-sized array, or 0 without one. A buffer's bytes beyond `least` must be a
    /// multiple of it.
    pub stride: u64,
    /// Its descriptor set.
    pub set: u32,
    /// Its binding.
    pub binding: u32,
    /// Not 0: the kernel declares that it never writes the buffer.
    pub readonly: i32,
    /// Always 0.
    pub reserved: i32,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_parameter, 40);

/// A specialization constant of a kernel.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_constant {
    /// The constant's id.
    pub id: u32,
    /// Its value: an integer, 0 or 1 for a boolean, or the bits of a float.
    pub value: u32,
}

/// A kernel call with checked arguments.
pub(crate) struct Call<'a> {
    pub kernel: &'a Kernel,
    pub buffers: &'a [&'a Buffer],
    pub push: &'a [u8],
    pub groups: [u32; 3],
}

impl<'a> Call<'a> {
    /// # Safety
    /// The pointers are NULL or match their types and counts; `groups` has three values.
    pub unsafe fn new(
        kernel: *const adead_kernel,
        buffers: *const *mut adead_buffer,
        count: usize,
        push: *const c_void,
        push_bytes: usize,
        groups: *const u32,
    ) -> Result<Call<'a>> {
        // SAFETY: passed on.
        let (kernel, buffers, push, groups) = unsafe {
            let (kernel, buffers) = (reference(kernel, "kernel")?, array(buffers, count, "buffers")?);
            (kernel, buffers, array(push.cast::<u8>(), push_bytes, "push")?, array(groups, 3, "groups")?)
        };
        if let Some(i) = buffers.iter().position(|buffer| buffer.is_null()) {
            fail!(InvalidArgument, "buffers[{i}] is NULL");
        }
        // SAFETY: no handle is NULL, and a handle is the address of its Buffer.
        let buffers = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Ok(Call { kernel: &kernel.kernel, buffers, push, groups: [groups[0], groups[1], groups[2]] })
    }
}

pub(crate) fn handle(kernel: Kernel) -> adead_kernel {
    adead_kernel { name: CString::new(kernel.name()).unwrap_or_default(), kernel }
}

/// Loads a kernel from a SPIR-V file. The entry point is "main", or else the module's first; every specialization
/// constant has its default. `io` if the file can't be read. `invalid_kernel` if it is malformed or the driver refuses
/// it. `unsupported` if the kernel needs a feature that the device does not have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_spirv(
    context: *const adead_context,
    path: *const c_char,
    out: *mut *mut adead_kernel,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, path, out) =
            unsafe { (reference(context, "context")?, text(path, "path")?, Out::new(out, "out")?) };
        out.give(handle(context.0.load_spirv(path)?));
        Ok(())
    })
}

/// Loads a kernel from the `bytes` bytes of a SPIR-V module at `data`. The address needs no alignment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_spirv_bytes(
    context: *const adead_context,
    data: *const c_void,
    bytes: usize,
    out: *mut *mut adead_kernel,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, code, out) = unsafe {
            (reference(context, "context")?, array(data.cast::<u8>(), bytes, "data")?, Out::new(out, "out")?)
        };
        out.give(handle(context.0.load_spirv_bytes(code)?));
        Ok(())
    })
}

/// Loads the first kernel of a PTX file. Its leading 64-bit parameters are buffers, the others push constants. `io` if
/// the file can't be read. `invalid_kernel` if it is malformed or the driver refuses it. `unsupported` if it needs a
/// feature that the device or its driver does not have. On a Vulkan device, `unsupported` names the CUDA device that is
/// the same GPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_ptx(
    context: *const adead_context,
    path: *const c_char,
    out: *mut *mut adead_kernel,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, path, out) =
            unsafe { (reference(context, "context")?, text(path, "path")?, Out::new(out, "out")?) };
        out.give(handle(context.0.load_ptx(path)?));
        Ok(())
    })
}

/// Loads a kernel from the `bytes` bytes of PTX at `data`, with or without a NUL at the end. `entry` names the kernel;
/// NULL takes the first. Workgroups have `workgroup[0]`·`workgroup[1]`·`workgroup[2]` threads; with NULL, as many as
/// the PTX declares. `invalid_argument` for an unknown entry point, for a number of threads that the kernel does not
/// allow, and if neither the caller nor the PTX gives a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_ptx_bytes(
    context: *const adead_context,
    data: *const c_void,
    bytes: usize,
    entry: *const c_char,
    workgroup: *const u32,
    out: *mut *mut adead_kernel,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, code, entry, out) = unsafe {
            let (context, code) = (reference(context, "context")?, array(data.cast::<u8>(), bytes, "data")?);
            (context, code, optional_text(entry, "entry")?, Out::new(out, "out")?)
        };
        let mut options = PipelineOptions { entry: entry.map(Into::into), ..PipelineOptions::default() };
        if !workgroup.is_null() {
            // SAFETY: the caller vouches for three values.
            options.workgroup = Some(unsafe { workgroup.cast::<[u32; 3]>().read() });
        }
        out.give(handle(context.0.load_ptx_with(code, &options)?));
        Ok(())
    })
}

/// Loads a kernel as `adead_kernel_load_ptx` does, from a cubin or a fatbin. A cubin is machine code for one
/// architecture; a fatbin may hold code for several, and PTX. `unsupported` if nothing in it is for the device. A
/// fatbin also needs a driver for CUDA 12.4 or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_cubin(
    context: *const adead_context,
    path: *const c_char,
    out: *mut *mut adead_kernel,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { adead_kernel_load_ptx(context, path, out) }
}

/// Loads a kernel as `adead_kernel_load_ptx_bytes` does, from a cubin or fatbin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_cubin_bytes(
    context: *const adead_context,
    data: *const c_void,
    bytes: usize,
    entry: *const c_char,
    workgroup: *const u32,
    out: *mut *mut adead_kernel,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { adead_kernel_load_ptx_bytes(context, data, bytes, entry, workgroup, out) }
}

/// Creates another kernel from the module of a kernel, with another entry point and `count` specialization constants
/// set. An entry point of NULL is "main", or else the module's first. `invalid_argument` for an entry point or a
/// constant that the module does not have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_pipeline_create(
    context: *const adead_context,
    kernel: *const adead_kernel,
    entry: *const c_char,
    constants: *const adead_constant,
    count: usize,
    out: *mut *mut adead_kernel,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, kernel, out) =
            unsafe { (reference(context, "context")?, reference(kernel, "kernel")?, Out::new(out, "out")?) };
        // SAFETY: as above.
        let (entry, constants) = unsafe { (optional_text(entry, "entry")?, array(constants, count, "constants")?) };
        let mut options = PipelineOptions { entry: entry.map(Into::into), ..PipelineOptions::default() };
        for constant in constants {
            options.constants.push((constant.id, constant.value));
        }
        out.give(handle(context.0.create_pipeline(&kernel.kernel, &options)?));
        Ok(())
    })
}

/// Destroys a kernel; NULL is allowed. Enqueued work that uses it continues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_destroy(kernel: *mut adead_kernel) {
    guard_destroy(kernel);
}

/// Describes what a dispatch of the kernel must pass. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_info(
    kernel: *const adead_kernel,
    out: *mut adead_kernel_details,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let adead_kernel { kernel, name } = reference(kernel, "kernel")?;
            report(out, "out", |struct_size| {
                Ok(adead_kernel_details {
                    struct_size,
                    name: name.as_ptr(),
                    parameter_count: kernel.parameters().len(),
                    push_bytes: kernel.push_bytes(),
                    workgroup: kernel.workgroup(),
                    reserved: 0,
                })
            })
        }
    })
}

/// Describes buffer `index` of the kernel, in the order of a dispatch. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_parameter_at(
    kernel: *const adead_kernel,
    index: usize,
    out: *mut adead_parameter,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let parameters = reference(kernel, "kernel")?.kernel.parameters();
            report(out, "out", |struct_size| match parameters.get(index) {
                Some(parameter) => Ok(adead_parameter {
                    struct_size,
                    least: parameter.least,
                    stride: parameter.stride,
                    set: parameter.slot.0,
                    binding: parameter.slot.1,
                    readonly: parameter.readonly.into(),
                    reserved: 0,
                }),
                None => fail!(InvalidArgument, "index is {index}; the kernel has {} buffers", parameters.len()),
            })
        }
    })
}
