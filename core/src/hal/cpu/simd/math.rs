//! The contract's functions on vectors. They use the same primitives in the same order as `contract/functions.rs`, so
//! they give the same bits. A NaN result is any NaN: [`canonical`] is applied where results are stored.

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::{Simd, unroll};

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

/// e^x = (1 + r + r²·q)·2^n.
struct ExpCore<S: Simd> {
    r: S::F,
    q: S::F,
    n: S::F,
    /// n + 3·2²², which has n in its low bits.
    shifted: S::F,
}

impl<S: Simd> ExpCore<S> {
    /// Requires x between −133 and 89.
    #[inline(always)]
    unsafe fn new(x: S::F) -> Self {
        // SAFETY: see the top of the file.
        unsafe {
            let magic = c::<S>(0x4b40_0000);
            let shifted = S::fma(x, c::<S>(0x3fb8_aa3b), magic);
            let n = S::sub(shifted, magic);
            // The upper part of ln 2 has 15 bits, so this product is exact.
            let r = S::mul_add_exact(n, c::<S>(0xbf31_7200), x);
            let r = S::fma(n, c::<S>(0xb5bf_be8e), r);
            ExpCore { r, q: exp_series::<S>(r), n, shifted }
        }
    }

    /// e^r.
    #[inline(always)]
    unsafe fn mantissa(&self) -> S::F {
        // SAFETY: see the top of the file.
        unsafe {
            let one = S::splat(1.0);
            S::fma(S::fma(self.q, self.r, one), self.r, one)
        }
    }

    /// e^r − 1.
    #[inline(always)]
    unsafe fn mantissa_minus_1(&self) -> S::F {
        // SAFETY: see the top of the file.
        unsafe { S::fma(S::mul(self.r, self.r), self.q, self.r) }
    }

    /// x·2^n, if both are normal numbers. For NaN the result is unspecified.
    #[inline(always)]
    unsafe fn scale_normal(&self, x: S::F) -> S::F {
        // SAFETY: see the top of the file.
        unsafe { S::from_bits(S::add_i(S::bits(x), S::shl::<23>(S::bits(self.shifted)))) }
    }
}

/// e^x.
#[inline(always)]
pub unsafe fn exp<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let core = ExpCore::<S>::new(S::min(S::max(x, S::splat(-105.0)), S::splat(89.0)));
        S::scale(core.mantissa(), core.n, core.shifted)
    }
}

/// e^x for x ≤ 0 or NaN. For other x, the result is unspecified.
#[inline(always)]
pub unsafe fn exp_of_negative<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        // Below −104 the result is 0. At this bound n is −191: a hidden key's x is −∞, and must not take long.
        let core = ExpCore::<S>::new(S::max(x, S::splat(-132.4)));
        S::scale_down(core.mantissa(), core.n, core.shifted)
    }
}

/// (e^r − 1 − r)/r² for |r| up to ln 2 / 2.
#[inline(always)]
pub(super) unsafe fn exp_series<S: Simd>(r: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { horner::<S, 5>(r, [0x3eff_fffe, 0x3e2a_aa45, 0x3d2a_ac27, 0x3c09_1f97, 0x3ab5_6890]) }
}

/// The natural logarithm.
#[inline(always)]
pub unsafe fn log<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let subnormal = S::lt(x, S::splat(f32::MIN_POSITIVE));
        let bits = S::bits(S::select(subnormal, S::mul(x, S::splat(8_388_608.0)), x));
        let (m, k) = split::<S>(bits);
        let k = S::to_float(S::select_i(subnormal, S::sub_i(k, S::splat_i(23)), k));
        let y = log_sum::<S>(S::sub(m, S::splat(1.0)), k, S::splat(0.0));
        log_ends::<S>(x, x, y)
    }
}

/// Splits the bits of m·2^k into m, near 1, and k.
#[inline(always)]
pub(super) unsafe fn split<S: Simd>(bits: S::I) -> (S::F, S::I) {
    // SAFETY: see the top of the file.
    unsafe {
        let k = S::sar::<23>(S::sub_i(bits, S::splat_i(0x3f35_04f3)));
        (S::from_bits(S::sub_i(bits, S::shl::<23>(k))), k)
    }
}

/// log(1 + f) + k·ln 2 + g.
#[inline(always)]
pub(super) unsafe fn log_sum<S: Simd>(f: S::F, k: S::F, g: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let q = horner::<S, 9>(
            f,
            [
                0xbf00_0000,
                0x3eaa_aaa9,
                0xbe80_00f1,
                0x3e4c_d07e,
                0xbe2a_42d8,
                0x3e11_6ac1,
                0xbe06_6736,
                0x3e02_8da1,
                0xbd9d_c695,
            ],
        );
        let upper = S::mul(k, c::<S>(0x3f31_7200));
        let h = S::add(upper, f);
        let l = S::add(S::fma(k, c::<S>(0x35bf_be8e), S::sub(f, S::sub(h, upper))), g);
        S::add(h, S::fma(S::mul(f, f), q, l))
    }
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

/// tanh(a) for 0 ≤ a < 3f6b851f.
#[inline(always)]
pub unsafe fn tanh_near<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let y = S::mul(a, a);
        let q = horner::<S, 7>(
            y,
            [0xbeaa_aaa6, 0x3e08_8766, 0xbd5c_ddb2, 0x3cb1_3d3f, 0xbc06_7dd8, 0x3b25_b194, 0xb9e4_03e9],
        );
        S::fma(S::mul(a, y), q, a)
    }
}

/// tanh(a) for larger a.
#[inline(always)]
pub unsafe fn tanh_far<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (half, one) = (S::min(a, S::splat(10.0)), S::splat(1.0));
        let core = ExpCore::<S>::new(S::add(half, half));
        let power = core.scale_normal(one);
        // e^2a + 1.
        let sum = S::fma(power, core.mantissa_minus_1(), S::add(power, one));
        S::sub(one, S::div(S::splat(2.0), sum))
    }
}

/// erf(a) for 0 ≤ a < 3f547ae1.
#[inline(always)]
pub unsafe fn erf_near<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let q = horner::<S, 6>(
            S::mul(a, a),
            [0x3e03_75d4, 0xbec0_9397, 0x3de7_13aa, 0xbcdb_ac93, 0x3ba6_3a36, 0xba28_e39d],
        );
        S::add(S::mul(a, q), a)
    }
}

/// erf(a) for larger a.
#[inline(always)]
pub unsafe fn erf_far<S: Simd>(a: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let d = S::sub(S::min(a, c::<S>(0x407c_cccd)), c::<S>(0x3f7f_4000));
        let q = horner::<S, 7>(
            d,
            [0xbfeb_c2c5, 0xc028_93ed, 0xbf57_bddf, 0xbd2a_b2c8, 0x3c24_525e, 0xbafb_9c7e, 0x395c_e34f],
        );
        let core = ExpCore::<S>::new(q);
        // −2^n: a product with it is exact.
        let power = core.scale_normal(S::splat(-1.0));
        S::mul_add_exact(power, core.mantissa_minus_1(), S::add(S::splat(1.0), power))
    }
}

/// The first half of sigmoid: e^−|x| as (h + l)·2^n. Returns h, l, and n in `shifted`.
#[inline(always)]
pub unsafe fn sigmoid_power<S: Simd>(x: S::F) -> [S::F; 3] {
    // SAFETY: see the top of the file.
    unsafe {
        let a = S::from_bits(S::or_i(S::bits(x), S::splat_i(i32::MIN)));
        let core = ExpCore::<S>::new(S::max(a, S::splat(-105.0)));
        let (r, square, one) = (core.r, S::mul(core.r, core.r), S::splat(1.0));
        let h = S::add(one, S::fma(square, core.q, r));
        let l = S::fma(square, core.q, S::sub(r, S::sub(h, one)));
        [h, l, core.shifted]
    }
}

/// The second half of sigmoid. Only the sign of x matters.
#[inline(always)]
pub unsafe fn sigmoid_of_power<S: Simd>(x: S::F, [h, l, shifted]: [S::F; 3]) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (one, n) = (S::splat(1.0), S::sub(shifted, c::<S>(0x4b40_0000)));
        let z = S::scale_down(h, n, shifted);
        let v = S::div(one, S::add(one, z));
        let y = S::mul(h, v);
        let remainder = S::fma(neg::<S>(y), z, S::sub(h, y));
        let w = S::scale_down(S::fma(S::fma(l, v, remainder), v, y), n, shifted);
        // x ≥ 0 ? 1 − w : w; for NaN both are NaN.
        S::select(S::lt(x, S::splat(0.0)), w, S::sub(one, w))
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

/// The argument of the sigmoid in gelu's tanh form. It has the sign of x.
#[inline(always)]
pub unsafe fn gelu_tanh_argument<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::mul(x, S::add(S::mul(S::mul(x, x), c::<S>(0x3d92_2279)), c::<S>(0x3fcc_422a))) }
}

/// 1/sqrt(x).
#[inline(always)]
pub unsafe fn rsqrt<S: Simd>(x: S::F) -> S::F {
    // SAFETY: see the top of the file.
    unsafe { S::div(S::splat(1.0), S::sqrt(x)) }
}
