//! `adead info`.

use crate::args::{DeviceArgs, InfoArgs};
use crate::failure::{Result, line, write};
use crate::format::{bytes, table};
use adead::device::{DeviceInfo, Isa, MemoryUse};
use adead::hardware::{self, Hardware};
use adead::{Context, contract};
use serde_json::{Value, json};
use std::env::consts::{ARCH, OS};

/// A GPU through one backend, opened to get its contract level and memory; or the reason why it can't be used.
struct Backend {
    info: DeviceInfo,
    memory: adead::Result<MemoryUse>,
}

/// A GPU through all its backends, the preferred one first.
struct Gpu(Vec<Backend>);

impl Backend {
    fn look(info: &DeviceInfo) -> Backend {
        let opened = Context::open(&info.id).and_then(|ctx| Ok((ctx.device_info().clone(), ctx.memory()?)));
        match opened {
            Ok((info, memory)) => Backend { info, memory: Ok(memory) },
            Err(error) => Backend { info: info.clone(), memory: Err(error) },
        }
    }

    fn to_json(&self) -> Value {
        let mut json = device_json(&self.info);
        match &self.memory {
            Ok(memory) => json["memory_free"] = memory.free.into(),
            Err(error) => {
                json["contract_level"] = "refused".into();
                json["refused"] = error.to_string().into();
            }
        }
        json
    }

    /// Its contract level, the architecture of its kernels, its driver.
    fn text(&self) -> String {
        let DeviceInfo { contract, arch, driver, .. } = &self.info;
        let level = match &self.memory {
            Ok(_) => format!("contract {}", contract.name()),
            Err(error) => format!("refused: {error}"),
        };
        format!("{level}, {arch}, driver {driver}")
    }
}

impl Gpu {
    fn look(gpu: &hardware::Gpu) -> Gpu {
        Gpu(gpu.backends().map(Backend::look).collect())
    }

    /// Its data through the preferred backend, with a list of all backends.
    fn to_json(&self) -> Value {
        let backends: Vec<Value> = self.0.iter().map(Backend::to_json).collect();
        let mut json = backends.first().cloned().unwrap_or_default();
        json["backends"] = backends.into();
        json
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let Some(first) = self.0.first() else { return Vec::new() };
        let DeviceInfo { id, name, vendor, kind, memory, uuid, .. } = &first.info;
        let free = first.memory.as_ref().map(|memory| format!(", {} free", bytes(memory.free))).unwrap_or_default();
        let uuid = uuid.as_ref().map(|uuid| format!(", uuid {}", self::uuid(uuid))).unwrap_or_default();
        let bus = self.0.iter().find_map(|backend| backend.info.bus.as_ref());
        let bus = bus.map(|bus| format!(", PCI {bus}")).unwrap_or_default();
        let mut rows = vec![
            ("gpu", format!("{id}: {name} ({vendor}, {}), {}{free}", kind.name(), bytes(*memory))),
            ("", format!("{}{uuid}{bus}", first.text())),
        ];
        rows.extend(self.0[1..].iter().map(|other| ("", format!("also {}: {}", other.info.id, other.text()))));
        rows
    }
}

/// Prints everything that is known. If the device can't be opened, the error comes afterwards.
pub fn run(args: &InfoArgs, device: &DeviceArgs) -> Result<()> {
    let hardware = hardware::detect();
    let gpus: Vec<Gpu> = hardware.gpus.iter().map(Gpu::look).collect();
    let opened = device.open().map(|ctx| {
        let sources = ctx.dispatcher().profiles().iter().map(|profile| profile.source.to_string());
        ctx.devices().into_iter().zip(sources).collect::<Vec<_>>()
    });
    let devices = opened.as_deref().unwrap_or_default();
    if args.json {
        line(format_args!("{:#}", to_json(&hardware, &gpus, devices)))?;
    } else {
        write(to_text(&hardware, &gpus, devices).as_bytes())?;
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
        "kind": device.kind.name(),
        "vendor": device.vendor,
        "driver": device.driver,
        "uuid": device.uuid.as_ref().map(uuid),
        "bus": device.bus,
    })
}

/// Formats a UUID: 8-4-4-4-12 digits.
fn uuid(uuid: &[u8; 16]) -> String {
    let mut text = String::new();
    for (i, byte) in uuid.iter().enumerate() {
        let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
        text += &format!("{dash}{byte:02x}");
    }
    text
}

/// A device in one line, the same in every command: `cpu (avx512, 2 threads)`. A driver may not report its units.
pub fn device_text(device: &DeviceInfo) -> String {
    if device.units == 0 {
        return format!("{} ({})", device.id, device.arch);
    }
    let unit = match (device.id.as_str(), device.units) {
        ("cpu", 1) => "thread",
        ("cpu", _) => "threads",
        (_, _) => "units",
    };
    format!("{} ({}, {} {unit})", device.id, device.arch, device.units)
}

/// Names a context's device, or all devices that it divides work among.
pub fn context_text(ctx: &Context) -> String {
    if !ctx.dispatcher().is_hybrid() || ctx.dispatcher().forced().is_some() {
        return device_text(ctx.device_info());
    }
    ctx.devices().iter().map(device_text).collect::<Vec<_>>().join(" + ")
}

fn isas() -> Vec<&'static str> {
    Isa::available().map(Isa::name).collect()
}

fn to_json(hardware: &Hardware, gpus: &[Gpu], devices: &[(DeviceInfo, String)]) -> Value {
    let Hardware { cpu, memory, recommended, .. } = hardware;
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
        "gpus": gpus.iter().map(Gpu::to_json).collect::<Vec<_>>(),
        "devices": devices.iter().map(|(device, figures)| {
            let mut json = device_json(device);
            json["figures"] = figures.as_str().into();
            json
        }).collect::<Vec<_>>(),
        "recommended": recommended.name(),
    })
}

fn to_text(hardware: &Hardware, gpus: &[Gpu], devices: &[(DeviceInfo, String)]) -> String {
    let Hardware { cpu, memory, recommended, .. } = hardware;
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
    ];
    rows.extend(gpus.iter().flat_map(Gpu::rows));
    rows.push(("recommended", recommended.name().into()));
    for (device, figures) in devices {
        let text = format!("{}, contract {}, {}", device_text(device), device.contract.name(), device.name);
        rows.push(("device", text));
        rows.push(("", figures.clone()));
    }
    rows.retain(|(_, value)| !value.is_empty());
    table(&rows.into_iter().map(|(name, value)| vec![name.into(), value]).collect::<Vec<_>>(), 2)
}
