//! Lowers attention in exact integers to one kernel, on tensor cores that multiply bytes. Another one cuts all operands first.

use super::attention_fixed::{BLOCK, Fixed};
use super::{Encoder, Kernels, Limits, Push};
use crate::error::{Result, fail};

// The stages: `attention.comp` has the ones below.
const WHOLE: u32 = 6;
const DIGITS: u32 = 7;

/// The rows of a workgroup, which has two threads for each, and the most columns of queries, keys and values.
const ROWS: u32 = 64;
const WIDEST: u32 = 128;
/// Queries and keys are cut in slices of so many columns, and values in parts.
const SLICE: u32 = 64;
const PART: u32 = 32;

/// Returns the bytes of shared memory of the kernel that does everything: the digits of its queries and of a block's keys and values, the
/// scales and factors of two blocks' keys, and the results. It takes queries and keys in slices of 64 columns, and values in parts of 32.
pub fn shared_bytes(digits: u32, width: u32, columns: u32) -> u32 {
    let (width, columns) = (width.next_multiple_of(SLICE), columns.next_multiple_of(PART));
    digits * (width * (ROWS + BLOCK) + BLOCK * columns) + 16 * BLOCK + 4 * ROWS * (columns + 8)
}

/// Whether the kernel takes a call: if it has such widths, and enough rows to be faster than several kernels.
pub(super) fn fits(fixed: &Fixed, limits: &Limits) -> bool {
    let Fixed { precision, width, columns, rows, matrices, .. } = *fixed;
    limits.tensor_tiles
        && (1..=WIDEST).contains(&width)
        && columns <= WIDEST
        && shared_bytes(precision.digits(), width, columns) <= limits.shared_memory
        && 4 * rows.div_ceil(ROWS) as u64 * matrices as u64 >= limits.units as u64
}

/// Encodes the kernel, behind one that cuts all operands.
pub(super) fn encode(encoder: &mut dyn Encoder, fixed: &Fixed) -> Result<()> {
    let Fixed { precision, keys, width, columns, rows, matrices, blocks, ref of, .. } = *fixed;
    let tiles = rows.div_ceil(ROWS);
    let groups = (tiles as u64 + 2 * blocks as u64) * matrices as u64;
    if groups > i32::MAX as u64 {
        fail!(Unsupported, "attention: {matrices} heads of {rows} queries and {keys} keys are too many for one kernel");
    }
    // The digits of all operands, the queries' scales, and the keys' scales and factors.
    let [of_keys, of_values] = [width.next_multiple_of(SLICE), columns.next_multiple_of(PART)]
        .map(|width| (BLOCK * precision.digits() * width) as u64);
    let cut = (tiles as u64 + blocks as u64) * of_keys + blocks as u64 * of_values + 4 * (tiles * ROWS) as u64;
    let cut = encoder.scratch(matrices as u64 * (cut + 8 * (blocks * BLOCK) as u64))?;
    let mask = &of.mask;
    let mut push = Push::new();
    for address in [fixed.q, fixed.k, fixed.v, mask.address, fixed.y, cut, 0] {
        push = push.address(address);
    }
    let lead = keys + if of.causal { 1 } else { of.queries };
    for word in [rows, of.queries, keys, width, columns, lead, mask.axes, mask.row, mask.column, matrices, tiles] {
        push = push.word(word);
    }
    let push = push.float(fixed.scale);
    for (stage, threads, groups) in [(DIGITS, 256, groups as u32), (WHOLE, 2 * ROWS, tiles * matrices)] {
        mask.table(encoder)?;
        encoder.dispatch(
            Kernels::Attention,
            &[threads, precision.digits(), 0, stage, fixed.bits()],
            &push,
            [groups, 1, 1],
        )?;
    }
    Ok(())
}
