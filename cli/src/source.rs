//! The sources of `--in SLOT=SOURCE`: a `.npy` file, or a generator of `tests/conformance/FORMAT.md`.

use crate::failure::{Failure, Result, complain_as};
use crate::files;
use crate::format;
use crate::npy::Npy;
use adead::program::Slot;
use adead::{Context, DType, Shape, Status, Tensor};
use adead_conformance::{data, generate};
use std::path::{Path, PathBuf};

/// The source of an input's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A `.npy` file.
    File(PathBuf),
    /// `rand:SEED` or `rand:SEED:E`.
    Rand(u64, i32),
    /// `wild:SEED`.
    Wild(u64),
    /// `ids:SEED:N`.
    Ids(u64, u64),
    /// `fill:HEX`, the bits of every element.
    Fill(String),
    /// `zeros`.
    Zeros,
}

/// A parsed `SLOT=SOURCE`.
#[derive(Clone, Debug)]
pub struct Input {
    /// The slot, as the user wrote it.
    pub slot: String,
    /// The source of its contents.
    pub source: Source,
    /// The source, as the user wrote it.
    pub text: String,
}

/// A parsed `SLOT=FILE`.
#[derive(Clone, Debug)]
pub struct Output {
    /// The slot, as the user wrote it.
    pub slot: String,
    /// The file.
    pub path: PathBuf,
}

/// The sources other than files.
const GENERATORS: &str = "zeros, rand:SEED[:E], wild:SEED, ids:SEED:N or fill:HEX";

/// Opens a `.npy` file. If it is missing, the error names the generators.
pub fn open_file(path: &Path, instead: &str) -> Result<Npy> {
    match path.try_exists() {
        Ok(false) => {
            let text = format!("{}: no such file; for generated values, write {instead}", path.display());
            Err(Failure::new(Status::Io, text))
        }
        _ => Npy::open(path),
    }
}

fn split(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((slot, rest)) if !slot.is_empty() && !rest.is_empty() => Ok((slot.into(), rest.into())),
        _ => Err("expected SLOT=SOURCE or SLOT=FILE".into()),
    }
}

/// Parses the value of `--in`.
pub fn parse_input(text: &str) -> Result<Input, String> {
    let (slot, text) = split(text)?;
    Ok(Input { slot, source: parse_source(&text)?, text })
}

/// Parses the value of `--out`.
pub fn parse_output(text: &str) -> Result<Output, String> {
    let (slot, path) = split(text)?;
    Ok(Output { slot, path: path.into() })
}

pub fn parse_source(text: &str) -> Result<Source, String> {
    if text == "zeros" {
        return Ok(Source::Zeros);
    }
    let mut words = text.split(':');
    let kind = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let number = |word: &str, what: &str| {
        word.parse::<u64>().map_err(|_| format!("the {what} must be an unsigned 64-bit integer, got '{word}'"))
    };
    match (kind, words.as_slice()) {
        ("rand", [seed]) => Ok(Source::Rand(number(seed, "seed")?, 0)),
        ("rand", [seed, e]) => Ok(Source::Rand(
            number(seed, "seed")?,
            e.parse().map_err(|_| format!("the exponent must be a 32-bit integer, got '{e}'"))?,
        )),
        ("wild", [seed]) => Ok(Source::Wild(number(seed, "seed")?)),
        ("ids", [seed, below]) => match number(below, "number of ids")? {
            n @ 1..=0x8000_0000 => Ok(Source::Ids(number(seed, "seed")?, n)),
            n => Err(format!("the number of ids must be from 1 to 2147483648, got {n}")),
        },
        ("fill", [hex]) if !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(Source::Fill(hex.to_string()))
        }
        ("rand" | "wild" | "ids" | "fill", [_, ..]) => {
            Err(format!("expected rand:SEED[:E], wild:SEED, ids:SEED:N or fill:HEX, got '{text}'"))
        }
        _ => Ok(Source::File(text.into())),
    }
}

impl Input {
    /// Loads the contents for a slot. If they don't fit, the error describes both.
    pub fn load(&self, slot: &Slot, ctx: &Context) -> Result<Tensor> {
        match &self.source {
            Source::File(_) => self.load_file(slot, ctx),
            // The system provides zeroed memory without a copy.
            Source::Zeros => Ok(Tensor::zeros(slot.meta.dtype, slot.meta.shape.dims())?),
            _ => {
                let (dtype, shape) = (slot.meta.dtype, slot.meta.shape);
                let bytes = self.generate(dtype, shape.elements(), &format!("slot {}", slot.name))?;
                Ok(Tensor::from_bytes(&bytes, dtype, shape.dims())?)
            }
        }
    }

    fn load_file(&self, slot: &Slot, ctx: &Context) -> Result<Tensor> {
        let npy = open_file(self.text.as_ref(), GENERATORS)?;
        let (dtype, shape) = (npy.header.dtype, Shape::new(&npy.header.dims)?);
        let bytes = shape.elements() * dtype.size();
        let have = || format!("slot {} is {} and {} holds {dtype}{shape}", slot.name, describe(slot), self.text);
        if slot.typed && dtype != slot.meta.dtype {
            // NumPy's default dtype, so a usual mistake.
            let hint = if dtype == DType::F64 { "; save it with .astype('float32')" } else { "" };
            return Err(Failure::new(Status::DtypeMismatch, have() + hint));
        }
        if bytes != slot.bytes || (slot.typed && shape != slot.meta.shape) {
            let sizes = if bytes == slot.bytes { String::new() } else { format!(", {bytes} bytes") };
            return Err(Failure::new(Status::ShapeMismatch, have() + &sizes));
        }
        if dtype != slot.meta.dtype {
            let (name, text, used) = (&slot.name, &self.text, slot.meta.dtype);
            let what = format!("slot {name} is used as {used} and {text} holds {dtype}: its bits are used unchanged");
            complain_as("note", what);
        }
        npy.read(ctx)
    }

    /// Generates `n` elements. `what` names them in errors.
    pub fn generate(&self, dtype: DType, n: usize, what: &str) -> Result<Vec<u8>> {
        // The generators allocate this much at once and can't report a failure, so it is tried here.
        drop(files::reserve(n.saturating_mul(dtype.size()), what)?);
        let wrong_dtype = || {
            let text = format!("{what} is {dtype}, which {} can't generate", self.text);
            Failure::new(Status::DtypeMismatch, text)
        };
        match &self.source {
            Source::Rand(seed, e) => {
                let range = if dtype == DType::F16 { -4..=15 } else { -100..=100 };
                if dtype.is_float() && !range.contains(e) {
                    let text = format!(
                        "{}: for {dtype} the exponent must be from {} to {}",
                        self.text,
                        range.start(),
                        range.end()
                    );
                    return Err(Failure::invalid(text));
                }
                generate::rand(dtype, n, *seed, *e).ok_or_else(wrong_dtype)
            }
            Source::Wild(seed) => generate::wild(dtype, n, *seed).ok_or_else(wrong_dtype),
            Source::Ids(seed, below) => generate::ids(dtype, n, *seed, *below).ok_or_else(wrong_dtype),
            Source::Fill(hex) if hex.len() == dtype.size() * 2 => {
                data(dtype, n, &format!("fill:{hex}")).ok_or_else(wrong_dtype)
            }
            Source::Fill(hex) => Err(Failure::invalid(format!(
                "{what} is {dtype}: fill: needs {} hexadecimal digits, got {}",
                dtype.size() * 2,
                hex.len()
            ))),
            Source::Zeros | Source::File(_) => files::zeros(n * dtype.size(), what),
        }
    }
}

/// Describes a slot's contents as text.
pub fn describe(slot: &Slot) -> String {
    if slot.typed {
        format!("{}{}", slot.meta.dtype, slot.meta.shape)
    } else {
        format!("{} bytes (as {}{})", slot.bytes, slot.meta.dtype, slot.meta.shape)
    }
}

/// Lists all slots, for an error about a missing one.
pub fn list(slots: &[Slot]) -> String {
    let each = |slot: &Slot| {
        let optional = if slot.direction.takes_input() && !slot.required { ", optional" } else { "" };
        format!("{} ({}{optional}, {})", slot.name, slot.direction.name(), format::bytes(slot.bytes as u64))
    };
    slots.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// Finds the slot that a user names: by its name, or by its address in another notation.
pub fn find<'a>(slots: &'a [Slot], name: &str) -> Result<&'a Slot> {
    let address = match name.strip_prefix("0x").or_else(|| name.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => name.parse::<u32>().ok(),
    };
    let other = address.map(|address| format!("{address:#x}"));
    let found = slots.iter().find(|slot| slot.name == name);
    found.or_else(|| slots.iter().find(|slot| Some(&slot.name) == other.as_ref())).ok_or_else(|| match slots {
        [] => Failure::invalid(format!("no slot '{name}': the program has none")),
        _ => Failure::invalid(format!("no slot '{name}'; the program has {}", list(slots))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        assert_eq!(parse_source("rand:7"), Ok(Source::Rand(7, 0)));
        assert_eq!(parse_source("rand:7:-3"), Ok(Source::Rand(7, -3)));
        assert_eq!(parse_source("wild:7"), Ok(Source::Wild(7)));
        assert_eq!(parse_source("ids:7:100"), Ok(Source::Ids(7, 100)));
        assert_eq!(parse_source("fill:3f800000"), Ok(Source::Fill("3f800000".into())));
        assert_eq!(parse_source("zeros"), Ok(Source::Zeros));
        for file in ["a.npy", "./zeros", "rand", "random:1", "C:\\a.npy"] {
            assert_eq!(parse_source(file), Ok(Source::File(file.into())));
        }
        for wrong in [
            "rand:",
            "rand:x",
            "rand:-1",
            "rand:1:2:3",
            "rand:1:x",
            "ids:1",
            "ids:1:0",
            "ids:1:2147483649",
            "fill:",
            "fill:xy",
            "wild:1:2",
        ] {
            assert!(parse_source(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bindings_need_both_sides() {
        for wrong in ["", "a", "a=", "=b"] {
            assert!(parse_input(wrong).is_err() && parse_output(wrong).is_err(), "{wrong}");
        }
        let input = parse_input("a=x=y.npy").unwrap();
        assert_eq!((input.slot.as_str(), input.text.as_str()), ("a", "x=y.npy"));
    }
}
