//! Register tiles, over operands where they lie or over packed copies.
//!
//! A panel of B is as wide as a tile and multiplied with every row of the block before the next. Packing costs reads and
//! writes; it pays where the operand is read again often enough, and where its rows would share cache sets or pages.

use super::{Block, Matrix, Panels};
use crate::contract::K_BLOCK;
use crate::hal::cpu::simd::{Chains, Kernel, MAX_TILE_VECTORS, Simd, unroll};

/// The most rows of a register tile on any instruction set.
const MAX_ROWS: usize = 12;
/// The most columns of a register tile.
const MAX_COLUMNS: usize = 32;

/// The most rows past which B is streamed.
const STREAM_ROWS: usize = 48;
/// The fewest values of B for which it pays: more than the second-level cache holds.
const STREAMED: usize = 384 << 10;
/// Columns of B that are streamed at a time, so that the chains stay in the first-level cache.
const STRIP: usize = 512;
/// Rows of B that are streamed at a time.
const STEP: usize = 64;

/// Rows of A that are packed at a time.
const GROUP: usize = 384;

/// Floats from one packed row of A to the next: a K block and a cache line, so that rows don't share cache sets.
const ROW: usize = K_BLOCK + 16;

/// Which operands are packed.
#[derive(Clone, Copy)]
pub struct Packing {
    pub a: bool,
    pub b: bool,
}

impl Packing {
    /// What pays for blocks of m rows.
    pub fn choose(m: usize, a: Matrix, b: Matrix) -> Packing {
        // Rows this far apart share the sets of the first-level cache and a page each.
        let far = a.row.is_multiple_of(2048) && m >= 128;
        Packing { a: a.column != 1 || far, b: b.column != 1 || m >= 96 }
    }

    /// Floats of scratch for a block of at most these sizes.
    pub fn scratch(self, m: usize, n: usize, k: usize) -> usize {
        let totals = if k > K_BLOCK { m * n.next_multiple_of(MAX_COLUMNS) } else { 0 };
        let waiting = if m <= STREAM_ROWS && !self.b { STREAM_ROWS * STRIP } else { 0 };
        self.panels(n) + self.rows(m) + totals + waiting
    }

    /// Floats of packed rows: a group of them.
    fn rows(self, m: usize) -> usize {
        if self.a { m.min(GROUP + MAX_ROWS) * ROW } else { 0 }
    }

    /// Floats of packed panels: all of them, or one that is packed for its missing columns.
    fn panels(self, n: usize) -> usize {
        K_BLOCK * if self.b { n.next_multiple_of(MAX_COLUMNS) } else { MAX_COLUMNS }
    }
}

/// A block by register tiles.
pub(super) struct Tiles {
    pub block: Block,
    pub scratch: *mut f32,
    /// Whether B is packed: before, and then `block.b` is not read, or as `block.packing` says.
    packed: bool,
    /// Where the panels are, of all K blocks or of one after the other.
    panels: Panels,
}

impl Tiles {
    pub fn new(block: Block, scratch: *mut f32, panels: Option<Panels>) -> Tiles {
        let packed = panels.is_some() || block.packing.b;
        Tiles { block, scratch, packed, panels: panels.unwrap_or(Panels { data: scratch, columns: 0, first: 0 }) }
    }
}

impl Kernel for Tiles {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        const { assert!(S::TILE_ROWS <= MAX_ROWS && S::TILE_VECTORS <= MAX_TILE_VECTORS) };
        const { assert!(S::TILE_VECTORS * S::LANES <= MAX_COLUMNS) };
        let Tiles { block: Block { m, n, k, a, b, packing, .. }, scratch, .. } = self;
        // Rows are spread evenly over the groups.
        let group = m.div_ceil(m.div_ceil(GROUP)).next_multiple_of(S::TILE_ROWS);
        // SAFETY: offsets follow from the sizes; the scratch holds what is packed.
        unsafe {
            let packed_a = scratch.add(packing.panels(n));
            let mut p = 0;
            while p < k {
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
                    self.group::<S>(p, depth, i, rows, from, row);
                    i += rows;
                }
                p += depth;
            }
        }
    }
}

impl Tiles {
    /// One K block of a group of rows.
    #[inline(always)]
    unsafe fn group<S: Simd>(&self, p: usize, depth: usize, top: usize, rows: usize, a: *const f32, a_row: usize) {
        let Block { n, k, b, .. } = self.block;
        // B is streamed past a few rows, a strip of it at a time as it lies in memory; their chains wait in the scratch.
        let streamed = rows <= STREAM_ROWS && !self.packed && b.column == 1 && k * n >= STREAMED;
        let (strip, step) = if streamed { (STRIP, STEP) } else { (n, depth) };
        // SAFETY: as in `run`.
        unsafe {
            let mut start = 0;
            while start < n {
                let mut q = 0;
                while q < depth {
                    let part = Part { p, depth, q, count: step.min(depth - q), start, end: n.min(start + strip) };
                    self.part::<S>(part, streamed, top, rows, a.add(q), a_row);
                    q += step;
                }
                start += strip;
            }
        }
    }

    /// A part of a K block's products over a strip of columns.
    #[inline(always)]
    unsafe fn part<S: Simd>(&self, part: Part, streamed: bool, top: usize, rows: usize, a: *const f32, a_row: usize) {
        let Tiles { block: Block { m, n, k, b, out, out_row, packing, .. }, scratch, packed: ready, panels } = *self;
        let Part { p, depth, q, count, start, end } = part;
        let (begins, ends) = (q == 0, q + count == depth);
        let last = p + depth == k;
        let waiting = scratch.wrapping_add(packing.panels(n) + packing.rows(m));
        let totals = waiting.wrapping_add(if streamed { STREAM_ROWS * STRIP } else { 0 });
        let width = S::TILE_VECTORS * S::LANES;
        let turns = count.saturating_sub(S::TILE_ROWS.min(rows)) / 4;
        // Tiles ask for what comes next in as many steps as fit between them.
        let ahead = (ready && rows > 1) || k * n >= STREAMED;
        let period =
            if !ahead { 32 } else { 1usize << (4 * turns * rows.div_ceil(S::TILE_ROWS) / count).clamp(1, 32).ilog2() };
        // SAFETY: as in `run`.
        unsafe {
            let mut j = start;
            while j < end {
                let packed = ready || (!S::RAGGED && end - j < width);
                // Missing columns are zeros of a packed panel, or one masked vector.
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
                // Totals and waiting chains lie as the tiles do, so that rows don't share cache sets.
                let total = |i, j| totals.wrapping_add(j / width * width * m + (top + i) * width + j % width);
                let (mut asked, mut i) = (0, 0);
                while i < rows {
                    // Rows are spread evenly over the tiles that are left, so that the last is not a sliver.
                    let height = (rows - i).div_ceil((rows - i).div_ceil(S::TILE_ROWS));
                    let (below, right) = if i + height < rows { (i + height, j) } else { (0, j + columns) };
                    let (next_out, next_row) = if last {
                        (out.wrapping_add((top + below) * out_row + right), out_row)
                    } else {
                        (total(below, right), width)
                    };
                    let more = if ahead { (4 * (turns / period)).min(count - asked) } else { 0 };
                    let chains = Chains {
                        depth: count,
                        a: a.add(i * a_row),
                        a_row,
                        a_step: 1,
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

/// Some of a K block's products, over some columns.
struct Part {
    p: usize,
    depth: usize,
    /// From which product of the K block, and how many.
    q: usize,
    count: usize,
    start: usize,
    end: usize,
}

/// Rows of A at a fixed stride.
#[inline(always)]
unsafe fn pack_rows<S: Simd>(a: Matrix, m: usize, depth: usize, to: *mut f32) {
    // SAFETY: the matrix covers m × depth, the destination m rows.
    unsafe {
        if a.column == 1 {
            for i in 0..m {
                let (from, to) = (a.data.add(i * a.row), to.add(i * ROW));
                // Rows are too short for the processor to see the next one coming.
                let ahead = from.wrapping_add(4 * a.row);
                let mut q = 0;
                while q < depth {
                    let count = S::LANES.min(depth - q);
                    S::prefetch(ahead.wrapping_add(q));
                    S::store_head(to.add(q), count, S::load_head(from.add(q), count));
                    q += S::LANES;
                }
            }
            return;
        }
        // A transposed operand.
        let mut p = 0;
        while p < depth {
            let columns = S::LANES.min(depth - p);
            transpose::<S>(a.data.add(p * a.column), a.column, columns, a.row, m, to.add(p), ROW);
            p += S::LANES;
        }
    }
}

/// Panels of a K block of B as `[panel][k][width]`, zero beyond the last column: those columns are not stored.
#[inline(always)]
unsafe fn pack_panels<S: Simd>(b: Matrix, n: usize, depth: usize, to: *mut f32) {
    let width = S::TILE_VECTORS * S::LANES;
    // SAFETY: the matrix covers depth × n, the destination depth × n rounded up to whole panels.
    unsafe {
        let whole = n / width * width;
        if b.column == 1 {
            // Along its rows, as they lie in memory.
            for p in 0..depth {
                let (from, to) = (b.data.add(p * b.row), to.add(p * width));
                let mut j = 0;
                while j < whole {
                    unroll!(v < S::TILE_VECTORS => {
                        S::store(to.add(j * depth + v * S::LANES), S::load(from.add(j + v * S::LANES)));
                    });
                    j += width;
                }
                if j < n {
                    to.add(j * depth).write_bytes(0, width);
                    to.add(j * depth).copy_from_nonoverlapping(from.add(j), n - j);
                }
            }
            return;
        }
        if whole < n {
            to.add(whole * depth).write_bytes(0, depth * width);
        }
        let mut j = 0;
        while j < n {
            let to = to.add(j / width * width * depth + j % width);
            transpose::<S>(b.data.add(j * b.column), b.column, S::LANES.min(n - j), b.row, depth, to, width);
            j += S::LANES;
        }
    }
}

/// `to[c·to_row + r] = from[r·row + c·column]` for a vector of rows at most, and any number of columns.
#[inline(always)]
unsafe fn transpose<S: Simd>(
    from: *const f32,
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
    to: *mut f32,
    to_row: usize,
) {
    // SAFETY: both cover what the caller says.
    unsafe {
        let mut c = 0;
        while column == 1 && rows == S::LANES && columns - c >= S::LANES {
            S::transpose_square(from.add(c).cast(), row, to.add(c * to_row).cast(), to_row);
            c += S::LANES;
        }
        while c < columns {
            for r in 0..rows {
                to.add(c * to_row + r).write(*from.add(r * row + c * column));
            }
            c += 1;
        }
    }
}

/// A register tile of a K block or a part of it.
struct Tile {
    chains: Chains,
    /// Where the chains begin, and values from one of its rows to the next.
    start: *const f32,
    start_row: usize,
    /// What is added to them when they end, with whole tiles as rows; null for nothing.
    totals: *const f32,
    /// Where they go.
    to: *mut f32,
    to_row: usize,
}

/// Where a K block's chains begin.
static ZEROS: [f32; MAX_COLUMNS] = [0.0; MAX_COLUMNS];

impl Tile {
    /// One function for each height, so that the accumulators are registers.
    #[inline(always)]
    unsafe fn rows<S: Simd>(&self, rows: usize) {
        macro_rules! heights {
            ($($rows:literal)*) => {
                match rows {
                    // SAFETY: passed on. Heights beyond the instruction set's are never asked for and not compiled.
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
        heights!(12 11 10 9 8 7 6 5 4 3 2 1);
    }

    #[inline(always)]
    unsafe fn compute<S: Simd, const R: usize, const V: usize>(&self) {
        let Tile { ref chains, start, start_row, totals, to, to_row } = *self;
        // SAFETY: the chains' operands are there; R rows of `columns` are where they go, of whole vectors elsewhere.
        unsafe {
            let mut p = [[S::splat(0.0); MAX_TILE_VECTORS]; R];
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
            // −0 becomes +0 and NaN canonical wherever chains stop: the contract makes the first invisible in the end,
            // and the second is only early.
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
