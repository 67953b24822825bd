//! Runs batches through the device in six ways, with stages that take about equally long, and compares with running them in
//! sequence.

#[path = "../../../bindings/rust/examples/overlap_demo/patterns.rs"]
mod patterns;

use crate::timing::Times;
use adead_core::{Context, Result};
use patterns::{PATTERNS, Stages, Work};
use serde_json::{Value, json};
use std::time::Instant;

/// The size of the measurement.
#[derive(Clone, Copy)]
pub struct Size {
    batches: usize,
    rows: usize,
    width: usize,
    rounds: usize,
}

/// Batches of 64 MiB, or of 16 MiB, or so small that a software GPU finishes.
pub fn size(quick: bool, tiny: bool) -> Size {
    match (tiny, quick) {
        (true, _) => Size { batches: 5, rows: 64, width: 64, rounds: 1 },
        (false, true) => Size { batches: 16, rows: 8192, width: 512, rounds: 3 },
        (false, false) => Size { batches: 32, rows: 32768, width: 512, rounds: 7 },
    }
}

/// Measures the stages, and the patterns in rounds, each pattern once per round. If a pattern's results are wrong, it has an
/// `error` instead of times.
pub fn measure(ctx: &Context, size: Size) -> Result<Value> {
    let Size { batches, rows, width, rounds } = size;
    let mut work = Work::new(ctx, batches, [rows, width], 1)?;
    let stages = work.balance()?;
    println!(
        "{batches} batches of {:.1} MiB: upload {:.3} ms, {} products {:.3} ms, download {:.3} ms",
        work.bytes() as f64 / f64::from(1 << 20),
        stages.upload * 1e3,
        work.steps(),
        stages.compute * 1e3,
        stages.download * 1e3
    );
    // By now memory is allocated and kernels are compiled.
    let wrong = check(&work)?;
    let mut seconds = [const { Vec::new() }; PATTERNS.len()];
    for _ in 0..rounds {
        for ((_, pattern), seconds) in PATTERNS.iter().zip(&mut seconds) {
            let begin = Instant::now();
            pattern(&work, &mut |_, _| {})?;
            seconds.push(begin.elapsed().as_secs_f64());
        }
    }
    let found = PATTERNS.iter().zip(&seconds).zip(wrong);
    let patterns: Vec<_> =
        found.map(|(((name, _), own), wrong)| entry(name, own, &seconds[0], &stages, batches, wrong)).collect();
    println!("{:<24} {:>10} {:>12} {:>15} {:>9}", "", "ms a batch", "× sequential", "(least, most)", "hidden");
    patterns.iter().for_each(print);
    Ok(json!({
        "batches": batches, "bytes": work.bytes(), "products": work.steps(), "rounds": rounds,
        "stages": {"upload": stages.upload, "compute": stages.compute, "download": stages.download},
        "patterns": patterns,
    }))
}

/// The number of results of each pattern that differ from the first pattern's.
fn check(work: &Work) -> Result<Vec<usize>> {
    let mut expected = vec![Vec::new(); work.batches.len()];
    (PATTERNS[0].1)(work, &mut |n, bytes| expected[n] = bytes.to_vec())?;
    let count = |(_, pattern): &(_, patterns::Pattern)| {
        let (mut taken, mut wrong) = (0, 0);
        pattern(work, &mut |n, bytes| {
            wrong += usize::from(n != taken || !(bytes.is_empty() || bytes == expected[n]));
            taken += 1;
        })?;
        Ok(wrong + expected.len().abs_diff(taken))
    };
    PATTERNS.iter().map(count).collect()
}

/// A pattern's entry: its times and, for each round, how many times as fast as sequential it was. `hidden` is the share of the
/// time behind the slowest stage that was actually hidden.
fn entry(name: &str, own: &[f64], sequential: &[f64], stages: &Stages, batches: usize, wrong: usize) -> Value {
    if wrong > 0 {
        return json!({"name": name, "error": format!("{wrong} of {batches} results are wrong")});
    }
    let mut ratios: Vec<_> = own.iter().zip(sequential).map(|(own, sequential)| sequential / own).collect();
    ratios.sort_by(f64::total_cmp);
    let (ratio, least, most) = (ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]);
    let slowest = stages.upload.max(stages.compute).max(stages.download);
    let all = stages.upload + stages.compute + stages.download;
    let times = Times::of(own.to_vec(), batches);
    let hidden = ((all - times.median) / (all - slowest)).clamp(0.0, 1.0);
    json!({
        "name": name, "seconds_a_batch": times.to_json(), "ratio": ratio, "least": least, "most": most, "hidden": hidden,
    })
}

fn print(entry: &Value) {
    let name = entry["name"].as_str().unwrap_or_default();
    if let Some(error) = entry["error"].as_str() {
        return println!("{name:<24} error: {error}");
    }
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    println!(
        "{name:<24} {:>10.3} {:>12.2} {:>15} {:>7.0} %",
        number(&entry["seconds_a_batch"]["median"]) * 1e3,
        number(&entry["ratio"]),
        format!("({:.2}, {:.2})", number(&entry["least"]), number(&entry["most"])),
        number(&entry["hidden"]) * 100.0
    );
}
