//! Vectors of f32 for every instruction set, behind one trait, so that a kernel is written once.
//!
//! A [`Kernel`]'s `run` is generic over [`Simd`]; [`dispatch`] inlines it into one function per instruction set. E
//! operations are single IEEE instructions. [`Simd::fmaz`] is exact in kernels that [`dispatch_m`] runs.

mod angle;
mod double;
mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(not(target_arch = "x86_64"), test, feature = "portable"))]
mod portable;
mod power;
mod rows;
#[rustfmt::skip]
mod steps;
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
pub use steps::{
    erf_far, erf_near, exp_steps as exp, gelu_argument, sigmoid_of_power, sigmoid_power, tanh_far, tanh_near,
};
pub use tile::{Chains, MAX_TILE_VECTORS};

#[cfg(not(target_arch = "aarch64"))]
use crate::fpenv::flushing;
use crate::isa::Isa;

/// The most vectors that hold SUM's 32 lanes, on the narrowest instruction set.
pub const MAX_SUM_VECTORS: usize = 8;

/// The vectors of one instruction set.
///
/// # Safety
/// Call a method only if the instruction set is available; [`dispatch`] ensures that. Pointers must be valid for
/// [`Simd::LANES`] values, and need no alignment.
#[allow(clippy::missing_safety_doc)] // Said once, above.
pub trait Simd: Copy + 'static {
    /// The values in a vector.
    const LANES: usize;
    /// The rows of a matrix product's tile.
    const TILE_ROWS: usize;
    /// The vectors across a matrix product's tile.
    const TILE_VECTORS: usize;
    /// Whether [`Simd::chains`] of one vector can have fewer columns than the vector has values.
    const RAGGED: bool = false;
    /// A vector of f32.
    type F: Copy;
    /// A vector of i32.
    type I: Copy;
    /// The result of a comparison.
    type M: Copy;
    /// A vector of f64.
    type D: Doubles;
    /// Whether [`Simd::fused`] is one instruction.
    const FUSED: bool = false;
    /// How many vectors a long function processes side by side: 1, 2 or 4, as many as fit in the registers.
    const SIDE_BY_SIDE: usize = 1;
    /// Whether [`Simd::pack`] and [`Simd::unpack`] are available.
    const PACKS: bool = false;

    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn splat_i(x: i32) -> Self::I;
    unsafe fn load(p: *const f32) -> Self::F;
    unsafe fn store(p: *mut f32, x: Self::F);
    /// Loads the first `n` values, at most one vector, and zeros behind them. Reads nothing else.
    unsafe fn load_head(p: *const f32, n: usize) -> Self::F;
    /// Stores the first `n` values, at most one vector. Writes nothing else.
    unsafe fn store_head(p: *mut f32, n: usize, x: Self::F);

    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sqrt(a: Self::F) -> Self::F;
    /// The contract's `a·b + c`. Only in a kernel that [`dispatch_m`] runs.
    unsafe fn fmaz(a: Self::F, b: Self::F, c: Self::F) -> Self::F;

    /// The value that a matrix product stores: −0 becomes +0, and NaN the canonical NaN.
    #[inline(always)]
    unsafe fn settle(a: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { Self::canonical(Self::add(a, Self::splat(0.0))) }
    }

    /// Computes the chains of R rows and V vectors; see [`Chains`].
    #[inline(always)]
    unsafe fn chains<const R: usize, const V: usize>(
        t: &Chains,
        p: [[Self::F; MAX_TILE_VECTORS]; R],
    ) -> [[Self::F; MAX_TILE_VECTORS]; R] {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { tile::chains::<Self, R, V>(t, p) }
    }

    /// `a·b + c`, rounded once. Only outside `fpenv::flushing`, and only with [`Simd::FUSED`].
    #[inline(always)]
    unsafe fn fused(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { Self::fmaz(a, b, c) }
    }
    /// `a·b + c`, rounded once, with gradual underflow. Only outside `fpenv::flushing`.
    #[inline(always)]
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { if Self::FUSED { Self::fused(a, b, c) } else { Self::fmaz(a, b, c) } }
    }
    /// `a·b + c` for an exact a·b, so that fusing changes nothing. Only outside `fpenv::flushing`.
    #[inline(always)]
    unsafe fn mul_add_exact(a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { if Self::FUSED { Self::fused(a, b, c) } else { Self::add(Self::mul(a, b), c) } }
    }
    /// `b < a ? b : a`, which keeps a NaN in a.
    #[inline(always)]
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { Self::select(Self::lt(b, a), b, a) }
    }
    /// `a < b ? b : a`, which keeps a NaN in a.
    #[inline(always)]
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { Self::select(Self::lt(a, b), b, a) }
    }
    /// Replaces every NaN by 7fc00000.
    #[inline(always)]
    unsafe fn canonical(a: Self::F) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { Self::select(Self::is_nan(a), Self::splat(f32::from_bits(0x7fc0_0000)), a) }
    }
    /// x·2ⁿ, rounded once, for 2⁻²⁰ < |x| < 2²⁰ and an integer |n| ≤ 200. n is given as a float, and as `shifted` = n +
    /// 3·2²².
    #[inline(always)]
    unsafe fn scale(x: Self::F, _n: Self::F, shifted: Self::F) -> Self::F {
        // The first product is exact, so both products together round once.
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let n = Self::sub_i(Self::bits(shifted), Self::splat_i(0x4b40_0000));
            let half = Self::sar::<1>(n);
            let bias = Self::splat_i(127);
            let first = Self::from_bits(Self::shl::<23>(Self::add_i(half, bias)));
            let second = Self::from_bits(Self::shl::<23>(Self::add_i(Self::sub_i(n, half), bias)));
            Self::mul(Self::mul(x, first), second)
        }
    }
    /// As [`Simd::scale`], for −180 ≤ n ≤ 20 and |x| < 2²⁰. For n = −191 and a finite x it is 0, without a product that is below the
    /// smallest number, for which processors by Intel take many times as long.
    #[inline(always)]
    unsafe fn scale_down(x: Self::F, _n: Self::F, shifted: Self::F) -> Self::F {
        // First times 2ⁿ⁺⁶⁴, which is exact unless the result is zero, then times 2⁻⁶⁴. The shift removes all of 3·2²²
        // but n.
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let first = Self::add_i(Self::shl::<23>(Self::bits(shifted)), Self::splat_i((127 + 64) << 23));
            Self::mul(Self::mul(x, Self::from_bits(first)), Self::splat(f32::from_bits((127 - 64) << 23)))
        }
    }

    /// Lane i receives lane i ^ STEP, for a STEP that is a power of two below [`Simd::LANES`].
    #[inline(always)]
    unsafe fn across<const STEP: usize>(a: Self::F) -> Self::F {
        let (mut from, mut to) = ([0.0f32; 16], [0.0f32; 16]);
        // SAFETY: a vector has at most 16 lanes.
        unsafe {
            Self::store(from.as_mut_ptr(), a);
            for i in 0..Self::LANES {
                to[i] = from[i ^ STEP];
            }
            Self::load(to.as_ptr())
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
    /// Shifts left.
    unsafe fn shl<const BITS: i32>(a: Self::I) -> Self::I;
    /// Shifts right, and keeps the sign.
    unsafe fn sar<const BITS: i32>(a: Self::I) -> Self::I;
    unsafe fn max_i(a: Self::I, b: Self::I) -> Self::I;
    /// The largest lane, of lanes that are not negative.
    #[inline(always)]
    unsafe fn largest_lane(a: Self::I) -> i32 {
        let mut lanes = [0i32; 16];
        // SAFETY: no vector has more lanes.
        unsafe { Self::store(lanes.as_mut_ptr().cast(), Self::from_bits(a)) };
        lanes.iter().fold(0, |largest, &lane| largest.max(lane))
    }
    /// The sum of all lanes, modulo 2³².
    #[inline(always)]
    unsafe fn sum_lanes(a: Self::I) -> i32 {
        let mut lanes = [0i32; 16];
        // SAFETY: no vector has more lanes.
        unsafe { Self::store(lanes.as_mut_ptr().cast(), Self::from_bits(a)) };
        lanes.iter().fold(0, |sum, &lane| sum.wrapping_add(lane))
    }
    /// Stores the low byte of each lane.
    #[inline(always)]
    unsafe fn store_bytes(p: *mut i8, a: Self::I) {
        let mut lanes = [0i32; 16];
        // SAFETY: no vector has more lanes, and the caller vouches for `p`.
        unsafe {
            Self::store(lanes.as_mut_ptr().cast(), Self::from_bits(a));
            (0..Self::LANES).for_each(|i| p.add(i).write(lanes[i] as i8));
        }
    }

    /// Loads bytes without a sign.
    #[inline(always)]
    unsafe fn load_bytes(p: *const u8) -> Self::I {
        let mut lanes = [0i32; 16];
        // SAFETY: the caller vouches for `p`, and 16 values are at least a vector.
        unsafe {
            (0..Self::LANES).for_each(|i| lanes[i] = i32::from(p.add(i).read()));
            Self::bits(Self::load(lanes.as_ptr().cast()))
        }
    }

    /// Multiplies; keeps the low 32 bits.
    unsafe fn mul_i(a: Self::I, b: Self::I) -> Self::I;
    /// Multiplies the signed 16-bit halves of each lane, and adds both products to `sum`.
    #[inline(always)]
    unsafe fn add_pairs(sum: Self::I, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let low = Self::mul_i(Self::sar::<16>(Self::shl::<16>(a)), Self::sar::<16>(Self::shl::<16>(b)));
            let high = Self::mul_i(Self::sar::<16>(a), Self::sar::<16>(b));
            Self::add_i(sum, Self::add_i(low, high))
        }
    }
    /// Multiplies the four bytes of each lane, unsigned ones of `a` with signed ones of `b`, and adds the products to `sum`. Only in a
    /// kernel that [`dispatch_m_fours`] runs.
    unsafe fn add_fours(_sum: Self::I, _a: Self::I, _b: Self::I) -> Self::I {
        unreachable!("this instruction set adds no products of bytes")
    }
    /// The value of each lane's low 16 bits as f16. The others are ignored.
    #[inline(always)]
    unsafe fn from_half(half: Self::I) -> Self::F {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { half_to_float::<Self>(half) }
    }
    /// Loads 16 bytes of a row for each lane: vector i has bytes 4i to 4i + 3 of every row. Rows are `stride` bytes apart.
    #[inline(always)]
    unsafe fn columns(from: *const u8, stride: usize) -> [Self::I; 4] {
        let mut words = [[0u32; 16]; 4];
        for lane in 0..Self::LANES {
            for (i, words) in words.iter_mut().enumerate() {
                // SAFETY: the caller vouches for 16 bytes of each lane's row.
                words[lane] = unsafe { from.add(lane * stride + 4 * i).cast::<u32>().read_unaligned() };
            }
        }
        // SAFETY: 16 values are at least a vector.
        unsafe {
            let mut columns = [Self::splat_i(0); 4];
            unroll!(i < 4 => { columns[i] = Self::bits(Self::load(words[i].as_ptr().cast())); });
            columns
        }
    }

    unsafe fn lt(a: Self::F, b: Self::F) -> Self::M;
    unsafe fn eq(a: Self::F, b: Self::F) -> Self::M;
    unsafe fn is_nan(a: Self::F) -> Self::M;
    unsafe fn select(mask: Self::M, yes: Self::F, no: Self::F) -> Self::F;
    unsafe fn select_i(mask: Self::M, yes: Self::I, no: Self::I) -> Self::I;

    /// Stores the values under the mask contiguously at `p`, and returns their number. Up to a vector's length, the
    /// memory behind them is overwritten too. Only with [`Simd::PACKS`].
    #[inline(always)]
    unsafe fn pack(_p: *mut f32, _mask: Self::M, _x: Self::F) -> usize {
        0
    }
    /// Puts the values at `p` where the mask is set, and returns their number. A whole vector is read. Only with
    /// [`Simd::PACKS`].
    #[inline(always)]
    unsafe fn unpack(_p: *const f32, _mask: Self::M, no: Self::F) -> (Self::F, usize) {
        (no, 0)
    }
    /// Adds x to SUM's 32 lanes. x's first value goes to lane `at` modulo 32; `at` is a multiple of the vector's
    /// length.
    #[inline(always)]
    unsafe fn add_to_lanes(lanes: *mut f32, at: usize, x: Self::F) {
        // SAFETY: 32 is a multiple of the vector's length, so the vector ends inside the lanes.
        unsafe {
            let p = lanes.add(at % 32);
            Self::store(p, Self::add(Self::load(p), x));
        }
    }
    /// Transposes a square of [`Simd::LANES`] rows and columns of 32-bit values: `to[i][j] = from[j][i]`. `from_row`
    /// and `to_row` are the distances between rows.
    #[inline(always)]
    unsafe fn transpose_square(from: *const u32, from_row: usize, to: *mut u32, to_row: usize) {
        for i in 0..Self::LANES {
            for j in 0..Self::LANES {
                // SAFETY: the caller vouches for both squares.
                unsafe { to.add(i * to_row + j).write_unaligned(from.add(j * from_row + i).read_unaligned()) };
            }
        }
    }
    /// Hints that a vector at `p` will be read soon. `p` need not be valid.
    #[inline(always)]
    unsafe fn prefetch(_p: *const f32) {}
    /// Loads a cache line into the second-level cache, where the first would lose it before its use.
    #[inline(always)]
    unsafe fn prefetch_to_second(_p: *const f32) {}
}

/// Repeats a block for each index below 16 that satisfies a condition. Arrays indexed by it stay in registers at every
/// optimisation level.
macro_rules! unroll {
    ($i:ident < $n:expr => $body:block) => {
        unroll!(@ $i, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $i:ident, $n:expr, $body:block, $($index:literal)*) => {
        $({
            #[allow(non_upper_case_globals)]
            const $i: usize = $index;
            // An index beyond the arrays fails the condition too, so its block is not compiled.
            #[allow(clippy::out_of_bounds_indexing)]
            if $i < $n $body
        })*
    };
}
pub(crate) use unroll;

/// Work that is written once for all instruction sets.
pub trait Kernel {
    /// The result of the work.
    type Output;

    /// Does the work. Implementations are `#[inline(always)]`, so that they use the caller's instruction set.
    ///
    /// # Safety
    /// The instruction set must be available, and the kernel's own pointers valid.
    unsafe fn run<S: Simd>(self) -> Self::Output;
}

/// Whether size matters more than speed, as in the smallest library.
pub const SMALLEST: bool = cfg!(all(target_arch = "x86_64", not(feature = "avx512")));

/// Returns the instruction set of everything but products of f32: in the smallest library x86-64's baseline. Memory limits the
/// speed of most of it.
#[inline]
pub fn beside_products(isa: Isa) -> Isa {
    match isa {
        Isa::Portable => isa,
        _ if SMALLEST => Isa::Sse2,
        _ => isa,
    }
}

/// Runs a kernel that is no product of f32 with an instruction set: see [`beside_products`].
///
/// # Safety
/// The kernel's own pointers must be valid.
#[inline]
pub unsafe fn dispatch<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on. Every x86-64 processor has SSE2.
    unsafe { dispatch_product(beside_products(isa), kernel) }
}

/// Runs a kernel of f32 products, or one that depends on its vectors' length, with an instruction set.
///
/// # Safety
/// The kernel's own pointers must be valid.
#[inline]
pub unsafe fn dispatch_product<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    // SAFETY: opening the device checked its `Isa` against the machine.
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
            // Never reached, because `Isa::is_available` never reports it here.
            #[cfg(all(target_arch = "x86_64", not(test), not(feature = "portable")))]
            _ => x86::with_sse2(kernel),
        }
    }
}

/// Returns whether an instruction set has [`Simd::add_fours`] on this processor.
pub fn adds_fours(isa: Isa) -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    return isa == Isa::Avx512 && std::is_x86_feature_detected!("avx512vnni");
    #[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
    {
        let _ = isa;
        false
    }
}

/// Runs a kernel of M arithmetic that uses [`Simd::add_fours`], in M's floating-point environment.
///
/// # Safety
/// As for [`dispatch`], and [`adds_fours`].
#[inline]
pub unsafe fn dispatch_m_fours<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    // SAFETY: the processor has AVX-512 and VNNI, as the caller says.
    return flushing(|| unsafe { x86::with_vnni(kernel) });
    #[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
    {
        let _ = kernel;
        unreachable!("no instruction set of this build adds products of bytes")
    }
}

/// [`Simd::from_half`] for instruction sets that have no instruction for it.
#[inline(always)]
unsafe fn half_to_float<S: Simd>(half: S::I) -> S::F {
    // SAFETY: the instruction set is available.
    unsafe {
        let magnitude = S::and_i(half, S::splat_i(0x7fff));
        let sign = S::shl::<16>(S::and_i(half, S::splat_i(0x8000)));
        let exponent = S::to_float(S::and_i(half, S::splat_i(0x7c00)));
        let normal = S::add_i(S::shl::<13>(magnitude), S::splat_i(112 << 23));
        // Infinities and NaNs have the largest exponent here too.
        let special = S::add_i(normal, S::splat_i(112 << 23));
        // A subnormal is its integer times 2⁻²⁴.
        let tiny = S::bits(S::mul(S::to_float(magnitude), S::splat(f32::from_bits((127 - 24) << 23))));
        let value = S::select_i(S::eq(exponent, S::splat(0.0)), tiny, normal);
        let value = S::select_i(S::eq(exponent, S::splat(0x7c00 as f32)), special, value);
        S::from_bits(S::or_i(value, sign))
    }
}

/// Runs a kernel of M arithmetic with an instruction set, in M's floating-point environment. The kernel may run twice,
/// so its results must not depend on what their memory held before.
///
/// # Safety
/// The kernel's own pointers must be valid.
#[inline]
pub unsafe fn dispatch_m<K: Kernel + Copy>(isa: Isa, kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on.
    unsafe {
        match isa {
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::with_neon_m(kernel),
            // The emulation needs gradual underflow, because aarch64 flushes before it rounds.
            #[cfg(target_arch = "aarch64")]
            _ => dispatch_product(isa, kernel),
            #[cfg(not(target_arch = "aarch64"))]
            _ => flushing(|| dispatch_product(isa, kernel)),
        }
    }
}
