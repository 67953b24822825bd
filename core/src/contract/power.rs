//! Powers, and functions of numbers close to 1 or results close to 0: pow, log1p, expm1. This is what
//! stands around their [`steps`].

use super::elementwise::round;
use super::{is_nan, steps};

/// Returns log(1 + x).
pub fn log1p(x: f32) -> f32 {
    if is_nan(x) || x < -1.0 {
        return f32::NAN;
    }
    if x == -1.0 {
        return f32::NEG_INFINITY;
    }
    if x == f32::INFINITY {
        return x;
    }
    steps::log1p_steps(x).copysign(x)
}

/// Returns e^x − 1.
pub fn expm1(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let v = if x < -18.0 { -18.0 } else { x };
    let v = if v > 89.0 { 89.0 } else { v };
    steps::expm1_steps(v).copysign(x)
}

/// Returns x^y.
pub fn pow(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if is_nan(x) || is_nan(y) {
        return f32::NAN;
    }
    let whole = round(y) == y;
    let half = 0.5 * y;
    let odd = whole && round(half) != half;
    let a = x.abs();
    let result = if a == 0.0 || a == f32::INFINITY {
        if (a == 0.0) == (y > 0.0) { 0.0 } else { f32::INFINITY }
    } else if x < 0.0 && !whole {
        return f32::NAN;
    } else {
        let (h, l) = steps::log2_of(a);
        steps::exp2_of(h, l, y)
    };
    if odd { result.copysign(x) } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        for f in [log1p as fn(f32) -> f32, expm1] {
            for tiny in [0.0, -0.0, 1e-45, -1e-45, 1e-39] {
                assert_eq!(f(tiny).to_bits(), f32::to_bits(tiny));
            }
            assert_eq!(f(inf), inf);
            assert!(f(nan).is_nan());
        }
        assert_eq!(log1p(-1.0), -inf);
        assert!(log1p(-1.5).is_nan());
        assert_eq!(expm1(-inf), -1.0);
        assert_eq!(expm1(88.8), inf);
        // This result needs the last doubling, and subtracting 1 doesn't change it.
        assert_eq!(expm1(88.5), 88.5f64.exp() as f32);
        // C99's table (F.10.4.4).
        for (x, y, expected) in [
            (nan, 0.0, 1.0),
            (1.0, nan, 1.0),
            (-1.0, inf, 1.0),
            (-1.0, -inf, 1.0),
            (0.0, -3.0, inf),
            (-0.0, -3.0, -inf),
            (-0.0, -2.0, inf),
            (-0.0, -0.5, inf),
            (-0.0, 3.0, -0.0),
            (-0.0, 2.0, 0.0),
            (-0.0, inf, 0.0),
            (0.5, inf, 0.0),
            (-0.5, -inf, inf),
            (-2.0, inf, inf),
            (2.0, -inf, 0.0),
            (-inf, 3.0, -inf),
            (-inf, 2.0, inf),
            (-inf, -3.0, -0.0),
            (-inf, -2.5, 0.0),
            (inf, 1e-45, inf),
            (0.0, 1e-45, 0.0),
            (2.0, 10.0, 1024.0),
            (-2.0, 3.0, -8.0),
            (2.0, -149.0, 1e-45),
            (2.0, -151.0, 0.0),
            (2.0, 128.0, inf),
            (1e-45, -0.5, 2f32.powf(74.5)),
            (0.999_999_94, -3e38, inf),
            (1.000_000_1, -3e38, 0.0),
            (-1.0, 16_777_215.0, -1.0),
            (-1.0, 16_777_216.0, 1.0),
        ] {
            assert_eq!(pow(x, y).to_bits(), expected.to_bits(), "{x} to the {y}: {}", pow(x, y));
        }
        for (x, y) in [(nan, 1.0), (2.0, nan), (-2.0, 0.5), (-1.0, 1e-45)] {
            assert!(pow(x, y).is_nan(), "{x} to the {y}");
        }
    }
}
