//! Kernels of the caller's, from SPIR-V for Vulkan's devices, from PTX and machine code for CUDA's.

use crate::buffer::adead_buffer;
use crate::context::adead_context;
use crate::pointers::{Out, array, fail, growing, optional_text, reference, report, text};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::Result;
use adead_core::gpu::{Buffer, Kernel, PipelineOptions};
use std::ffi::{CString, c_char, c_void};

/// A kernel, compiled for a context's GPU. It never changes, so threads may share one.
pub struct adead_kernel {
    kernel: Kernel,
    name: CString,
}

/// What a dispatch of a kernel must give. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_kernel_details {
    /// `sizeof(adead_kernel_details)`.
    pub struct_size: usize,
    /// The entry point. It belongs to the kernel.
    pub name: *const c_char,
    /// The number of buffers.
    pub parameter_count: usize,
    /// Bytes of push constants, 0 without any.
    pub push_bytes: usize,
    /// Threads of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// 0.
    pub reserved: u32,
}

// SAFETY: as asked; it is only written.
growing!(unsafe adead_kernel_details, 48);

/// A buffer of a kernel. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_parameter {
    /// `sizeof(adead_parameter)`.
    pub struct_size: usize,
    /// The least bytes that a buffer for it has.
    pub least: u64,
    /// Bytes of an element of its array of any length, 0 without one: what a buffer has beyond `least` must be a
    /// multiple of it.
    pub stride: u64,
    /// Its descriptor set.
    pub set: u32,
    /// Its binding.
    pub binding: u32,
    /// Not 0: the kernel declares that it never writes it.
    pub readonly: i32,
    /// 0.
    pub reserved: i32,
}

// SAFETY: as asked.
growing!(unsafe adead_parameter, 40);

/// A specialization constant of a kernel.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_constant {
    /// Its number.
    pub id: u32,
    /// Its value: integers and booleans as they are, a float by its bits.
    pub value: u32,
}

/// A checked call of a kernel.
pub(crate) struct Call<'a> {
    pub kernel: &'a Kernel,
    pub buffers: &'a [&'a Buffer],
    pub push: &'a [u8],
    pub groups: [u32; 3],
}

impl<'a> Call<'a> {
    /// # Safety
    /// The pointers are NULL or what their types and counts say; `groups` has three values.
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
        // SAFETY: none is NULL, and a handle is the address of its Buffer.
        let buffers = unsafe { std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        Ok(Call { kernel: &kernel.kernel, buffers, push, groups: [groups[0], groups[1], groups[2]] })
    }
}

fn handle(kernel: Kernel) -> adead_kernel {
    adead_kernel { name: CString::new(kernel.name()).unwrap_or_default(), kernel }
}

/// A kernel from a SPIR-V file: its entry point "main", else its first, with every specialization constant at its
/// default. `io` if the file can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported`
/// if it needs what the device has not.
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

/// A kernel from the `bytes` bytes of a SPIR-V module at `data`, at any address.
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

/// A kernel from a PTX file, its first: its leading 64-bit parameters are buffers, the rest push constants. `io` if the
/// file can't be read, `invalid_kernel` if it is malformed or the driver refuses it, `unsupported` if it needs what the
/// device or its driver has not; and on a Vulkan device, with the CUDA device that is the same GPU.
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

/// A kernel from the `bytes` bytes of PTX at `data`, with or without a zero at the end: the one called `entry`, or with
/// NULL the first, with workgroups of `workgroup[0]`·`workgroup[1]`·`workgroup[2]` threads, or with NULL of as many as it
/// says. `invalid_argument` for an entry point that it does not have, or for threads that it does not take or that
/// nobody says.
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

/// `adead_kernel_load_ptx` from a cubin, which is machine code for one architecture, or a fatbin, which may have code for
/// several and PTX. `unsupported` where none of it is for the device; a fatbin also needs a driver of CUDA 12.4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_load_cubin(
    context: *const adead_context,
    path: *const c_char,
    out: *mut *mut adead_kernel,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { adead_kernel_load_ptx(context, path, out) }
}

/// `adead_kernel_load_ptx_bytes` from a cubin or fatbin.
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

/// The module of a kernel as another kernel: with another entry point (NULL: "main", else its first), and with `count`
/// specialization constants set. `invalid_argument` for an entry point or a constant that it does not have.
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

/// Gives a kernel up; NULL is fine. Work that was enqueued with it goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_destroy(kernel: *mut adead_kernel) {
    guard_destroy(kernel);
}

/// What a dispatch of the kernel must give. The caller sets `out->struct_size`.
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

/// Buffer `index` of the kernel, in the order in which a dispatch gives them. The caller sets `out->struct_size`.
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
