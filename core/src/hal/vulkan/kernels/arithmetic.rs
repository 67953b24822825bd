//! `arithmetic.comp`: its specialization constants and push constants, by name.

use crate::error::Result;
use crate::hal::vulkan::encoder::{Encoder, Push};
use crate::hal::vulkan::shaders::Shader;

// Values of `function` that are not activations' numbers.
pub const SCALE: u32 = 7;
pub const NEG: u32 = 8;
pub const ABS: u32 = 9;
pub const EXP: u32 = 10;
pub const LOG: u32 = 11;
pub const SQRT: u32 = 12;
pub const RSQRT: u32 = 13;
pub const ADD: u32 = 14;
pub const SUB: u32 = 15;
pub const MUL: u32 = 16;
pub const DIV: u32 = 17;
pub const SOFTMAX: u32 = 18;
pub const LAYERNORM: u32 = 19;
pub const RMSNORM: u32 = 20;
pub const SUM: u32 = 21;
pub const MAX: u32 = 22;
pub const ARGMAX: u32 = 23;
/// Added to SOFTMAX, LAYERNORM and RMSNORM: the kernels that hold whole rows.
pub const ROWS: u32 = 6;
pub const CAST: u32 = 27;
pub const PROBE: u32 = 28;

/// The specialization constants from id 10 on; the module says what they mean.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Constants {
    pub function: u32,
    pub size: u32,
    pub vector: u32,
    pub vectors: u32,
    pub rank: u32,
    pub x_step: u32,
    pub p_step: u32,
    pub affine: u32,
    pub map: u32,
    pub finish: u32,
    pub across: u32,
    pub pairs: u32,
    pub blocks: u32,
    pub rows: u32,
    pub steps: u32,
    pub values: u32,
    pub parts: u32,
}

impl Constants {
    /// Those of a function, the others as they are where nobody asks for them.
    pub const fn new(function: u32) -> Constants {
        Constants {
            function,
            size: 256,
            vector: 0,
            vectors: 1,
            rank: 1,
            x_step: 1,
            p_step: 1,
            affine: 0,
            map: 0,
            finish: 0,
            across: 0,
            pairs: 0,
            blocks: 1,
            rows: 1,
            steps: 1,
            values: 1,
            parts: 1,
        }
    }

    fn words(&self) -> &[u32] {
        // SAFETY: a structure of nothing but words.
        unsafe { std::slice::from_raw_parts((self as *const Constants).cast(), size_of::<Constants>() / 4) }
    }
}

/// The push constants.
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

/// Enqueues one of the module's kernels on a line of workgroups.
pub fn dispatch(encoder: &mut Encoder<'_>, constants: &Constants, arguments: &Arguments, groups: u32) -> Result<()> {
    let &Arguments { x, p, q, y, gamma, beta, outer, n, inner, x_row, p_row, rank, blocks, units, value, eps } =
        arguments;
    let mut push = Push::new();
    for address in [x, p, q, y, gamma, beta, outer] {
        push = push.address(address);
    }
    for word in [n, inner, x_row, p_row, rank, blocks, units, value.to_bits(), eps.to_bits()] {
        push = push.word(word);
    }
    encoder.dispatch(Shader::Arithmetic, constants.words(), &push, [groups, 1, 1])
}

/// Whether all of these are multiples of 16.
pub fn aligned(addresses: &[u64]) -> bool {
    addresses.iter().all(|address| address.is_multiple_of(16))
}
