//! Compares a run of elementwise operations as one kernel with the same operations as a kernel each, by a device's clock.
//! Recordings compute x·a + b, gelu, ·c, + residual in GPU memory. Rows a, b and c are broadcast.
//!
//! ```text
//! run-bench cuda:0
//! run-bench vulkan:0
//! ```
//!
//! The exit status is not 0 if results differ in a bit.

use adead_core::hal::cuda::{self, CudaDevice};
use adead_core::hal::vulkan::{self, VulkanDevice};
use adead_core::hal::{Buffer, Device, Recording, Stream};
use adead_core::{Attrs, Command, DType, Inputs, Meta, Op, Result, Shape, View, ViewMut};
use std::process::ExitCode;
use std::sync::Arc;

/// Replays between two timestamps, and the number of turns of both forms.
const REPLAYS: usize = 20;
const ROUNDS: usize = 31;

fn open(name: &str) -> Result<Arc<dyn Device>> {
    let (backend, index) = name.split_once(':').unwrap_or((name, "0"));
    let index = index.parse().unwrap_or(0);
    Ok(match backend {
        "vulkan" => Arc::new(VulkanDevice::open(index, &vulkan::Opening::default())?),
        _ => Arc::new(CudaDevice::open(index, &cuda::Opening::default())?),
    })
}

/// Numbers in [−1, 1) on the device.
fn some(device: &Arc<dyn Device>, stream: &mut dyn Stream, count: usize, seed: u32) -> Result<Arc<dyn Buffer>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let bytes: Vec<u8> = (0..count).flat_map(|_| next().to_ne_bytes()).collect();
    let buffer = device.allocate_unset(bytes.len())?;
    stream.write(&*buffer, 0, &bytes)?;
    Ok(buffer)
}

/// Nanoseconds of one replay.
fn replayed(stream: &mut dyn Stream, recording: &dyn Recording) -> Result<f64> {
    let begin = stream.timestamp()?;
    for _ in 0..REPLAYS {
        stream.replay(recording)?;
    }
    let end = stream.timestamp()?;
    stream.synchronize()?;
    Ok((end.nanoseconds()? - begin.nanoseconds()?) as f64 / REPLAYS as f64)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Measures both forms. Returns whether their bits are equal.
fn measure(device: &Arc<dyn Device>, rows: usize, n: usize) -> Result<bool> {
    let mut stream = device.clone().stream()?;
    let (all, row) = (Meta::new(DType::F32, Shape::new(&[rows, n])?), Meta::new(DType::F32, Shape::new(&[n])?));
    let mut given = |meta: &Meta, seed| some(device, &mut *stream, meta.shape.elements(), seed);
    let (x, residual, y) = (given(&all, 1)?, given(&all, 2)?, given(&all, 3)?);
    let (a, b, c) = (given(&row, 4)?, given(&row, 5)?, given(&row, 6)?);
    fn view<'a>(buffer: &'a Arc<dyn Buffer>, meta: &'a Meta) -> Result<Option<View<'a>>> {
        View::buffer(&**buffer, 0, meta).map(Some)
    }
    let inputs: [(Op, Inputs<'_>); 5] = [
        (Op::Mul, Inputs::from_iter([view(&x, &all)?, view(&a, &row)?])),
        (Op::Add, Inputs::from_iter([view(&y, &all)?, view(&b, &row)?])),
        (Op::Gelu, Inputs::from_iter([view(&y, &all)?])),
        (Op::Mul, Inputs::from_iter([view(&y, &all)?, view(&c, &row)?])),
        (Op::Add, Inputs::from_iter([view(&y, &all)?, view(&residual, &all)?])),
    ];
    let mut recordings = Vec::new();
    let mut results = Vec::new();
    for size in [inputs.len(), 1] {
        let mut commands = Vec::new();
        for (op, inputs) in &inputs {
            commands.push(Command::new(*op, Attrs::default(), inputs, ViewMut::buffer(&*y, 0, &all)?)?);
        }
        stream.synchronize()?;
        stream.start_recording()?;
        let submitted = commands.chunks_mut(size).try_for_each(|commands| stream.submit(commands));
        let recording = stream.finish_recording();
        submitted?;
        recordings.push(recording?);
        stream.replay(&**recordings.last().expect("it was pushed"))?;
        let mut bytes = vec![0; all.bytes()];
        stream.read(&*y, 0, &mut bytes)?;
        results.push(bytes);
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (recording, times) in recordings.iter().zip(&mut times) {
            times.push(replayed(&mut *stream, &**recording)?);
        }
    }
    let [fused, single] = times.map(median);
    let same = results[0] == results[1];
    println!(
        "[{rows}, {n}]: as one kernel {:.1} µs ({:.0} GB/s), as five {:.1} µs: {:.2} times{}",
        fused / 1e3,
        3.0 * all.bytes() as f64 / fused,
        single / 1e3,
        single / fused,
        if same { "" } else { "  DIFFERS" }
    );
    Ok(same)
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or("cuda:0".into());
    let run = || -> Result<bool> {
        let device = open(&name)?;
        println!("{} ({})", device.info().id, device.info().name);
        let mut same = true;
        for (rows, n) in [(4096, 4096), (4096, 4095), (1, 65_536), (1, 65_535), (16, 768)] {
            same &= measure(&device, rows, n)?;
        }
        Ok(same)
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("run-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
