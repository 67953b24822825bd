//! Processes batches on a device in six ways, checks every result, and prints the speedup of each way over one batch
//! after the other. `docs/overlap.md` says when to use each.
//!
//! `cargo run --release -p adead --example overlap_demo -- [--tiny] [DEVICE]`: the best device unless one is named.

mod patterns;

use adead::device::DeviceKind;
use adead::{Context, Result};
use patterns::{PATTERNS, Work};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("overlap_demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let (mut tiny, mut device) = (false, "auto".to_string());
    for word in std::env::args().skip(1) {
        if word == "--tiny" { tiny = true } else { device = word }
    }
    let ctx = Context::open(&device)?;
    // A context that chooses devices has its buffers on the GPU.
    let anything = ctx.buffer_zeroed(4)?;
    let info = anything.device();
    // A device without its own memory has nothing to copy, so only the results are checked there.
    let hardware = matches!(info.kind, DeviceKind::Discrete | DeviceKind::Virtual);
    let (count, size) = if hardware && !tiny { (24, [16384, 512]) } else { (8, [64, 64]) };
    let mut work = Work::new(&ctx, count, size, 2)?;
    println!("device   {} ({})", info.name, info.id);
    if hardware && !tiny {
        let stages = work.balance()?;
        let [up, compute, down] = [stages.upload, stages.compute, stages.download].map(|seconds| seconds * 1e3);
        println!("a batch  upload {up:.3} ms, {} products {compute:.3} ms, download {down:.3} ms", work.steps());
    }
    println!("batches  {count} of {} bytes", work.bytes());

    // Every way must give the results of the first one on the CPU.
    let mut expected = vec![Vec::new(); count];
    (PATTERNS[0].1)(&work, &mut |n, bytes| expected[n] = bytes.to_vec())?;
    let cpu = Work::new(&Context::open("cpu")?, 1, size, work.steps())?;
    let mut same = false;
    (PATTERNS[0].1)(&cpu, &mut |n, bytes| same = n == 0 && bytes == expected[0])?;
    if !same {
        eprintln!("overlap_demo: the first batch differs from the CPU's");
        return Ok(false);
    }
    let mut sequential = 0.0;
    for (name, pattern) in PATTERNS {
        let (mut taken, mut wrong) = (0, 0);
        pattern(&work, &mut |n, bytes| {
            wrong += usize::from(n != taken || !(bytes.is_empty() || bytes == expected[n]));
            taken += 1;
        })?;
        if wrong > 0 || taken != count {
            eprintln!("overlap_demo: {name}: {taken} results of {count}, {wrong} of them wrong");
            return Ok(false);
        }
        let begin = Instant::now();
        pattern(&work, &mut |_, _| {})?;
        let rate = count as f64 / begin.elapsed().as_secs_f64();
        if sequential == 0.0 {
            sequential = rate;
        }
        println!("{name:<24} {rate:>9.1} batches/s, {:.2} of sequential", rate / sequential);
    }
    // The state that every batch changed must equal that of a loop.
    let mut sum = vec![0.0f32; work.bytes() / 4];
    for bytes in &expected {
        for (sum, four) in sum.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *sum += f32::from_ne_bytes(*four);
        }
    }
    if work.training(&mut |_, _| {})? != sum {
        eprintln!("overlap_demo: the state of training differs from the sum of the results");
        return Ok(false);
    }
    println!("checked all results: exact");
    Ok(true)
}
