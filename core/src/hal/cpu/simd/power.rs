//! pow, log1p and expm1 on vectors, with the same primitives in the same order as `contract/power.rs`.

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::Simd;
use super::math::{abs, c, exp_series, horner, log_ends, log_sum, round, split, with_sign};

/// log(1 + x).
#[inline(always)]
pub unsafe fn log1p<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (zero, one) = (S::splat(0.0), S::splat(1.0));
        let u = S::add(one, x);
        let (m, k) = split::<S>(S::bits(u));
        let k = S::to_float(k);
        // Corrects for the rounding error of 1 + x.
        let lost = S::div(S::sub(x, S::sub(u, one)), u);
        let near = S::eq(k, zero);
        let f = S::select(near, x, S::sub(m, one));
        let lost = S::select(near, zero, lost);
        log_ends::<S>(x, u, with_sign::<S>(abs::<S>(log_sum::<S>(f, k, lost)), x))
    }
}

/// e^x − 1.
#[inline(always)]
pub unsafe fn expm1<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (one, magic) = (S::splat(1.0), c::<S>(0x4b40_0000));
        let v = S::min(S::max(x, S::splat(-18.0)), S::splat(89.0));
        let shifted = S::fma(v, c::<S>(0x3fb8_aa3b), magic);
        let n = S::sub(shifted, magic);
        let a = S::mul_add_exact(n, c::<S>(0xbf31_7200), v);
        let g = S::mul(n, c::<S>(0x35bf_be8e));
        let r = S::sub(a, g);
        // The rounding error of r.
        let w = S::sub(S::sub(a, r), g);
        let q = horner::<S, 6>(r, [0x3f00_0000, 0x3e2a_aaab, 0x3d2a_aa7b, 0x3c08_8802, 0x3ab6_9e56, 0x3951_217b]);
        let u = S::add(S::mul(S::mul(r, r), q), w);
        // 2¹²⁸ is not representable, so the last doubling comes after everything else.
        let last = S::lt(S::splat(127.0), n);
        let exponent =
            S::add_i(S::shl::<23>(S::bits(shifted)), S::select_i(last, S::splat_i(126 << 23), S::splat_i(127 << 23)));
        let p = S::from_bits(exponent);
        let b = S::sub(p, one);
        let d = S::mul(p, r);
        let s = S::add(b, d);
        let l = S::sub(d, S::sub(s, b));
        let y = S::add(s, S::add(l, S::mul(p, u)));
        let y = S::select(last, S::add(y, y), y);
        S::select(S::is_nan(x), x, with_sign::<S>(abs::<S>(y), x))
    }
}

/// The upper 12 of a significand's 24 bits.
#[inline(always)]
unsafe fn upper<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::and_i(S::bits(x), S::splat_i(0xffff_f000u32 as i32))) }
}

/// log2 of a positive number as a sum of two numbers. The first has 12 bits.
#[inline(always)]
unsafe fn log2<S: Simd>(a: S::F) -> (S::F, S::F) {
    // SAFETY: see the top of the file.
    unsafe {
        let (one, three) = (S::splat(1.0), S::splat(3.0));
        let subnormal = S::lt(a, S::splat(f32::MIN_POSITIVE));
        let (m, k) = split::<S>(S::bits(S::select(subnormal, S::mul(a, S::splat(8_388_608.0)), a)));
        let k = S::to_float(S::select_i(subnormal, S::sub_i(k, S::splat_i(23)), k));
        let (f, t) = (S::sub(m, one), S::add(m, one));
        let v = S::div(one, t);
        // s = f/t as sh + sl.
        let s = S::mul(f, v);
        let (sh, th) = (upper::<S>(s), upper::<S>(t));
        let tl = S::sub(m, S::sub(th, one));
        let sl = S::mul(S::sub(S::sub(f, S::mul(sh, th)), S::mul(sh, tl)), v);
        // The series is s·(3 + s² + …)·2/3. Its second factor is gh + gl.
        let z = S::mul(s, s);
        let fourth = S::mul(S::mul(z, z), horner::<S, 3>(z, [0x3f19_99c0, 0x3edb_3de0, 0x3eb3_dc68]));
        let r = S::add(fourth, S::mul(sl, S::add(sh, s)));
        let square = S::mul(sh, sh);
        let gh = upper::<S>(S::add(S::add(square, three), r));
        let gl = S::sub(r, S::sub(S::sub(gh, three), square));
        let p = S::mul(sh, gh);
        let pl = S::add(S::mul(sl, gh), S::mul(gl, s));
        let ph = upper::<S>(S::add(p, pl));
        let pl = S::sub(pl, S::sub(ph, p));
        // Times 2/(3·ln 2), plus k.
        let zh = S::mul(ph, c::<S>(0x3f76_4000));
        let zl = S::add(S::mul(ph, c::<S>(0xb8f6_23c6)), S::mul(pl, c::<S>(0x3f76_384f)));
        let h = upper::<S>(S::add(S::add(zh, zl), k));
        (h, S::sub(zl, S::sub(S::sub(h, k), zh)))
    }
}

/// 2^((h + l)·y).
#[inline(always)]
unsafe fn exp2_of_product<S: Simd>(h: S::F, l: S::F, y: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (one, zero, magic) = (S::splat(1.0), S::splat(0.0), c::<S>(0x4b40_0000));
        let y = S::max(S::min(y, c::<S>(0x5380_0000)), c::<S>(0xd380_0000));
        let yh = upper::<S>(y);
        let low = S::add(S::mul(S::sub(y, yh), h), S::mul(y, l));
        let high = S::mul(yh, h);
        let (sum, most) = (S::add(high, low), S::splat(160.0));
        let (over, under) = (S::lt(most, sum), S::lt(sum, S::splat(-160.0)));
        let high = S::select(over, most, S::select(under, S::splat(-160.0), high));
        let low = S::select(over, zero, S::select(under, zero, low));
        let shifted = S::add(S::add(high, low), magic);
        let n = S::sub(shifted, magic);
        let d = S::sub(high, n);
        let dh = upper::<S>(S::add(d, low));
        let dl = S::sub(low, S::sub(dh, d));
        // Times ln 2, as r + w.
        let p = S::mul(dh, c::<S>(0x3f31_7000));
        let w = S::add(S::mul(dl, c::<S>(0x3f31_7218)), S::mul(dh, c::<S>(0x3805_fdf4)));
        let r = S::add(p, w);
        let u = S::add(S::mul(S::mul(r, r), exp_series::<S>(r)), S::sub(w, S::sub(r, p)));
        let e = S::add(one, r);
        let mantissa = S::add(e, S::add(S::sub(r, S::sub(e, one)), u));
        S::scale(mantissa, n, shifted)
    }
}

/// x^y.
#[inline(always)]
pub unsafe fn pow<S: Simd>(x: S::F, y: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (one, zero, infinity) = (S::splat(1.0), S::splat(0.0), S::splat(f32::INFINITY));
        let a = abs::<S>(x);
        let (h, l) = log2::<S>(a);
        let power = exp2_of_product::<S>(h, l, y);
        let (positive, at_zero) = (S::lt(zero, y), S::eq(a, zero));
        let power = S::select(at_zero, S::select(positive, zero, infinity), power);
        let power = S::select(S::eq(a, infinity), S::select(positive, infinity, zero), power);
        // An odd y gives the sign of x. If y is not an integer, a negative x gives NaN.
        let half = S::mul(S::splat(0.5), y);
        let even = S::eq(round::<S>(half), half);
        let signed = S::select(even, power, with_sign::<S>(power, x));
        let none = S::select(at_zero, power, c::<S>(0x7fc0_0000));
        let none = S::select(S::eq(a, infinity), power, none);
        let broken = S::select(S::lt(x, zero), none, power);
        let power = S::select(S::eq(round::<S>(y), y), signed, broken);
        let power = S::select(S::is_nan(x), x, S::select(S::is_nan(y), y, power));
        S::select(S::eq(x, one), one, S::select(S::eq(y, zero), one, power))
    }
}
