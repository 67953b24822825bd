//! Random tensors.

use crate::context::Context;
use crate::tensor::Value;
use adead::{Result, Tensor};
use adead_node_support::args::{Dims, Long, Number, Of, Size};
use adead_node_support::error::{fail, guard};
use napi::Env;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Draws random tensors. Its draws are numbered from 0. Their numbers depend only on the seed, the number of the draw and the position of
/// the element. They are the same in every language and on every device. Generators with the same seed and number of draws continue with
/// the same numbers. A draw that fails doesn't count.
#[napi]
pub struct Random {
    inner: Mutex<adead::Random>,
}

/// The integers that a number holds exactly.
const EXACT: f64 = 9_007_199_254_740_991.0;

fn whole(Number(number): Number) -> Result<i64> {
    if number.fract() != 0.0 || number.abs() > EXACT {
        fail!(InvalidArgument, "{number} is not an integer from -{EXACT} to {EXACT}");
    }
    Ok(number as i64)
}

impl Random {
    fn lock(&self) -> MutexGuard<'_, adead::Random> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drawn(&self, env: Env, draw: impl FnOnce(&mut adead::Random) -> Result<Tensor>) -> napi::Result<Value> {
        guard(env, || Ok(Value(draw(&mut self.lock())?)))
    }
}

#[napi]
impl Random {
    /// Makes a generator that has drawn `draws` times, 0 by default. Both are bigints below 2⁶⁴, or numbers.
    #[napi(constructor, ts_args_type = "seed: number | bigint, draws?: number | bigint")]
    pub fn new(seed: Long, draws: Option<Long>) -> Random {
        Random { inner: Mutex::new(adead::Random::after(seed.0, draws.map_or(0, |draws| draws.0))) }
    }

    #[napi(getter, ts_return_type = "bigint")]
    pub fn seed(&self) -> BigInt {
        self.lock().seed().into()
    }

    /// The number of draws so far.
    #[napi(getter, ts_return_type = "bigint")]
    pub fn draws(&self) -> BigInt {
        self.lock().draws().into()
    }

    /// Draws uniform numbers from `low`, 0 by default, to below `high`, 1 by default: f32.
    #[napi(ts_args_type = "context: Context, dims: number[], low?: number, high?: number", ts_return_type = "Tensor")]
    pub fn uniform(
        &self,
        env: Env,
        context: Of<Context>,
        dims: Dims,
        low: Option<Number>,
        high: Option<Number>,
    ) -> napi::Result<Value> {
        let (low, high) = (low.map_or(0.0, |low| low.0), high.map_or(1.0, |high| high.0));
        self.drawn(env, |random| random.uniform(&context.inner, low, high, &dims))
    }

    /// Draws normal numbers with mean 0 and deviation 1: f32.
    #[napi(ts_args_type = "context: Context, dims: number[]", ts_return_type = "Tensor")]
    pub fn standard_normal(&self, env: Env, context: Of<Context>, dims: Dims) -> napi::Result<Value> {
        self.drawn(env, |random| random.standard_normal(&context.inner, &dims))
    }

    /// Draws normal numbers: f32.
    #[napi(
        ts_args_type = "context: Context, dims: number[], mean: number, deviation: number",
        ts_return_type = "Tensor"
    )]
    pub fn normal(
        &self,
        env: Env,
        context: Of<Context>,
        dims: Dims,
        mean: Number,
        deviation: Number,
    ) -> napi::Result<Value> {
        self.drawn(env, |random| random.normal(&context.inner, mean.0 as f32, deviation.0 as f32, &dims))
    }

    /// Draws integers from `low` to below `high`: i64. This range has at most 2³² integers.
    #[napi(ts_args_type = "dims: number[], low: number, high: number", ts_return_type = "Tensor")]
    pub fn integers(&self, env: Env, dims: Dims, low: Number, high: Number) -> napi::Result<Value> {
        self.drawn(env, |random| {
            let (low, high) = (whole(low)?, whole(high)?);
            if low >= high {
                fail!(InvalidArgument, "high is {high}; it must be above low, {low}, by at most 2^32");
            }
            random.integers(low, high.abs_diff(low), &dims)
        })
    }

    /// Draws a permutation of the integers from 0 to below `count`: i64 of shape `[count]`.
    #[napi(ts_args_type = "count: number", ts_return_type = "Tensor")]
    pub fn permutation(&self, env: Env, count: Size) -> napi::Result<Value> {
        self.drawn(env, |random| random.permutation(count.0))
    }
}
