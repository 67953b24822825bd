//! Sine and cosine: what stands around their [`steps`], and the reduction of large angles.

use super::functions::power_of_two;
use super::steps;

/// Angles of at least this magnitude are reduced in integers.
pub const LARGE_ANGLE: f32 = 6400.0;

/// Returns the sine of `x`, in radians.
pub fn sin(x: f32) -> f32 {
    let y = of_quadrant(x, 0);
    f32::from_bits(y.to_bits() ^ (x.to_bits() & 0x8000_0000))
}

/// Returns the cosine of `x`, in radians.
pub fn cos(x: f32) -> f32 {
    of_quadrant(x, 1)
}

/// Returns the sine of |x| + `quarters`·π/2.
fn of_quadrant(x: f32, quarters: u32) -> f32 {
    let a = x.abs();
    if a.to_bits() >= 0x7f80_0000 {
        return f32::NAN;
    }
    let (h, l, q) = if a < LARGE_ANGLE {
        let (h, l, t) = steps::small_angle(a);
        (h, l, t.to_bits())
    } else {
        reduce_large(a)
    };
    let q = q.wrapping_add(quarters);
    let y = if q & 1 == 0 { steps::sine(h, l) } else { steps::cosine(h, l) };
    if q & 2 == 0 { y } else { -y }
}

/// 32 zero bits, then the bits of 2/π.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// Returns a − q·π/2 as the sum of two numbers, and q, of which only the last two bits count, for a ≥ 2¹². It computes a·2/π only from the bit of weight 2 down: the dropped bits are multiples
/// of 4, which are whole turns. (Payne and Hanek, "Radian reduction for trigonometric functions", 1983.)
fn reduce_large(a: f32) -> (f32, f32, u32) {
    let m = (a.to_bits() & 0x7f_ffff | 0x80_0000) as u64;
    let at = (a.to_bits() >> 23) - 120;
    let word = |i: usize| {
        let i = (at >> 5) as usize + i;
        let two = (TWO_OVER_PI[i] as u64) << 32 | TWO_OVER_PI[i + 1] as u64;
        two << (at & 31) >> 32
    };
    // The angle in quarters of a turn, modulo 4: 2 bits before the point and 62 behind it.
    let p = ((m * word(0)) << 32).wrapping_add(m * word(1)).wrapping_add((m * word(2)) >> 32);
    let f = (p << 2) as i64;
    let q = (p >> 62) as u32 + (f < 0) as u32;
    // |f| is at least 2³², because no binary32 number is closer to a multiple of π/2.
    let z = f.unsigned_abs().leading_zeros();
    let top = f.unsigned_abs() << z >> 32;
    let r = ((top * 0xc90f_daa2) >> 33) as u32;
    let scale = power_of_two(-30 - z as i32);
    let (h, l) = ((r & !127) as f32 * scale, (r & 127) as f32 * scale);
    if f < 0 { (-h, -l, q) } else { (h, l, q) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        assert_eq!(sin(0.0).to_bits(), 0);
        assert_eq!(sin(-0.0).to_bits(), 0x8000_0000);
        assert_eq!(sin(-1e-45).to_bits(), 0x8000_0001);
        assert_eq!(cos(-0.0), 1.0);
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert!(sin(x).is_nan() && cos(x).is_nan());
        }
        // 2¹²⁷, the largest number, numbers next to small and large multiples of π/2, and both sides of `LARGE_ANGLE`.
        for bits in [0x7f00_0000, 0x7f7f_ffff, 0x3fc9_0fdb, 0x4049_0fdb, 0x6f79_be45, 0x45c8_0000, 0x45c7_ffff] {
            let x = f32::from_bits(bits);
            for (ours, truth) in [(sin(x), (x as f64).sin()), (cos(x), (x as f64).cos())] {
                assert!((ours as f64 - truth).abs() <= truth.abs() * 1.2e-7, "{bits:08x}: {ours} against {truth}");
            }
        }
    }
}
