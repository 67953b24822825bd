//! Compares fused pipelines with the same single operations on a device, in one run, by the host's clock. A time is from inputs
//! in host memory to outputs in host memory.
//!
//! ```text
//! pipeline-bench                     on the CPU
//! pipeline-bench --device cuda:0     on a GPU; also compares with operations enqueued one by one on GPU buffers
//! pipeline-bench --json results.json
//! ```
//!
//! The forms take turns. A ratio is the median of the unfused form divided by that of the compiled form. The exit status is not 0
//! if results differ in a bit.

#[path = "../rounds.rs"]
mod rounds;

use adead_core::gpu::{Buffer, Operand, Stream};
use adead_core::pipeline::Compiled;
use adead_core::{Attrs, Context, Meta, Op, Permutation, Result, Tensor};
use rounds::medians;
use serde_json::json;
use std::process::ExitCode;

/// A value of a workload: its description and its source.
enum Source {
    Input(Tensor),
    Weight(Tensor),
    Op(Op, Attrs, Vec<usize>),
    Reshape(usize),
}

/// Operations in order. The last value is the output.
struct Workload {
    name: String,
    values: Vec<(Meta, Source)>,
}

/// Values in [−1, 1), the same in every run.
fn some(dims: &[usize], seed: &mut u32) -> Tensor {
    let mut next = || {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dims.iter().product::<usize>()).map(|_| next()).collect();
    Tensor::new(&values, dims).expect("as many values")
}

impl Workload {
    fn new(name: String) -> Workload {
        Workload { name, values: Vec::new() }
    }

    fn given(&mut self, tensor: Tensor, input: bool) -> usize {
        let meta = *tensor.view().meta();
        self.values.push((meta, if input { Source::Input(tensor) } else { Source::Weight(tensor) }));
        self.values.len() - 1
    }

    fn op(&mut self, op: Op, attrs: Attrs, operands: &[usize]) -> usize {
        let metas: Vec<_> = operands.iter().map(|&i| Some(&self.values[i].0)).collect();
        let meta = op.info().infer(&attrs, &metas).expect("the operands fit");
        self.values.push((meta, Source::Op(op, attrs, operands.to_vec())));
        self.values.len() - 1
    }

    fn reshape(&mut self, of: usize, dims: &[usize]) -> usize {
        let shape = adead_core::Shape::new(dims).expect("a shape");
        self.values.push((Meta::new(self.values[of].0.dtype, shape), Source::Reshape(of)));
        self.values.len() - 1
    }

    /// Layers of relu(x·w + b), the last one without relu.
    fn mlp(rows: usize, widths: &[usize]) -> Workload {
        let text: Vec<String> = widths.iter().map(usize::to_string).collect();
        let mut work = Workload::new(format!("mlp {rows} x {}", text.join("-")));
        let seed = &mut 1;
        let mut x = work.given(some(&[rows, widths[0]], seed), true);
        for (i, pair) in widths.windows(2).enumerate() {
            let (w, b) = (work.given(some(pair, seed), false), work.given(some(&pair[1..], seed), false));
            x = work.op(Op::Matmul, Attrs::default(), &[x, w]);
            x = work.op(Op::Add, Attrs::default(), &[x, b]);
            if i + 2 < widths.len() {
                x = work.op(Op::Relu, Attrs::default(), &[x]);
            }
        }
        work
    }

    /// A transformer block with pre-normalisation, for one sequence.
    fn transformer(length: usize, heads: usize, width: usize) -> Workload {
        let n = heads * width;
        let mut work = Workload::new(format!("transformer block {length} x {n}, {heads} heads"));
        let seed = &mut 2;
        let plain = Attrs::default();
        let turned = Attrs { perm: Permutation::new(&[1, 0, 2]).expect("a permutation"), ..plain };
        let x = work.given(some(&[length, n], seed), true);
        let mut weight = |work: &mut Workload, dims: &[usize]| work.given(some(dims, seed), false);
        let (gamma, beta, bias) = (weight(&mut work, &[n]), weight(&mut work, &[n]), weight(&mut work, &[n]));
        let h = work.op(Op::Layernorm, plain, &[x, gamma, beta]);
        let mut parts = Vec::new();
        for _ in 0..3 {
            let w = weight(&mut work, &[n, n]);
            let p = work.op(Op::Matmul, plain, &[h, w]);
            let p = work.op(Op::Add, plain, &[p, bias]);
            let p = work.reshape(p, &[length, heads, width]);
            parts.push(work.op(Op::Transpose, turned, &[p]));
        }
        let a = work.op(Op::Attention, plain, &parts);
        let a = work.op(Op::Transpose, turned, &[a]);
        let a = work.reshape(a, &[length, n]);
        let w = weight(&mut work, &[n, n]);
        let a = work.op(Op::Matmul, plain, &[a, w]);
        let a = work.op(Op::Add, plain, &[a, x]);
        let a = work.op(Op::Add, plain, &[a, bias]);
        let h = work.op(Op::Layernorm, plain, &[a, gamma, beta]);
        let (up, wide, down) =
            (weight(&mut work, &[n, 4 * n]), weight(&mut work, &[4 * n]), weight(&mut work, &[4 * n, n]));
        let h = work.op(Op::Matmul, plain, &[h, up]);
        let h = work.op(Op::Add, plain, &[h, wide]);
        let h = work.op(Op::Gelu, plain, &[h]);
        let h = work.op(Op::Matmul, plain, &[h, down]);
        let h = work.op(Op::Add, plain, &[h, a]);
        work.op(Op::Add, plain, &[h, bias]);
        work
    }

    fn inputs(&self) -> Vec<&Tensor> {
        let input = |(_, source): &'_ (Meta, Source)| matches!(source, Source::Input(_));
        let tensor = |value| match value {
            &(_, Source::Input(ref tensor)) => tensor,
            _ => unreachable!("it is an input"),
        };
        self.values.iter().filter(|value| input(value)).map(tensor).collect()
    }

    /// Runs one call after another.
    fn singly(&self, ctx: &Context) -> Result<Tensor> {
        let mut made: Vec<Tensor> = Vec::with_capacity(self.values.len());
        for (meta, source) in &self.values {
            made.push(match source {
                Source::Input(tensor) | Source::Weight(tensor) => tensor.clone(),
                Source::Reshape(of) => made[*of].reshape(meta.shape.dims())?,
                Source::Op(op, attrs, operands) => {
                    let operands: Vec<_> = operands.iter().map(|&i| Some(&made[i])).collect();
                    ctx.run(*op, attrs, &operands)?
                }
            });
        }
        Ok(made.swap_remove(made.len() - 1))
    }

    /// Compiles the fused form.
    fn compiled(&self, ctx: &Context) -> Result<Compiled> {
        let mut pipeline = ctx.pipeline();
        let mut made = Vec::with_capacity(self.values.len());
        for (meta, source) in &self.values {
            made.push(match source {
                Source::Input(tensor) => pipeline.input(tensor.dtype(), tensor.dims())?,
                Source::Weight(tensor) => pipeline.constant(tensor)?,
                Source::Reshape(of) => pipeline.reshape(made[*of], meta.shape.dims())?,
                Source::Op(op, attrs, operands) => {
                    let operands: Vec<_> = operands.iter().map(|&i| Some(made[i])).collect();
                    pipeline.op(*op, attrs, &operands)?
                }
            });
        }
        pipeline.compile()
    }
}

/// The operations of a workload on buffers of a GPU, enqueued one by one.
struct Eager<'a> {
    work: &'a Workload,
    stream: Stream,
    buffers: Vec<Buffer>,
}

impl Eager<'_> {
    fn new<'a>(ctx: &Context, work: &'a Workload) -> Result<Eager<'a>> {
        let mut buffers = Vec::new();
        for (meta, source) in &work.values {
            buffers.push(match source {
                Source::Weight(tensor) => ctx.buffer_of_bytes(tensor.bytes())?,
                _ => ctx.buffer_zeroed(meta.bytes())?,
            });
        }
        Ok(Eager { work, stream: ctx.stream()?, buffers })
    }

    fn run(&mut self) -> Result<Vec<u8>> {
        // A reshape uses its source's buffer.
        let root = |mut i: usize| {
            while let Source::Reshape(of) = self.work.values[i].1 {
                i = of;
            }
            i
        };
        for (i, (meta, source)) in self.work.values.iter().enumerate() {
            match source {
                Source::Input(tensor) => self.stream.upload(&self.buffers[i], 0, tensor.bytes())?,
                Source::Op(op, attrs, operands) => {
                    let operand = |&i: &usize| {
                        Some(Operand { buffer: &self.buffers[root(i)], offset: 0, meta: &self.work.values[i].0 })
                    };
                    let operands: Vec<_> = operands.iter().map(operand).collect();
                    self.stream.run(*op, attrs, &operands, Operand { buffer: &self.buffers[i], offset: 0, meta })?;
                }
                _ => {}
            }
        }
        let last = self.work.values.len() - 1;
        self.stream.download(&self.buffers[last], 0, self.work.values[last].0.bytes())?.to_bytes()
    }
}

fn run(device: &str, json: Option<&str>) -> std::result::Result<bool, String> {
    let text = |error: adead_core::Error| error.to_string();
    let ctx = Context::open(device).map_err(text)?;
    let cpu = Context::open("cpu").map_err(text)?;
    let info = ctx.device_info().clone();
    println!("{} ({}), {} units", info.id, info.name, info.units);
    println!("{:<44} {:>10} {:>10} {:>10} {:>7}  ratio", "microseconds", "compiled", "single", "enqueued", "steps");
    let mut work = vec![Workload::mlp(1, &[512, 2048, 512]), Workload::mlp(32, &[512, 2048, 512])];
    work.push(Workload::mlp(1, &[256; 9]));
    work.push(Workload::transformer(1, 12, 32));
    work.push(Workload::transformer(16, 12, 32));
    work.push(Workload::transformer(128, 12, 32));
    let (mut results, mut good) = (Vec::new(), true);
    for work in &work {
        let compiled = work.compiled(&ctx).map_err(text)?;
        let expected = work.singly(&cpu).map_err(text)?;
        let gpu = info.id != "cpu";
        let mut eager = if gpu { Some(Eager::new(&ctx, work).map_err(text)?) } else { None };
        let inputs = work.inputs();
        let got = compiled.run(&inputs).map_err(text)?;
        let mut same = got[0].bytes() == expected.bytes();
        if let Some(eager) = &mut eager {
            same &= eager.run().map_err(text)? == expected.bytes();
        }
        good &= same;
        let mut forms: Vec<Box<dyn FnMut() -> Result<()> + '_>> =
            vec![Box::new(|| compiled.run(&inputs).map(drop)), Box::new(|| work.singly(&ctx).map(drop))];
        if let Some(eager) = &mut eager {
            forms.push(Box::new(|| eager.run().map(drop)));
        }
        let times = medians(&mut forms).map_err(text)?;
        // The best unfused form on this device.
        let unfused = times[times.len() - 1];
        println!(
            "{:<44} {:>10.1} {:>10.1} {:>10} {:>4}/{:<3}  {:.2}{}",
            work.name,
            times[0],
            times[1],
            times.get(2).map_or("-".into(), |time| format!("{time:.1}")),
            compiled.steps(),
            compiled.operations(),
            unfused / times[0],
            if same { "" } else { "  DIFFERS" }
        );
        results.push(json!({
            "name": work.name, "compiled_us": times[0], "single_us": times[1], "enqueued_us": times.get(2),
            "steps": compiled.steps(), "operations": compiled.operations(), "ratio": unfused / times[0], "same_bits": same,
        }));
    }
    if let Some(path) = json {
        let all = json!({ "device": info.id, "name": info.name, "units": info.units, "results": results });
        std::fs::write(path, format!("{all:#}\n")).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(good)
}

fn main() -> ExitCode {
    let (mut device, mut json) = ("cpu".to_string(), None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match (word.as_str(), words.next()) {
            ("--device", Some(value)) => device = value,
            ("--json", Some(value)) => json = Some(value),
            _ => {
                eprintln!("pipeline-bench: {word}: there are --device NAME and --json FILE");
                return ExitCode::FAILURE;
            }
        }
    }
    match run(&device, json.as_deref()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pipeline-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
