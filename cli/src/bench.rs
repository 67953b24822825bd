//! `adead bench`: measures single f32 operations on a device. With `--report` it measures every device and writes a page.

use crate::args::{BenchArgs, DeviceArgs};
use crate::failure::{self, Failure, Result};
use crate::files::NewFile;
use crate::format::{giga, median, table, time};
use crate::info::{context_text, device_json};
use crate::nearest;
use crate::progress::Progress;
use crate::report;
use adead::profile::Report;
use adead::{Attrs, Axis, Command, Context, DType, Op, Tensor, View, ViewMut, contract};
use adead_conformance::generate::{ids, rand};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A measurement: an operation on f32 operands of these shapes.
#[derive(Clone)]
pub struct Row {
    pub name: String,
    pub op: Op,
    pub attrs: Attrs,
    pub shapes: Vec<Vec<usize>>,
}

/// The result of a measurement.
pub struct Measured {
    name: String,
    op: Op,
    pub runs: usize,
    pub best: Duration,
    pub median: Duration,
    pub flops: f64,
    pub bytes: f64,
}

/// Runs of each row in a trace.
const TRACED: usize = 3;

/// Fewer runs say too little. More than [`MAX_RUNS`] add nothing.
const MIN_RUNS: usize = 3;
const MAX_RUNS: usize = 100_000;

impl Row {
    pub fn new(op: Op, size: &str, shapes: &[&[usize]], attrs: Attrs) -> Row {
        let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
        Row { name: format!("{op}/{size}"), op, attrs, shapes }
    }

    /// The row's operands, with the same values each time.
    pub fn operands(&self) -> Result<Vec<Tensor>> {
        let mut tensors = Vec::new();
        for (i, dims) in self.shapes.iter().enumerate() {
            let (count, seed) = (dims.iter().product(), i as u64 + 1);
            // The operand after the table is ids.
            let (dtype, bytes) = match self.op {
                Op::Embedding if i == 1 => (DType::I32, ids(DType::I32, count, seed, self.shapes[0][0] as u64)),
                _ => (DType::F32, rand(DType::F32, count, seed, 0)),
            };
            tensors.push(Tensor::from_bytes(&bytes.unwrap_or_default(), dtype, dims)?);
        }
        Ok(tensors)
    }

    /// The rate of the row's operation if it takes this time.
    #[cfg(feature = "models")]
    pub fn rate(&self, time: Duration) -> Result<String> {
        let tensors = self.operands()?;
        let views: Vec<Option<View<'_>>> = tensors.iter().map(|tensor| Some(tensor.view())).collect();
        let info = self.op.info();
        let cost = info.cost(&self.attrs, &views, &info.infer(&self.attrs, &views)?);
        Ok(rate(self.op, cost.flops, cost.bytes, time))
    }
}

fn rows() -> Vec<Row> {
    let row = Row::new;
    let plain = Attrs::default();
    let mut rows = Vec::new();
    for n in [64, 128, 256, 512, 1024, 2048] {
        rows.push(row(Op::Matmul, &n.to_string(), &[&[n, n], &[n, n]], plain));
    }
    for (heads, length) in [(8, 256), (8, 1024)] {
        let shape: &[usize] = &[heads, length, 64];
        rows.push(row(Op::Attention, &format!("{heads}x{length}x64"), &[shape, shape, shape], plain));
    }
    for (size, shape) in [("256x256", [256, 256]), ("4096x1024", [4096, 1024])] {
        rows.push(row(Op::Softmax, size, &[&shape], plain));
        rows.push(row(Op::Layernorm, size, &[&shape, &shape[1..], &shape[1..]], plain));
    }
    for (size, n) in [("64k", 1 << 16), ("4m", 1 << 22)] {
        rows.push(row(Op::Tanh, size, &[&[n]], plain));
        rows.push(row(Op::Sum, size, &[&[n]], Attrs { axis: Axis::All, ..plain }));
    }
    // Rows of one operation are adjacent.
    rows.sort_by_key(|row| Op::ALL.iter().position(|op| *op == row.op));
    rows
}

/// Measures and prints the results.
pub fn run(args: &BenchArgs, device: &DeviceArgs) -> Result<()> {
    #[cfg(feature = "models")]
    if args.compare {
        return crate::compare::run(args, device);
    }
    let rows = if args.report.is_some() { report::rows() } else { rows() };
    let rows = choose(rows, &args.only, |row| &row.name)?;
    if let Some(path) = &args.report {
        return report::run(path, &rows, Duration::from_secs_f64(args.seconds), device);
    }
    let trace = args.trace.as_deref().map(NewFile::create_text).transpose()?;
    let ctx = device.open()?;
    let mut progress = Progress::new();
    let mut all = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        progress.part(i, rows.len(), || row.name.clone());
        all.push(measure(row, &ctx, Duration::from_secs_f64(args.seconds))?);
    }
    let on_stdout = trace.as_ref().is_some_and(NewFile::is_stdout);
    let trace = trace.map(|mut file| {
        progress.show(|| "a trace".into());
        file.write(profiled(&ctx, &rows, TRACED)?.to_trace().as_bytes())?;
        Ok::<_, Failure>(file)
    });
    let trace = trace.transpose()?;
    progress.clear();
    let text = if args.json { format!("{:#}\n", to_json(&ctx, &all)) } else { to_text(&ctx, &all) };
    failure::report(&text, on_stdout)?;
    trace.map_or(Ok(()), NewFile::commit)
}

/// The rows whose names contain one of these texts, or all rows if there are no texts. A text that no name contains is an error.
pub fn choose<T>(mut rows: Vec<T>, only: &[String], name: impl Fn(&T) -> &str) -> Result<Vec<T>> {
    if let Some(wrong) = only.iter().find(|only| !rows.iter().any(|row| name(row).contains(only.as_str()))) {
        let names: Vec<&str> = rows.iter().map(name).collect();
        let question = nearest::question(wrong, names.iter().copied());
        return Err(Failure::invalid(format!(
            "no row contains '{wrong}': the rows are {}{question}",
            names.join(", ")
        )));
    }
    rows.retain(|row| only.is_empty() || only.iter().any(|only| name(row).contains(only.as_str())));
    Ok(rows)
}

/// Measures one row for this time.
pub fn measure(row: &Row, ctx: &Context, budget: Duration) -> Result<Measured> {
    let tensors = row.operands()?;
    let views: Vec<Option<View<'_>>> = tensors.iter().map(|tensor| Some(tensor.view())).collect();
    let info = row.op.info();
    let meta = info.infer(&row.attrs, &views)?;
    let cost = info.cost(&row.attrs, &views, &meta);
    // The output is the same memory every time, so the time to allocate fresh pages is not measured.
    let mut output = vec![0f32; meta.shape.elements()];
    let mut once = || -> Result<Duration> {
        let output = ViewMut::f32(&mut output, &meta)?;
        let begin = Instant::now();
        ctx.execute(&mut Command::new(row.op, row.attrs, &views, output)?)?;
        Ok(begin.elapsed())
    };
    once()?;
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < MIN_RUNS || (begin.elapsed() < budget && times.len() < MAX_RUNS) {
        times.push(once()?);
    }
    let median = median(&mut times);
    Ok(Measured {
        name: row.name.clone(),
        op: row.op,
        runs: times.len(),
        best: times[0],
        median,
        flops: cost.flops,
        bytes: cost.bytes,
    })
}

/// A profile of this many runs of each row, after one run that it does not include.
pub fn profiled(ctx: &Context, rows: &[Row], runs: usize) -> Result<Report> {
    let operands: Vec<Vec<Tensor>> = rows.iter().map(Row::operands).collect::<Result<_>>()?;
    let each = || -> Result<()> {
        for (row, tensors) in rows.iter().zip(&operands) {
            let given: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
            ctx.run(row.op, &row.attrs, &given)?;
        }
        Ok(())
    };
    each()?;
    let profile = ctx.profile()?;
    (0..runs).try_for_each(|_| each())?;
    Ok(profile.finish())
}

impl Measured {
    /// The rate in the unit that limits the operation: arithmetic or memory.
    pub fn rate(&self) -> String {
        rate(self.op, self.flops, self.bytes, self.median)
    }
}

fn rate(op: Op, flops: f64, bytes: f64, time: Duration) -> String {
    match op {
        Op::Matmul | Op::Attention | Op::Ffn => format!("{:.1} GFLOP/s", giga(flops, time)),
        _ => format!("{:.1} GB/s", giga(bytes, time)),
    }
}

fn to_text(ctx: &Context, all: &[Measured]) -> String {
    let info = ctx.device_info();
    let mut rows = vec![["f32", "median", "best", "runs", "rate (median)"].map(String::from).to_vec()];
    for it in all {
        rows.push(vec![it.name.clone(), time(it.median), time(it.best), it.runs.to_string(), it.rate()]);
    }
    format!("{}, {}\n{}", context_text(ctx), info.name, table(&rows, 1))
}

fn to_json(ctx: &Context, all: &[Measured]) -> Value {
    let each = |it: &Measured| {
        json!({
            "name": it.name,
            "op": it.op.name(),
            "dtype": "f32",
            "runs": it.runs,
            "median_seconds": it.median.as_secs_f64(),
            "best_seconds": it.best.as_secs_f64(),
            "gflops": giga(it.flops, it.median),
            "gbytes_per_second": giga(it.bytes, it.median),
        })
    };
    json!({
        "version": adead::VERSION,
        "contract": contract::VERSION,
        "device": device_json(ctx.device_info()),
        "results": all.iter().map(each).collect::<Vec<_>>(),
    })
}
