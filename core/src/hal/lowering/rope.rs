//! rope: every element with its pair's other one, whose place follows from its own.

use super::elementwise::{Grid, broadcast};
use super::operands::Arguments;
use super::{Call, Encoder, function};
use crate::error::Result;
use crate::ops::rope_tables;

/// `rope` of the op table.
pub fn rope(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let shape = call.output.shape;
    let (pairs, strides) = rope_tables(shape, call.operand(1).shape)?;
    let (rank, half) = (shape.rank(), pairs.from_end(0) as u32);
    let (mut grid, mut row) = (Grid::new(), shape.elements() as u32);
    for (axis, &size) in shape.dims()[..rank - 1].iter().enumerate() {
        row /= size as u32;
        grid.push(size as u32, row, strides[axis] as u32);
    }
    let step = strides[rank - 1] as u32;
    // Both elements of a pair take one angle.
    let apart = if call.attrs.interleaved { 1 } else { half };
    if call.attrs.interleaved {
        grid.push(half, 2, step);
        grid.push(2, 1, 0);
    } else {
        grid.push(2, half, 0);
        grid.push(half, 1, step);
    }
    let arguments = Arguments {
        x: call.address(0),
        p: call.address(1),
        q: call.address(2),
        y: call.output.address,
        blocks: apart,
        ..Arguments::default()
    };
    broadcast(encoder, function::ROPE, &grid, arguments)
}
