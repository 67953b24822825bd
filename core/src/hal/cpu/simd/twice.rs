//! Two vectors as one. In a function of fifty instructions, each waits for the one before, so the processor is busy
//! only if several vectors are in flight. Written side by side, they are, and the processor need not look far ahead.

use super::Simd;
use std::marker::PhantomData;

/// Pairs of vectors of `S`.
#[derive(Clone, Copy)]
pub struct Twice<S>(PhantomData<S>);

macro_rules! both {
    ($($name:ident($($argument:ident: $type:ident),*) -> $result:ident;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($argument: Self::$type),*) -> Self::$result {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { (S::$name($($argument.0),*), S::$name($($argument.1),*)) }
            }
        )*
    };
}

impl<S: Simd> Simd for Twice<S> {
    const LANES: usize = 2 * S::LANES;
    const TILE_ROWS: usize = S::TILE_ROWS;
    const TILE_VECTORS: usize = S::TILE_VECTORS;
    const FUSED: bool = S::FUSED;
    const PACKS: bool = S::PACKS;
    type F = (S::F, S::F);
    type I = (S::I, S::I);
    type M = (S::M, S::M);
    type D = S::D;

    #[inline(always)]
    unsafe fn across<const STEP: usize>(a: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { if STEP == S::LANES { (a.1, a.0) } else { (S::across::<STEP>(a.0), S::across::<STEP>(a.1)) } }
    }

    both! {
        add(a: F, b: F) -> F;
        sub(a: F, b: F) -> F;
        mul(a: F, b: F) -> F;
        div(a: F, b: F) -> F;
        sqrt(a: F) -> F;
        fmaz(a: F, b: F, c: F) -> F;
        fused(a: F, b: F, c: F) -> F;
        fma(a: F, b: F, c: F) -> F;
        mul_add_exact(a: F, b: F, c: F) -> F;
        min(a: F, b: F) -> F;
        max(a: F, b: F) -> F;
        canonical(a: F) -> F;
        scale(x: F, n: F, shifted: F) -> F;
        scale_down(x: F, n: F, shifted: F) -> F;
        bits(a: F) -> I;
        from_bits(a: I) -> F;
        to_float(a: I) -> F;
        add_i(a: I, b: I) -> I;
        mul_i(a: I, b: I) -> I;
        sub_i(a: I, b: I) -> I;
        and_i(a: I, b: I) -> I;
        xor_i(a: I, b: I) -> I;
        or_i(a: I, b: I) -> I;
        max_i(a: I, b: I) -> I;
        lt(a: F, b: F) -> M;
        eq(a: F, b: F) -> M;
        is_nan(a: F) -> M;
        select(mask: M, yes: F, no: F) -> F;
        select_i(mask: M, yes: I, no: I) -> I;
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { (S::splat(x), S::splat(x)) }
    }
    #[inline(always)]
    unsafe fn splat_i(x: i32) -> Self::I {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { (S::splat_i(x), S::splat_i(x)) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::F {
        // SAFETY: the caller provides as many values as the pair has.
        unsafe { (S::load(p), S::load(p.add(S::LANES))) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: Self::F) {
        // SAFETY: as above.
        unsafe {
            S::store(p, x.0);
            S::store(p.add(S::LANES), x.1);
        }
    }
    #[inline(always)]
    unsafe fn load_head(p: *const f32, n: usize) -> Self::F {
        let first = n.min(S::LANES);
        // SAFETY: reads the first n values in two parts, and no pointer passes their end.
        unsafe { (S::load_head(p, first), S::load_head(p.add(first), n - first)) }
    }
    #[inline(always)]
    unsafe fn store_head(p: *mut f32, n: usize, x: Self::F) {
        let first = n.min(S::LANES);
        // SAFETY: writes the first n values in two parts, and no pointer passes their end.
        unsafe {
            S::store_head(p, first, x.0);
            S::store_head(p.add(first), n - first, x.1);
        }
    }
    #[inline(always)]
    unsafe fn add_to_lanes(lanes: *mut f32, at: usize, x: Self::F) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            S::add_to_lanes(lanes, at, x.0);
            S::add_to_lanes(lanes, at + S::LANES, x.1);
        }
    }
    #[inline(always)]
    unsafe fn pack(p: *mut f32, mask: Self::M, x: Self::F) -> usize {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let first = S::pack(p, mask.0, x.0);
            first + S::pack(p.add(first), mask.1, x.1)
        }
    }
    #[inline(always)]
    unsafe fn unpack(p: *const f32, mask: Self::M, no: Self::F) -> (Self::F, usize) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let (left, first) = S::unpack(p, mask.0, no.0);
            let (right, second) = S::unpack(p.add(first), mask.1, no.1);
            ((left, right), first + second)
        }
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            S::prefetch(p);
            S::prefetch(p.wrapping_add(S::LANES));
        }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: i32>(a: Self::I) -> Self::I {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { (S::shl::<BITS>(a.0), S::shl::<BITS>(a.1)) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: i32>(a: Self::I) -> Self::I {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { (S::sar::<BITS>(a.0), S::sar::<BITS>(a.1)) }
    }
}
