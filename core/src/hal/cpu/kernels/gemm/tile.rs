//! Register tiles, over operands that are not packed or over packed copies.
//!
//! A panel of B is as wide as a tile. It is multiplied with every row of a group before the next panel.

use super::packing::{MAX_COLUMNS, MAX_ROWS, ROW, STRIP, pack_panels, pack_rows};
use super::{Block, Matrix, Panels};
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{Chains, Kernel, MAX_TILE_VECTORS, Simd, unroll};
use crate::interrupt::{self, Looks};

/// The number of rows of B that are streamed at a time.
const STEP: usize = 64;

/// A period of prefetches that is longer than any loop, so that no turn prefetches.
const NEVER: usize = 1 << 20;

/// The least number of values in a result that is too large for any cache.
const LARGE: usize = 1 << 20;

/// The heights of tiles, from the tallest. More heights would add code and no speed.
const HEIGHTS: [usize; 7] = [12, 8, 6, 4, 3, 2, 1];

/// Computes a block with register tiles.
#[derive(Clone, Copy)]
pub(super) struct Tiles<'a> {
    pub block: &'a Block,
    pub scratch: *mut f32,
    /// Whether B is packed: in advance, so that `block.b` is not read, or as `block.packing` says.
    packed: bool,
    /// The panels: all K blocks' if B was packed in advance, or else the current K block's.
    panels: Panels,
}

impl<'a> Tiles<'a> {
    pub fn new(block: &'a Block, scratch: *mut f32, panels: Option<Panels>) -> Tiles<'a> {
        let packed = panels.is_some() || block.packing.b;
        Tiles { block, scratch, packed, panels: panels.unwrap_or(Panels { data: scratch, columns: 0, first: 0 }) }
    }
}

impl Kernel for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        const { assert!(S::TILE_ROWS <= MAX_ROWS && S::TILE_VECTORS <= MAX_TILE_VECTORS) };
        const { assert!(S::TILE_VECTORS * S::LANES <= MAX_COLUMNS) };
        let Tiles { block: &Block { m, n, k, a, b, packing, .. }, scratch, .. } = self;
        // Rows are spread evenly over the groups. A large result of one K block is written along its rows, because
        // tiles take less time to compute than scattered cache lines take to arrive.
        let group = if k <= K_BLOCK && m * n >= LARGE && self.packed {
            S::TILE_ROWS
        } else if m <= packing.group() {
            m
        } else {
            m.div_ceil(m.div_ceil(packing.group())).next_multiple_of(S::TILE_ROWS)
        };
        // SAFETY: the offsets follow from the sizes, and the scratch has room for all that is packed.
        unsafe {
            let mut looks = Looks::NEW;
            let packed_a = scratch.wrapping_add(packing.panels(n, S::RAGGED));
            let mut p = 0;
            while p < k && !interrupt::is_stopped() {
                let depth = K_BLOCK.min(k - p);
                if packing.b {
                    pack_panels::<S>(b.at(p, 0), n, depth, scratch);
                }
                let mut i = 0;
                while i < m {
                    let rows = group.min(m - i);
                    let (from, row) = if packing.a {
                        pack_rows::<S>(a.at(i, p), rows, depth, packed_a);
                        (packed_a.cast_const(), ROW)
                    } else {
                        (a.at(i, p).data, a.row)
                    };
                    self.group::<S>(p, depth, i, rows, from, row, &mut looks);
                    i += rows;
                }
                p += depth;
            }
        }
    }
}

impl Tiles<'_> {
    /// Computes one K block for a group of rows.
    #[inline(always)]
    unsafe fn group<S: Simd>(
        &self,
        p: usize,
        depth: usize,
        top: usize,
        rows: usize,
        a: *const f32,
        a_row: usize,
        looks: &mut Looks,
    ) {
        let Block { n, k, a: Matrix { column: columns_of_a, .. }, b, packing, .. } = *self.block;
        // If B is streamed past a few rows, it is read in strips as it lies in memory, and the chains wait in the
        // scratch.
        let streamed = !self.packed && packing.streams(rows, n, k) && b.column == 1;
        let (strip, step) = if streamed { (STRIP, STEP) } else { (n, depth) };
        // SAFETY: as in `run`.
        unsafe {
            let mut start = 0;
            while start < n {
                let mut q = 0;
                while q < depth {
                    let part = Part { p, depth, q, count: step.min(depth - q), start, end: n.min(start + strip) };
                    self.part::<S>(
                        part,
                        streamed,
                        top,
                        rows,
                        a.add(if packing.a { q } else { q * columns_of_a }),
                        a_row,
                        looks,
                    );
                    q += step;
                }
                start += strip;
            }
        }
    }

    /// Computes a part of a K block's products over a strip of columns.
    #[inline(always)]
    unsafe fn part<S: Simd>(
        &self,
        part: Part,
        streamed: bool,
        top: usize,
        rows: usize,
        a: *const f32,
        a_row: usize,
        looks: &mut Looks,
    ) {
        let Tiles { block, scratch, packed: ready, panels } = *self;
        let Block { m, n, k, a: Matrix { column: a_step, .. }, b, out, out_row, packing, .. } = *block;
        let Part { p, depth, q, count, start, end } = part;
        let (begins, ends) = (q == 0, q + count == depth);
        let last = p + depth == k;
        let waiting = scratch.wrapping_add(packing.panels(n, S::RAGGED) + packing.rows(m));
        let totals = waiting.wrapping_add(packing.waiting(n, k));
        let width = S::TILE_VECTORS * S::LANES;
        // Tiles prefetch the next panel. The period spreads these prefetches over all tiles.
        let ahead = (ready && rows > 1) || packing.comes_from_afar(n, k);
        let period = if ahead {
            let most = Chains::asked(count, S::TILE_ROWS.min(rows), 1) * rows.div_ceil(S::TILE_ROWS);
            1usize << (most / count).clamp(1, 32).ilog2()
        } else {
            NEVER
        };
        // SAFETY: as in `run`.
        unsafe {
            let mut j = start;
            while j < end && !looks.before(rows * width * count) {
                let packed = ready || (!S::RAGGED && end - j < width);
                // Missing columns are zeros of a packed panel, or masked in one vector.
                let columns = if packed || end - j >= width { width.min(end - j) } else { S::LANES.min(end - j) };
                let (panel, b_row, after) = if ready {
                    (panels.at(p, depth, j), width, panels.at(p, depth, j + width))
                } else if packed {
                    pack_panels::<S>(b.at(p + q, j), columns, count, scratch);
                    (scratch.cast_const(), width, scratch.cast_const())
                } else {
                    let panel = b.at(p + q, j).data;
                    (panel, b.row, panel.wrapping_add(if streamed { count * b.row } else { columns }))
                };
                // Totals and waiting chains have the order of the tiles, so that rows don't share cache sets.
                let total = |i, j| totals.wrapping_add(j / width * width * m + (top + i) * width + j % width);
                let (mut asked, mut i) = (0, 0);
                while i < rows {
                    // Rows are spread evenly over the remaining tiles, so that the last is not a sliver.
                    let height = height(rows - i, S::TILE_ROWS);
                    let (below, right) = if i + height < rows { (i + height, j) } else { (0, j + columns) };
                    let (next_out, next_row) = if last {
                        (out.wrapping_add((top + below) * out_row + right), out_row)
                    } else {
                        (total(below, right), width)
                    };
                    let more = if ahead { Chains::asked(count, height, period).min(count - asked) } else { 0 };
                    let chains = Chains {
                        depth: count,
                        a: a.add(i * a_row),
                        a_row,
                        a_step: if packing.a { 1 } else { a_step },
                        b: panel,
                        b_row,
                        columns,
                        out: next_out,
                        out_row: next_row,
                        next: after.wrapping_add(asked * b_row),
                        next_row: if more > 0 { b_row } else { 0 },
                        period: period as u32,
                    };
                    asked += more;
                    let waiting = waiting.wrapping_add((j - start) / width * width * rows + i * width + j % width);
                    let (to, to_row) = match (ends, last) {
                        (false, _) => (waiting, width),
                        (true, false) => (total(i, j), width),
                        (true, true) => (out.add((top + i) * out_row + j), out_row),
                    };
                    let tile = Tile {
                        chains,
                        start: if begins { ZEROS.as_ptr() } else { waiting },
                        start_row: if begins { 0 } else { width },
                        totals: if ends && p > 0 { total(i, j) } else { std::ptr::null_mut() },
                        to,
                        to_row,
                    };
                    tile.rows::<S>(height);
                    i += height;
                }
                j += columns;
            }
        }
    }
}

/// A part of a K block's products, over some columns.
struct Part {
    p: usize,
    depth: usize,
    /// The first product within the K block; `count` is their number.
    q: usize,
    count: usize,
    start: usize,
    end: usize,
}

/// A register tile of a K block or a part of it.
struct Tile {
    chains: Chains,
    /// The values with which the chains begin, and the distance between their rows.
    start: *const f32,
    start_row: usize,
    /// The totals that are added when the chains end, with rows of whole tiles; null for none.
    totals: *const f32,
    /// The destination of the results.
    to: *mut f32,
    to_row: usize,
}

/// The values with which a K block's chains begin.
static ZEROS: [f32; MAX_COLUMNS] = [0.0; MAX_COLUMNS];

/// For each number of rows up to [`MAX_ROWS`]: the least height that covers it, and the greatest height that fits into
/// it.
const LIMITS: [(u8, u8); MAX_ROWS + 1] = {
    let mut limits = [(0, 0); MAX_ROWS + 1];
    let mut rows = 1;
    while rows <= MAX_ROWS {
        let mut i = 0;
        while i < HEIGHTS.len() {
            if HEIGHTS[i] >= rows {
                limits[rows].0 = HEIGHTS[i] as u8;
            }
            if HEIGHTS[i] <= rows && limits[rows].1 == 0 {
                limits[rows].1 = HEIGHTS[i] as u8;
            }
            i += 1;
        }
        rows += 1;
    }
    limits
};

/// Returns the height of the next tile. The last two tiles share the remaining rows, so that the last is not a sliver.
#[inline(always)]
fn height(rows: usize, tallest: usize) -> usize {
    if rows >= 2 * tallest {
        return tallest;
    }
    let even = if rows > tallest { rows.div_ceil(2) } else { rows };
    let most = rows.min(tallest);
    let covers = LIMITS[even].0 as usize;
    if covers <= most { covers } else { LIMITS[most].1 as usize }
}

impl Tile {
    /// Calls a function for this height. Each height has its own, so that the accumulators are registers.
    #[inline(always)]
    unsafe fn rows<S: Simd>(&self, rows: usize) {
        macro_rules! heights {
            ($($rows:literal)*) => {
                match rows {
                    // SAFETY: the caller's promise covers this. Heights beyond the instruction set's are never
                    // requested, and not compiled.
                    $($rows if $rows <= S::TILE_ROWS => unsafe {
                        if S::TILE_VECTORS > 1 && self.chains.columns <= S::LANES {
                            self.compute::<S, $rows, 1>()
                        } else {
                            self.compute::<S, $rows, 2>()
                        }
                    },)*
                    _ => unreachable!("no tile of {rows} rows"),
                }
            };
        }
        heights!(12 8 6 4 3 2 1);
    }

    #[inline(always)]
    unsafe fn compute<S: Simd, const R: usize, const V: usize>(&self) {
        let Tile { ref chains, start, start_row, totals, to, to_row } = *self;
        // SAFETY: the chains' operands cover the sizes. The destination has R rows of `columns` values; the other
        // pointers have whole vectors.
        unsafe {
            // These are vectors of zeros. A repeat expression would be a loop, after which the compiler for aarch64
            // keeps p in memory.
            let mut p: [[S::F; MAX_TILE_VECTORS]; R] = std::mem::zeroed();
            unroll!(r < R => {
                unroll!(v < V => {
                    if v < MAX_TILE_VECTORS {
                        p[r][v] = S::load(start.add(r * start_row + v * S::LANES));
                    }
                });
            });
            let mut p = S::chains::<R, V>(chains, p);
            if !totals.is_null() {
                let one = S::splat(1.0);
                unroll!(r < R => {
                    unroll!(v < V => {
                        if v < MAX_TILE_VECTORS {
                            let at = totals.add((r * S::TILE_VECTORS + v) * S::LANES);
                            p[r][v] = S::fmaz(p[r][v], one, S::load(at));
                        }
                    });
                });
            }
            // Whenever chains stop, −0 becomes +0 and NaN becomes canonical. In the end, the contract requires the
            // second, and makes the first invisible.
            unroll!(r < R => {
                unroll!(v < V => {
                    if v < MAX_TILE_VECTORS {
                        let count = chains.columns.saturating_sub(v * S::LANES).min(S::LANES);
                        S::store_head(to.add(r * to_row + v * S::LANES), count, S::settle(p[r][v]));
                    }
                });
            });
        }
    }
}
