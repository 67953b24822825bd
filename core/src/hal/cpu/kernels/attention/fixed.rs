//! The products of attention in exact integers, in f64: sums of 128 products of 24-bit integers are exact, and a block has 64 keys.
//!
//! A block's keys and values are cut to integers for each group of queries. Scores are computed transposed, as those of f32 are.

use super::QUERIES;
use super::group::Group;
use crate::contract::{KEY_BLOCK, Precision, fixed_scale, value_factor, value_scale};
use crate::hal::cpu::kernels::fixed::exact::{EXACT, PART, ROUND, odd_sum, power};
use crate::hal::cpu::simd::{Doubles, Kernel, Simd, dispatch, unroll};
use crate::ops::AttentionPlan;

/// The columns that lie side by side in a cut operand, at least those of a tile.
const PANEL: usize = 16;

/// A group's integers, and the powers of two that they are multiplied by. NaN stands for a line that is not finite.
#[derive(Clone, Copy)]
pub(super) struct Integers {
    precision: Precision,
    /// `[panel][width][PANEL]`.
    queries: *mut f64,
    /// `[KEY_BLOCK][width]`.
    keys: *mut f64,
    /// `[panel][KEY_BLOCK][PANEL]`.
    values: *mut f64,
    /// `[panel][KEY_BLOCK][PANEL]`, where a panel has queries side by side.
    weights: *mut f64,
    of_queries: *mut f64,
    of_keys: *mut f64,
    of_weights: *mut f64,
    /// What the weights of a key are multiplied by before they are cut.
    of_values: *mut f32,
}

impl Integers {
    /// Returns the scratch that a group needs, in f32s.
    pub fn room(plan: &AttentionPlan) -> usize {
        let lines =
            (QUERIES + KEY_BLOCK) * plan.width + KEY_BLOCK * (plan.value_width.next_multiple_of(PANEL) + QUERIES);
        2 * (lines + 2 * QUERIES + KEY_BLOCK) + KEY_BLOCK
    }

    /// Divides a group's scratch.
    ///
    /// # Safety
    /// `at` has the room that [`Integers::room`] asks for, and is aligned for f64.
    pub unsafe fn new(precision: Precision, plan: &AttentionPlan, at: *mut f32) -> Integers {
        let mut at = at.cast::<f64>();
        let mut part = |length| {
            let part = at;
            // SAFETY: the caller vouches for the room of all parts.
            at = unsafe { at.add(length) };
            part
        };
        Integers {
            precision,
            queries: part(QUERIES * plan.width),
            keys: part(KEY_BLOCK * plan.width),
            values: part(KEY_BLOCK * plan.value_width.next_multiple_of(PANEL)),
            weights: part(KEY_BLOCK * QUERIES),
            of_queries: part(QUERIES),
            of_weights: part(QUERIES),
            of_keys: part(KEY_BLOCK),
            of_values: part(KEY_BLOCK / 2).cast(),
        }
    }

    /// Cuts the group's queries, which have been transposed.
    ///
    /// # Safety
    /// As of [`Group::compute`].
    pub unsafe fn cut_queries(&self, group: &Group<'_>, padded: usize) {
        let (from, to) = (group.transposed, self.queries);
        let lines = Lines { from, depth: group.plan.width, padded, factors: None };
        // SAFETY: the queries have `padded` columns and `width` rows, of which the integers are as many.
        unsafe {
            dispatch(group.exec.isa, CutLines { lines, precision: self.precision, and: 0, to, scales: self.of_queries })
        };
    }

    /// Multiplies the keys of a block by the queries.
    ///
    /// # Safety
    /// As of [`Group::compute`]. The block has these keys.
    pub unsafe fn scores(&self, group: &Group<'_>, start: usize, count: usize, padded: usize) {
        // SAFETY: passed on.
        unsafe { dispatch(group.exec.isa, Scores { integers: self, group, start, count, padded }) };
    }

    /// Multiplies the weights of a block by the values.
    ///
    /// # Safety
    /// As of [`Group::compute`]. The block has these keys.
    pub unsafe fn results(&self, group: &Group<'_>, start: usize, count: usize) {
        let (isa, precision) = (group.exec.isa, self.precision);
        let padded = group.rows.next_multiple_of(super::MAX_LANES);
        // SAFETY: the values are there, and the scores have `padded` columns and as many rows as the block has keys.
        unsafe {
            dispatch(isa, CutValues { integers: self, group, start, count });
            let lines = Lines { from: group.scores, depth: count, padded, factors: Some(self.of_values) };
            let (to, scales) = (self.weights, self.of_weights);
            dispatch(isa, CutLines { lines, precision, and: value_scale(precision), to, scales });
            dispatch(isa, Results { integers: self, group, count });
        }
    }
}

/// Lines that lie side by side, transposed: `[depth][QUERIES]`, of which `padded` are there.
struct Lines {
    from: *mut f32,
    depth: usize,
    padded: usize,
    /// What each index along the depth is multiplied by first, in place.
    factors: Option<*const f32>,
}

/// Cuts lines. Panels of `to` have the same depth as the lines.
struct CutLines {
    lines: Lines,
    precision: Precision,
    /// What is added to the lines' scales in `scales`.
    and: i32,
    to: *mut f64,
    /// One power of two for each line.
    scales: *mut f64,
}

impl Kernel for CutLines {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let CutLines { lines: Lines { from, depth, padded, factors }, precision, and, to, scales } = self;
        // SAFETY: the lines, their scales and their integers cover `padded`, a multiple of every vector's lanes.
        unsafe {
            for line in (0..padded).step_by(S::LANES) {
                let mut largest = S::splat_i(0);
                for p in 0..depth {
                    let at = from.add(p * QUERIES + line);
                    let mut x = S::load(at);
                    if let Some(factors) = factors {
                        x = S::mul(x, S::splat(*factors.add(p)));
                        S::store(at, x);
                    }
                    largest = S::max_i(largest, S::and_i(S::bits(x), S::splat_i(0x7fff_ffff)));
                }
                let mut lanes = [0.0f32; 16];
                S::store(lanes.as_mut_ptr(), S::from_bits(largest));
                let mut powers = [0.0f64; 16];
                for lane in 0..S::LANES {
                    let scale = fixed_scale(lanes[lane].to_bits(), precision);
                    powers[lane] = scale.map_or(0.0, power);
                    scales.add(line + lane).write(scale.map_or(f64::NAN, |scale| power(-scale - and)));
                }
                for part in (0..S::LANES).step_by(S::D::LANES) {
                    let at = line + part;
                    let to = to.add(at / PANEL * depth * PANEL + at % PANEL);
                    let power = S::D::load(powers.as_ptr().add(part));
                    for p in 0..depth {
                        S::D::store(to.add(p * PANEL), integers::<S::D>(from.add(p * QUERIES + at), power));
                    }
                }
            }
        }
    }
}

/// Loads a vector of numbers, multiplies it by `power` and rounds it to integers.
#[inline(always)]
unsafe fn integers<D: Doubles>(from: *const f32, power: D) -> D {
    // SAFETY: the caller vouches for a vector of numbers.
    unsafe { D::sub(D::exact(D::widen(from), power, D::splat(ROUND)), D::splat(ROUND)) }
}

/// Returns the largest `bits & 0x7fffffff` of some numbers.
#[inline(always)]
unsafe fn largest<S: Simd>(from: *const f32, n: usize) -> u32 {
    // SAFETY: the caller vouches for n numbers.
    unsafe {
        let mut largest = S::splat_i(0);
        for at in (0..n).step_by(S::LANES) {
            let x = if at + S::LANES <= n { S::load(from.add(at)) } else { S::load_head(from.add(at), n - at) };
            largest = S::max_i(largest, S::and_i(S::bits(x), S::splat_i(0x7fff_ffff)));
        }
        S::largest_lane(largest) as u32
    }
}

/// Cuts n numbers of one line.
#[inline(always)]
unsafe fn cut<D: Doubles>(from: *const f32, n: usize, power: f64, to: *mut f64) {
    // SAFETY: the caller vouches for n numbers and integers.
    unsafe {
        let mut at = 0;
        while at + D::LANES <= n {
            D::store(to.add(at), integers::<D>(from.add(at), D::splat(power)));
            at += D::LANES;
        }
        (at..n).for_each(|at| to.add(at).write(*from.add(at) as f64 * power + ROUND - ROUND));
    }
}

/// Cuts a block's keys and multiplies them by the queries.
struct Scores<'a> {
    integers: &'a Integers,
    group: &'a Group<'a>,
    start: usize,
    count: usize,
    padded: usize,
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Scores { integers: &Integers { precision, queries, keys, of_queries, of_keys, .. }, group: g, .. } = self;
        let width = g.plan.width;
        // SAFETY: the keys are there. Their integers, factors and scores have KEY_BLOCK rows, which is a multiple of a tile's.
        unsafe {
            for j in 0..self.count {
                let from = g.k.add((self.start + j) * width);
                let scale = fixed_scale(largest::<S>(from, width), precision);
                of_keys.add(j).write(scale.map_or(f64::NAN, |scale| power(-scale)));
                cut::<S::D>(from, width, scale.map_or(0.0, power), keys.add(j * width));
            }
            for j in self.count..self.count.next_multiple_of(8) {
                of_keys.add(j).write(0.0);
                keys.add(j * width).write_bytes(0, width);
            }
            let long = width > EXACT && precision == Precision::Fixed24;
            let run = if long { EXACT } else { width };
            for query in (0..self.padded).step_by(2 * S::D::LANES) {
                let b = queries.add(query / PANEL * width * PANEL + query % PANEL);
                for j in (0..self.count).step_by(8) {
                    let a = Left { data: keys.add(j * width), row: width, step: 1 };
                    let (of_rows, of_columns) = (of_keys.add(j), of_queries.add(query));
                    let to = Scaled { of_rows, of_columns, data: g.scores.add(j * QUERIES + query), row: QUERIES };
                    tile::<S::D>(a, b, width, run, to);
                }
            }
        }
    }
}

/// Cuts a block's values, and computes the factors of its keys' weights.
struct CutValues<'a> {
    integers: &'a Integers,
    group: &'a Group<'a>,
    start: usize,
    count: usize,
}

impl Kernel for CutValues<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let CutValues { integers: &Integers { precision, values, of_values, .. }, group: g, start, count } = self;
        let width = g.plan.value_width;
        // SAFETY: the values are there, and so is the room for their integers.
        unsafe {
            for j in 0..count {
                let from = g.v.add((start + j) * width);
                let (scale, factor) = value_factor(largest::<S>(from, width), precision);
                of_values.add(j).write(factor);
                for column in (0..width).step_by(PANEL) {
                    let to = values.add((column / PANEL * KEY_BLOCK + j) * PANEL);
                    let there = if scale.is_some() { PANEL.min(width - column) } else { 0 };
                    if there < PANEL {
                        to.write_bytes(0, PANEL);
                    }
                    cut::<S::D>(from.add(column), there, scale.map_or(0.0, power), to);
                }
            }
        }
    }
}

/// Multiplies a block's weights by its values.
struct Results<'a> {
    integers: &'a Integers,
    group: &'a Group<'a>,
    count: usize,
}

impl Kernel for Results<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Results { integers: &Integers { values, weights, of_weights, .. }, group: g, count } = self;
        let (width, lanes) = (g.plan.value_width, S::D::LANES);
        // SAFETY: weights have QUERIES columns and values whole panels, and both have `count` rows.
        unsafe {
            for column in (0..width).step_by(2 * lanes) {
                let b = values.add(column / PANEL * KEY_BLOCK * PANEL + column % PANEL);
                for row in (0..g.rows).step_by(8) {
                    let a = Left { data: weights.add(row / PANEL * count * PANEL + row % PANEL), row: 1, step: PANEL };
                    let mut out = [[0.0f32; PANEL]; 8];
                    let (of_rows, of_columns) = (of_weights.add(row), ONES.as_ptr());
                    let to = Scaled { of_rows, of_columns, data: out.as_mut_ptr().cast(), row: PANEL };
                    tile::<S::D>(a, b, count, count, to);
                    let there = (2 * lanes).min(width - column);
                    for (i, out) in out.iter().enumerate().take(g.rows - row) {
                        g.block_out.add((row + i) * width + column).copy_from_nonoverlapping(out.as_ptr(), there);
                    }
                }
            }
        }
    }
}

/// The left operand of a tile: eight rows.
#[derive(Clone, Copy)]
struct Left {
    data: *const f64,
    row: usize,
    step: usize,
}

/// A tile's results, and the powers of two that they are multiplied by.
#[derive(Clone, Copy)]
struct Scaled {
    of_rows: *const f64,
    of_columns: *const f64,
    data: *mut f32,
    row: usize,
}

const ONES: [f64; PANEL] = [1.0; PANEL];

impl Scaled {
    /// Rounds and stores a vector of row i.
    #[inline(always)]
    unsafe fn store<D: Doubles>(&self, i: usize, v: usize, sum: D) {
        // SAFETY: the row and the vector are the tile's.
        unsafe {
            let at = v * D::LANES;
            let scale = D::mul(D::splat(*self.of_rows.add(i)), D::load(self.of_columns.add(at)));
            D::narrow(self.data.add(i * self.row + at), D::mul(D::round(sum), scale));
        }
    }
}

/// Multiplies eight rows by two vectors of a panel. Sums over `run` products are exact; several of them have two parts.
#[inline(always)]
unsafe fn tile<D: Doubles>(a: Left, b: *const f64, depth: usize, run: usize, to: Scaled) {
    // SAFETY: the caller vouches for operands and results.
    unsafe {
        if D::MANY {
            return rows::<D, 8>(a, b, depth, run, to);
        }
        rows::<D, 4>(a, b, depth, run, to);
        let below = Left { data: a.data.add(4 * a.row), ..a };
        rows::<D, 4>(below, b, depth, run, Scaled { of_rows: to.of_rows.add(4), data: to.data.add(4 * to.row), ..to });
    }
}

#[inline(always)]
unsafe fn rows<D: Doubles, const R: usize>(a: Left, b: *const f64, depth: usize, run: usize, to: Scaled) {
    // SAFETY: as of `tile`.
    unsafe {
        if depth <= run {
            let sums = sums::<D, R>(a, b, depth);
            unroll!(i < R => {
                unroll!(v < 2 => { to.store(i, v, sums[i][v]); });
            });
            return;
        }
        let (mut high, mut low) = ([[0.0f64; PANEL]; R], [[0.0f64; PANEL]; R]);
        for start in (0..depth).step_by(run) {
            let a = Left { data: a.data.add(start * a.step), ..a };
            let sums = sums::<D, R>(a, b.add(start * PANEL), run.min(depth - start));
            unroll!(i < R => {
                unroll!(v < 2 => {
                    let high = high[i].as_mut_ptr().add(v * D::LANES);
                    let low = low[i].as_mut_ptr().add(v * D::LANES);
                    let part = D::sub(D::add(sums[i][v], D::splat(PART)), D::splat(PART));
                    D::store(high, D::add(D::load(high), part));
                    D::store(low, D::add(D::load(low), D::sub(sums[i][v], part)));
                });
            });
        }
        for i in 0..R {
            for (high, low) in high[i].iter_mut().zip(&low[i]).take(2 * D::LANES) {
                *high = odd_sum(*high, *low);
            }
            unroll!(v < 2 => { to.store(i, v, D::load(high[i].as_ptr().add(v * D::LANES))); });
        }
    }
}

/// Returns exact sums of products.
#[inline(always)]
unsafe fn sums<D: Doubles, const R: usize>(a: Left, b: *const f64, depth: usize) -> [[D; 2]; R] {
    // SAFETY: as of `tile`.
    unsafe {
        let mut sums = [[D::splat(0.0); 2]; R];
        for p in 0..depth {
            let (left, right) = (a.data.add(p * a.step), b.add(p * PANEL));
            let right = [D::load(right), D::load(right.add(D::LANES))];
            unroll!(i < R => {
                let left = D::splat(*left.add(i * a.row));
                unroll!(v < 2 => { sums[i][v] = D::exact(left, right[v], sums[i][v]); });
            });
        }
        sums
    }
}
