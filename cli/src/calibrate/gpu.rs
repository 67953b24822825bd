//! Measures a GPU: a call, the bus, and the rates of each family of operations. The work grows until it takes long enough, so one
//! table of sizes fits data-centre cards and software drivers.

use super::{EXACT, Measuring};
use crate::failure::Result;
use adead::contract::Precision;
use adead::dispatch::{DeviceProfile, Family, Link, Rate};
use adead::gpu::{Buffer, Operand, Stream};
use adead::{Attrs, Axis, Context, DType, Meta, Op, Shape, Tensor, View};
use std::time::{Duration, Instant};

/// The number of measurements of each GPU.
pub(super) const GPU_PARTS: usize = 16;

/// Work that takes this long measures the rate rather than the launch.
const WHILE: Duration = Duration::from_micros(500);

/// The most bytes of one operand.
const MOST: usize = 256 << 20;

/// One run at the largest size: its cost and its nanoseconds.
struct Found {
    flops: f64,
    bytes: f64,
    ns: f64,
}

impl Found {
    fn gflops(&self) -> f64 {
        self.flops / self.ns
    }

    fn gbytes(&self) -> f64 {
        self.bytes / self.ns
    }
}

/// An operation with its operands in a GPU's memory.
pub(super) struct Job {
    op: Op,
    attrs: Attrs,
    inputs: Vec<(Buffer, Meta)>,
    output: (Buffer, Meta),
    flops: f64,
    bytes: f64,
}

impl Job {
    pub fn new(ctx: &Context, op: Op, shapes: &[&[usize]]) -> Result<Job> {
        let axis = if op == Op::Sum { Axis::All } else { Axis::Default };
        let attrs = Attrs { axis, ..Attrs::default() };
        let tensors = shapes.iter().map(|dims| Tensor::zeros(DType::F32, dims)).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<Option<View<'_>>> = tensors.iter().map(|tensor| Some(tensor.view())).collect();
        let meta = op.info().infer(&attrs, &views)?;
        let cost = op.info().cost(&attrs, &views, &meta);
        let mut inputs = Vec::new();
        for dims in shapes {
            let meta = Meta::new(DType::F32, Shape::new(dims)?);
            inputs.push((ctx.buffer_zeroed(meta.bytes())?, meta));
        }
        let output = (ctx.buffer_zeroed(meta.bytes())?, meta);
        Ok(Job { op, attrs, inputs, output, flops: cost.flops, bytes: cost.bytes })
    }

    /// Writes numbers from −1 to 1 to the operands: with zeros a GPU takes less power, and runs faster than with others.
    pub fn fill(&self) -> Result<()> {
        let mut state = 7u32;
        for (buffer, meta) in &self.inputs {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            let bytes: Vec<u8> = (0..meta.shape.elements()).flat_map(|_| next().to_ne_bytes()).collect();
            buffer.write_bytes(0, &bytes)?;
        }
        Ok(())
    }

    fn enqueue(&self, stream: &mut Stream) -> Result<()> {
        let inputs: Vec<Option<Operand<'_>>> =
            self.inputs.iter().map(|(buffer, meta)| Some(Operand { buffer, offset: 0, meta })).collect();
        let output = Operand { buffer: &self.output.0, offset: 0, meta: &self.output.1 };
        Ok(stream.run(self.op, &self.attrs, &inputs, output)?)
    }

    /// The time of this many runs, enqueued together, until the last is done.
    pub fn time(&self, stream: &mut Stream, runs: usize) -> Result<Duration> {
        let begin = Instant::now();
        (0..runs).try_for_each(|_| self.enqueue(stream))?;
        stream.synchronize()?;
        Ok(begin.elapsed())
    }
}

/// The shortest time of repeated tries. Other work on the machine only adds to a time.
pub(super) fn least(budget: Duration, mut one: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let (begin, mut best, mut times) = (Instant::now(), one()?, 1);
    while times < 3 || (begin.elapsed() < budget && times < 1000) {
        best = best.min(one()?);
        times += 1;
    }
    Ok(best)
}

fn ns(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e9).max(1.0)
}

impl Measuring {
    /// Measures the GPU of a context that uses it alone.
    pub(super) fn gpu(&mut self, before: &DeviceProfile, ctx: &Context) -> Result<DeviceProfile> {
        let (mut profile, mut stream) = (before.clone(), ctx.stream()?);
        self.shown(before, "a call");
        let small = Job::new(ctx, Op::Relu, &[&[16]])?;
        profile.launch_ns = ns(least(self.budget, || small.time(&mut stream, 1))?);
        (profile.upload, profile.download) = self.bus(before, ctx)?;
        let mut find = |op, shapes: &dyn Fn(usize) -> Vec<Vec<usize>>| self.found(before, ctx, &mut stream, op, shapes);
        let lines = |n: usize| vec![64 << n, 1024];
        let product = find(Op::Matmul, &|n| vec![vec![128 << n; 2]; 2])?;
        let vector = find(Op::Matmul, &|n| vec![vec![1, 256 << n], vec![256 << n, 1024]])?;
        let attention = find(Op::Attention, &|n| vec![vec![8, 64 << n, 64]; 3])?;
        let decode = find(Op::Attention, &|n| vec![vec![8, 1, 64], vec![8, 256 << n, 64], vec![8, 256 << n, 64]])?;
        let add = find(Op::Add, &|n| vec![vec![16384 << n]; 2])?;
        let functions = [Op::Tanh, Op::Exp].map(|op| find(op, &|n| vec![vec![16384 << n]]));
        let softmax = find(Op::Softmax, &|n| vec![lines(n)])?;
        let layernorm = find(Op::Layernorm, &|n| vec![lines(n), vec![1024], vec![1024]])?;
        let sum = find(Op::Sum, &|n| vec![vec![16384 << n]])?;
        let transpose = find(Op::Transpose, &|n| vec![lines(n)])?;
        for (i, precision) in EXACT.into_iter().enumerate() {
            ctx.set_precision(precision);
            let product = find(Op::Matmul, &|n| vec![vec![128 << n; 2]; 2]);
            ctx.set_precision(Precision::F32);
            profile.exact.gflops[i] = product?.gflops();
        }
        let [tanh, exp] = functions;
        let mean = |a: &Found, b: &Found| (a.gflops() + b.gflops()) / 2.0;
        profile.rates = [
            Rate { gflops: product.gflops(), gbytes: vector.gbytes() },
            Rate { gflops: attention.gflops(), gbytes: decode.gbytes() },
            Rate { gflops: add.gflops(), gbytes: add.gbytes() },
            Rate { gflops: mean(&tanh?, &exp?), gbytes: add.gbytes() },
            Rate { gflops: mean(&softmax, &layernorm), gbytes: sum.gbytes() },
            Rate { gflops: before.rate(Family::Move).gflops, gbytes: transpose.gbytes() },
        ];
        Ok(profile)
    }

    fn shown(&mut self, gpu: &DeviceProfile, what: &str) {
        self.done += 1;
        let (done, of) = (self.done, self.parts);
        self.progress.show(|| format!("{what} on {} ({done} of {of})", gpu.id));
    }

    /// Measures an operation whose work doubles until it takes long enough or an operand is large.
    fn found(
        &mut self,
        gpu: &DeviceProfile,
        ctx: &Context,
        stream: &mut Stream,
        op: Op,
        shapes: &dyn Fn(usize) -> Vec<Vec<usize>>,
    ) -> Result<Found> {
        self.shown(gpu, op.name());
        let mut n = 0;
        loop {
            let dims = shapes(n);
            let dims: Vec<&[usize]> = dims.iter().map(Vec::as_slice).collect();
            let job = Job::new(ctx, op, &dims)?;
            // The first run may compile the kernel.
            job.time(stream, 1)?;
            let one = job.time(stream, 1)?;
            let largest = job.inputs.iter().map(|(_, meta)| meta.bytes()).max().unwrap_or(0);
            if one < WHILE && 4 * largest <= MOST {
                n += 1;
                continue;
            }
            // The runs are enqueued together, so that no run waits for the host.
            let runs = (2.0 * WHILE.as_secs_f64() / one.as_secs_f64().max(1e-9)).ceil().clamp(1.0, 100.0) as usize;
            let all = least(self.budget, || job.time(stream, runs))?;
            return Ok(Found { flops: job.flops, bytes: job.bytes, ns: ns(all) / runs as f64 });
        }
    }

    /// Measures copies of ordinary memory, made like a context's own calls.
    fn bus(&mut self, gpu: &DeviceProfile, ctx: &Context) -> Result<(Link, Link)> {
        const SMALL: usize = 4 << 10;
        const LARGE: usize = 32 << 20;
        let (mut bytes, buffer) = (vec![1u8; LARGE], ctx.buffer_zeroed(LARGE)?);
        let budget = self.budget;
        let link = |one: &mut dyn FnMut(usize) -> Result<Duration>| -> Result<Link> {
            let (small, large) = (ns(least(budget, || one(SMALL))?), ns(least(budget, || one(LARGE))?));
            // If a large copy takes no longer than a small one, only its time is known.
            let gbytes = (LARGE - SMALL) as f64 / (large - small).max(large / 2.0);
            Ok(Link { latency_ns: (small - SMALL as f64 / gbytes).max(0.0), gbytes })
        };
        self.shown(gpu, "upload");
        let upload = link(&mut |size| {
            let begin = Instant::now();
            buffer.write_bytes(0, &bytes[..size])?;
            ctx.wait()?;
            Ok(begin.elapsed())
        })?;
        self.shown(gpu, "download");
        let download = link(&mut |size| {
            let begin = Instant::now();
            buffer.read_bytes(0, &mut bytes[..size])?;
            Ok(begin.elapsed())
        })?;
        Ok((upload, download))
    }
}
