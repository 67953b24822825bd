//! `adead run`.

use crate::args::{DeviceArgs, RunArgs};
use crate::asm::load;
use crate::failure::{Failure, Result, complain, report};
use crate::files::{NewFile, name};
use crate::format::{bytes, giga, median, table, time};
use crate::info::{context_text, device_json};
use crate::npy;
use crate::progress::Progress;
use crate::source::{Input, find, list};
use adead::program::{Direction, Outcome, Program, RunOptions, Slot};
use adead::{Context, Status, Tensor, hardware};
use adead_conformance::hash;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The data of the report.
struct Report<'a> {
    program: &'a Program,
    name: String,
    ctx: &'a Context,
    inputs: Vec<(String, &'a Input, Tensor)>,
    outcome: Outcome,
    best: Duration,
    median: Duration,
    runs: u32,
    files: Vec<(String, PathBuf)>,
}

/// Runs a program.
pub fn run(args: &RunArgs, device: &DeviceArgs) -> Result<()> {
    let program = load(&args.program)?;
    // Errors in the program, its bindings or its files are found before anything is computed.
    let memory = program.validate(args.memory_limit)?.memory();
    let bound = bind_inputs(args, program.slots())?;
    check_memory(&bound, memory, args.memory_limit)?;
    let mut files = open_outputs(args, &program)?;
    let ctx = device.open()?;
    let mut inputs = Vec::new();
    for (slot, input) in bound {
        inputs.push((slot.name.clone(), input, input.load(slot, &ctx)?));
    }
    let options = RunOptions {
        inputs: inputs.iter().map(|(slot, _, tensor)| (slot.clone(), tensor.clone())).collect(),
        memory_limit: args.memory_limit,
        parallel: !args.sequential,
    };
    let (outcome, mut times) = repeat(&program, &ctx, &options, args.repeat)?;
    for (slot, file, _) in &mut files {
        if let Some(tensor) = outcome.output(slot) {
            npy::write(file, tensor)?;
        }
    }
    let values_on_stdout = files.iter().any(|(_, file, _)| file.is_stdout());
    let median = median(&mut times);
    let done = Report {
        program: &program,
        name: name(&args.program),
        ctx: &ctx,
        inputs,
        outcome,
        best: times.first().copied().unwrap_or_default(),
        median,
        runs: args.repeat,
        files: files.iter().map(|(slot, _, path)| (slot.clone(), path.clone())).collect(),
    };
    // If the report can't be written, no files are left.
    report(&if args.json { format!("{:#}\n", done.to_json()) } else { done.to_text() }, values_on_stdout)?;
    files.into_iter().try_for_each(|(_, file, _)| file.commit())
}

/// Binds inputs to slots, in the program's order. Checks that every required slot has an input.
fn bind_inputs<'a>(args: &'a RunArgs, slots: &'a [Slot]) -> Result<Vec<(&'a Slot, &'a Input)>> {
    let mut bound: Vec<(&Slot, &Input)> = Vec::new();
    for input in &args.inputs {
        let slot = find(slots, &input.slot)?;
        if !slot.direction.takes_input() {
            return Err(Failure::invalid(format!("slot {} is an output; --in can't bind it", slot.name)));
        }
        if bound.iter().any(|(other, _)| other.name == slot.name) {
            return Err(Failure::invalid(format!("slot {} is bound twice", slot.name)));
        }
        bound.push((slot, input));
    }
    let is_bound = |slot: &Slot| bound.iter().any(|(other, _)| other.name == slot.name);
    let missing: Vec<&str> =
        slots.iter().filter(|slot| slot.required && !is_bound(slot)).map(|slot| slot.name.as_str()).collect();
    if !missing.is_empty() {
        let example = missing.iter().map(|slot| format!("--in {slot}=FILE.npy")).collect::<Vec<_>>().join(" ");
        let text = format!("missing inputs: {}; the program has {}; add {example}", missing.join(", "), list(slots));
        return Err(Failure::invalid(text));
    }
    bound.sort_by_key(|(slot, _)| slots.iter().position(|other| other.name == slot.name));
    Ok(bound)
}

/// Checks that the run's memory is within the limit and within what is free, before allocating it.
fn check_memory(bound: &[(&Slot, &Input)], program: usize, limit: usize) -> Result<()> {
    let inputs: u128 = bound.iter().map(|(slot, _)| slot.bytes as u128).sum();
    let takes = format!("the inputs take {inputs} bytes and the program {program}");
    if inputs + program as u128 > limit as u128 {
        let text = format!("{takes}; the limit is {limit} (--memory-limit)");
        return Err(Failure::new(Status::OutOfMemory, text));
    }
    let free = hardware::memory().available;
    if free > 0 && inputs + program as u128 > u128::from(free) {
        return Err(Failure::new(Status::OutOfMemory, format!("{takes}; the machine has {free} bytes free")));
    }
    Ok(())
}

/// Begins the output files, under temporary names.
fn open_outputs(args: &RunArgs, program: &Program) -> Result<Vec<(String, NewFile, PathBuf)>> {
    let mut files: Vec<(String, NewFile, PathBuf)> = Vec::new();
    for output in &args.outputs {
        let slot = find(program.slots(), &output.slot)?;
        if slot.direction == Direction::In {
            return Err(Failure::invalid(format!("slot {} is an input; --out can't write it", slot.name)));
        }
        npy::check_writable(slot.meta.dtype)?;
        if files.iter().any(|(other, _, path)| *other == slot.name || *path == output.path) {
            return Err(Failure::invalid(format!(
                "--out {}={}: the slot or the file is given twice",
                slot.name,
                output.path.display()
            )));
        }
        let file = NewFile::create(&output.path)?;
        if file.is_stdout() && files.iter().any(|(_, file, _)| file.is_stdout()) {
            return Err(Failure::invalid(format!("--out {}=-: another output goes to stdout", slot.name)));
        }
        files.push((slot.name.clone(), file, output.path.clone()));
    }
    Ok(files)
}

/// Runs the program several times. Returns the first outcome and every time. Runs that differ are a failure.
fn repeat(program: &Program, ctx: &Context, options: &RunOptions, runs: u32) -> Result<(Outcome, Vec<Duration>)> {
    let mut progress = Progress::new();
    let first = program.run(ctx, options)?;
    let mut times = vec![Duration::from_secs_f64(first.seconds)];
    for run in 1..runs {
        progress.part(run as usize, runs as usize, || format!("run {run} of {runs}"));
        let outcome = program.run(ctx, options)?;
        times.push(Duration::from_secs_f64(outcome.seconds));
        for ((slot, one), (_, other)) in first.outputs.iter().zip(&outcome.outputs) {
            if one.bytes() != other.bytes() {
                progress.clear();
                complain(format_args!("slot {slot}: run 1 and run {} differ", run + 1));
                return Err(Failure::Mismatch);
            }
        }
    }
    Ok((first, times))
}

impl Report<'_> {
    fn gflops(&self) -> f64 {
        giga(self.outcome.flops, self.best)
    }

    fn file(&self, slot: &str) -> Option<String> {
        self.files.iter().find(|(other, _)| other == slot).map(|(_, path)| path.display().to_string())
    }

    fn to_text(&self) -> String {
        let device = self.ctx.device_info();
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, rest: String| rows.push(vec![name.into(), rest]);
        let instructions = self.program.len();
        row("program", format!("{} ({}, {instructions} instructions)", self.name, self.program.format().name()));
        row("device", format!("{} {}", context_text(self.ctx), device.name));
        for (slot, input, tensor) in &self.inputs {
            row("in", format!("{slot} {}{} {}", tensor.dtype(), tensor.shape(), input.text));
        }
        let memory = bytes(self.outcome.memory as u64);
        match self.runs {
            1 => row("time", format!("{}, memory {memory}", time(self.best))),
            n => row(
                "time",
                format!("{} best, {} median of {n} runs, memory {memory}", time(self.best), time(self.median)),
            ),
        }
        if self.outcome.flops > 0.0 {
            row("speed", format!("{:.2} GFLOP/s", self.gflops()));
        }
        for (slot, tensor) in &self.outcome.outputs {
            let file = self.file(slot).map(|file| format!(" -> {file}")).unwrap_or_default();
            row("out", format!("{slot} {}{} sha256 {}{file}", tensor.dtype(), tensor.shape(), hash(tensor)));
        }
        table(&rows, 2)
    }

    fn to_json(&self) -> Value {
        let inputs: Vec<Value> = self
            .inputs
            .iter()
            .map(|(slot, input, tensor)| {
                json!({"slot": slot, "source": input.text, "dtype": tensor.dtype().name(), "shape": tensor.dims()})
            })
            .collect();
        let outputs: Vec<Value> = self
            .outcome
            .outputs
            .iter()
            .map(|(slot, tensor)| {
                json!({
                    "slot": slot,
                    "dtype": tensor.dtype().name(),
                    "shape": tensor.dims(),
                    "sha256": hash(tensor),
                    "file": self.file(slot),
                })
            })
            .collect();
        json!({
            "program": self.name,
            "format": self.program.format().name(),
            "instructions": self.outcome.instructions,
            "device": device_json(self.ctx.device_info()),
            "inputs": inputs,
            "outputs": outputs,
            "runs": self.runs,
            "best_seconds": self.best.as_secs_f64(),
            "median_seconds": self.median.as_secs_f64(),
            "flops": self.outcome.flops,
            "gflops": self.gflops(),
            "memory": self.outcome.memory,
            "notes": self.program.report(),
        })
    }
}
