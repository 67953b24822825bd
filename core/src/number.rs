//! Floats in text: exact both ways, whatever rounding the host process has set, in a tenth of the code that the standard library
//! takes for it.
//!
//! Everything rests on comparing a decimal with a float, as whole numbers; floating point only guesses where to begin.

use crate::hal::cpu::default_environment;
use std::cmp::Ordering;
use std::fmt;

/// A whole number of 768 bits, its lowest 32 first: nothing below needs more than 700.
struct Whole([u32; 24]);

impl Whole {
    /// Multiplies, then adds.
    fn step(&mut self, factor: u32, mut carry: u32) {
        for word in &mut self.0 {
            let product = u64::from(*word) * u64::from(factor) + u64::from(carry);
            (*word, carry) = (product as u32, (product >> 32) as u32);
        }
    }

    /// Multiplies by a power of 2 or 10.
    fn scale(&mut self, base: u32, power: i32) {
        for _ in 0..power / 9 {
            self.step(base.pow(9), 0);
        }
        for _ in 0..power % 9 {
            self.step(base, 0);
        }
    }
}

/// Digits · 10^power, positive. Of digits there are at most `MOST`.
struct Decimal<'a> {
    digits: &'a [u8],
    power: i32,
}

/// Decimals between two neighbouring floats' middle and its neighbours differ within 113 digits; then one that says whether there was
/// more.
const MOST: usize = 120;

impl Decimal<'_> {
    /// Against m · 2^e.
    fn compare(&self, m: u32, e: i32) -> Ordering {
        let (mut own, mut other) = (Whole([0; 24]), Whole([0; 24]));
        self.digits.iter().for_each(|digit| own.step(10, u32::from(digit - b'0')));
        other.step(0, m);
        own.scale(10, self.power);
        own.scale(2, -e);
        other.scale(10, -self.power);
        other.scale(2, e);
        own.0.iter().rev().cmp(other.0.iter().rev())
    }

    /// The bits of the nearest float, to even.
    fn nearest(&self) -> u32 {
        // The first digit's power.
        let high = self.digits.len() as i32 + self.power - 1;
        if self.digits.is_empty() || high < -46 {
            return 0;
        }
        if high > 38 {
            return INFINITY;
        }
        let guess = self.digits.iter().fold(0.0, |value, digit| value * 10.0 + f64::from(digit - b'0'));
        let guess = ((guess * power_of_ten(self.power)) as f32).to_bits().clamp(2, INFINITY - 2);
        // The greatest float that is not above, between `low` and `end`.
        let (mut low, mut end) = (guess - 2, guess + 2);
        let above = |bits| {
            let (m, e) = parts(bits);
            self.compare(m, e) == Ordering::Less
        };
        if above(low) || !above(end) {
            (low, end) = (0, INFINITY);
        }
        while end - low > 1 {
            let middle = low + (end - low) / 2;
            if above(middle) { end = middle } else { low = middle }
        }
        let (m, e) = parts(low);
        match self.compare(2 * m + 1, e - 1) {
            Ordering::Less => low,
            Ordering::Equal => low + (low & 1),
            Ordering::Greater => low + 1,
        }
    }
}

const INFINITY: u32 = 0x7f80_0000;

/// A positive float's bits as m · 2^e; infinity's as 2^128.
fn parts(bits: u32) -> (u32, i32) {
    let exponent = (bits >> 23) as i32;
    if exponent == 0 { (bits, -149) } else { (bits & 0x7f_ffff | 0x80_0000, exponent - 150) }
}

/// About.
fn power_of_ten(power: i32) -> f64 {
    (0..power.unsigned_abs()).fold(1.0, |value, _| if power < 0 { value / 10.0 } else { value * 10.0 })
}

/// A decimal f32, rounded to nearest even; what the standard library's parser takes and nothing else.
pub(crate) fn parse_f32(text: &str) -> Option<f32> {
    // For the guesses: no traps.
    default_environment(|| read(text))
}

fn read(text: &str) -> Option<f32> {
    let (sign, text) = match text.as_bytes() {
        [b'-', rest @ ..] => (1 << 31, rest),
        [b'+', rest @ ..] => (0, rest),
        rest => (0, rest),
    };
    let bits = if text.eq_ignore_ascii_case(b"nan") {
        f32::NAN.to_bits()
    } else if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
        INFINITY
    } else {
        let (mut digits, mut count, mut power) = ([0; MOST], 0, 0i32);
        let (mut any, mut point, mut rest) = (false, false, text.iter());
        loop {
            match rest.next() {
                Some(&digit @ b'0'..=b'9') => {
                    any = true;
                    power = power.saturating_sub(i32::from(point));
                    if count > 0 || digit > b'0' {
                        if let Some(place) = digits.get_mut(count) {
                            *place = digit;
                            count += 1;
                        } else {
                            power = power.saturating_add(1);
                            // The last one only says whether what follows is zero.
                            digits[MOST - 1] |= u8::from(digit > b'0');
                        }
                    }
                }
                Some(b'.') if !point => point = true,
                Some(b'e' | b'E') if any => {
                    power = power.saturating_add(exponent(rest.as_slice())?);
                    break;
                }
                None if any => break,
                _ => return None,
            }
        }
        Decimal { digits: digits.get(..count)?, power }.nearest()
    };
    Some(f32::from_bits(sign | bits))
}

/// A whole number with sign; beyond a million it is as good as that.
fn exponent(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let mut value = 0;
    for digit in digits {
        value = (value * 10 + i32::from(digit.checked_sub(b'0').filter(|&digit| digit < 10)?)).min(1_000_000);
    }
    if digits.is_empty() { None } else { Some(sign * value) }
}

/// An f32 as the shortest decimal that is read as the same, as the standard library's `{:?}` writes it.
pub(crate) struct Shortest(pub f32);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, sign) = (self.0.to_bits() & !(1 << 31), if self.0.is_sign_negative() { "-" } else { "" });
        if bits > INFINITY {
            return f.write_str("NaN");
        }
        if bits == INFINITY {
            return write!(f, "{sign}inf");
        }
        if bits == 0 {
            return write!(f, "{sign}0.0");
        }
        let (number, power) = shortest(bits);
        let text = number.to_string();
        let (first, rest) = text.split_at(1);
        // The first digit's power.
        let high = text.len() as i32 + power - 1;
        match usize::try_from(high) {
            Ok(whole) if high < 16 => match text.split_at_checked(whole + 1) {
                Some((whole, rest)) => write!(f, "{sign}{whole}.{}", if rest.is_empty() { "0" } else { rest }),
                None => write!(f, "{sign}{text:0<0$}.0", whole + 1),
            },
            Err(_) if high >= -4 => write!(f, "{sign}0.{text:0>0$}", power.unsigned_abs() as usize),
            _ if rest.is_empty() => write!(f, "{sign}{first}e{high}"),
            _ => write!(f, "{sign}{first}.{rest}e{high}"),
        }
    }
}

/// Digits and their power of ten: as few as give these bits, and of those the nearest.
fn shortest(bits: u32) -> (u32, i32) {
    let (m, e) = parts(bits);
    let above = |number: u32, power, e| {
        Decimal { digits: number.to_string().as_bytes(), power }.compare(m, e) == Ordering::Greater
    };
    // The power of its first digit.
    let mut high = -46;
    while high < 38 && !above(1, high + 1, e) {
        high += 1;
    }
    // Nine digits, cut off: as many always do.
    let (mut nine, mut end) = (100_000_000, 1_000_000_000);
    while end - nine > 1 {
        let middle = nine + (end - nine) / 2;
        if above(middle, high - 8, e) { end = middle } else { nine = middle }
    }
    for count in 1..=9 {
        let (low, power) = (nine / 10u32.pow(9 - count), high + 1 - count as i32);
        // The one below or the one above, the nearer first: its half is above, or twice it twice.
        let first = low + u32::from(!above(2 * low + 1, power, e + 1));
        for mut number in [first, 2 * low + 1 - first] {
            if (Decimal { digits: number.to_string().as_bytes(), power }).nearest() == bits {
                let mut power = power;
                while number % 10 == 0 {
                    (number, power) = (number / 10, power + 1);
                }
                return (number, power);
            }
        }
    }
    (nine, high - 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees(text: &str) {
        let (own, std) = (parse_f32(text).map(f32::to_bits), text.parse::<f32>().ok().map(f32::to_bits));
        assert_eq!(own, std, "{text}");
    }

    fn written(bits: u32) {
        let value = f32::from_bits(bits);
        let text = Shortest(value).to_string();
        assert_eq!(text, format!("{value:?}"));
        assert!(value.is_nan() || parse_f32(&text).map(f32::to_bits) == Some(bits), "{text}");
    }

    #[test]
    fn what_is_no_number() {
        let texts = "|+|-|.|+.|e5|.e5|1e|1e+|1e+-2|1.2.3|1 | 1|0x10|1_000|++1|infinit|nane|1f|１|1e5.0|--1|-.e1|1e 5";
        texts.split('|').for_each(agrees);
    }

    #[test]
    fn what_is_special() {
        let texts = "0 -0 +0 0e99999999999 1e99999999999 1e-99999999999 -1e40 inf -INF +Infinity nan NaN -nan 1. .5 +.5e1 00012.500 \
            3.4028235e38 3.4028235677973366e38 3.402823567797337e38 3.4028236e38 340282356779733661637539395458142568447.9 \
            340282356779733661637539395458142568448 1e-45 7.006492321624085e-46 7.006492321624086e-46 7e-46 1e-46 \
            1.17549435e-38 1.1754942e-38 16777217 16777219 16777217.0000000000000000000000000001 33554434.999999999";
        texts.split_whitespace().for_each(agrees);
        // Longer than anything matters: a middle, and what is next to it.
        let middle = format!("{}.{:0150}", 16_777_217, 0);
        agrees(&middle);
        agrees(&format!("{middle}1"));
        agrees(&format!("{}{}", "0".repeat(300), "9".repeat(38)));
        agrees(&format!("0.{}{}e310", "0".repeat(310), "123456789".repeat(40)));
    }

    #[test]
    fn every_exponent_is_written_as_std_writes_it() {
        for exponent in 0..=255u32 {
            for fraction in [0, 1, 2, 0x40_0000, 0x2a_aaaa, 0x7f_fffe, 0x7f_ffff] {
                written(exponent << 23 | fraction);
                written(1 << 31 | exponent << 23 | fraction);
            }
        }
    }

    proptest! {
        #[test]
        fn any_float_is_written_as_std_writes_it(bits: u32) {
            written(bits);
        }

        #[test]
        fn any_decimal_is_read_as_std_reads_it(
            whole in "[0-9]{0,30}", fraction in "(\\.[0-9]{0,30})?", power in -70i32..60, has_power: bool,
        ) {
            agrees(&if has_power { format!("{whole}{fraction}e{power}") } else { format!("{whole}{fraction}") });
        }

        #[test]
        fn what_is_near_a_middle_is_read_as_std_reads_it(bits in 0u32..INFINITY, off in -2i32..3) {
            // Exactly, as f64 has both.
            let low = f64::from(f32::from_bits(bits));
            let high = if bits + 1 == INFINITY { 2f64.powi(128) } else { f64::from(f32::from_bits(bits + 1)) };
            let middle = f64::from_bits(((low + high) / 2.0).to_bits().saturating_add_signed(i64::from(off)));
            agrees(&format!("{middle:e}"));
            agrees(&format!("{middle}"));
        }
    }
}
