//! `adead calibrate`: measures the figures that the choice between devices needs.

mod gpu;
mod kernels;

use crate::args::{CalibrateArgs, DeviceArgs};
use crate::bench::{Measured, Row, measure};
use crate::failure::{Failure, Result, line, write};
use crate::format::{median, table};
use crate::info::device_text;
use crate::progress::Progress;
use adead::config::Config;
use adead::contract::Precision;
use adead::dispatch::{DeviceProfile, Family, Kind, Rate, calibration};
use adead::{Attrs, Axis, Context, ContextOptions, Op};
use adead_core::hal::cpu::Pool;
use gpu::GPU_PARTS;
use serde_json::json;
use std::hint::spin_loop;
use std::path::Path;
use std::time::{Duration, Instant};

/// A figure with its name, its unit, and its old and new values.
struct Figure {
    name: String,
    unit: &'static str,
    before: f64,
    now: f64,
}

/// Measures and writes the file.
pub fn run(args: &CalibrateArgs, device: &DeviceArgs) -> Result<()> {
    let config = Config::load()?;
    let open = |name: &str, threads| {
        // Each precision has its own figures.
        let options = ContextOptions { threads, precision: Some(Precision::F32), ..device.options() };
        Context::configured(Some(name), &options, &config)
    };
    let threads = device.options().threads;
    // All devices by default, even if the environment names one.
    let named = device.device.as_deref().filter(|name| !name.is_empty()).unwrap_or("auto");
    let (ctx, cpu) = (open(named, threads)?, open("cpu", threads)?);
    // A missing folder is an error before the measurements, not after them.
    let folder = calibration::folder(&config)?;
    std::fs::create_dir_all(&folder).map_err(|error| {
        Failure::io(format_args!("{} (ADEAD_CACHE_DIR names another folder)", folder.display()), &error)
    })?;
    let budget = Duration::from_millis(if args.quick { 40 } else { 400 });
    if args.kernels {
        return kernels::run(args, &ctx, &folder, budget, &|id| Ok(open(id, threads)?));
    }
    let machine = calibration::machine(cpu.device_info());
    let devices = ctx.dispatcher().profiles();
    let gpus = devices.iter().filter(|profile| profile.kind != Kind::Cpu).count();
    let parts = gpus * GPU_PARTS + if gpus < devices.len() { PARTS } else { 0 };
    let mut measuring = Measuring { progress: Progress::new(), budget, done: 0, parts };
    let mut measured = Vec::new();
    for before in devices {
        measured.push(match before.kind {
            Kind::Cpu => measuring.processor(before, &cpu, &open("cpu", Some(1))?)?,
            _ => measuring.gpu(before, &open(&before.id, threads)?)?,
        });
    }
    measuring.progress.clear();
    let mut all = measured.clone();
    all.extend(others(&calibration::file(&folder, &machine), &machine, &measured));
    let path = calibration::store(&folder, &machine, &all)?;
    if args.json {
        let mut list = serde_json::Map::new();
        for (before, now) in devices.iter().zip(&measured) {
            let each = figures(before, now).into_iter();
            list.insert(
                now.id.clone(),
                each.map(|it| (it.name, json!({"before": it.before, "now": it.now}))).collect(),
            );
        }
        let path = path.display().to_string();
        return line(format_args!("{:#}", json!({"machine": machine, "file": path, "devices": list})));
    }
    let mut text = String::new();
    for (before, now) in devices.iter().zip(&measured) {
        let figures = figures(before, now);
        let mut rows = vec![["figure", "before", "measured", "unit"].map(String::from).to_vec()];
        rows.extend(figures.iter().map(|it| vec![it.name.clone(), number(it.before), number(it.now), it.unit.into()]));
        let name = match before.kind {
            Kind::Cpu => device_text(cpu.device_info()),
            _ => before.id.clone(),
        };
        // The unit column is aligned to the left.
        text += &format!("{name}, before: {}\n{}", before.source, table(&rows, 1));
    }
    write(format!("{text}written {}\n", path.display()).as_bytes())
}

/// The devices in an older file that were not measured now.
fn others(file: &Path, machine: &str, measured: &[DeviceProfile]) -> Vec<DeviceProfile> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let ids = text.lines().filter_map(|line| line.strip_prefix("[\"")?.strip_suffix("\"]"));
    let mut kept = Vec::new();
    for id in ids.filter(|id| !measured.iter().any(|profile| profile.id == *id)) {
        let Ok(any) = DeviceProfile::reference("mid") else { continue };
        let mut profile = DeviceProfile { id: id.into(), ..any };
        if calibration::decode(&text, machine, &mut profile).is_ok() {
            kept.push(profile);
        }
    }
    kept
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn figures(before: &DeviceProfile, now: &DeviceProfile) -> Vec<Figure> {
    let figure = |name: &str, unit, of: fn(&DeviceProfile) -> f64| Figure {
        name: name.into(),
        unit,
        before: of(before),
        now: of(now),
    };
    let mut list = vec![
        figure("a call", "ns", |it| it.launch_ns),
        figure("waking threads", "ns", |it| it.wake_ns),
        figure("one thread's share of arithmetic", "", |it| it.alone),
        figure("one thread's share of memory", "", |it| it.alone_memory),
        figure("cache against memory", "times", |it| it.cache_gain),
    ];
    // A GPU's figures have its bus instead of waking threads.
    if now.kind != Kind::Cpu {
        list.truncate(1);
        list.extend([
            figure("upload, latency", "ns", |it| it.upload.latency_ns),
            figure("upload", "GB/s", |it| it.upload.gbytes),
            figure("download, latency", "ns", |it| it.download.latency_ns),
            figure("download", "GB/s", |it| it.download.gbytes),
        ]);
    }
    for family in Family::ALL {
        let (old, new) = (before.rate(family), now.rate(family));
        if family != Family::Move {
            list.push(Figure {
                name: format!("{family}, arithmetic"),
                unit: "GFLOP/s",
                before: old.gflops,
                now: new.gflops,
            });
        }
        list.push(Figure { name: format!("{family}, memory"), unit: "GB/s", before: old.gbytes, now: new.gbytes });
    }
    for (i, precision) in EXACT.into_iter().enumerate() {
        list.push(Figure {
            name: format!("matmul {}, arithmetic", precision.name()),
            unit: "GFLOP/s",
            before: before.exact.gflops[i],
            now: now.exact.gflops[i],
        });
    }
    list
}

/// The precisions of products in exact integers, in the order of their rates.
const EXACT: [Precision; 2] = [Precision::Fixed24, Precision::Fixed16];

/// The number of measurements of the processor.
const PARTS: usize = 29;

struct Measuring {
    progress: Progress,
    budget: Duration,
    done: usize,
    parts: usize,
}

impl Measuring {
    fn row(&mut self, ctx: &Context, op: Op, shapes: &[&[usize]]) -> Result<Measured> {
        let (done, parts, threads) = (self.done + 1, self.parts, ctx.device_info().units);
        self.progress.part(done - 1, parts, || format!("{op} on {threads} threads"));
        self.done = done;
        let axis = if op == Op::Sum { Axis::All } else { Axis::Default };
        let attrs = Attrs { axis, ..Attrs::default() };
        let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
        measure(&Row { name: String::new(), op, attrs, shapes }, ctx, self.budget)
    }

    /// Measures the processor's figures.
    fn processor(&mut self, before: &DeviceProfile, all: &Context, one: &Context) -> Result<DeviceProfile> {
        let mut profile = before.clone();
        profile.launch_ns = nanoseconds(&self.row(one, Op::Relu, &[&[16]])?);
        profile.wake_ns = if all.device_info().units > 1 { self.waking(all.device_info().units) } else { 0.0 };
        let (lone, rates) = (self.rates(one)?, self.rates(all)?);
        // In one thread's cache, and outside every cache.
        let near = (before.cache_bytes / 4.0) as usize / 12;
        let near = gbytes(&self.row(one, Op::Add, &[&[near.max(1024)], &[near.max(1024)]])?);
        profile.cache_gain = (near / lone[Family::Elementwise as usize].gbytes).max(1.0);
        let share = |of: fn(&Rate) -> f64, family: Family| {
            (of(&lone[family as usize]) / of(&rates[family as usize])).clamp(1e-3, 1.0)
        };
        profile.alone = share(|rate| rate.gflops, Family::Matmul);
        profile.alone_memory = share(|rate| rate.gbytes, Family::Elementwise);
        profile.rates = rates;
        for (gflops_of, precision) in profile.exact.gflops.iter_mut().zip(EXACT) {
            all.set_precision(precision);
            let product = self.row(all, Op::Matmul, &[&[768, 768], &[768, 768]]);
            all.set_precision(Precision::F32);
            *gflops_of = gflops(&[&product?]);
        }
        Ok(profile)
    }

    fn rates(&mut self, ctx: &Context) -> Result<[Rate; Family::COUNT]> {
        const LARGE: usize = 1 << 22;
        let product = self.row(ctx, Op::Matmul, &[&[768, 768], &[768, 768]])?;
        let vector = self.row(ctx, Op::Matmul, &[&[1, 4096], &[4096, 4096]])?;
        let heads: &[usize] = &[8, 512, 64];
        let (query, keys): (&[usize], &[usize]) = (&[8, 1, 64], &[8, 8192, 64]);
        let attention = self.row(ctx, Op::Attention, &[heads, heads, heads])?;
        let decode = self.row(ctx, Op::Attention, &[query, keys, keys])?;
        let add = self.row(ctx, Op::Add, &[&[LARGE], &[LARGE]])?;
        let near = self.row(ctx, Op::Relu, &[&[8192]])?;
        let functions = [self.row(ctx, Op::Tanh, &[&[1 << 18]])?, self.row(ctx, Op::Exp, &[&[1 << 18]])?];
        let lines = [self.row(ctx, Op::Softmax, &[&[512, 512]])?, self.row(ctx, Op::Layernorm, &[&[512, 512]])?];
        let sum = self.row(ctx, Op::Sum, &[&[LARGE]])?;
        let transpose = self.row(ctx, Op::Transpose, &[&[1024, 1024]])?;
        let rate =
            |arithmetic: &[&Measured], memory: &Measured| Rate { gflops: gflops(arithmetic), gbytes: gbytes(memory) };
        Ok([
            rate(&[&product], &vector),
            rate(&[&attention], &decode),
            rate(&[&near], &add),
            rate(&[&functions[0], &functions[1]], &add),
            rate(&[&lines[0], &lines[1]], &sum),
            Rate { gflops: 1.0, gbytes: gbytes(&transpose) },
        ])
    }

    /// The time of a job for all threads beyond the work of one thread.
    fn waking(&mut self, threads: usize) -> f64 {
        const WORK: Duration = Duration::from_micros(50);
        let (pool, begin, mut times) = (Pool::new(threads), Instant::now(), Vec::new());
        while times.len() < 20 || (begin.elapsed() < self.budget && times.len() < 2000) {
            let start = Instant::now();
            pool.run(threads, &|_, _| {
                let begin = Instant::now();
                while begin.elapsed() < WORK {
                    spin_loop();
                }
            });
            times.push(start.elapsed().saturating_sub(WORK));
        }
        self.done += 1;
        // Sometimes the caller does all the work before a worker wakes, so the median counts and not the best.
        median(&mut times).as_nanos() as f64
    }
}

fn nanoseconds(it: &Measured) -> f64 {
    // Other work on the machine only adds to a time.
    it.best.as_secs_f64() * 1e9
}

fn gbytes(it: &Measured) -> f64 {
    it.bytes / nanoseconds(it).max(1.0)
}

fn gflops(all: &[&Measured]) -> f64 {
    all.iter().map(|it| it.flops).sum::<f64>() / all.iter().map(|it| nanoseconds(it)).sum::<f64>().max(1.0)
}
