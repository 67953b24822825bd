//! Operations that move elements and keep their bits: embedding, transpose, concat.

use super::{Call, Exec, Shared, chunks};
use crate::error::{Result, fail};
use crate::hal::cpu::simd::{Kernel, Simd, dispatch};
use crate::interrupt::{self, Looks, pieces};
use crate::operand::View;
use crate::ops::{Lines, check_id, check_ids, concat_axis, id, transpose_axes};
use crate::shape::{MAX_RANK, Shape};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The least number of bytes that is worth another thread.
pub(super) const GRAIN: usize = 128 * 1024;

/// Copies bytes from x to y, in pieces.
///
/// # Safety
/// Both cover `bytes` bytes and don't overlap.
#[inline]
pub(super) unsafe fn copy(x: *const u8, y: *mut u8, bytes: usize) {
    // SAFETY: the caller vouches for one row.
    unsafe { copy_rows(x, y, bytes, [0; 2], 1) };
}

/// Copies rows of `bytes` bytes. `apart` is the distance from one row to the next in x and in y.
///
/// # Safety
/// x and y cover the rows and don't overlap.
#[inline(never)]
pub(super) unsafe fn copy_rows(x: *const u8, y: *mut u8, bytes: usize, apart: [usize; 2], count: usize) {
    let row = |row: usize| (x.wrapping_add(row * apart[0]), y.wrapping_add(row * apart[1]));
    // A call takes longer than a short row. Two blocks that may overlap cover it. Their units are values of their own: an array would go
    // through memory.
    macro_rules! short {
        ($($size:literal $unit:ty: $($at:literal $first:ident $last:ident),+;)*) => {
            $(if ($size..=2 * $size).contains(&bytes) {
                for (x, y) in (0..count).map(row) {
                    let (rest_of_x, rest_of_y) = (x.wrapping_add(bytes - $size), y.wrapping_add(bytes - $size));
                    // SAFETY: both blocks lie inside the row.
                    unsafe {
                        $(let $first = x.add($at).cast::<$unit>().read_unaligned();)+
                        $(let $last = rest_of_x.add($at).cast::<$unit>().read_unaligned();)+
                        $(y.add($at).cast::<$unit>().write_unaligned($first);)+
                        $(rest_of_y.add($at).cast::<$unit>().write_unaligned($last);)+
                    }
                }
                return;
            })*
        };
    }
    short! {
        64 u128: 0 a e, 16 b f, 32 c g, 48 d h;
        32 u128: 0 a c, 16 b d;
        16 u128: 0 a b;
        8 u64: 0 a b;
        4 u32: 0 a b;
    }
    for (x, y) in (0..count).map(row) {
        // SAFETY: pieces lie inside the row.
        pieces!(bytes, |at, count| unsafe { y.add(at).copy_from_nonoverlapping(x.add(at), count) });
    }
}

/// Returns an error unless every id of an embedding is a row of the table. Stops early if the caller no longer wants
/// the result.
pub(crate) fn check_all_ids(inputs: &[Option<View<'_>>]) -> Result<()> {
    let n = inputs[1].as_ref().map_or(0, |ids| ids.shape().elements());
    let mut checked = Ok(());
    interrupt::alone(&mut || {
        pieces!(n, |at, count| {
            if checked.is_ok() {
                checked = check_ids(inputs, at..at + count);
            }
        })
    })?;
    checked
}

/// `embedding` of the op table. Every id is checked before a row is written.
pub(super) fn embedding(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (table, ids) = (*call.meta(0), *call.meta(1));
    let bytes = table.shape.dims()[1..].iter().product::<usize>() * table.dtype.size();
    let (n, rows) = (ids.shape.elements(), table.shape.dims()[0]);
    let (from, to) = (Shared(call.f32(0)?.cast_mut().cast::<u8>()), Shared(call.output.host()?));
    let ids_at = Shared(call.f32(1)?.cast_mut().cast::<u8>());
    check_all_ids(call.inputs)?;
    // Another language may lend an array that one of its threads changes meanwhile. A changed id must not lead outside
    // the table, so each is checked again.
    let changed = AtomicBool::new(false);
    chunks(exec, n, GRAIN.div_ceil(bytes.max(1)), |start, end| {
        for i in start..end {
            // SAFETY: i is below the number of ids.
            let Ok(row) = check_id(i, unsafe { id(ids_at.get(), ids.dtype, i) }, rows) else {
                changed.store(true, Relaxed);
                continue;
            };
            // SAFETY: the row is one of the table's, and the output has n rows.
            unsafe { copy(from.get().add(row * bytes), to.get().add(i * bytes), bytes) };
        }
    })?;
    if changed.into_inner() {
        fail!(InvalidArgument, "another thread changed the ids while they were read");
    }
    Ok(())
}

/// `concat` of the op table.
pub(super) fn concat(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let shape = *call.output.shape();
    let axis = concat_axis(call.attrs, &shape)?;
    let Lines { outer, n, inner } = Lines::along(&shape, axis);
    let row = n * inner * call.output.dtype().size();
    let to = Shared(call.output.host()?);
    let mut at = 0;
    for (i, view) in call.inputs.iter().flatten().enumerate() {
        let part = Lines::along(view.shape(), axis).n * inner * view.dtype().size();
        let from = Shared(call.f32(i)?.cast_mut().cast::<u8>());
        chunks(exec, outer, GRAIN.div_ceil(part.max(1)), |start, end| {
            // SAFETY: each operand writes only its own columns of every row.
            unsafe {
                let (x, y) = (from.get().add(start * part), to.get().add(start * row + at));
                copy_rows(x, y, part, [part, row], end - start);
            }
        })?;
        at += part;
    }
    Ok(())
}

/// `transpose` of the op table.
pub(super) fn transpose(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (shape, dtype) = (&call.meta(0).shape, call.meta(0).dtype);
    let axes = transpose_axes(call.attrs, shape)?;
    if shape.elements() == 0 {
        return Ok(());
    }
    let from = Shared(call.f32(0)?.cast_mut().cast());
    permute(exec, shape, &axes, dtype.size(), from, Shared(call.output.host()?))
}

/// Reorders the axes of elements of `size` bytes. There must be at least one element.
pub(super) fn permute(
    exec: &Exec<'_>,
    shape: &Shape,
    axes: &[u8; MAX_RANK],
    size: usize,
    from: Shared<u8>,
    to: Shared<u8>,
) -> Result<()> {
    let grid = Grid::new(shape, axes);
    match size {
        1 => grid.permute::<u8>(exec, from, to),
        2 => grid.permute::<u16>(exec, from, to),
        4 => grid.permute::<u32>(exec, from, to),
        _ => grid.permute::<u64>(exec, from, to),
    }
}

/// A permutation of axes, without axes of size 1 and with axes merged that stay neighbours.
struct Grid {
    rank: usize,
    /// The result's dimensions.
    dims: [usize; MAX_RANK],
    /// The distance in x, in elements, between neighbours along each of the result's dimensions.
    strides: [usize; MAX_RANK],
}

impl Grid {
    /// The number of the result's rows that are moved together: a few cache lines of x.
    const BAND: usize = 64;

    fn new(shape: &Shape, axes: &[u8; MAX_RANK]) -> Grid {
        let mut grid = Grid { rank: 0, dims: [1; MAX_RANK], strides: [0; MAX_RANK] };
        for &axis in &axes[..shape.rank()] {
            let axis = axis as usize;
            let (n, stride) = (shape.dims()[axis], shape.dims()[axis + 1..].iter().product());
            if n == 1 {
                continue;
            }
            let last = grid.rank.wrapping_sub(1);
            if grid.rank > 0 && grid.strides[last] == stride * n {
                grid.dims[last] *= n;
                grid.strides[last] = stride;
            } else {
                (grid.dims[grid.rank], grid.strides[grid.rank]) = (n, stride);
                grid.rank += 1;
            }
        }
        grid.rank = grid.rank.max(1);
        if grid.strides[0] == 0 {
            grid.strides[0] = 1;
        }
        grid
    }

    /// Moves all elements: as lines if the last dimension stays last, and as squares if it doesn't.
    fn permute<T: Copy + Send>(&self, exec: &Exec<'_>, from: Shared<u8>, to: Shared<u8>) -> Result<()> {
        let (from, to) = (Shared(from.get().cast::<T>()), Shared(to.get().cast::<T>()));
        let last = self.rank - 1;
        let n = self.dims[last];
        if self.strides[last] == 1 {
            let lines = self.dims[..last].iter().product();
            return chunks(exec, lines, (GRAIN / size_of::<T>()).div_ceil(n), |start, end| {
                for line in start..end {
                    // SAFETY: lines of n elements lie inside both.
                    unsafe {
                        let x = from.get().add(self.offset(line, last, last));
                        copy(x.cast(), to.get().add(line * n).cast(), n * size_of::<T>());
                    }
                }
            });
        }
        // The dimension of the result along which x is contiguous. It exists, because x's last dimension is one of the
        // result's.
        let contiguous = (0..self.rank).find(|&axis| self.strides[axis] == 1).unwrap_or(last);
        let m = self.dims[contiguous];
        let step: usize = self.dims[contiguous + 1..].iter().product::<usize>();
        let others: usize = self.dims[..last].iter().product::<usize>() / m;
        // The result's rows are taken in bands, so that whole cache lines of x are used.
        let bands = m.div_ceil(Self::BAND);
        chunks(exec, others * bands, GRAIN.div_ceil(Self::BAND * n * size_of::<T>()), |start, end| {
            for task in start..end {
                let (other, band) = (task / bands, task % bands);
                let first = band * Self::BAND;
                // SAFETY: the band lies inside both, and `other` gives the rest of the offsets.
                unsafe {
                    let x = from.get().add(self.offset(other, contiguous, last) + first);
                    let y = to.get().add(self.position(other, contiguous, last) + first * step);
                    let rows = Self::BAND.min(m - first);
                    let rectangle = Rectangle { x, x_row: self.strides[last], y, y_row: step, m: rows, n };
                    match size_of::<T>() {
                        4 => dispatch(exec.isa, rectangle.cast()),
                        _ => rectangle.scalar(0, 0),
                    }
                }
            }
        })
    }

    /// Decodes `index` over all dimensions but two, and calls `f(axis, digit)` for each digit.
    fn digits(&self, mut index: usize, skip: usize, last: usize, mut f: impl FnMut(usize, usize)) {
        for axis in (0..last).rev().filter(|&axis| axis != skip) {
            f(axis, index % self.dims[axis]);
            index /= self.dims[axis];
        }
    }

    /// Returns where the line or square `index` begins in x.
    fn offset(&self, index: usize, skip: usize, last: usize) -> usize {
        let mut at = 0;
        self.digits(index, skip, last, |axis, digit| at += digit * self.strides[axis]);
        at
    }

    /// Returns where the line or square `index` begins in the result.
    fn position(&self, index: usize, skip: usize, last: usize) -> usize {
        let mut at = 0;
        self.digits(index, skip, last, |axis, digit| {
            at += digit * self.dims[axis + 1..self.rank].iter().product::<usize>();
        });
        at
    }
}

/// Computes `y[i][j] = x[j][i]` for i below m and j below n.
#[derive(Clone, Copy)]
struct Rectangle<T> {
    x: *const T,
    x_row: usize,
    y: *mut T,
    y_row: usize,
    m: usize,
    n: usize,
}

impl<T: Copy> Rectangle<T> {
    /// Returns the same rectangle with `T`, which must have 32 bits, as u32.
    fn cast(self) -> Rectangle<u32> {
        let Rectangle { x, x_row, y, y_row, m, n } = self;
        Rectangle { x: x.cast(), x_row, y: y.cast(), y_row, m, n }
    }

    /// Moves the elements at or beyond row `i0` or column `j0`, as many rows at a time as fill a cache line.
    ///
    /// # Safety
    /// x and y cover the rectangle.
    #[inline(always)]
    unsafe fn scalar(&self, i0: usize, j0: usize) {
        let mut looks = Looks::NEW;
        for j in 0..self.n {
            if looks.before(self.m) {
                return;
            }
            for i in if j < j0 { i0 } else { 0 }..self.m {
                // SAFETY: i and j lie inside the rectangle.
                unsafe { self.y.add(i * self.y_row + j).write(*self.x.add(j * self.x_row + i)) };
            }
        }
    }
}

impl Kernel for Rectangle<u32> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // The number of values in a cache line. Lines are written whole, because a large result evicts a line before
        // the next visit.
        const LINE: usize = 16;
        let Rectangle { x, x_row, y, y_row, m, n } = self;
        // SAFETY: squares lie inside the rectangle, and the rest is moved element by element.
        unsafe {
            let (whole_m, whole_n) = (m - m % S::LANES, n - n % S::LANES);
            let (mut looks, mut j) = (Looks::NEW, 0);
            while j < whole_n && !looks.before(LINE * m) {
                let mut i = 0;
                let end = whole_n.min(j + LINE);
                while i < whole_m {
                    let mut k = j;
                    loop {
                        S::transpose_square(x.add(k * x_row + i), x_row, y.add(i * y_row + k), y_row);
                        k += S::LANES;
                        if S::LANES >= LINE || k >= end {
                            break;
                        }
                    }
                    i += S::LANES;
                }
                j = end;
            }
            self.scalar(whole_m, whole_n);
        }
    }
}
