//! `adead convert`: writes a GGUF file from a model's folder, or from another GGUF file.

use crate::failure::{self, Failure, Result, complain_as};
use crate::files::{NewFile, is_stdout, name};
use crate::format::{bytes, table, time};
use crate::progress::{Progress, bar};
use adead::Status;
use adead_models::convert::{Conversion, Target};
use adead_models::gguf::{Gguf, Kind};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use serde_json::{Map, json};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Arguments of `adead convert`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ConvertArgs {
    /// The model: a Hugging Face folder, or a GGUF file
    #[arg(value_name = "MODEL", value_hint = ValueHint::AnyPath)]
    pub model: PathBuf,
    /// The GGUF file to write
    #[arg(long = "out", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// The type of stored matrices [default for a folder: its own types]
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(TYPES))]
    pub kind: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const TYPES: [&str; 13] =
    ["f32", "bf16", "f16", "q8_0", "q6_k", "q5_k_m", "q5_k", "q5_1", "q5_0", "q4_k_m", "q4_k", "q4_1", "q4_0"];

const HELP: &str = "\
A folder has config.json, tokenizer.json and model.safetensors, or several files
and model.safetensors.index.json. Special tokens and the chat template come from
tokenizer_config.json and generation_config.json. Norms, biases and other vectors
stay f32. The same model gives the same bytes on every machine.

EXAMPLES
  adead convert SmolLM2-135M-Instruct --out SmolLM2-135M-Instruct.gguf
  adead convert Llama-3.2-1B-Instruct --out Llama-3.2-1B.Q4_K_M.gguf --type q4_k_m
  adead convert model.BF16.gguf --out model.Q8_0.gguf --type q8_0 --json";

/// The new file, with the hash of its bytes.
struct Output {
    file: NewFile,
    hash: Sha256,
    size: u64,
    /// The writer of GGUF files reports less.
    failed: Option<Failure>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(failure) = self.file.write(bytes) {
            self.failed = Some(failure);
            return Err(io::Error::other("it can't be written"));
        }
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was done.
struct Done {
    /// The number of tensors of each kind.
    kinds: Vec<(Kind, usize)>,
    tensors: usize,
    values: u64,
    before: u64,
    size: u64,
    hash: String,
    notes: Vec<String>,
    taken: Duration,
}

fn plan(args: &ConvertArgs) -> Result<Conversion> {
    let kind = args.kind.as_deref().map(str::parse::<Target>).transpose()?;
    if args.model.is_dir() {
        return Ok(Conversion::from_folder(&args.model, kind)?);
    }
    if !args.model.exists() {
        let text =
            format!("{}: no such file or folder; a model is a Hugging Face folder or a GGUF file", name(&args.model));
        return Err(Failure::new(Status::Io, text));
    }
    // SAFETY: the new file replaces the old one only when it is complete, and the map keeps what it replaced. If another program
    // shortens the file meanwhile, the command ends.
    let gguf = unsafe { Gguf::map(&args.model) }?;
    let Some(kind) = kind else {
        let names = TYPES.join(", ");
        return Err(Failure::Usage(format!("--type is missing: choose the type of the new GGUF file from {names}")));
    };
    Ok(Conversion::from_gguf(gguf, kind)?)
}

pub fn run(args: &ConvertArgs) -> Result<()> {
    let begun = Instant::now();
    let conversion = plan(args)?;
    let mut kinds: Vec<(Kind, usize)> = Vec::new();
    for tensor in conversion.tensors() {
        match kinds.iter_mut().find(|(kind, _)| *kind == tensor.kind()) {
            Some((_, count)) => *count += 1,
            None => kinds.push((tensor.kind(), 1)),
        }
    }
    let (tensors, values, before) = (conversion.tensors().len(), conversion.elements(), conversion.source_bytes());
    let notes = conversion.notes().to_vec();
    let mut output = Output { file: NewFile::create(&args.output)?, hash: Sha256::new(), size: 0, failed: None };
    let mut progress = Progress::new();
    let written = conversion
        .write(&mut output, |done, all| {
            progress.show(|| format!("{} {done} of {all} values", bar(done, all, begun.elapsed())));
            Ok(())
        })
        .map(drop);
    progress.clear();
    if let Some(failure) = output.failed.take() {
        return Err(failure);
    }
    written?;
    for note in &notes {
        complain_as("note", note);
    }
    let hash = output.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let done = Done { kinds, tensors, values, before, size: output.size, hash, notes, taken: begun.elapsed() };
    // If the report can't be written, no file is left.
    if args.json { report_json(args, &done) } else { report(args, &done) }?;
    output.file.commit()
}

fn report(args: &ConvertArgs, done: &Done) -> Result<()> {
    let kinds = done.kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ");
    let part = done.size as f64 / done.before.max(1) as f64;
    let rows = [
        ["model", &format!("{}, {}", name(&args.model), bytes(done.before))],
        ["tensors", &format!("{}: {kinds}; {} values", done.tensors, done.values)],
        ["time", &time(done.taken)],
        ["out", &format!("{}, {} ({part:.2} of before) sha256 {}", args.output.display(), bytes(done.size), done.hash)],
    ];
    let text = table(&rows.map(|row| row.map(String::from).to_vec()), 2);
    failure::report(&text, is_stdout(&args.output))
}

fn report_json(args: &ConvertArgs, done: &Done) -> Result<()> {
    let kinds: Map<_, _> = done.kinds.iter().map(|(kind, count)| (kind.to_string(), json!(count))).collect();
    let json = json!({
        "model": name(&args.model),
        "tensors": done.tensors,
        "kinds": kinds,
        "values": done.values,
        "bytes_before": done.before,
        "bytes": done.size,
        "notes": done.notes,
        "seconds": done.taken.as_secs_f64(),
        "sha256": done.hash,
        "file": args.output.display().to_string(),
    });
    failure::report(&format!("{json}\n"), is_stdout(&args.output))
}
