//! Measures which tile of a GPU serves which product, and fits the costs by which the GPU chooses tiles.
//!
//! Each tile computes a list of products. Then the costs are changed step by step, from those that hold now, as long as the tiles that they
//! choose take less time. So on these products the new costs are never worse than the old ones.

use super::gpu::{Job, least};
use super::number;
use crate::args::CalibrateArgs;
use crate::failure::{Failure, Result, line, write};
use crate::format::table;
use crate::progress::Progress;
use adead::dispatch::tiles;
use adead::{Context, Op, Status};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// The products that are measured, m, n and k, from little work to much.
const PRODUCTS: [[usize; 3]; 22] = [
    [128, 128, 128],
    [64, 1024, 64],
    [256, 256, 256],
    [64, 512, 1536],
    [384, 384, 384],
    [2048, 64, 512],
    [512, 512, 512],
    [128, 768, 1024],
    [640, 640, 640],
    [300, 5000, 200],
    [200, 200, 8000],
    [128, 1024, 4096],
    [768, 768, 768],
    [4096, 64, 4096],
    [1000, 1000, 1000],
    [1024, 1024, 1024],
    [1280, 1280, 1280],
    [1536, 1536, 1536],
    [1792, 1792, 1792],
    [2048, 2048, 2048],
    [3072, 3072, 3072],
    [4096, 4096, 4096],
];

/// A product that takes longer is the last one.
const MOST: Duration = Duration::from_millis(20);

/// The time that the runs of a product take together, at least.
const TOGETHER: Duration = Duration::from_millis(1);

/// By what a cost is multiplied to find a better one.
const STEPS: [f64; 8] = [0.7, 0.85, 0.93, 0.97, 1.03, 1.07, 1.18, 1.4];

/// What was measured of a GPU.
struct Measured {
    products: Vec<[usize; 3]>,
    /// By product and tile: nanoseconds.
    times: Vec<Vec<f64>>,
}

/// Measures the GPUs of a context, and writes a file for each.
pub fn run(
    args: &CalibrateArgs,
    ctx: &Context,
    folder: &Path,
    budget: Duration,
    open: &dyn Fn(&str) -> Result<Context>,
) -> Result<()> {
    let (mut progress, mut text, mut list) = (Progress::new(), String::new(), serde_json::Map::new());
    for gpu in ctx.devices().into_iter().filter(|info| info.id != "cpu") {
        let own = open(&gpu.id)?;
        let Some(before) = own.with_tiles(&gpu.id, |_, costs| costs.all())? else { continue };
        let measured = measure(&own, &gpu.id, budget, &mut progress)?;
        let was = lost(&own, &gpu.id, &measured)?;
        let (after, is) = fitted(&own, &gpu.id, &measured, was)?;
        let path = own.with_tiles(&gpu.id, |device, costs| tiles::store(folder, device.info(), costs))?.transpose()?;
        let path = path.unwrap_or_default().display().to_string();
        let names = own.with_tiles(&gpu.id, |_, costs| {
            costs.table().iter().map(|cost| format!("{}x{}", cost.tile.bm, cost.tile.bn)).collect::<Vec<_>>()
        })?;
        let heads = ["tile", "alone", "before", "beside others", "before", "fastest in"].map(String::from).to_vec();
        let (mut rows, mut tiles) = (vec![heads], Vec::new());
        for (i, name) in names.unwrap_or_default().into_iter().enumerate() {
            let first = measured.times.iter().filter(|times| best(times) == times[i]).count();
            tiles.push(json!({"tile": name, "before": before[i], "now": after[i], "fastest": first}));
            let costs = [after[i][0], before[i][0], after[i][1], before[i][1]].map(number);
            rows.push([name].into_iter().chain(costs).chain([first.to_string()]).collect());
        }
        let count = measured.products.len();
        list.insert(
            gpu.id.clone(),
            json!({"file": path, "products": count, "lost_before": was, "lost": is, "tiles": tiles}),
        );
        text += &format!(
            "{}: {count} products take {:.1} % longer than with the fastest tile of each ({:.1} % before)\n{}written {path}\n",
            gpu.id,
            100.0 * is,
            100.0 * was,
            table(&rows, 0)
        );
    }
    progress.clear();
    if list.is_empty() {
        return Err(Failure::new(Status::BackendUnavailable, "no GPU here has tiles to measure"));
    }
    if args.json {
        return line(format_args!("{:#}", json!({"devices": list})));
    }
    write(text.as_bytes())
}

/// The shortest of some times.
fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Sets costs of a GPU's tiles.
fn set(ctx: &Context, id: &str, all: &[[f64; 2]]) -> Result<()> {
    ctx.with_tiles(id, |_, costs| all.iter().enumerate().for_each(|(tile, cost)| costs.set(tile, *cost)))?;
    Ok(())
}

/// Measures the products with each tile.
fn measure(ctx: &Context, id: &str, budget: Duration, progress: &mut Progress) -> Result<Measured> {
    let mut measured = Measured { products: Vec::new(), times: Vec::new() };
    let held = ctx.with_tiles(id, |_, costs| costs.all()[..costs.table().len()].to_vec())?;
    let before = held.unwrap_or_default();
    let mut stream = ctx.stream()?;
    for (done, [m, n, k]) in PRODUCTS.into_iter().enumerate() {
        progress.part(done, PRODUCTS.len(), || format!("products of {m}x{n}x{k} on {id}"));
        let job = Job::new(ctx, Op::Matmul, &[&[m, k], &[k, n]])?;
        job.fill()?;
        let mut times = Vec::new();
        for own in 0..before.len() {
            let only = |tile: usize| if tile == own { before[tile] } else { [f64::INFINITY; 2] };
            set(ctx, id, &(0..before.len()).map(only).collect::<Vec<_>>())?;
            let time = job.time(&mut stream, 1).and_then(|_| {
                let once = job.time(&mut stream, 1)?;
                let runs = (TOGETHER.as_secs_f64() / once.as_secs_f64().max(1e-9)).ceil().clamp(1.0, 100.0) as usize;
                Ok(least(budget / 20, || job.time(&mut stream, runs))?.as_nanos() as f64 / runs as f64)
            });
            // Also after an error no tile stays ruled out.
            set(ctx, id, &before)?;
            times.push(time?.max(1.0));
        }
        let is_slow = best(&times) > MOST.as_nanos() as f64;
        measured.products.push([m, n, k]);
        measured.times.push(times);
        if is_slow {
            break;
        }
    }
    Ok(measured)
}

/// The share of time that is lost, on average over the products, because other tiles are chosen than the fastest.
fn lost(ctx: &Context, id: &str, measured: &Measured) -> Result<f64> {
    let of = |(sizes, times): (&[usize; 3], &Vec<f64>)| -> Result<f64> {
        let chosen = ctx.with_tiles(id, |device, _| device.tile_of(sizes.map(|size| size as u32)))?.flatten();
        Ok(chosen.map_or(0.0, |tile| times[tile] / best(times) - 1.0))
    };
    let all = measured.products.iter().zip(&measured.times).map(of).collect::<Result<Vec<_>>>()?;
    Ok(all.iter().sum::<f64>() / all.len().max(1) as f64)
}

/// Changes the costs until no step makes them better. Returns them, and what is lost with them.
fn fitted(ctx: &Context, id: &str, measured: &Measured, mut least: f64) -> Result<(Vec<[f64; 2]>, f64)> {
    let held = ctx.with_tiles(id, |_, costs| costs.all()[..costs.table().len()].to_vec())?;
    let mut all = held.unwrap_or_default();
    loop {
        let begin = least;
        for tile in 0..all.len() {
            for which in 0..2 {
                for step in STEPS {
                    let kept = all[tile][which];
                    all[tile][which] = kept * step;
                    set(ctx, id, &all)?;
                    let now = lost(ctx, id, measured)?;
                    if now < least {
                        least = now;
                    } else {
                        all[tile][which] = kept;
                    }
                }
            }
        }
        set(ctx, id, &all)?;
        if least >= begin {
            return Ok((all, least));
        }
    }
}
