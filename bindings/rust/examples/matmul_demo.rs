//! Multiplies two matrices on the best GPU and compares the product with the CPU's. The kernel is the caller's own; its
//! sizes are specialization constants or push constants.
//!
//! `cargo run --release -p adead --example matmul_demo [KERNEL]`: `examples/kernels/matmul.spv`, through Vulkan, or
//! `examples/kernels/matmul.ptx`, through CUDA; their sources are in the same folder.

use adead::gpu::{Kernel, Number, PipelineOptions};
use adead::{Context, Gpu, Result, Tensor};
use std::process::ExitCode;

const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kernels/matmul.spv");
const M: usize = 300;
const N: usize = 500;
const K: usize = 400;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or(KERNEL.into());
    let ptx = path.ends_with(".ptx");
    let gpu = match if ptx { Gpu::open("cuda") } else { Gpu::new() } {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("matmul_demo: no GPU to run on: {error}");
            return ExitCode::FAILURE;
        }
    };
    let kernel = if ptx { of_ptx(&gpu, &path) } else { of_spirv(&gpu, &path) };
    match kernel.and_then(|(kernel, push)| run(&gpu, &kernel, &push)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("matmul_demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The kernel takes its sizes from the lengths of its buffers. Constants make a variant for these sizes alone.
fn of_spirv(gpu: &Gpu, path: &str) -> Result<(Kernel, Vec<u8>)> {
    let sizes = PipelineOptions::default().constant(0, M as u32).constant(1, N as u32).constant(2, K as u32);
    Ok((gpu.create_pipeline(&gpu.load_spirv(path)?, &sizes)?, Vec::new()))
}

/// This kernel of the module takes its sizes as push constants.
fn of_ptx(gpu: &Gpu, path: &str) -> Result<(Kernel, Vec<u8>)> {
    let kernel = gpu.create_pipeline(&gpu.load_ptx(path)?, &PipelineOptions::default().entry("matmul_mnk"))?;
    let push = kernel.pack(&[M, N, K].map(|size| Number::Integer(size as i128)))?;
    Ok((kernel, push))
}

fn run(gpu: &Gpu, kernel: &Kernel, push: &[u8]) -> Result<bool> {
    let x: Vec<f32> = (0..M * K).map(|i| (i % 101) as f32 / 101.0 - 0.5).collect();
    let y: Vec<f32> = (0..K * N).map(|i| (i % 103) as f32 / 103.0 - 0.5).collect();
    let (a, b, c) = (gpu.buffer(&x)?, gpu.buffer(&y)?, gpu.buffer_zeroed(M * N * 4)?);
    let groups = [N.div_ceil(16) as u32, M.div_ceil(16) as u32, 1];

    // One run to warm up, because drivers finish compiling a kernel at its first run.
    gpu.dispatch_with(kernel, &[&a, &b, &c], push, groups)?;
    gpu.wait()?;

    // The caller's own stream measures the time.
    let mut stream = gpu.stream()?;
    let begin = stream.timestamp()?;
    stream.dispatch(kernel, &[&a, &b, &c], push, groups)?;
    let end = stream.timestamp()?;
    stream.synchronize()?;
    let ns = end.since(&begin)? as f64;

    // The kernel sums in its own order and is not an operation of adead, so the last bits may differ.
    let cpu = Context::open("cpu")?;
    let expected = cpu.matmul(&Tensor::new(&x, &[M, K])?, &Tensor::new(&y, &[K, N])?)?.to_vec::<f32>()?;
    let mut most = 0.0f64;
    for (i, (found, expected)) in c.to_vec::<f32>()?.iter().zip(&expected).enumerate() {
        let difference = (f64::from(*found) - f64::from(*expected)).abs();
        if difference.is_nan() || difference > 1e-4 {
            eprintln!("matmul_demo: element {i} is {found} and must be {expected}");
            return Ok(false);
        }
        most = most.max(difference);
    }
    let info = gpu.device_info();
    println!("device  {} ({}, {})", info.name, info.id, info.driver);
    let gflops = 2.0 * (M * N * K) as f64 / ns;
    println!("matmul  [{M}, {K}] by [{K}, {N}] in {:.3} ms, {gflops:.1} GFLOP/s", ns / 1e6);
    println!("checked all of {} elements: the largest difference to the CPU's is {most:.1e}", M * N);
    Ok(true)
}
