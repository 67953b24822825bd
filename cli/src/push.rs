//! Push constants of `adead dispatch`.

use crate::failure::{Failure, Result};
use adead::gpu::{Number, NumberKind};
use adead::spirv::EntryPoint;
use std::str::FromStr;

/// A push constant as given. Its bytes and alignment are used for kernels that don't declare types. The bytes are in this
/// machine's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The alignment in bytes.
    pub align: usize,
    /// The number, unless it was given as bytes.
    number: Option<Number>,
    /// The type, if one was given.
    kind: Option<NumberKind>,
    text: String,
}

/// Parses one value of `--push`.
pub fn parse_pushed(text: &str) -> Result<Pushed, String> {
    fn whole<T: FromStr + Into<i128>>(word: &str, kind: &str) -> Result<i128, String> {
        word.parse::<T>().map(T::into).map_err(|_| format!("'{word}' is not a valid {kind}"))
    }
    fn float<T: FromStr + Into<f64>>(word: &str, kind: &str) -> Result<f64, String> {
        word.parse::<T>().map(T::into).map_err(|_| format!("'{word}' is not a valid {kind}"))
    }
    use Number::{Float, Integer};
    let (number, kind) = match text.split_once(':') {
        Some(("u32", word)) => (Integer(whole::<u32>(word, "u32")?), Some(NumberKind::Uint(4))),
        Some(("i32", word)) => (Integer(whole::<i32>(word, "i32")?), Some(NumberKind::Int(4))),
        Some(("f32", word)) => (Float(float::<f32>(word, "f32")?), Some(NumberKind::Float(4))),
        Some(("u64", word)) => (Integer(whole::<u64>(word, "u64")?), Some(NumberKind::Uint(8))),
        Some(("i64", word)) => (Integer(whole::<i64>(word, "i64")?), Some(NumberKind::Int(8))),
        Some(("f64", word)) => (Float(float::<f64>(word, "f64")?), Some(NumberKind::Float(8))),
        Some(("hex", word)) => {
            let digits = word.len().is_multiple_of(2) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !digits || word.is_empty() {
                return Err(format!("'{word}' is not an even number of hexadecimal digits"));
            }
            let byte = |i: usize| u8::from_str_radix(&word[i..i + 2], 16).unwrap_or_default();
            let bytes = (0..word.len()).step_by(2).map(byte).collect();
            return Ok(Pushed { bytes, align: 1, number: None, kind: None, text: text.into() });
        }
        Some(_) => return Err("the type must be u32, i32, f32, u64, i64, f64 or hex".into()),
        None => match (text, text.parse::<i128>(), text.parse::<f64>()) {
            ("true", ..) => (Integer(1), None),
            ("false", ..) => (Integer(0), None),
            (_, Ok(number), _) => (Integer(number), None),
            (_, _, Ok(number)) => (Float(number), None),
            _ => return Err(format!("'{text}' is not a number")),
        },
    };
    // The bytes for a kernel that does not declare the type: 32 bits unless the value has a type.
    let bytes = match (kind, number) {
        (Some(NumberKind::Float(8)), Float(number)) => number.to_ne_bytes().to_vec(),
        (_, Float(number)) => (number as f32).to_ne_bytes().to_vec(),
        (Some(kind), Integer(number)) if kind.bytes() == 8 => (number as u64).to_ne_bytes().to_vec(),
        (_, Integer(number)) => (number as u32).to_ne_bytes().to_vec(),
    };
    Ok(Pushed { align: bytes.len(), bytes, number: Some(number), kind, text: text.into() })
}

/// Packs the given values into an entry point's push constants: one number for each, of the type that the kernel declares. Bytes,
/// and numbers for a kernel without declared types, are laid out one after the other.
pub fn pack(values: &[Pushed], entry: &EntryPoint) -> Result<Vec<u8>> {
    let Some(push) = &entry.push_constants else {
        return match values {
            [] => Ok(Vec::new()),
            _ => Err(Failure::invalid(format!("'{}' takes no push constants; {} are given", entry.name, values.len()))),
        };
    };
    let numbers: Option<Vec<Number>> = values.iter().map(|value| value.number).collect();
    let Some(numbers) = numbers.filter(|_| !push.numbers.is_empty()) else {
        if let Some(wide) = values.iter().find(|value| !value.fits_unasked()) {
            let text = format!("push constant '{}' does not fit in 32 bits: give it a type, such as u64:1", wide.text);
            return Err(Failure::invalid(text));
        }
        return Ok(block(values));
    };
    for (i, (value, takes)) in values.iter().zip(&push.numbers).enumerate() {
        let is_float = |kind| matches!(kind, NumberKind::Float(_));
        let other = |kind: &NumberKind| kind.bytes() != takes.kind.bytes() || is_float(*kind) != is_float(takes.kind);
        if value.kind.as_ref().is_some_and(other) {
            let (text, kind, name) = (&value.text, takes.kind, &takes.name);
            return Err(Failure::invalid(format!("push constant {i} ('{name}') is {kind}; got {text}")));
        }
    }
    Ok(push.pack(&numbers)?)
}

impl Pushed {
    /// Whether a number without a type fits in 32 bits.
    fn fits_unasked(&self) -> bool {
        match (self.number, self.kind) {
            (Some(Number::Integer(number)), None) => (i32::MIN.into()..=u32::MAX.into()).contains(&number),
            _ => true,
        }
    }
}

/// Lays out push constants as a block, each value at a multiple of its size, as in GLSL.
pub fn block(values: &[Pushed]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        bytes.resize(bytes.len().next_multiple_of(value.align), 0);
        bytes.extend(&value.bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use adead::spirv::Module;

    fn pushed(text: &str) -> Pushed {
        parse_pushed(text).unwrap()
    }

    #[test]
    fn push_constants_of_unknown_types_are_laid_out_as_in_glsl() {
        for (plain, typed) in [("7", "u32:7"), ("-1", "i32:-1"), ("0.5", "f32:0.5"), ("true", "u32:1")] {
            assert_eq!(pushed(plain).bytes, pushed(typed).bytes);
        }
        let mut expected = vec![1, 0xff, 0, 0];
        expected.extend(2u32.to_ne_bytes());
        expected.extend(3u64.to_ne_bytes());
        assert_eq!(block(&[pushed("hex:01ff"), pushed("2"), pushed("u64:3")]), expected);
        assert!(block(&[]).is_empty());
        for wrong in ["", "x", "u32:-1", "i32:2147483648", "u8:1", "hex:", "hex:1", "hex:xy", "f32:", "f32:x"] {
            assert!(parse_pushed(wrong).is_err(), "{wrong}");
        }
        assert!(!pushed("4294967296").fits_unasked() && pushed("u64:4294967296").fits_unasked());
    }

    #[test]
    fn push_constants_are_of_the_types_that_a_kernel_declares() {
        let code = include_bytes!("../../core/tests/data/constants.spv");
        let module = Module::parse(code).unwrap();
        // vec2 at 16, two columns of three f32 at 32 and 48, three i32 at 64.
        let entry = &module.entry_points()[0];
        let given: Vec<Pushed> = ["1", "2.5", "3", "4", "5", "6", "7", "f32:8", "9", "-1", "i32:2"].map(pushed).into();
        let packed = pack(&given, entry).unwrap();
        let word = |at: usize| u32::from_ne_bytes(packed[at..at + 4].try_into().unwrap());
        assert_eq!(
            (packed.len(), word(16), word(20), word(48)),
            (76, 1f32.to_bits(), 2.5f32.to_bits(), 6f32.to_bits())
        );
        assert_eq!((word(64), word(68), word(72)), (9, u32::MAX, 2));
        let says = |at: usize, text: &str, words: &str| {
            let mut given = given.clone();
            given[at] = pushed(text);
            match pack(&given, entry) {
                Err(Failure::Error(error)) => assert!(error.message().contains(words), "{error}"),
                other => panic!("{text}: {other:?}"),
            }
        };
        says(8, "0.5", "push constant 8 ('flags[0]') is i32");
        says(8, "4294967295", "a whole number from -2147483648 to 2147483647; got 4294967295");
        says(8, "f32:1", "push constant 8 ('flags[0]') is i32; got f32:1");
        says(0, "f64:1", "push constant 0 ('origin.x') is f32; got f64:1");
        assert!(pack(&given[1..], entry).is_err());
        // The caller lays out values given as bytes.
        assert_eq!(pack(&[pushed("hex:0102")], entry).unwrap(), [1, 2]);
        let none = Module::parse(include_bytes!("../../examples/kernels/matmul.spv")).unwrap();
        assert!(pack(&[], &none.entry_points()[0]).unwrap().is_empty());
        assert!(pack(&given, &none.entry_points()[0]).is_err());
    }
}
