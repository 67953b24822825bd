//! Vectors in plain Rust, for processors without their own kernels.

use super::Simd;
use crate::contract;

/// Vectors of four scalar lanes.
#[derive(Clone, Copy)]
pub struct Portable;

type F = [f32; 4];
type I = [i32; 4];
type M = [bool; 4];

#[inline(always)]
fn zip<A: Copy, B: Copy, R>(a: [A; 4], b: [B; 4], f: impl Fn(A, B) -> R) -> [R; 4] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 2;
    type F = F;
    type I = I;
    type M = M;
    type D = [f64; 2];

    #[inline(always)]
    unsafe fn splat(x: f32) -> F {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn splat_i(x: i32) -> I {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> F {
        // SAFETY: the trait requires four readable values.
        unsafe { p.cast::<F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: F) {
        // SAFETY: the trait requires four writable values.
        unsafe { p.cast::<F>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn load_head(p: *const f32, n: usize) -> F {
        // SAFETY: only the first n values are read.
        std::array::from_fn(|i| if i < n { unsafe { *p.add(i) } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_head(p: *mut f32, n: usize, x: F) {
        for (i, x) in x.into_iter().enumerate().take(n) {
            // SAFETY: only the first n values are written.
            unsafe { p.add(i).write(x) };
        }
    }
    #[inline(always)]
    unsafe fn add(a: F, b: F) -> F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: F, b: F) -> F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: F, b: F) -> F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(a: F, b: F) -> F {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn sqrt(a: F) -> F {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    unsafe fn fmaz(a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| contract::fmaz(a[i], b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn fma(a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn bits(a: F) -> I {
        a.map(|a| a.to_bits() as i32)
    }
    #[inline(always)]
    unsafe fn from_bits(a: I) -> F {
        a.map(|a| f32::from_bits(a as u32))
    }
    #[inline(always)]
    unsafe fn to_float(a: I) -> F {
        a.map(|a| a as f32)
    }
    #[inline(always)]
    unsafe fn add_i(a: I, b: I) -> I {
        zip(a, b, i32::wrapping_add)
    }
    #[inline(always)]
    unsafe fn mul_i(a: I, b: I) -> I {
        zip(a, b, i32::wrapping_mul)
    }
    #[inline(always)]
    unsafe fn sub_i(a: I, b: I) -> I {
        zip(a, b, i32::wrapping_sub)
    }
    #[inline(always)]
    unsafe fn and_i(a: I, b: I) -> I {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn xor_i(a: I, b: I) -> I {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn or_i(a: I, b: I) -> I {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    unsafe fn shl<const BITS: i32>(a: I) -> I {
        a.map(|a| a << BITS)
    }
    #[inline(always)]
    unsafe fn sar<const BITS: i32>(a: I) -> I {
        a.map(|a| a >> BITS)
    }
    #[inline(always)]
    unsafe fn max_i(a: I, b: I) -> I {
        zip(a, b, i32::max)
    }
    #[inline(always)]
    unsafe fn lt(a: F, b: F) -> M {
        zip(a, b, |a, b| a < b)
    }
    #[inline(always)]
    unsafe fn eq(a: F, b: F) -> M {
        zip(a, b, |a, b| a == b)
    }
    #[inline(always)]
    unsafe fn is_nan(a: F) -> M {
        a.map(contract::is_nan)
    }
    #[inline(always)]
    unsafe fn select(mask: M, yes: F, no: F) -> F {
        std::array::from_fn(|i| if mask[i] { yes[i] } else { no[i] })
    }
    #[inline(always)]
    unsafe fn select_i(mask: M, yes: I, no: I) -> I {
        std::array::from_fn(|i| if mask[i] { yes[i] } else { no[i] })
    }
}
