//! Vectors of f32 on every instruction set, behind one trait, so that a kernel is written once.
//!
//! A kernel is a [`Kernel`] whose `run` is generic over [`Simd`] and inlined into one function per instruction set by
//! [`dispatch`]. E operations are single IEEE instructions; [`Simd::fmaz`] is exact in what [`dispatch_m`] runs.

mod angle;
mod double;
mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(not(target_arch = "x86_64"), test, feature = "portable"))]
mod portable;
mod power;
mod rows;
mod tile;
mod twice;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_tile;

pub use angle::sin_or_cos;
pub use double::Doubles;
pub use math::*;
pub use power::{expm1, log1p, pow};
pub use rows::{
    Bounded, LONGEST, TwoSided, VectorFn, VectorFn2, map_bounded, map_row, map_row_raw, map_sides, zip_row,
};
pub use tile::{Chains, MAX_TILE_VECTORS};

#[cfg(not(target_arch = "aarch64"))]
use crate::fpenv::flushing;
use crate::isa::Isa;

/// The most vectors that SUM's 32 lanes take, on the narrowest instruction set.
pub const MAX_SUM_VECTORS: usize = 8;

/// Vectors of one instruction set.
///
/// # Safety
/// Every method may be called only where the instruction set is available; [`dispatch`] sees to it. Pointers are
/// valid for [`Simd::LANES`] values and need no alignment.
#[allow(clippy::missing_safety_doc)] // Said once, above.
pub trait Simd: Copy + 'static {
    /// Values in a vector.
    const LANES: usize;
    /// Rows of a matrix-product tile.
    const TILE_ROWS: usize;
    /// Vectors across a matrix-product tile.
    const TILE_VECTORS: usize;
    /// Whether [`Simd::chains`] of one vector takes fewer columns than a vector has.
    const RAGGED: bool = false;
    /// A vector of f32.
    type F: Copy;
    /// A vector of i32.
    type I: Copy;
    /// What a compare gives.
    type M: Copy;
    /// A vector of f64.
    type D: Doubles;
    /// Whether [`Simd::fused`] is one instruction.
    const FUSED: bool = false;
    /// How many vectors go through a long function side by side (1, 2 or 4): as many as there are registers for.
    const SIDE_BY_SIDE: usize = 1;
    /// Whether [`Simd::add_pairs`] is there.
    const PAIRS: bool = false;
    /// Whether [`Simd::pack`] and [`Simd::unpack`] are there.
    const PACKS: bool = false;

    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn splat_i(x: i32) -> Self::I;
    unsafe fn load(p: *const f32) -> Self::F;
    unsafe fn store(p: *mut f32, x: Self::F);
    /// The first `n` values, at most a vector of them; zeros behind. Nothing else is touched.
    unsafe fn load_head(p: *const f32, n: usize) -> Self::F;
    /// Stores the first `n` values, at most a vector of them. Nothing else is touched.
    unsafe fn store_head(p: *mut f32, n: usize, x: Self::F);

    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sqrt(a: Self::F) -> Self::F;
    /// `a·b + c` of the contract; only in a kernel that [`dispatch_m`] runs.
    unsafe fn fmaz(a: Self::F, b: Self::F, c: Self::F) -> Self::F;

    /// What a matrix product stores: −0 becomes +0, NaN the canonical one.
    #[inline(always)]
    unsafe fn settle(a: Self::F) -> Self::F {
        // SAFETY: the trait's.
        unsafe { Self::canonical(Self::add(a, Self::splat(0.0))) }
    }

    /// The chains of R rows and V vectors: see [`Chains`].
    #[inline(always)]
    unsafe fn chains<const R: usize, const V: usize>(
        t: &Chains,
        p: [[Self::F; MAX_TILE_VECTORS]; R],
    ) -> [[Self::F; MAX_TILE_VECTORS]; R] {
        // SAFETY: the trait's.
        unsafe { tile::chains::<Self, R, V>(t, p) }
    }

    /// `a·b + c`, rounded once; outside `fpenv::flushing`, and only where [`Simd::FUSED`].
    #[inline(always)]
    unsafe fn fused(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: the trait's.
        unsafe { Self::fmaz(a, b, c) }
    }
    /// `a·b + c` where a·b is exact, so that fusing changes nothing; outside `fpenv::flushing`.
    #[inline(always)]
    unsafe fn mul_add_exact(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: the trait's.
        unsafe { if Self::FUSED { Self::fused(a, b, c) } else { Self::add(Self::mul(a, b), c) } }
    }
    /// `b < a ? b : a`: keeps a NaN in a.
    #[inline(always)]
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the trait's.
        unsafe { Self::select(Self::lt(b, a), b, a) }
    }
    /// `a < b ? b : a`: keeps a NaN in a.
    #[inline(always)]
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the trait's.
        unsafe { Self::select(Self::lt(a, b), b, a) }
    }
    /// Any NaN becomes 7fc00000.
    #[inline(always)]
    unsafe fn canonical(a: Self::F) -> Self::F {
        // SAFETY: the trait's.
        unsafe { Self::select(Self::is_nan(a), Self::splat(f32::from_bits(0x7fc0_0000)), a) }
    }
    /// x·2ⁿ, rounded once, for 2⁻²⁰ < |x| < 2²⁰ and an integer n, |n| ≤ 200, as a float and as `shifted` = n + 3·2²².
    #[inline(always)]
    unsafe fn scale(x: Self::F, _n: Self::F, shifted: Self::F) -> Self::F {
        // The first product is exact, so the two are rounded once.
        // SAFETY: the trait's.
        unsafe {
            let n = Self::sub_i(Self::bits(shifted), Self::splat_i(0x4b40_0000));
            let half = Self::sar::<1>(n);
            let bias = Self::splat_i(127);
            let first = Self::from_bits(Self::shl::<23>(Self::add_i(half, bias)));
            let second = Self::from_bits(Self::shl::<23>(Self::add_i(Self::sub_i(n, half), bias)));
            Self::mul(Self::mul(x, first), second)
        }
    }
    /// As [`Simd::scale`], for −180 ≤ n ≤ 20 and |x| < 2²⁰.
    #[inline(always)]
    unsafe fn scale_down(x: Self::F, _n: Self::F, shifted: Self::F) -> Self::F {
        // By 2ⁿ⁺⁶⁴, which is exact unless the result is a zero, and by 2⁻⁶⁴. The shift drops all of 3·2²² but n.
        // SAFETY: the trait's.
        unsafe {
            let first = Self::add_i(Self::shl::<23>(Self::bits(shifted)), Self::splat_i((127 + 64) << 23));
            Self::mul(Self::mul(x, Self::from_bits(first)), Self::splat(f32::from_bits((127 - 64) << 23)))
        }
    }

    unsafe fn bits(a: Self::F) -> Self::I;
    unsafe fn from_bits(a: Self::I) -> Self::F;
    unsafe fn to_float(a: Self::I) -> Self::F;
    unsafe fn add_i(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn sub_i(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn and_i(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn xor_i(a: Self::I, b: Self::I) -> Self::I;
    unsafe fn or_i(a: Self::I, b: Self::I) -> Self::I;
    /// Left.
    unsafe fn shl<const BITS: i32>(a: Self::I) -> Self::I;
    /// Right, arithmetic.
    unsafe fn sar<const BITS: i32>(a: Self::I) -> Self::I;
    unsafe fn max_i(a: Self::I, b: Self::I) -> Self::I;

    /// The sum of the products of both halves of a lane, of 16 bits each, and of what was there before; where [`Simd::PAIRS`] is set.
    unsafe fn add_pairs(_sum: Self::I, _a: Self::I, _b: Self::I) -> Self::I {
        unreachable!("this instruction set adds no pairs")
    }

    unsafe fn lt(a: Self::F, b: Self::F) -> Self::M;
    unsafe fn eq(a: Self::F, b: Self::F) -> Self::M;
    unsafe fn is_nan(a: Self::F) -> Self::M;
    unsafe fn select(mask: Self::M, yes: Self::F, no: Self::F) -> Self::F;
    unsafe fn select_i(mask: Self::M, yes: Self::I, no: Self::I) -> Self::I;

    /// Stores the values that the mask has at `p`, side by side, whatever behind them up to a vector's length, and says
    /// how many they are. Only where [`Simd::PACKS`].
    #[inline(always)]
    unsafe fn pack(_p: *mut f32, _mask: Self::M, _x: Self::F) -> usize {
        0
    }
    /// Puts the values at `p` where the mask is, and says how many they were; a whole vector is read. Only where
    /// [`Simd::PACKS`].
    #[inline(always)]
    unsafe fn unpack(_p: *const f32, _mask: Self::M, no: Self::F) -> (Self::F, usize) {
        (no, 0)
    }
    /// Adds x to the 32 lanes of SUM, x's first value to the lane of index `at`, a multiple of the vector's length.
    #[inline(always)]
    unsafe fn add_to_lanes(lanes: *mut f32, at: usize, x: Self::F) {
        // SAFETY: 32 is a multiple of the vector's length, so the vector ends inside the lanes.
        unsafe {
            let p = lanes.add(at % 32);
            Self::store(p, Self::add(Self::load(p), x));
        }
    }
    /// Moves a square of [`Simd::LANES`] rows and columns of 32-bit values: `to[i][j] = from[j][i]`, with rows that lie
    /// `from_row` and `to_row` values apart.
    #[inline(always)]
    unsafe fn transpose_square(from: *const u32, from_row: usize, to: *mut u32, to_row: usize) {
        for i in 0..Self::LANES {
            for j in 0..Self::LANES {
                // SAFETY: the caller's squares.
                unsafe { to.add(i * to_row + j).write_unaligned(from.add(j * from_row + i).read_unaligned()) };
            }
        }
    }
    /// A hint that a vector at `p`, where nothing need be, is read soon.
    #[inline(always)]
    unsafe fn prefetch(_p: *const f32) {}
}

/// Writes a block out once for each index below 16, as far as a condition on it holds, so that arrays indexed by it are
/// registers whatever the optimisation level.
macro_rules! unroll {
    ($i:ident < $n:expr => $body:block) => {
        unroll!(@ $i, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $i:ident, $n:expr, $body:block, $($index:literal)*) => {
        $({
            #[allow(non_upper_case_globals)]
            const $i: usize = $index;
            // What lies beyond the arrays is beyond the condition too, and is not compiled.
            #[allow(clippy::out_of_bounds_indexing)]
            if $i < $n $body
        })*
    };
}
pub(crate) use unroll;

/// Work written once for every instruction set.
pub trait Kernel {
    /// What it gives.
    type Output;

    /// Does the work. Implementations are `#[inline(always)]`, so that they take on the caller's instruction set.
    ///
    /// # Safety
    /// The instruction set is available, and the kernel's own pointers are valid.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// Runs a kernel with an instruction set. Without the feature `avx512`, where size is what counts, x86-64's baseline runs all but
/// products of f32: memory bounds most of it.
///
/// # Safety
/// The kernel's own pointers are valid.
#[inline]
pub unsafe fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    #[cfg(all(target_arch = "x86_64", not(feature = "avx512")))]
    if isa != Isa::Portable {
        // SAFETY: every x86-64 has it.
        return unsafe { x86::with_sse2(kernel) };
    }
    // SAFETY: passed on.
    unsafe { dispatch_product(isa, kernel) }
}

/// Runs a kernel of a product of f32, or one that asks for its vectors' length, with an instruction set.
///
/// # Safety
/// The kernel's own pointers are valid.
#[inline]
pub unsafe fn dispatch_product<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    // SAFETY: an `Isa` in use was checked against the machine when the device was opened.
    unsafe {
        match isa {
            #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
            Isa::Avx512 => x86::with_avx512(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::with_avx2(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => x86::with_sse2(kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::with_neon(kernel),
            #[cfg(any(not(target_arch = "x86_64"), test, feature = "portable"))]
            _ => kernel.run::<portable::Portable>(),
            // Never available, so never in use: see `Isa::is_available`.
            #[cfg(all(target_arch = "x86_64", not(test), not(feature = "portable")))]
            _ => x86::with_sse2(kernel),
        }
    }
}

/// Runs a kernel that uses [`Simd::add_pairs`], which some processors have as one instruction.
///
/// # Safety
/// As [`dispatch`]'s.
#[inline]
pub unsafe fn dispatch_pairs<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    if isa == Isa::Avx512 && std::is_x86_feature_detected!("avx512vnni") {
        // SAFETY: the processor has both.
        return unsafe { x86::with_vnni(kernel) };
    }
    // SAFETY: passed on.
    unsafe { dispatch(isa, kernel) }
}

/// Runs a kernel of M arithmetic with an instruction set, in its environment. It may run twice, so it computes the same
/// from what it is given whatever its results held before.
///
/// # Safety
/// The kernel's own pointers are valid.
#[inline]
pub unsafe fn dispatch_m<K: Kernel + Copy>(isa: Isa, kernel: K) -> K::Output {
    // SAFETY: passed on.
    unsafe {
        match isa {
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::with_neon_m(kernel),
            // Its emulation wants gradual underflow, as aarch64 flushes before it rounds.
            #[cfg(target_arch = "aarch64")]
            _ => dispatch_product(isa, kernel),
            #[cfg(not(target_arch = "aarch64"))]
            _ => flushing(|| dispatch_product(isa, kernel)),
        }
    }
}
