//! M arithmetic: the flushing fused multiply-add and the blocked chain.

use super::{canonical, positive_zero};

/// The number of products in each block that K is cut into.
pub const K_BLOCK: usize = 256;

/// Replaces a subnormal number by the zero of the same sign.
fn daz(x: f32) -> f32 {
    if x.to_bits() & 0x7f80_0000 == 0 { f32::from_bits(x.to_bits() & 0x8000_0000) } else { x }
}

/// Adds two doubles and rounds to odd. A later rounding to fewer bits then gives the same as from the exact sum. (Boldo
/// and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.)
fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: the error is exact if nothing overflows, and NaN if the sum is not finite.
    let t = sum - a;
    let error = (a - (sum - t)) + (b - t);
    let odd = sum.to_bits() & 1 == 1;
    if !odd && error.abs() > 0.0 {
        // A double's bits grow with its magnitude, so adding 1 steps away from zero.
        let away = (error > 0.0) == (sum > 0.0);
        f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
    } else {
        sum
    }
}

/// Returns `a·b + c`, rounded once. Subnormal operands count as zero. The result is rounded to 24 bits as if the
/// exponent were unbounded, and results below 2⁻¹²⁶ become zero of the same sign. NaN payloads are undefined here,
/// because stores make them canonical.
pub fn fmaz(a: f32, b: f32, c: f32) -> f32 {
    /// 2⁻¹²⁶·(1 − 2⁻²⁵): from this number on, 24 bits round to 2⁻¹²⁶, because the tie goes to even.
    const NOT_TINY: f64 = 1.1754943508222875e-38 * (1.0 - 1.0 / 33_554_432.0);
    // The product of two 24-bit numbers is exact in a double, with its 53 bits and its larger exponent range.
    let product = daz(a) as f64 * daz(b) as f64;
    let sum = add_to_odd(product, daz(c) as f64);
    if sum.abs() < NOT_TINY { 0.0f32.copysign(sum as f32) } else { sum as f32 }
}

/// Computes one chain `p = fmaz(a[k], b[k], p)` from `start`, with k ascending.
pub fn chain(a: impl Iterator<Item = f32>, b: impl Iterator<Item = f32>, start: f32) -> f32 {
    a.zip(b).fold(start, |p, (a, b)| fmaz(a, b, p))
}

/// Returns the M total of `k` products of elements given by index: chains of [`K_BLOCK`], added in order. NaN is
/// canonical, and −0 becomes +0.
pub fn dot(k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f32 {
    let mut total = 0.0;
    for start in (0..k).step_by(K_BLOCK) {
        let block = start..k.min(start + K_BLOCK);
        let p = chain(block.clone().map(&a), block.map(&b), 0.0);
        total = if start == 0 { p } else { fmaz(p, 1.0, total) };
    }
    canonical(positive_zero(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fused_and_flushed() {
        let (a, c) = (1.0 + 1.0 / 4096.0, -(1.0 + 1.0 / 2048.0));
        assert_eq!(fmaz(a, a, c), 2f32.powi(-24), "one rounding");
        let least = f32::MIN_POSITIVE;
        assert_eq!(fmaz(least, 0.5, 0.0).to_bits(), 0, "a tiny product is flushed");
        assert_eq!(fmaz(-least, 0.5, 0.0).to_bits(), 0x8000_0000, "with its sign");
        assert_eq!(fmaz(1.0, f32::from_bits(1), 0.0).to_bits(), 0, "a subnormal operand is zero");
        // (1 − 2⁻²⁴)·2⁻¹²⁶ has 24 bits and stays below 2⁻¹²⁶. (1 − 2⁻²⁵)·2⁻¹²⁶ is a tie that rounds up to it.
        assert_eq!(fmaz(-least, 2f32.powi(-24), least), 0.0);
        assert_eq!(fmaz(-least, 2f32.powi(-25), least), least);
    }

    #[test]
    fn agrees_with_the_fused_operation_of_the_platform_where_nothing_is_tiny() {
        let mut state = 9u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            f32::from_bits(0x3000_0000 + ((state >> 33) as u32 & 0x1fff_ffff))
                * if state >> 63 == 1 { -1.0 } else { 1.0 }
        };
        for _ in 0..100_000 {
            let (a, b, c) = (next(), next(), next());
            let expected = a.mul_add(b, c);
            if expected.abs() > 1e-37 {
                assert_eq!(fmaz(a, b, c).to_bits(), expected.to_bits(), "{a:e} {b:e} {c:e}");
            }
        }
    }
}
