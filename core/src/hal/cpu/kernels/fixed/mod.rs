//! Matrix products of fixed-point numbers, for the `precision` attribute.
//!
//! First the lines' scales are computed. Then threads claim blocks of the result (`tiles.rs`). For each block, a part
//! of K is rounded and laid out in panels for both operands, multiplied, and added to the block's totals.

#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod bytes;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod digits;
mod tiles;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod units;

use super::gemm::{Block, Epilogue, Matrix, Packing};
use super::{Exec, Shared};
use crate::contract::{Precision, fixed_scale};
use crate::error::Result;
use crate::hal::cpu::simd::{Kernel, Simd, dispatch};
use crate::interrupt::Looks;
use crate::isa::Isa;
use tiles::{Room, TileShape, Tiles};

/// What other products in f64 have in common with these.
#[cfg(feature = "integers")]
pub(super) mod exact {
    pub use super::tiles::{EXACT, PART, ROUND, odd_sum, power};
}

/// The largest block of the result that one task computes.
const ROWS: usize = 288;
const COLUMNS: usize = 384;
/// The least number of multiply-adds that is worth a task.
const TASK: usize = 1 << 20;
/// Stands for the scale of a line that is not finite.
const NOT_FINITE: i32 = i32::MIN;

/// A batch of products of one size, with operands of these layouts. `operands` returns which matrices of A and B a
/// product has, and its epilogue.
pub(super) struct Fixed<'a> {
    pub precision: Precision,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub count: usize,
    pub a: Matrix,
    pub b: Matrix,
    /// B's digits, if they were packed: `digits_room` says where, and B itself is not read.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))] // There are none.
    pub digits: Option<*const f32>,
    /// The numbers of matrices in A and in B.
    pub matrices: [usize; 2],
    pub operands: &'a (dyn Fn(usize) -> (usize, usize, Epilogue) + Sync),
    pub out: Shared<f32>,
}

/// Returns the name of what multiplies exact integers with an instruction set, for products that are not small and whose K is not
/// very long.
pub fn integer_unit(isa: Isa) -> &'static str {
    match isa {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Isa::Avx512 => match units::Unit::best() {
            Some(units::Unit::Amx) => "AMX",
            Some(units::Unit::Vnni) => "VNNI",
            None => "f64",
        },
        _ => "f64",
    }
}

/// Returns the bytes of a packed right operand's digits. `None` if this processor multiplies no bytes, or not so many.
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
pub fn digits_room(exec: &Exec<'_>, precision: Precision, k: usize, n: usize) -> Option<usize> {
    bytes::room(exec, precision, k, n)
}

/// Returns the bytes of a packed right operand's digits: no kernel of this build reads such.
#[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
pub fn digits_room(_: &Exec<'_>, _: Precision, _: usize, _: usize) -> Option<usize> {
    None
}

impl Exec<'_> {
    /// Packs the digits of a `[k, n]` matrix, or of the transpose of one that is stored transposed.
    ///
    /// # Safety
    /// `b` has k·n values. Only this call uses `to`, which has the room that `digits_room` asks for.
    pub unsafe fn pack_digits(
        &self,
        b: *const f32,
        precision: Precision,
        [k, n]: [usize; 2],
        transposed: bool,
        to: *mut f32,
    ) -> Result<()> {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        // SAFETY: passed on; there is room only where a unit is.
        return unsafe { bytes::pack(self, Matrix::new(b, k, n, transposed), precision, [k, n], to) };
        #[cfg(not(all(target_arch = "x86_64", feature = "avx512")))]
        {
            let _ = (b, precision, k, n, transposed, to);
            Ok(())
        }
    }
}

impl Fixed<'_> {
    /// Computes all products, with their blocks spread over the threads.
    pub fn compute(&self, exec: &Exec<'_>) -> Result<()> {
        let Fixed { m, n, k, count, precision, matrices: [of_a, of_b], .. } = *self;
        if m * n * count == 0 {
            return Ok(());
        }
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        if let Some(unit) = bytes::unit(exec, self) {
            return self.compute_by(exec, unit);
        }
        let threads = exec.pool.threads();
        let (mut rows, mut columns) = (m.min(ROWS), n.min(COLUMNS));
        let worth = (count * m.max(8)).saturating_mul(n).saturating_mul(k.max(1)) / TASK;
        while threads > 1 && count * m.div_ceil(rows) * n.div_ceil(columns) < worth.min(4 * threads) {
            match (rows > 48, columns > 48) {
                (_, true) if columns >= rows => columns = columns.div_ceil(2).next_multiple_of(24),
                (true, _) => rows = rows.div_ceil(2).next_multiple_of(8),
                (_, true) => columns = columns.div_ceil(2).next_multiple_of(24),
                _ => break,
            }
        }
        let (down, across) = (m.div_ceil(rows), n.div_ceil(columns));
        let tasks = count * down * across;
        // SAFETY: an `Isa` value comes only from a device that runs that instruction set.
        let shape = unsafe { dispatch(exec.isa, TileShape) };
        let each = Room::new(shape, rows, columns, k).floats;
        let scales = exec.scratch.take(of_a * m + of_b * n)?;
        let scratch = exec.scratch.take(each * threads.min(tasks))?;
        let a_scales = Shared(scales.pointer().cast::<i32>());
        let b_scales = Shared(a_scales.get().wrapping_add(of_a * m));
        self.scales(exec, self.a, of_a, m, a_scales)?;
        let turned = Matrix { data: self.b.data, row: self.b.column, column: self.b.row };
        self.scales(exec, turned, of_b, n, b_scales)?;
        let scratch = Shared(scratch.pointer());
        let (a, b) = (Shared(self.a.data.cast_mut()), Shared(self.b.data.cast_mut()));
        let (a_steps, b_steps) = ((self.a.row, self.a.column), (self.b.row, self.b.column));
        let (out, operands) = (self.out, self.operands);
        exec.pool.try_run(tasks, &|task, seat| {
            let (batch, rest) = (task / (down * across), task % (down * across));
            let (i, j) = (rest % down * rows, rest / down * columns);
            let (a_at, b_at, epilogue) = operands(batch);
            let (rows, columns) = (rows.min(m - i), columns.min(n - j));
            // SAFETY: (i, j) lies inside the result, which the operands fit, and blocks are disjoint. Only one task at
            // a time uses a seat's scratch.
            unsafe {
                let a = Matrix { data: a.get().add(a_at * m * k), row: a_steps.0, column: a_steps.1 };
                let b = Matrix { data: b.get().add(b_at * k * n), row: b_steps.0, column: b_steps.1 };
                let block = Block {
                    m: rows,
                    n: columns,
                    k,
                    a: if k == 0 { a } else { a.at(i, 0) },
                    b: if k == 0 { b } else { b.at(0, j) },
                    out: out.get().add((batch * m + i) * n + j),
                    out_row: n,
                    packing: Packing { a: false, b: false, cache: 0 },
                    epilogue: epilogue.at(i, j),
                };
                let tiles = Tiles {
                    block: &block,
                    a_scales: a_scales.get().add(a_at * m + i),
                    b_scales: b_scales.get().add(b_at * n + j),
                    precision,
                    scratch: scratch.get().add(each * seat),
                };
                dispatch(exec.isa, tiles);
                block.finish(exec.isa);
            }
        })
    }

    /// Computes the scales of the rows of `count` matrices, which have `lines` rows each and are contiguous.
    fn scales(&self, exec: &Exec<'_>, from: Matrix, count: usize, lines: usize, to: Shared<i32>) -> Result<()> {
        let Fixed { k, precision, .. } = *self;
        let Matrix { data, row, column } = from;
        let data = Shared(data.cast_mut());
        // Lines that are not contiguous are read side by side.
        let some = if row == 1 { 1024 } else { (TASK / 4 / k.max(1)).clamp(1, 64) }.min(lines.max(1));
        let parts = lines.div_ceil(some);
        let isa = exec.isa;
        exec.pool.try_run(count * parts, &|task, _| {
            let (matrix, first) = (task / parts, task % parts * some);
            let lines_here = some.min(lines - first);
            // SAFETY: the lines are the operand's, and no two tasks have the same lines.
            unsafe {
                let from = Matrix { data: data.get().wrapping_add(matrix * lines * k + first * row), row, column };
                let to = to.get().add(matrix * lines + first);
                dispatch(isa, Scales { from, lines: lines_here, k, precision, to });
            }
        })
    }
}

/// Computes the scales of some rows.
struct Scales {
    from: Matrix,
    lines: usize,
    k: usize,
    precision: Precision,
    to: *mut i32,
}

impl Kernel for Scales {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Scales { from: Matrix { data, row, column }, lines, k, precision, to } = self;
        let mut looks = Looks::NEW;
        // SAFETY: every index lies inside the rows. `to` has one value for each row: first the largest magnitude, then
        // the scale.
        unsafe {
            let magnitude = |p: *const f32| (*p).to_bits() as i32 & 0x7fff_ffff;
            if row == 1 && column != 1 {
                (0..lines).for_each(|i| *to.add(i) = 0);
                for p in 0..k {
                    let line = data.add(p * column);
                    for i in 0..lines {
                        *to.add(i) = (*to.add(i)).max(magnitude(line.add(i)));
                    }
                    if looks.before(lines) {
                        return;
                    }
                }
            } else {
                for i in 0..lines {
                    let line = data.wrapping_add(i * row);
                    let mut largest = [0; 64];
                    let whole = if column == 1 { k / 64 * 64 } else { 0 };
                    for p in (0..whole).step_by(64) {
                        for (lane, largest) in largest.iter_mut().enumerate() {
                            *largest = (*largest).max(magnitude(line.add(p + lane)));
                        }
                    }
                    for p in whole..k {
                        largest[0] = largest[0].max(magnitude(line.add(p * column)));
                    }
                    *to.add(i) = largest.into_iter().fold(0, i32::max);
                    if looks.before(k) {
                        return;
                    }
                }
            }
            for i in 0..lines {
                *to.add(i) = fixed_scale(*to.add(i) as u32, precision).unwrap_or(NOT_FINITE);
            }
        }
    }
}
