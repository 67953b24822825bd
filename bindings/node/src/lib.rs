//! `adead-node`: the module of Node.js, on napi-rs. `bindings/node/index.js` loads it and adds the methods of the operations,
//! which `operations.js` lists; its types are `index.d.ts`. Both are generated: `ci/node-test` compares them.
//!
//! Nothing is decided here: a function turns values of JavaScript into the core's, calls it inside `guard`, or on a thread of
//! libuv's inside `promise`, and turns back what comes out.

// What JavaScript sees is documented in `index.d.ts`, which is made of these comments.
#![allow(missing_docs)]
// napi-derive registers nothing in a build for tests, which clippy makes.
#![cfg_attr(test, allow(dead_code))]

mod args;
mod array;
mod buffer;
mod compiled;
mod context;
mod dispatch;
mod error;
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
mod task;
mod tensor;
