//! The native Node.js module, on napi-rs. `bindings/node/index.js` loads it and adds the operations' methods from
//! `operations.js`. Its types are in `index.d.ts`. Both files are generated; `ci/node-test` compares them.
//!
//! This crate makes no decisions. A function converts JavaScript values to the core's types, calls the core and converts the
//! result. The call runs inside `guard`, or on a libuv thread inside `promise`.

// `index.d.ts` is generated from these comments and documents what JavaScript sees.
#![allow(missing_docs)]
// In a test build, which clippy uses, napi-derive registers nothing, so the functions look unused.
#![cfg_attr(test, allow(dead_code))]

mod buffer;
mod compiled;
mod context;
mod dispatch;
mod gpu;
mod hardware;
mod kernel;
mod layout;
mod log;
mod memory;
mod nn;
mod options;
mod packed;
mod pipeline;
mod profile;
mod program;
mod random;
mod run;
mod stream;
mod tensor;

use napi::Env;
use napi::bindgen_prelude::{Function, Unknown};
use napi_derive::napi;

/// Sets the class that is constructed for an error: `new class(message, code, status)`.
#[napi(skip_typescript)]
pub fn set_error_class(env: Env, class: Function<'_, Unknown<'_>, Unknown<'_>>) -> napi::Result<()> {
    adead_node_support::error::set_class(env, class)
}
