//! Adds two vectors on the best GPU with the caller's own kernel, and checks every sum.
//!
//! `cargo run --release -p adead --example vecadd_demo [KERNEL]`: `examples/kernels/vecadd.spv`, through Vulkan, or
//! `examples/kernels/vecadd.ptx`, through CUDA; their sources are in the same folder.

use adead::gpu::Kernel;
use adead::{Gpu, Result};
use std::process::ExitCode;

const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kernels/vecadd.spv");
const N: usize = 4 << 20;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or(KERNEL.into());
    let ptx = path.ends_with(".ptx");
    let gpu = match if ptx { Gpu::open("cuda") } else { Gpu::new() } {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("vecadd_demo: no GPU to run on: {error}");
            return ExitCode::FAILURE;
        }
    };
    let kernel = if ptx { gpu.load_ptx(path) } else { gpu.load_spirv(path) };
    match kernel.and_then(|kernel| run(&gpu, &kernel)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("vecadd_demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(gpu: &Gpu, kernel: &Kernel) -> Result<bool> {
    let x: Vec<f32> = (0..N).map(|i| i as f32 / 3.0).collect();
    let y: Vec<f32> = (0..N).map(|i| (N - i) as f32 / 7.0).collect();
    let (a, b, c) = (gpu.buffer(&x)?, gpu.buffer(&y)?, gpu.buffer_zeroed(N * 4)?);
    let (push, groups) = ((N as u32).to_ne_bytes(), [N.div_ceil(256) as u32, 1, 1]);

    // One run to warm up, because drivers finish compiling a kernel at its first run.
    gpu.dispatch_with(kernel, &[&a, &b, &c], &push, groups)?;
    gpu.wait()?;

    // The caller's own stream measures the time.
    let mut stream = gpu.stream()?;
    let begin = stream.timestamp()?;
    stream.dispatch(kernel, &[&a, &b, &c], &push, groups)?;
    let end = stream.timestamp()?;
    stream.synchronize()?;
    let ns = end.since(&begin)? as f64;

    let sums = c.to_vec::<f32>()?;
    let wrong = sums.iter().zip(x.iter().zip(&y)).position(|(sum, (x, y))| *sum != x + y);
    if let Some(i) = wrong {
        eprintln!("vecadd_demo: c[{i}] is {} and must be {}", sums[i], x[i] + y[i]);
        return Ok(false);
    }
    let info = gpu.device_info();
    println!("device  {} ({}, {})", info.name, info.id, info.driver);
    println!("vecadd  {N} sums in {:.3} ms, {:.1} GB/s", ns / 1e6, 12.0 * N as f64 / ns);
    println!("checked all of them: exact");
    Ok(true)
}
