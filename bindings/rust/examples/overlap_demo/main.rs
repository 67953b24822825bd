//! Takes batches through a device in six ways, checks every result, and prints what each way gains over doing one batch after
//! the other. `docs/overlap.md` says when which one pays.
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
    // A context that chooses has its buffers on the GPU.
    let anything = ctx.buffer_zeroed(4)?;
    let info = anything.device();
    // What has no memory of its own has nothing to copy: there it is about the results.
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

    // What every way must give: the results of the first one, which are the processor's.
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
    // A state that every batch changed is what a loop would have made of it.
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
