//! `adead-node`: the module of Node.js, on napi-rs. `bindings/node/index.js` loads it and adds the methods of the operations,
//! which `operations.js` lists; its types are `index.d.ts`. Both are generated: `ci/node-test` compares them.
//!
//! Nothing is decided here: a function turns values of JavaScript into the core's, calls it inside `guard`, or on a thread of
//! libuv's inside `promise`, and turns back what comes out.

// What JavaScript sees is documented in `index.d.ts`, which is made of these comments.
#![allow(missing_docs)]
// napi-derive registers nothing in a build for tests, which clippy makes.
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
mod run;
mod stream;
mod tensor;

use napi::Env;
use napi::bindgen_prelude::{Function, Unknown};
use napi_derive::napi;

/// Tells what to construct for an error: `new class(message, code, status)`.
#[napi(skip_typescript)]
pub fn set_error_class(env: Env, class: Function<'_, Unknown<'_>, Unknown<'_>>) -> napi::Result<()> {
    adead_node_support::error::set_class(env, class)
}
