//! The arithmetic contract in scalar Rust: the reference that every kernel is tested against.
//!
//! Read it beside `docs/contract.md`. No SIMD, no tricks, nothing here knows a device. `E` arithmetic is Rust's own
//! `f32` (IEEE-754, never contracted or reassociated); `M` arithmetic is [`fmaz`]; the functions use both.

mod angle;
mod blocks;
mod compare;
mod elementwise;
mod fixed;
mod functions;
mod half;
pub mod integers;
mod matrix;
mod philox;
mod power;
mod reduce;
#[rustfmt::skip]
mod steps;

pub use angle::{LARGE_ANGLE, cos, sin};
pub use blocks::{BlockFormat, BlockValues, LEAST_BLOCK, block_dot, block_floats, block_scale, read_block};
pub use compare::outcome;
pub use elementwise::*;
pub use fixed::{Precision, fixed_cut, fixed_dot, fixed_round, fixed_scale, fixed_weighted, value_factor, value_scale};
pub use functions::{
    Activation, GeluForm, erf, exp, gelu_erf, gelu_tanh, log, power_of_two, relu, rsqrt, sigmoid, silu, tanh,
};
pub use half::{bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32, odd_from_f64};
pub use matrix::{K_BLOCK, chain, dot, fmaz};
pub use philox::{drawn_order, philox, uniform, words};
pub use power::{expm1, log1p, pow};
pub use reduce::{
    CUMSUM_BLOCK, MAX_KEY_NAN, SUM_BLOCK, SUM_LANES, argmax, argmin, cumsum, max, max_key, max_of_keys, mean, min,
    prod, sum, topk,
};

/// The version of the contract. It belongs beside every published hash.
pub const VERSION: &str = "adead-contract-2";

/// Keys are taken by attention in blocks of this many.
pub const KEY_BLOCK: usize = 64;

/// The one NaN that arithmetic stores.
pub const NAN: f32 = f32::from_bits(0x7fc0_0000);

/// NaN by its bits, so that no device's idea of an ordered compare matters.
#[inline(always)]
pub fn is_nan(x: f32) -> bool {
    x.to_bits() & 0x7fff_ffff > 0x7f80_0000
}

/// What arithmetic stores: any NaN becomes [`NAN`].
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    if is_nan(x) { NAN } else { x }
}

/// What a cast to binary64 stores: any NaN becomes `7ff8000000000000`.
#[inline(always)]
pub fn canonical_f64(x: f64) -> f64 {
    if x.is_nan() { f64::from_bits(0x7ff8 << 48) } else { x }
}

/// What M totals and SUMs store: −0 becomes +0.
#[inline(always)]
pub fn positive_zero(x: f32) -> f32 {
    x + 0.0
}
