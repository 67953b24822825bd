//! Operations that move parts and keep their bits: slice, pad, gather.

use super::moves::{GRAIN, copy};
use super::{Call, Exec, Shared, chunks};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::interrupt::{self, pieces};
use crate::ops::{Lines, check_index, gather_axis, id, pad_before, slice_plan};
use crate::shape::MAX_RANK;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The rows along the last axis of a result y. `of_x` and `of_y` are the bytes between neighbours of x and y along each
/// dimension.
struct Rows {
    rank: usize,
    dims: [usize; MAX_RANK],
    of_x: [usize; MAX_RANK],
    of_y: [usize; MAX_RANK],
    /// The elements of a row, and the bytes from one to the next in x.
    n: usize,
    apart: usize,
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
            apart: size,
        };
        rows.dims[..rank].copy_from_slice(&dims[..rank]);
        let mut stride = rows.n * size;
        for axis in (0..rank).rev() {
            rows.of_y[axis] = stride;
            stride *= dims[axis];
        }
        rows
    }

    /// Moves all rows. Elements have `size` bytes and are contiguous in y's rows.
    ///
    /// # Safety
    /// The rows lie inside x and y, and y's rows don't overlap.
    unsafe fn go(mut self, exec: &Exec<'_>, size: usize, x: Shared<u8>, y: Shared<u8>) -> Result<()> {
        // Rows that lie behind one another in x and in y are one row, as long as enough rows are left for many threads.
        while self.rank > 0 && self.apart == size {
            let (last, row) = (self.rank - 1, self.n * size);
            let follow = self.dims[last] == 1 || (self.of_x[last], self.of_y[last]) == (row, row);
            if !follow || row * self.dims[last] > GRAIN {
                break;
            }
            (self.n, self.rank) = (self.n * self.dims[last], last);
        }
        let rows = self.dims[..self.rank].iter().product();
        chunks(exec, rows, GRAIN.div_ceil((self.n * size).max(1)), |start, end| {
            let (mut rest, mut from, mut to, mut digits) = (start, 0, 0, [0; MAX_RANK]);
            for axis in (0..self.rank).rev() {
                digits[axis] = rest % self.dims[axis];
                rest /= self.dims[axis];
                from += digits[axis] * self.of_x[axis];
                to += digits[axis] * self.of_y[axis];
            }
            for _ in start..end {
                // SAFETY: the caller promises that every row lies inside x and y, and y's rows are disjoint.
                unsafe {
                    let (x, y) = (x.get().add(from), y.get().add(to));
                    match size {
                        _ if self.apart == size => copy(x, y, self.n * size),
                        1 => strided::<u8>(x, self.apart, y, self.n),
                        2 => strided::<u16>(x, self.apart, y, self.n),
                        4 => strided::<u32>(x, self.apart, y, self.n),
                        _ => strided::<u64>(x, self.apart, y, self.n),
                    }
                }
                // The next row, as a counter carries: divisions would take longer than short rows.
                for axis in (0..self.rank).rev() {
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
        })
    }
}

/// Moves elements that are `apart` bytes apart.
///
/// # Safety
/// x has n elements at that distance, and y has room for n.
unsafe fn strided<T: Copy>(x: *const u8, apart: usize, y: *mut u8, n: usize) {
    // SAFETY: pieces lie inside both.
    pieces!(n, |at, count| (at..at + count).for_each(|i| unsafe {
        y.cast::<T>().add(i).write(x.add(i * apart).cast::<T>().read());
    }));
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
        *(if axis < rows.rank { &mut rows.of_x[axis] } else { &mut rows.apart }) = apart;
        stride *= x.shape.dims()[axis];
    }
    let from = Shared(call.f32(0)?.cast_mut().cast::<u8>().wrapping_add(skipped));
    // SAFETY: the plan's indices lie inside x, and the rows cover the output.
    unsafe { rows.go(exec, size, from, Shared(call.output.host()?)) }
}

/// `pad` of the op table: fills the output with the value, and then copies x into it.
pub(super) fn pad(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (x, shape) = (*call.meta(0), *call.output.shape());
    let (before, size, rank) = (pad_before(call.attrs, &x.shape)?, x.dtype.size(), x.shape.rank());
    let (from, to) = (Shared(call.f32(0)?.cast_mut().cast::<u8>()), Shared(call.output.host()?));
    let value = Shared(call.f32(1)?.cast_mut().cast::<u8>());
    if shape != x.shape {
        chunks(exec, shape.elements(), GRAIN / size, |start, end| {
            // SAFETY: the value is one element, and the output has at least `end` elements.
            unsafe {
                let y = to.get().add(start * size);
                match size {
                    1 => strided::<u8>(value.get(), 0, y, end - start),
                    2 => strided::<u16>(value.get(), 0, y, end - start),
                    4 => strided::<u32>(value.get(), 0, y, end - start),
                    _ => strided::<u64>(value.get(), 0, y, end - start),
                }
            }
        })?;
    }
    if x.shape.elements() == 0 {
        return Ok(());
    }
    let mut rows = Rows::of(x.shape.dims(), size);
    // x is contiguous. The result's dimensions say where its rows go.
    rows.of_x = rows.of_y;
    let (mut stride, mut skipped) = (size, 0);
    for axis in (0..rank).rev() {
        skipped += before[axis] * stride;
        rows.of_y[axis] = stride;
        stride *= shape.dims()[axis];
    }
    // SAFETY: the shape rule has made room for x's rows behind `skipped`.
    unsafe { rows.go(exec, size, from, Shared(to.get().wrapping_add(skipped))) }
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
