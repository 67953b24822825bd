//! `adead bench --report`: the same operations on the CPU, on each GPU and on both together, as one HTML page.

#[cfg(feature = "models")]
mod lines;
mod page;
mod plot;
#[cfg(feature = "models")]
pub mod training;

use crate::args::DeviceArgs;
use crate::bench::{Measured, Row, measure, profiled};
use crate::failure::{self, Failure, Result};
use crate::files::NewFile;
use crate::progress::Progress;
use adead::config::Config;
use adead::device::{DeviceInfo, gpus};
use adead::dispatch::DeviceProfile;
use adead::profile::{Report, Total};
use adead::{Attrs, Context, Op, Status, Tensor, contract};
use std::path::Path;
use std::time::Duration;

/// Runs in the profile that a row's shares come from.
const PROFILED: usize = 5;

/// The measurements of one device.
pub struct Column {
    /// The name that opened it: `cpu`, `cuda:0`, `hybrid`.
    pub id: String,
    pub devices: Vec<DeviceInfo>,
    pub figures: Option<DeviceProfile>,
    /// By row; `None` if the row failed.
    pub cells: Vec<Option<Cell>>,
    /// A profile of one run of every row, in order.
    pub once: Report,
}

/// The measurements of one row on one device.
pub struct Cell {
    pub measured: Measured,
    /// Work and transfers of one run, in nanoseconds.
    pub work_ns: f64,
    pub transfer_ns: f64,
    /// Transfers of one run, in bytes.
    pub uploaded: f64,
    pub downloaded: f64,
    /// The share of the busy time in which CPU, GPU and transfers overlapped.
    pub overlap: f64,
    /// The share of the device's peak while it worked. `None` if several devices worked.
    pub of_peak: Option<f64>,
}

/// The data of a page.
pub struct Comparison<'a> {
    pub rows: &'a [Row],
    pub columns: Vec<Column>,
    /// The device that `auto` would choose for each row, and the reason.
    pub choices: Vec<(String, String)>,
    /// What was left out, and the reasons.
    pub notes: Vec<String>,
}

/// The rows of the comparison.
pub fn rows() -> Vec<Row> {
    let plain = Attrs::default();
    let mut rows = Vec::new();
    for n in [256, 512, 1024] {
        rows.push(Row::new(Op::Matmul, &n.to_string(), &[&[n, n], &[n, n]], plain));
    }
    let heads: &[usize] = &[8, 512, 64];
    rows.push(Row::new(Op::Attention, "8x512x64", &[heads, heads, heads], plain));
    let (x, up, down): (&[usize], &[usize], &[usize]) = (&[256, 512], &[512, 2048], &[2048, 512]);
    rows.push(Row::new(Op::Ffn, "256x512x2048", &[x, up, &[2048], down, &[512]], plain));
    let wide: &[usize] = &[2048, 1024];
    rows.push(Row::new(Op::Softmax, "2048x1024", &[wide], plain));
    rows.push(Row::new(Op::Layernorm, "2048x1024", &[wide, &wide[1..], &wide[1..]], plain));
    rows.push(Row::new(Op::Gelu, "2048x1024", &[wide], plain));
    rows.push(Row::new(Op::Transpose, "2048x1024", &[wide], plain));
    rows
}

/// Measures and writes the page.
pub fn run(path: &Path, rows: &[Row], budget: Duration, device: &DeviceArgs) -> Result<()> {
    // Opened before the measurements, so a missing folder is reported at once.
    let mut file = NewFile::create_text(path)?;
    let mut progress = Progress::new();
    let mut columns = Vec::new();
    let Opened { contexts, mut notes } = open(device)?;
    let devices = contexts.len();
    for (index, (id, ctx)) in contexts.into_iter().enumerate() {
        progress.within(index, devices);
        columns.push(column(&id, &ctx, rows, budget, &mut progress, &mut notes)?);
    }
    let auto = Context::configured(Some("auto"), &device.options(), &Config::load()?)?;
    let choices = rows.iter().map(|row| choice(&auto, row)).collect::<Result<_>>()?;
    progress.clear();
    let comparison = Comparison { rows, columns, choices, notes };
    file.write(page::page(&comparison).as_bytes())?;
    let ids: Vec<&str> = comparison.columns.iter().map(|column| column.id.as_str()).collect();
    let text = format!("{}: {} operations on {}\n", path.display(), rows.len(), ids.join(", "));
    failure::report(&text, file.is_stdout())?;
    file.commit()
}

/// Devices to compare.
#[derive(Default)]
pub struct Opened {
    /// A context for each device, with its id.
    pub contexts: Vec<(String, Context)>,
    /// What was left out, and the reasons.
    pub notes: Vec<String>,
}

/// Opens the devices to compare.
pub fn open(device: &DeviceArgs) -> Result<Opened> {
    let mut opened = Opened::default();
    for id in devices(device)? {
        match Context::configured(Some(&id), &device.options(), &Config::load()?) {
            Ok(ctx) => opened.contexts.push((id, ctx)),
            // A device that the caller named must exist. Otherwise missing devices are skipped.
            Err(error) if device.device.is_none() && error.status() == Status::BackendUnavailable => {
                opened.notes.push(format!("{id} is left out: {}", error.message()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(opened)
}

/// The requested device, else the CPU, each GPU, and hybrid.
fn devices(device: &DeviceArgs) -> Result<Vec<String>> {
    if let Some(id) = &device.device {
        return Ok(vec![id.clone()]);
    }
    let gpus = match gpus(&Config::load()?) {
        Ok(gpus) => gpus,
        Err(error) if error.status() == Status::BackendUnavailable => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut ids = vec!["cpu".to_string()];
    ids.extend(gpus.into_iter().map(|info| info.id));
    ids.push("hybrid".into());
    Ok(ids)
}

fn column(
    id: &str,
    ctx: &Context,
    rows: &[Row],
    budget: Duration,
    progress: &mut Progress,
    notes: &mut Vec<String>,
) -> Result<Column> {
    let mut cells = Vec::new();
    let mut worked = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        progress.part(index, rows.len(), || format!("{} on {id}", row.name));
        match cell(ctx, row, budget) {
            Ok(cell) => {
                cells.push(Some(cell));
                worked.push(row.clone());
            }
            Err(Failure::Error(error)) => {
                notes.push(format!("{} on {id}: {}", row.name, error.message()));
                cells.push(None);
            }
            Err(other) => return Err(other),
        }
    }
    let once = profiled(ctx, &worked, 1)?;
    let own = &ctx.device_info().id;
    let figures = ctx.dispatcher().profiles().iter().find(|figures| figures.id == *own).cloned();
    let devices = if id == "hybrid" { ctx.devices() } else { vec![ctx.device_info().clone()] };
    Ok(Column { id: id.into(), devices, figures, cells, once })
}

fn cell(ctx: &Context, row: &Row, budget: Duration) -> Result<Cell> {
    let measured = measure(row, ctx, budget)?;
    let report = profiled(ctx, std::slice::from_ref(row), PROFILED)?;
    let runs = PROFILED as f64;
    let sum = |of: &dyn Fn(&Total) -> f64, transfers: bool| -> f64 {
        report.totals.iter().filter(|total| total.activity.is_transfer() == transfers).map(of).sum()
    };
    let work_ns = sum(&|total| total.ns as f64, false);
    let mut workers = report.totals.iter().filter(|total| !total.activity.is_transfer()).map(|total| total.device);
    let first = workers.next();
    let alone = workers.all(|device| Some(device) == first);
    let of_peak = (alone && work_ns > 0.0).then(|| sum(&|total| total.least_ns, false) / work_ns);
    Ok(Cell {
        measured,
        work_ns: work_ns / runs,
        transfer_ns: sum(&|total| total.ns as f64, true) / runs,
        uploaded: report.devices.iter().map(|device| device.uploaded as f64).sum::<f64>() / runs,
        downloaded: report.devices.iter().map(|device| device.downloaded as f64).sum::<f64>() / runs,
        overlap: report.overlap(),
        of_peak,
    })
}

/// The device that `auto` would choose for a row, and the reason.
fn choice(auto: &Context, row: &Row) -> Result<(String, String)> {
    let tensors = row.operands()?;
    let operands: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
    let explanation = auto.explain(row.op, &row.attrs, &operands)?;
    Ok((explanation.id().to_string(), explanation.reason))
}

/// The version and the contract, as the page shows them.
pub fn version() -> String {
    format!("adead {}, arithmetic contract {}", adead::VERSION, contract::VERSION)
}
