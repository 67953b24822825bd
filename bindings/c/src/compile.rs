//! Kernels from their source.

use crate::context::adead_context;
use crate::kernel::{adead_kernel, handle};
use crate::pointers::{Out, optional_text, reference, text};
use crate::status::{adead_status, guard};
use adead_core::gpu::PipelineOptions;
use std::ffi::c_char;

/// Compiles a kernel from source and loads it on the context's GPU. A CUDA device takes CUDA C++, which NVRTC compiles. A Vulkan device
/// takes a GLSL compute shader, which glslangValidator compiles. The compiler's messages call the source `name`; NULL is "kernel". `entry`
/// and `workgroup` are as for `adead_kernel_load_ptx_bytes`. `invalid_kernel` has the compiler's messages, with line numbers.
/// `backend_unavailable` if no compiler is found; `ADEAD_NVRTC` and `ADEAD_GLSLANG` may name one. `unsupported` on the CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_kernel_compile(
    context: *const adead_context,
    source: *const c_char,
    name: *const c_char,
    entry: *const c_char,
    workgroup: *const u32,
    out: *mut *mut adead_kernel,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, source, name, entry, out) = unsafe {
            let (source, name) = (text(source, "source")?, optional_text(name, "name")?);
            (reference(context, "context")?, source, name, optional_text(entry, "entry")?, Out::new(out, "out")?)
        };
        let mut options = PipelineOptions { entry: entry.map(Into::into), ..PipelineOptions::default() };
        if !workgroup.is_null() {
            // SAFETY: the caller vouches for three values.
            options.workgroup = Some(unsafe { workgroup.cast::<[u32; 3]>().read() });
        }
        out.give(handle(context.0.compile_kernel(source, name.unwrap_or("kernel"), &options)?));
        Ok(())
    })
}
