//! `adead gguf`: shows what a GGUF file has.

use crate::failure::{Result, line, write};
use crate::files::name;
use crate::format::{bytes, table};
use adead_models::gguf::{Array, Gguf, TensorInfo, Value};
use clap::{Args, ValueHint};
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Arguments of `adead gguf`.
#[derive(Args, Debug)]
#[command(after_help = "EXAMPLES\n  adead gguf model.gguf\n  adead gguf model.gguf --json | jq -r '.tensors[].name'")]
pub struct GgufArgs {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON, with arrays whole
    #[arg(long)]
    pub json: bool,
}

/// The most elements of an array that are shown.
const ELEMENTS: usize = 4;
/// The most characters of a string that are shown: alone, and in an array.
const ALONE: usize = 60;
const INSIDE: usize = 12;

/// Shows a file. Its tensors' values are not read.
pub fn show(args: &GgufArgs) -> Result<()> {
    // SAFETY: the command only shows what the file says. If another program shortens it meanwhile, the command ends.
    let gguf = unsafe { Gguf::map(&args.file) }?;
    if args.json {
        return line(format_args!("{:#}", to_json(&gguf, &name(&args.file))));
    }
    let tensors = gguf.tensors();
    let size: usize = tensors.iter().map(TensorInfo::size).sum();
    let values: f64 = tensors.iter().map(|tensor| tensor.elements() as f64).sum();
    let rows = [
        ["file", &format!("{} (GGUF {})", name(&args.file), gguf.version())],
        [
            "tensors",
            &format!("{}: {values} values in {}, aligned to {}", tensors.len(), bytes(size as u64), gguf.alignment()),
        ],
    ];
    let mut text = table(&rows.map(|row| row.map(String::from).to_vec()), 2);
    let rows: Vec<_> =
        gguf.metadata().map(|(key, value)| vec![escaped(key, usize::MAX), kind(value), shown(value)]).collect();
    text += &format!("\n{}", table(&rows, 3));
    let rows = tensors.iter().map(|tensor| {
        let (size, start) = (bytes(tensor.size() as u64), tensor.range().start);
        vec![
            escaped(tensor.name(), usize::MAX),
            tensor.kind().to_string(),
            format!("{:?}", tensor.dims()),
            size,
            start.to_string(),
        ]
    });
    let titles = ["tensor", "kind", "dims", "size", "at byte"].map(String::from).to_vec();
    let rows: Vec<_> = std::iter::once(titles).chain(rows).collect();
    text += &format!("\n{}", table(&rows, 3));
    write(text.as_bytes())
}

/// Text of the file without control characters, shortened.
fn escaped(text: &str, longest: usize) -> String {
    let end = text.char_indices().nth(longest).map_or(text.len(), |(end, _)| end);
    let more = if end < text.len() { "…" } else { "" };
    let escaped =
        text[..end].chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    escaped.collect::<String>() + more
}

/// The type of a value; of an array with its length.
fn kind(value: &Value) -> String {
    match value {
        Value::Array(array) => format!("{array:?}"),
        other => other.value_type().to_string(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::U8(value) => value.to_string(),
        Value::I8(value) => value.to_string(),
        Value::U16(value) => value.to_string(),
        Value::I16(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::F32(value) => format!("{value:?}"),
        Value::Bool(value) => value.to_string(),
        Value::String(text) => escaped(text, ALONE),
        Value::Array(array) => elements(array),
        Value::U64(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::F64(value) => format!("{value:?}"),
    }
}

fn elements(array: &Array) -> String {
    let first = array.iter().take(ELEMENTS).map(|element| match &element {
        Value::String(text) => format!("'{}'", escaped(text, INSIDE)),
        Value::Array(_) => kind(&element),
        other => shown(other),
    });
    let mut text = first.collect::<Vec<_>>().join(", ");
    if array.len() > ELEMENTS {
        text += ", …";
    }
    text
}

fn to_json(gguf: &Gguf, file: &str) -> Json {
    let metadata = gguf.metadata().map(|(key, value)| {
        let mut entry = json!({ "key": key, "type": value.value_type().name(), "value": value_json(value) });
        if let Value::Array(array) = value {
            entry["elements"] = array.element_type().name().into();
        }
        entry
    });
    let tensors = gguf.tensors().iter().map(|tensor| {
        json!({
            "name": tensor.name(),
            "kind": tensor.kind().to_string(),
            "dims": tensor.dims(),
            "offset": tensor.range().start,
            "bytes": tensor.size(),
        })
    });
    json!({
        "file": file,
        "version": gguf.version(),
        "alignment": gguf.alignment(),
        "metadata": metadata.collect::<Vec<_>>(),
        "tensors": tensors.collect::<Vec<_>>(),
    })
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::U8(value) => json!(value),
        Value::I8(value) => json!(value),
        Value::U16(value) => json!(value),
        Value::I16(value) => json!(value),
        Value::U32(value) => json!(value),
        Value::I32(value) => json!(value),
        // By its own shortest digits, not those of the f64 that it equals.
        Value::F32(value) if value.is_finite() => json!(value.to_string().parse::<f64>().unwrap_or((*value).into())),
        Value::F64(value) if value.is_finite() => json!(value),
        // JSON has no NaN and no infinities.
        Value::F32(_) | Value::F64(_) => json!(shown(value)),
        Value::Bool(value) => json!(value),
        Value::String(text) => json!(text),
        Value::Array(array) => array.iter().map(|element| value_json(&element)).collect(),
        Value::U64(value) => json!(value),
        Value::I64(value) => json!(value),
    }
}
