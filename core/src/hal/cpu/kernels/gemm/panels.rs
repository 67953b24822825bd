//! B packed in advance, for products that share it.

use crate::hal::cpu::simd::{Kernel, Simd};

/// B as panels for every K block: `[K block][panel][k][width]`. The width is that of a tile.
#[derive(Clone, Copy)]
pub struct Panels {
    pub data: *const f32,
    /// The columns of each K block: B's, rounded up to whole panels.
    pub columns: usize,
    /// The column of B that is the block's first. A panel begins there.
    pub first: usize,
}

impl Panels {
    /// Returns the panel that begins at column `j` of the block, in the K block of `depth` rows that begins at `p`.
    pub(super) fn at(self, p: usize, depth: usize, j: usize) -> *const f32 {
        self.data.wrapping_add(p * self.columns + (self.first + j) * depth)
    }
}

/// Returns the number of columns in a panel of an instruction set.
pub struct Width;

impl Kernel for Width {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> usize {
        S::TILE_VECTORS * S::LANES
    }
}
