//! topk and argtopk: tiles of a line are sorted, and then their greatest elements merged, two runs at a time, until there is one run.

use super::operands::{Arguments, dispatch};
use super::reduce::ROWS;
use super::{Call, Encoder, Kernels, MOST};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::ops::{Lines, topk_axis};

// Values of lines.comp's first constant.
pub const SORT: u32 = ROWS + 4;
pub const MERGE: u32 = ROWS + 5;

/// What becomes of the elements: pairs of key and index, or what the result has.
const PAIRS: u32 = 0;
const VALUES: u32 = 1;
const SHORT: u32 = 2;
const LONG: u32 = 3;

/// Elements that a workgroup sorts: of one line, or of several short ones.
const TILE: usize = 1024;

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// `topk` of the op table.
pub fn topk(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    greatest(encoder, call, VALUES)
}

/// `argtopk` of the op table.
pub fn argtopk(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    greatest(encoder, call, if call.output.dtype == DType::I64 { LONG } else { SHORT })
}

fn greatest(encoder: &mut dyn Encoder, call: &Call<'_>, last: u32) -> Result<()> {
    let x = call.operand(0);
    let Lines { outer, n, inner } = Lines::along(x.shape, topk_axis(call.attrs, x.shape)?);
    let (count, k) = (outer * inner, call.attrs.k as usize);
    let tile = n.next_power_of_two().min(TILE);
    let (mut runs, mut length) = (n.div_ceil(tile), k.min(tile));
    if runs > 1 && count * (runs + 1) * tile > MOST {
        fail!(Unsupported, "{count} lines of {n} elements; GPU kernels sort up to {MOST} in lines longer than {TILE}");
    }
    let mut arguments = Arguments {
        x: x.address,
        n: n as u32,
        inner: inner as u32,
        rank: tile as u32,
        p_row: length as u32,
        blocks: runs as u32,
        units: (count * runs) as u32,
        ..Arguments::default()
    };
    let mut groups = arguments.units.div_ceil((TILE / tile) as u32);
    let mut function = SORT;
    loop {
        let finish = if runs == 1 { last } else { PAIRS };
        let stored = 8 * (count * runs * length) as u64;
        arguments.y = if runs == 1 { call.output.address } else { encoder.scratch(stored)? };
        let constants = [function, THREADS, 1, 1, 0, 0, 0, finish, 1, 1, 1, 0];
        dispatch(encoder, Kernels::Lines, &constants, &arguments, groups)?;
        if runs == 1 {
            return Ok(());
        }
        // Pairs of runs become one, of which no more than k elements matter.
        let pairs = runs.div_ceil(2);
        let merged = k.min(2 * length);
        arguments.x = arguments.y;
        (arguments.x_row, arguments.p_row, arguments.blocks) = (length as u32, merged as u32, runs as u32);
        arguments.units = (count * pairs * 2 * length) as u32;
        groups = arguments.units.div_ceil(THREADS);
        (function, runs, length) = (MERGE, pairs, merged);
    }
}
