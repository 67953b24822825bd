//! A block of a product of fixed-point numbers, computed in tiles, in f64: a product of two 24-bit numbers has 46 bits, so 128 of them add
//! up exactly. A total is two f64s, which are exact.

use super::super::gemm::{Block, Matrix};
use super::NOT_FINITE;
use crate::contract::{NAN, Precision};
use crate::hal::cpu::simd::{Doubles, Kernel, Simd, unroll};
use crate::interrupt::Looks;
use std::marker::PhantomData;

/// The length of K that is rounded and laid out at a time.
const DEPTH: usize = 256;
/// This many products of 24-bit numbers add up exactly in one f64.
pub const EXACT: usize = 128;
/// x + ROUND − ROUND rounds x to an integer. The lowest bits of x + ROUND are that integer.
pub const ROUND: f64 = 6_755_399_441_055_744.0;
/// x + PART − PART rounds x to a multiple of 2²⁶.
pub const PART: f64 = ROUND * 67_108_864.0;
/// The most columns of a tile.
const WIDEST: usize = 24;

/// Returns the rows and columns of a tile.
pub struct TileShape;

impl Kernel for TileShape {
    type Output = [usize; 2];

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> [usize; 2] {
        if S::D::MANY { Numbers::<S::D, 8, 3>::SHAPE } else { Numbers::<S::D, 6, 2>::SHAPE }
    }
}

/// Offsets in a task's scratch, in f32s: the rounded operands, then the totals.
#[derive(Clone, Copy)]
pub struct Room {
    b: usize,
    high: usize,
    low: usize,
    pub floats: usize,
}

impl Room {
    pub fn new([tile_rows, tile_columns]: [usize; 2], rows: usize, columns: usize, k: usize) -> Room {
        let depth = k.min(DEPTH);
        let (rows, columns) = (rows.next_multiple_of(tile_rows), columns.next_multiple_of(tile_columns));
        let b = 2 * rows * depth;
        let high = b + 2 * columns * depth;
        let low = high + 2 * rows * columns;
        Room { b, high, low, floats: (low + 2 * rows * columns).next_multiple_of(16) }
    }
}

/// Computes the totals of a block, and stores them rounded in the block's output.
pub struct Tiles<'a> {
    pub block: &'a Block,
    pub a_scales: *const i32,
    pub b_scales: *const i32,
    pub precision: Precision,
    pub scratch: *mut f32,
}

impl Kernel for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller's promise covers this.
        unsafe { if S::D::MANY { self.tiles::<S::D, 8, 3>() } else { self.tiles::<S::D, 6, 2>() } }
    }
}

impl Tiles<'_> {
    #[inline(always)]
    unsafe fn tiles<D: Doubles, const R: usize, const V: usize>(self) {
        let Block { m, n, k, a, b, out, out_row, .. } = *self.block;
        let [rows, width] = Numbers::<D, R, V>::SHAPE;
        let room = Room::new([rows, width], m, n, k);
        let (down, across) = (m.div_ceil(rows), n.div_ceil(width));
        let mut looks = Looks::NEW;
        // SAFETY: the scratch has room for all parts, the operands cover m, n and k, and only this call uses `out`.
        unsafe {
            let place = |at: usize| self.scratch.add(at).cast::<f64>();
            let (cut_a, cut_b, high, low) = (place(0), place(room.b), place(room.high), place(room.low));
            (0..2 * down * rows * across * width).for_each(|i| *high.add(i) = 0.0);
            for start in (0..k).step_by(DEPTH) {
                let depth = DEPTH.min(k - start);
                let from = Matrix { data: b.data.add(start * b.row), row: b.column, column: b.row };
                for j in 0..across {
                    let lines = Lines::new(from, n, j * width, width, depth, self.b_scales);
                    Numbers::<D, R, V>::cut(&lines, cut_b.add(j * depth * width));
                }
                let from = Matrix { data: a.data.add(start * a.column), ..a };
                for i in 0..down {
                    let lines = Lines::new(from, m, i * rows, rows, depth, self.a_scales);
                    Numbers::<D, R, V>::cut(&lines, cut_a.add(i * depth * rows));
                }
                for j in 0..across {
                    for i in 0..down {
                        let to = (j * down + i) * rows * width;
                        let (cut_a, cut_b) = (cut_a.add(i * depth * rows), cut_b.add(j * depth * width));
                        Numbers::<D, R, V>::multiply(cut_a, cut_b, depth, self.precision, high.add(to), low.add(to));
                        if looks.before(depth * rows * width) {
                            return;
                        }
                    }
                }
            }
            for i in 0..m {
                for j in 0..n {
                    let at = ((j / width * down + i / rows) * rows + i % rows) * width + j % width;
                    let scales = (*self.a_scales.add(i), *self.b_scales.add(j));
                    *out.add(i * out_row + j) = rounded(*high.add(at), *low.add(at), scales);
                }
            }
        }
    }
}

/// Some rows of a matrix, with `depth` elements each, and each row's factor.
struct Lines {
    from: Matrix,
    /// The number of rows that exist. The others are zeros.
    there: usize,
    width: usize,
    depth: usize,
    factors: [f64; WIDEST],
}

impl Lines {
    /// Describes the rows `first..first + width` of `rows`.
    ///
    /// # Safety
    /// `first` is a row of the matrix, and its rows have scales.
    #[inline(always)]
    unsafe fn new(from: Matrix, rows: usize, first: usize, width: usize, depth: usize, scales: *const i32) -> Lines {
        let there = width.min(rows - first);
        let mut factors = [0.0; WIDEST];
        for (i, factor) in factors.iter_mut().enumerate().take(there) {
            // SAFETY: the caller promises scales for the matrix's rows, and `first + i` is one of them.
            let scale = unsafe { *scales.add(first + i) };
            *factor = if scale == NOT_FINITE { 0.0 } else { power(scale) };
        }
        // SAFETY: the caller promises that `first` is a row of the matrix.
        let from = Matrix { data: unsafe { from.data.add(first * from.row) }, ..from };
        Lines { from, there, width, depth, factors }
    }

    /// Returns element p of row i, times the row's factor, plus [`ROUND`].
    ///
    /// # Safety
    /// The element exists.
    #[inline(always)]
    unsafe fn raised(&self, p: usize, i: usize) -> f64 {
        // SAFETY: the caller promises that the element exists.
        unsafe { *self.from.data.add(i * self.from.row + p * self.from.column) as f64 * self.factors[i] + ROUND }
    }
}

/// Tiles of R rows and V vectors. A total's first part is a multiple of 2²⁶.
struct Numbers<D, const R: usize, const V: usize>(PhantomData<D>);

impl<D: Doubles, const R: usize, const V: usize> Numbers<D, R, V> {
    const SHAPE: [usize; 2] = [R, V * D::LANES];

    /// Stores the numbers of all rows, one index along K after the other.
    #[inline(always)]
    unsafe fn cut(lines: &Lines, to: *mut f64) {
        const MOST: usize = 24;
        let &Lines { from, there, width, depth, .. } = lines;
        // SAFETY: the elements exist, and `to` has room for their numbers.
        unsafe {
            if there < width {
                (0..depth * width).for_each(|at| *to.add(at) = 0.0);
            }
            if from.row == 1 {
                for p in 0..depth {
                    if there == MOST {
                        // The compiler knows the length of this loop.
                        (0..MOST).for_each(|i| *to.add(p * MOST + i) = lines.raised(p, i) - ROUND);
                    } else {
                        (0..there).for_each(|i| *to.add(p * width + i) = lines.raised(p, i) - ROUND);
                    }
                }
            } else {
                for i in 0..there {
                    (0..depth).for_each(|p| *to.add(p * width + i) = lines.raised(p, i) - ROUND);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn multiply(a: *const f64, b: *const f64, depth: usize, of: Precision, high: *mut f64, low: *mut f64) {
        let run = if of == Precision::Fixed24 { EXACT } else { DEPTH };
        let mut start = 0;
        // SAFETY: the operands have `depth` rows of R numbers and of V vectors, and the totals R rows of V vectors.
        unsafe {
            while start < depth {
                let end = depth.min(start + run);
                let mut sums = [[D::splat(0.0); V]; R];
                for p in start..end {
                    let mut right = [D::splat(0.0); V];
                    unroll!(v < V => { right[v] = D::load(b.add((p * V + v) * D::LANES)); });
                    unroll!(i < R => {
                        let left = D::splat(*a.add(p * R + i));
                        unroll!(v < V => { sums[i][v] = D::exact(left, right[v], sums[i][v]); });
                    });
                }
                unroll!(i < R => {
                    unroll!(v < V => {
                        let (at, sum) = ((i * V + v) * D::LANES, sums[i][v]);
                        let part = D::sub(D::add(sum, D::splat(PART)), D::splat(PART));
                        D::store(high.add(at), D::add(D::load(high.add(at)), part));
                        D::store(low.add(at), D::add(D::load(low.add(at)), D::sub(sum, part)));
                    });
                });
                start = end;
            }
        }
    }
}

/// Returns 2^n. n must be such that 2^n is a normal number.
#[inline(always)]
pub fn power(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// Returns a result: the sum of both parts, rounded to 24 bits and scaled.
#[inline(always)]
fn rounded(high: f64, low: f64, (s, t): (i32, i32)) -> f32 {
    if s == NOT_FINITE || t == NOT_FINITE {
        return NAN;
    }
    (odd_sum(high, low) as f32 as f64 * power(-s - t)) as f32 + 0.0
}

/// Returns the sum of both parts, rounded to odd. A second rounding to 24 bits is then as if from the exact sum (see
/// `contract::matrix`).
#[inline(always)]
pub fn odd_sum(high: f64, low: f64) -> f64 {
    let sum = high + low;
    let other = sum - high;
    let error = (high - (sum - other)) + (low - other);
    if error != 0.0 && sum.to_bits() & 1 == 0 {
        let away = (error > 0.0) == (sum > 0.0);
        f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
    } else {
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::fixed_round;

    #[test]
    fn sums_of_two_parts_are_rounded_like_integers() {
        let mut state = 5u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as i64
        };
        for round in 0..200_000 {
            let (high, low) = ((next() - (1 << 52)) >> (next() % 53), (next() - (1 << 52)) >> (next() % 53));
            // Includes ties, and numbers next to ties.
            let low = if round % 3 == 0 { (next() % 3) - 1 + (1 << (next() % 50)) } else { low };
            let scale = (next() % 400) as i32 - 200;
            let want = fixed_round((high as i128 * (1 << 26)) + low as i128, -scale);
            let got = rounded(high as f64 * 67_108_864.0, low as f64, (scale, 0));
            assert_eq!(got.to_bits(), want.to_bits(), "{high}·2²⁶ + {low}, scale {scale}");
        }
        assert!(rounded(0.0, 0.0, (NOT_FINITE, 3)).is_nan() && rounded(0.0, 0.0, (3, NOT_FINITE)).is_nan());
    }

    #[test]
    fn a_run_of_the_largest_numbers_is_exact() {
        let most = 8_355_711u64;
        assert!(most * most * EXACT as u64 <= 1 << 53 && most * most * (EXACT as u64 + 2) > 1 << 53);
        assert!(32_639 * 32_639 * DEPTH as u64 <= 1 << 53);
    }
}
