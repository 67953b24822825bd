//! Measures the time that `auto` loses by its choices. Every operation of a table runs on each device alone and where the
//! dispatcher sends it, in turns. Regret is the time of `auto` divided by that of the best single device. Calibrations are not
//! used.
//!
//! ```text
//! regret                # auto's devices
//! regret vulkan:0       # the processor and a GPU that auto would not use, with the dispatcher choosing
//! regret --only matmul  # rows whose name contains a text
//! ```
//!
//! Operands and results are in one of three places:
//!
//! - `host`: all in host memory, and nothing stays on a GPU.
//! - `weights`: the first operand and the result are in host memory. The other operands are also on the GPU, from an earlier use.
//! - `gpu`: operands are only on the GPU, where the result may stay.
//!
//! All devices work on the same memory: the placement of pages alone makes up to a half of the time of some operations. A row above
//! the limit is measured twice more, and its median counts.
//!
//! A device is not measured if the cost model expects more than a second and a hundred times the best device's time: a software
//! GPU would take hours for the table.

use adead::config::Config;
use adead::{Attrs, Axis, Command, Context, ContextOptions, DType, Meta, Op, Result, Tensor, View, ViewMut};
use adead_conformance::generate::{ids, rand};
use std::cell::RefCell;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The goals for each row and for the geometric mean of all rows.
const MOST: f64 = 1.10;
const MEAN: f64 = 1.03;

/// Time for each row and device.
const BUDGET: Duration = Duration::from_millis(120);

struct Row {
    op: Op,
    shapes: &'static [&'static [usize]],
    attrs: Attrs,
}

/// The table: operations of every family, from those too small for any GPU to those that fill one.
fn rows() -> Vec<Row> {
    const PLAIN: &[(Op, &[&[usize]])] = &[
        (Op::Matmul, &[&[16, 16], &[16, 16]]),
        (Op::Matmul, &[&[128, 128], &[128, 128]]),
        (Op::Matmul, &[&[256, 256], &[256, 256]]),
        (Op::Matmul, &[&[512, 512], &[512, 512]]),
        (Op::Matmul, &[&[1024, 1024], &[1024, 1024]]),
        (Op::Matmul, &[&[2048, 2048], &[2048, 2048]]),
        (Op::Matmul, &[&[4096, 4096], &[4096, 4096]]),
        (Op::Matmul, &[&[1, 4096], &[4096, 4096]]),
        (Op::Matmul, &[&[32, 1024], &[1024, 4096]]),
        (Op::Ffn, &[&[1, 512], &[512, 2048], &[2048], &[2048, 512], &[512]]),
        (Op::Ffn, &[&[256, 512], &[512, 2048], &[2048], &[2048, 512], &[512]]),
        (Op::Attention, &[&[8, 64, 64], &[8, 64, 64], &[8, 64, 64]]),
        (Op::Attention, &[&[8, 512, 64], &[8, 512, 64], &[8, 512, 64]]),
        (Op::Attention, &[&[16, 2048, 64], &[16, 2048, 64], &[16, 2048, 64]]),
        (Op::Relu, &[&[1024]]),
        (Op::Add, &[&[256, 256], &[256, 256]]),
        (Op::Add, &[&[4096, 4096], &[4096, 4096]]),
        (Op::Gelu, &[&[64, 1024]]),
        (Op::Gelu, &[&[4096, 4096]]),
        (Op::Softmax, &[&[64, 128]]),
        (Op::Softmax, &[&[1024, 1024]]),
        (Op::Softmax, &[&[16384, 4096]]),
        (Op::Layernorm, &[&[1024, 1024], &[1024], &[1024]]),
        (Op::Sum, &[&[4096, 4096]]),
        (Op::Transpose, &[&[1024, 1024]]),
        (Op::Transpose, &[&[4096, 4096]]),
        (Op::Embedding, &[&[30522, 384], &[8192]]),
    ];
    let row = |&(op, shapes)| {
        let axis = if op == Op::Sum { Axis::All } else { Axis::Default };
        Row { op, shapes, attrs: Attrs { axis, ..Attrs::default() } }
    };
    PLAIN.iter().map(row).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Host,
    Weights,
    Gpu,
}

impl Row {
    fn name(&self) -> String {
        let dims = |shape: &&[usize]| shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let count = if self.op == Op::Embedding { 2 } else { 1 };
        let first: Vec<String> =
            self.shapes.iter().take(count.max(usize::from(self.op == Op::Matmul) * 2)).map(dims).collect();
        format!("{} {}", self.op, first.join(" "))
    }

    fn operands(&self) -> Result<Vec<Tensor>> {
        let make = |(i, dims): (usize, &&[usize])| {
            let (count, seed) = (dims.iter().product(), i as u64 + 1);
            // The operand after the table is ids.
            let (dtype, bytes) = match self.op {
                Op::Embedding if i == 1 => (DType::I32, ids(DType::I32, count, seed, self.shapes[0][0] as u64)),
                _ => (DType::F32, rand(DType::F32, count, seed, 0)),
            };
            Tensor::from_bytes(&bytes.unwrap_or_default(), dtype, dims)
        };
        self.shapes.iter().enumerate().map(make).collect()
    }
}

/// A way to run work: on one device alone, or wherever the dispatcher sends it.
struct Way {
    id: Option<String>,
    /// A context of this device alone.
    alone: Context,
}

/// Runs a row's operation once in one way. Returns its time and the device.
type Turn<'a> = Box<dyn FnMut() -> Result<(Duration, String)> + 'a>;

/// Operands and a result in host memory, which all devices use in turns.
struct HostWork {
    operands: Vec<Tensor>,
    meta: Meta,
    output: RefCell<Vec<f32>>,
}

impl HostWork {
    fn new(row: &Row, operands: &[Tensor]) -> Result<HostWork> {
        let copy = |x: &Tensor| Tensor::from_bytes(x.host_bytes()?, x.dtype(), x.dims());
        let operands: Vec<Tensor> = operands.iter().map(copy).collect::<Result<_>>()?;
        operands.iter().try_for_each(Tensor::stay_on_host)?;
        let views: Vec<Option<View<'_>>> = operands.iter().map(|tensor| Some(tensor.view())).collect();
        let meta = row.op.info().infer(&row.attrs, &views)?;
        drop(views);
        let output = RefCell::new(vec![0f32; meta.shape.elements()]);
        Ok(HostWork { operands, meta, output })
    }

    /// Runs the operation often enough for the clock, each time from host memory to host memory.
    fn turn<'a>(&'a self, row: &'a Row, context: &'a Context) -> impl FnMut() -> Result<(Duration, String)> + use<'a> {
        let once = |count: u32| -> Result<Duration> {
            let views: Vec<Option<View<'_>>> = self.operands.iter().map(|tensor| Some(tensor.view())).collect();
            let mut output = self.output.borrow_mut();
            let begin = Instant::now();
            for _ in 0..count {
                let output = ViewMut::f32(&mut output, &self.meta)?;
                context.execute(&mut Command::new(row.op, row.attrs, &views, output)?)?;
            }
            Ok(begin.elapsed() / count)
        };
        let mut runs = 0u32;
        move || {
            // Wakes the threads of this context, which slept during another one's turn.
            once(1)?;
            if runs == 0 {
                runs = (2e-4 / once(1)?.as_secs_f64()).clamp(1.0, 1000.0) as u32;
            }
            Ok((once(runs)?, String::new()))
        }
    }
}

struct Machine {
    /// The context with the dispatcher under test.
    auto: Context,
    /// The single devices, then the dispatcher's choice.
    ways: Vec<Way>,
    gpu: Option<String>,
}

/// A context without calibration, so the built-in figures are tested.
fn open(name: &str) -> Result<Context> {
    let config = Config { cache_dir: Some(std::env::temp_dir().join("adead-regret")), ..Config::load()? };
    Context::configured(Some(name), &ContextOptions::default(), &config)
}

/// The same with the dispatcher choosing.
fn choosing(name: &str) -> Result<Context> {
    let context = open(name)?;
    context.dispatcher().force(None)?;
    Ok(context)
}

impl Machine {
    fn new(name: &str) -> Result<Machine> {
        let auto = choosing(name)?;
        let ids: Vec<String> = auto.dispatcher().profiles().iter().map(|profile| profile.id.clone()).collect();
        let mut ways = Vec::new();
        for id in &ids {
            ways.push(Way { id: Some(id.clone()), alone: open(id)? });
        }
        ways.push(Way { id: None, alone: choosing(name)? });
        Ok(Machine { auto, ways, gpu: ids.into_iter().find(|id| id != "cpu") })
    }

    /// A row's regret, the microseconds of each way, and the device that the dispatcher chooses.
    fn regret(&self, row: &Row, place: Place) -> Result<(f64, Vec<f64>, String)> {
        let once = || -> Result<(f64, Vec<f64>, String)> {
            let (times, chosen) = self.measure(row, place)?;
            let (auto, alone) = times.split_last().unwrap_or((&0.0, &[]));
            let best = alone.iter().copied().fold(f64::INFINITY, f64::min);
            Ok((auto / best, times, chosen))
        };
        let mut all = vec![once()?];
        if all[0].0 > MOST {
            all.extend([once()?, once()?]);
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Ok(all.swap_remove(all.len() / 2))
    }

    /// Microseconds of a row for each way, and the device that the dispatcher chooses.
    fn measure(&self, row: &Row, place: Place) -> Result<(Vec<f64>, String)> {
        let operands = row.operands()?;
        let given: Vec<Option<&Tensor>> = operands.iter().map(Some).collect();
        let chosen = match place {
            Place::Host => self.auto.explain(row.op, &row.attrs, &given)?.id().to_string(),
            _ => String::new(),
        };
        let estimates: Vec<f64> = self
            .auto
            .explain(row.op, &row.attrs, &given)?
            .estimates
            .iter()
            .map(|estimate| estimate.total_ns())
            .collect();
        let least = estimates.iter().copied().fold(f64::INFINITY, f64::min);
        let hopeless = |i: usize| estimates.get(i).is_some_and(|&ns| ns > 1e9 && ns > 100.0 * least);
        let host = if place == Place::Host { Some(HostWork::new(row, &operands)?) } else { None };
        let mut turns: Vec<Turn<'_>> = Vec::new();
        for (i, way) in self.ways.iter().enumerate() {
            if hopeless(i) {
                turns.push(Box::new(|| Ok((Duration::MAX, String::new()))));
                continue;
            }
            turns.push(match &host {
                Some(host) => Box::new(host.turn(row, &way.alone)),
                None => Box::new(self.near(row, place, way.id.as_deref(), &operands)?),
            });
        }
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); turns.len()];
        let (mut last, mut total) = (String::new(), Duration::ZERO);
        // The first turn allocates and compiles.
        for turn in &mut turns {
            turn()?;
        }
        let rounds = |total: Duration, done: usize| done < 5 || (done < 101 && total < BUDGET * self.ways.len() as u32);
        let (mut order, mut random) = ((0..turns.len()).collect::<Vec<_>>(), 1u64);
        while rounds(total, times[0].len()) {
            // Each way follows every other way equally often: the processor's threads sleep during a GPU's turn and start slower
            // after it.
            for i in (1..order.len()).rev() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(i, (random >> 33) as usize % (i + 1));
            }
            for &i in &order {
                let (time, at) = turns[i]()?;
                total += if time == Duration::MAX { Duration::ZERO } else { time };
                times[i].push(time.as_secs_f64() * 1e6);
                if i + 1 == turns.len() {
                    last = at;
                }
            }
        }
        let medians = times.into_iter().map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        Ok((medians.collect(), if chosen.is_empty() { last } else { chosen }))
    }

    /// Runs once with operands on the GPU, because its result would be there for a second run.
    fn near<'a>(
        &'a self,
        row: &'a Row,
        place: Place,
        way: Option<&'a str>,
        operands: &[Tensor],
    ) -> Result<impl FnMut() -> Result<(Duration, String)> + use<'a>> {
        let gpu = self.gpu.as_deref().unwrap_or("cpu");
        let (context, dispatcher) = (&self.auto, self.auto.dispatcher());
        let mut base = Vec::new();
        for (i, x) in operands.iter().enumerate() {
            let x = Tensor::from_bytes(x.host_bytes()?, x.dtype(), x.dims())?;
            if place == Place::Weights && i == 0 {
                x.stay_on_host()?;
            } else {
                context.to(&x, gpu)?;
            }
            base.push(x);
        }
        Ok(move || {
            dispatcher.force(Some(gpu))?;
            // A copy that only the GPU has.
            let axis = Attrs { axis: Axis::At(0), ..Attrs::default() };
            let far = |x: &Tensor| match place {
                Place::Gpu => context.run(Op::Concat, &axis, &[Some(x)]),
                _ => Ok(x.clone()),
            };
            let operands: Vec<Tensor> = base.iter().map(far).collect::<Result<_>>()?;
            context.wait()?;
            // Computing the dispatcher's steps takes time, in which a GPU goes to sleep. So each way computes them.
            if way.is_some() {
                dispatcher.force(None)?;
            }
            dispatcher.force(way)?;
            let given: Vec<Option<&Tensor>> = operands.iter().map(Some).collect();
            let begin = Instant::now();
            let result = context.run(row.op, &row.attrs, &given)?;
            let at = result.places().join(",");
            if place == Place::Weights {
                result.host_bytes()?;
            } else if !result.is_on_host() {
                context.wait()?;
            }
            let time = begin.elapsed();
            dispatcher.force(None)?;
            Ok((time, at))
        })
    }
}

fn run() -> Result<bool> {
    let (mut device, mut only, mut arguments) = ("auto".to_string(), None, std::env::args().skip(1));
    while let Some(argument) = arguments.next() {
        if argument == "--only" { only = arguments.next() } else { device = argument }
    }
    let machine = Machine::new(&device)?;
    for profile in machine.auto.dispatcher().profiles() {
        println!("{}: {}", profile.id, profile.source);
    }
    let names: Vec<&str> = machine.ways.iter().map(|way| way.id.as_deref().unwrap_or("auto")).collect();
    println!(
        "\n| | place | {} µs | chosen | regret |\n|---|---|{}---|--:|",
        names.join(" | "),
        "--:|".repeat(names.len())
    );
    let mut all: Vec<(f64, String)> = Vec::new();
    for row in rows() {
        if only.as_ref().is_some_and(|only| !row.name().contains(only)) {
            continue;
        }
        for (place, name) in [(Place::Host, "host"), (Place::Weights, "weights"), (Place::Gpu, "gpu")] {
            if place != Place::Host && (machine.gpu.is_none() || place == Place::Weights && row.shapes.len() < 2) {
                continue;
            }
            let (regret, times, chosen) = machine.regret(&row, place)?;
            let times: Vec<String> =
                times.iter().map(|&time| if time > 1e15 { "–".into() } else { format!("{time:.3}") }).collect();
            let mark = if regret > MOST { " !" } else { "" };
            println!("| {} | {name} | {} | {chosen} | {regret:.2}{mark} |", row.name(), times.join(" | "));
            all.push((regret, format!("{} ({name})", row.name())));
        }
    }
    let mean = (all.iter().map(|(regret, _)| regret.ln()).sum::<f64>() / all.len().max(1) as f64).exp();
    let above = all.iter().filter(|(regret, _)| *regret > MOST).count();
    let worst = all.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    println!("\n{} rows: geometric mean {mean:.3} (goal {MEAN}), {above} above {MOST}", all.len());
    if let Some((regret, name)) = worst {
        println!("the most: {regret:.2}, {name}");
    }
    Ok(above == 0 && mean <= MEAN)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("regret: {error}");
            ExitCode::from(2)
        }
    }
}
