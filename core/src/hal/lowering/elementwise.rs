//! Lowers elementwise operations to kernels: of one operand, of two with broadcasting, and of rows with their
//! statistics.

use super::Call;
use super::operands::{Arguments, aligned, dispatch};
use super::{Encoder, Kernels};
use crate::contract::Activation;
use crate::error::Result;
use crate::shape::MAX_RANK;

/// Encodes an operation of one operand.
pub fn unary(encoder: &mut dyn Encoder, function: u32, [value, eps]: [f32; 2], call: &Call<'_>) -> Result<()> {
    let mut grid = Grid::new();
    grid.push(call.output.elements(), 1, 0);
    let arguments = Arguments { x: call.address(0), y: call.output.address, value, eps, ..Arguments::default() };
    broadcast(encoder, function, &grid, arguments)
}

/// Encodes an activation in place.
pub fn activate(encoder: &mut dyn Encoder, activation: Activation, y: u64, elements: u32) -> Result<()> {
    let mut grid = Grid::new();
    grid.push(elements, 1, 0);
    broadcast(encoder, activation as u32, &grid, Arguments { x: y, y, ..Arguments::default() })
}

/// Encodes an operation of two operands.
pub fn binary(encoder: &mut dyn Encoder, function: u32, call: &Call<'_>) -> Result<()> {
    let (a, b, y) = (call.operand(0), call.operand(1), call.output);
    let (of_a, of_b) = (a.shape.broadcast_strides(y.shape), b.shape.broadcast_strides(y.shape));
    let mut grid = Grid::new();
    for (axis, &size) in y.shape.dims().iter().enumerate() {
        grid.push(size as u32, of_a[axis] as u32, of_b[axis] as u32);
    }
    let arguments = Arguments { x: a.address, p: b.address, y: y.address, ..Arguments::default() };
    broadcast(encoder, function, &grid, arguments)
}

/// A result's dimensions with the strides of two operands. Neighbouring dimensions are merged if both operands allow
/// it.
pub struct Grid {
    pub rank: usize,
    pub dims: [(u32, u32, u32); MAX_RANK],
}

impl Grid {
    pub fn new() -> Grid {
        Grid { rank: 0, dims: [(1, 1, 1); MAX_RANK] }
    }

    /// Appends a dimension: its size, and the distance in elements between neighbours along it in both operands.
    pub fn push(&mut self, size: u32, x: u32, p: u32) {
        if size == 1 {
            return;
        }
        if let Some(last) = self.rank.checked_sub(1).map(|last| &mut self.dims[last])
            && last.1 == x.wrapping_mul(size)
            && last.2 == p.wrapping_mul(size)
        {
            *last = (last.0 * size, x, p);
            return;
        }
        self.dims[self.rank] = (size, x, p);
        self.rank += 1;
    }
}

/// Enqueues a kernel over a grid that is not empty. `arguments` holds the operands.
pub fn broadcast(encoder: &mut dyn Encoder, function: u32, grid: &Grid, mut arguments: Arguments) -> Result<()> {
    let rank = grid.rank.max(1);
    let (outer, (inner, x_step, p_step)) = (&grid.dims[..rank - 1], grid.dims[rank - 1]);
    let n = outer.iter().fold(inner, |n, dim| n * dim.0);
    (arguments.n, arguments.inner, arguments.rank) = (n, inner, rank as u32);
    if let [(_, x, p)] = *outer {
        (arguments.x_row, arguments.p_row) = (x, p);
    } else if rank > 2 {
        let words: Vec<u32> = outer.iter().rev().flat_map(|&(size, x, p)| [size, x, p]).collect();
        arguments.outer = encoder.parameters(&words)?;
    }
    // These operands are read in fours. An absent operand has address 0.
    let x = if x_step == 1 { arguments.x } else { 0 };
    let [p, q] = if p_step == 1 { [arguments.p, arguments.q] } else { [0, 0] };
    let all = [x, p, q, arguments.y, arguments.gamma, arguments.beta];
    let vector = u32::from(aligned(&all) && (rank == 1 || inner.is_multiple_of(4)));
    let constants = [function, vector, rank.min(3) as u32, x_step, p_step, arguments.affine()];
    dispatch(encoder, Kernels::Elementwise, &constants, &arguments, n.div_ceil(1024))
}
