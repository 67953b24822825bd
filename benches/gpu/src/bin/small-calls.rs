//! Measures a small operation in many processes: relu of 1,024 values until it is done, and the host's time alone. A single
//! process may be lucky and run on an idle processor, so several are measured.
//!
//! ```text
//! small-calls vulkan:0                 20 processes
//! small-calls vulkan:0 --processes 5
//! small-calls vulkan:0 --once          this process only
//! ```

use adead_core::gpu::{Operand, Stream};
use adead_core::{Attrs, Context, DType, Meta, Op, Result, Shape};
use std::process::{Command, ExitCode};
use std::time::Instant;

const ELEMENTS: usize = 1024;
/// Calls that are timed, after as many that are not.
const CALLS: usize = 1000;
/// Consecutive submissions for the host's time.
const ROW: usize = 16;
/// Consecutive operations for the device's time.
const CHAIN: usize = 200;

/// The median, in microseconds.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn microseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6
}

/// Measures four times: until done, of the host, of one operation of a recorded chain, of one independent operation of a
/// recording.
fn measure(device: &str) -> Result<[f64; 4]> {
    let ctx = Context::open(device)?;
    let meta = Meta::new(DType::F32, Shape::new(&[ELEMENTS])?);
    let (mut stream, x, y) = (ctx.stream()?, ctx.buffer(&[-0.5f32; ELEMENTS])?, ctx.buffer_zeroed(4 * ELEMENTS)?);
    let relu = |stream: &mut Stream, from, to| {
        let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
        stream.run(Op::Relu, &Attrs::default(), &[Some(operand(from))], operand(to))
    };
    let (mut done, mut host) = (Vec::new(), Vec::new());
    for i in 0..2 * CALLS {
        let begin = Instant::now();
        relu(&mut stream, &x, &y)?;
        stream.synchronize()?;
        if i >= CALLS {
            done.push(microseconds(begin));
        }
    }
    for _ in 0..CALLS / ROW {
        let begin = Instant::now();
        for _ in 0..ROW {
            relu(&mut stream, &x, &y)?;
            stream.flush()?;
        }
        host.push(microseconds(begin) / ROW as f64);
        stream.synchronize()?;
    }
    let mut recorded = |work: &mut dyn FnMut(&mut Stream) -> Result<()>| -> Result<f64> {
        let recording = stream.record(work)?;
        let mut times = Vec::new();
        for _ in 0..20 {
            let before = stream.timestamp()?;
            stream.replay(&recording)?;
            let after = stream.timestamp()?;
            stream.synchronize()?;
            times.push(after.since(&before)? as f64 / 1e3 / CHAIN as f64);
        }
        Ok(median(times))
    };
    let chain = recorded(&mut |stream| {
        (0..CHAIN / 2).try_for_each(|_| relu(stream, &x, &y).and_then(|()| relu(stream, &y, &x)))
    })?;
    let results = ctx.buffer_zeroed(CHAIN * 4 * ELEMENTS)?;
    let apart = recorded(&mut |stream| {
        (0..CHAIN).try_for_each(|i| {
            let output = Operand { buffer: &results, offset: i * 4 * ELEMENTS, meta: &meta };
            stream.run(Op::Relu, &Attrs::default(), &[Some(Operand { buffer: &x, offset: 0, meta: &meta })], output)
        })
    })?;
    Ok([median(done), median(host), chain, apart])
}

/// Measures in separate processes. Fails if one of them fails.
fn processes(device: &str, count: usize) -> std::result::Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut all: [Vec<f64>; 4] = Default::default();
    for _ in 0..count {
        let output = Command::new(&program).args([device, "--once"]).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(format!(
                "a process ends with {}: {text}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        print!("{text}");
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        all.iter_mut().zip(numbers).for_each(|(all, number)| all.push(number));
    }
    let most = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    let [done, host, chain, apart] = &all;
    println!(
        "{count} processes: until done {:.1} µs, at most {:.1}; host {:.1} µs, at most {:.1}; in a chain {:.2} µs, apart {:.2} µs",
        median(done.clone()),
        most(done),
        median(host.clone()),
        most(host),
        median(chain.clone()),
        median(apart.clone())
    );
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let device = words.first().map_or("vulkan:0", String::as_str);
    let outcome = if words.iter().any(|word| word == "--once") {
        measure(device).map_err(|error| error.to_string()).map(|[done, host, chain, apart]| {
            println!("until done {done:.2} µs, host {host:.2} µs, in a chain {chain:.2} µs, apart {apart:.2} µs");
        })
    } else {
        let at = words.iter().position(|word| word == "--processes");
        let count = at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(20);
        processes(device, count)
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("small-calls: {error}");
            ExitCode::FAILURE
        }
    }
}
