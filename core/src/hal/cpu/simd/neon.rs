//! Vectors for aarch64: NEON, which every aarch64 processor has.
//!
//! NEON's flushing decides before rounding whether a result is tiny; the contract decides after. So it flushes a sum in
//! [2⁻¹²⁶·(1 − 2⁻²⁵), 2⁻¹²⁶), where the contract rounds up to 2⁻¹²⁶. M kernels therefore run on [`Neon`] first. If the
//! processor reports that it flushed something, they run again on [`Exact`]; without flushing, the first result is
//! exact. Data without underflow costs one register read per block. (Arm Architecture Reference Manual, pseudocode of
//! `FPRound`: a flushed result sets `FPSR.UFC`.)

use super::{Kernel, Simd};
use crate::fpenv;
use std::arch::aarch64::*;

/// NEON under FPCR.FZ. It is exact if nothing is flushed.
pub type Neon = Vectors<false>;

/// NEON under FPCR.FZ with an exact multiply-add.
type Exact = Vectors<true>;

/// Runs a kernel.
///
/// # Safety
/// The kernel's pointers must be valid.
#[inline(never)]
pub unsafe fn with_neon<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller's promise is passed on, and every aarch64 processor has NEON.
    unsafe { kernel.run::<Neon>() }
}

/// Runs a kernel of M arithmetic in M's floating-point environment.
///
/// # Safety
/// The kernel's pointers must be valid, and the kernel may run twice.
pub unsafe fn with_neon_m<K: Kernel + Copy>(kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on.
    let (output, flushed) = fpenv::flushing_noted(|| unsafe { with_neon(kernel) });
    // SAFETY: the caller's promises are passed on.
    if flushed { fpenv::flushing(|| unsafe { with_exact(kernel) }) } else { output }
}

#[cold]
#[inline(never)]
unsafe fn with_exact<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller's promise is passed on, and every aarch64 processor has NEON.
    unsafe { kernel.run::<Exact>() }
}

/// Vectors of four lanes.
#[derive(Clone, Copy)]
pub struct Vectors<const EXACT: bool>;

/// The methods of one or two instructions.
macro_rules! instructions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $expression:expr;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($argument: $type),*) -> $result {
                // SAFETY: NEON is available, and the trait requires valid pointers.
                unsafe { $expression }
            }
        )*
    };
}

#[allow(unused_unsafe)] // Most intrinsics are safe where NEON is the baseline.
impl<const EXACT: bool> Simd for Vectors<EXACT> {
    const LANES: usize = 4;
    // 24 of the 32 registers. The exact multiply-add needs some registers itself.
    const TILE_ROWS: usize = if EXACT { 4 } else { 12 };
    const TILE_VECTORS: usize = 2;
    type F = float32x4_t;
    type I = int32x4_t;
    type M = uint32x4_t;
    type D = float64x2_t;

    instructions! {
        splat(x: f32) -> float32x4_t = vdupq_n_f32(x);
        splat_i(x: i32) -> int32x4_t = vdupq_n_s32(x);
        load(p: *const f32) -> float32x4_t = vld1q_f32(p);
        store(p: *mut f32, x: float32x4_t) -> () = vst1q_f32(p, x);
        add(a: float32x4_t, b: float32x4_t) -> float32x4_t = vaddq_f32(a, b);
        sub(a: float32x4_t, b: float32x4_t) -> float32x4_t = vsubq_f32(a, b);
        mul(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmulq_f32(a, b);
        div(a: float32x4_t, b: float32x4_t) -> float32x4_t = vdivq_f32(a, b);
        sqrt(a: float32x4_t) -> float32x4_t = vsqrtq_f32(a);
        fmaz(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t =
            if EXACT { fmaz_exact(a, b, c) } else { vfmaq_f32(c, a, b) };
        fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmaq_f32(c, a, b);
        bits(a: float32x4_t) -> int32x4_t = vreinterpretq_s32_f32(a);
        from_bits(a: int32x4_t) -> float32x4_t = vreinterpretq_f32_s32(a);
        to_float(a: int32x4_t) -> float32x4_t = vcvtq_f32_s32(a);
        add_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = vaddq_s32(a, b);
        mul_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = vmulq_s32(a, b);
        sub_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = vsubq_s32(a, b);
        and_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = vandq_s32(a, b);
        xor_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = veorq_s32(a, b);
        or_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = vorrq_s32(a, b);
        max_i(a: int32x4_t, b: int32x4_t) -> int32x4_t = vmaxq_s32(a, b);
        lt(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vcltq_f32(a, b);
        eq(a: float32x4_t, b: float32x4_t) -> uint32x4_t = vceqq_f32(a, b);
        is_nan(a: float32x4_t) -> uint32x4_t = vmvnq_u32(vceqq_f32(a, a));
        select(mask: uint32x4_t, yes: float32x4_t, no: float32x4_t) -> float32x4_t = vbslq_f32(mask, yes, no);
        select_i(mask: uint32x4_t, yes: int32x4_t, no: int32x4_t) -> int32x4_t = vbslq_s32(mask, yes, no);
    }
    #[inline(always)]
    unsafe fn load_head(p: *const f32, n: usize) -> float32x4_t {
        // SAFETY: only the first n values are read.
        unsafe {
            let low = |p: *const f32| vcombine_f32(vld1_f32(p), vdup_n_f32(0.0));
            match n {
                0 => vdupq_n_f32(0.0),
                1 => vsetq_lane_f32::<0>(*p, vdupq_n_f32(0.0)),
                2 => low(p),
                3 => vsetq_lane_f32::<2>(*p.add(2), low(p)),
                _ => vld1q_f32(p),
            }
        }
    }
    #[inline(always)]
    unsafe fn store_head(p: *mut f32, n: usize, x: float32x4_t) {
        // SAFETY: only the first n values are written.
        unsafe {
            match n {
                0 => {}
                1 => vst1q_lane_f32::<0>(p, x),
                2 => vst1_f32(p, vget_low_f32(x)),
                3 => {
                    vst1_f32(p, vget_low_f32(x));
                    vst1q_lane_f32::<2>(p.add(2), x);
                }
                _ => vst1q_f32(p, x),
            }
        }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: i32>(a: int32x4_t) -> int32x4_t {
        // SAFETY: every aarch64 processor has NEON.
        unsafe { vshlq_n_s32::<BITS>(a) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: i32>(a: int32x4_t) -> int32x4_t {
        // SAFETY: every aarch64 processor has NEON.
        unsafe { vshrq_n_s32::<BITS>(a) }
    }
}

/// `fmaz` for results that may be tiny. The same sum scaled by 2²⁴ is far from tiny, and rounds as if the exponent were
/// unbounded. It tells which sums round to ±2⁻¹²⁶; all other results are the processor's.
///
/// Scaling is exact unless `a` or `c` is 2¹⁰⁴ or more. In that case the sum is zero or at least 2⁻⁶⁸, and the scaled
/// sum is not finite, so it doesn't equal 2⁻¹⁰².
#[allow(unused_unsafe)]
#[inline(always)]
unsafe fn fmaz_exact(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
    // 2²⁴, 2⁻²⁴ and 2⁻¹⁰².
    const UP: f32 = 16_777_216.0;
    const DOWN: f32 = 1.0 / UP;
    const LEAST: f32 = f32::MIN_POSITIVE * UP;
    // SAFETY: every aarch64 processor has NEON.
    unsafe {
        let plain = vfmaq_f32(c, a, b);
        let scaled = vfmaq_f32(vmulq_n_f32(c, UP), vmulq_n_f32(a, UP), b);
        let least = vceqq_f32(vabsq_f32(scaled), vdupq_n_f32(LEAST));
        vbslq_f32(least, vmulq_n_f32(scaled, DOWN), plain)
    }
}
