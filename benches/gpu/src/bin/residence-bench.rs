//! Compares tensors that stay on a GPU with the same calls whose operands and results move each time. The work is layers of
//! relu(x·w) over one batch, through `Context::run`, with weights that begin in host memory. Times are wall-clock times from the
//! first call to the result in host memory.
//!
//! ```text
//! residence-bench cuda:0
//! residence-bench vulkan:0
//! ```
//!
//! The exit status is not 0 if results differ in a bit.

use adead::{Context, Result, Tensor};
use std::process::ExitCode;
use std::time::Instant;

const LAYERS: usize = 8;
const ROUNDS: usize = 15;

/// Numbers in [−0.05, 0.05).
fn some(dims: &[usize], seed: u32) -> Result<Tensor> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * 0.05
    };
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
    Tensor::new(&values, dims)
}

/// A tensor that shares nothing with this one, so that no device has a copy.
fn anew(x: &Tensor) -> Result<Tensor> {
    Tensor::from_bytes(x.host_bytes()?, x.dtype(), x.dims())
}

/// Milliseconds of all layers, and the result.
fn layers(ctx: &Context, x: &Tensor, weights: &[Tensor], stay: bool) -> Result<(f64, Tensor)> {
    let begin = Instant::now();
    let mut y = anew(x)?;
    for w in weights {
        let (y0, w) = if stay { (y, w.clone()) } else { (anew(&y)?, anew(w)?) };
        y = ctx.matmul(&y0, &w)?;
        y = ctx.relu(&if stay { y } else { anew(&y)? })?;
    }
    y.host_bytes()?;
    Ok((begin.elapsed().as_secs_f64() * 1e3, y))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(ctx: &Context, rows: usize, n: usize) -> Result<bool> {
    let x = some(&[rows, n], 1)?;
    let weights = (0..LAYERS).map(|i| some(&[n, n], 2 + i as u32)).collect::<Result<Vec<_>>>()?;
    let first = layers(ctx, &x, &weights, true)?.0;
    let (mut times, mut same) = ([Vec::new(), Vec::new()], true);
    for _ in 0..ROUNDS {
        let (stayed, travelled) = (layers(ctx, &x, &weights, true)?, layers(ctx, &x, &weights, false)?);
        same &= stayed.1.host_bytes()? == travelled.1.host_bytes()?;
        times[0].push(stayed.0);
        times[1].push(travelled.0);
    }
    let [stayed, travelled] = times.map(median);
    println!(
        "[{rows}, {n}] × {LAYERS}: first time {first:.2} ms, then {stayed:.2} ms; all of it moved each time {travelled:.2} ms: {:.1} times{}",
        travelled / stayed,
        if same { "" } else { "  DIFFERS" }
    );
    Ok(same)
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or("cuda:0".into());
    let run = || -> Result<bool> {
        let ctx = Context::open(&name)?;
        println!("{ctx:?}");
        let mut same = true;
        for (rows, n) in [(1, 1024), (64, 1024), (256, 2048), (2048, 2048)] {
            same &= measure(&ctx, rows, n)?;
        }
        println!("{:?}", ctx.tensor_cache(&name)?);
        Ok(same)
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("residence-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
