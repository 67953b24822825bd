//! softmax, layernorm and rmsnorm.
//!
//! Rows that a workgroup can hold are read once. Longer ones, and lines that lie across, are reduced to their statistics
//! first, by workgroups all over, and then go through an elementwise kernel with them.

use super::Call;
use super::elementwise::{Grid, broadcast};
use super::function;
use super::operands::{Arguments, dispatch};
use super::reduce::{Finish, MAX, Map, ROWS, SUM, along};
use super::{Encoder, Kernels};
use crate::contract::SUM_BLOCK;
use crate::error::Result;
use crate::ops::{Lines, softmax_axis};

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
    let (lines, arguments) = norm(call);
    if rows(encoder, LAYERNORM, lines, arguments)? {
        return Ok(());
    }
    let bytes = 4 * lines.outer as u64;
    let (mean, factor) = (encoder.scratch(bytes)?, encoder.scratch(bytes)?);
    along(encoder, SUM, lines, Map::Same, Finish::Mean, Arguments { y: mean, ..arguments })?;
    let deviation = Arguments { y: factor, p: mean, ..arguments };
    along(encoder, SUM, lines, Map::Deviation, Finish::Factor, deviation)?;
    apply(encoder, function::LAYERNORM, lines, Arguments { p: mean, q: factor, ..arguments })
}

/// `rmsnorm` of the op table.
pub fn rmsnorm(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let (lines, arguments) = norm(call);
    if rows(encoder, RMSNORM, lines, arguments)? {
        return Ok(());
    }
    let factor = encoder.scratch(4 * lines.outer as u64)?;
    along(encoder, SUM, lines, Map::Square, Finish::Factor, Arguments { y: factor, ..arguments })?;
    apply(encoder, function::RMSNORM, lines, Arguments { p: factor, ..arguments })
}

/// The rows of a norm, and what its kernels share.
fn norm(call: &Call<'_>) -> (Lines, Arguments) {
    let shape = call.output.shape;
    let arguments = Arguments {
        x: call.address(0),
        y: call.output.address,
        gamma: call.address(1),
        beta: call.address(2),
        eps: call.attrs.eps,
        ..Arguments::default()
    };
    (Lines::along(shape, shape.rank() - 1), arguments)
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
    let rows = (GROUP / blocks).max(1);
    let size = 32 * blocks * rows;
    let constants = [function, size, 1, size / 4, whole, 0, 0, 0, blocks, rows, steps, arguments.affine()];
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
