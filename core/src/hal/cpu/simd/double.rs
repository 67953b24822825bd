//! Vectors of f64, in which integers below 2⁵³ are exact: for products of fixed-point numbers.

/// The vectors of f64 of one instruction set.
///
/// # Safety
/// As for [`super::Simd`].
#[allow(clippy::missing_safety_doc)] // Said once, there.
pub trait Doubles: Copy + 'static {
    /// The values in a vector.
    const LANES: usize;
    /// Whether the instruction set has 32 vector registers.
    const MANY: bool;

    unsafe fn splat(x: f64) -> Self;
    unsafe fn load(p: *const f64) -> Self;
    unsafe fn store(p: *mut f64, x: Self);
    unsafe fn add(a: Self, b: Self) -> Self;
    unsafe fn sub(a: Self, b: Self) -> Self;
    unsafe fn mul(a: Self, b: Self) -> Self;
    /// a·b + c for an exact a·b, so that fusing changes nothing.
    unsafe fn exact(a: Self, b: Self, c: Self) -> Self;
    /// Loads [`Doubles::LANES`] values of f32.
    unsafe fn widen(p: *const f32) -> Self;
    /// Stores as f32, rounded to the nearest. −0 becomes +0.
    unsafe fn narrow(p: *mut f32, x: Self);
    /// Rounds to 24 bits. The result must be in the range of f32's normal numbers, or 0.
    unsafe fn round(x: Self) -> Self;
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! doubles {
    ($type:ty, $lanes:literal, $many:literal, $splat:ident $load:ident $store:ident $add:ident $sub:ident $mul:ident,
        |$a:ident, $b:ident, $c:ident| $exact:expr, |$p:ident| $widen:expr, |$to:ident, $x:ident| $narrow:expr,
        |$y:ident| $round:expr) => {
        #[allow(unused_unsafe)] // Most intrinsics are safe where their instruction set is the baseline.
        impl Doubles for $type {
            const LANES: usize = $lanes;
            const MANY: bool = $many;

            #[inline(always)]
            unsafe fn splat(x: f64) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn load(p: *const f64) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn store(p: *mut f64, x: Self) {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $store(p, x) }
            }
            #[inline(always)]
            unsafe fn add(a: Self, b: Self) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn sub(a: Self, b: Self) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $sub(a, b) }
            }
            #[inline(always)]
            unsafe fn mul(a: Self, b: Self) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $mul(a, b) }
            }
            #[inline(always)]
            unsafe fn exact($a: Self, $b: Self, $c: Self) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $exact }
            }
            #[inline(always)]
            unsafe fn widen($p: *const f32) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $widen }
            }
            #[inline(always)]
            unsafe fn narrow($to: *mut f32, $x: Self) {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $narrow }
            }
            #[inline(always)]
            unsafe fn round($y: Self) -> Self {
                // SAFETY: the caller keeps the trait's contract.
                unsafe { $round }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Doubles;
    use std::arch::x86_64::*;

    doubles!(__m512d, 8, true, _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd,
        |a, b, c| _mm512_fmadd_pd(a, b, c),
        |p| _mm512_cvtps_pd(_mm256_loadu_ps(p)),
        |p, x| _mm256_storeu_ps(p, _mm256_add_ps(_mm512_cvtpd_ps(x), _mm256_setzero_ps())),
        |x| _mm512_cvtps_pd(_mm512_cvtpd_ps(x)));
    doubles!(__m256d, 4, false, _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd,
        |a, b, c| _mm256_fmadd_pd(a, b, c),
        |p| _mm256_cvtps_pd(_mm_loadu_ps(p)),
        |p, x| _mm_storeu_ps(p, _mm_add_ps(_mm256_cvtpd_ps(x), _mm_setzero_ps())),
        |x| _mm256_cvtps_pd(_mm256_cvtpd_ps(x)));
    // Two values of f32 are moved as one f64.
    doubles!(__m128d, 2, false, _mm_set1_pd _mm_loadu_pd _mm_storeu_pd _mm_add_pd _mm_sub_pd _mm_mul_pd,
        |a, b, c| _mm_add_pd(_mm_mul_pd(a, b), c),
        |p| _mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd(p.cast()))),
        |p, x| _mm_store_sd(p.cast(), _mm_castps_pd(_mm_add_ps(_mm_cvtpd_ps(x), _mm_setzero_ps()))),
        |x| _mm_cvtps_pd(_mm_cvtpd_ps(x)));
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::Doubles;
    use std::arch::aarch64::*;

    doubles!(float64x2_t, 2, true, vdupq_n_f64 vld1q_f64 vst1q_f64 vaddq_f64 vsubq_f64 vmulq_f64,
        |a, b, c| vfmaq_f64(c, a, b),
        |p| vcvt_f64_f32(vld1_f32(p)),
        |p, x| vst1_f32(p, vadd_f32(vcvt_f32_f64(x), vdup_n_f32(0.0))),
        |x| vcvt_f64_f32(vcvt_f32_f64(x)));
}

/// For processors without their own kernels.
#[cfg(any(not(target_arch = "x86_64"), test, feature = "portable"))]
impl Doubles for [f64; 2] {
    const LANES: usize = 2;
    const MANY: bool = false;

    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        [x; 2]
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: the trait requires two readable values.
        unsafe { p.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f64, x: Self) {
        // SAFETY: the trait requires two writable values.
        unsafe { p.cast::<Self>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        [a[0] + b[0], a[1] + b[1]]
    }
    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        [a[0] - b[0], a[1] - b[1]]
    }
    #[inline(always)]
    unsafe fn exact(a: Self, b: Self, c: Self) -> Self {
        [a[0] * b[0] + c[0], a[1] * b[1] + c[1]]
    }
    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        [a[0] * b[0], a[1] * b[1]]
    }
    #[inline(always)]
    unsafe fn widen(p: *const f32) -> Self {
        // SAFETY: the trait requires two readable values.
        unsafe { p.cast::<[f32; 2]>().read_unaligned().map(f64::from) }
    }
    #[inline(always)]
    unsafe fn narrow(p: *mut f32, x: Self) {
        // SAFETY: the trait requires two writable values.
        unsafe { p.cast::<[f32; 2]>().write_unaligned(x.map(|x| x as f32 + 0.0)) }
    }
    #[inline(always)]
    unsafe fn round(x: Self) -> Self {
        x.map(|x| x as f32 as f64)
    }
}
