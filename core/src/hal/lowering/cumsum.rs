//! cumsum: chains of blocks of 256, a thread for each.

use super::operands::{Arguments, dispatch};
use super::reduce::ROWS;
use super::{Call, Encoder, Kernels};
use crate::contract::CUMSUM_BLOCK;
use crate::error::Result;
use crate::ops::{Lines, cumsum_axis};

/// A value of lines.comp's first constant.
pub const CUMSUM: u32 = ROWS + 3;

/// What the kernel stores: each block's total, or the sum up to each element.
const TOTALS: u32 = 0;
const SUMS: u32 = 1;

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// `cumsum` of the op table.
pub fn cumsum(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let shape = call.output.shape;
    let lines = Lines::along(shape, cumsum_axis(call.attrs, shape)?);
    of_lines(encoder, lines, call.address(0), call.output.address)
}

/// Of lines at x, into y, which may be x.
fn of_lines(encoder: &mut dyn Encoder, lines: Lines, x: u64, y: u64) -> Result<()> {
    let blocks = lines.n.div_ceil(CUMSUM_BLOCK);
    let units = (lines.outer * blocks * lines.inner) as u32;
    let (n, inner, blocks) = (lines.n as u32, lines.inner as u32, blocks as u32);
    let mut arguments = Arguments { x, n, inner, blocks, units, ..Arguments::default() };
    if blocks > 1 {
        let totals = encoder.scratch(4 * u64::from(units))?;
        arguments.y = totals;
        go(encoder, &arguments, TOTALS)?;
        of_lines(encoder, Lines { n: blocks as usize, ..lines }, totals, totals)?;
        arguments.p = totals;
    }
    arguments.y = y;
    go(encoder, &arguments, SUMS)
}

/// Enqueues the kernel.
fn go(encoder: &mut dyn Encoder, arguments: &Arguments, finish: u32) -> Result<()> {
    let constants = [CUMSUM, THREADS, 1, 1, 0, 0, 0, finish, 1, 1, 1, 0];
    dispatch(encoder, Kernels::Lines, &constants, arguments, arguments.units.div_ceil(THREADS))
}
