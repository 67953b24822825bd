//! Vectors of f32 on every instruction set, behind one trait, so that a kernel is written once.
//!
//! A kernel is a [`Kernel`] whose `run` is generic over [`Simd`] and inlined into one function per instruction set by
//! [`dispatch`]. E operations are single IEEE instructions; [`Simd::fmaz`] is exact in what [`dispatch_m`] runs.

mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(not(target_arch = "x86_64"), test, feature = "portable"))]
mod portable;
mod rows;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use math::*;
pub use rows::{VectorFn, VectorFn2, map_row, zip_row};

#[cfg(not(target_arch = "aarch64"))]
use super::fpenv::flushing;
use super::isa::Isa;

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
    /// A vector of f32.
    type F: Copy;
    /// A vector of i32.
    type I: Copy;
    /// What a compare gives.
    type M: Copy;

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

    unsafe fn lt(a: Self::F, b: Self::F) -> Self::M;
    unsafe fn eq(a: Self::F, b: Self::F) -> Self::M;
    unsafe fn is_nan(a: Self::F) -> Self::M;
    unsafe fn select(mask: Self::M, yes: Self::F, no: Self::F) -> Self::F;
    unsafe fn select_i(mask: Self::M, yes: Self::I, no: Self::I) -> Self::I;
}

/// Writes a block out once for each index below 12, as far as a condition on it holds, so that arrays indexed by it are
/// registers whatever the optimisation level.
macro_rules! unroll {
    ($i:ident < $n:expr => $body:block) => {
        unroll!(@ $i, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
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

/// Runs a kernel with an instruction set.
///
/// # Safety
/// The kernel's own pointers are valid.
#[inline]
pub unsafe fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    // SAFETY: an `Isa` in use was checked against the machine when the device was opened.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
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
            _ => dispatch(isa, kernel),
            #[cfg(not(target_arch = "aarch64"))]
            _ => flushing(|| dispatch(isa, kernel)),
        }
    }
}
