//! Operands that are broadcast to a result.

use super::Call;
use crate::shape::MAX_RANK;

/// The first `N` operands' ways through the result, with neighbouring dimensions merged wherever all of them step through them alike.
pub struct Grid<const N: usize> {
    pub dims: [usize; MAX_RANK],
    strides: [[usize; MAX_RANK]; N],
    /// The dimensions before the innermost.
    pub outer_rank: usize,
}

impl<const N: usize> Grid<N> {
    pub fn new(call: &Call<'_, '_>) -> Grid<N> {
        let shape = call.output.shape();
        let mut grid = Grid { dims: [1; MAX_RANK], strides: [[0; MAX_RANK]; N], outer_rank: 0 };
        let all: [_; N] = std::array::from_fn(|i| call.meta(i).shape.broadcast_strides(shape));
        let mut rank = 0;
        for axis in (0..shape.rank()).filter(|&axis| shape.dims()[axis] != 1) {
            let n = shape.dims()[axis];
            let merges = |i: usize| grid.strides[i][rank - 1] == all[i][axis] * n;
            if rank > 0 && (0..N).all(merges) {
                rank -= 1;
                grid.dims[rank] *= n;
            } else {
                grid.dims[rank] = n;
            }
            (0..N).for_each(|i| grid.strides[i][rank] = all[i][axis]);
            rank += 1;
        }
        grid.outer_rank = rank.max(1) - 1;
        if rank == 0 {
            // One element: operands are read where they are.
            grid.strides.iter_mut().for_each(|strides| strides[0] = 1);
        }
        grid
    }

    /// Elements of a line of the innermost dimension.
    pub fn inner(&self) -> usize {
        self.dims[self.outer_rank]
    }

    /// Elements from one to the next of such a line: 0 or 1.
    pub fn steps(&self) -> [usize; N] {
        std::array::from_fn(|i| self.strides[i][self.outer_rank])
    }

    /// Where a line begins in the operands.
    pub fn offsets(&self, mut line: usize) -> [usize; N] {
        let mut offsets = [0; N];
        for axis in (0..self.outer_rank).rev() {
            let index = line % self.dims[axis];
            line /= self.dims[axis];
            (0..N).for_each(|i| offsets[i] += index * self.strides[i][axis]);
        }
        offsets
    }
}
