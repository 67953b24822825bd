//! Reads the conformance cases (`tests/conformance/FORMAT.md`) and runs them through the Rust API.
//!
//! `cargo test` runs them for every instruction set and several thread counts; `adead verify` runs them on every device.

pub mod generate;
mod pipeline;

use adead_core::{Attrs, Context, DType, Op, Status, Tensor};
use pipeline::Recorded;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The case files as `(stem, text)`, in name order.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// A case whose inputs are not generated yet.
#[derive(Debug)]
pub struct Case<'a> {
    /// `FILE-STEM/NAME`.
    pub id: &'a str,
    op: &'a str,
    attrs: Vec<(&'a str, &'a str)>,
    inputs: Vec<&'a str>,
    expected: &'a str,
    /// The recording of a case with `op pipeline`.
    pipeline: Option<Recorded<'a>>,
    /// The capabilities that it requires.
    pub requires: Vec<&'a str>,
}

/// The outcome of a case.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bits are the expected ones.
    Passed,
    /// The bits differ, or the case is malformed. The text describes it.
    Failed(String),
}

/// Returns every case of every file, or an error with the line of a malformed file.
pub fn cases() -> Result<Vec<Case<'static>>, String> {
    let mut all = Vec::new();
    for (stem, text) in FILES {
        parse(stem, text, &mut all)?;
    }
    Ok(all)
}

/// Reads the cases of one file into `all`. Malformed lines are an error with the line's number.
pub fn parse<'a>(stem: &str, text: &'a str, all: &mut Vec<Case<'a>>) -> Result<(), String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let header = format!("format 1 {}", adead_core::contract::VERSION);
    if lines.next().is_none_or(|(_, line)| line != header) {
        return Err(format!("{stem}.txt does not begin with '{header}'"));
    }
    let mut open: Option<Case<'a>> = None;
    for (number, line) in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let fault = || format!("{stem}.txt:{}: '{line}' is not valid here", number + 1);
        match (word, &mut open) {
            ("case", None) => {
                let (op, expected) = ("", "");
                let (attrs, inputs, requires) = (vec![], vec![], vec![]);
                open = Some(Case { id: rest, op, attrs, inputs, expected, pipeline: None, requires });
            }
            ("op", Some(case)) if rest == "pipeline" => case.pipeline = Some(Recorded::new()),
            ("op", Some(case)) => case.op = rest,
            ("requires", Some(case)) => case.requires.push(rest),
            ("end", Some(_)) => all.extend(open.take()),
            (_, Some(Case { pipeline: Some(recorded), .. })) => recorded.line(line).ok_or_else(fault)?,
            ("attr", Some(case)) => case.attrs.push(rest.split_once(' ').ok_or_else(fault)?),
            ("in", Some(case)) => case.inputs.push(rest),
            ("out" | "error", Some(case)) => case.expected = line,
            _ => return Err(fault()),
        }
    }
    if open.is_some() { Err(format!("{stem}.txt ends inside a case")) } else { Ok(()) }
}

/// A shape of the format: `2,3`, or `-` for a scalar.
fn shape(text: &str) -> Option<Vec<usize>> {
    if text == "-" { Some(Vec::new()) } else { text.split(',').map(|n| n.parse().ok()).collect() }
}

/// Reads bytes from fixed-width hexadecimal numbers.
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
    // The bytes are little endian here; elements are in native order.
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

/// Makes the data of an operand: `bits:…`, `fill:…`, `rand:…`, `wild:…`, `ids:…`.
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

/// Returns the SHA-256 of a tensor's elements, little endian, in hex. `adead` prints this hash everywhere.
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
    /// Runs the case.
    pub fn run(&self, ctx: &Context) -> Outcome {
        match self.attempt(ctx) {
            Ok(outcome) => outcome,
            Err(malformed) => Outcome::Failed(format!("the case is malformed: {malformed}")),
        }
    }

    fn attempt(&self, ctx: &Context) -> Result<Outcome, String> {
        if let Some(recorded) = &self.pipeline {
            return recorded.run(ctx);
        }
        let mut operands = Vec::new();
        for input in &self.inputs {
            operands.push(if *input == "none" { None } else { Some(operand(input)?) });
        }
        let result = self.call(ctx, &operands).map(|tensor| vec![tensor]);
        Ok(check(&[self.expected], result)?.map_or(Outcome::Passed, Outcome::Failed))
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

/// The dtype, shape and data of an operand.
fn meta(text: &str) -> Option<(DType, Vec<usize>, &str)> {
    let mut words = text.splitn(3, ' ');
    let (dtype, dims) = (words.next()?.parse().ok()?, shape(words.next()?)?);
    Some((dtype, dims, words.next()?))
}

/// Makes the tensor of an operand's text.
fn operand(text: &str) -> Result<Tensor, String> {
    let (dtype, dims, spec) = meta(text).ok_or_else(|| format!("operand '{text}'"))?;
    let bytes = data(dtype, dims.iter().product(), spec).ok_or_else(|| format!("data '{spec}'"))?;
    Tensor::from_bytes(&bytes, dtype, &dims).map_err(|error| error.to_string())
}

/// Describes what is wrong with a result, or returns `None`. `expected` has a line for each output, or one line for an error.
fn check(expected: &[&str], result: adead_core::Result<Vec<Tensor>>) -> Result<Option<String>, String> {
    let status = expected.first().and_then(|line| line.strip_prefix("error "));
    Ok(match (status, result) {
        (Some(name), Err(error)) => {
            let status = Status::from_name(name).ok_or("no such status")?;
            (error.status() != status).then(|| format!("expected {status}, got {error}"))
        }
        (Some(_), Ok(tensors)) => Some(format!("expected an error, got {tensors:?}")),
        (None, Err(error)) => Some(format!("expected a result, got {error}")),
        (None, Ok(tensors)) if tensors.len() != expected.len() => {
            Some(format!("expected {} results, got {tensors:?}", expected.len()))
        }
        (None, Ok(tensors)) => {
            for (line, tensor) in expected.iter().zip(&tensors) {
                if let Some(wrong) = check_tensor(line, tensor)? {
                    return Ok(Some(wrong));
                }
            }
            None
        }
    })
}

fn check_tensor(expected: &str, tensor: &Tensor) -> Result<Option<String>, String> {
    let (dtype, dims, value) = expected.strip_prefix("out ").and_then(meta).ok_or("no expectation")?;
    if tensor.dtype() != dtype || tensor.dims() != dims {
        return Ok(Some(format!("expected {dtype}{dims:?}, got {tensor:?}")));
    }
    Ok(match value.split_once(':') {
        Some(("sha256", expected)) => {
            let got = hash(tensor);
            (got != expected).then(|| format!("expected sha256 {expected}, got {got}"))
        }
        Some(("bits", expected)) => {
            let got = to_hex(tensor.bytes(), dtype);
            (got != expected).then(|| difference(expected, &got, dtype))
        }
        _ => return Err("an unknown expectation".into()),
    })
}

/// Describes where two hex strings of elements first differ.
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
    /// Cases whose bits were wrong.
    pub failed: usize,
    /// Cases left out, each with a printed reason.
    pub skipped: usize,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ran, {} failed, {} skipped", self.ran, self.failed, self.skipped)
    }
}

/// Runs every case. Passes each failure to `report` as `(id, text)`.
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
