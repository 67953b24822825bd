//! Operations that move parts and keep their bits: slice, pad, gather.

use super::moves::{GRAIN, copy_rows};
use super::{Call, Exec, Shared, chunks};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::interrupt::{self, pieces};
use crate::ops::{Lines, check_index, gather_axis, id, pad_plan, slice_plan};
use crate::shape::MAX_RANK;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The rows along the last axis of a result y. `of_x` and `of_y` are the bytes between neighbours of x and y along each
/// dimension.
struct Rows {
    rank: usize,
    dims: [usize; MAX_RANK],
    of_x: [usize; MAX_RANK],
    of_y: [usize; MAX_RANK],
    /// The elements of a row, and the bytes from one to the next in x and in y.
    n: usize,
    apart: [usize; 2],
}

impl Rows {
    /// Makes the rows of a result with these dimensions.
    fn of(dims: &[usize], size: usize) -> Rows {
        let rank = dims.len().saturating_sub(1);
        let mut rows = Rows {
            rank,
            dims: [1; MAX_RANK],
            of_x: [0; MAX_RANK],
            of_y: [0; MAX_RANK],
            n: dims.last().copied().unwrap_or(1),
            apart: [size; 2],
        };
        rows.dims[..rank].copy_from_slice(&dims[..rank]);
        let mut stride = rows.n * size;
        for axis in (0..rank).rev() {
            rows.of_y[axis] = stride;
            stride *= dims[axis];
        }
        rows
    }

    /// Moves all rows. Elements have `size` bytes.
    ///
    /// # Safety
    /// The rows lie inside x and y, and y's rows don't overlap.
    unsafe fn go(mut self, exec: &Exec<'_>, size: usize, x: Shared<u8>, y: Shared<u8>) -> Result<()> {
        self.join(size);
        chunks(exec, self.count(), GRAIN.div_ceil((self.n * size).max(1)), |start, end| {
            // SAFETY: as the caller promises.
            unsafe { self.range(size, x.get(), y.get(), start, end) };
        })
    }

    /// The number of rows.
    fn count(&self) -> usize {
        self.dims[..self.rank].iter().product()
    }

    /// Makes one row of rows that lie behind one another in x and in y, as long as enough rows are left for many threads.
    fn join(&mut self, size: usize) {
        while self.rank > 0 && self.apart == [size; 2] {
            let (last, row) = (self.rank - 1, self.n * size);
            let follow = self.dims[last] == 1 || (self.of_x[last], self.of_y[last]) == (row, row);
            if !follow || row * self.dims[last] > GRAIN {
                break;
            }
            (self.n, self.rank) = (self.n * self.dims[last], last);
            self.dims[last] = 1;
        }
    }

    /// Moves the rows from `start` to before `end`.
    ///
    /// # Safety
    /// The rows lie inside x and y, and y's rows don't overlap.
    unsafe fn range(&self, size: usize, x: *const u8, y: *mut u8, start: usize, end: usize) {
        // The axis along which rows are moved together. A single row has one of length 1.
        let last = self.rank.saturating_sub(1);
        let along = self.dims[last];
        let (mut at, mut first, mut rest) = (start, start % along, start / along);
        let (mut from, mut to, mut digits) = (first * self.of_x[last], first * self.of_y[last], [0; MAX_RANK]);
        for axis in (0..last).rev() {
            digits[axis] = rest % self.dims[axis];
            rest /= self.dims[axis];
            from += digits[axis] * self.of_x[axis];
            to += digits[axis] * self.of_y[axis];
        }
        while at < end {
            let count = (along - first).min(end - at);
            // SAFETY: as the caller promises.
            unsafe { self.some(count, last, size, x.add(from), y.add(to)) };
            from -= first * self.of_x[last];
            to -= first * self.of_y[last];
            (at, first) = (at + count, 0);
            // The next rows, as a counter carries: divisions would take longer than short rows.
            for axis in (0..last).rev() {
                digits[axis] += 1;
                from += self.of_x[axis];
                to += self.of_y[axis];
                if digits[axis] < self.dims[axis] {
                    break;
                }
                digits[axis] = 0;
                from -= self.dims[axis] * self.of_x[axis];
                to -= self.dims[axis] * self.of_y[axis];
            }
        }
    }

    /// Moves `count` rows along an axis.
    ///
    /// # Safety
    /// The rows lie inside x and y.
    #[inline(always)]
    unsafe fn some(&self, count: usize, axis: usize, size: usize, x: *const u8, y: *mut u8) {
        let (n, apart, rows) = (self.n, self.apart, [self.of_x[axis], self.of_y[axis]]);
        // SAFETY: as the caller promises.
        unsafe {
            match size {
                _ if apart == [size; 2] => copy_rows(x, y, n * size, rows, count),
                1 => strided::<u8>(x, y, n, apart, rows, count),
                2 => strided::<u16>(x, y, n, apart, rows, count),
                4 => strided::<u32>(x, y, n, apart, rows, count),
                _ => strided::<u64>(x, y, n, apart, rows, count),
            }
        }
    }
}

/// Moves rows of n elements. `apart` and `rows` are the bytes from one element and from one row to the next, in x and in y.
///
/// # Safety
/// The rows lie inside x and y.
#[inline(always)]
unsafe fn strided<T: Copy>(x: *const u8, y: *mut u8, n: usize, apart: [usize; 2], rows: [usize; 2], count: usize) {
    for row in 0..count {
        let (x, y) = (x.wrapping_add(row * rows[0]), y.wrapping_add(row * rows[1]));
        // SAFETY: pieces lie inside both.
        pieces!(n, |at, count| (at..at + count).for_each(|i| unsafe {
            y.add(i * apart[1]).cast::<T>().write(x.add(i * apart[0]).cast::<T>().read());
        }));
    }
}

/// Writes the element at x to n elements of y.
///
/// # Safety
/// x is one element, and y has room for n.
unsafe fn fill<T: Copy>(x: *const u8, y: *mut u8, n: usize) {
    // Values are written one by one to a block, and the block is copied, which uses vectors.
    const BLOCK: usize = 512;
    // SAFETY: the block and its copies lie inside y.
    unsafe {
        let (value, y) = (x.cast::<T>().read(), y.cast::<T>());
        (0..n.min(BLOCK)).for_each(|i| y.add(i).write(value));
        pieces!(n, |at, count| for first in (at.max(BLOCK)..at + count).step_by(BLOCK) {
            y.add(first).copy_from_nonoverlapping(y, BLOCK.min(at + count - first));
        });
    }
}

/// `slice` of the op table.
pub(super) fn slice(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let x = *call.meta(0);
    let (plan, size, rank) = (slice_plan(call.attrs, &x.shape)?, x.dtype.size(), x.shape.rank());
    let mut rows = Rows::of(&plan.dims[..rank], size);
    let (mut stride, mut skipped) = (size, 0);
    for axis in (0..rank).rev() {
        skipped += plan.first[axis] * stride;
        let apart = plan.step[axis] * stride;
        *(if axis < rows.rank { &mut rows.of_x[axis] } else { &mut rows.apart[0] }) = apart;
        stride *= x.shape.dims()[axis];
    }
    let from = Shared(call.f32(0)?.cast_mut().cast::<u8>().wrapping_add(skipped));
    // SAFETY: the plan's indices lie inside x, and the rows cover the output.
    unsafe { rows.go(exec, size, from, Shared(call.output.host()?)) }
}

/// `pad` of the op table: fills the output with the value, and then copies x into it.
pub(super) fn pad(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (x, shape) = (*call.meta(0), *call.output.shape());
    let (plan, size, rank) = (pad_plan(call.attrs, &x.shape)?, x.dtype.size(), x.shape.rank());
    let (from, to) = (Shared(call.f32(0)?.cast_mut().cast::<u8>()), Shared(call.output.host()?));
    let value = Shared(call.f32(1)?.cast_mut().cast::<u8>());
    // SAFETY: the value is one element, and all callers fill elements of the output.
    let filled = |start: usize, count: usize| unsafe {
        let y = to.get().add(start * size);
        match size {
            1 => fill::<u8>(value.get(), y, count),
            2 => fill::<u16>(value.get(), y, count),
            4 => fill::<u32>(value.get(), y, count),
            _ => fill::<u64>(value.get(), y, count),
        }
    };
    if x.shape.elements() == 0 {
        return chunks(exec, shape.elements(), GRAIN / size, |start, end| filled(start, end - start));
    }
    let mut rows = Rows::of(x.shape.dims(), size);
    // x is contiguous. The result's dimensions say where its rows go.
    rows.of_x = rows.of_y;
    let (mut stride, mut skipped) = (size, 0);
    for axis in (0..rank).rev() {
        skipped += plan.first[axis] * stride;
        *(if axis < rows.rank { &mut rows.of_y[axis] } else { &mut rows.apart[1] }) = plan.step[axis] * stride;
        stride *= shape.dims()[axis];
    }
    let inside = Shared(to.get().wrapping_add(skipped));
    let slabs = x.shape.dims().first().copied().unwrap_or(1);
    if rank > 1 && shape != x.shape && shape.dims()[0] == slabs {
        // Only other axes are padded. A slab is filled and its rows are copied while it is in the cache.
        rows.join(size);
        let (own, slab) = (rows.count() / slabs, shape.elements() / slabs);
        return chunks(exec, slabs, GRAIN.div_ceil(slab * size), |start, end| {
            for i in start..end {
                filled(i * slab, slab);
                // SAFETY: the shape rule has made room for x's rows behind `skipped`, and each slab has as many.
                unsafe { rows.range(size, from.get(), inside.get(), i * own, (i + 1) * own) };
            }
        });
    }
    if shape != x.shape {
        chunks(exec, shape.elements(), GRAIN / size, |start, end| filled(start, end - start))?;
    }
    // SAFETY: the shape rule has made room for x's rows behind `skipped`.
    unsafe { rows.go(exec, size, from, inside) }
}

/// Finds elements along an axis by index.
struct Along {
    ids: Shared<u8>,
    dtype: DType,
    of_x: Lines,
    of_y: Lines,
}

impl Along {
    /// Returns the element of x that goes to a position of the result, or an error if the axis has no such index.
    ///
    /// # Safety
    /// The position is below the number of ids.
    #[inline(always)]
    unsafe fn source(&self, position: usize) -> Result<usize> {
        let Along { ids, dtype, of_x, of_y } = *self;
        // SAFETY: the caller promises that the position is below the number of ids.
        let index = check_index(position, unsafe { id(ids.get(), dtype, position) }, of_x.n)?;
        Ok((position / (of_y.n * of_y.inner) * of_x.n + index) * of_x.inner + position % of_x.inner)
    }

    /// Moves elements of x to positions of y. Returns whether the axis has every index.
    ///
    /// # Safety
    /// The positions are below the number of ids, and y has room for that many elements.
    unsafe fn go<T: Copy>(&self, x: *const u8, y: *mut u8, start: usize, end: usize) -> bool {
        let mut all = true;
        pieces!(end - start, |first, count| for position in start + first..start + first + count {
            // SAFETY: the caller promises the positions, and a checked index is inside x.
            unsafe {
                match self.source(position) {
                    Ok(at) => y.cast::<T>().add(position).write(x.cast::<T>().add(at).read()),
                    Err(_) => all = false,
                }
            }
        });
        all
    }
}

/// `gather` of the op table. Every index is checked before an element is written.
pub(super) fn gather(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (x, ids) = (*call.meta(0), *call.meta(1));
    let axis = gather_axis(call.attrs, &x.shape)?;
    let along = Along {
        ids: Shared(call.f32(1)?.cast_mut().cast::<u8>()),
        dtype: ids.dtype,
        of_x: Lines::along(&x.shape, axis),
        of_y: Lines::along(&ids.shape, axis),
    };
    let (from, to) = (Shared(call.f32(0)?.cast_mut().cast::<u8>()), Shared(call.output.host()?));
    let (count, mut wrong) = (ids.shape.elements(), None);
    interrupt::alone(&mut || {
        pieces!(count, |at, count| {
            // SAFETY: positions are below the number of ids.
            wrong =
                wrong.take().or_else(|| (at..at + count).find_map(|position| unsafe { along.source(position) }.err()));
        })
    })?;
    if let Some(error) = wrong {
        return Err(error);
    }
    // Another language may lend an array that one of its threads changes meanwhile. A changed index must not lead
    // outside x, so each is checked again.
    let changed = AtomicBool::new(false);
    chunks(exec, count, GRAIN / 8, |start, end| {
        // SAFETY: the output has an element for each id.
        let all = unsafe {
            match x.dtype.size() {
                1 => along.go::<u8>(from.get(), to.get(), start, end),
                2 => along.go::<u16>(from.get(), to.get(), start, end),
                4 => along.go::<u32>(from.get(), to.get(), start, end),
                _ => along.go::<u64>(from.get(), to.get(), start, end),
            }
        };
        if !all {
            changed.store(true, Relaxed);
        }
    })?;
    if changed.into_inner() {
        fail!(InvalidArgument, "another thread changed the ids while they were read");
    }
    Ok(())
}
