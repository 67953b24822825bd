//! `adead info`.

use crate::args::{DeviceArgs, InfoArgs};
use crate::failure::{Result, line, write};
use crate::format::{bytes, table};
use adead::contract;
use adead::device::{DeviceInfo, Isa};
use adead::hardware::{self, Hardware};
use serde_json::{Value, json};
use std::env::consts::{ARCH, OS};

/// Prints what is known, even where the device can't be opened: that is an error after it.
pub fn run(args: &InfoArgs, device: &DeviceArgs) -> Result<()> {
    let hardware = hardware::detect();
    let opened = device.open().map(|ctx| {
        let sources = ctx.dispatcher().profiles().iter().map(|profile| profile.source.to_string());
        ctx.devices().into_iter().zip(sources).collect::<Vec<_>>()
    });
    let devices = opened.as_deref().unwrap_or_default();
    if args.json {
        line(format_args!("{:#}", to_json(&hardware, devices)))?;
    } else {
        write(to_text(&hardware, devices).as_bytes())?;
    }
    opened.map(|_| ())
}

/// A device as JSON, the same in every command.
pub fn device_json(device: &DeviceInfo) -> Value {
    json!({
        "id": device.id,
        "name": device.name,
        "arch": device.arch,
        "contract_level": device.contract.name(),
        "units": device.units,
        "memory": device.memory,
    })
}

/// A device in a line, the same in every command: `cpu (avx512, 2 threads)`.
pub fn device_text(device: &DeviceInfo) -> String {
    let unit = match (device.id.as_str(), device.units) {
        ("cpu", 1) => "thread",
        ("cpu", _) => "threads",
        (_, _) => "units",
    };
    format!("{} ({}, {} {unit})", device.id, device.arch, device.units)
}

fn isas() -> Vec<&'static str> {
    Isa::available().map(Isa::name).collect()
}

fn to_json(hardware: &Hardware, devices: &[(DeviceInfo, String)]) -> Value {
    let Hardware { cpu, memory, recommended } = hardware;
    let caches: Vec<Value> =
        cpu.caches.iter().map(|cache| json!({"level": cache.level, "size": cache.size, "line": cache.line})).collect();
    json!({
        "version": adead::VERSION,
        "contract": contract::VERSION,
        "arch": ARCH,
        "os": OS,
        "cpu": {
            "vendor": cpu.vendor,
            "model": cpu.model,
            "cores": cpu.cores,
            "threads": cpu.threads,
            "frequency_mhz": cpu.frequency_mhz,
            "caches": caches,
            "features": cpu.features,
            "isas": isas(),
        },
        "memory": {"total": memory.total, "available": memory.available},
        "devices": devices.iter().map(|(device, figures)| {
            let mut json = device_json(device);
            json["figures"] = figures.as_str().into();
            json
        }).collect::<Vec<_>>(),
        "recommended": recommended.name(),
    })
}

fn to_text(hardware: &Hardware, devices: &[(DeviceInfo, String)]) -> String {
    let Hardware { cpu, memory, recommended } = hardware;
    let caches: Vec<String> =
        cpu.caches.iter().map(|cache| format!("L{} {}", cache.level, bytes(cache.size as u64))).collect();
    let frequency = if cpu.frequency_mhz > 0 { format!(", {} MHz", cpu.frequency_mhz) } else { String::new() };
    let mut rows = vec![
        ("version", format!("adead {}, arithmetic contract {}", adead::VERSION, contract::VERSION)),
        ("machine", format!("{ARCH}, {OS}")),
        ("processor", format!("{} ({})", cpu.model, cpu.vendor)),
        ("", format!("{} cores, {} threads{frequency}", cpu.cores, cpu.threads)),
        ("caches", caches.join(", ")),
        ("features", cpu.features.join(" ")),
        ("isas", isas().join(" ")),
        ("memory", format!("{}, {} free", bytes(memory.total), bytes(memory.available))),
        ("recommended", recommended.name().into()),
    ];
    for (device, figures) in devices {
        let text = format!("{}, contract {}, {}", device_text(device), device.contract.name(), device.name);
        rows.push(("device", text));
        rows.push(("", figures.clone()));
    }
    rows.retain(|(_, value)| !value.is_empty());
    table(&rows.into_iter().map(|(name, value)| vec![name.into(), value]).collect::<Vec<_>>(), 2)
}
