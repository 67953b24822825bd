//! `adead bench --compare`: the same work on the CPU, on each GPU and on both together, as a Markdown table.

use crate::args::{BenchArgs, DeviceArgs};
use crate::bench::{Row, choose, measure};
use crate::failure::{Failure, Result, write};
use crate::format::{median, time};
use crate::info::context_text;
use crate::progress::Progress;
use crate::report::{Opened, open, version};
use adead::device::DeviceKind;
use adead::{Attrs, Context, Op, Tensor};
use adead_models::SentenceEncoder;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A row of the comparison.
enum Work {
    /// An operation.
    Operation(Row),
    /// Embedding sentences with a model.
    Inference { name: String, sentences: Vec<String> },
}

/// The fewest runs of a whole model, and of an operation on a GPU's own memory.
const MIN_RUNS: usize = 3;

/// An operation on a GPU's own memory is enqueued repeatedly until it takes about this long, then waited for once.
const ENQUEUED: Duration = Duration::from_millis(5);
const MOST_ENQUEUED: usize = 256;

/// A device's time for a row, and its result.
struct Cell {
    median: Duration,
    /// The rate as text.
    rate: String,
    result: Vec<u8>,
}

/// A column of the table: a cell for each row, `None` if nothing could be measured.
struct Column {
    title: String,
    cells: Vec<Option<Cell>>,
}

impl Work {
    fn name(&self) -> &str {
        match self {
            Work::Operation(row) => &row.name,
            Work::Inference { name, .. } => name,
        }
    }
}

/// The operations that models consist of, and a model if one is given.
fn works(model: bool) -> Vec<Work> {
    let plain = Attrs::default();
    let mut rows = Vec::new();
    for n in [512, 1024, 2048] {
        rows.push(Row::new(Op::Matmul, &n.to_string(), &[&[n, n], &[n, n]], plain));
    }
    let heads: &[usize] = &[8, 1024, 64];
    rows.push(Row::new(Op::Attention, "8x1024x64", &[heads, heads, heads], plain));
    let (x, up, down): (&[usize], &[usize], &[usize]) = (&[256, 512], &[512, 2048], &[2048, 512]);
    rows.push(Row::new(Op::Ffn, "256x512x2048", &[x, up, &[2048], down, &[512]], plain));
    rows.push(Row::new(Op::Embedding, "8192of30522x384", &[&[30522, 384], &[8192]], plain));
    let mut works: Vec<Work> = rows.into_iter().map(Work::Operation).collect();
    if model {
        for (count, words) in [(1, 14), (32, 126)] {
            let (name, sentences) = (format!("sentences/{count}x{words}"), sentences(count, words));
            works.push(Work::Inference { name, sentences });
        }
    }
    works
}

/// Sentences with this many words, each different.
fn sentences(count: usize, words: usize) -> Vec<String> {
    const WORDS: [&str; 16] = [
        "the", "sea", "was", "calm", "and", "a", "boat", "came", "back", "to", "old", "town", "before", "it", "got",
        "dark",
    ];
    let word = |at: usize| WORDS[at % WORDS.len()];
    // The step grows with the sentence, so the order of words differs.
    (0..count).map(|i| (0..words).map(|j| word(i + j * (2 * i + 1))).collect::<Vec<_>>().join(" ")).collect()
}

/// Measures and prints the table.
pub fn run(args: &BenchArgs, device: &DeviceArgs) -> Result<()> {
    let works = choose(works(args.model.is_some()), &args.only, Work::name)?;
    let budget = Duration::from_secs_f64(args.seconds);
    let Opened { contexts: mut opened, mut notes } = open(device)?;
    // Without a GPU, hybrid would be the CPU again.
    opened.retain(|(id, ctx)| id != "hybrid" || ctx.devices().len() > 1 || device.device.is_some());
    let mut progress = Progress::new();
    let mut columns = Vec::new();
    for (index, (id, ctx)) in opened.iter().enumerate() {
        progress.within(index, opened.len());
        let alone = ctx.undivided()?;
        let encoder = args.model.as_deref().map(|folder: &Path| crate::embed::open_model(folder, ctx)).transpose()?;
        let (mut host, mut own) = (Vec::new(), Vec::new());
        for (index, work) in works.iter().enumerate() {
            progress.part(index, works.len(), || format!("{} on {id}", work.name()));
            let mut keep = |found: Result<Cell>| match found {
                Ok(cell) => Ok(Some(cell)),
                Err(Failure::Error(error)) => {
                    notes.push(format!("{} on {id}: {}", work.name(), error.message()));
                    Ok(None)
                }
                Err(other) => Err(other),
            };
            match (work, &encoder) {
                (Work::Operation(row), _) => {
                    host.push(keep(operation(row, ctx, budget))?);
                    let gpu = alone.device_info().kind != DeviceKind::Cpu;
                    own.push(if gpu { keep(resident(row, &alone, budget))? } else { None });
                }
                (Work::Inference { sentences, .. }, Some(encoder)) => {
                    host.push(keep(inference(sentences, encoder, budget))?);
                    own.push(None);
                }
                (Work::Inference { .. }, None) => {}
            }
        }
        let gpu = own.iter().any(Option::is_some);
        columns.push(Column { title: id.clone(), cells: host });
        if gpu {
            columns.push(Column { title: format!("{id}, data there"), cells: own });
        }
    }
    progress.clear();
    let machine = opened.iter().map(|(id, ctx)| machine(id, ctx)).collect::<Vec<_>>().join("; ");
    write(page(&works, &columns, &machine, &notes).as_bytes())
}

/// Names the devices of a context.
fn machine(id: &str, ctx: &Context) -> String {
    let names: Vec<String> = match id {
        "hybrid" => ctx.devices().into_iter().map(|info| info.id).collect(),
        _ => vec![context_text(ctx), ctx.device_info().name.clone()],
    };
    format!("{id}: {}", names.join(" "))
}

/// Measures an operation on tensors in host memory.
fn operation(row: &Row, ctx: &Context, budget: Duration) -> Result<Cell> {
    let tensors = row.operands()?;
    let given: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
    let result = hash(ctx.run(row.op, &row.attrs, &given)?.bytes());
    let measured = measure(row, ctx, budget)?;
    Ok(Cell { median: measured.median, rate: measured.rate(), result })
}

/// Measures an operation on tensors in a GPU's memory: a run's share of several that are enqueued together.
fn resident(row: &Row, ctx: &Context, budget: Duration) -> Result<Cell> {
    let id = &ctx.device_info().id;
    let there = row.operands()?.iter().map(|tensor| ctx.to(tensor, id)).collect::<adead::Result<Vec<Tensor>>>()?;
    let given: Vec<Option<&Tensor>> = there.iter().map(Some).collect();
    let result = hash(ctx.run(row.op, &row.attrs, &given)?.host_bytes()?);
    let several = |count: usize| -> Result<Duration> {
        let begin = Instant::now();
        let mut last = ctx.run(row.op, &row.attrs, &given)?;
        for _ in 1..count {
            last = ctx.run(row.op, &row.attrs, &given)?;
        }
        // Downloading a copy of one row waits for all the work.
        ctx.concat(&[&last.rows(0, 1)?], 0)?.host_bytes()?;
        Ok(begin.elapsed() / count as u32)
    };
    let once = several(1)?;
    let count = (ENQUEUED.as_nanos() / once.as_nanos().max(1)).clamp(1, MOST_ENQUEUED as u128) as usize;
    let median = repeat(budget, || several(count))?;
    Ok(Cell { median, rate: row.rate(median)?, result })
}

/// Measures embedding sentences, with the rows in host memory.
fn inference(sentences: &[String], encoder: &SentenceEncoder, budget: Duration) -> Result<Cell> {
    let result = hash(bytes(encoder.encode(sentences)?.values()).as_slice());
    let median = repeat(budget, || {
        let begin = Instant::now();
        encoder.encode(sentences)?;
        Ok(begin.elapsed())
    })?;
    let rate = sentences.len() as f64 / median.as_secs_f64().max(1e-9);
    Ok(Cell { median, rate: format!("{rate:.1} sentences/s"), result })
}

/// The median of as many times as fit into the budget, at least three.
fn repeat(budget: Duration, mut once: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < MIN_RUNS || begin.elapsed() < budget {
        times.push(once()?);
    }
    Ok(median(&mut times))
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// The table and the notes below it.
fn page(works: &[Work], columns: &[Column], machine: &str, notes: &[String]) -> String {
    let mut text = String::from("| |");
    // Writing to a String can't fail.
    for column in columns {
        let _ = write!(text, " {} |", column.title);
    }
    text += " same bits |\n|---|";
    text += &"---|".repeat(columns.len() + 1);
    for (i, work) in works.iter().enumerate() {
        let _ = write!(text, "\n| {} |", work.name());
        let cells: Vec<Option<&Cell>> = columns.iter().map(|column| column.cells[i].as_ref()).collect();
        for cell in &cells {
            match cell {
                Some(cell) => write!(text, " {}, {} |", time(cell.median), cell.rate),
                None => write!(text, " |"),
            }
            .unwrap_or_default();
        }
        let mut results = cells.iter().flatten().map(|cell| &cell.result);
        let first = results.next();
        text += if results.all(|result| Some(result) == first) { " yes |" } else { " **no** |" };
    }
    let _ = write!(text, "\n\n{}; f32; medians. {machine}.\n", version());
    for note in notes {
        let _ = writeln!(text, "\n{note}.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(result: u8) -> Option<Cell> {
        Some(Cell { median: Duration::from_millis(2), rate: "3.0 GB/s".into(), result: vec![result] })
    }

    #[test]
    fn a_result_that_differs_stands_in_the_table() {
        let works = works(true);
        let mut columns = vec![
            Column { title: "cpu".into(), cells: works.iter().map(|_| cell(1)).collect() },
            Column { title: "gpu".into(), cells: works.iter().map(|_| cell(1)).collect() },
        ];
        columns[1].cells[0] = None;
        columns[1].cells[1] = cell(2);
        let text = page(&works, &columns, "cpu: C", &["a note".into()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| | cpu | gpu | same bits |");
        assert_eq!(lines[1], "|---|---|---|---|");
        assert_eq!(lines[2], "| matmul/512 | 2.000 ms, 3.0 GB/s | | yes |");
        assert_eq!(lines[3], "| matmul/1024 | 2.000 ms, 3.0 GB/s | 2.000 ms, 3.0 GB/s | **no** |");
        assert!(text.contains("\n| sentences/32x126 |") && text.ends_with("cpu: C.\n\na note.\n"), "{text}");
    }

    #[test]
    fn sentences_differ() {
        let all = sentences(32, 126);
        assert!(all.iter().all(|sentence| sentence.split(' ').count() == 126));
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert!(distinct.len() >= 16, "{}", distinct.len());
    }
}
