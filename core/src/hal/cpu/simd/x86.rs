//! Vectors for x86-64: SSE2, AVX2 with FMA3, AVX-512.

use super::tile::{Chains, MAX_TILE_VECTORS};
use super::x86_tile::{chains_avx2, chains_avx512};
use super::{Kernel, Simd, unroll};
use std::arch::x86_64::*;

/// Runs a kernel compiled for AVX2 and FMA3.
///
/// # Safety
/// The processor must have both, and the kernel's pointers must be valid.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on.
    unsafe { kernel.run::<Avx2>() }
}

/// Runs a kernel compiled for AVX-512.
///
/// # Safety
/// The processor must have F, DQ, BW and VL, and the kernel's pointers must be valid.
#[cfg_attr(not(feature = "avx512"), allow(dead_code))] // Without the feature nothing calls it.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,popcnt")]
pub unsafe fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on.
    unsafe { kernel.run::<Avx512>() }
}

/// Runs a kernel compiled for AVX-512 with VNNI, where multiplying and adding pairs is one instruction.
///
/// # Safety
/// The processor must have F, DQ, BW, VL and VNNI, and the kernel's pointers must be valid.
#[cfg(feature = "avx512")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma,popcnt")]
pub unsafe fn with_vnni<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on.
    unsafe { kernel.run::<Avx512>() }
}

/// Runs a kernel compiled for the baseline. It is not inlined, so its code exists once.
///
/// # Safety
/// The kernel's pointers must be valid.
#[inline(never)]
pub unsafe fn with_sse2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the caller's promises are passed on.
    unsafe { kernel.run::<Sse2>() }
}

/// Eight set lanes, then eight clear ones: a window of eight masks the first n lanes.
static WINDOW: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns the mask of the first n of eight lanes; n is at most 8.
#[inline(always)]
unsafe fn first(n: usize) -> __m256i {
    // SAFETY: AVX2 is available, and the window of eight starts between 0 and 8.
    unsafe { _mm256_loadu_si256(WINDOW.as_ptr().add(8 - n).cast()) }
}

/// The baseline of x86-64.
#[derive(Clone, Copy)]
pub struct Sse2;

/// AVX2 with FMA3.
#[derive(Clone, Copy)]
pub struct Avx2;

/// AVX-512 F, DQ, BW and VL.
#[derive(Clone, Copy)]
pub struct Avx512;

/// The methods of one instruction.
macro_rules! instructions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $expression:expr;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($argument: $type),*) -> $result {
                // SAFETY: the instruction set is available, and the trait requires valid pointers.
                unsafe { $expression }
            }
        )*
    };
}

/// Transposes the 4×4 squares of 32-bit values in each 128-bit part of four vectors.
macro_rules! transpose_parts {
    ($rows:ident[$lanes:literal], $low:ident $high:ident $low_pd:ident $high_pd:ident $to_pd:ident $to_ps:ident) => {
        unroll!(g < $lanes / 4 => {
            let [a, b, c, d] = [$rows[4 * g], $rows[4 * g + 1], $rows[4 * g + 2], $rows[4 * g + 3]];
            let (ab_low, ab_high) = ($to_pd($low(a, b)), $to_pd($high(a, b)));
            let (cd_low, cd_high) = ($to_pd($low(c, d)), $to_pd($high(c, d)));
            $rows[4 * g] = $to_ps($low_pd(ab_low, cd_low));
            $rows[4 * g + 1] = $to_ps($high_pd(ab_low, cd_low));
            $rows[4 * g + 2] = $to_ps($low_pd(ab_high, cd_high));
            $rows[4 * g + 3] = $to_ps($high_pd(ab_high, cd_high));
        });
    };
}

impl Simd for Avx2 {
    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 2;
    type F = __m256;
    type I = __m256i;
    type M = __m256;
    type D = __m256d;

    const FUSED: bool = true;
    const SIDE_BY_SIDE: usize = 2;

    #[inline(always)]
    unsafe fn across<const STEP: usize>(a: __m256) -> __m256 {
        // SAFETY: the instruction set is available.
        unsafe {
            match STEP {
                4 => _mm256_permute2f128_ps::<1>(a, a),
                2 => _mm256_permute_ps::<0b01_00_11_10>(a),
                _ => _mm256_permute_ps::<0b10_11_00_01>(a),
            }
        }
    }

    instructions! {
        splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        splat_i(x: i32) -> __m256i = _mm256_set1_epi32(x);
        load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        store(p: *mut f32, x: __m256) -> () = _mm256_storeu_ps(p, x);
        load_head(p: *const f32, n: usize) -> __m256 = _mm256_maskload_ps(p, first(n));
        // On AMD's processors a masked store takes twelve cycles or more, with any mask.
        store_head(p: *mut f32, n: usize, x: __m256) -> () =
            if n == Self::LANES { _mm256_storeu_ps(p, x) } else { _mm256_maskstore_ps(p, first(n), x) };
        add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
        mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        div(a: __m256, b: __m256) -> __m256 = _mm256_div_ps(a, b);
        sqrt(a: __m256) -> __m256 = _mm256_sqrt_ps(a);
        fmaz(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fused(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        // If one operand is NaN, the instruction returns its second one, which is a here.
        min(a: __m256, b: __m256) -> __m256 = _mm256_min_ps(b, a);
        max(a: __m256, b: __m256) -> __m256 = _mm256_max_ps(b, a);
        prefetch(p: *const f32) -> () = _mm_prefetch::<_MM_HINT_T0>(p.cast());
        prefetch_to_second(p: *const f32) -> () = _mm_prefetch::<_MM_HINT_T1>(p.cast());
        bits(a: __m256) -> __m256i = _mm256_castps_si256(a);
        from_bits(a: __m256i) -> __m256 = _mm256_castsi256_ps(a);
        to_float(a: __m256i) -> __m256 = _mm256_cvtepi32_ps(a);
        add_i(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        load_bytes(p: *const u8) -> __m256i = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast()));
        mul_i(a: __m256i, b: __m256i) -> __m256i = _mm256_mullo_epi32(a, b);
        sub_i(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        add_pairs(sum: __m256i, a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
        and_i(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        xor_i(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
        or_i(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        max_i(a: __m256i, b: __m256i) -> __m256i = _mm256_max_epi32(a, b);
        lt(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_LT_OQ>(a, b);
        eq(a: __m256, b: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b);
        is_nan(a: __m256) -> __m256 = _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a);
        select(mask: __m256, yes: __m256, no: __m256) -> __m256 = _mm256_blendv_ps(no, yes, mask);
        select_i(mask: __m256, yes: __m256i, no: __m256i) -> __m256i =
            _mm256_blendv_epi8(no, yes, _mm256_castps_si256(mask));
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut i8, a: __m256i) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let low = _mm256_and_si256(a, _mm256_set1_epi32(0xff));
            let halves = _mm_packs_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256::<1>(low));
            _mm_storel_epi64(p.cast(), _mm_packus_epi16(halves, halves));
        }
    }
    #[inline(always)]
    unsafe fn chains<const R: usize, const V: usize>(
        t: &Chains,
        p: [[Self::F; MAX_TILE_VECTORS]; R],
    ) -> [[Self::F; MAX_TILE_VECTORS]; R] {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { chains_avx2::<R, V>(t, p) }
    }
    #[inline(always)]
    unsafe fn transpose_square(from: *const u32, from_row: usize, to: *mut u32, to_row: usize) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let mut rows = [Self::splat(0.0); 8];
            unroll!(i < 8 => {
                rows[i] = Self::load(from.add(i * from_row).cast());
            });
            transpose_parts!(rows[8], _mm256_unpacklo_ps _mm256_unpackhi_ps _mm256_unpacklo_pd _mm256_unpackhi_pd _mm256_castps_pd _mm256_castpd_ps);
            unroll!(i < 4 => {
                let (above, below) = (rows[i], rows[i + 4]);
                Self::store(to.add(i * to_row).cast(), _mm256_permute2f128_ps::<0x20>(above, below));
                Self::store(to.add((i + 4) * to_row).cast(), _mm256_permute2f128_ps::<0x31>(above, below));
            });
        }
    }
    #[inline(always)]
    unsafe fn columns(from: *const u8, stride: usize) -> [__m256i; 4] {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let mut rows = [Self::splat(0.0); 4];
            // Rows i and i + 4 are the two parts of a vector, so a transposition in each part makes columns.
            unroll!(i < 4 => {
                let first = _mm256_castps128_ps256(_mm_loadu_ps(from.add(i * stride).cast()));
                rows[i] = _mm256_insertf128_ps::<1>(first, _mm_loadu_ps(from.add((i + 4) * stride).cast()));
            });
            transpose_parts!(rows[4], _mm256_unpacklo_ps _mm256_unpackhi_ps _mm256_unpacklo_pd _mm256_unpackhi_pd _mm256_castps_pd _mm256_castpd_ps);
            [Self::bits(rows[0]), Self::bits(rows[1]), Self::bits(rows[2]), Self::bits(rows[3])]
        }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: i32>(a: __m256i) -> __m256i {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { _mm256_slli_epi32::<BITS>(a) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: i32>(a: __m256i) -> __m256i {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { _mm256_srai_epi32::<BITS>(a) }
    }
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    const TILE_ROWS: usize = 12;
    const RAGGED: bool = true;
    const TILE_VECTORS: usize = 2;
    type F = __m512;
    type I = __m512i;
    type M = __mmask16;
    type D = __m512d;

    const FUSED: bool = true;
    const SIDE_BY_SIDE: usize = 4;
    const PACKS: bool = true;

    #[inline(always)]
    unsafe fn across<const STEP: usize>(a: __m512) -> __m512 {
        // SAFETY: the instruction set is available.
        unsafe {
            match STEP {
                8 => _mm512_shuffle_f32x4::<0b01_00_11_10>(a, a),
                4 => _mm512_shuffle_f32x4::<0b10_11_00_01>(a, a),
                2 => _mm512_permute_ps::<0b01_00_11_10>(a),
                _ => _mm512_permute_ps::<0b10_11_00_01>(a),
            }
        }
    }

    instructions! {
        splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        splat_i(x: i32) -> __m512i = _mm512_set1_epi32(x);
        load(p: *const f32) -> __m512 = _mm512_loadu_ps(p);
        store(p: *mut f32, x: __m512) -> () = _mm512_storeu_ps(p, x);
        load_head(p: *const f32, n: usize) -> __m512 = _mm512_maskz_loadu_ps(((1u32 << n) - 1) as u16, p);
        store_head(p: *mut f32, n: usize, x: __m512) -> () = _mm512_mask_storeu_ps(p, ((1u32 << n) - 1) as u16, x);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        div(a: __m512, b: __m512) -> __m512 = _mm512_div_ps(a, b);
        sqrt(a: __m512) -> __m512 = _mm512_sqrt_ps(a);
        fmaz(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fused(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        // If one operand is NaN, the instruction returns its second one, which is a here.
        min(a: __m512, b: __m512) -> __m512 = _mm512_min_ps(b, a);
        max(a: __m512, b: __m512) -> __m512 = _mm512_max_ps(b, a);
        // By class: the table's two low digits, for NaNs, select the first operand; all others select the second.
        canonical(a: __m512) -> __m512 = _mm512_fixupimm_ps::<0>(
            _mm512_set1_ps(f32::from_bits(0x7fc0_0000)), a, _mm512_set1_epi32(0x1111_1100)
        );
        scale(x: __m512, n: __m512, _shifted: __m512) -> __m512 = _mm512_scalef_ps(x, n);
        scale_down(x: __m512, n: __m512, _shifted: __m512) -> __m512 =
            _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(n, _mm512_set1_ps(-180.0)), x, n);
        prefetch(p: *const f32) -> () = _mm_prefetch::<_MM_HINT_T0>(p.cast());
        prefetch_to_second(p: *const f32) -> () = _mm_prefetch::<_MM_HINT_T1>(p.cast());
        bits(a: __m512) -> __m512i = _mm512_castps_si512(a);
        from_bits(a: __m512i) -> __m512 = _mm512_castsi512_ps(a);
        to_float(a: __m512i) -> __m512 = _mm512_cvtepi32_ps(a);
        add_i(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        mul_i(a: __m512i, b: __m512i) -> __m512i = _mm512_mullo_epi32(a, b);
        sub_i(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        add_pairs(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
        add_fours(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_dpbusd_epi32(sum, a, b);
        from_half(half: __m512i) -> __m512 = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(half));
        and_i(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        xor_i(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        or_i(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        max_i(a: __m512i, b: __m512i) -> __m512i = _mm512_max_epi32(a, b);
        largest_lane(a: __m512i) -> i32 = _mm512_reduce_max_epi32(a);
        sum_lanes(a: __m512i) -> i32 = _mm512_reduce_add_epi32(a);
        load_bytes(p: *const u8) -> __m512i = _mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast()));
        store_bytes(p: *mut i8, a: __m512i) -> () = _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(a));
        lt(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        eq(a: __m512, b: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        is_nan(a: __m512) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a);
        select(mask: __mmask16, yes: __m512, no: __m512) -> __m512 = _mm512_mask_blend_ps(mask, no, yes);
        select_i(mask: __mmask16, yes: __m512i, no: __m512i) -> __m512i = _mm512_mask_blend_epi32(mask, no, yes);
        // The table selects by class: zeros become +0 (8), NaNs become the canonical NaN (0), all others stay (1).
        settle(a: __m512) -> __m512 = _mm512_fixupimm_ps::<0>(
            _mm512_set1_ps(f32::from_bits(0x7fc0_0000)), a, _mm512_set1_epi32(0x1111_1800));
    }
    #[inline(always)]
    unsafe fn chains<const R: usize, const V: usize>(
        t: &Chains,
        p: [[Self::F; MAX_TILE_VECTORS]; R],
    ) -> [[Self::F; MAX_TILE_VECTORS]; R] {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { chains_avx512::<R, V>(t, p) }
    }
    #[inline(always)]
    unsafe fn pack(p: *mut f32, mask: __mmask16, x: __m512) -> usize {
        // The form that stores directly is many times slower on some processors.
        // SAFETY: the caller keeps the trait's contract.
        unsafe { Self::store(p, _mm512_maskz_compress_ps(mask, x)) };
        mask.count_ones() as usize
    }
    #[inline(always)]
    unsafe fn unpack(p: *const f32, mask: __mmask16, no: __m512) -> (__m512, usize) {
        // SAFETY: the caller keeps the trait's contract.
        (unsafe { _mm512_mask_expand_ps(no, mask, Self::load(p)) }, mask.count_ones() as usize)
    }
    #[inline(always)]
    unsafe fn transpose_square(from: *const u32, from_row: usize, to: *mut u32, to_row: usize) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let mut rows = [Self::splat(0.0); 16];
            unroll!(i < 16 => {
                rows[i] = Self::load(from.add(i * from_row).cast());
            });
            transpose_parts!(rows[16], _mm512_unpacklo_ps _mm512_unpackhi_ps _mm512_unpacklo_pd _mm512_unpackhi_pd _mm512_castps_pd _mm512_castpd_ps);
            // Then transpose the square of 128-bit parts.
            unroll!(i < 4 => {
                let [a, b, c, d] = [rows[i], rows[i + 4], rows[i + 8], rows[i + 12]];
                let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
                let (cd_even, cd_odd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xdd>(c, d));
                let to = to.add(i * to_row);
                Self::store(to.cast(), _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even));
                Self::store(to.add(4 * to_row).cast(), _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd));
                Self::store(to.add(8 * to_row).cast(), _mm512_shuffle_f32x4::<0xdd>(ab_even, cd_even));
                Self::store(to.add(12 * to_row).cast(), _mm512_shuffle_f32x4::<0xdd>(ab_odd, cd_odd));
            });
        }
    }
    #[inline(always)]
    unsafe fn columns(from: *const u8, stride: usize) -> [__m512i; 4] {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let mut rows = [Self::splat(0.0); 4];
            // As for AVX2, with four parts.
            unroll!(i < 4 => {
                let first = _mm512_castps128_ps512(_mm_loadu_ps(from.add(i * stride).cast()));
                let two = _mm512_insertf32x4::<1>(first, _mm_loadu_ps(from.add((i + 4) * stride).cast()));
                let three = _mm512_insertf32x4::<2>(two, _mm_loadu_ps(from.add((i + 8) * stride).cast()));
                rows[i] = _mm512_insertf32x4::<3>(three, _mm_loadu_ps(from.add((i + 12) * stride).cast()));
            });
            transpose_parts!(rows[4], _mm512_unpacklo_ps _mm512_unpackhi_ps _mm512_unpacklo_pd _mm512_unpackhi_pd _mm512_castps_pd _mm512_castpd_ps);
            [Self::bits(rows[0]), Self::bits(rows[1]), Self::bits(rows[2]), Self::bits(rows[3])]
        }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: i32>(a: __m512i) -> __m512i {
        // The immediate form needs a u32 constant, which BITS can't become. The constant count compiles to it.
        // SAFETY: the caller keeps the trait's contract.
        unsafe { _mm512_sll_epi32(a, _mm_cvtsi32_si128(BITS)) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: i32>(a: __m512i) -> __m512i {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { _mm512_sra_epi32(a, _mm_cvtsi32_si128(BITS)) }
    }
}

impl Simd for Sse2 {
    const LANES: usize = 4;
    // Small, because an emulated multiply-add is some sixty instructions.
    const TILE_ROWS: usize = 2;
    const TILE_VECTORS: usize = 2;
    type F = __m128;
    type I = __m128i;
    type M = __m128;
    type D = __m128d;

    #[inline(always)]
    unsafe fn across<const STEP: usize>(a: __m128) -> __m128 {
        // SAFETY: the instruction set is available.
        unsafe {
            match STEP {
                2 => _mm_shuffle_ps::<0b01_00_11_10>(a, a),
                _ => _mm_shuffle_ps::<0b10_11_00_01>(a, a),
            }
        }
    }

    instructions! {
        splat(x: f32) -> __m128 = _mm_set1_ps(x);
        splat_i(x: i32) -> __m128i = _mm_set1_epi32(x);
        load(p: *const f32) -> __m128 = _mm_loadu_ps(p);
        store(p: *mut f32, x: __m128) -> () = _mm_storeu_ps(p, x);
        add(a: __m128, b: __m128) -> __m128 = _mm_add_ps(a, b);
        sub(a: __m128, b: __m128) -> __m128 = _mm_sub_ps(a, b);
        mul(a: __m128, b: __m128) -> __m128 = _mm_mul_ps(a, b);
        div(a: __m128, b: __m128) -> __m128 = _mm_div_ps(a, b);
        sqrt(a: __m128) -> __m128 = _mm_sqrt_ps(a);
        fmaz(a: __m128, b: __m128, c: __m128) -> __m128 = fmaz_sse2(a, b, c);
        fma(a: __m128, b: __m128, c: __m128) -> __m128 = fma_sse2(a, b, c);
        // If one operand is NaN, the instruction returns its second one, which is a here.
        min(a: __m128, b: __m128) -> __m128 = _mm_min_ps(b, a);
        max(a: __m128, b: __m128) -> __m128 = _mm_max_ps(b, a);
        prefetch(p: *const f32) -> () = _mm_prefetch::<_MM_HINT_T0>(p.cast());
        prefetch_to_second(p: *const f32) -> () = _mm_prefetch::<_MM_HINT_T1>(p.cast());
        bits(a: __m128) -> __m128i = _mm_castps_si128(a);
        from_bits(a: __m128i) -> __m128 = _mm_castsi128_ps(a);
        to_float(a: __m128i) -> __m128 = _mm_cvtepi32_ps(a);
        add_i(a: __m128i, b: __m128i) -> __m128i = _mm_add_epi32(a, b);
        sub_i(a: __m128i, b: __m128i) -> __m128i = _mm_sub_epi32(a, b);
        add_pairs(sum: __m128i, a: __m128i, b: __m128i) -> __m128i = _mm_add_epi32(sum, _mm_madd_epi16(a, b));
        and_i(a: __m128i, b: __m128i) -> __m128i = _mm_and_si128(a, b);
        xor_i(a: __m128i, b: __m128i) -> __m128i = _mm_xor_si128(a, b);
        or_i(a: __m128i, b: __m128i) -> __m128i = _mm_or_si128(a, b);
        max_i(a: __m128i, b: __m128i) -> __m128i =
            Self::select_i(_mm_castsi128_ps(_mm_cmpgt_epi32(a, b)), a, b);
        lt(a: __m128, b: __m128) -> __m128 = _mm_cmplt_ps(a, b);
        eq(a: __m128, b: __m128) -> __m128 = _mm_cmpeq_ps(a, b);
        is_nan(a: __m128) -> __m128 = _mm_cmpunord_ps(a, a);
        select(mask: __m128, yes: __m128, no: __m128) -> __m128 =
            _mm_or_ps(_mm_and_ps(mask, yes), _mm_andnot_ps(mask, no));
        select_i(mask: __m128, yes: __m128i, no: __m128i) -> __m128i = _mm_castps_si128(
            Self::select(mask, _mm_castsi128_ps(yes), _mm_castsi128_ps(no))
        );
    }
    #[inline(always)]
    unsafe fn load_bytes(p: *const u8) -> __m128i {
        // SAFETY: the caller vouches for four bytes.
        unsafe {
            let (zero, bytes) = (_mm_setzero_si128(), _mm_cvtsi32_si128(p.cast::<i32>().read_unaligned()));
            _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero)
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut i8, a: __m128i) {
        // SAFETY: the caller vouches for four bytes.
        unsafe {
            let low = _mm_and_si128(a, _mm_set1_epi32(0xff));
            let halves = _mm_packs_epi32(low, low);
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(_mm_packus_epi16(halves, halves)));
        }
    }
    #[inline(always)]
    unsafe fn load_head(p: *const f32, n: usize) -> __m128 {
        // SAFETY: at most two loads read the first n values.
        unsafe {
            match n {
                0 => _mm_setzero_ps(),
                1 => _mm_load_ss(p),
                2 => _mm_castpd_ps(_mm_load_sd(p.cast())),
                3 => _mm_movelh_ps(_mm_castpd_ps(_mm_load_sd(p.cast())), _mm_load_ss(p.add(2))),
                _ => _mm_loadu_ps(p),
            }
        }
    }
    #[inline(always)]
    unsafe fn store_head(p: *mut f32, n: usize, x: __m128) {
        // SAFETY: at most two stores write the first n values.
        unsafe {
            match n {
                0 => {}
                1 => _mm_store_ss(p, x),
                2 => _mm_store_sd(p.cast(), _mm_castps_pd(x)),
                3 => {
                    _mm_store_sd(p.cast(), _mm_castps_pd(x));
                    _mm_store_ss(p.add(2), _mm_movehl_ps(x, x));
                }
                _ => _mm_storeu_ps(p, x),
            }
        }
    }
    #[inline(always)]
    unsafe fn transpose_square(from: *const u32, from_row: usize, to: *mut u32, to_row: usize) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let mut rows = [Self::splat(0.0); 4];
            unroll!(i < 4 => {
                rows[i] = Self::load(from.add(i * from_row).cast());
            });
            transpose_parts!(rows[4], _mm_unpacklo_ps _mm_unpackhi_ps _mm_unpacklo_pd _mm_unpackhi_pd _mm_castps_pd _mm_castpd_ps);
            unroll!(i < 4 => {
                Self::store(to.add(i * to_row).cast(), rows[i]);
            });
        }
    }
    #[inline(always)]
    unsafe fn columns(from: *const u8, stride: usize) -> [__m128i; 4] {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let mut rows = [Self::splat(0.0); 4];
            unroll!(i < 4 => { rows[i] = _mm_loadu_ps(from.add(i * stride).cast()); });
            transpose_parts!(rows[4], _mm_unpacklo_ps _mm_unpackhi_ps _mm_unpacklo_pd _mm_unpackhi_pd _mm_castps_pd _mm_castpd_ps);
            [Self::bits(rows[0]), Self::bits(rows[1]), Self::bits(rows[2]), Self::bits(rows[3])]
        }
    }
    #[inline(always)]
    unsafe fn mul_i(a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let even = _mm_mul_epu32(a, b);
            let odd = _mm_mul_epu32(_mm_srli_epi64::<32>(a), _mm_srli_epi64::<32>(b));
            _mm_unpacklo_epi32(_mm_shuffle_epi32::<0x88>(even), _mm_shuffle_epi32::<0x88>(odd))
        }
    }
    #[inline(always)]
    unsafe fn shl<const BITS: i32>(a: __m128i) -> __m128i {
        // SAFETY: SSE2 is x86-64's baseline.
        unsafe { _mm_slli_epi32::<BITS>(a) }
    }
    #[inline(always)]
    unsafe fn sar<const BITS: i32>(a: __m128i) -> __m128i {
        // SAFETY: SSE2 is x86-64's baseline.
        unsafe { _mm_srai_epi32::<BITS>(a) }
    }
}

/// `fmaz` without FMA3. Both halves compute in double precision: the product is exact, the sum is rounded to odd and
/// then narrowed once. Under FTZ and DAZ the conversions flush as the contract requires, because x86 decides after
/// rounding what is tiny. (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
/// rounding to odd", 2008.)
///
/// It is some sixty instructions. A build without AVX-512's kernels should be small and calls it: that saves 11 KB, and
/// products without FMA3 take a tenth longer. C's calling convention passes the vectors in registers.
#[cfg_attr(feature = "avx512", inline(always))]
#[cfg_attr(not(feature = "avx512"), inline(never))]
#[allow(improper_ctypes_definitions)]
unsafe extern "C" fn fmaz_sse2(a: __m128, b: __m128, c: __m128) -> __m128 {
    // SAFETY: SSE2 is x86-64's baseline.
    unsafe {
        let low = fmaz_half(a, b, c);
        let high = fmaz_half(_mm_movehl_ps(a, a), _mm_movehl_ps(b, b), _mm_movehl_ps(c, c));
        _mm_movelh_ps(low, high)
    }
}

/// [`fmaz_sse2`] for functions, which have many of it: a call keeps them small.
#[inline(never)]
#[allow(improper_ctypes_definitions)]
unsafe extern "C" fn fma_sse2(a: __m128, b: __m128, c: __m128) -> __m128 {
    // SAFETY: SSE2 is x86-64's baseline.
    unsafe { fmaz_sse2(a, b, c) }
}

/// Two lanes of [`fmaz_sse2`].
#[inline(always)]
unsafe fn fmaz_half(a: __m128, b: __m128, c: __m128) -> __m128 {
    // SAFETY: SSE2 is x86-64's baseline.
    unsafe {
        let product = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b));
        let c = _mm_cvtps_pd(c);
        let sum = _mm_add_pd(product, c);
        // Knuth's two-sum.
        let t = _mm_sub_pd(sum, product);
        let error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, t)), _mm_sub_pd(c, t));
        let zero = _mm_setzero_pd();
        // The compares are ordered: an infinite or NaN sum has a NaN error, which changes nothing.
        let inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmplt_pd(zero, error)));
        let bits = _mm_castpd_si128(sum);
        let one = _mm_set1_epi64x(1);
        let even = _mm_andnot_si128(bits, one);
        // +1 if the error points away from zero, −1 (two's complement) if towards it, which differing signs show.
        let differ = _mm_xor_si128(bits, _mm_castpd_si128(error));
        let towards = _mm_shuffle_epi32::<0b11_11_01_01>(_mm_srai_epi32::<31>(differ));
        let step = _mm_sub_epi64(_mm_xor_si128(even, towards), towards);
        let step = _mm_and_si128(step, inexact);
        _mm_cvtpd_ps(_mm_castsi128_pd(_mm_add_epi64(bits, step)))
    }
}
