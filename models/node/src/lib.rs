//! `adead-models-node`: the Node.js module, on napi-rs. `index.js` has the public names.

// `index.d.ts` documents what JavaScript sees.
#![allow(missing_docs)]
// napi-derive registers nothing in a build for tests, which clippy makes.
#![cfg_attr(test, allow(dead_code))]

mod encoder;
mod generator;
mod gguf;
mod job;
mod stream;
mod told;
mod trainer;

use napi::Env;
use napi::bindgen_prelude::{Function, Unknown};
use napi_derive::napi;

/// Sets the class that is constructed for an error: `new class(message, code, status)`.
#[napi]
pub fn set_error_class(env: Env, class: Function<'_, Unknown<'_>, Unknown<'_>>) -> napi::Result<()> {
    adead_node_support::error::set_class(env, class)
}
