//! Threads open contexts, use them and drop them, on every backend of this machine at once. Every result is compared with the
//! CPU's, bit for bit. A thread that hangs is reported and ends the process.
//!
//! ```text
//! adead-churn                                 ten seconds on the first GPU of each backend
//! adead-churn --minutes 10 --threads 16
//! adead-churn --devices vulkan:0 --seed 7
//! ```
//!
//! Exits with 77 and the reason if there is no GPU.

use adead_core::config::Config;
use adead_core::gpu::Operand;
use adead_core::{Attrs, Context, DType, Meta, Op, Result, Shape, Tensor, devices};
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// A thread that opens no context for this long hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Contexts that a thread opens before all threads meet. At that point no context exists, so devices are closed and opened again.
const ROUND: u64 = 6;
/// Elements of the vectors.
const ELEMENTS: usize = 3000;

/// The command line's arguments.
struct Arguments {
    devices: Vec<String>,
    time: Duration,
    threads: usize,
    seed: u64,
}

fn arguments() -> std::result::Result<Arguments, String> {
    let mut arguments = Arguments { devices: Vec::new(), time: Duration::from_secs(10), threads: 12, seed: 0 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("unknown option or missing value: {word}"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} {value}: expected a whole number"));
        match word.as_str() {
            "--devices" => arguments.devices = value.split(',').map(String::from).collect(),
            "--minutes" => arguments.time = Duration::from_secs(60 * number()?),
            "--seconds" => arguments.time = Duration::from_secs(number()?),
            "--threads" => arguments.threads = number()?.clamp(1, 256) as usize,
            "--seed" => arguments.seed = number()?,
            _ => return Err(format!("unknown option '{word}'")),
        }
    }
    Ok(arguments)
}

/// The first GPU of each backend.
fn first_of_each() -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for info in devices::gpus(&Config::default()).unwrap_or_default() {
        let backend = |id: &str| id.split(':').next().map(String::from);
        if found.iter().all(|id| backend(id) != backend(&info.id)) {
            found.push(info.id);
        }
    }
    found
}

fn main() -> ExitCode {
    let mut arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("adead-churn: {error}");
            return ExitCode::FAILURE;
        }
    };
    if arguments.devices.is_empty() {
        arguments.devices = first_of_each();
    }
    if arguments.devices.is_empty() {
        println!("skipped: no GPU through CUDA or Vulkan");
        return ExitCode::from(77);
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The state that all threads share.
struct Shared<'a> {
    arguments: &'a Arguments,
    /// Whether the time is over or a thread has failed, and whether the round was the last.
    over: AtomicBool,
    last: AtomicBool,
    ended: AtomicUsize,
    /// Contexts opened, by thread and by device.
    ticks: Vec<AtomicU64>,
    opened: Vec<AtomicU64>,
    meeting: Barrier,
}

fn run(arguments: &Arguments) -> std::result::Result<(), String> {
    let Arguments { devices, time, threads, seed } = arguments;
    println!("{}: {threads} threads for {} s, seed {seed}", devices.join(", "), time.as_secs());
    let counters = |n| (0..n).map(|_| AtomicU64::new(0)).collect();
    let shared = Shared {
        arguments,
        over: AtomicBool::new(false),
        last: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
        ticks: counters(*threads),
        opened: counters(devices.len()),
        meeting: Barrier::new(*threads),
    };
    let ended = scope(|scope| {
        let threads: Vec<_> = (0..*threads)
            .map(|i| {
                let shared = &shared;
                scope.spawn(move || shared.work(i))
            })
            .collect();
        shared.watch();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for (i, outcome) in ended.into_iter().enumerate() {
        let outcome = outcome.map_err(|_| format!("thread {i} panicked; its message is above"))?;
        outcome.map_err(|error| format!("thread {i}: {error}"))?;
    }
    println!("contexts: {}; none hung, and every result equals the CPU's", shared.counts());
    Ok(())
}

impl Shared<'_> {
    fn counts(&self) -> String {
        let of = |(id, n): (&String, &AtomicU64)| format!("{} on {id}", n.load(Relaxed));
        self.arguments.devices.iter().zip(&self.opened).map(of).collect::<Vec<_>>().join(", ")
    }

    /// Watches until every thread has ended. A thread that hangs can't be ended alone, so the process ends.
    fn watch(&self) {
        let begin = Instant::now();
        let (mut said, mut last) = (0, vec![(0, begin); self.ticks.len()]);
        while self.ended.load(Relaxed) < self.ticks.len() {
            sleep(Duration::from_millis(20));
            if begin.elapsed() >= self.arguments.time {
                self.over.store(true, Relaxed);
            }
            for (i, (tick, last)) in self.ticks.iter().zip(&mut last).enumerate() {
                let now = tick.load(Relaxed);
                if now != last.0 {
                    *last = (now, Instant::now());
                } else if last.1.elapsed() > PATIENCE {
                    println!("FAILED: thread {i} hangs: nothing for {} s after context {now}", PATIENCE.as_secs());
                    std::process::exit(1);
                }
            }
            if begin.elapsed().as_secs() / 30 > said {
                said = begin.elapsed().as_secs() / 30;
                println!("{} s: {}", said * 30, self.counts());
            }
        }
    }

    /// Rounds of contexts. The threads meet between rounds.
    fn work(&self, thread: usize) -> std::result::Result<(), String> {
        let mut random = Random(self.arguments.seed << 16 | thread as u64);
        let mut outcome = Ok(());
        loop {
            for _ in 0..ROUND {
                if outcome.is_err() || self.over.load(Relaxed) {
                    break;
                }
                outcome = self.context(&mut random);
                self.ticks[thread].fetch_add(1, Relaxed);
            }
            if outcome.is_err() {
                self.over.store(true, Relaxed);
            }
            // One thread decides for all between two meetings. Otherwise a thread could wait for others that have ended.
            if self.meeting.wait().is_leader() && self.over.load(Relaxed) {
                self.last.store(true, Relaxed);
            }
            self.meeting.wait();
            if self.last.load(Relaxed) {
                self.ended.fetch_add(1, Relaxed);
                return outcome;
            }
        }
    }

    /// Opens a context, uses it and drops it.
    fn context(&self, random: &mut Random) -> std::result::Result<(), String> {
        let which = random.below(self.arguments.devices.len());
        let id = &self.arguments.devices[which];
        self.opened[which].fetch_add(1, Relaxed);
        let used = match random.below(4) {
            0 => direct(id, random),
            1 => streams(id, random),
            2 => left_under_way(id, random),
            _ => Context::open(id).and_then(|ctx| ctx.buffer_zeroed(1 + random.below(100_000))).map(|_| true),
        };
        match used {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("a result on {id} differs from the CPU's")),
            Err(error) => Err(format!("{id}: {error}")),
        }
    }
}

/// A full-period generator of 64 bits.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.below(2001) as f32 / 1000.0 - 1.0).collect()
    }
}

/// A product of operands in host memory.
fn direct(id: &str, random: &mut Random) -> Result<bool> {
    let (m, k, n) = (1 + random.below(20), 1 + random.below(60), 1 + random.below(40));
    let a = Tensor::new(&random.values(m * k), &[m, k])?;
    let b = Tensor::new(&random.values(k * n), &[k, n])?;
    let expected = Context::open("cpu")?.matmul(&a, &b)?;
    Ok(Context::open(id)?.matmul(&a, &b)?.to_vec::<f32>()? == expected.to_vec::<f32>()?)
}

fn vector() -> Result<Meta> {
    Ok(Meta::new(DType::F32, Shape::new(&[ELEMENTS])?))
}

/// Two streams: one writes a buffer, and the other reads it after an event.
fn streams(id: &str, random: &mut Random) -> Result<bool> {
    let (ctx, meta, values) = (Context::open(id)?, vector()?, random.values(ELEMENTS));
    let (mut one, mut other) = (ctx.stream()?, ctx.stream()?);
    let (x, y) = (ctx.buffer(&values)?, ctx.buffer_zeroed(4 * ELEMENTS)?);
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    let times = 1 + random.below(20);
    for _ in 0..times {
        one.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y))?;
        let done = one.event()?;
        other.wait_for(&done)?;
        other.run(Op::Add, &Attrs::default(), &[Some(operand(&y)), Some(operand(&y))], operand(&x))?;
        let done = other.event()?;
        one.wait_for(&done)?;
    }
    one.synchronize()?;
    let factor = 2f32.powi(times as i32);
    Ok(x.to_vec::<f32>()? == values.iter().map(|x| x.max(0.0) * factor).collect::<Vec<_>>())
}

/// Everything is dropped while work is in progress.
fn left_under_way(id: &str, random: &mut Random) -> Result<bool> {
    let (ctx, meta) = (Context::open(id)?, vector()?);
    let mut stream = ctx.stream()?;
    let x = ctx.buffer(&random.values(ELEMENTS))?;
    let operand = || Operand { buffer: &x, offset: 0, meta: &meta };
    for _ in 0..random.below(100) {
        stream.run(Op::Gelu, &Attrs::default(), &[Some(operand())], operand())?;
    }
    if random.below(2) == 0 {
        drop(ctx);
    }
    Ok(true)
}
