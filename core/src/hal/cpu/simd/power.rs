//! pow, log1p and expm1 on vectors: what stands around their [`steps`].

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::math::{abs, c, log_ends, round, with_sign};
use super::{Simd, steps};

/// log(1 + x).
#[inline(always)]
pub unsafe fn log1p<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let y = steps::log1p_steps::<S>(x);
        log_ends::<S>(x, S::add(S::splat(1.0), x), with_sign::<S>(abs::<S>(y), x))
    }
}

/// e^x − 1.
#[inline(always)]
pub unsafe fn expm1<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let y = steps::expm1_steps::<S>(S::min(S::max(x, S::splat(-18.0)), S::splat(89.0)));
        S::select(S::is_nan(x), x, with_sign::<S>(abs::<S>(y), x))
    }
}

/// x^y.
#[inline(always)]
pub unsafe fn pow<S: Simd>(x: S::F, y: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (one, zero, infinity) = (S::splat(1.0), S::splat(0.0), S::splat(f32::INFINITY));
        let a = abs::<S>(x);
        let (h, l) = steps::log2_of::<S>(a);
        let power = steps::exp2_of::<S>(h, l, y);
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
