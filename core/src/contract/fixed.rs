//! Products of fixed-point numbers. Each line of an operand has one power of two as its scale. The sum of the products
//! is an exact integer, which is rounded once.

use super::{NAN, power_of_two};
use crate::error::{Error, Result, Status};
use std::str::FromStr;

/// How a matrix product is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Precision {
    /// In chains of fused multiply-adds of f32.
    #[default]
    F32 = 0,
    /// In exact integers, of operands cut to 24 bits.
    Fixed24 = 1,
    /// In exact integers, of operands cut to 16 bits.
    Fixed16 = 2,
}

impl Precision {
    /// Every precision, in numeric order.
    pub const ALL: [Precision; 3] = [Precision::F32, Precision::Fixed24, Precision::Fixed16];

    /// Returns the name that every language uses, such as `fixed24`.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Fixed24 => "fixed24",
            Precision::Fixed16 => "fixed16",
        }
    }

    /// Returns the number of 8-bit digits of a rounded operand; 0 for `F32`, which rounds none.
    pub const fn digits(self) -> u32 {
        match self {
            Precision::F32 => 0,
            Precision::Fixed24 => 3,
            Precision::Fixed16 => 2,
        }
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(name: &str) -> Result<Precision> {
        let known = Precision::ALL.into_iter().find(|precision| precision.name() == name);
        known.ok_or_else(|| {
            let names = Precision::ALL.map(Precision::name).join(", ");
            Error::new(Status::InvalidArgument, format!("precision is '{name}'; it must be one of {names}"))
        })
    }
}

/// Returns the scale of a line, as the exponent of a power of two, from the largest `bits & 0x7fffffff` in the line. It
/// is the largest scale by which that value, after rounding, is at most 8355711 (fixed24) or 32639 (fixed16). Returns 0
/// for a line of zeros, and `None` for a line that is not finite.
pub fn fixed_scale(largest: u32, precision: Precision) -> Option<i32> {
    if largest >= 0x7f80_0000 {
        return None;
    }
    if largest == 0 {
        return Some(0);
    }
    // With a significand of 24 bits, the value is m·2^(e − 150).
    let zeros = largest.leading_zeros().saturating_sub(8) as i32;
    let (m, e) = match largest >> 23 {
        0 => (largest << zeros, 1 - zeros),
        field => (largest & 0x7f_ffff | 0x80_0000, field as i32),
    };
    // m·2⁻¹ must round to at most 0x7f7f7f, or m·2⁻⁹ to at most 0x7f7f. Both limits are odd, so a tie above them rounds
    // up.
    let (bits, most) = if precision == Precision::Fixed16 { (15, 0xfe_feff) } else { (23, 0xfe_fefe) };
    Some(bits + 126 - e - i32::from(m > most))
}

/// The scale of the values in attention's second product. Their rows have been cut with their own scales, which are in the weights.
pub const fn value_scale(precision: Precision) -> i32 {
    if matches!(precision, Precision::Fixed16) { 12 } else { 20 }
}

/// Returns the scale by which attention cuts a row of values, from the largest `bits & 0x7fffffff` in the row, and the factor of the
/// key's weights. A row below 2⁻¹²⁴ counts as zeros, so that scale and factor stay within binary32. Returns no scale for such a row
/// and for one that is not finite: its integers are 0.
pub fn value_factor(largest: u32, precision: Precision) -> (Option<i32>, f32) {
    match fixed_scale(largest, precision) {
        None => (None, NAN),
        Some(_) if largest < 0x0180_0000 => (None, 0.0),
        Some(scale) => (Some(scale), power_of_two(value_scale(precision) - scale)),
    }
}

/// Returns the sum of attention's weights by values, which are given by key, for one column. `factors` has each key's scale and factor.
pub fn fixed_weighted(
    precision: Precision,
    weights: &[f32],
    factors: &[(Option<i32>, f32)],
    value: impl Fn(usize) -> f32,
) -> f32 {
    let weight = |j: usize| weights[j] * factors[j].1;
    let largest = (0..weights.len()).map(|j| weight(j).to_bits() & 0x7fff_ffff).max().unwrap_or(0);
    let Some(s) = fixed_scale(largest, precision) else { return NAN };
    let product =
        |j: usize| factors[j].0.map_or(0, |scale| fixed_cut(weight(j), s) as i128 * fixed_cut(value(j), scale) as i128);
    fixed_round((0..weights.len()).map(product).sum(), -s - value_scale(precision))
}

/// Rounds x·2^scale to an integer, ties to even. `x` must be finite, and `scale` that of its line.
pub fn fixed_cut(x: f32, scale: i32) -> i32 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    let (m, e) = match magnitude >> 23 {
        0 => (magnitude, 1),
        field => (magnitude & 0x7f_ffff | 0x80_0000, field as i32),
    };
    let drop = 150 - e - scale;
    let q = match drop {
        26.. => 0,
        1.. => {
            let (kept, rest, half) = (m >> drop, m & ((1 << drop) - 1), 1 << (drop - 1));
            kept + u32::from(rest > half || rest == half && kept & 1 == 1)
        }
        _ => m << -drop,
    } as i32;
    if x.to_bits() >> 31 == 1 { -q } else { q }
}

/// Returns total·2^exponent, rounded to 24 bits, and again if the result is subnormal, both with ties to even. A zero
/// is +0.
pub fn fixed_round(total: i128, exponent: i32) -> f32 {
    let magnitude = total.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    let to_even = |n: u128, drop: u32| {
        let (kept, rest, half) = (n >> drop, n & ((1 << drop) - 1), 1u128 << (drop - 1));
        kept + u128::from(rest > half || rest == half && kept & 1 == 1)
    };
    let drop = (128 - magnitude.leading_zeros()).saturating_sub(24);
    let r = if drop > 0 { to_even(magnitude, drop) } else { magnitude };
    let e = exponent + drop as i32;
    // The result is r·2^e. If r has 25 bits, its last bit is 0.
    let top = 127 - r.leading_zeros() as i32;
    let bits = if top + e > 127 {
        0x7f80_0000
    } else if top + e >= -126 {
        let m = if top > 23 { r >> (top - 23) } else { r << (23 - top) } as u32;
        m + (((top + e + 126) as u32) << 23)
    } else {
        match -149 - e {
            26.. => 0,
            drop @ 1.. => to_even(r, drop as u32) as u32,
            shift => (r << -shift) as u32,
        }
    };
    f32::from_bits(bits | if total < 0 && bits > 0 { 0x8000_0000 } else { 0 })
}

/// Returns the sum of `k` products of elements given by index. NaN if a line is not finite. A zero is +0.
pub fn fixed_dot(precision: Precision, k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f32 {
    let scale = |line: &dyn Fn(usize) -> f32| {
        fixed_scale((0..k).map(|p| line(p).to_bits() & 0x7fff_ffff).max().unwrap_or(0), precision)
    };
    let (Some(s), Some(t)) = (scale(&a), scale(&b)) else { return NAN };
    let total = (0..k).map(|p| fixed_cut(a(p), s) as i128 * fixed_cut(b(p), t) as i128).sum();
    fixed_round(total, -s - t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_the_largest_that_fit() {
        for (precision, most) in [(Precision::Fixed24, 8_355_711.0), (Precision::Fixed16, 32_639.0)] {
            let fits = |x: f32, s: i32| (x as f64 * 2f64.powi(s)).round_ties_even() <= most;
            let mut largest = 1u32;
            while largest < 0x7f80_0000 {
                for bits in [largest, largest | 0x7e_fefe & 0x7f_ffff, largest | 0x7e_feff, largest | 0x7e_ff00] {
                    let bits = bits.min(0x7f7f_ffff);
                    let (x, s) = (f32::from_bits(bits), fixed_scale(bits, precision).unwrap());
                    assert!(fits(x, s) && !fits(x, s + 1), "{bits:08x}: {s}");
                    assert_eq!(fixed_cut(-x, s) as f64, -(x as f64 * 2f64.powi(s)).round_ties_even(), "{bits:08x}");
                }
                largest += largest / 3 + 1;
            }
            assert_eq!(fixed_scale(0x7f80_0000, precision), None);
            assert_eq!(fixed_scale(0, precision), Some(0));
        }
    }

    #[test]
    fn cuts_round_ties_to_even() {
        for (x, q) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-3.5, -4), (0.49, 0), (0.51, 1), (1e-30, 0), (7.0, 7)]
        {
            assert_eq!(fixed_cut(x, 0), q, "{x}");
        }
        assert_eq!(fixed_cut(f32::from_bits(3), 150), 6);
        assert_eq!(fixed_cut(f32::from_bits(3), 148), 2);
    }

    #[test]
    fn totals_are_rounded_once_and_again_where_they_are_subnormal() {
        let of = |total: i128, e: i32| fixed_round(total, e).to_bits();
        assert_eq!(of(0, 5), 0);
        assert_eq!(of(1, 0), 1f32.to_bits());
        assert_eq!(of(-3, -1), (-1.5f32).to_bits());
        assert_eq!(of((1 << 24) + 1, 0), 16_777_216f32.to_bits(), "a tie, to even");
        assert_eq!(of((1 << 24) + 3, 0), 16_777_220f32.to_bits());
        assert_eq!(of((1 << 25) - 1, 0), 33_554_432f32.to_bits(), "carried into another bit");
        assert_eq!(of((1 << 60) + (1 << 36), 0), 2f32.powi(60).to_bits());
        assert_eq!(of((1 << 60) + (1 << 36) + 1, 0), (2f32.powi(60) + 2f32.powi(37)).to_bits());
        assert_eq!(of(1, 128), 0x7f80_0000);
        assert_eq!(of(-((1 << 25) - 1), 103), 0xff80_0000, "rounded past the largest");
        assert_eq!(of((1 << 24) - 1, 104), 0x7f7f_ffff);
        assert_eq!(of(1, -149), 1);
        assert_eq!((of(1, -150), of(3, -150), of(3, -151)), (0, 2, 1));
        assert_eq!((of(-1, -150), of(-3, -151)), (0, 0x8000_0001), "no zero is negative");
        assert_eq!(of(1 << 100, -300), 0);
        assert_eq!(of((1 << 24) - 1, -150), 0x0080_0000, "up to the smallest normal one");
        // 2²⁵ + 2 is a tie between numbers of 24 bits. It rounds to even, to 2²⁵.
        assert_eq!(of((1 << 25) + 2, -151), 0x0080_0000);
    }
}
