//! The conformance cases (`tests/conformance/FORMAT.md`), read and run through the Rust API.
//!
//! `cargo test` runs them for every instruction set and several thread counts; `adead verify` runs them on every device.

pub mod generate;

use adead_core::{Attrs, Context, DType, Error, Op, Status, Tensor};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The case files as `(stem, text)`, in name order.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// A case, its inputs not made yet.
#[derive(Debug)]
pub struct Case<'a> {
    /// `FILE-STEM/NAME`.
    pub id: &'a str,
    op: &'a str,
    attrs: Vec<(&'a str, &'a str)>,
    inputs: Vec<&'a str>,
    expected: &'a str,
    /// The capabilities it asks for.
    pub requires: Vec<&'a str>,
}

/// What became of a case.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bits are those expected.
    Passed,
    /// They are not, or the case itself is malformed: a text for a person.
    Failed(String),
}

/// Every case of every file. A malformed file is an error text with its line.
pub fn cases() -> Result<Vec<Case<'static>>, String> {
    let mut all = Vec::new();
    for (stem, text) in FILES {
        parse(stem, text, &mut all)?;
    }
    Ok(all)
}

/// Reads the cases of one file into `all`. What makes no sense is an error text with its line.
pub fn parse<'a>(stem: &str, text: &'a str, all: &mut Vec<Case<'a>>) -> Result<(), String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let header = format!("format 1 {}", adead_core::contract::VERSION);
    if lines.next().is_none_or(|(_, line)| line != header) {
        return Err(format!("{stem}.txt does not begin with '{header}'"));
    }
    let mut open: Option<Case<'a>> = None;
    for (number, line) in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let fault = || format!("{stem}.txt:{}: '{line}' makes no sense here", number + 1);
        match (word, &mut open) {
            ("case", None) => {
                let case = Case { id: rest, op: "", attrs: vec![], inputs: vec![], expected: "", requires: vec![] };
                open = Some(case);
            }
            ("op", Some(case)) => case.op = rest,
            ("attr", Some(case)) => case.attrs.push(rest.split_once(' ').ok_or_else(fault)?),
            ("in", Some(case)) => case.inputs.push(rest),
            ("out" | "error", Some(case)) => case.expected = line,
            ("requires", Some(case)) => case.requires.push(rest),
            ("end", Some(_)) => all.extend(open.take()),
            _ => return Err(fault()),
        }
    }
    if open.is_some() { Err(format!("{stem}.txt ends inside a case")) } else { Ok(()) }
}

/// A shape of the format: `2,3`, or `-` for a scalar.
fn shape(text: &str) -> Option<Vec<usize>> {
    if text == "-" { Some(Vec::new()) } else { text.split(',').map(|n| n.parse().ok()).collect() }
}

/// Bytes from fixed-width hex numbers.
fn from_hex(hex: &str, dtype: DType) -> Option<Vec<u8>> {
    let digits = dtype.size() * 2;
    if !hex.is_ascii() || !hex.len().is_multiple_of(digits) {
        return None;
    }
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    for at in (0..hex.len()).step_by(digits) {
        let value = u64::from_str_radix(&hex[at..at + digits], 16).ok()?;
        bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size()]);
    }
    // Little endian so far; elements are native.
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    Some(bytes)
}

fn to_hex(bytes: &[u8], dtype: DType) -> String {
    let mut text = String::new();
    for element in bytes.chunks_exact(dtype.size()) {
        let mut wide = [0; 8];
        wide[..element.len()].copy_from_slice(element);
        let _ = write!(text, "{:0width$x}", u64::from_le_bytes(wide), width = dtype.size() * 2);
    }
    text
}

/// The data of an operand: `bits:…`, `fill:…`, `rand:…`, `wild:…`, `ids:…`.
pub fn data(dtype: DType, n: usize, spec: &str) -> Option<Vec<u8>> {
    let (kind, rest) = spec.split_once(':')?;
    let mut numbers = rest.split(':');
    match kind {
        "bits" => from_hex(rest, dtype),
        "fill" => Some(from_hex(rest, dtype)?.repeat(n)),
        "rand" => {
            let (seed, e) = (numbers.next()?.parse().ok()?, numbers.next().map_or(Some(0), |e| e.parse().ok())?);
            generate::rand(dtype, n, seed, e)
        }
        "wild" => generate::wild(dtype, n, numbers.next()?.parse().ok()?),
        "ids" => generate::ids(dtype, n, numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?),
        _ => None,
    }
}

/// SHA-256 of a tensor's elements, little endian, in hex: the hash that `adead` prints everywhere.
pub fn hash(tensor: &Tensor) -> String {
    let bytes = tensor.bytes();
    let digest = if cfg!(target_endian = "big") {
        let mut bytes = bytes.to_vec();
        bytes.chunks_exact_mut(tensor.dtype().size()).for_each(<[u8]>::reverse);
        Sha256::digest(&bytes)
    } else {
        Sha256::digest(bytes)
    };
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Case<'_> {
    /// Runs it.
    pub fn run(&self, ctx: &Context) -> Outcome {
        match self.attempt(ctx) {
            Ok(outcome) => outcome,
            Err(malformed) => Outcome::Failed(format!("the case is malformed: {malformed}")),
        }
    }

    fn attempt(&self, ctx: &Context) -> Result<Outcome, String> {
        let mut operands = Vec::new();
        for input in &self.inputs {
            operands.push(self.operand(input)?);
        }
        let result = self.call(ctx, &operands);
        let mut expected = self.expected.split(' ');
        let failed = |text: String| Ok(Outcome::Failed(text));
        match (expected.next(), result) {
            (Some("error"), Err(error)) => {
                let status = Status::from_name(expected.next().unwrap_or_default()).ok_or("no such status")?;
                if error.status() == status {
                    return Ok(Outcome::Passed);
                }
                failed(format!("expected {status}, got {error}"))
            }
            (Some("error"), Ok(tensor)) => failed(format!("expected an error, got {tensor:?}")),
            (Some("out"), Err(error)) => failed(format!("expected a result, got {error}")),
            (Some("out"), Ok(tensor)) => {
                let (Some(dtype), Some(dims), Some(value)) = (expected.next(), expected.next(), expected.next()) else {
                    return Err("an incomplete expectation".into());
                };
                let dims = shape(dims).ok_or("a malformed shape")?;
                if tensor.dtype().name() != dtype || tensor.dims() != dims {
                    return failed(format!("expected {dtype}{dims:?}, got {tensor:?}"));
                }
                match value.split_once(':') {
                    Some(("sha256", expected)) => match hash(&tensor) {
                        got if got == expected => Ok(Outcome::Passed),
                        got => failed(format!("expected sha256 {expected}, got {got}")),
                    },
                    Some(("bits", expected)) => match to_hex(tensor.bytes(), tensor.dtype()) {
                        got if got == expected => Ok(Outcome::Passed),
                        got => failed(difference(expected, &got, tensor.dtype())),
                    },
                    _ => Err("an unknown expectation".into()),
                }
            }
            _ => Err("no expectation".into()),
        }
    }

    fn operand(&self, input: &str) -> Result<Option<Tensor>, String> {
        if input == "none" {
            return Ok(None);
        }
        let mut words = input.splitn(3, ' ');
        let (Some(dtype), Some(dims), Some(spec)) = (words.next(), words.next(), words.next()) else {
            return Err(format!("operand '{input}'"));
        };
        let dtype: DType = dtype.parse().map_err(|error: Error| error.to_string())?;
        let dims = shape(dims).ok_or("a malformed shape")?;
        let bytes = data(dtype, dims.iter().product(), spec).ok_or_else(|| format!("data '{spec}'"))?;
        Tensor::from_bytes(&bytes, dtype, &dims).map(Some).map_err(|error| error.to_string())
    }

    fn call(&self, ctx: &Context, operands: &[Option<Tensor>]) -> adead_core::Result<Tensor> {
        let op = Op::from_name(self.op)?;
        let mut attrs = Attrs::default();
        for (name, value) in &self.attrs {
            attrs.set(op, name, value)?;
        }
        let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
        ctx.run(op, &attrs, &operands)
    }
}

/// Where two hex strings of elements differ first, for a person.
fn difference(expected: &str, got: &str, dtype: DType) -> String {
    let digits = dtype.size() * 2;
    if expected.len() != got.len() {
        return format!("expected {expected}, got {got}");
    }
    let element = |text: &str, at: usize| text.get(at..at + digits).unwrap_or_default().to_string();
    let at = (0..expected.len()).step_by(digits).find(|&at| element(expected, at) != element(got, at)).unwrap_or(0);
    format!("expected {}, got {} at element {}", element(expected, at), element(got, at), at / digits)
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cases run.
    pub ran: usize,
    /// Of those, how many did not give the bits expected.
    pub failed: usize,
    /// Cases left out, with a printed reason.
    pub skipped: usize,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ran, {} failed, {} skipped", self.ran, self.failed, self.skipped)
    }
}

/// Runs every case, giving each failure to `report` as `(id, text)`.
pub fn run_all(ctx: &Context, mut report: impl FnMut(&str, &str)) -> Result<Summary, String> {
    let mut summary = Summary::default();
    for case in cases()? {
        summary.ran += 1;
        if let Outcome::Failed(text) = case.run(ctx) {
            summary.failed += 1;
            report(case.id, &text);
        }
    }
    Ok(summary)
}
