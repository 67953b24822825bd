//! Times adead's operations on a GPU, with operands in its memory, by the device's clock and by the host's.
//!
//! ```text
//! gpu-bench --json results.json     everything on the best GPU
//! gpu-bench --device vulkan:1       on another
//! gpu-bench --quick                 less of everything
//! gpu-bench --only softmax          items whose name contains that
//! gpu-bench --items                 what would be measured, as JSON: for programs that measure the same
//! gpu-bench --devices               the devices of this machine, as JSON
//! gpu-bench --overlap               instead: batches with copies beside the work (docs/overlap.md)
//! gpu-bench --overlap --tiny        the same in a moment, to try it on a software GPU
//! ```
//!
//! `benches/gpu_peers.py` measures the same with PyTorch and `benches/gpu_compare.py` compares. docs/performance-log.md says how to
//! read the results. The exit status is not 0 if an item fails or its result differs from the CPU's.

mod data;
mod items;
mod operations;
mod overhead;
mod overlap;
mod timing;

use adead_core::hal::{DeviceInfo, DeviceKind};
use adead_core::{Context, config::Config, devices};
use operations::Bench;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;

/// The version of the results' format. `benches/gpu_peers.py` writes the same.
const SCHEMA: u32 = 1;

/// The command line's arguments.
struct Arguments {
    device: String,
    json: Option<String>,
    only: String,
    quick: bool,
    items: bool,
    devices: bool,
    overlap: bool,
    tiny: bool,
}

fn main() -> ExitCode {
    match arguments().and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("gpu-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments {
        device: "vulkan".into(),
        json: None,
        only: String::new(),
        quick: false,
        items: false,
        devices: false,
        overlap: false,
        tiny: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--device" => arguments.device = value()?,
            "--json" => arguments.json = Some(value()?),
            "--only" => arguments.only = value()?,
            "--quick" => arguments.quick = true,
            "--items" => arguments.items = true,
            "--devices" => arguments.devices = true,
            "--overlap" => arguments.overlap = true,
            "--tiny" => arguments.tiny = true,
            _ => return Err(format!("unknown option '{word}'")),
        }
    }
    Ok(arguments)
}

/// Measures. Returns whether every item ran and has the CPU's bits.
fn run(arguments: Arguments) -> Result<bool, String> {
    let text = |error: adead_core::Error| error.to_string();
    let mut items = items::all();
    items.retain(|item| (item.quick || !arguments.quick) && item.name.contains(&arguments.only));
    if arguments.items {
        println!("{:#}", items.iter().map(items::Item::to_json).collect::<Value>());
        return Ok(true);
    }
    let cpu = Context::open("cpu").map_err(text)?;
    if arguments.devices {
        // A machine without GPUs is no error here.
        let gpus = devices::gpus(&Config::default());
        let why = gpus.as_ref().err().map(ToString::to_string);
        let mut all = vec![description(cpu.device_info())];
        all.extend(gpus.unwrap_or_default().iter().map(description));
        println!("{:#}", json!({"devices": all, "no_gpu": why}));
        return Ok(true);
    }
    let begin = Instant::now();
    let ctx = Context::open(&arguments.device).map_err(text)?;
    let opened = begin.elapsed().as_secs_f64();
    let info = ctx.device_info().clone();
    if arguments.overlap {
        let size = overlap::size(arguments.quick, arguments.tiny);
        let found = overlap::measure(&ctx, size).map_err(text)?;
        let good = found["patterns"].as_array().is_some_and(|all| all.iter().all(|entry| entry["error"].is_null()));
        let results = json!({
            "schema": SCHEMA, "version": adead_core::VERSION, "device": description(&info), "overlap": found,
        });
        save(&results, arguments.json)?;
        return Ok(good);
    }
    let hardware = !matches!(info.kind, DeviceKind::Software | DeviceKind::Cpu);
    let mut bench = Bench::new(ctx, cpu, &items, arguments.quick, hardware).map_err(text)?;
    let mut results = Vec::new();
    for item in &items {
        results.push(bench.measure(item));
        print(results.last());
    }
    let mut more = overhead::measure(&bench.ctx, arguments.quick, hardware);
    more.retain(|entry| entry["name"].as_str().is_some_and(|name| name.contains(&arguments.only)));
    more.iter().for_each(|entry| print(Some(entry)));
    results.extend(more);
    let bad = |entry: &&Value| entry["error"].is_string() || entry["cpu"] == "different";
    let good = results.iter().find(bad).is_none();
    let results = json!({
        "schema": SCHEMA,
        "peer": "adead",
        "version": adead_core::VERSION,
        "device": description(&info),
        "seconds_to_open": opened,
        "quick": arguments.quick,
        "took": begin.elapsed().as_secs_f64(),
        "items": results,
    });
    save(&results, arguments.json)?;
    Ok(good)
}

fn save(results: &Value, path: Option<String>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(&path, format!("{results:#}\n")).map_err(|error| format!("{path}: {error}"))
}

/// A device, as JSON.
fn description(info: &DeviceInfo) -> Value {
    let uuid: Option<String> = info.uuid.map(|uuid| uuid.iter().map(|byte| format!("{byte:02x}")).collect());
    json!({
        "id": info.id, "name": info.name, "vendor": info.vendor, "kind": info.kind.name(), "arch": info.arch,
        "driver": info.driver, "contract": info.contract.name(), "units": info.units, "memory": info.memory, "uuid": uuid,
    })
}

/// Prints one entry to the terminal.
fn print(entry: Option<&Value>) {
    let Some(entry) = entry else { return };
    let mut line = format!("{:<34}", entry["name"].as_str().unwrap_or_default());
    let (flops, bytes) = (entry["flops"].as_f64().unwrap_or(0.0), entry["bytes"].as_f64().unwrap_or(0.0));
    for kind in ["hot", "cold", "queued", "completion", "host", "enqueued"] {
        if let Some(seconds) = entry["seconds"][kind]["median"].as_f64() {
            line += &format!(" {kind} {:.1} µs", seconds * 1e6);
            if kind == "hot" || (kind == "completion" && entry["group"] == "transfer") {
                match entry["group"].as_str() {
                    Some("matmul" | "attention") => line += &format!(" ({:.2} TFLOP/s)", flops / seconds / 1e12),
                    _ if bytes > 0.0 => line += &format!(" ({:.1} GB/s)", bytes / seconds / 1e9),
                    _ => {}
                }
            }
        }
    }
    for (note, shown) in [("cpu", "cpu"), ("skipped", "not run"), ("error", "error")] {
        if let Some(text) = entry[note].as_str() {
            line += &format!(" {shown}: {text}");
        }
    }
    println!("{line}");
}
