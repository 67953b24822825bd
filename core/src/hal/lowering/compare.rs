//! Comparisons, which give bools, and `where`, which takes one.

use super::moves::{Arguments, COMPARE, SELECT, count, dispatch};
use super::{Call, Encoder, Operand};
use crate::error::Result;
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

/// A comparison, from the outcomes of which it is true.
pub fn compare(encoder: &mut dyn Encoder, truths: u8, call: &Call<'_>) -> Result<()> {
    let (a, b, n) = (call.operand(0), call.operand(1), call.output.elements());
    let mut arguments = broadcast(encoder, call, [a, b, b])?;
    (arguments.n, arguments.m) = (n, truths.into());
    // A thread has four elements, which are one word of the result.
    dispatch(encoder, &[COMPARE, 4, a.dtype as u32], &arguments, n.div_ceil(1024))
}

/// A result with fewer units is small.
const SMALL: u32 = 1 << 20;

/// `where` of the op table.
pub fn select(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let [condition, a, b] = [0, 1, 2].map(|i| call.operand(i));
    // An element is one unit or, of eight bytes, two.
    let unit = a.dtype.size().min(4) as u32;
    let inner = a.dtype.size() as u32 / unit;
    let mut arguments = broadcast(encoder, call, [a, b, condition])?;
    (arguments.n, arguments.inner) = (count(call.output.elements() as u64 * u64::from(inner))?, inner);
    // The units of a thread, which come one after the other: of a small result, one.
    arguments.m = if arguments.n < SMALL { 1 } else { 4 };
    let mut groups = arguments.n.div_ceil(256 * arguments.m);
    if unit == 4 && inner == 1 && b.address == call.output.address && b.shape == call.output.shape {
        // What is not selected is in place, so a bool that many neighbours have is read once for all of them.
        let neighbours = neighbours(call.output.shape, condition, a);
        if let Some(rows) = (SHARED..=MOST).rev().find(|&rows| neighbours.is_multiple_of(rows)) {
            arguments.rows = rows;
            groups = (arguments.n / rows).div_ceil(256 / 16);
        }
    }
    dispatch(encoder, &[SELECT, unit, 0], &arguments, groups)
}

/// The fewest and the most neighbours whose bool 16 threads read once.
const SHARED: u32 = 16;
const MOST: u32 = 256;

/// Returns how many neighbours of the result have one bool and are contiguous in `a`.
fn neighbours(shape: &Shape, condition: Operand<'_>, a: Operand<'_>) -> u32 {
    let (flags, values) = (condition.shape.broadcast_strides(shape), a.shape.broadcast_strides(shape));
    let mut count = 1;
    for axis in (0..shape.rank()).rev() {
        let n = shape.dims()[axis];
        if n != 1 && (flags[axis] != 0 || values[axis] != count) {
            break;
        }
        count *= n;
    }
    count as u32
}

/// Where operands are, and the result's axes from the last to the first: sizes, and elements between neighbours of each operand.
pub fn broadcast(encoder: &mut dyn Encoder, call: &Call<'_>, operands: [Operand<'_>; 3]) -> Result<Arguments> {
    let shape = call.output.shape;
    let strides = operands.map(|operand| operand.shape.broadcast_strides(shape));
    let mut words: SmallVec<[u32; 4 * MAX_RANK]> = SmallVec::new();
    for axis in (0..shape.rank()).rev().filter(|&axis| shape.dims()[axis] != 1) {
        let (n, next) = (shape.dims()[axis] as u32, strides.map(|strides| strides[axis] as u32));
        // Neighbours that all operands go through as one are one.
        if let Some(at) = words.len().checked_sub(4)
            && (0..3).all(|i| next[i] == words[at + 1 + i].wrapping_mul(words[at]))
        {
            words[at] *= n;
            continue;
        }
        words.push(n);
        words.extend(next);
    }
    let outer = if words.is_empty() { 0 } else { encoder.parameters(&words)? };
    let [x, ids, flag] = operands.map(|operand| operand.address);
    let rank = words.len() as u32 / 4;
    Ok(Arguments { x, ids, flag, y: call.output.address, outer, rank, ..Arguments::default() })
}
