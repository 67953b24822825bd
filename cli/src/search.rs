//! `adead search`: finds the rows of an embeddings file that are closest to a query by cosine, exactly.

use crate::args::DeviceArgs;
use crate::embed::open_model;
use crate::failure::{self, Failure, Result};
use crate::npy::rows::Reader;
use crate::progress::Progress;
use crate::sentences::{Format, Sentences};
use adead::{Axis, Context, MatmulOptions, Status, Tensor};
use clap::{ArgGroup, Args, ValueHint};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `adead search`.
#[derive(Args, Debug)]
#[command(after_help = HELP, group = ArgGroup::new("what").required(true).args(["query", "queries"]))]
pub struct SearchArgs {
    /// The .npy file to search: f32, one row per sentence
    #[arg(value_name = "EMBEDDINGS", value_hint = ValueHint::FilePath)]
    pub embeddings: PathBuf,
    /// A sentence to search for; may be repeated
    #[arg(long, value_name = "TEXT", requires = "model")]
    pub query: Vec<String>,
    /// The model that embeds the queries: the one that made the file
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub model: Option<PathBuf>,
    /// Embedded queries: a .npy file of rows of the same width
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub queries: Option<PathBuf>,
    /// The number of rows to show for each query
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub top: u32,
    /// The file that was embedded, to show its sentences: one for each row
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sentences: Option<PathBuf>,
    /// The sentences file has JSON lines, as for 'adead embed'
    #[arg(long, value_name = "FIELD", num_args = 0..=1, default_missing_value = "text", requires = "sentences")]
    pub jsonl: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
Every row is compared. Rows count from 0; of equal cosines the lower row comes first.

EXAMPLES
  adead search embeddings.npy --model all-MiniLM-L6-v2 \\
      --query 'a boat arrives' --sentences sentences.txt
  adead search embeddings.npy --queries queries.npy --top 100 --json";

/// Bytes of rows that are compared at once.
const CHUNK: usize = 16 << 20;

/// A row and its cosine.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Hit {
    row: usize,
    cosine: f32,
}

impl Hit {
    /// Higher cosines first, then lower rows; NaN last.
    fn before(&self, other: &Hit) -> Ordering {
        let key = |hit: &Hit| if hit.cosine.is_nan() { f32::NEG_INFINITY } else { hit.cosine };
        key(other).total_cmp(&key(self)).then(self.row.cmp(&other.row))
    }
}

pub fn run(args: &SearchArgs, device: &DeviceArgs) -> Result<()> {
    let mut file = Reader::open(&args.embeddings)?;
    let context = device.open()?;
    let rows = file.left();
    let queries = queries(args, &context, file.width())?;
    let hits = search(&context, &mut file, &queries, args.top as usize)?;
    let texts = match &args.sentences {
        Some(path) => texts(path, args.jsonl.as_deref(), &hits, rows)?,
        None => BTreeMap::new(),
    };
    if args.json { report_json(args, &hits, &texts) } else { report(args, &hits, &texts) }
}

/// The queries' embeddings, `[queries, width]`.
fn queries(args: &SearchArgs, context: &Context, width: usize) -> Result<Tensor> {
    let (queries, from) = match (&args.queries, &args.model) {
        (Some(path), _) => {
            let mut file = Reader::open(path)?;
            let (all, width) = (file.left(), file.width());
            let rows = file.next(all)?.map_or_else(|| Tensor::zeros(adead::DType::F32, &[0, width]), Ok)?;
            (rows, path)
        }
        (None, Some(model)) => {
            let rows = open_model(model, context)?.encode(&args.query)?;
            (Tensor::new(rows.values(), &[rows.len(), rows.width()])?, model)
        }
        // clap guarantees this.
        (None, None) => return Err(Failure::invalid("--query needs --model")),
    };
    if queries.dims()[1] != width {
        let (file, own) = (args.embeddings.display(), queries.dims()[1]);
        let text = format!("{file} has rows of {width} values and {} gives {own}", from.display());
        return Err(Failure::new(Status::ShapeMismatch, text));
    }
    Ok(queries)
}

/// The lengths of rows.
fn lengths(context: &Context, rows: &Tensor) -> Result<Vec<f32>> {
    let squares = context.sum(&context.mul(rows, rows)?, Axis::At(1), false)?;
    Ok(context.sqrt(&squares)?.to_vec()?)
}

/// Finds the best rows for each query.
fn search(context: &Context, file: &mut Reader, queries: &Tensor, top: usize) -> Result<Vec<Vec<Hit>>> {
    let (count, all) = (queries.dims()[0], file.left());
    let query_lengths = lengths(context, queries)?;
    let mut best: Vec<Vec<Hit>> = vec![Vec::new(); count];
    let (most, mut first) = ((CHUNK / size_of::<f32>() / file.width()).max(1), 0);
    let mut progress = Progress::new();
    while let Some(rows) = file.next(most)? {
        let products = context.matmul_with(queries, &rows, MatmulOptions { trans_b: true, ..Default::default() })?;
        let products = products.as_slice::<f32>()?;
        let lengths = lengths(context, &rows)?;
        let n = lengths.len();
        for (query, best) in best.iter_mut().enumerate() {
            for (row, &length) in lengths.iter().enumerate() {
                let scale = length * query_lengths[query];
                // A row of zeros has no direction, so its cosine is 0.
                let cosine = if scale == 0.0 { 0.0 } else { products[query * n + row] / scale };
                best.push(Hit { row: first + row, cosine });
            }
            best.sort_unstable_by(Hit::before);
            best.truncate(top);
        }
        first += n;
        progress.part(first, all, || format!("{first} of {all} rows"));
    }
    Ok(best)
}

/// The sentences of the found rows. The file must have as many sentences as there are rows; otherwise it is the wrong file.
fn texts(path: &Path, field: Option<&str>, hits: &[Vec<Hit>], rows: usize) -> Result<BTreeMap<usize, String>> {
    let mut texts: BTreeMap<usize, String> = hits.iter().flatten().map(|hit| (hit.row, String::new())).collect();
    let mut lines = 0;
    for (row, sentence) in Sentences::open(path, Format::of(path, field))?.enumerate() {
        let sentence = sentence?;
        lines = row + 1;
        if let Some(text) = texts.get_mut(&row) {
            *text = sentence;
        }
    }
    if lines != rows {
        let text =
            format!("{} has {lines} sentences for {rows} rows: it is not the file that was embedded", path.display());
        return Err(Failure::invalid(text));
    }
    Ok(texts)
}

fn report(args: &SearchArgs, hits: &[Vec<Hit>], texts: &BTreeMap<usize, String>) -> Result<()> {
    let mut out = String::new();
    for (query, hits) in hits.iter().enumerate() {
        match args.query.get(query) {
            Some(text) => out += &format!("{text}\n"),
            None => out += &format!("query {query}\n"),
        }
        for hit in hits {
            let text = texts.get(&hit.row).map(|text| format!("  {text}")).unwrap_or_default();
            out += &format!("  {:.6}  {}{text}\n", hit.cosine, hit.row);
        }
    }
    failure::write(out.as_bytes())
}

fn report_json(args: &SearchArgs, hits: &[Vec<Hit>], texts: &BTreeMap<usize, String>) -> Result<()> {
    let found = |hits: &Vec<Hit>| -> Vec<Value> {
        let one = |hit: &Hit| json!({"row": hit.row, "cosine": hit.cosine, "sentence": texts.get(&hit.row)});
        hits.iter().map(one).collect()
    };
    let queries = hits.iter().enumerate().map(|(i, hits)| json!({"query": args.query.get(i), "hits": found(hits)}));
    failure::line(json!({ "queries": queries.collect::<Vec<_>>() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_ordered_by_cosine_and_then_by_row() {
        let mut hits: Vec<Hit> = [0.5, f32::NAN, 0.5, -1.0, 1.0, f32::NAN]
            .into_iter()
            .enumerate()
            .map(|(row, cosine)| Hit { row, cosine })
            .collect();
        hits.sort_unstable_by(Hit::before);
        assert_eq!(hits.iter().map(|hit| hit.row).collect::<Vec<_>>(), [4, 0, 2, 3, 1, 5]);
    }
}
