//! Fixed-point products by units that multiply bytes: cuts both operands once, then multiplies tiles of 16 rows by 16 columns.

use super::super::Exec;
use super::super::gemm::{Block, Epilogue, Matrix, Packing};
use super::digits::{DEPTH, LINES, Lines, MANY, PLANE, Panels, raise};
use super::units::{MOST, Session, Square, Unit};
use super::{Fixed, NOT_FINITE, Shared};
use crate::contract::{NAN, Precision, fixed_round};
use crate::error::Result;
use crate::hal::cpu::simd::unroll;
use crate::interrupt::Looks;
use crate::isa::Isa;
use std::arch::x86_64::*;

/// The fewest multiply-adds for which panels pay.
const LEAST: usize = 16 * 16 * 64;
/// The tiles of the block that one task computes, down and across. Their sums fit in the second-level cache.
const TILES: usize = 8;
/// How many [`DEPTH`]s of K are multiplied at a time. A block's panels fit in the second-level cache for that long.
const PART: usize = 32;
/// The 32-bit sums of a tile, for the unit with the most squares.
const SUMS: usize = 5 * 256;
/// The multiply-adds that are worth a task.
const TASK: usize = 4 << 20;

/// Returns the unit for a product, if the processor has one and it pays.
pub fn unit(exec: &Exec<'_>, of: &Fixed<'_>) -> Option<Unit> {
    let worth = of.digits.is_some() || of.m.saturating_mul(of.n).saturating_mul(of.k) >= LEAST;
    if worth { usable(exec, of.k) } else { None }
}

/// Returns the unit for products along K, if there is one.
fn usable(exec: &Exec<'_>, k: usize) -> Option<Unit> {
    if exec.isa == Isa::Avx512 && (1..=MOST).contains(&k) { Unit::best() } else { None }
}

/// The bytes of a panel of digits.
fn panel(precision: Precision, k: usize) -> usize {
    k.div_ceil(DEPTH) * precision.digits() as usize * PLANE
}

/// Returns the bytes that a packed right operand takes, if there is a unit for it.
pub fn room(exec: &Exec<'_>, precision: Precision, k: usize, n: usize) -> Option<usize> {
    usable(exec, k)?;
    let parts = Operand::room(1, n, panel(precision, k));
    Some(parts.iter().sum::<usize>() * size_of::<f32>())
}

/// Packs the digits of a right operand.
///
/// # Safety
/// The matrix has k·n values. Only this call uses `to`, which has `room`.
pub unsafe fn pack(exec: &Exec<'_>, b: Matrix, precision: Precision, [k, n]: [usize; 2], to: *mut f32) -> Result<()> {
    // SAFETY: as the caller says.
    let to = unsafe { Operand::new(to, 1, n, panel(precision, k)) };
    let turned = Matrix { data: b.data, row: b.column, column: b.row };
    cut(exec, turned, [n, k], precision, &to, 1, true)
}

/// The panels of all matrices of an operand.
struct Operand {
    to: Panels,
    /// The panels of each matrix.
    panels: usize,
}

// SAFETY: while panels are written, each task has its own; they are read only afterwards.
unsafe impl Sync for Operand {}

impl Operand {
    /// Returns the scratch that an operand needs, in f32s: panels, scales, sums.
    fn room(matrices: usize, lines: usize, size: usize) -> [usize; 3] {
        let panels = matrices * lines.div_ceil(LINES);
        [panels * size / 4, panels * LINES, panels * LINES * 2]
    }

    /// # Safety
    /// The scratch is as large as asked.
    unsafe fn new(scratch: *mut f32, matrices: usize, lines: usize, size: usize) -> Operand {
        let [bytes, scales, _] = Operand::room(matrices, lines, size);
        // SAFETY: as the caller says.
        unsafe {
            let to = Panels {
                bytes: scratch.cast(),
                scales: scratch.add(bytes).cast(),
                sums: scratch.add(bytes + scales).cast(),
                size,
            };
            Operand { to, panels: lines.div_ceil(LINES) }
        }
    }
}

/// Both operands, cut into digits.
struct Digits {
    unit: Unit,
    /// The digits of a number.
    digits: usize,
    /// The [`DEPTH`]s of K.
    depths: usize,
    a: Operand,
    b: Operand,
}

/// Cuts `count` matrices of `lines` lines of k each. The matrices are contiguous.
fn cut(
    exec: &Exec<'_>,
    from: Matrix,
    [lines, k]: [usize; 2],
    precision: Precision,
    to: &Operand,
    count: usize,
    right: bool,
) -> Result<()> {
    let Matrix { data, row, column } = from;
    let data = Shared(data.cast_mut());
    let together = if column == 1 { 1 } else { MANY };
    // The panels of a task.
    let some = (TASK / 64 / (LINES * k)).clamp(1, 64).next_multiple_of(together);
    let parts = to.panels.div_ceil(some);
    exec.pool.try_run(count * parts, &|task, _| {
        let (matrix, first) = (task / parts, task % parts * some);
        let mut looks = Looks::NEW;
        for panel in (first..to.panels.min(first + some)).step_by(together) {
            let there = (LINES * together).min(lines - panel * LINES);
            // SAFETY: the lines are the operand's; tasks have different panels; AVX-512 is there, as a unit is.
            unsafe {
                let data = data.get().add(matrix * lines * k + panel * LINES * row);
                let from = Matrix { data, row, column };
                Lines { from, there, k, precision }.cut(to.to, matrix * to.panels + panel, right);
            }
            if looks.before(there * k) {
                return;
            }
        }
    })
}

impl Fixed<'_> {
    /// Computes all products with a unit of this processor. K is not 0.
    pub(super) fn compute_by(&self, exec: &Exec<'_>, unit: Unit) -> Result<()> {
        let Fixed { m, n, k, precision, matrices: [of_a, of_b], .. } = *self;
        let size = panel(precision, k);
        let rooms =
            [Operand::room(of_a, m, size), Operand::room(of_b, n, size)].map(|parts| parts.iter().sum::<usize>());
        let scratch = exec.scratch.take(rooms[0] + if self.digits.is_some() { 0 } else { rooms[1] })?;
        // SAFETY: both parts of the scratch have room. Packed digits are one matrix, and are only read.
        let (a, b) = unsafe {
            let start = scratch.pointer();
            let to_b = self.digits.map_or(start.wrapping_add(rooms[0]), <*const f32>::cast_mut);
            (Operand::new(start, of_a, m, size), Operand::new(to_b, of_b, n, size))
        };
        cut(exec, self.a, [m, k], precision, &a, of_a, false)?;
        if self.digits.is_none() {
            let turned = Matrix { data: self.b.data, row: self.b.column, column: self.b.row };
            cut(exec, turned, [n, k], precision, &b, of_b, true)?;
        }
        self.multiply(exec, &Digits { unit, digits: precision.digits() as usize, depths: k.div_ceil(DEPTH), a, b })
    }

    /// Multiplies the panels, one block of the result at a time.
    fn multiply(&self, exec: &Exec<'_>, of: &Digits) -> Result<()> {
        let Fixed { m, n, k, count, .. } = *self;
        let (a, b) = (&of.a, &of.b);
        let threads = exec.pool.threads();
        let (mut down, mut across) = (a.panels.min(TILES), b.panels.min(TILES));
        let worth = count.saturating_mul(m).saturating_mul(n).saturating_mul(k) / TASK;
        while threads > 1 && count * a.panels.div_ceil(down) * b.panels.div_ceil(across) < worth.min(4 * threads) {
            match (down > 2, across > 2) {
                (_, true) if across >= down => across = across.div_ceil(2),
                (true, _) => down = down.div_ceil(2),
                (_, true) => across = across.div_ceil(2),
                _ => break,
            }
        }
        let (parts_down, parts_across) = (a.panels.div_ceil(down), b.panels.div_ceil(across));
        let (out, operands) = (self.out, self.operands);
        let tasks = count * parts_down * parts_across;
        let each = down * across * SUMS;
        let scratch = exec.scratch.take(each * threads.min(tasks))?;
        let scratch = Shared(scratch.pointer());
        exec.pool.try_run(tasks, &|task, seat| {
            let (batch, rest) = (task / (parts_down * parts_across), task % (parts_down * parts_across));
            let (i, j) = (rest % parts_down * down, rest / parts_down * across);
            let (a_at, b_at, epilogue) = operands(batch);
            // The operands are read from the panels.
            let none = Matrix { data: std::ptr::null(), row: 0, column: 0 };
            // SAFETY: (i, j) are panels of the operands; blocks are disjoint; the unit is this processor's.
            unsafe {
                let mut block = Block {
                    m: (down * LINES).min(m - i * LINES),
                    n: (across * LINES).min(n - j * LINES),
                    k,
                    a: none,
                    b: none,
                    out: out.get().add((batch * m + i * LINES) * n + j * LINES),
                    out_row: n,
                    packing: Packing { a: false, b: false, cache: 0 },
                    epilogue: epilogue.at(i * LINES, j * LINES),
                };
                let bias = take_bias(&mut block.epilogue);
                let _session = Session::new(of.unit);
                let mut looks = Looks::NEW;
                let sums = scratch.get().add(each * seat).cast::<Square>();
                let (tiles_down, tiles_across) = (block.m.div_ceil(LINES), block.n.div_ceil(LINES));
                let (first_a, first_b) = (a_at * a.panels + i, b_at * b.panels + j);
                for begin in (0..of.depths).step_by(PART) {
                    let part = PART.min(of.depths - begin);
                    for tile in 0..tiles_down * tiles_across {
                        let (row, column) = (tile % tiles_down, tile / tiles_down);
                        let (left, right) = (first_a + row, first_b + column);
                        let from = begin * of.digits * PLANE;
                        let panels =
                            [a.to.bytes.add(left * a.to.size + from), b.to.bytes.add(right * b.to.size + from)];
                        // If K has one part, all tiles use the same sums, which then stay in the first-level cache.
                        let sums = if of.depths <= PART { sums } else { sums.add(tile * (SUMS / 256)) };
                        of.unit.multiply(of.digits, panels.map(<*mut u8>::cast_const), part, begin == 0, sums);
                        if begin + part == of.depths {
                            of.finish(sums, [left, right], &block, bias, [row * LINES, column * LINES]);
                        }
                        if looks.before(part * DEPTH * LINES * LINES) {
                            return;
                        }
                    }
                }
                block.finish(exec.isa);
            }
        })
    }
}

/// Takes the bias out of an epilogue if all that comes before it is the product. It is null if there is none.
fn take_bias(epilogue: &mut Epilogue) -> *const f32 {
    let first = epilogue.alpha == 1.0 && epilogue.beta == 0.0;
    if first { std::mem::replace(&mut epilogue.bias, std::ptr::null()) } else { std::ptr::null() }
}

impl Digits {
    /// Rounds a tile's sums, adds the bias and stores them at a place (row, column) of a block.
    ///
    /// # Safety
    /// The sums are those of these panels, and the place lies inside the block. The bias is null or has the block's columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn finish(
        &self,
        sums: *const Square,
        panels: [usize; 2],
        block: &Block,
        bias: *const f32,
        place: [usize; 2],
    ) {
        // SAFETY: passed on.
        unsafe {
            match (self.unit, self.digits) {
                (_, 3) => self.round::<5, 0b11110>(sums, panels, block, bias, place),
                // The two middle products have a sum each, so that neither instruction waits for the other.
                (Unit::Amx, _) => self.round::<4, 0b1010>(sums, panels, block, bias, place),
                (Unit::Vnni, _) => self.round::<3, 0b110>(sums, panels, block, bias, place),
            }
        }
    }

    /// Does it for N sums. Bit g of WORTH says that sum g is worth 2⁸ times the one before, and not as much as that.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn round<const N: usize, const WORTH: u32>(
        &self,
        sums: *const Square,
        [left, right]: [usize; 2],
        block: &Block,
        bias: *const f32,
        [row, column]: [usize; 2],
    ) {
        let (a, b) = (&self.a.to, &self.b.to);
        let columns = LINES.min(block.n - column);
        let mask = if columns == LINES { u16::MAX } else { (1 << columns) - 1 };
        // SAFETY: as the caller says; vectors of 16 columns of one of 16 rows.
        unsafe {
            let scales = b.scales.add(right * LINES);
            let of_columns = _mm512_loadu_si512(scales.cast());
            let [least, most] =
                [_mm512_mask_reduce_min_epi32(mask, of_columns), _mm512_mask_reduce_max_epi32(mask, of_columns)];
            // Adding −0 changes nothing.
            let bias = match bias.is_null() {
                true => _mm512_set1_ps(-0.0),
                false => _mm512_maskz_loadu_ps(mask, bias.add(column)),
            };
            for i in 0..LINES.min(block.m - row) {
                let mut total = [_mm512_setzero_si512(); 2];
                unroll!(g < N => {
                    let sums = sums.add(N - 1 - g).cast::<i32>().add(16 * i);
                    unroll!(half < 2 => {
                        let eight = _mm512_cvtepi32_epi64(_mm256_loadu_si256(sums.add(8 * half).cast()));
                        let higher = if WORTH >> (N - g) & 1 == 0 { total[half] } else { _mm512_slli_epi64::<8>(total[half]) };
                        total[half] = _mm512_add_epi64(higher, eight);
                    });
                });
                // Subtracts what the raise of b's digits added.
                let more = _mm512_set1_epi64(-*a.sums.add(left * LINES + i) * raise(self.digits) as i64);
                let total = [_mm512_add_epi64(total[0], more), _mm512_add_epi64(total[1], more)];
                let scale = *a.scales.add(left * LINES + i);
                let out = block.out.add((row + i) * block.out_row + column);
                // If all powers of two are normal numbers, the multiplication rounds again only if the result is subnormal. A line
                // that is not finite has the least scale of all.
                let exponent = |of_column: i32| 127 - scale as i64 - of_column as i64;
                let rounded = if exponent(most) >= 1 && exponent(least) <= 254 {
                    let rounded = _mm512_insertf32x8::<1>(
                        _mm512_castps256_ps512(_mm512_cvtepi64_ps(total[0])),
                        _mm512_cvtepi64_ps(total[1]),
                    );
                    let exponents = _mm512_sub_epi32(_mm512_set1_epi32(127 - scale), of_columns);
                    _mm512_mul_ps(rounded, _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponents)))
                } else {
                    let totals: [[i64; 8]; 2] = std::mem::transmute(total);
                    let mut rounded = [0.0; LINES];
                    for (j, rounded) in rounded.iter_mut().enumerate().take(columns) {
                        let other = *scales.add(j);
                        let finite = scale != NOT_FINITE && other != NOT_FINITE;
                        *rounded = if finite { fixed_round(totals[j / 8][j % 8] as i128, -scale - other) } else { NAN };
                    }
                    _mm512_loadu_ps(rounded.as_ptr())
                };
                let y = _mm512_add_ps(rounded, bias);
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(y, y);
                _mm512_mask_storeu_ps(out, mask, _mm512_mask_mov_ps(y, nan, _mm512_set1_ps(NAN)));
            }
        }
    }
}
