//! The Rust runner: runs every case on a device.
//!
//! ```text
//! adead-conformance                       on the CPU
//! adead-conformance --device vulkan:0     on that device; several times for several
//! adead-conformance --all-isas            on the CPU with each of its instruction sets
//! adead-conformance matmul/ softmax/      the cases whose id begins so
//! adead-conformance --list                the ids of the cases
//! ```

use adead_conformance::{Case, Outcome, Summary, cases};
use adead_core::hal::cpu::Isa;
use adead_core::{Context, ContextOptions};
use std::process::ExitCode;

/// The command line's arguments.
#[derive(Default)]
struct Arguments {
    list: bool,
    all_isas: bool,
    devices: Vec<String>,
    prefixes: Vec<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("adead-conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut all = std::env::args().skip(1);
    let mut arguments = Arguments::default();
    while let Some(word) = all.next() {
        match word.as_str() {
            "--list" => arguments.list = true,
            "--all-isas" => arguments.all_isas = true,
            "--device" => arguments.devices.push(all.next().ok_or("--device needs a name, such as vulkan:0")?),
            option if option.starts_with('-') => return Err(format!("unknown option '{option}'")),
            _ => arguments.prefixes.push(word),
        }
    }
    if arguments.devices.is_empty() {
        arguments.devices.push("cpu".into());
    }
    Ok(arguments)
}

/// Runs the selected cases. Returns whether all passed.
fn run() -> Result<bool, String> {
    let arguments = arguments()?;
    let mut cases = cases()?;
    if !arguments.prefixes.is_empty() {
        cases.retain(|case| arguments.prefixes.iter().any(|prefix| case.id.starts_with(prefix.as_str())));
    }
    if cases.is_empty() {
        return Err(format!("no case begins with {}", arguments.prefixes.join(" or ")));
    }
    if arguments.list {
        cases.iter().for_each(|case| println!("{}", case.id));
        return Ok(true);
    }
    let mut passed = true;
    for device in &arguments.devices {
        let isas: Vec<Option<Isa>> = match arguments.all_isas && device == "cpu" {
            true => Isa::available().map(Some).collect(),
            false => vec![None],
        };
        for isa in isas {
            let options = ContextOptions { isa, ..ContextOptions::default() };
            let ctx = Context::with_options(device, &options).map_err(|error| error.to_string())?;
            passed &= verify(&ctx, &cases);
        }
    }
    Ok(passed)
}

/// Runs the cases. Prints each failure and a summary. Returns whether all passed.
fn verify(ctx: &Context, cases: &[Case<'_>]) -> bool {
    let mut summary = Summary::default();
    for case in cases {
        summary.ran += 1;
        if let Outcome::Failed(text) = case.run(ctx) {
            summary.failed += 1;
            println!("FAIL {}: {text}", case.id);
        }
    }
    let info = ctx.device_info();
    println!("{} ({}, {}, contract {}): {summary}", info.id, info.name, info.arch, info.contract.name());
    summary.failed == 0
}
