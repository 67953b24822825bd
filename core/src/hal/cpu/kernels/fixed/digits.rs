//! Cuts an operand into digits, for the units that multiply bytes (`units.rs`).
//!
//! Each operand is cut once, before its product begins. A panel holds 16 lines along K. It stores 64 of K at a time, digit by digit, the
//! lowest digit first. Left digits are signed, and the 64 bytes of a line are contiguous. Right numbers are raised by 128 in each digit,
//! so their bytes are unsigned, and four of K are contiguous for each line, as dot products of four bytes need them. The raise adds a
//! multiple of the left line's sum to each product. That sum is kept, and `bytes.rs` subtracts the multiple at the end.

use super::super::gemm::Matrix;
use super::NOT_FINITE;
use crate::contract::{Precision, fixed_scale};
use crate::hal::cpu::simd::unroll;
use std::arch::x86_64::*;

/// The lines of a panel.
pub const LINES: usize = 16;
/// The part of K that is stored together.
pub const DEPTH: usize = 64;
/// How many panels are cut together if lines lie side by side, so that each read covers a long row.
pub const MANY: usize = 4;
/// The bytes of one digit of a panel over [`DEPTH`] of K.
pub const PLANE: usize = LINES * DEPTH;

/// An operand's panels, with the scale and the sum of the numbers of each line.
#[derive(Clone, Copy)]
pub struct Panels {
    pub bytes: *mut u8,
    pub scales: *mut i32,
    pub sums: *mut i64,
    /// The bytes of a panel.
    pub size: usize,
}

/// Some lines of a matrix, to be cut.
#[derive(Clone, Copy)]
pub struct Lines {
    /// `row` is the step from one line to the next, `column` the step along K. One of them is 1.
    pub from: Matrix,
    /// How many lines: at most [`LINES`], or [`MANY`] times as many if they lie side by side.
    pub there: usize,
    pub k: usize,
    pub precision: Precision,
}

/// Two powers of two for each line; their product is 2 to the line's scale. Both are 0 if the line is not finite.
type Powers = [[f32; LINES]; 2];

impl Lines {
    /// Cuts the lines into the panels of a left or a right operand, starting at `panel`.
    ///
    /// # Safety
    /// The processor has AVX-512 F, BW, DQ and VL. The matrix covers the lines, of one or more of K. The panels are there, and no other
    /// thread uses them.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub unsafe fn cut(self, to: Panels, panel: usize, right: bool) {
        let along = self.from.column == 1;
        let mut powers: [Powers; MANY] = [[[0.0; LINES]; 2]; MANY];
        // SAFETY: as the caller says.
        unsafe {
            let largest = if along { self.largest_along() } else { self.largest_across() };
            for (p, (largest, powers)) in largest.iter().zip(&mut powers).enumerate().take(self.panels()) {
                for (i, &largest) in largest.iter().enumerate() {
                    let scale = fixed_scale(largest as u32, self.precision);
                    *to.scales.add((panel + p) * LINES + i) = scale.unwrap_or(NOT_FINITE);
                    if let Some(scale) = scale {
                        let half = scale >> 1;
                        (powers[0][i], powers[1][i]) = (power(half), power(scale - half));
                    }
                }
            }
            match (along, right) {
                (true, false) => self.left_along(&powers[0], to, panel),
                (true, true) => self.right_along(&powers[0], to, panel),
                (false, false) => self.across::<false>(&powers, to, panel),
                (false, true) => self.across::<true>(&powers, to, panel),
            }
        }
    }

    /// Returns how many panels the lines fill.
    fn panels(&self) -> usize {
        self.there.div_ceil(LINES)
    }

    /// Returns the largest magnitude in each line, as bits. Lines are contiguous.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn largest_along(&self) -> [[i32; LINES]; MANY] {
        let magnitude = _mm512_set1_epi32(0x7fff_ffff);
        let mut all = [[0; LINES]; MANY];
        for (i, largest) in all[0].iter_mut().enumerate().take(self.there) {
            let mut most = [_mm512_setzero_si512(); 4];
            for p in (0..self.k).step_by(64) {
                unroll!(v < 4 => {
                    // SAFETY: the mask leaves out elements after the line's end.
                    let x = unsafe { self.load_along(i, p + 16 * v) };
                    most[v] = _mm512_max_epi32(most[v], _mm512_and_si512(_mm512_castps_si512(x), magnitude));
                });
            }
            let both = [_mm512_max_epi32(most[0], most[1]), _mm512_max_epi32(most[2], most[3])];
            *largest = _mm512_reduce_max_epi32(_mm512_max_epi32(both[0], both[1]));
        }
        all
    }

    /// Returns the largest magnitude in each line, as bits. Lines lie side by side.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn largest_across(&self) -> [[i32; LINES]; MANY] {
        let magnitude = _mm512_set1_epi32(0x7fff_ffff);
        let mut most = [_mm512_setzero_si512(); MANY];
        for p in 0..self.k {
            unroll!(v < MANY => {
                // SAFETY: p is below k.
                let x = unsafe { self.load_across(p, v) };
                most[v] = _mm512_max_epi32(most[v], _mm512_and_si512(_mm512_castps_si512(x), magnitude));
            });
        }
        // SAFETY: as many words.
        unsafe { std::mem::transmute(most) }
    }

    /// Loads 16 elements of line i, starting at p. Elements after its end are 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn load_along(&self, i: usize, p: usize) -> __m512 {
        // SAFETY: the mask selects elements of the lines only.
        unsafe {
            _mm512_maskz_loadu_ps(first(self.k.saturating_sub(p)), self.from.data.wrapping_add(i * self.from.row + p))
        }
    }

    /// Loads element p of every line of a panel. Missing lines, and p ≥ k, give 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn load_across(&self, p: usize, panel: usize) -> __m512 {
        let there = if p < self.k { self.there.saturating_sub(panel * LINES) } else { 0 };
        // SAFETY: the mask selects elements of the lines only.
        unsafe {
            _mm512_maskz_loadu_ps(first(there), self.from.data.wrapping_add(p * self.from.column + panel * LINES))
        }
    }

    /// Stores a left operand's digits, 64 of K at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn left_along(&self, powers: &Powers, to: Panels, panel: usize) {
        let digits = self.precision.digits() as usize;
        // Brings the same digit of four numbers together.
        let alike = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
        // Vectors hold four numbers of each of four vectors in turn; the numbers of one follow each other in a line.
        let in_line = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let signs = _mm512_set1_epi8(i8::MIN);
        for i in 0..LINES {
            let (power, rest) = (_mm512_set1_ps(powers[0][i]), _mm512_set1_ps(powers[1][i]));
            let mut sum = _mm512_setzero_si512();
            let k = if i < self.there { self.k } else { 0 };
            for p in (0..self.k).step_by(DEPTH) {
                let mut bytes = [_mm512_setzero_si512(); 4];
                let mut sums = _mm512_setzero_si512();
                unroll!(v < 4 => {
                    let at = self.from.data.wrapping_add(i * self.from.row + p + 16 * v);
                    // SAFETY: the mask selects elements of a line that is there. The others are 0.
                    let x = unsafe { _mm512_maskz_loadu_ps(first(k.saturating_sub(p + 16 * v)), at) };
                    let q = integers(x, power, rest);
                    sums = _mm512_add_epi32(sums, q);
                    bytes[v] = _mm512_shuffle_epi8(raised(q, digits, false), alike);
                });
                let (low, high) = (_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64::<1>(sums));
                sum = _mm512_add_epi64(sum, _mm512_add_epi64(_mm512_cvtepi32_epi64(low), _mm512_cvtepi32_epi64(high)));
                let [lowest, more] =
                    [_mm512_unpacklo_epi32(bytes[0], bytes[1]), _mm512_unpacklo_epi32(bytes[2], bytes[3])];
                let [third, others] =
                    [_mm512_unpackhi_epi32(bytes[0], bytes[1]), _mm512_unpackhi_epi32(bytes[2], bytes[3])];
                let of_digits = [
                    _mm512_unpacklo_epi64(lowest, more),
                    _mm512_unpackhi_epi64(lowest, more),
                    _mm512_unpacklo_epi64(third, others),
                ];
                unroll!(digit < 3 => {
                    if digit < digits {
                        let line = _mm512_permutexvar_epi32(in_line, of_digits[digit]);
                        let line = if digit + 1 < digits { _mm512_xor_si512(line, signs) } else { line };
                        // SAFETY: the panel has room for a multiple of DEPTH.
                        unsafe {
                            let at = to.bytes.add(panel * to.size + (p / DEPTH * digits + digit) * PLANE + i * DEPTH);
                            _mm512_storeu_si512(at.cast(), line);
                        }
                    }
                });
            }
            // SAFETY: a sum for each line.
            unsafe { *to.sums.add(panel * LINES + i) = _mm512_reduce_add_epi64(sum) };
        }
    }

    /// Stores a right operand's digits. Nothing needs its sums.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn right_along(&self, powers: &Powers, to: Panels, panel: usize) {
        let digits = self.precision.digits() as usize;
        for i in 0..LINES {
            let (power, rest) = (_mm512_set1_ps(powers[0][i]), _mm512_set1_ps(powers[1][i]));
            let k = if i < self.there { self.k } else { 0 };
            // SAFETY: a sum for each line.
            unsafe { *to.sums.add(panel * LINES + i) = 0 };
            for p in (0..self.k.next_multiple_of(DEPTH)).step_by(16) {
                // SAFETY: elements below k of a line that is there; the panel has room for a multiple of DEPTH.
                unsafe {
                    let x = if p < k { self.load_along(i, p) } else { _mm512_setzero_ps() };
                    let u = raised(integers(x, power, rest), digits, true);
                    for digit in 0..digits {
                        let four = _mm512_cvtepi32_epi8(_mm512_srl_epi32(u, _mm_cvtsi32_si128(8 * digit as i32)));
                        let at = to.bytes.add(panel * to.size + (p / DEPTH * digits + digit) * PLANE);
                        let words = at.add(p % DEPTH * LINES + 4 * i).cast::<u32>();
                        let parts: [u32; 4] = std::mem::transmute(four);
                        for (g, part) in parts.into_iter().enumerate() {
                            words.add(g * LINES).write_unaligned(part);
                        }
                    }
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn across<const RIGHT: bool>(&self, powers: &[Powers; MANY], to: Panels, panel: usize) {
        let digits = self.precision.digits() as usize;
        let low = _mm512_set1_epi32(0xff);
        let mut sums = [[_mm512_setzero_si512(); 2]; MANY];
        for p in (0..self.k.next_multiple_of(DEPTH)).step_by(4) {
            for many in 0..self.panels() {
                // SAFETY: as many values.
                let [power, rest] = unsafe { [0, 1].map(|half| _mm512_loadu_ps(powers[many][half].as_ptr())) };
                let mut u = [_mm512_setzero_si512(); 4];
                unroll!(v < 4 => {
                    // SAFETY: zeros from k on.
                    let q = integers(unsafe { self.load_across(p + v, many) }, power, rest);
                    u[v] = raised(q, digits, RIGHT);
                    if !RIGHT {
                        let [sum, other] = &mut sums[many];
                        *sum = _mm512_add_epi64(*sum, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(q)));
                        *other = _mm512_add_epi64(*other, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(q)));
                    }
                });
                for digit in 0..digits {
                    let by = _mm_cvtsi32_si128(8 * digit as i32);
                    let byte = |v: usize| _mm512_and_si512(_mm512_srl_epi32(u[v], by), low);
                    let words = _mm512_or_si512(
                        _mm512_or_si512(byte(0), _mm512_slli_epi32::<8>(byte(1))),
                        _mm512_or_si512(_mm512_slli_epi32::<16>(byte(2)), _mm512_slli_epi32::<24>(byte(3))),
                    );
                    // SAFETY: the panel has room for a multiple of DEPTH.
                    unsafe {
                        let at = to.bytes.add((panel + many) * to.size + (p / DEPTH * digits + digit) * PLANE);
                        if RIGHT {
                            _mm512_storeu_si512(at.add(p % DEPTH * LINES).cast(), words);
                        } else {
                            let signs = _mm512_set1_epi32(if digit + 1 < digits { 0x8080_8080u32 as i32 } else { 0 });
                            let parts: [u32; LINES] = std::mem::transmute(_mm512_xor_si512(words, signs));
                            for (i, part) in parts.into_iter().enumerate() {
                                at.add(i * DEPTH + p % DEPTH).cast::<u32>().write_unaligned(part);
                            }
                        }
                    }
                }
            }
        }
        for (many, sums) in sums.iter().enumerate().take(self.panels()) {
            // SAFETY: a sum for each line.
            unsafe {
                let to = to.sums.add((panel + many) * LINES);
                _mm512_storeu_si512(to.cast(), sums[0]);
                _mm512_storeu_si512(to.add(8).cast(), sums[1]);
            }
        }
    }
}

/// Rounds x·2^scale to the nearest integers. Each multiplication is exact, or its result is so small that the integer is 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn integers(x: __m512, power: __m512, rest: __m512) -> __m512i {
    _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_mul_ps(x, power), rest))
}

/// Adds 128 to all digits, or to all but the highest.
#[inline]
#[target_feature(enable = "avx512f")]
fn raised(q: __m512i, digits: usize, all: bool) -> __m512i {
    _mm512_add_epi32(q, _mm512_set1_epi32(raise(if all { digits } else { digits - 1 })))
}

/// Returns the number whose lowest `digits` digits are 128.
pub fn raise(digits: usize) -> i32 {
    0x80_8080 >> (8 * (3 - digits))
}

/// Returns the mask of the first n of 16 lanes.
#[inline(always)]
fn first(n: usize) -> u16 {
    if n >= 16 { u16::MAX } else { (1 << n) - 1 }
}

/// Returns 2^n, for an n that gives a normal number.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits(((127 + n) as u32) << 23)
}
