//! `adead doctor`: examines what adead depends on, and says what to do about it.

mod drivers;
mod machine;

use crate::args::DeviceArgs;
use crate::color::{Color, paint, shows};
use crate::failure::{Failure, Result, line, write};
use crate::format::bytes;
use crate::help::DOCTOR_HELP;
use adead::config::Config;
use adead::device::{Isa, unknown_visible};
use adead::dispatch::calibration;
use adead::{Context, hardware};
use clap::Args;
use serde_json::json;
use std::path::Path;

/// Arguments of `adead doctor`.
#[derive(Args, Debug)]
#[command(after_help = DOCTOR_HELP)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Nothing is broken, but the user may want to know or change it.
    Note,
    Problem,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Note => "note",
            State::Problem => "problem",
        }
    }
}

/// The result of a check.
#[derive(Debug)]
pub struct Finding {
    pub name: &'static str,
    pub state: State,
    pub text: String,
    /// What to do. Empty if there is nothing to do.
    pub todo: String,
}

impl Finding {
    pub fn ok(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Ok, text: text.into(), todo: String::new() }
    }

    pub fn note(name: &'static str, text: impl Into<String>, todo: impl Into<String>) -> Finding {
        Finding { name, state: State::Note, text: text.into(), todo: todo.into() }
    }

    pub fn problem(name: &'static str, text: impl Into<String>, todo: impl Into<String>) -> Finding {
        Finding { name, state: State::Problem, text: text.into(), todo: todo.into() }
    }
}

/// Runs every check. A problem makes the exit code 1.
pub fn run(args: &DoctorArgs, device: &DeviceArgs) -> Result<()> {
    let root = Path::new("/");
    let mut found = vec![processor()];
    found.extend(machine::examine(root));
    found.push(memory());
    found.extend(drivers::examine(root));
    found.extend(gpus());
    found.extend(settings(device));
    let problems = found.iter().filter(|it| it.state == State::Problem).count();
    let notes = found.iter().filter(|it| it.state == State::Note).count();
    if args.json {
        let list: Vec<_> = found
            .iter()
            .map(|it| json!({"name": it.name, "state": it.state.name(), "text": it.text, "todo": it.todo}))
            .collect();
        line(format_args!("{:#}", json!({"checks": list, "problems": problems, "notes": notes})))?;
    } else {
        let colored = shows(&std::io::stdout());
        let mut text: String = found.iter().map(|it| shown(it, colored)).collect();
        text += &format!("\n{}, {}\n", counted(problems, "problem"), counted(notes, "note"));
        text += "Next: 'adead verify' checks that every device returns the contract's bits.\n";
        write(text.as_bytes())?;
    }
    if problems > 0 { Err(Failure::Mismatch) } else { Ok(()) }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn shown(it: &Finding, colored: bool) -> String {
    let color = match it.state {
        State::Ok => Color::Green,
        State::Note => Color::Yellow,
        State::Problem => Color::Red,
    };
    let state = paint(&format!("{:<7}", it.state.name()), color, colored);
    let todo = if it.todo.is_empty() { String::new() } else { format!("{:27}→ {}\n", "", it.todo) };
    format!("{state}  {:<16}  {}\n{todo}", it.name, it.text.replace('\n', " "))
}

fn processor() -> Finding {
    let cpu = hardware::detect().cpu;
    let isas: Vec<&str> = Isa::available().map(Isa::name).collect();
    let text = format!("{}: {}", cpu.model, isas.join(", "));
    if isas.iter().any(|isa| ["avx2", "avx512", "neon"].contains(isa)) {
        return Finding::ok("processor", text);
    }
    let todo = "a processor with AVX2 is several times faster; a virtual machine must pass it on (QEMU: -cpu host)";
    Finding::note("processor", text, todo)
}

fn memory() -> Finding {
    let memory = hardware::detect().memory;
    let text = format!("{}, {} free", bytes(memory.total), bytes(memory.available));
    if memory.available < 1 << 30 {
        return Finding::note("memory", text, "operations that need more than the free memory are refused: free some");
    }
    Finding::ok("memory", text)
}

/// Opens each GPU through each of its backends.
fn gpus() -> Vec<Finding> {
    let gpus = hardware::detect().gpus;
    if gpus.is_empty() {
        let todo = "adead computes on the CPU; for a GPU install its driver, then run 'adead doctor' again";
        return vec![Finding::note("gpu", "no GPU that adead can use", todo)];
    }
    let backends = gpus.iter().flat_map(hardware::Gpu::backends);
    backends
        .map(|info| {
            let name = format!("{}: {}", info.id, info.name);
            match Context::open(&info.id) {
                Ok(ctx) => {
                    let device = ctx.device_info();
                    Finding::ok("gpu", format!("{name}, driver {}, contract {}", device.driver, device.contract.name()))
                }
                Err(error) => {
                    let todo = format!(
                        "update its driver, or hide it: list the GPUs to use in ADEAD_VISIBLE_DEVICES, without {}",
                        info.id
                    );
                    Finding::problem("gpu", format!("{name} is refused: {}", error.message()), todo)
                }
            }
        })
        .collect()
}

/// The configuration, the device that it names, and the files that adead keeps.
fn settings(device: &DeviceArgs) -> Vec<Finding> {
    let config = match Config::load() {
        Ok(config) => config,
        Err(error) => {
            return vec![Finding::problem("configuration", error.message(), "correct the setting named above")];
        }
    };
    let mut found = vec![Finding::ok("configuration", format!("the device is '{}'", config.device_name()))];
    for name in unknown_visible(&config) {
        let text = format!("ADEAD_VISIBLE_DEVICES names '{name}', but this machine has no such GPU");
        found.push(Finding::note("configuration", text, "'adead info' lists the GPUs that are not hidden"));
    }
    let named = device.device.as_deref().filter(|name| !name.is_empty());
    match Context::configured(named, &device.options(), &config) {
        Ok(ctx) => found.push(Finding::ok("device", crate::info::context_text(&ctx))),
        Err(error) => {
            let error = crate::nearest::suggest(&error);
            found.push(Finding::problem(
                "device",
                error.message(),
                "name another device with --device or ADEAD_DEVICE",
            ));
        }
    }
    found.push(cache(&config));
    found.extend(calibrated(&config));
    found
}

fn cache(config: &Config) -> Finding {
    let Ok(folder) = calibration::folder(config) else {
        return Finding::note("cache folder", "none: HOME is not set", "set ADEAD_CACHE_DIR to keep calibrations");
    };
    // The folder is made when it is needed, so the first one above it that exists must be writable.
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let probe = existing.join(format!(".adead-doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => Finding::ok("cache folder", format!("{} is writable", folder.display())),
        Err(error) => {
            let text = format!("{} is not writable: {error}", folder.display());
            let todo = "calibrations can't be kept: set ADEAD_CACHE_DIR to a writable folder";
            match config.cache_dir {
                Some(_) => Finding::problem("cache folder", text, todo),
                None => Finding::note("cache folder", text, todo),
            }
        }
    }
}

fn calibrated(config: &Config) -> Option<Finding> {
    let folder = calibration::folder(config).ok()?;
    let cpu = Context::configured(Some("cpu"), &Default::default(), config).ok()?;
    let file = calibration::file(&folder, &calibration::machine(cpu.device_info()));
    Some(if file.exists() {
        Finding::ok("calibration", file.display().to_string())
    } else {
        let todo =
            "'adead calibrate' measures this machine, so that each operation goes to the device that is faster here";
        Finding::note("calibration", "none: devices are chosen by built-in figures", todo)
    })
}
