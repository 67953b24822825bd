//! Sine and cosine on vectors: the same primitives in the same order as `contract/angle.rs`.

// SAFETY, for every function here: a kernel calls it, so the instruction set of `S` is available.
#![allow(clippy::missing_safety_doc)]

use super::Simd;
use super::math::{abs, c, horner};

/// The sine or cosine of x below the contract's limit of large angles. For other x, the result is unspecified.
#[inline(always)]
pub unsafe fn sin_or_cos<S: Simd>(x: S::F, cosine: bool) -> S::F {
    // SAFETY: see the top of the file.
    unsafe {
        let magic = c::<S>(0x4b40_0000);
        let a = abs::<S>(x);
        let t = S::add(S::mul(a, c::<S>(0x3f22_f983)), magic);
        let n = S::sub(t, magic);
        let q = S::add_i(S::bits(t), S::splat_i(cosine as i32));
        let r = S::mul_add_exact(n, c::<S>(0xbfc9_1000), a);
        let r = S::mul_add_exact(n, c::<S>(0x3696_0000), r);
        let w = S::mul(n, c::<S>(0x3288_8000));
        let h = S::sub(r, w);
        let l = S::sub(S::sub(S::sub(r, h), w), S::mul(n, c::<S>(0x2c34_611a)));
        let z = S::mul(h, h);
        let half = S::mul(S::splat(0.5), z);
        let one = S::sub(S::splat(1.0), half);
        let cubic = S::mul(S::mul(h, z), horner::<S, 3>(z, [0xbe2a_aaa3, 0x3c08_83be, 0xb94c_aae3]));
        let sin = S::add(h, S::add(cubic, S::mul(l, one)));
        let fourth = S::mul(S::mul(z, z), horner::<S, 3>(z, [0x3d2a_aaa5, 0xbab6_060d, 0x37cc_f072]));
        let tail = S::sub(fourth, S::mul(h, l));
        let cos = S::add(one, S::add(S::sub(S::sub(S::splat(1.0), one), half), tail));
        // q's last bit as a sign bit; the bit before it follows below.
        let odd = S::from_bits(S::or_i(S::shl::<31>(q), S::bits(S::splat(1.0))));
        let y = S::select(S::lt(odd, S::splat(0.0)), cos, sin);
        let sign = S::splat_i(i32::MIN);
        let of_x = S::and_i(S::bits(x), S::splat_i(if cosine { 0 } else { i32::MIN }));
        S::from_bits(S::xor_i(S::bits(y), S::xor_i(of_x, S::and_i(S::shl::<30>(q), sign))))
    }
}
