//! Times the first run of each operation on a GPU, including loading its kernels, and later runs by the device's clock. Prints a
//! hash of each result.
//!
//! ```text
//! first-bench cuda:0
//! CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1 first-bench cuda:0     with PTX, as on a GPU without machine code
//! ```

use adead::gpu::{Buffer, Gpu, Operand, Stream};
use adead::{Attrs, DType, Meta, Op, Result, Shape};
use std::hash::{DefaultHasher, Hasher};
use std::process::ExitCode;
use std::time::Instant;

/// The replays between two timestamps, and the number of such times in a median.
const REPLAYS: usize = 10;
const ROUNDS: usize = 7;

/// Operations of every family of kernels. The first operation of a family loads its kernels.
const WORK: [(Op, &[&[usize]]); 13] = [
    (Op::Relu, &[&[1024]]),
    (Op::Relu, &[&[4096, 4096]]),
    (Op::Gelu, &[&[4096, 4096]]),
    (Op::Transpose, &[&[4096, 4096]]),
    (Op::Softmax, &[&[4096, 4096]]),
    (Op::Layernorm, &[&[4096, 4096], &[4096], &[4096]]),
    (Op::Sum, &[&[4096, 4096]]),
    (Op::Matmul, &[&[256, 256], &[256, 256]]),
    (Op::Matmul, &[&[1024, 1024], &[1024, 1024]]),
    (Op::Matmul, &[&[4096, 4096], &[4096, 4096]]),
    (Op::Matmul, &[&[1, 4096], &[4096, 4096]]),
    (Op::Attention, &[&[4, 16, 2048, 64], &[4, 16, 2048, 64], &[4, 16, 2048, 64]]),
    (Op::Attention, &[&[1, 16, 4096, 128], &[1, 16, 4096, 128], &[1, 16, 4096, 128]]),
];

/// Elements of the largest operand.
const MOST: usize = 1 << 24;

fn main() -> ExitCode {
    let device = std::env::args().nth(1).unwrap_or_else(|| "cuda:0".into());
    match run(&device) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("first-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(device: &str) -> Result<()> {
    let begin = Instant::now();
    let gpu = Gpu::open(device)?;
    let mut stream = gpu.stream()?;
    println!("{}: {}, opened in {:.1} ms", gpu.device_info().id, gpu.device_info().name, milliseconds(begin));
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let numbers: Vec<f32> = (0..MOST).map(|_| next()).collect();
    let (from, to) = (gpu.buffer(&numbers)?, gpu.buffer_zeroed(4 * MOST)?);
    println!("{:44} {:>10} {:>12}  result", "", "first, ms", "later, us");
    for (op, shapes) in WORK {
        let metas = shapes.iter().map(|dims| Ok(Meta::new(DType::F32, Shape::new(dims)?)));
        let metas = metas.collect::<Result<Vec<_>>>()?;
        let attrs = Attrs::default();
        let given: Vec<_> = metas.iter().map(Some).collect();
        let output = op.info().infer(&attrs, &given)?;
        let begin = Instant::now();
        enqueue(&mut stream, op, &metas, &output, [&from, &to])?;
        stream.synchronize()?;
        let first = milliseconds(begin);
        let later = later(&mut stream, &mut |stream| enqueue(stream, op, &metas, &output, [&from, &to]))?;
        let mut bytes = vec![0; output.bytes()];
        to.read_bytes(0, &mut bytes)?;
        let mut hash = DefaultHasher::new();
        hash.write(&bytes);
        let name = format!("{op} {shapes:?}");
        println!("{name:44} {first:10.2} {later:12.2}  {:016x}", hash.finish());
    }
    Ok(())
}

fn milliseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

/// All operands share the same memory.
fn enqueue(stream: &mut Stream, op: Op, metas: &[Meta], output: &Meta, [from, to]: [&Buffer; 2]) -> Result<()> {
    let inputs: Vec<_> = metas.iter().map(|meta| Some(Operand { buffer: from, offset: 0, meta })).collect();
    stream.run(op, &Attrs::default(), &inputs, Operand { buffer: to, offset: 0, meta: output })
}

/// Microseconds of one run, by the device's clock.
fn later(stream: &mut Stream, work: &mut dyn FnMut(&mut Stream) -> Result<()>) -> Result<f64> {
    let recording = stream.record(|stream| (0..REPLAYS).try_for_each(|_| work(stream)))?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        stream.replay(&recording)?;
        let begin = stream.timestamp()?;
        stream.replay(&recording)?;
        let end = stream.timestamp()?;
        stream.synchronize()?;
        times.push(end.since(&begin)? as f64 / 1e3 / REPLAYS as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}
