//! `adead embed`: reads sentences and writes a matrix of embeddings.

use crate::args::DeviceArgs;
use crate::failure::{self, Failure, Result, complain_as};
use crate::files::{is_stdout, name};
use crate::format::{table, time};
use crate::info::{context_text, device_json};
use crate::npy::rows::Writer;
use crate::progress::{Progress, bar};
use crate::sentences::{Format, Sentences};
use adead::{Context, Status};
use adead_models::{EmbeddingPart, EncodeOptions, SentenceEncoder};
use clap::{Args, ValueHint};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Arguments of `adead embed`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct EmbedArgs {
    /// The model's folder, in the layout of sentence-transformers
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub model: PathBuf,
    /// The sentences, one per line; - is stdin
    #[arg(long = "in", value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub input: PathBuf,
    /// The .npy file to write: f32, one row per sentence
    #[arg(long = "out", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Lines are JSON: strings, or objects with the sentence in this field [default for .jsonl and .ndjson: text]
    #[arg(long, value_name = "FIELD", num_args = 0..=1, default_missing_value = "text")]
    pub jsonl: Option<String>,
    /// The most sentences computed at once [default: 256 on a GPU, what the caches hold on the CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub batch: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
The rows have the same bits on every device, with every number of threads and
every batch size. The hash is the SHA-256 of the rows' bytes, without the file's
header.

EXAMPLES
  adead embed --model all-MiniLM-L6-v2 --in sentences.txt --out embeddings.npy
  adead embed --model all-MiniLM-L6-v2 --in posts.jsonl --jsonl body \\
      --out posts.npy --device cuda
  head -n 1000 sentences.txt | adead embed --model all-MiniLM-L6-v2 \\
      --out first.npy --json | jq .sha256";

/// Opens a model. If the folder is missing, the error says how to get a model.
pub fn open_model(path: &Path, context: &Context) -> Result<SentenceEncoder> {
    if !path.exists() {
        let (path, known) = (path.display(), "sentence-transformers/all-MiniLM-L6-v2");
        return Err(Failure::new(
            Status::Io,
            format!(
                "{path}: no such folder; a model is a folder that sentence-transformers saved, such as the one that \
                 'hf download {known} --local-dir all-MiniLM-L6-v2' makes ('pip install huggingface_hub' installs hf)"
            ),
        ));
    }
    Ok(SentenceEncoder::open(path, context)?)
}

/// The results of a run.
struct Done {
    sentences: u64,
    truncated: u64,
    opened: Duration,
    taken: Duration,
    hash: String,
}

pub fn run(args: &EmbedArgs, device: &DeviceArgs) -> Result<()> {
    let start = Instant::now();
    if is_stdout(&args.output) {
        return Err(Failure::invalid(
            "--out must be a file: the number of rows is written to its beginning at the end",
        ));
    }
    let sentences = Sentences::open(&args.input, Format::of(&args.input, args.jsonl.as_deref()))?;
    let encoder = open_model(&args.model, &device.open()?)?;
    let mut file = Writer::create(&args.output, encoder.width())?;
    let options = EncodeOptions { batch: args.batch.map(|batch| batch as usize), ..EncodeOptions::default() };
    let (opened, begun) = (start.elapsed(), Instant::now());
    let (mut hash, mut truncated, mut first_truncated) = (Sha256::new(), 0, None);
    let mut progress = Progress::new();
    let all = if progress.is_seen() { crate::sentences::count(&args.input) } else { None };
    let rate = |count: u64| count as f64 / begun.elapsed().as_secs_f64().max(1e-9);
    // An error of the file's writer is not one of the encoder's, so it is kept here.
    let mut failed = None;
    let result = encoder.batch_embed(sentences, &options, |part| {
        match part {
            EmbeddingPart::Progress(count) => {
                progress.show(|| {
                    let far = all.map_or(String::new(), |all| format!("{} ", bar(count, all, begun.elapsed())));
                    format!("{far}{count} sentences, {:.1} a second", rate(count))
                });
            }
            EmbeddingPart::Rows { first, rows } => {
                truncated += rows.truncated().len() as u64;
                first_truncated = first_truncated.or(rows.truncated().first().map(|&row| first + row as u64 + 1));
                match file.append(rows.values()) {
                    Ok(bytes) => hash.update(&bytes),
                    Err(Failure::Error(error)) => return Err(error),
                    Err(other) => {
                        failed = Some(other);
                        return Err(adead::Error::new(Status::Io, "the file can't be written"));
                    }
                }
            }
        }
        Ok(())
    });
    progress.clear();
    if let Some(failure) = failed {
        return Err(failure);
    }
    let count = result?;
    let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let done = Done { sentences: count, truncated, opened, taken: begun.elapsed(), hash };
    if let Some(line) = first_truncated {
        let most = encoder.max_tokens();
        complain_as("note", format_args!("{truncated} sentences were cut to {most} tokens, the first in line {line}"));
    }
    // If the report can't be written, no file is left.
    if args.json { report_json(args, &encoder, &done) } else { report(args, &encoder, &done) }?;
    file.commit()
}

fn per_second(done: &Done) -> f64 {
    done.sentences as f64 / done.taken.as_secs_f64().max(1e-9)
}

fn report(args: &EmbedArgs, encoder: &SentenceEncoder, done: &Done) -> Result<()> {
    let device = context_text(encoder.context());
    let rows = [
        ["model".into(), args.model.display().to_string()],
        ["device".into(), format!("{device} {}", encoder.context().device_info().name)],
        ["in".into(), format!("{}, {} sentences, {} of them cut", name(&args.input), done.sentences, done.truncated)],
        ["time".into(), format!("{} to open, {} to embed", time(done.opened), time(done.taken))],
        ["speed".into(), format!("{:.1} sentences/s", per_second(done))],
        [
            "out".into(),
            format!("f32[{}, {}] sha256 {} -> {}", done.sentences, encoder.width(), done.hash, args.output.display()),
        ],
    ];
    failure::write(table(&rows.map(Vec::from), 2).as_bytes())
}

fn report_json(args: &EmbedArgs, encoder: &SentenceEncoder, done: &Done) -> Result<()> {
    failure::line(json!({
        "model": args.model.display().to_string(),
        "device": device_json(encoder.context().device_info()),
        "sentences": done.sentences,
        "truncated": done.truncated,
        "max_tokens": encoder.max_tokens(),
        "open_seconds": done.opened.as_secs_f64(),
        "seconds": done.taken.as_secs_f64(),
        "sentences_per_second": per_second(done),
        "dtype": "f32",
        "shape": [done.sentences, encoder.width() as u64],
        "sha256": done.hash,
        "file": args.output.display().to_string(),
    }))
}
