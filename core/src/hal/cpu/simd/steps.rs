//! The steps of the contract's functions on vectors. Generated from docs/contract.md by `ADEAD_BLESS=1 cargo test -p adead-core --test steps`; don't edit.

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::Simd;
use super::math::{abs, c, exponent, horner, mantissa, neg, power, scale, scale_down, subnormal, upper};

/// (e^r − 1 − r)/r² for |r| up to ln 2 / 2. The polynomial is minimax.
#[inline(always)]
pub unsafe fn exp_series<S: Simd>(r: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        horner::<S, 5>(r, [0x3efffffe, 0x3e2aaa45, 0x3d2aac27, 0x3c091f97, 0x3ab56890])
    }
}

/// e^x as (1 + r + r²·q)·2ⁿ, for x between −105 and 89. Returns r, q and t = n + 4b400000. (Cody and Waite's reduction.)
#[inline(always)]
pub unsafe fn exp_core<S: Simd>(x: S::F) -> (S::F, S::F, S::F) {
    // SAFETY: see the top of the file.
    unsafe {
        let t = S::fma(x, c::<S>(0x3fb8aa3b), c::<S>(0x4b400000));
        let n = S::sub(t, c::<S>(0x4b400000));
        let s = S::mul_add_exact(n, c::<S>(0xbf317200), x);
        let r = S::fma(n, c::<S>(0xb5bfbe8e), s);
        (r, exp_series::<S>(r), t)
    }
}

/// e^r, from exp_core's r and q.
#[inline(always)]
pub unsafe fn exp_near_0<S: Simd>(r: S::F, q: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        S::fma(S::fma(q, r, S::splat(1.0)), r, S::splat(1.0))
    }
}

/// e^r − 1, from exp_core's r and q.
#[inline(always)]
pub unsafe fn exp_less_1<S: Simd>(r: S::F, q: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let square = S::mul(r, r);
        S::fma(square, q, r)
    }
}

/// e^x.
#[inline(always)]
pub unsafe fn exp_steps<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let low = S::max(x, S::splat(-105.0));
        let v = S::min(low, S::splat(89.0));
        let (r, q, t) = exp_core::<S>(v);
        scale::<S>(exp_near_0::<S>(r, q), t)
    }
}

/// log(1 + f) + k·ln 2 + g. The upper part of ln 2 has 15 bits, so its product with k is exact.
#[inline(always)]
pub unsafe fn log_sum<S: Simd>(f: S::F, k: S::F, g: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let q = horner::<S, 9>(f, [0xbf000000, 0x3eaaaaa9, 0xbe8000f1, 0x3e4cd07e, 0xbe2a42d8, 0x3e116ac1, 0xbe066736, 0x3e028da1, 0xbd9dc695]);
        let s = S::mul(k, c::<S>(0x3f317200));
        let h = S::add(s, f);
        let e = S::sub(f, S::sub(h, s));
        let l = S::add(S::fma(k, c::<S>(0x35bfbe8e), e), g);
        let square = S::mul(f, f);
        S::add(h, S::fma(square, q, l))
    }
}

/// The logarithm of a positive finite number.
#[inline(always)]
pub unsafe fn log_steps<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let below = subnormal::<S>(a);
        let scaled = S::mul(a, S::splat(8388608.0));
        let s = S::select(below, scaled, a);
        let e = exponent::<S>(s);
        let lower = S::sub(e, S::splat(23.0));
        let k = S::select(below, lower, e);
        let f = S::sub(mantissa::<S>(s), S::splat(1.0));
        log_sum::<S>(f, k, S::splat(0.0))
    }
}

/// tanh(a) for a from 0 to 3f6b851f.
#[inline(always)]
pub unsafe fn tanh_near<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let y = S::mul(a, a);
        let p = S::mul(a, y);
        S::fma(p, horner::<S, 7>(y, [0xbeaaaaa6, 0x3e088766, 0xbd5cddb2, 0x3cb13d3f, 0xbc067dd8, 0x3b25b194, 0xb9e403e9]), a)
    }
}

/// tanh(a) for a from 3f6b851f.
#[inline(always)]
pub unsafe fn tanh_far<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let twice = S::add(a, a);
        let v = S::min(twice, S::splat(20.0));
        let (r, q, t) = exp_core::<S>(v);
        let p = power::<S>(t);
        let above = S::add(p, S::splat(1.0));
        let sum = S::fma(p, exp_less_1::<S>(r, q), above);
        S::sub(S::splat(1.0), S::div(S::splat(2.0), sum))
    }
}

/// erf(a) for a from 0 to 3f547ae1.
#[inline(always)]
pub unsafe fn erf_near<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let y = S::mul(a, a);
        S::add(S::mul(a, horner::<S, 6>(y, [0x3e0375d4, 0xbec09397, 0x3de713aa, 0xbcdbac93, 0x3ba63a36, 0xba28e39d])), a)
    }
}

/// erf(a) for a from 3f547ae1: 1 − e^P. P approximates the logarithm of erfc, expanded around a point that is nearly a binary32 number.
#[inline(always)]
pub unsafe fn erf_far<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let b = S::min(a, c::<S>(0x407ccccd));
        let d = S::sub(b, c::<S>(0x3f7f4000));
        let (r, q, t) = exp_core::<S>(horner::<S, 7>(d, [0xbfebc2c5, 0xc02893ed, 0xbf57bddf, 0xbd2ab2c8, 0x3c24525e, 0xbafb9c7e, 0x395ce34f]));
        let p = power::<S>(t);
        let rest = S::sub(S::splat(1.0), p);
        S::mul_add_exact(neg::<S>(p), exp_less_1::<S>(r, q), rest)
    }
}

/// e^−|x| as (h + l)·2ⁿ. Returns h, l and t = n + 4b400000.
#[inline(always)]
pub unsafe fn sigmoid_power<S: Simd>(x: S::F) -> (S::F, S::F, S::F) {
    // SAFETY: see the top of the file.
    unsafe {
        let a = neg::<S>(abs::<S>(x));
        let v = S::max(a, S::splat(-105.0));
        let (r, q, t) = exp_core::<S>(v);
        let h = S::add(S::splat(1.0), exp_less_1::<S>(r, q));
        let rest = S::sub(r, S::sub(h, S::splat(1.0)));
        let square = S::mul(r, r);
        let l = S::fma(square, q, rest);
        (h, l, t)
    }
}

/// 1/(1 + e^−x), from sigmoid_power's results: one division, whose remainder d is added back, as is e^−|x|'s rounding error. The
/// quotient is scaled at the end, so a subnormal result is rounded once.
#[inline(always)]
pub unsafe fn sigmoid_of_power<S: Simd>(x: S::F, h: S::F, l: S::F, t: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let z = scale_down::<S>(h, t);
        let sum = S::add(S::splat(1.0), z);
        let v = S::div(S::splat(1.0), sum);
        let y = S::mul(h, v);
        let e = S::sub(h, y);
        let d = S::fma(neg::<S>(y), z, e);
        let u = S::fma(S::fma(l, v, d), v, y);
        let w = scale_down::<S>(u, t);
        let rest = S::sub(S::splat(1.0), w);
        S::select(S::lt(x, S::splat(0.0)), w, rest)
    }
}

/// What gelu's tanh form gives to sigmoid.
#[inline(always)]
pub unsafe fn gelu_argument<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let square = S::mul(x, x);
        S::mul(x, S::add(S::mul(square, c::<S>(0x3d922279)), c::<S>(0x3fcc422a)))
    }
}

/// A magnitude below 6400 as h + l + q·π/2. Returns h, l and t = q + 4b400000. (Cody and Waite's reduction. All products but the last
/// are exact, because q and the constants have at most 12 significant bits.)
#[inline(always)]
pub unsafe fn small_angle<S: Simd>(a: S::F) -> (S::F, S::F, S::F) {
    // SAFETY: see the top of the file.
    unsafe {
        let t = S::add(S::mul(a, c::<S>(0x3f22f983)), c::<S>(0x4b400000));
        let n = S::sub(t, c::<S>(0x4b400000));
        let s = S::mul_add_exact(n, c::<S>(0xbfc91000), a);
        let r = S::mul_add_exact(n, c::<S>(0x36960000), s);
        let w = S::mul(n, c::<S>(0x32888000));
        let h = S::sub(r, w);
        let l = S::sub(S::sub(S::sub(r, h), w), S::mul(n, c::<S>(0x2c34611a)));
        (h, l, t)
    }
}

/// sin(h + l) for |h| up to about π/4.
#[inline(always)]
pub unsafe fn sine<S: Simd>(h: S::F, l: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let z = S::mul(h, h);
        let part = S::mul(S::splat(0.5), z);
        let one = S::sub(S::splat(1.0), part);
        let cube = S::mul(h, z);
        S::add(h, S::add(S::mul(cube, horner::<S, 3>(z, [0xbe2aaaa3, 0x3c0883be, 0xb94caae3])), S::mul(l, one)))
    }
}

/// cos(h + l) for |h| up to about π/4.
#[inline(always)]
pub unsafe fn cosine<S: Simd>(h: S::F, l: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let z = S::mul(h, h);
        let part = S::mul(S::splat(0.5), z);
        let one = S::sub(S::splat(1.0), part);
        let e = S::sub(S::sub(S::splat(1.0), one), part);
        let fourth = S::mul(z, z);
        S::add(one, S::add(e, S::sub(S::mul(fourth, horner::<S, 3>(z, [0x3d2aaaa5, 0xbab6060d, 0x37ccf072])), S::mul(h, l))))
    }
}

/// log(1 + x) for a finite x above −1. g makes up for the rounding error of 1 + x.
#[inline(always)]
pub unsafe fn log1p_steps<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let u = S::add(S::splat(1.0), x);
        let k = exponent::<S>(u);
        let m = S::sub(mantissa::<S>(u), S::splat(1.0));
        let f = S::select(S::eq(k, S::splat(0.0)), x, m);
        let lost = S::sub(x, S::sub(u, S::splat(1.0)));
        let g = S::select(S::eq(k, S::splat(0.0)), S::splat(0.0), S::div(lost, u));
        log_sum::<S>(f, k, g)
    }
}

/// e^x − 1 for x between −18 and 89. w is the rounding error of r.
#[inline(always)]
pub unsafe fn expm1_steps<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let t = S::fma(x, c::<S>(0x3fb8aa3b), c::<S>(0x4b400000));
        let n = S::sub(t, c::<S>(0x4b400000));
        let a = S::mul_add_exact(n, c::<S>(0xbf317200), x);
        let b = S::mul(n, c::<S>(0x35bfbe8e));
        let r = S::sub(a, b);
        let w = S::sub(S::sub(a, r), b);
        let square = S::mul(r, r);
        let u = S::add(S::mul(square, horner::<S, 6>(r, [0x3f000000, 0x3e2aaaab, 0x3d2aaa7b, 0x3c088802, 0x3ab69e56, 0x3951217b])), w);
        // n is at most 127 here: binary32 can't represent 2¹²⁸, so the last doubling comes after everything else.
        let most = S::min(t, c::<S>(0x4b40007f));
        let p = power::<S>(most);
        let less = S::sub(p, S::splat(1.0));
        let d = S::mul(p, r);
        let s = S::add(less, d);
        let l = S::sub(d, S::sub(s, less));
        let y = S::add(s, S::add(l, S::mul(p, u)));
        let twice = S::add(y, y);
        S::select(S::lt(S::splat(127.0), n), twice, y)
    }
}

/// The base-2 logarithm of a positive finite number, as h + l. h has 12 bits. (The series of artanh((m − 1)/(m + 1)).)
#[inline(always)]
pub unsafe fn log2_of<S: Simd>(a: S::F) -> (S::F, S::F) {
    // SAFETY: see the top of the file.
    unsafe {
        let below = subnormal::<S>(a);
        let scaled = S::mul(a, S::splat(8388608.0));
        let b = S::select(below, scaled, a);
        let e = exponent::<S>(b);
        let lower = S::sub(e, S::splat(23.0));
        let k = S::select(below, lower, e);
        let m = mantissa::<S>(b);
        let f = S::sub(m, S::splat(1.0));
        let t = S::add(m, S::splat(1.0));
        let v = S::div(S::splat(1.0), t);
        // s = f/t as sh + sl.
        let s = S::mul(f, v);
        let sh = upper::<S>(s);
        let th = upper::<S>(t);
        let tl = S::sub(m, S::sub(th, S::splat(1.0)));
        let sl = S::mul(S::sub(S::sub(f, S::mul(sh, th)), S::mul(sh, tl)), v);
        // The series is s·(3 + s² + …)·2/3. Its second factor is gh + gl.
        let z = S::mul(s, s);
        let fourth = S::mul(z, z);
        let r = S::add(S::mul(fourth, horner::<S, 3>(z, [0x3f1999c0, 0x3edb3de0, 0x3eb3dc68])), S::mul(sl, S::add(sh, s)));
        let square = S::mul(sh, sh);
        let g = S::add(S::add(square, S::splat(3.0)), r);
        let gh = upper::<S>(g);
        let gl = S::sub(r, S::sub(S::sub(gh, S::splat(3.0)), square));
        let p = S::mul(sh, gh);
        let cross = S::add(S::mul(sl, gh), S::mul(gl, s));
        let sum = S::add(p, cross);
        let ph = upper::<S>(sum);
        let pl = S::sub(cross, S::sub(ph, p));
        // Multiply by 2/(3·ln 2), and add k.
        let zh = S::mul(ph, c::<S>(0x3f764000));
        let zl = S::add(S::mul(ph, c::<S>(0xb8f623c6)), S::mul(pl, c::<S>(0x3f76384f)));
        let total = S::add(S::add(zh, zl), k);
        let h = upper::<S>(total);
        let l = S::sub(zl, S::sub(S::sub(h, k), zh));
        (h, l)
    }
}

/// 2^((h + l)·y).
#[inline(always)]
pub unsafe fn exp2_of<S: Simd>(h: S::F, l: S::F, y: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let below = S::min(y, c::<S>(0x53800000));
        let v = S::max(below, c::<S>(0xd3800000));
        let yh = upper::<S>(v);
        let b = S::add(S::mul(S::sub(v, yh), h), S::mul(v, l));
        let a = S::mul(yh, h);
        let sum = S::add(a, b);
        let above = S::max(sum, S::splat(-160.0));
        let limit = S::min(above, S::splat(160.0));
        let inside = S::eq(limit, sum);
        let high = S::select(inside, a, limit);
        let low = S::select(inside, b, S::splat(0.0));
        let t = S::add(S::add(high, low), c::<S>(0x4b400000));
        let d = S::sub(high, S::sub(t, c::<S>(0x4b400000)));
        let e = S::add(d, low);
        let dh = upper::<S>(e);
        let dl = S::sub(low, S::sub(dh, d));
        // Multiply by ln 2, as r + w.
        let p = S::mul(dh, c::<S>(0x3f317000));
        let w = S::add(S::mul(dl, c::<S>(0x3f317218)), S::mul(dh, c::<S>(0x3805fdf4)));
        let r = S::add(p, w);
        let square = S::mul(r, r);
        let u = S::add(S::mul(square, exp_series::<S>(r)), S::sub(w, S::sub(r, p)));
        let o = S::add(S::splat(1.0), r);
        let m = S::add(o, S::add(S::sub(r, S::sub(o, S::splat(1.0))), u));
        scale::<S>(m, t)
    }
}
