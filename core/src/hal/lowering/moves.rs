//! Lowers operations that move elements and keep their bits: transpose, concat, embedding.

use super::operands::packed;
use super::{Call, MOST, Operand};
use super::{Encoder, Explain, Kernels};
use crate::error::{Error, Result, Status, fail};
use crate::ops::{Lines, check_id, concat_axis, transpose_axes};
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

// The values of moves.comp's first specialization constant.
const COPY: u32 = 0;
const GATHER: u32 = 1;
const CHECK: u32 = 2;
const COLLECT: u32 = 3;
const TRANSPOSE: u32 = 4;
pub const CAST: u32 = 5;
pub const ALONG: u32 = 6;
pub const COMPARE: u32 = 7;
pub const SELECT: u32 = 8;
/// CUDA's alone.
pub const HEADS: u32 = 9;

/// The number of ids that a workgroup checks.
const CHECKED: u32 = 16384;
/// The side of the squares that are transposed, in elements.
const SQUARE: u32 = 32;

/// The push constants of `moves.comp`.
#[derive(Clone, Copy, Default)]
pub struct Arguments {
    pub x: u64,
    pub y: u64,
    pub outer: u64,
    pub ids: u64,
    pub flag: u64,
    pub fault: u64,
    pub rank: u32,
    pub m: u32,
    pub n: u32,
    pub m_squares: u32,
    pub n_squares: u32,
    pub x_row: u32,
    pub y_row: u32,
    pub inner: u32,
    pub rows: u32,
}

/// Enqueues a kernel. `constants` are the function, the bytes of a unit, the kind, and those of a cast.
#[inline(never)]
pub fn dispatch(encoder: &mut dyn Encoder, constants: &[u32], arguments: &Arguments, groups: u32) -> Result<()> {
    let &Arguments { x, y, outer, ids, flag, fault, rank, m, n, m_squares, n_squares, x_row, y_row, inner, rows } =
        arguments;
    let words = [rank, m, n, m_squares, n_squares, x_row, y_row, inner, rows];
    let push: [u32; 21] = packed(&[x, y, outer, ids, flag, fault], &words);
    encoder.dispatch(Kernels::Moves, constants, &push, [groups, 1, 1])
}

/// An axis: its size, and the bytes between neighbours of x and of y.
pub type Axis = (u64, u64, u64);

/// Returns the size of the largest unit that divides all of these numbers. They are combined by bitwise or.
fn unit(everything: u64) -> u32 {
    match everything.trailing_zeros() {
        0 => 1,
        1 => 2,
        2..4 => 4,
        _ => 16,
    }
}

/// Checks that kernels can count a result's units.
pub fn count(units: u64) -> Result<u32> {
    if units > MOST as u64 {
        fail!(Unsupported, "a move of {units} units; GPU kernels take up to {MOST}");
    }
    Ok(units as u32)
}

/// Copies `bytes` contiguous bytes for every index of the axes, which are given from the last to the first.
pub fn copy(encoder: &mut dyn Encoder, x: u64, y: u64, bytes: u64, axes: &[Axis]) -> Result<()> {
    copy_filled(encoder, x, y, bytes, bytes, axes)
}

/// Copies rows of `row` bytes to places `pitch` bytes apart. The rest of each place repeats the row's last bytes:
/// kernels that read in fours read it, but don't use it.
pub fn copy_rows(encoder: &mut dyn Encoder, x: u64, y: u64, rows: u64, row: u64, pitch: u64) -> Result<()> {
    copy_filled(encoder, x, y, row, pitch, &[(rows, row, pitch)])
}

/// Copies as [`copy`], but writes `filled` bytes for each index, of which `bytes` come from x.
fn copy_filled(encoder: &mut dyn Encoder, x: u64, y: u64, bytes: u64, filled: u64, axes: &[Axis]) -> Result<()> {
    let everything = axes.iter().fold(x | y | bytes | filled, |all, &(_, of_x, of_y)| all | of_x | of_y);
    let unit = unit(everything);
    let [m, inner] = [bytes, filled].map(|bytes| bytes / unit as u64);
    let n = count(axes.iter().fold(inner, |n, axis| n * axis.0))?;
    let (m, inner, rank) = (m as u32, inner as u32, axes.len() as u32);
    let mut arguments = Arguments { x, y, m, n, inner, rank, ..Arguments::default() };
    arguments.outer = parameters(encoder, axes, unit)?;
    dispatch(encoder, &[COPY, unit, 0], &arguments, n.div_ceil(1024))
}

/// Returns the address of the axes' sizes and of their strides in units.
fn parameters(encoder: &mut dyn Encoder, axes: &[Axis], unit: u32) -> Result<u64> {
    if axes.is_empty() {
        return Ok(0);
    }
    let mut words: SmallVec<[u32; 3 * MAX_RANK]> = SmallVec::new();
    for &(size, of_x, of_y) in axes {
        words.extend([size as u32, (of_x / unit as u64) as u32, (of_y / unit as u64) as u32]);
    }
    encoder.parameters(&words)
}

/// `concat` of the op table.
pub fn concat(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let axis = concat_axis(call.attrs, call.output.shape)?;
    let size = call.output.dtype.size();
    let Lines { outer, n, inner } = Lines::along(call.output.shape, axis);
    let row = (n * inner * size) as u64;
    let mut y = call.output.address;
    for x in call.inputs.iter().flatten() {
        let part = (Lines::along(x.shape, axis).n * inner * size) as u64;
        if part > 0 {
            copy(encoder, x.address, y, part, &[(outer as u64, part, row)])?;
        }
        y += part;
    }
    Ok(())
}

/// `transpose` of the op table.
pub fn transpose(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let x = call.operand(0);
    let order = transpose_axes(call.attrs, x.shape)?;
    permute(encoder, x.shape, &order, x.dtype.size() as u64, x.address, call.output.address)
}

/// Moves elements of `size` bytes from x to y in another order of axes.
pub fn permute(
    encoder: &mut dyn Encoder,
    shape: &Shape,
    order: &[u8; MAX_RANK],
    size: u64,
    x: u64,
    y: u64,
) -> Result<()> {
    let mut axes = permuted(shape, order, size);
    match axes.last().copied() {
        None => return copy(encoder, x, y, size, &[]),
        Some((n, of_x, _)) if of_x == size => {
            axes.pop();
            axes.reverse();
            return copy(encoder, x, y, n * size, &axes);
        }
        _ => {}
    }
    axes.reverse();
    // The axis along which x is contiguous. It exists, because x's last axis is one of the result's.
    let contiguous = axes.iter().position(|axis| axis.1 == size).unwrap_or(0);
    let ((m, _, y_row), (n, x_row, _)) = (axes[contiguous], axes[0]);
    if m.min(n) < 8 || size == 1 {
        // Most of each square would be empty, or elements are bytes, for which no kernel has squares.
        return copy(encoder, x, y, size, &axes);
    }
    axes.remove(contiguous);
    axes.remove(0);
    let words = (y | y_row | (n * size)).is_multiple_of(4) && axes.iter().all(|axis| axis.2.is_multiple_of(4));
    let others: u64 = axes.iter().map(|axis| axis.0).product();
    let (m, n) = (m as u32, n as u32);
    let (m_squares, n_squares) = (m.div_ceil(SQUARE), n.div_ceil(SQUARE));
    let (x_row, y_row) = ((x_row / size) as u32, (y_row / size) as u32);
    let outer = parameters(encoder, &axes, size as u32)?;
    let rank = axes.len() as u32;
    let arguments = Arguments { x, y, outer, rank, m, n, m_squares, n_squares, x_row, y_row, ..Arguments::default() };
    let constants = [TRANSPOSE, size as u32, u32::from(words)];
    dispatch(encoder, &constants, &arguments, others as u32 * m_squares * n_squares)
}

/// Returns the result's axes in order, without axes of size 1 and with axes merged that stay neighbours.
fn permuted(shape: &Shape, axes: &[u8; MAX_RANK], size: u64) -> SmallVec<[Axis; MAX_RANK]> {
    let mut merged: SmallVec<[Axis; MAX_RANK]> = SmallVec::new();
    for &axis in &axes[..shape.rank()] {
        let (dims, axis) = (shape.dims(), axis as usize);
        let (n, stride) = (dims[axis] as u64, dims[axis + 1..].iter().product::<usize>() as u64 * size);
        match merged.last_mut() {
            _ if n == 1 => {}
            Some(last) if last.1 == stride * n => *last = (last.0 * n, stride, 0),
            _ => merged.push((n, stride, 0)),
        }
    }
    let mut step = size;
    for axis in merged.iter_mut().rev() {
        axis.2 = step;
        step *= axis.0;
    }
    merged
}

/// `embedding` of the op table. Every id is checked before a row is written.
pub fn embedding(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (table, ids) = (call.operand(0), call.operand(1));
    let rows = table.shape.dims()[0] as u32;
    let bytes = table.shape.dims()[1..].iter().product::<usize>() as u64 * table.dtype.size() as u64;
    let n = ids.elements();
    if n == 0 {
        return Ok(());
    }
    let unit = unit(table.address | call.output.address | bytes);
    let inner = bytes / unit as u64;
    let units = count(inner * u64::from(n.max(rows)))?.min(inner as u32 * n);
    let mut arguments = checked(encoder, ids, rows, explain)?;
    if units == 0 {
        return Ok(());
    }
    (arguments.x, arguments.y) = (table.address, call.output.address);
    (arguments.n, arguments.inner) = (units, inner as u32);
    dispatch(encoder, &[GATHER, unit, ids.dtype as u32], &arguments, units.div_ceil(1024))
}

/// Enqueues a check that all ids are below `rows`. There must be at least one id. Returns the arguments of a kernel
/// that uses the ids.
pub fn checked(encoder: &mut dyn Encoder, ids: Operand<'_>, rows: u32, explain: Explain) -> Result<Arguments> {
    let (n, kind) = (ids.elements(), ids.dtype as u32);
    let groups = n.div_ceil(CHECKED);
    let fault = encoder.fault(explain)?;
    let flag = encoder.scratch(4)?;
    let mut arguments = Arguments { ids: ids.address, fault, flag, rows, n, ..Arguments::default() };
    if groups == 1 {
        (arguments.y, arguments.inner) = (flag, 1);
        dispatch(encoder, &[CHECK, 4, kind], &arguments, 1)?;
    } else {
        arguments.y = encoder.scratch(4 * groups as u64)?;
        dispatch(encoder, &[CHECK, 4, kind], &arguments, groups)?;
        (arguments.x, arguments.y, arguments.inner, arguments.n) = (arguments.y, flag, 1, groups);
        dispatch(encoder, &[COLLECT, 4, kind], &arguments, 1)?;
    }
    Ok(arguments)
}

/// Makes the error from what the checking kernel found.
fn explain([position, low, high, rows]: [u32; 4]) -> Error {
    let id = (u64::from(high) << 32 | u64::from(low)) as i64;
    match check_id(!position as usize, id, rows as usize) {
        Err(error) => error,
        Ok(_) => Error::new(Status::Internal, "a kernel refused an id in range"),
    }
}
