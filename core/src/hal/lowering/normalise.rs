//! softmax, layernorm and rmsnorm.
//!
//! Rows that a workgroup can hold are read once. Longer ones, and lines that lie across, are reduced to their statistics
//! first, by workgroups all over, and then go through an elementwise kernel with them.

use super::elementwise::{Grid, broadcast};
use super::function;
use super::operands::{Arguments, dispatch};
use super::reduce::{Finish, MAX, Map, ROWS, SUM, along};
use super::{Call, Operand, cast};
use super::{Encoder, Kernels};
use crate::command::Command;
use crate::contract::SUM_BLOCK;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Binary, LAYERNORM_RESIDUAL, Lines, Op, RMSNORM_RESIDUAL, softmax_axis};

// Values of lines.comp's first constant: the kernels that hold rows.
pub const SOFTMAX: u32 = ROWS;
pub const LAYERNORM: u32 = ROWS + 1;
pub const RMSNORM: u32 = ROWS + 2;

/// Blocks of 1024 that a workgroup takes: of several short rows, and at most of a long one.
const GROUP: u32 = 8;
const BLOCKS: u32 = 16;

/// `softmax` of the op table.
pub fn softmax(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let shape = call.output.shape;
    let lines = Lines::along(shape, softmax_axis(call.attrs, shape)?);
    let arguments = Arguments { x: call.address(0), y: call.output.address, ..Arguments::default() };
    if rows(encoder, SOFTMAX, lines, arguments)? {
        return Ok(());
    }
    let bytes = 4 * (lines.outer * lines.inner) as u64;
    let (max, sum) = (encoder.scratch(bytes)?, encoder.scratch(bytes)?);
    along(encoder, MAX, lines, Map::Same, Finish::Whole, Arguments { y: max, ..arguments })?;
    along(encoder, SUM, lines, Map::Exp, Finish::Whole, Arguments { y: sum, p: max, ..arguments })?;
    apply(encoder, function::SOFTMAX, lines, Arguments { p: max, q: sum, ..arguments })
}

/// `layernorm` of the op table.
pub fn layernorm(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (lines, mut arguments) = norm(encoder, call, LAYERNORM_RESIDUAL)?;
    if rows(encoder, LAYERNORM, lines, arguments)? {
        return Ok(());
    }
    add_residual(encoder, call, &mut arguments)?;
    let bytes = 4 * lines.outer as u64;
    let (mean, factor) = (encoder.scratch(bytes)?, encoder.scratch(bytes)?);
    along(encoder, SUM, lines, Map::Same, Finish::Mean, Arguments { y: mean, ..arguments })?;
    let deviation = Arguments { y: factor, p: mean, ..arguments };
    along(encoder, SUM, lines, Map::Deviation, Finish::Factor, deviation)?;
    apply(encoder, function::LAYERNORM, lines, Arguments { p: mean, q: factor, ..arguments })
}

/// `rmsnorm` of the op table.
pub fn rmsnorm(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (lines, mut arguments) = norm(encoder, call, RMSNORM_RESIDUAL)?;
    if rows(encoder, RMSNORM, lines, arguments)? {
        return Ok(());
    }
    add_residual(encoder, call, &mut arguments)?;
    let factor = encoder.scratch(4 * lines.outer as u64)?;
    along(encoder, SUM, lines, Map::Square, Finish::Factor, Arguments { y: factor, ..arguments })?;
    apply(encoder, function::RMSNORM, lines, Arguments { p: factor, ..arguments })
}

/// Encodes a sum and the norm of it as one kernel that stores both. Returns 2, or 0 if no kernel does that.
pub fn encode(encoder: &mut dyn Encoder, sum: &Command<'_>, of_sum: &Command<'_>) -> Result<usize> {
    let (sum, norm) = (Call::of(encoder, sum)?, Call::of(encoder, of_sum)?);
    let (function, residual) =
        if of_sum.op() == Op::Rmsnorm { (RMSNORM, RMSNORM_RESIDUAL) } else { (LAYERNORM, LAYERNORM_RESIDUAL) };
    let (a, b, y) = (sum.operand(0), sum.operand(1), norm.output);
    let bytes = 4 * y.elements() as u64;
    // A thread writes what it has read itself, or what no thread reads.
    let may_be_overwritten = |operand: Operand<'_>| {
        let (begin, end) = (operand.address, operand.address + bytes);
        begin == y.address || end <= y.address || y.address + bytes <= begin
    };
    let whole = |operand: Operand<'_>| operand.dtype == DType::F32 && operand.shape == y.shape;
    let fits = norm.address(0) == sum.output.address
        && norm.input(residual).is_none()
        && y.elements() > 0
        && [a, b, sum.output, y].into_iter().all(whole)
        && [a, b].into_iter().all(may_be_overwritten);
    if !fits {
        return Ok(0);
    }
    let arguments = Arguments {
        x: a.address,
        p: b.address,
        q: sum.output.address,
        y: y.address,
        gamma: norm.address(1),
        beta: if residual > 2 { norm.address(2) } else { 0 },
        eps: norm.attrs.eps,
        ..Arguments::default()
    };
    let done = rows(encoder, function, Lines::along(y.shape, y.shape.rank() - 1), arguments)?;
    Ok(if done { 2 } else { 0 })
}

/// The rows of a norm, and what its kernels share: the residual is p.
fn norm(encoder: &mut dyn Encoder, call: &Call<'_>, residual: usize) -> Result<(Lines, Arguments)> {
    let shape = call.output.shape;
    let mut arguments = Arguments {
        x: call.address(0),
        p: call.address(residual),
        y: call.output.address,
        gamma: call.address(1),
        beta: if residual > 2 { call.address(2) } else { 0 },
        eps: call.attrs.eps,
        ..Arguments::default()
    };
    // Between the sum and the norm stands what `add` stores.
    let stored = call.views[0].as_ref().map_or(DType::F32, |view| view.dtype());
    if stored.is_half() && arguments.p != 0 {
        add_residual(encoder, call, &mut arguments)?;
        let elements = shape.elements() as u64;
        let sum = Operand { address: arguments.x, dtype: DType::F32, shape };
        let narrow = Operand { address: encoder.scratch(2 * elements)?, dtype: stored, shape };
        cast::convert(encoder, sum, narrow)?;
        cast::convert(encoder, narrow, sum)?;
    }
    Ok((Lines::along(shape, shape.rank() - 1), arguments))
}

/// Where there is a residual, x becomes its sum with it.
fn add_residual(encoder: &mut dyn Encoder, call: &Call<'_>, arguments: &mut Arguments) -> Result<()> {
    if arguments.p == 0 {
        return Ok(());
    }
    let elements = call.output.elements();
    let mut grid = Grid::new();
    grid.push(elements, 1, 1);
    let sum = Arguments { y: encoder.scratch(4 * u64::from(elements))?, gamma: 0, beta: 0, ..*arguments };
    broadcast(encoder, function::of_binary(Binary::Add), &grid, sum)?;
    (arguments.x, arguments.p) = (sum.y, 0);
    Ok(())
}

/// Enqueues the kernel that holds rows, if they are contiguous and short enough.
fn rows(encoder: &mut dyn Encoder, function: u32, lines: Lines, mut arguments: Arguments) -> Result<bool> {
    let Lines { outer, n, inner } = lines;
    let blocks = n.div_ceil(SUM_BLOCK) as u32;
    let most = (encoder.limits().threads / 32).min(BLOCKS);
    if inner > 1 || blocks > most {
        return Ok(false);
    }
    // Of an invocation: one lane of a block.
    let steps = n.min(SUM_BLOCK).div_ceil(32).next_power_of_two() as u32;
    let whole = u32::from(n.is_multiple_of(if blocks > 1 { SUM_BLOCK } else { 32 * steps as usize }));
    let rows = (GROUP / blocks).max(1).min((outer as u32).next_power_of_two());
    let size = 32 * blocks * rows;
    let affine = arguments.affine() | u32::from(arguments.p != 0) << 2 | u32::from(arguments.q != 0) << 3;
    let constants = [function, size, 1, size / 4, whole, 0, 0, 0, blocks, rows, steps, affine];
    (arguments.n, arguments.units, arguments.value) = (n as u32, outer as u32, n as f32);
    dispatch(encoder, Kernels::Lines, &constants, &arguments, arguments.units.div_ceil(rows))?;
    Ok(true)
}

/// The last step of lines whose statistics are known.
fn apply(encoder: &mut dyn Encoder, function: u32, lines: Lines, arguments: Arguments) -> Result<()> {
    let Lines { outer, n, inner } = lines;
    let (outer, n, inner) = (outer as u32, n as u32, inner as u32);
    let mut grid = Grid::new();
    grid.push(outer, n.wrapping_mul(inner), inner);
    grid.push(n, inner, 0);
    grid.push(inner, 1, 1);
    broadcast(encoder, function, &grid, arguments)
}
