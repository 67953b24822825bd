//! Measures the cost of a submission, and the rate of copies between host and device.

use crate::timing::{Effort, Times, completion, occupy, on_device, repeats};
use adead_core::gpu::{Buffer, Operand, Stream};
use adead_core::{Attrs, Context, DType, Meta, Op, Result, Shape};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A user's kernel, for Vulkan and for CUDA.
const SPIRV: &[u8] = include_bytes!("../../../examples/kernels/vecadd.spv");
const PTX: &[u8] = include_bytes!("../../../examples/kernels/vecadd.ptx");
/// Elements of a small operation.
const SMALL: usize = 1024;
/// Small kernels in a chain.
const CHAIN: usize = 10;
/// Submissions that are timed together: fewer than a stream keeps in progress, so none waits for another.
const SUBMISSIONS: usize = 16;
/// Small operations that are enqueued together without a flush: no more than drivers accept before they wait for the device.
const BURST: usize = 1000;

/// The sizes of copies between host and device.
const SIZES: [(&str, usize); 4] =
    [("64 KiB", 64 << 10), ("1 MiB", 1 << 20), ("16 MiB", 16 << 20), ("256 MiB", 256 << 20)];

/// Measures everything that is not an operation of the table.
pub fn measure(ctx: &Context, quick: bool, hardware: bool) -> Vec<Value> {
    let effort =
        Effort { time: Duration::from_millis(if quick { 60 } else { 200 }), least: if quick { 10 } else { 30 } };
    let mut found = vec![
        entry("relu 1024", "latency", 0.0, small(ctx, effort)),
        entry("vecadd 1024, user's kernel", "latency", 0.0, users(ctx, effort)),
        entry("10 x relu 1024, recorded", "latency", 0.0, chain(ctx, effort)),
    ];
    let sizes = if quick || !hardware { &SIZES[2..3] } else { &SIZES[..] };
    let effort = Effort { time: effort.time, least: 5 };
    for &(size, bytes) in sizes {
        found.push(entry(&format!("upload {size}"), "transfer", bytes as f64, upload(ctx, effort, bytes)));
        found.push(entry(&format!("download {size}"), "transfer", bytes as f64, download(ctx, effort, bytes)));
        if bytes >= 1 << 20 {
            let copied = 2.0 * bytes as f64;
            found.push(entry(&format!("copy {size} on the device"), "transfer", copied, copy(ctx, effort, bytes)));
        }
    }
    found
}

type Found = Result<Vec<(&'static str, Times)>>;

/// An entry of the results, in the same format as an operation's.
fn entry(name: &str, group: &str, bytes: f64, found: Found) -> Value {
    let mut entry = json!({"name": name, "group": group, "op": null, "flops": 0.0, "bytes": bytes});
    match found {
        Ok(times) => {
            let seconds: Map<String, Value> =
                times.into_iter().map(|(name, times)| (name.to_string(), times.to_json())).collect();
            entry["seconds"] = Value::Object(seconds);
        }
        Err(error) => entry["error"] = error.to_string().into(),
    }
    entry
}

/// Seconds that the host spends on a call that is submitted, without waiting for the device.
fn on_host(stream: &mut Stream, work: &mut dyn FnMut(&mut Stream) -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    for _ in 0..SUBMISSIONS {
        work(stream)?;
        stream.flush()?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    stream.synchronize()?;
    Ok(seconds)
}

/// Seconds that the host spends on this many consecutive calls.
fn in_a_row(stream: &mut Stream, calls: usize, work: &mut dyn FnMut(&mut Stream) -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    (0..calls).try_for_each(|_| work(stream))?;
    let seconds = begin.elapsed().as_secs_f64();
    stream.synchronize()?;
    Ok(seconds)
}

/// The times of a small operation: until it is done, and of the host alone.
fn times(stream: &mut Stream, effort: Effort, calls: usize, work: &mut dyn FnMut(&mut Stream) -> Result<()>) -> Found {
    completion(stream, work)?;
    Ok(vec![
        ("completion", Times::of(effort.samples(|| completion(stream, work))?, 1)),
        ("host", Times::of(effort.samples(|| on_host(stream, work))?, SUBMISSIONS)),
        ("enqueued", Times::of(effort.samples(|| in_a_row(stream, calls, work))?, calls)),
    ])
}

/// One small operation.
fn small(ctx: &Context, effort: Effort) -> Found {
    let (mut stream, x, y) = (ctx.stream()?, ctx.buffer(&[-0.5f32; SMALL])?, ctx.buffer_zeroed(4 * SMALL)?);
    let meta = Meta::new(DType::F32, Shape::new(&[SMALL])?);
    let mut run = |stream: &mut Stream| relu(stream, &x, &y, &meta);
    times(&mut stream, effort, BURST, &mut run)
}

fn relu(stream: &mut Stream, x: &Buffer, y: &Buffer, meta: &Meta) -> Result<()> {
    let operand = |buffer| Operand { buffer, offset: 0, meta };
    stream.run(Op::Relu, &Attrs::default(), &[Some(operand(x))], operand(y))
}

/// One small user's kernel.
fn users(ctx: &Context, effort: Effort) -> Found {
    let kernel = match ctx.device_info().id.starts_with("cuda") {
        true => ctx.load_ptx_bytes(PTX)?,
        false => ctx.load_spirv_bytes(SPIRV)?,
    };
    let mut stream = ctx.stream()?;
    let (a, b) = (ctx.buffer(&[1.5f32; SMALL])?, ctx.buffer(&[2.0f32; SMALL])?);
    let c = ctx.buffer_zeroed(4 * SMALL)?;
    let groups = [(SMALL as u32).div_ceil(kernel.workgroup()[0]), 1, 1];
    let push = (SMALL as u32).to_ne_bytes();
    let mut run = |stream: &mut Stream| stream.dispatch(&kernel, &[&a, &b, &c], &push, groups);
    times(&mut stream, effort, BURST, &mut run)
}

/// A recorded chain of small kernels, each on the previous result.
fn chain(ctx: &Context, effort: Effort) -> Found {
    let (mut stream, x, y) = (ctx.stream()?, ctx.buffer(&[-0.5f32; SMALL])?, ctx.buffer_zeroed(4 * SMALL)?);
    let meta = Meta::new(DType::F32, Shape::new(&[SMALL])?);
    let ballast = ctx.buffer_zeroed(64 << 20)?;
    let recording = stream.record(|stream| {
        (0..CHAIN / 2).try_for_each(|_| relu(stream, &x, &y, &meta).and_then(|()| relu(stream, &y, &x, &meta)))
    })?;
    let mut run = |stream: &mut Stream| stream.replay(&recording);
    let mut before = |stream: &mut Stream| occupy(stream, &ballast);
    let mut found = times(&mut stream, effort, BURST / CHAIN, &mut run)?;
    found.push(("hot", Times::of(effort.samples(|| on_device(&mut stream, &mut before, &recording))?, 1)));
    Ok(found)
}

/// Copies from ordinary host memory.
fn upload(ctx: &Context, effort: Effort, bytes: usize) -> Found {
    let (mut stream, buffer, data) = (ctx.stream()?, ctx.buffer_zeroed(bytes)?, vec![7u8; bytes]);
    let mut run = |stream: &mut Stream| stream.upload(&buffer, 0, &data);
    completion(&mut stream, &mut run)?;
    Ok(vec![("completion", Times::of(effort.samples(|| completion(&mut stream, &mut run))?, 1))])
}

/// Copies to ordinary host memory.
fn download(ctx: &Context, effort: Effort, bytes: usize) -> Found {
    let (buffer, mut data) = (ctx.buffer_zeroed(bytes)?, vec![7u8; bytes]);
    let mut run = || {
        let begin = Instant::now();
        buffer.read_bytes(0, &mut data)?;
        Ok(begin.elapsed().as_secs_f64())
    };
    run()?;
    Ok(vec![("completion", Times::of(effort.samples(run)?, 1))])
}

/// Copies between two buffers.
fn copy(ctx: &Context, effort: Effort, bytes: usize) -> Found {
    let (mut stream, from, to) = (ctx.stream()?, ctx.buffer_zeroed(bytes)?, ctx.buffer_zeroed(bytes)?);
    let mut run = |stream: &mut Stream| stream.copy((&from, 0), (&to, 0), bytes);
    let one = completion(&mut stream, &mut run)?;
    let runs = repeats(one, 2e-3, 100);
    let recording = stream.record(|stream| (0..runs).try_for_each(|_| run(stream)))?;
    let mut run = |stream: &mut Stream| stream.copy((&from, 0), (&to, 0), bytes);
    let mut before = |stream: &mut Stream| stream.copy((&from, 0), (&to, 0), bytes);
    Ok(vec![
        ("completion", Times::of(effort.samples(|| completion(&mut stream, &mut run))?, 1)),
        ("hot", Times::of(effort.samples(|| on_device(&mut stream, &mut before, &recording))?, runs)),
    ])
}
