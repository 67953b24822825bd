//! f16 and bf16: storage formats. Integer operations widen them exactly and narrow to them with ties to even.

/// Widens a binary16 number.
#[inline]
pub fn f16_to_f32(h: u16) -> f32 {
    let sign = (h as u32 & 0x8000) << 16;
    let magnitude = h as u32 & 0x7fff;
    let bits = match magnitude {
        // Infinity and NaN have an exponent of all ones in both formats.
        0x7c00.. => 0x7f80_0000 | ((magnitude & 0x3ff) << 13),
        0x0400.. => (magnitude << 13) + ((127 - 15) << 23),
        // Zero and subnormals are magnitude · 2⁻²⁴, which binary32 represents exactly.
        _ => (magnitude as f32 * TWO_TO_MINUS_24).to_bits(),
    };
    f32::from_bits(bits | sign)
}

const TWO_TO_MINUS_24: f32 = f32::from_bits((127 - 24) << 23);

/// Narrows binary64 to binary32 for a second narrowing: truncated, with the lowest bit set unless that is exact. So the second
/// narrowing, to 22 bits at most, rounds as if it were the only one.
#[inline]
pub fn odd_from_f64(x: f64) -> f32 {
    let near = x as f32;
    // The nearest value has an odd bit, or is one unit from the one that has.
    let (wide, bits) = (f64::from(near), near.to_bits());
    match wide == x || x.is_nan() || bits & 1 == 1 {
        true => near,
        false if wide.abs() > x.abs() => f32::from_bits(bits - 1),
        false => f32::from_bits(bits + 1),
    }
}

/// Narrows to binary16. NaN becomes 7e00.
#[inline]
pub fn f16_from_f32(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = x.to_bits() & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0x7e00;
    }
    // Magnitudes of at least 65520 round to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    let (significand, shift) = if magnitude >= 0x3880_0000 {
        // Normal: rebias the exponent, then drop 13 bits.
        (magnitude - ((127 - 15) << 23), 13)
    } else {
        // The result is subnormal: shift the significand with its hidden bit to units of 2⁻²⁴.
        let exponent = (magnitude >> 23) as i32;
        let drop = 126 - exponent;
        if drop > 24 {
            return sign;
        }
        ((magnitude & 0x007f_ffff) | 0x0080_0000, drop as u32)
    };
    let kept = significand >> shift;
    let rest = significand & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    let up = rest > half || (rest == half && kept & 1 == 1);
    sign | (kept + up as u32) as u16
}

/// Widens a bfloat16 number.
#[inline]
pub fn bf16_to_f32(b: u16) -> f32 {
    f32::from_bits((b as u32) << 16)
}

/// Narrows to bfloat16. NaN becomes 7fc0.
#[inline]
pub fn bf16_from_f32(x: f32) -> u16 {
    let bits = x.to_bits();
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return 0x7fc0;
    }
    // The sum carries exactly if the number rounds up. It adds half a unit, less one bit if the kept part is even.
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for h in 0..=u16::MAX {
            let expected = if h & 0x7fff > 0x7c00 { 0x7e00 } else { h };
            assert_eq!(f16_from_f32(f16_to_f32(h)), expected, "{h:04x}");
            let expected = if h & 0x7fff > 0x7f80 { 0x7fc0 } else { h };
            assert_eq!(bf16_from_f32(bf16_to_f32(h)), expected, "{h:04x}");
        }
    }

    #[test]
    fn narrowing_is_to_nearest_even() {
        // At every midpoint between two neighbouring halves, a tie goes to even. Numbers just below go down, just above
        // up.
        for h in 0..0x7c00u16 {
            let (low, high) = (f16_to_f32(h), f16_to_f32(h + 1));
            let high = if high.is_infinite() { 65536.0 } else { high };
            let middle = (low + high) / 2.0;
            let even = if h & 1 == 0 { h } else { h + 1 };
            assert_eq!(f16_from_f32(middle), even, "{h:04x}");
            assert_eq!(f16_from_f32(f32::from_bits(middle.to_bits() - 1)), h);
            assert_eq!(f16_from_f32(f32::from_bits(middle.to_bits() + 1)), h + 1);
        }
        assert_eq!(bf16_from_f32(f32::from_bits(0x3f80_8000)), 0x3f80);
        assert_eq!(bf16_from_f32(f32::from_bits(0x3f81_8000)), 0x3f82);
        assert_eq!(bf16_from_f32(f32::MAX), 0x7f80);
    }
    #[test]
    fn binary64_is_rounded_once() {
        // Beside a midpoint by less than binary32 can tell, a number goes to the nearer neighbour, and not to the even one.
        for h in 0..0x7c00u16 {
            let (low, high) = (f16_to_f32(h), f16_to_f32(h + 1));
            let high = if high.is_infinite() { 65536.0 } else { high };
            let middle = f64::from((low + high) / 2.0);
            let even = if h & 1 == 0 { h } else { h + 1 };
            let f16 = |x: f64| f16_from_f32(odd_from_f64(x));
            let beside = |by: i64| f64::from_bits(middle.to_bits().wrapping_add_signed(by));
            for sign in [1.0, -1.0] {
                let bit = if sign < 0.0 { 0x8000 } else { 0 };
                assert_eq!([0, -1, 1].map(|by| f16(sign * beside(by))), [even, h, h + 1].map(|h| h | bit), "{h:04x}");
            }
        }
        for h in 0..0x7f80u16 {
            let middle = f64::from(f32::from_bits((h as u32) << 16 | 0x8000));
            let even = if h & 1 == 0 { h } else { h + 1 };
            let bf16 = |by: i64| bf16_from_f32(odd_from_f64(f64::from_bits(middle.to_bits().wrapping_add_signed(by))));
            assert_eq!([0, -1, 1].map(bf16), [even, h, h + 1], "{h:04x}");
        }
        let halves = |x: f64| [f16_from_f32(odd_from_f64(x)), bf16_from_f32(odd_from_f64(x))];
        assert_eq!(halves(f64::NAN), [0x7e00, 0x7fc0]);
        assert_eq!(halves(f64::INFINITY), [0x7c00, 0x7f80]);
        assert_eq!(halves(-1e300), [0xfc00, 0xff80]);
        assert_eq!(halves(-5e-324), [0x8000, 0x8000]);
        assert_eq!(halves(1.0), [0x3c00, 0x3f80]);
    }
}
