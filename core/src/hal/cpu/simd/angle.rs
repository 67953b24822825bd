//! Sine and cosine on vectors: what stands around their [`steps`].

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::math::abs;
use super::{Simd, steps};

/// The sine or cosine of x below the contract's limit of large angles. For other x, the result is unspecified.
#[inline(always)]
pub unsafe fn sin_or_cos<S: Simd>(x: S::F, cosine: bool) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let (h, l, t) = steps::small_angle::<S>(abs::<S>(x));
        let q = S::add_i(S::bits(t), S::splat_i(cosine as i32));
        let (sin, cos) = (steps::sine::<S>(h, l), steps::cosine::<S>(h, l));
        // q's last bit as a sign bit; the bit before it follows below.
        let odd = S::from_bits(S::or_i(S::shl::<31>(q), S::bits(S::splat(1.0))));
        let y = S::select(S::lt(odd, S::splat(0.0)), cos, sin);
        let sign = S::splat_i(i32::MIN);
        let of_x = S::and_i(S::bits(x), S::splat_i(if cosine { 0 } else { i32::MIN }));
        S::from_bits(S::xor_i(S::bits(y), S::xor_i(of_x, S::and_i(S::shl::<30>(q), sign))))
    }
}
