//! Powers, and functions of numbers close to 1 or results close to 0: pow, log1p, expm1. Constants and the order of
//! operations are those of the table in `docs/contract.md`.

use super::elementwise::round;
use super::functions::{c, exp_series, horner, log_sum, power_of_two, scale_by_power};
use super::{fmaz, is_nan};

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
    let u = 1.0 + x;
    let k = (u.to_bits() as i32 - 0x3f35_04f3) >> 23;
    let m = f32::from_bits((u.to_bits() as i32 - (k << 23)) as u32);
    // g makes up for the rounding error of 1 + x.
    let (f, g) = if k == 0 { (x, 0.0) } else { (m - 1.0, (x - (u - 1.0)) / u) };
    log_sum(f, k as f32, g).copysign(x)
}

/// Returns e^x − 1.
pub fn expm1(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let v = if x < -18.0 { -18.0 } else { x };
    let v = if v > 89.0 { 89.0 } else { v };
    let t = fmaz(v, c(0x3fb8_aa3b), c(0x4b40_0000));
    let n = t.to_bits() as i32 - 0x4b40_0000;
    let nf = t - c(0x4b40_0000);
    let a = nf * -c(0x3f31_7200) + v;
    let g = nf * c(0x35bf_be8e);
    let r = a - g;
    // w is the rounding error of r.
    let w = (a - r) - g;
    let q = horner(r, [0x3f00_0000, 0x3e2a_aaab, 0x3d2a_aa7b, 0x3c08_8802, 0x3ab6_9e56, 0x3951_217b]);
    let u = (r * r) * q + w;
    // binary32 can't represent 2¹²⁸, so the last doubling comes after everything else.
    let last = n > 127;
    let p = power_of_two(if last { n - 1 } else { n });
    let b = p - 1.0;
    let d = p * r;
    let s = b + d;
    let l = d - (s - b);
    let y = s + (l + p * u);
    (if last { y + y } else { y }).copysign(x)
}

/// Returns the upper 12 of a number's 24 bits.
fn upper(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xffff_f000)
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
        let (h, l) = log2(a);
        exp2_of_product(h, l, y)
    };
    if odd { result.copysign(x) } else { result }
}

/// Returns log2 of a positive number as the sum of two numbers, the first with 12 bits. It uses the series of artanh((m
/// − 1)/(m + 1)).
fn log2(a: f32) -> (f32, f32) {
    let subnormal = a < f32::MIN_POSITIVE;
    let bits = if subnormal { a * 8_388_608.0 } else { a }.to_bits() as i32;
    let k = (bits - 0x3f35_04f3) >> 23;
    let m = f32::from_bits((bits - (k << 23)) as u32);
    let k = (if subnormal { k - 23 } else { k }) as f32;
    let (f, t) = (m - 1.0, m + 1.0);
    let v = 1.0 / t;
    // s = f/t as sh + sl.
    let s = f * v;
    let (sh, th) = (upper(s), upper(t));
    let tl = m - (th - 1.0);
    let sl = ((f - sh * th) - sh * tl) * v;
    // The series is s·(3 + s² + …)·2/3. Its second factor is gh + gl.
    let z = s * s;
    let r = (z * z) * horner(z, [0x3f19_99c0, 0x3edb_3de0, 0x3eb3_dc68]) + sl * (sh + s);
    let square = sh * sh;
    let gh = upper((square + 3.0) + r);
    let gl = r - ((gh - 3.0) - square);
    let p = sh * gh;
    let pl = sl * gh + gl * s;
    let ph = upper(p + pl);
    let pl = pl - (ph - p);
    // Multiply by 2/(3·ln 2), and add k.
    let zh = ph * c(0x3f76_4000);
    let zl = ph * c(0xb8f6_23c6) + pl * c(0x3f76_384f);
    let h = upper((zh + zl) + k);
    (h, zl - ((h - k) - zh))
}

/// Returns 2^((h + l)·y).
fn exp2_of_product(h: f32, l: f32, y: f32) -> f32 {
    let limit = c(0x5380_0000);
    let y = if y > limit { limit } else { y };
    let y = if y < -limit { -limit } else { y };
    let yh = upper(y);
    let low = (y - yh) * h + y * l;
    let high = yh * h;
    let sum = high + low;
    let (high, low) = if sum > 160.0 {
        (160.0, 0.0)
    } else if sum < -160.0 {
        (-160.0, 0.0)
    } else {
        (high, low)
    };
    let t = (high + low) + c(0x4b40_0000);
    let n = t.to_bits() as i32 - 0x4b40_0000;
    let d = high - (t - c(0x4b40_0000));
    let dh = upper(d + low);
    let dl = low - (dh - d);
    // Multiply by ln 2, as r + w.
    let p = dh * c(0x3f31_7000);
    let w = dl * c(0x3f31_7218) + dh * c(0x3805_fdf4);
    let r = p + w;
    let u = (r * r) * exp_series(r) + (w - (r - p));
    let e = 1.0 + r;
    scale_by_power(e + ((r - (e - 1.0)) + u), n)
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
