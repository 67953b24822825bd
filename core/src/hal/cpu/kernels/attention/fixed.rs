//! The products of attention in exact integers, in f64: sums of 128 products of 24-bit integers are exact, and a block has 64 keys.
//!
//! A block's keys and values are cut to integers for each group of queries. Scores are computed transposed, as those of f32 are.

use super::QUERIES;
use super::group::Group;
use crate::contract::{KEY_BLOCK, Precision, fixed_scale, value_factor, value_scale};
use crate::hal::cpu::kernels::fixed::exact::{EXACT, PART, ROUND, odd_sum, power};
use crate::hal::cpu::simd::{Doubles, Kernel, Simd, dispatch, unroll};
use crate::ops::AttentionPlan;

/// The rows and the columns of a tile. So many columns lie side by side in a cut operand.
const ROWS: usize = 8;
const PANEL: usize = 16;

const ONES: [f64; PANEL] = [1.0; PANEL];

/// A group's integers, and the powers of two that they are multiplied by. NaN stands for a line that is not finite.
#[derive(Clone, Copy)]
pub(super) struct Integers {
    precision: Precision,
    /// `[panel][width][PANEL]`.
    queries: *mut f64,
    /// `[KEY_BLOCK][width up to whole panels]`.
    keys: *mut f64,
    /// `[panel][KEY_BLOCK][PANEL]`.
    values: *mut f64,
    /// `[panel][KEY_BLOCK][PANEL]`, where a panel has queries side by side.
    weights: *mut f64,
    of_queries: *mut f64,
    of_keys: *mut f64,
    of_weights: *mut f64,
    /// What the weights of a key are multiplied by before they are cut.
    of_values: *mut f64,
}

impl Integers {
    /// Returns the scratch that a group needs, in f32s.
    pub fn room(plan: &AttentionPlan) -> usize {
        let [keys, values] = [plan.width, plan.value_width].map(|width| width.next_multiple_of(PANEL));
        2 * (QUERIES * plan.width + KEY_BLOCK * (keys + values + QUERIES) + 2 * (QUERIES + KEY_BLOCK))
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
            keys: part(KEY_BLOCK * plan.width.next_multiple_of(PANEL)),
            values: part(KEY_BLOCK * plan.value_width.next_multiple_of(PANEL)),
            weights: part(KEY_BLOCK * QUERIES),
            of_queries: part(QUERIES),
            of_weights: part(QUERIES),
            of_keys: part(KEY_BLOCK),
            of_values: part(KEY_BLOCK),
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
        let (isa, width) = (group.exec.isa, group.plan.width);
        // SAFETY: the keys are there. Their integers, factors and scores have KEY_BLOCK rows, which is a multiple of a tile's.
        unsafe {
            let (from, precision, scale) = (group.k.add(start * width), self.precision, of_key);
            let (to, row) = (self.keys, width.next_multiple_of(PANEL));
            let rows =
                CutRows { from, rows: count, width, precision, scale, factors: self.of_keys, to, row, panel: PANEL };
            dispatch(isa, rows);
            // Rows up to a whole tile.
            for j in count..count.next_multiple_of(ROWS) {
                self.of_keys.add(j).write(0.0);
                to.add(j * row).write_bytes(0, row);
            }
            let long = width > EXACT && self.precision == Precision::Fixed24;
            for query in (0..padded).step_by(PANEL) {
                for j in (0..count).step_by(ROWS) {
                    let tile = Tile {
                        a: Left { data: to.add(j * row), row, step: 1 },
                        b: self.queries.add(query * width),
                        depth: width,
                        run: if long { EXACT } else { width },
                        of_rows: self.of_keys.add(j),
                        of_columns: self.of_queries.add(query),
                        to: group.scores.add(j * QUERIES + query),
                        row: QUERIES,
                    };
                    dispatch(isa, tile);
                }
            }
        }
    }

    /// Multiplies the weights of a block by the values.
    ///
    /// # Safety
    /// As of [`Group::compute`]. The block has these keys.
    pub unsafe fn results(&self, group: &Group<'_>, start: usize, count: usize) {
        let (isa, precision, width) = (group.exec.isa, self.precision, group.plan.value_width);
        let padded = group.rows.next_multiple_of(super::MAX_LANES);
        // SAFETY: the values are there, and the scores have `padded` columns and as many rows as the block has keys.
        unsafe {
            let (from, scale, factors, to) = (group.v.add(start * width), of_value, self.of_values, self.values);
            let panel = KEY_BLOCK * PANEL;
            dispatch(isa, CutRows { from, rows: count, width, precision, scale, factors, to, row: PANEL, panel });
            let lines = Lines { from: group.scores, depth: count, padded, factors: Some(self.of_values) };
            let (to, scales) = (self.weights, self.of_weights);
            dispatch(isa, CutLines { lines, precision, and: value_scale(precision), to, scales });
            for column in (0..width).step_by(PANEL) {
                for row in (0..group.rows).step_by(ROWS) {
                    let mut out = [[0.0f32; PANEL]; ROWS];
                    let tile = Tile {
                        a: Left {
                            data: self.weights.add(row / PANEL * count * PANEL + row % PANEL),
                            row: 1,
                            step: PANEL,
                        },
                        b: self.values.add(column * KEY_BLOCK),
                        depth: count,
                        run: count,
                        of_rows: self.of_weights.add(row),
                        of_columns: ONES.as_ptr(),
                        to: out.as_mut_ptr().cast(),
                        row: PANEL,
                    };
                    dispatch(isa, tile);
                    let there = PANEL.min(width - column);
                    for (i, out) in out.iter().enumerate().take(group.rows - row) {
                        group.block_out.add((row + i) * width + column).copy_from_nonoverlapping(out.as_ptr(), there);
                    }
                }
            }
        }
    }
}

/// Lines that lie side by side, transposed: `[depth][QUERIES]`, of which `padded` are there.
struct Lines {
    from: *mut f32,
    depth: usize,
    padded: usize,
    /// What each index along the depth is multiplied by first, in place.
    factors: Option<*const f64>,
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
                        x = S::mul(x, S::splat(*factors.add(p) as f32));
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

/// Cuts rows, each with its scale.
struct CutRows {
    from: *const f32,
    rows: usize,
    width: usize,
    precision: Precision,
    /// Returns the power of two that a row is multiplied by, and the row's factor, from the row's largest `bits & 0x7fffffff`. A row
    /// that is multiplied by 0 counts as zeros.
    scale: fn(u32, Precision) -> (f64, f64),
    factors: *mut f64,
    to: *mut f64,
    /// How far apart rows and panels are in `to`.
    row: usize,
    panel: usize,
}

impl Kernel for CutRows {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let CutRows { from, rows, width, precision, scale, factors, to, row, panel } = self;
        // SAFETY: the rows are there, and so is the room for their integers and factors.
        unsafe {
            for j in 0..rows {
                let from = from.add(j * width);
                let (power, factor) = scale(largest::<S>(from, width), precision);
                factors.add(j).write(factor);
                for column in (0..width).step_by(PANEL) {
                    let to = to.add(column / PANEL * panel + j * row);
                    let there = if power == 0.0 { 0 } else { PANEL.min(width - column) };
                    if there < PANEL {
                        to.write_bytes(0, PANEL);
                    }
                    cut::<S::D>(from.add(column), there, power, to);
                }
            }
        }
    }
}

/// The scale of a key, and what its scores are multiplied by.
fn of_key(largest: u32, precision: Precision) -> (f64, f64) {
    fixed_scale(largest, precision).map_or((0.0, f64::NAN), |scale| (power(scale), power(-scale)))
}

/// The scale of a key's values, and what its weights are multiplied by.
fn of_value(largest: u32, precision: Precision) -> (f64, f64) {
    let (scale, factor) = value_factor(largest, precision);
    (scale.map_or(0.0, power), factor.into())
}

/// The left operand of a tile.
#[derive(Clone, Copy)]
struct Left {
    data: *const f64,
    row: usize,
    step: usize,
}

/// A product of eight rows and a panel. Sums over `run` products are exact in f64; with more than one run, a total has two parts.
struct Tile {
    a: Left,
    b: *const f64,
    depth: usize,
    run: usize,
    /// The powers of two that the results are multiplied by.
    of_rows: *const f64,
    of_columns: *const f64,
    to: *mut f32,
    row: usize,
}

impl Kernel for Tile {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: the caller vouches for operands and results.
        unsafe { if S::D::MANY { self.parts::<S::D, ROWS>() } else { self.parts::<S::D, 4>() } }
    }
}

impl Tile {
    /// Computes parts of R rows and two vectors.
    #[inline(always)]
    unsafe fn parts<D: Doubles, const R: usize>(self) {
        let Tile { a, b, depth, run, of_rows, of_columns, to, row } = self;
        // SAFETY: as above.
        unsafe {
            for first in (0..ROWS).step_by(R) {
                for column in (0..PANEL).step_by(2 * D::LANES) {
                    let mut sums = [[0.0f64; PANEL]; R];
                    let mut totals = if depth > run { Some([[[0.0f64; PANEL]; R]; 2]) } else { None };
                    let mut start = 0;
                    while start == 0 || start < depth {
                        let data = a.data.add(first * a.row + start * a.step);
                        let of_run =
                            products::<D, R>(Left { data, ..a }, b.add(start * PANEL + column), run.min(depth - start));
                        unroll!(i < R => {
                            unroll!(v < 2 => { D::store(sums[i].as_mut_ptr().add(v * D::LANES), of_run[i][v]); });
                        });
                        if let Some([high, low]) = &mut totals {
                            add(high.as_flattened_mut(), low.as_flattened_mut(), sums.as_flattened_mut());
                        }
                        start += run.max(1);
                    }
                    for i in 0..R {
                        let scale = D::splat(*of_rows.add(first + i));
                        for v in (0..2 * D::LANES).step_by(D::LANES) {
                            let scale = D::mul(scale, D::load(of_columns.add(column + v)));
                            let sum = D::round(D::load(sums[i].as_ptr().add(v)));
                            D::narrow(to.add((first + i) * row + column + v), D::mul(sum, scale));
                        }
                    }
                }
            }
        }
    }
}
/// Adds exact sums to totals of two parts. The sums become the totals, rounded to odd.
fn add(high: &mut [f64], low: &mut [f64], sums: &mut [f64]) {
    for ((high, low), sum) in high.iter_mut().zip(low).zip(sums) {
        let part = *sum + PART - PART;
        (*high, *low) = (*high + part, *low + (*sum - part));
        *sum = odd_sum(*high, *low);
    }
}

/// Returns exact sums of products.
#[inline(always)]
unsafe fn products<D: Doubles, const R: usize>(a: Left, b: *const f64, depth: usize) -> [[D; 2]; R] {
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
