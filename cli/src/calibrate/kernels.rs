//! Measures the tiles of a GPU's products: how long each takes for one more step along K, alone on a multiprocessor and beside others.
//! By these costs the GPU chooses a tile for each product.

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

/// The lengths along K of two products whose difference is measured: the first ones that take long enough.
const LENGTHS: [[usize; 2]; 3] = [[64, 128], [512, 1024], [2048, 4096]];

/// Runs that are timed together.
const RUNS: usize = 4;

/// Long enough beside a launch.
const ENOUGH: Duration = Duration::from_millis(1);

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
        let measured = measure(&own, &gpu.id, budget, &mut progress);
        // The costs that rule tiles out must not stay, also after an error.
        let set = |all: &[[f64; 2]]| {
            own.with_tiles(&gpu.id, |_, costs| all.iter().enumerate().for_each(|(i, cost)| costs.set(i, *cost)))
        };
        set(&before)?;
        let measured = measured?;
        set(&measured)?;
        let path = own.with_tiles(&gpu.id, |info, costs| tiles::store(folder, info, costs))?.transpose()?;
        let path = path.unwrap_or_default().display().to_string();
        let names = own.with_tiles(&gpu.id, |_, costs| {
            costs.table().iter().map(|cost| format!("{}x{}", cost.tile.bm, cost.tile.bn)).collect::<Vec<_>>()
        })?;
        let (mut rows, mut tiles) =
            (vec![["tile", "alone", "before", "beside others", "before"].map(String::from).to_vec()], vec![]);
        for ((name, before), now) in names.unwrap_or_default().into_iter().zip(before).zip(&measured) {
            tiles.push(json!({"tile": name, "before": before, "now": now}));
            rows.push(vec![name, number(now[0]), number(before[0]), number(now[1]), number(before[1])]);
        }
        list.insert(gpu.id.clone(), json!({"file": path, "tiles": tiles}));
        text += &format!("{}: ns for each k\n{}written {path}\n", gpu.id, table(&rows, 0));
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

/// Returns both costs of each tile of a GPU. Leaves costs behind by which only one tile is chosen.
fn measure(ctx: &Context, id: &str, budget: Duration, progress: &mut Progress) -> Result<Vec<[f64; 2]>> {
    let table = ctx.with_tiles(id, |_, costs| costs.table())?.unwrap_or_default();
    let units = ctx.device_info().units.max(1);
    let mut stream = ctx.stream()?;
    let mut all = Vec::new();
    for (own, cost) in table.iter().enumerate() {
        progress.part(own, table.len(), || format!("tile {}x{} on {id}", cost.tile.bm, cost.tile.bn));
        ctx.with_tiles(id, |_, costs| {
            // So little that no product is divided along K.
            (0..table.len()).for_each(|i| costs.set(i, [if i == own { 1e-6 } else { f64::INFINITY }; 2]));
        })?;
        let mut each = |workgroups: usize| -> Result<f64> {
            // As square as it can be.
            let down =
                (1..=workgroups).filter(|n| workgroups.is_multiple_of(*n) && n * n <= workgroups).max().unwrap_or(1);
            let (m, n) = (down * cost.tile.bm as usize, workgroups / down * cost.tile.bn as usize);
            let mut lengths = LENGTHS.into_iter();
            loop {
                let Some([short, long]) = lengths.next() else { return Ok(0.0) };
                let job = |k: usize| Job::new(ctx, Op::Matmul, &[&[m, k], &[k, n]]);
                let (short_job, long_job) = (job(short)?, job(long)?);
                long_job.time(&mut stream, 1)?;
                if long_job.time(&mut stream, 1)? < ENOUGH && lengths.len() > 0 {
                    continue;
                }
                let mut time = |job: &Job| -> Result<f64> {
                    Ok(least(budget / 8, || job.time(&mut stream, RUNS))?.as_nanos() as f64 / RUNS as f64)
                };
                let (short_time, long_time) = (time(&short_job)?, time(&long_job)?);
                // On a machine with other work the longer product may seem to take no longer.
                return Ok((long_time - short_time).max(long_time * 0.1) / (long - short) as f64);
            }
        };
        let slots = cost.slots.max(1) as usize;
        let alone = each(units)?;
        all.push([alone, each(units * slots)? / slots as f64]);
    }
    Ok(all)
}
