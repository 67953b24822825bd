//! Lowers operations that move parts and keep their bits: slice, pad, gather.

use super::moves::{ALONG, Axis, checked, copy, count, dispatch};
use super::{Call, Encoder};
use crate::error::{Error, Result, Status};
use crate::ops::{Lines, SlicePlan, check_index, gather_axis, pad_plan, slice_plan};
use crate::shape::MAX_RANK;
use smallvec::SmallVec;

/// `slice` of the op table.
pub fn slice(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let x = call.operand(0);
    let (plan, size, rank) = (slice_plan(call.attrs, x.shape)?, x.dtype.size() as u64, x.shape.rank());
    let SlicePlan { dims, first, step } = plan;
    let (mut axes, mut from): (SmallVec<[Axis; MAX_RANK]>, u64) = (SmallVec::new(), x.address);
    let (mut of_x, mut of_y) = (size, size);
    for axis in (0..rank).rev() {
        from += first[axis] as u64 * of_x;
        axes.push((dims[axis] as u64, step[axis] as u64 * of_x, of_y));
        of_x *= x.shape.dims()[axis] as u64;
        of_y *= dims[axis] as u64;
    }
    copy_together(encoder, from, call.output.address, size, &axes)
}

/// `pad` of the op table: fills the output with the value, and then copies x into it.
pub fn pad(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (x, y) = (call.operand(0), call.output);
    let (plan, size, rank) = (pad_plan(call.attrs, x.shape)?, x.dtype.size() as u64, x.shape.rank());
    if x.shape != y.shape {
        copy(encoder, call.operand(1).address, y.address, size, &[(y.shape.elements() as u64, 0, size)])?;
    }
    if x.elements() == 0 {
        return Ok(());
    }
    let (mut axes, mut to): (SmallVec<[Axis; MAX_RANK]>, u64) = (SmallVec::new(), y.address);
    let (mut of_x, mut of_y) = (size, size);
    for axis in (0..rank).rev() {
        to += plan.first[axis] as u64 * of_y;
        axes.push((x.shape.dims()[axis] as u64, of_x, plan.step[axis] as u64 * of_y));
        of_x *= x.shape.dims()[axis] as u64;
        of_y *= y.shape.dims()[axis] as u64;
    }
    copy_together(encoder, x.address, to, size, &axes)
}

/// Copies elements along axes, given from the last to the first. Axes that are contiguous in both become one row of
/// bytes.
fn copy_together(encoder: &mut dyn Encoder, x: u64, y: u64, size: u64, axes: &[Axis]) -> Result<()> {
    let (mut bytes, mut together) = (size, 0);
    while let Some(&(n, of_x, of_y)) = axes.get(together) {
        if n != 1 && (of_x != bytes || of_y != bytes) {
            break;
        }
        (bytes, together) = (bytes * n, together + 1);
    }
    copy(encoder, x, y, bytes, &axes[together..])
}

/// `gather` of the op table. Every index is checked before an element is written.
pub fn gather(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (x, ids) = (call.operand(0), call.operand(1));
    if ids.elements() == 0 {
        return Ok(());
    }
    let axis = gather_axis(call.attrs, x.shape)?;
    let (of_x, of_y) = (Lines::along(x.shape, axis), Lines::along(ids.shape, axis));
    // An element is one unit, or two if it has eight bytes.
    let unit = x.dtype.size().min(4) as u32;
    let inner = x.dtype.size() as u32 / unit;
    let units = count(u64::from(ids.elements().max(x.elements())) * u64::from(inner))?.min(ids.elements() * inner);
    let mut arguments = checked(encoder, ids, of_x.n as u32, explain_index)?;
    (arguments.x, arguments.y) = (x.address, call.output.address);
    (arguments.n, arguments.inner) = (units, inner);
    (arguments.m, arguments.x_row) = ((of_y.n * of_y.inner) as u32, of_y.inner as u32);
    dispatch(encoder, &[ALONG, unit, ids.dtype as u32], &arguments, units.div_ceil(1024))
}

/// Makes the error from what the checking kernel found.
fn explain_index([position, low, high, n]: [u32; 4]) -> Error {
    let id = (u64::from(high) << 32 | u64::from(low)) as i64;
    match check_index(!position as usize, id, n as usize) {
        Err(error) => error,
        Ok(_) => Error::new(Status::Internal, "a kernel refused an id in range"),
    }
}
