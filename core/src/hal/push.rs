//! Push constants from numbers: packs the callers' numbers as the types that a kernel's module declares.

use crate::contract::f16_from_f32;
use crate::error::{Result, fail};
use std::fmt;

/// A number among a kernel's push constants. A vector, matrix, array or structure is several numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushNumber {
    /// Its name in the module, as `n`, `origin.x`, `flags[2]`; empty if the module has no names.
    pub name: String,
    /// Its offset in bytes.
    pub offset: u32,
    /// Its type.
    pub kind: NumberKind,
}

/// The type of a number. Each variant holds the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A signed integer of 1, 2, 4 or 8 bytes.
    Int(u8),
    /// An unsigned integer of 1, 2, 4 or 8 bytes.
    Uint(u8),
    /// An integer whose sign the module doesn't declare.
    Word(u8),
    /// A float of 2, 4 or 8 bytes.
    Float(u8),
}

impl NumberKind {
    /// Returns the bytes of a number.
    pub const fn bytes(self) -> usize {
        match self {
            NumberKind::Int(bytes) | NumberKind::Uint(bytes) | NumberKind::Word(bytes) | NumberKind::Float(bytes) => {
                bytes as usize
            }
        }
    }

    /// Returns the least and the greatest integer of the type.
    const fn range(self) -> (i128, i128) {
        let half = 1 << (8 * self.bytes() - 1);
        match self {
            NumberKind::Int(_) => (-half, half - 1),
            NumberKind::Uint(_) => (0, 2 * half - 1),
            NumberKind::Word(_) | NumberKind::Float(_) => (-half, 2 * half - 1),
        }
    }
}

impl fmt::Display for NumberKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self {
            NumberKind::Int(_) => 'i',
            NumberKind::Uint(_) => 'u',
            NumberKind::Word(_) => return write!(f, "an integer of {} bits", 8 * self.bytes()),
            NumberKind::Float(_) => 'f',
        };
        write!(f, "{letter}{}", 8 * self.bytes())
    }
}

/// A number from the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Integer(i128),
    /// Any number. An integral value also fits an integer type.
    Float(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(number) => number.fmt(f),
            Number::Float(number) => number.fmt(f),
        }
    }
}

/// Formats a push constant for an error: `1 ('scale')`, or `1` without a name.
struct Called<'a>(usize, &'a PushNumber);

impl fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Called(index, PushNumber { name, .. }) = self;
        if name.is_empty() { write!(f, "{index}") } else { write!(f, "{index} ('{name}')") }
    }
}

/// Formats all push constants for an error: `n u32, scale f32`.
struct Listed<'a>(&'a [PushNumber]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, number) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let space = if number.name.is_empty() { "" } else { " " };
            write!(f, "{comma}{}{space}{}", number.name, number.kind)?;
        }
        Ok(())
    }
}

/// Packs one number for each push constant, in the module's order, and returns the block of bytes. Gaps are zero.
/// `invalid_argument` gives both counts if there are too few or too many numbers. It names a number that does not fit
/// its type, or has a fraction where the type is an integer.
pub fn pack(takes: &[PushNumber], bytes: usize, given: &[Number]) -> Result<Vec<u8>> {
    check_typed(takes, bytes)?;
    if given.len() != takes.len() {
        let (count, most) = (given.len(), takes.len());
        fail!(InvalidArgument, "the kernel takes {most} push constants ({}); got {count} numbers", Listed(takes));
    }
    let mut block = vec![0; bytes];
    for (i, (number, given)) in takes.iter().zip(given).enumerate() {
        put(&mut block, i, number, *given)?;
    }
    Ok(block)
}

/// Packs push constants by name, as [`pack`] does. `invalid_argument` if a name is missing, unknown or given twice.
pub fn pack_named(takes: &[PushNumber], bytes: usize, given: &[(&str, Number)]) -> Result<Vec<u8>> {
    check_typed(takes, bytes)?;
    for (i, (name, _)) in given.iter().enumerate() {
        if name.is_empty() || !takes.iter().any(|number| number.name == *name) {
            fail!(InvalidArgument, "the kernel has no push constant '{name}': it takes {}", Listed(takes));
        }
        if given[..i].iter().any(|(other, _)| other == name) {
            fail!(InvalidArgument, "the push constant '{name}' is given twice");
        }
    }
    let mut block = vec![0; bytes];
    for (i, number) in takes.iter().enumerate() {
        let Some((_, given)) = given.iter().find(|(name, _)| *name == number.name) else {
            fail!(
                InvalidArgument,
                "the push constant {} is missing: the kernel takes {}",
                Called(i, number),
                Listed(takes)
            );
        };
        put(&mut block, i, number, *given)?;
    }
    Ok(block)
}

fn check_typed(takes: &[PushNumber], bytes: usize) -> Result<()> {
    if takes.is_empty() && bytes > 0 {
        fail!(InvalidArgument, "the module does not declare the types of its push constants: pass all {bytes} bytes");
    }
    Ok(())
}

/// Writes a number to its place in the block.
fn put(block: &mut [u8], index: usize, takes: &PushNumber, given: Number) -> Result<()> {
    let (kind, (least, most)) = (takes.kind, takes.kind.range());
    let bytes = if let NumberKind::Float(bytes) = kind {
        let exact = match given {
            Number::Integer(number) => number as f64,
            Number::Float(number) => number,
        };
        let narrow = exact as f32;
        let (bits, finite) = match bytes {
            2 => {
                let half = f16_from_f32(narrow);
                (half.into(), half & 0x7c00 != 0x7c00)
            }
            4 => (narrow.to_bits().into(), narrow.is_finite()),
            _ => (exact.to_bits(), true),
        };
        if exact.is_finite() && !finite {
            fail!(InvalidArgument, "push constant {} is {kind}, and {given} does not fit in it", Called(index, takes));
        }
        bits
    } else {
        // The integer types end below 2^64, so a float beyond i128's range saturates and stays out of range.
        let whole = match given {
            Number::Integer(number) => Some(number),
            Number::Float(number) if number.fract() == 0.0 => Some(number as i128),
            Number::Float(_) => None,
        };
        match whole.filter(|number| (least..=most).contains(number)) {
            Some(number) => number as u64,
            None => fail!(
                InvalidArgument,
                "push constant {} is {kind}, a whole number from {least} to {most}; got {given}",
                Called(index, takes)
            ),
        }
    };
    let (at, size) = (takes.offset as usize, kind.bytes());
    match block.get_mut(at..at + size) {
        // The low bytes hold a narrower number. Their place depends on this machine's byte order.
        Some(to) if cfg!(target_endian = "little") => to.copy_from_slice(&bytes.to_ne_bytes()[..size]),
        Some(to) => to.copy_from_slice(&bytes.to_ne_bytes()[8 - size..]),
        None => fail!(Internal, "push constant {} lies outside of {} bytes", Called(index, takes), block.len()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, offset: u32, kind: NumberKind) -> PushNumber {
        PushNumber { name: name.into(), offset, kind }
    }

    #[test]
    fn numbers_take_the_type_of_their_place() {
        use NumberKind::{Float, Int, Uint, Word};
        let takes = [
            number("a", 0, Uint(4)),
            number("b", 4, Float(4)),
            number("c", 8, Int(8)),
            number("d", 16, Float(2)),
            number("e", 18, Int(1)),
            number("f", 24, Float(8)),
            number("", 32, Word(4)),
        ];
        let float = Number::Float;
        let given =
            [float(3.0), Number::Integer(2), Number::Integer(-1), float(0.5), float(-2.0), float(0.1), float(-1.0)];
        let block = pack(&takes, 36, &given).unwrap();
        let mut expected = Vec::new();
        expected.extend(3u32.to_ne_bytes());
        expected.extend(2f32.to_ne_bytes());
        expected.extend((-1i64).to_ne_bytes());
        expected.extend(0x3800u16.to_ne_bytes());
        expected.extend((-2i8).to_ne_bytes());
        expected.extend([0; 5]);
        expected.extend(0.1f64.to_ne_bytes());
        expected.extend((-1i32).to_ne_bytes());
        assert_eq!(block, expected);
        assert!(pack(&[], 0, &[]).unwrap().is_empty());
        let named = [("b", float(2.0)), ("a", Number::Integer(3))];
        assert_eq!(pack_named(&takes[..2], 8, &named).unwrap(), expected[..8]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_name_the_type_and_the_number() {
        use NumberKind::{Float, Int, Uint};
        let takes =
            [number("n", 0, Uint(4)), number("scale", 4, Float(4)), number("", 8, Int(1)), number("h", 10, Float(2))];
        let base = [Number::Integer(1); 4];
        let says = |at: usize, given: Number, words: &str| {
            let mut numbers = base;
            numbers[at] = given;
            let error = pack(&takes, 12, &numbers).unwrap_err();
            assert!(error.message().contains(words), "{error}, expected: {words}");
        };
        says(0, Number::Float(0.5), "push constant 0 ('n') is u32, a whole number from 0 to 4294967295; got 0.5");
        says(0, Number::Integer(-1), "got -1");
        says(0, Number::Integer(1 << 32), "got 4294967296");
        for float in [f64::NAN, f64::INFINITY, 1e300, -1.0] {
            says(0, Number::Float(float), "push constant 0");
        }
        says(1, Number::Float(1e300), "push constant 1 ('scale') is f32");
        says(2, Number::Integer(128), "push constant 2 is i8, a whole number from -128 to 127; got 128");
        says(3, Number::Integer(65520), "push constant 3 ('h') is f16");
        let (nan, infinity) = (Number::Float(f64::NAN), Number::Float(f64::INFINITY));
        assert!(pack(&takes, 12, &[base[0], nan, base[0], infinity]).is_ok());
        let error = pack(&takes, 12, &base[1..]).unwrap_err();
        assert!(
            error.message().contains("takes 4 push constants (n u32, scale f32, i8, h f16); got 3 numbers"),
            "{error}"
        );
        assert!(pack(&[], 8, &base).unwrap_err().message().contains("pass all 8 bytes"));
        let named = |given: &[(&str, Number)]| pack_named(&takes[..2], 8, given).unwrap_err().message().to_string();
        assert!(named(&[("n", base[0])]).contains("push constant 1 ('scale') is missing"));
        assert!(named(&[("m", base[0])]).contains("no push constant 'm': it takes n u32, scale f32"));
        assert!(named(&[("n", base[0]), ("n", base[0])]).contains("'n' is given twice"));
        assert!(named(&[("", base[0])]).contains("no push constant ''"));
    }
}
