//! Decimal numbers as text. The standard library reads them too, with tables of 15 KB. These few lines divide large integers instead,
//! as one does by hand, and are slower.

use std::cmp::Ordering;
use std::num::IntErrorKind;

/// A natural number: its digits in base 2³², the lowest first, without zeros behind the last.
struct Natural(Vec<u32>);

impl Natural {
    /// Makes x·factor + addend.
    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift_left(&mut self, bits: u32) {
        (0..bits / 16).for_each(|_| self.multiply_add(1 << 16, 0));
        self.multiply_add(1 << (bits % 16), 0);
    }

    fn compare(&self, other: &Natural) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not greater.
    fn subtract(&mut self, other: &Natural) {
        let mut borrow = 0;
        for (i, digit) in self.0.iter_mut().enumerate() {
            let rest = i64::from(*digit) - i64::from(other.0.get(i).copied().unwrap_or(0)) + borrow;
            (*digit, borrow) = (rest as u32, rest >> 32);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn bits(&self) -> i32 {
        self.0.last().map_or(0, |last| 32 * self.0.len() as i32 - last.leading_zeros() as i32)
    }
}

/// Decimal digits that can matter: no number halfway between two f64 has more.
const MOST_DIGITS: usize = 800;

/// Parses a decimal f32, and rounds once, to nearest even.
pub(crate) fn parse_f32(text: &str) -> Option<f32> {
    parse(text, 24, -149, 0xff).map(|bits| f32::from_bits(bits as u32 | u32::from(text.starts_with('-')) << 31))
}

/// Parses a decimal f64, and rounds once, to nearest even.
#[cfg(feature = "text")]
pub(crate) fn parse_f64(text: &str) -> Option<f64> {
    parse(text, 53, -1074, 0x7ff).map(|bits| f64::from_bits(bits | u64::from(text.starts_with('-')) << 63))
}

/// Parses a number and returns the bits of its magnitude, of a format with so many bits of precision, whose least number is 2^least and
/// whose infinity has this exponent.
fn parse(text: &str, precision: u32, least: i32, most: u64) -> Option<u64> {
    let infinity = most << (precision - 1);
    let text = text.strip_prefix('-').or(text.strip_prefix('+')).unwrap_or(text);
    let is = |name: &str| text.eq_ignore_ascii_case(name);
    if is("inf") || is("infinity") || is("nan") {
        return Some(infinity | u64::from(is("nan")) << (precision - 2));
    }
    let (number, exponent) = text.split_once('e').or(text.split_once('E')).unwrap_or((text, "0"));
    let mut places = match exponent.parse::<i32>() {
        Ok(places) => places,
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => i32::MAX,
        Err(error) if *error.kind() == IntErrorKind::NegOverflow => i32::MIN,
        Err(_) => return None,
    };
    let (mut above, mut digits, mut any, mut behind) = (Natural(Vec::new()), 0, false, false);
    for byte in number.bytes() {
        match byte {
            b'.' if !behind => {
                behind = true;
                continue;
            }
            b'0'..=b'9' => any = true,
            _ => return None,
        }
        if digits < MOST_DIGITS {
            above.multiply_add(10, u32::from(byte - b'0'));
            digits += usize::from(!above.0.is_empty());
            places = places.saturating_sub(i32::from(behind));
        } else {
            // What follows can only say that the number is greater than one halfway, whose last digits are zeros here.
            above.0[0] |= u32::from(byte != b'0');
            places = places.saturating_add(i32::from(!behind));
        }
    }
    if !any {
        return None;
    }
    // Far outside of f64, before the integers become as long as the exponent.
    match places.saturating_add(digits as i32) {
        _ if above.0.is_empty() => return Some(0),
        400.. => return Some(infinity),
        ..-400 => return Some(0),
        _ => {}
    }
    let mut below = Natural(vec![1]);
    let tens = if places < 0 { &mut below } else { &mut above };
    (0..places.unsigned_abs()).for_each(|_| tens.multiply_add(10, 0));
    // above / below in units of 2^unit has as many bits as the format, or one more, but fewer below the normal numbers.
    let mut unit = (above.bits() - below.bits() - precision as i32).max(least);
    if unit > 0 {
        below.shift_left(unit as u32)
    } else {
        above.shift_left(unit.unsigned_abs())
    }
    below.shift_left(precision);
    let mut quotient = 0u64;
    for _ in 0..=precision {
        quotient <<= 1;
        if above.compare(&below) != Ordering::Less {
            above.subtract(&below);
            quotient |= 1;
        }
        above.multiply_add(2, 0);
    }
    let mut rest = above.compare(&below);
    if quotient >> precision == 1 {
        // One bit too many: the last one is the half, and what is left only breaks the tie.
        rest = match (quotient & 1, above.0.is_empty()) {
            (0, _) => Ordering::Less,
            (_, true) => Ordering::Equal,
            _ => Ordering::Greater,
        };
        quotient >>= 1;
        unit += 1;
    }
    // Rounded up, a number of ones only becomes the next power of two by itself.
    let up = rest == Ordering::Greater || rest == Ordering::Equal && quotient & 1 == 1;
    let exponent = ((unit - least) as u64) << (precision - 1);
    Some((exponent + quotient + u64::from(up)).min(infinity))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the standard library.
    fn check(text: &str) {
        let (own, whole) = (parse_f32(text).map(f32::to_bits), text.parse().ok().map(f32::to_bits));
        assert_eq!(own, whole, "{text}");
        let (own, whole) = (parse_f64(text).map(f64::to_bits), text.parse().ok().map(f64::to_bits));
        assert_eq!(own, whole, "{text}");
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let known = [
            "0",
            "-0",
            "+1",
            ".5",
            "5.",
            "1e10",
            "1E-10",
            "16777217",
            "0.044715",
            "-3.4028e5",
            "inf",
            "-Infinity",
            "NaN",
            "1e0000",
            "1e+5",
            "1e99999999999",
            "-1e-99999999999",
            "0e99999999999",
        ];
        known.iter().for_each(|text| check(text));
        for text in ["", "-", ".", "e5", "1e", "1.2.3", "1x", "--1", "1e1.5", "0x10", "1_0", "in", "nan0", "1e+-1"] {
            assert_eq!(text.parse::<f64>().ok(), None);
            assert_eq!((parse_f32(text), parse_f64(text)), (None, None), "{text}");
        }
        // Around the greatest, the least and the least normal numbers, and halves between neighbours.
        for text in [
            "3.4028235677973366e38",
            "3.4028235677973365e38",
            "1.7976931348623159e308",
            "1.7976931348623158e308",
            "1e39",
            "1e309",
            "-1e400",
        ] {
            check(text);
        }
        let halves = |bits: u32| (f64::from(f32::from_bits(bits)) + f64::from(f32::from_bits(bits + 1))) / 2.0;
        for bits in [0, 1, 2, 0x7f_fffe, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x3f80_0001, 0x4b7f_ffff, 0x4b80_0000] {
            let text = format!("{:.1074}", halves(bits));
            check(&text);
            check(&format!("{text}{}1", "0".repeat(900)));
        }
        let mut state = 7u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (x, y) = (f64::from_bits(state), f32::from_bits((state >> 32) as u32));
            if x.is_finite() && y.is_finite() {
                check(&format!("{x:e}"));
                check(&format!("{y:e}"));
                check(&format!("{}e{}", state >> 20, (state % 700) as i32 - 350));
            }
        }
    }

    #[test]
    fn long_numbers_take_little_time() {
        assert_eq!(parse_f64(&"9".repeat(1 << 20)), Some(f64::INFINITY));
        assert_eq!(parse_f64(&format!("0.{}1", "0".repeat(1 << 20))), Some(0.0));
        assert_eq!(parse_f32(&format!("{}e-{}", "1".repeat(1 << 16), (1 << 16) - 1)), Some(1.111_111_2));
        assert_eq!(parse_f32("1e2000000000"), Some(f32::INFINITY));
        assert_eq!(parse_f32("1e-2000000000"), Some(0.0));
    }
}
