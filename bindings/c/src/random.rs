//! Random tensors.

use crate::context::adead_context;
use crate::pointers::{Out, dimensions, fail, reference};
use crate::status::{adead_status, guard};
use crate::tensor::adead_tensor;
use adead::Random;
use adead_core::{Context, Result, Tensor};

/// A generator of random tensors: a seed, and the number of draws so far, initially 0. The same two numbers give the same tensors in every
/// language and on every device (docs/contract.md, "Random tensors"). A draw adds 1 to `draws`, unless it fails. One thread at a time may
/// use it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_random {
    /// The seed.
    pub seed: u64,
    /// The number of draws so far.
    pub draws: u64,
}

/// Draws a tensor.
///
/// # Safety
/// The pointers are valid, or NULL where a message reports NULL.
unsafe fn drawn(
    random: *mut adead_random,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
    draw: impl FnOnce(&mut Random, &[usize]) -> Result<Tensor>,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (given, out, dims) =
            unsafe { (reference(random.cast_const(), "random")?, Out::new(out, "out")?, dimensions(dims, rank)?) };
        let mut random_of_call = Random::after(given.seed, given.draws);
        let tensor = draw(&mut random_of_call, dims)?;
        // SAFETY: as above.
        unsafe { (*random).draws = random_of_call.draws() };
        out.give(adead_tensor(tensor));
        Ok(())
    })
}

/// Returns the context that computes a draw.
unsafe fn context_of<'a>(context: *const adead_context) -> Result<&'a Context> {
    // SAFETY: the caller vouches for the pointer.
    Ok(&unsafe { reference(context, "context")? }.0)
}

/// Draws uniform numbers from `low` to below `high`, f32: u·(high − low) + low, where u are multiples of 2^-24 in [0, 1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_random_uniform(
    random: *mut adead_random,
    context: *const adead_context,
    low: f64,
    high: f64,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { drawn(random, dims, rank, out, |random, dims| random.uniform(context_of(context)?, low, high, dims)) }
}

/// Draws normal numbers with mean 0 and deviation 1, f32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_random_standard_normal(
    random: *mut adead_random,
    context: *const adead_context,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { drawn(random, dims, rank, out, |random, dims| random.standard_normal(context_of(context)?, dims)) }
}

/// Draws normal numbers, f32: z·deviation + mean, where z is drawn as by `adead_random_standard_normal`. `invalid_argument` unless the
/// deviation is at least 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_random_normal(
    random: *mut adead_random,
    context: *const adead_context,
    mean: f32,
    deviation: f32,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { drawn(random, dims, rank, out, |random, dims| random.normal(context_of(context)?, mean, deviation, dims)) }
}

/// Draws integers from `low` to below `high`, i64. `invalid_argument` unless this range has 1 to 2^32 integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_random_integers(
    random: *mut adead_random,
    low: i64,
    high: i64,
    dims: *const usize,
    rank: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        drawn(random, dims, rank, out, |random, dims| match high.checked_sub(low) {
            Some(count @ 1..) => random.integers(low, count.unsigned_abs(), dims),
            _ => fail!(InvalidArgument, "high is {high}; it must be above low, {low}, by at most 2^32"),
        })
    }
}

/// Draws a permutation of the integers from 0 to below `count`, i64 of shape `[count]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_random_permutation(
    random: *mut adead_random,
    count: usize,
    out: *mut *mut adead_tensor,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { drawn(random, std::ptr::null(), 0, out, |random, _| random.permutation(count)) }
}
