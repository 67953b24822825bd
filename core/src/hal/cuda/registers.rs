//! The packed form of PTX. Its registers and labels are numbered in the order in which they appear (`ci/cuda-kernels`), and
//! the form has in place of a number:
//!
//! - `!`: the next new number of its kind,
//! - a digit: one of the newest numbers, 0 is the newest,
//! - a difference with its sign: an older one. It is added to the last number behind the same beginning of a line.
//!
//! Similar code then becomes equal text with any registers, and packs to a third of the size. `core/build.rs` includes this
//! file too, to write the form and to check that it reads back.

/// How many of the newest numbers have a digit: the packer decides.
#[allow(dead_code)]
pub const DIGITS: i64 = 6;

/// The numbers that were passed.
pub struct Numbers {
    /// A hash of the line up to here, without its numbers.
    line: u32,
    /// The newest number of each kind (`%f`, `%rd`, `$L`).
    newest: Vec<(Vec<u8>, i64)>,
    /// The last number behind each beginning of a line. Those with equal hashes share one.
    last: Vec<i64>,
}

impl Numbers {
    const BEGINNINGS: usize = 1 << 12;

    pub fn new() -> Numbers {
        Numbers { line: 0, newest: Vec::new(), last: vec![0; Numbers::BEGINNINGS] }
    }

    /// Passes a text that has no number, or what is before one.
    pub fn pass(&mut self, text: &[u8]) {
        for &byte in text {
            self.line = if byte == b'\n' { 0 } else { (self.line ^ u32::from(byte)).wrapping_mul(0x0100_0193) };
        }
    }

    /// Passes the declaration of a kind's registers, `%f<492>`: the next one is the first.
    pub fn declare(&mut self, kind: &[u8]) {
        *self.newest(kind) = 0;
    }

    /// Returns the newest number of a kind.
    pub fn newest(&mut self, kind: &[u8]) -> &mut i64 {
        let at = self.newest.iter().position(|(known, _)| known == kind).unwrap_or_else(|| {
            self.newest.push((kind.to_vec(), 0));
            self.newest.len() - 1
        });
        &mut self.newest[at].1
    }

    /// Returns the last number behind this beginning of a line.
    pub fn last(&mut self) -> &mut i64 {
        &mut self.last[(self.line >> 16) as usize % Numbers::BEGINNINGS]
    }
}

/// Returns the length of the kind: a percent sign and lower-case letters, or `$L`.
pub fn kind_of(text: &[u8]) -> usize {
    match text {
        [b'%', rest @ ..] => match rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count() {
            0 => 0,
            letters => 1 + letters,
        },
        [b'$', b'L', ..] => 2,
        _ => 0,
    }
}

/// Returns a number and the count of its digits.
pub fn number_of(text: &[u8]) -> (i64, usize) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(number, count), byte| (number.wrapping_mul(10).wrapping_add((byte - b'0').into()), count + 1))
}

/// Restores the numbers of registers and labels.
pub fn absolute(mut text: &[u8]) -> Vec<u8> {
    let (mut to, mut numbers) = (Vec::with_capacity(text.len() * 5 / 4), Numbers::new());
    while !text.is_empty() {
        let kind = kind_of(text);
        let (before, rest) = text.split_at(kind.max(1));
        numbers.pass(before);
        to.extend_from_slice(before);
        text = rest;
        if kind == 0 {
            continue;
        }
        let sign = match text.first() {
            Some(b'<') => {
                numbers.declare(before);
                continue;
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => 0,
        };
        let newest = *numbers.newest(before);
        let (value, digits) = number_of(&text[(sign != 0) as usize..]);
        let number = match (text.first(), sign) {
            (Some(b'!'), _) => {
                *numbers.newest(before) = newest.wrapping_add(1);
                newest.wrapping_add(1)
            }
            (_, 0) if digits == 0 => continue,
            (_, 0) => newest.wrapping_sub(value),
            _ => numbers.last().wrapping_add(sign * value),
        };
        *numbers.last() = number;
        to.extend_from_slice(number.to_string().as_bytes());
        text = &text[if digits == 0 { 1 } else { (sign != 0) as usize + digits }..];
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let text = ".reg .f32 %f<9>;\nadd %f!,%tid.x;\nadd %f!,%f1;\nadd %f+1,%f0;\n@%p! bra $L!;\n.reg .f32 %f<9>;\nadd %f!,%f-1;\n$L0:";
        let whole = ".reg .f32 %f<9>;\nadd %f1,%tid.x;\nadd %f2,%f1;\nadd %f3,%f2;\n@%p1 bra $L1;\n.reg .f32 %f<9>;\nadd %f1,%f1;\n$L1:";
        assert_eq!(String::from_utf8(absolute(text.as_bytes())).unwrap(), whole);
    }

    #[test]
    fn nonsense_ends() {
        let large = "9".repeat(40);
        for text in [
            "%",
            "%f",
            "%f+",
            "%f-",
            "%f!",
            "$",
            "$L",
            "%f<",
            "%f+x",
            "%!",
            "",
            &format!("%f+{large},%f-{large},%f{large},%f!"),
        ] {
            absolute(text.as_bytes());
        }
    }
}
