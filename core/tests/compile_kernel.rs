//! Kernels from their source: GLSL through glslangValidator on Vulkan, CUDA C++ through NVRTC.
#![cfg(feature = "compilers")]

mod backend;

use adead_core::gpu::{Gpu, PipelineOptions};
use adead_core::{Context, Status};
use std::process::Command;

const GLSL: &str = "\
#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint ADDED = 1;
layout(binding = 0) buffer X { uint x[]; };
void main() {
    if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] += ADDED;
}
";
const CUDA: &str = include_str!("../../examples/kernels/vecadd.cu");

fn gpu(backend: &str) -> Option<Gpu> {
    match Gpu::open(&format!("{backend}:0")) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            backend::skip(backend, &error);
            None
        }
    }
}

#[test]
fn glsl_runs_on_vulkan() {
    if backend::backend() != "vulkan" {
        return;
    }
    let Some(gpu) = gpu("vulkan") else { return };
    if Command::new("glslangValidator").arg("--version").output().is_err() {
        println!("skipped: no glslangValidator here");
        return;
    }
    let options = PipelineOptions::default().constant(3, 41);
    let kernel = gpu.compile_kernel(GLSL, "add.comp", &options).unwrap();
    let buffer = gpu.buffer(&[1u32, 2, 3]).unwrap();
    gpu.dispatch(&kernel, &[&buffer], [1, 1, 1]).unwrap();
    assert_eq!(buffer.to_vec::<u32>().unwrap(), [42, 43, 44]);
    // The message has the name and the line.
    let wrong = GLSL.replace("+= ADDED;", "+= MISSING;");
    let error = gpu.compile_kernel(&wrong, "wrong.comp", &PipelineOptions::default()).unwrap_err();
    assert_eq!(error.status(), Status::InvalidKernel);
    assert!(error.message().contains("wrong.comp:6:") && error.message().contains("MISSING"), "{error}");
}

#[test]
fn cuda_is_compiled_by_nvrtc() {
    if backend::backend() != "cuda" {
        return;
    }
    let Some(gpu) = gpu("cuda") else { return };
    let compiled = gpu.compile_kernel(CUDA, "vecadd.cu", &PipelineOptions::default());
    let kernel = match compiled {
        Err(error) if error.status() == Status::BackendUnavailable => {
            assert!(error.message().contains("none of libnvrtc.so.13, libnvrtc.so.12"), "{error}");
            assert!(std::env::var_os("ADEAD_NVRTC").is_none(), "{error}");
            println!("skipped: {error}");
            return;
        }
        compiled => compiled.unwrap(),
    };
    assert_eq!(kernel.name(), "vecadd");
    let (a, b) = (gpu.buffer(&[1.0f32, 2.0, 3.0]).unwrap(), gpu.buffer(&[0.5f32, 0.25, 4.0]).unwrap());
    let c = gpu.buffer_zeroed(12).unwrap();
    gpu.dispatch_with(&kernel, &[&a, &b, &c], &3u32.to_le_bytes(), [1, 1, 1]).unwrap();
    assert_eq!(c.to_vec::<f32>().unwrap(), [1.5, 2.25, 7.0]);
    let wrong = CUDA.replace("a[i] + b[i]", "a[i] + missing[i]");
    let error = gpu.compile_kernel(&wrong, "wrong.cu", &PipelineOptions::default()).unwrap_err();
    assert_eq!(error.status(), Status::InvalidKernel);
    assert!(error.message().contains("wrong.cu(8)") && error.message().contains("missing"), "{error}");
}

#[test]
fn a_processor_runs_no_kernels() {
    let error =
        Context::open("cpu").unwrap().compile_kernel(GLSL, "add.comp", &PipelineOptions::default()).unwrap_err();
    assert_eq!(error.status(), Status::Unsupported);
}
