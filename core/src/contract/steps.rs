//! The steps of the contract's functions on numbers. Generated from docs/contract.md by `ADEAD_BLESS=1 cargo test -p adead-core --test steps`; don't edit.

use super::fmaz;
use super::functions::{c, exponent, horner, mantissa, power, scale, upper};

/// (e^r − 1 − r)/r² for |r| up to ln 2 / 2. The polynomial is minimax.
pub fn exp_series(r: f32) -> f32 {
    horner(r, [0x3efffffe, 0x3e2aaa45, 0x3d2aac27, 0x3c091f97, 0x3ab56890])
}

/// e^x as (1 + r + r²·q)·2ⁿ, for x between −105 and 89. Returns r, q and t = n + 4b400000. (Cody and Waite's reduction.)
pub fn exp_core(x: f32) -> (f32, f32, f32) {
    let t = fmaz(x, c(0x3fb8aa3b), c(0x4b400000));
    let n = t - c(0x4b400000);
    let s = fmaz(n, -c(0x3f317200), x);
    let r = fmaz(n, -c(0x35bfbe8e), s);
    (r, exp_series(r), t)
}

/// e^r, from exp_core's r and q.
pub fn exp_near_0(r: f32, q: f32) -> f32 {
    fmaz(fmaz(q, r, 1.0), r, 1.0)
}

/// e^r − 1, from exp_core's r and q.
pub fn exp_less_1(r: f32, q: f32) -> f32 {
    let square = r * r;
    fmaz(square, q, r)
}

/// e^x.
pub fn exp_steps(x: f32) -> f32 {
    let low = if x < -105.0 { -105.0 } else { x };
    let v = if low > 89.0 { 89.0 } else { low };
    let (r, q, t) = exp_core(v);
    scale(exp_near_0(r, q), t)
}

/// log(1 + f) + k·ln 2 + g. The upper part of ln 2 has 15 bits, so its product with k is exact.
pub fn log_sum(f: f32, k: f32, g: f32) -> f32 {
    let q = horner(f, [0xbf000000, 0x3eaaaaa9, 0xbe8000f1, 0x3e4cd07e, 0xbe2a42d8, 0x3e116ac1, 0xbe066736, 0x3e028da1, 0xbd9dc695]);
    let s = k * c(0x3f317200);
    let h = s + f;
    let e = f - (h - s);
    let l = fmaz(k, c(0x35bfbe8e), e) + g;
    let square = f * f;
    h + fmaz(square, q, l)
}

/// The logarithm of a positive finite number.
pub fn log_steps(a: f32) -> f32 {
    let below = a < f32::MIN_POSITIVE;
    let scaled = a * 8388608.0;
    let s = if below { scaled } else { a };
    let e = exponent(s);
    let lower = e - 23.0;
    let k = if below { lower } else { e };
    let f = mantissa(s) - 1.0;
    log_sum(f, k, 0.0)
}

/// tanh(a) for a from 0 to 3f6b851f.
pub fn tanh_near(a: f32) -> f32 {
    let y = a * a;
    let p = a * y;
    fmaz(p, horner(y, [0xbeaaaaa6, 0x3e088766, 0xbd5cddb2, 0x3cb13d3f, 0xbc067dd8, 0x3b25b194, 0xb9e403e9]), a)
}

/// tanh(a) for a from 3f6b851f.
pub fn tanh_far(a: f32) -> f32 {
    let twice = a + a;
    let v = if twice > 20.0 { 20.0 } else { twice };
    let (r, q, t) = exp_core(v);
    let p = power(t);
    let above = p + 1.0;
    let sum = fmaz(p, exp_less_1(r, q), above);
    1.0 - 2.0 / sum
}

/// erf(a) for a from 0 to 3f547ae1.
pub fn erf_near(a: f32) -> f32 {
    let y = a * a;
    a * horner(y, [0x3e0375d4, 0xbec09397, 0x3de713aa, 0xbcdbac93, 0x3ba63a36, 0xba28e39d]) + a
}

/// erf(a) for a from 3f547ae1: 1 − e^P. P approximates the logarithm of erfc, expanded around a point that is nearly a binary32 number.
pub fn erf_far(a: f32) -> f32 {
    let b = if a > c(0x407ccccd) { c(0x407ccccd) } else { a };
    let d = b - c(0x3f7f4000);
    let (r, q, t) = exp_core(horner(d, [0xbfebc2c5, 0xc02893ed, 0xbf57bddf, 0xbd2ab2c8, 0x3c24525e, 0xbafb9c7e, 0x395ce34f]));
    let p = power(t);
    let rest = 1.0 - p;
    fmaz(-p, exp_less_1(r, q), rest)
}

/// e^−|x| as (h + l)·2ⁿ. Returns h, l and t = n + 4b400000.
pub fn sigmoid_power(x: f32) -> (f32, f32, f32) {
    let a = -x.abs();
    let v = if a < -105.0 { -105.0 } else { a };
    let (r, q, t) = exp_core(v);
    let h = 1.0 + exp_less_1(r, q);
    let rest = r - (h - 1.0);
    let square = r * r;
    let l = fmaz(square, q, rest);
    (h, l, t)
}

/// 1/(1 + e^−x), from sigmoid_power's results: one division, whose remainder d is added back, as is e^−|x|'s rounding error. The
/// quotient is scaled at the end, so a subnormal result is rounded once.
pub fn sigmoid_of_power(x: f32, h: f32, l: f32, t: f32) -> f32 {
    let z = scale(h, t);
    let sum = 1.0 + z;
    let v = 1.0 / sum;
    let y = h * v;
    let e = h - y;
    let d = fmaz(-y, z, e);
    let u = fmaz(fmaz(l, v, d), v, y);
    let w = scale(u, t);
    let rest = 1.0 - w;
    if x < 0.0 { w } else { rest }
}

/// What gelu's tanh form gives to sigmoid.
pub fn gelu_argument(x: f32) -> f32 {
    let square = x * x;
    x * (square * c(0x3d922279) + c(0x3fcc422a))
}

/// A magnitude below 6400 as h + l + q·π/2. Returns h, l and t = q + 4b400000. (Cody and Waite's reduction. All products but the last
/// are exact, because q and the constants have at most 12 significant bits.)
pub fn small_angle(a: f32) -> (f32, f32, f32) {
    let t = a * c(0x3f22f983) + c(0x4b400000);
    let n = t - c(0x4b400000);
    let s = a - n * c(0x3fc91000);
    let r = s - n * -c(0x36960000);
    let w = n * c(0x32888000);
    let h = r - w;
    let l = r - h - w - n * c(0x2c34611a);
    (h, l, t)
}

/// sin(h + l) for |h| up to about π/4.
pub fn sine(h: f32, l: f32) -> f32 {
    let z = h * h;
    let part = 0.5 * z;
    let one = 1.0 - part;
    let cube = h * z;
    h + (cube * horner(z, [0xbe2aaaa3, 0x3c0883be, 0xb94caae3]) + l * one)
}

/// cos(h + l) for |h| up to about π/4.
pub fn cosine(h: f32, l: f32) -> f32 {
    let z = h * h;
    let part = 0.5 * z;
    let one = 1.0 - part;
    let e = 1.0 - one - part;
    let fourth = z * z;
    one + (e + (fourth * horner(z, [0x3d2aaaa5, 0xbab6060d, 0x37ccf072]) - h * l))
}

/// log(1 + x) for a finite x above −1. g makes up for the rounding error of 1 + x.
pub fn log1p_steps(x: f32) -> f32 {
    let u = 1.0 + x;
    let k = exponent(u);
    let m = mantissa(u) - 1.0;
    let f = if k == 0.0 { x } else { m };
    let lost = x - (u - 1.0);
    let g = if k == 0.0 { 0.0 } else { lost / u };
    log_sum(f, k, g)
}

/// e^x − 1 for x between −18 and 89. w is the rounding error of r.
pub fn expm1_steps(x: f32) -> f32 {
    let t = fmaz(x, c(0x3fb8aa3b), c(0x4b400000));
    let n = t - c(0x4b400000);
    let a = x - n * c(0x3f317200);
    let b = n * c(0x35bfbe8e);
    let r = a - b;
    let w = a - r - b;
    let square = r * r;
    let u = square * horner(r, [0x3f000000, 0x3e2aaaab, 0x3d2aaa7b, 0x3c088802, 0x3ab69e56, 0x3951217b]) + w;
    // n is at most 127 here: binary32 can't represent 2¹²⁸, so the last doubling comes after everything else.
    let most = if t > c(0x4b40007f) { c(0x4b40007f) } else { t };
    let p = power(most);
    let less = p - 1.0;
    let d = p * r;
    let s = less + d;
    let l = d - (s - less);
    let y = s + (l + p * u);
    let twice = y + y;
    if n > 127.0 { twice } else { y }
}

/// The base-2 logarithm of a positive finite number, as h + l. h has 12 bits. (The series of artanh((m − 1)/(m + 1)).)
pub fn log2_of(a: f32) -> (f32, f32) {
    let below = a < f32::MIN_POSITIVE;
    let scaled = a * 8388608.0;
    let b = if below { scaled } else { a };
    let e = exponent(b);
    let lower = e - 23.0;
    let k = if below { lower } else { e };
    let m = mantissa(b);
    let f = m - 1.0;
    let t = m + 1.0;
    let v = 1.0 / t;
    // s = f/t as sh + sl.
    let s = f * v;
    let sh = upper(s);
    let th = upper(t);
    let tl = m - (th - 1.0);
    let sl = (f - sh * th - sh * tl) * v;
    // The series is s·(3 + s² + …)·2/3. Its second factor is gh + gl.
    let z = s * s;
    let fourth = z * z;
    let r = fourth * horner(z, [0x3f1999c0, 0x3edb3de0, 0x3eb3dc68]) + sl * (sh + s);
    let square = sh * sh;
    let g = square + 3.0 + r;
    let gh = upper(g);
    let gl = r - (gh - 3.0 - square);
    let p = sh * gh;
    let cross = sl * gh + gl * s;
    let sum = p + cross;
    let ph = upper(sum);
    let pl = cross - (ph - p);
    // Multiply by 2/(3·ln 2), and add k.
    let zh = ph * c(0x3f764000);
    let zl = ph * -c(0x38f623c6) + pl * c(0x3f76384f);
    let total = zh + zl + k;
    let h = upper(total);
    let l = zl - (h - k - zh);
    (h, l)
}

/// 2^((h + l)·y).
pub fn exp2_of(h: f32, l: f32, y: f32) -> f32 {
    let below = if y > c(0x53800000) { c(0x53800000) } else { y };
    let v = if below < -c(0x53800000) { -c(0x53800000) } else { below };
    let yh = upper(v);
    let b = (v - yh) * h + v * l;
    let a = yh * h;
    let sum = a + b;
    let above = if sum < -160.0 { -160.0 } else { sum };
    let limit = if above > 160.0 { 160.0 } else { above };
    let inside = limit == sum;
    let high = if inside { a } else { limit };
    let low = if inside { b } else { 0.0 };
    let t = high + low + c(0x4b400000);
    let d = high - (t - c(0x4b400000));
    let e = d + low;
    let dh = upper(e);
    let dl = low - (dh - d);
    // Multiply by ln 2, as r + w.
    let p = dh * c(0x3f317000);
    let w = dl * c(0x3f317218) + dh * c(0x3805fdf4);
    let r = p + w;
    let square = r * r;
    let u = square * exp_series(r) + (w - (r - p));
    let o = 1.0 + r;
    let m = o + (r - (o - 1.0) + u);
    scale(m, t)
}
