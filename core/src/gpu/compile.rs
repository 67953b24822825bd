//! Kernels from their source, where a compiler is found: NVRTC for CUDA devices, glslang for Vulkan devices.

mod glslang;
mod nvrtc;

use super::{Kernel, PipelineOptions};
use crate::context::Context;
use crate::error::{Result, fail};
use crate::hal::registry::{Backend, Language};

impl Context {
    /// Compiles a kernel's source for the context's GPU, and loads it: CUDA C++ on a CUDA device, GLSL of a compute shader on a Vulkan
    /// device. `name` stands for the source in the compiler's messages.
    ///
    /// CUDA C++ is compiled by NVRTC: the library that `ADEAD_NVRTC` names, or `libnvrtc` of the system or in `CUDA_HOME`. Kernels
    /// should be `extern "C"`, and without `entry` the first one is loaded. GLSL is compiled by the program that `ADEAD_GLSLANG` names,
    /// or by `glslangValidator` or `glslang` in `PATH`, for Vulkan 1.2.
    ///
    /// # Errors
    /// `invalid_kernel` with the compiler's messages, which have the lines. `backend_unavailable` if there is no compiler: it says
    /// what was looked for. `unsupported` on a processor. Those of [`load_ptx_with`](Context::load_ptx_with) and
    /// [`load_spirv_with`](Context::load_spirv_with).
    pub fn compile_kernel(&self, source: &str, name: &str, options: &PipelineOptions) -> Result<Kernel> {
        let info = self.working_device()?;
        match Backend::of(&info.id).map(|(backend, _)| backend.takes) {
            Some(Language::Cuda) => self.load_ptx_with(&nvrtc::compile(source, name, &info.arch)?, options),
            Some(Language::Spirv) => self.load_spirv_with(&glslang::compile(source, name)?, options),
            None => fail!(Unsupported, "{} runs no kernels of your own: open a GPU", info.id),
        }
    }
}
