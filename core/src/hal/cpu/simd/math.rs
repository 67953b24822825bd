//! The contract's functions on vectors: what stands around their [`steps`], and the primitives that the steps call. A NaN result is any NaN: [`canonical`] is applied where results are stored.

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::{Simd, steps, unroll};

/// A binary32 constant, by its bits.
#[inline(always)]
pub(super) unsafe fn c<S: Simd>(bits: u32) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::splat(f32::from_bits(bits)) }
}

/// Horner's scheme. The coefficients start with the lowest power.
#[inline(always)]
pub(super) unsafe fn horner<S: Simd, const N: usize>(x: S::F, coefficients: [u32; N]) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let mut q = c::<S>(coefficients[N - 1]);
        // Unrolled: the compiler would keep a loop, with the coefficients in memory.
        unroll!(i < N - 1 => {
            q = S::fma(q, x, c::<S>(coefficients[N - 2 - i]));
        });
        q
    }
}

/// |x|: clears the sign bit.
#[inline(always)]
pub unsafe fn abs<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::and_i(S::bits(x), S::splat_i(0x7fff_ffff))) }
}

/// −x: flips the sign bit.
#[inline(always)]
pub unsafe fn neg<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::xor_i(S::bits(x), S::splat_i(i32::MIN))) }
}

/// `y`, which must not be negative, with the sign of `x`.
#[inline(always)]
pub unsafe fn with_sign<S: Simd>(y: S::F, x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::or_i(S::bits(y), S::and_i(S::bits(x), S::splat_i(i32::MIN)))) }
}

/// The value that arithmetic stores: every NaN becomes the canonical NaN.
#[inline(always)]
pub unsafe fn canonical<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::canonical(x) }
}

/// An integer whose order is MAX's order. On the bits, the map is its own inverse.
#[inline(always)]
pub unsafe fn max_key<S: Simd>(x: S::F) -> S::I {
    // SAFETY: see the top of the file.
    unsafe {
        let u = S::bits(canonical::<S>(x));
        S::xor_i(u, S::and_i(S::sar::<31>(u), S::splat_i(0x7fff_ffff)))
    }
}

/// 2^n for t = n + 4b400000 and n from −126 to 127. For NaN the result is unspecified.
#[inline(always)]
pub(super) unsafe fn power<S: Simd>(t: S::F) -> S::F {
    // The shift removes all of t but n.
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::add_i(S::shl::<23>(S::bits(t)), S::splat_i(127 << 23))) }
}

/// x·2^n for t = n + 4b400000.
#[inline(always)]
pub(super) unsafe fn scale<S: Simd>(x: S::F, t: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::scale(x, S::sub(t, c::<S>(0x4b40_0000)), t) }
}

/// As [`scale`], for −180 ≤ n ≤ 20.
#[inline(always)]
pub(super) unsafe fn scale_down<S: Simd>(x: S::F, t: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::scale_down(x, S::sub(t, c::<S>(0x4b40_0000)), t) }
}

/// Whether a number that is not negative is below the smallest normal one.
#[inline(always)]
pub(super) unsafe fn subnormal<S: Simd>(a: S::F) -> S::M {
    // SAFETY: see the top of the file.
    unsafe { S::lt(a, S::splat(f32::MIN_POSITIVE)) }
}

/// k with x = m·2^k, where m lies around 1.
#[inline(always)]
unsafe fn exponent_bits<S: Simd>(x: S::F) -> S::I {
    // SAFETY: see the top of the file.
    unsafe { S::sar::<23>(S::sub_i(S::bits(x), S::splat_i(0x3f35_04f3))) }
}

/// k with x = m·2^k, where m lies around 1.
#[inline(always)]
pub(super) unsafe fn exponent<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::to_float(exponent_bits::<S>(x)) }
}

/// The m of [`exponent`].
#[inline(always)]
pub(super) unsafe fn mantissa<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::sub_i(S::bits(x), S::shl::<23>(exponent_bits::<S>(x)))) }
}

/// The upper 12 of a significand's 24 bits.
#[inline(always)]
pub(super) unsafe fn upper<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::from_bits(S::and_i(S::bits(x), S::splat_i(0xffff_f000u32 as i32))) }
}

/// e^x for x ≤ 0 or NaN. For other x, the result is unspecified.
#[inline(always)]
pub unsafe fn exp_of_negative<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        // Below −104 the result is 0. At this bound n is −191: a hidden key's x is −∞, and must not take long.
        let (r, q, t) = steps::exp_core::<S>(S::max(x, S::splat(-132.4)));
        scale_down::<S>(steps::exp_near_0::<S>(r, q), t)
    }
}

/// The natural logarithm.
#[inline(always)]
pub unsafe fn log<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { log_ends::<S>(x, x, steps::log_steps::<S>(x)) }
}

/// Corrects a logarithm y of u at the ends of its domain: where u is 0, negative or infinite, and where x is NaN.
#[inline(always)]
pub(super) unsafe fn log_ends<S: Simd>(x: S::F, u: S::F, y: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (zero, infinity) = (S::splat(0.0), S::splat(f32::INFINITY));
        let y = S::select(S::eq(u, infinity), infinity, y);
        let y = S::select(S::eq(u, zero), S::splat(f32::NEG_INFINITY), y);
        let y = S::select(S::lt(u, zero), c::<S>(0x7fc0_0000), y);
        S::select(S::is_nan(x), x, y)
    }
}

/// max(x, +0); NaN stays NaN.
#[inline(always)]
pub unsafe fn relu<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        // −0 + 0 is +0.
        let zero = S::splat(0.0);
        S::max(S::add(x, zero), zero)
    }
}

/// The nearest integer, ties to even.
#[inline(always)]
pub unsafe fn round<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (a, large) = (abs::<S>(x), S::splat(8_388_608.0));
        let y = with_sign::<S>(S::sub(S::add(a, large), large), x);
        S::select(S::lt(a, large), y, x)
    }
}

/// The largest integer that is at most x.
#[inline(always)]
pub unsafe fn floor<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let r = round::<S>(x);
        S::select(S::lt(x, r), S::sub(r, S::splat(1.0)), r)
    }
}

/// The larger value in MAX's order.
#[inline(always)]
pub unsafe fn maximum<S: Simd>(a: S::F, b: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let key = S::max_i(max_key::<S>(a), max_key::<S>(b));
        S::from_bits(S::xor_i(key, S::and_i(S::sar::<31>(key), S::splat_i(0x7fff_ffff))))
    }
}

/// The smaller value. The order is symmetric, and a NaN is the result of both.
#[inline(always)]
pub unsafe fn minimum<S: Simd>(a: S::F, b: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { neg::<S>(maximum::<S>(neg::<S>(a), neg::<S>(b))) }
}

/// 1/sqrt(x).
#[inline(always)]
pub unsafe fn rsqrt<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::div(S::splat(1.0), S::sqrt(x)) }
}
