//! Keeps a device busy from several threads: random operations, transfers, recordings, users' kernels, allocations and errors,
//! each on a stream of its own. Every result is compared with the CPU's, bit for bit. Memory must not grow.
//!
//! ```text
//! adead-soak --device cuda:0                  ten minutes
//! adead-soak --device vulkan:0 --seconds 10
//! adead-soak --device cuda:0 --threads 4 --seed 7
//! adead-soak --device cuda:0 --only transfers,recordings
//! ```
//!
//! Exits with 77 and the reason if the device does not exist.

#[path = "../../../../../../core/tests/draws/mod.rs"]
#[allow(dead_code)]
mod draws;
mod memory;
mod work;

use adead_core::{Gpu, Status};
use memory::Growth;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};
use work::{COUNT, Fault, KINDS, Worker};

/// A thread without a result for this long hangs. A large kernel in software takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The number of memory measurements in a run.
const LOOKS: u32 = 5;

/// The command line's arguments.
struct Arguments {
    device: String,
    time: Duration,
    threads: usize,
    seed: u64,
    kinds: Vec<usize>,
}

/// The state that all threads share.
pub struct Shared {
    /// The device.
    pub gpu: Gpu,
    /// The kinds of work to do.
    pub kinds: Vec<usize>,
    /// Set when the time is over, and by a thread that fails.
    pub over: AtomicBool,
    /// Set while the threads must pause.
    pub pause: AtomicBool,
    /// The number of paused threads.
    pub resting: AtomicUsize,
    /// Steps done, by kind.
    pub done: [AtomicU64; COUNT],
}

fn arguments() -> Result<Arguments, String> {
    let mut all = std::env::args().skip(1);
    let mut arguments = Arguments {
        device: String::new(),
        time: Duration::from_secs(600),
        threads: 6,
        seed: 0,
        kinds: (0..COUNT).collect(),
    };
    while let Some(word) = all.next() {
        let value = all.next().ok_or(format!("unknown option or missing value: {word}"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} {value}: not a number"));
        match word.as_str() {
            "--device" => arguments.device = value,
            "--minutes" => arguments.time = Duration::from_secs(60 * number()?),
            "--seconds" => arguments.time = Duration::from_secs(number()?),
            "--threads" => arguments.threads = number()?.clamp(1, 256) as usize,
            "--seed" => arguments.seed = number()?,
            "--only" => arguments.kinds = value.split(',').map(kind).collect::<Result<_, _>>()?,
            _ => return Err(format!("unknown option '{word}'")),
        }
    }
    if arguments.device.is_empty() {
        return Err("--device is missing, such as --device cuda:0".into());
    }
    Ok(arguments)
}

fn kind(name: &str) -> Result<usize, String> {
    let known = KINDS.iter().position(|kind| *kind == name);
    known.ok_or_else(|| format!("unknown kind of work '{name}': expected {}", KINDS.join(", ")))
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("adead-soak: {error}");
            return ExitCode::FAILURE;
        }
    };
    memory::keep_little();
    let gpu = match Gpu::open(&arguments.device) {
        Ok(gpu) => gpu,
        Err(error) if error.status() == Status::BackendUnavailable => {
            println!("skipped: {error}");
            return ExitCode::from(77);
        }
        Err(error) => {
            eprintln!("adead-soak: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(&arguments, gpu) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments, gpu: Gpu) -> Result<(), String> {
    let info = gpu.device_info().clone();
    let Arguments { time, threads, seed, .. } = *arguments;
    let kinds = arguments.kinds.clone();
    println!("{} ({}): {threads} threads for {} s, seed {seed}", info.id, info.name, time.as_secs());
    let shared = Shared {
        gpu,
        kinds,
        over: AtomicBool::new(false),
        pause: AtomicBool::new(false),
        resting: AtomicUsize::new(0),
        done: [const { AtomicU64::new(0) }; COUNT],
    };
    let ticks: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let mut growth = Growth::default();
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|i| {
                let (shared, tick) = (&shared, &ticks[i]);
                scope.spawn(move || {
                    let outcome = Worker::new(shared, seed << 16 | i as u64).and_then(|mut worker| worker.run(tick));
                    // One failure ends all threads.
                    if outcome.is_err() {
                        shared.over.store(true, Relaxed);
                    }
                    outcome.map_err(|Fault(text)| format!("thread {i}: {text}"))
                })
            })
            .collect();
        let watched = watch(&shared, time, &ticks, &mut growth);
        shared.over.store(true, Relaxed);
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        for outcome in ended {
            outcome.map_err(|_| "a thread panicked; its message is above".to_string())??;
        }
        watched
    });
    outcome?;
    println!("{}", counts(&shared));
    if let Some(none) = arguments.kinds.iter().find(|&&kind| shared.done[kind].load(Relaxed) == 0) {
        return Err(format!("the time was too short for {}", KINDS[*none]));
    }
    memory::none_in_use(&shared.gpu)?;
    growth.judge(time)?;
    println!("{}: every result equals the CPU's; all memory went back", info.id);
    Ok(())
}

/// Prints every ten seconds what was done, and measures memory, until the time is over or a thread fails.
fn watch(shared: &Shared, time: Duration, ticks: &[AtomicU64], growth: &mut Growth) -> Result<(), String> {
    let begin = Instant::now();
    let (mut said, mut looks) = (0, 1);
    let mut last: Vec<_> = ticks.iter().map(|_| (0, begin)).collect();
    while begin.elapsed() < time && !shared.over.load(Relaxed) {
        sleep(Duration::from_millis(5));
        watch_ticks(ticks, &mut last);
        if begin.elapsed() > time * looks / LOOKS {
            looks += 1;
            rest(shared, ticks, &mut last, growth)?;
        }
        if begin.elapsed().as_secs() / 10 > said {
            said = begin.elapsed().as_secs() / 10;
            println!("{} s: {}; {}", said * 10, counts(shared), memory::now(&shared.gpu));
        }
    }
    Ok(())
}

/// Pauses all threads while memory is measured.
fn rest(shared: &Shared, ticks: &[AtomicU64], last: &mut [(u64, Instant)], growth: &mut Growth) -> Result<(), String> {
    shared.pause.store(true, SeqCst);
    while shared.resting.load(SeqCst) < ticks.len() {
        if shared.over.load(Relaxed) {
            return Ok(());
        }
        sleep(Duration::from_millis(1));
        watch_ticks(ticks, last);
    }
    let looked = growth.look(&shared.gpu);
    shared.pause.store(false, SeqCst);
    // All threads must have resumed before the next pause.
    while shared.resting.load(SeqCst) > 0 && !shared.over.load(Relaxed) {
        sleep(Duration::from_millis(1));
        watch_ticks(ticks, last);
    }
    looked
}

/// Ends the process if a thread hangs, because the thread can't be ended alone.
fn watch_ticks(ticks: &[AtomicU64], last: &mut [(u64, Instant)]) {
    for (i, (tick, last)) in ticks.iter().zip(last).enumerate() {
        let now = tick.load(Relaxed);
        if now != last.0 {
            *last = (now, Instant::now());
        } else if last.1.elapsed() > PATIENCE {
            println!("FAILED: thread {i} hangs: nothing for {} s after step {now}", PATIENCE.as_secs());
            std::process::exit(1);
        }
    }
}

fn counts(shared: &Shared) -> String {
    let of = |kind: usize| format!("{} {}", shared.done[kind].load(Relaxed), KINDS[kind]);
    shared.kinds.iter().map(|&kind| of(kind)).collect::<Vec<_>>().join(", ")
}
