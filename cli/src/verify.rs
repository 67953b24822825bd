//! `adead verify`: runs the conformance cases on every device.

use crate::args::{DeviceArgs, VerifyArgs};
use crate::failure::{Failure, Result, complain_as, line};
use crate::info::context_text;
use crate::progress::Progress;
use adead::device::Isa;
use adead::{Context, ContextOptions};
use adead_conformance::{Case, FILES, Outcome, Summary, parse};
use serde_json::json;
use std::path::Path;

/// Runs the cases on every device.
pub fn run(args: &VerifyArgs, device: &DeviceArgs) -> Result<()> {
    let files = match &args.cases {
        Some(folder) => read_folder(folder)?,
        None => FILES.iter().map(|(stem, text)| (stem.to_string(), text.to_string())).collect(),
    };
    let mut cases = Vec::new();
    for (stem, text) in &files {
        parse(stem, text, &mut cases).map_err(Failure::invalid)?;
    }
    if let Some(filter) = &args.filter {
        cases.retain(|case| case.id.contains(filter.as_str()));
    }
    if cases.is_empty() {
        let filter = args.filter.as_deref().map(|filter| format!(" whose id contains '{filter}'")).unwrap_or_default();
        return Err(Failure::invalid(format!("there is no case{filter}; nothing was verified")));
    }
    if args.list && args.json {
        return line(format_args!("{:#}", json!(cases.iter().map(|case| case.id).collect::<Vec<_>>())));
    }
    if args.list {
        return cases.iter().try_for_each(|case| line(case.id));
    }
    let mut failed = false;
    let mut devices = Vec::new();
    for ctx in contexts(args, device)? {
        let mut failures = Vec::new();
        let summary = verify(&ctx, &cases, &mut |id, text| {
            if args.json {
                failures.push(json!({"id": id, "text": text}));
                return Ok(());
            }
            line(format_args!("FAIL {id}: {text}"))
        })?;
        failed |= summary.failed > 0;
        let name = context_text(&ctx);
        if args.json {
            let Summary { ran, failed, skipped } = summary;
            devices
                .push(json!({"device": name, "ran": ran, "failed": failed, "skipped": skipped, "failures": failures}));
        } else {
            line(format_args!("{name}: {summary}"))?;
        }
    }
    if args.json {
        line(format_args!("{:#}", json!({"contract": adead::contract::VERSION, "devices": devices})))?;
    }
    if failed { Err(Failure::Mismatch) } else { Ok(()) }
}

/// The case files of a folder, in name order.
fn read_folder(folder: &Path) -> Result<Vec<(String, String)>> {
    let fault = |error| Failure::io(folder.display(), &error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        paths.push(entry.map_err(fault)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    if paths.is_empty() {
        return Err(Failure::invalid(format!("{}: there are no case files (*.txt)", folder.display())));
    }
    let read = |path: &std::path::PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::read_to_string(path).map(|text| (stem, text)).map_err(|error| Failure::io(path.display(), &error))
    };
    paths.iter().map(read).collect()
}

/// The contexts to verify: every usable device, or the requested one; the CPU with each of its instruction sets if requested;
/// and, if work is divided among devices, all of them together.
fn contexts(args: &VerifyArgs, device: &DeviceArgs) -> Result<Vec<Context>> {
    let mut contexts = Vec::new();
    let opened = device.open()?;
    let one = opened.dispatcher().forced();
    if device.precision.is_some() {
        return Err(Failure::invalid("verify takes no --precision: each case specifies its own"));
    }
    for (index, info) in opened.devices().into_iter().enumerate() {
        if one.is_some_and(|one| one != index) {
            continue;
        }
        let isas: Vec<Option<Isa>> = if args.all_isas && info.id == "cpu" {
            Isa::available().map(Some).collect()
        } else {
            vec![device.options().isa]
        };
        for isa in isas {
            match Context::with_options(&info.id, &ContextOptions { isa, ..device.options() }) {
                Ok(ctx) => contexts.push(ctx),
                // The device was not requested, and adead never uses it.
                Err(error) if one.is_none() && index > 0 => {
                    complain_as("note", format_args!("{} is refused: {error}", info.id))
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    if opened.dispatcher().is_hybrid() && opened.devices().len() > 1 {
        contexts.push(opened);
    }
    Ok(contexts)
}

/// Runs the cases on a device. Calls `fails` for each failure.
fn verify(ctx: &Context, cases: &[Case<'_>], fails: &mut dyn FnMut(&str, &str) -> Result<()>) -> Result<Summary> {
    let name = context_text(ctx);
    let mut progress = Progress::new();
    let mut summary = Summary::default();
    for case in cases {
        progress.part(summary.ran, cases.len(), || format!("{name}: {}", case.id));
        summary.ran += 1;
        if let Outcome::Failed(text) = case.run(ctx) {
            summary.failed += 1;
            progress.clear();
            fails(case.id, &text)?;
        }
    }
    progress.clear();
    Ok(summary)
}
