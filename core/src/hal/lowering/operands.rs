//! The push constants that `elementwise.comp` and `lines.comp` share, by name.

use super::{Encoder, Kernels};
use crate::error::Result;

/// The push constants. `operands.glsl` and `elementwise.comp` say what they mean.
#[derive(Clone, Copy, Default)]
pub struct Arguments {
    pub x: u64,
    pub p: u64,
    pub q: u64,
    pub y: u64,
    pub gamma: u64,
    pub beta: u64,
    pub outer: u64,
    pub n: u32,
    pub inner: u32,
    pub x_row: u32,
    pub p_row: u32,
    pub rank: u32,
    pub blocks: u32,
    pub units: u32,
    pub value: f32,
    pub eps: f32,
}

impl Arguments {
    /// Returns the kernels' bits for whether gamma and beta are present.
    pub fn affine(&self) -> u32 {
        u32::from(self.gamma != 0) | u32::from(self.beta != 0) << 1
    }
}

/// Enqueues a kernel on a one-dimensional grid of workgroups.
#[inline(never)]
pub fn dispatch(
    encoder: &mut dyn Encoder,
    kernels: Kernels,
    constants: &[u32],
    arguments: &Arguments,
    groups: u32,
) -> Result<()> {
    let &Arguments { x, p, q, y, gamma, beta, outer, n, inner, x_row, p_row, rank, blocks, units, value, eps } =
        arguments;
    let words = [x_row, p_row, rank, blocks, units, value.to_bits(), eps.to_bits()];
    let counts = u64::from(inner) << 32 | u64::from(n);
    let push: [u32; 23] = packed(&[x, y, counts, p, q, gamma, beta, outer], &words);
    encoder.dispatch(kernels, constants, &push, [groups, 1, 1])
}

/// Returns whether all of these are multiples of 16.
pub fn aligned(addresses: &[u64]) -> bool {
    addresses.iter().all(|address| address.is_multiple_of(16))
}

/// Assembles push constants: addresses, low words first, then words. Returns an array, because a `Push` would be moved
/// for every word.
pub fn packed<const N: usize>(addresses: &[u64], words: &[u32]) -> [u32; N] {
    let mut push = [0; N];
    let (head, tail) = push.split_at_mut(2 * addresses.len());
    for (pair, &address) in head.chunks_exact_mut(2).zip(addresses) {
        (pair[0], pair[1]) = (address as u32, (address >> 32) as u32);
    }
    tail.copy_from_slice(words);
    push
}
