//! `adead-sentences-node`: the module of Node.js, on napi-rs. `index.js` has what is public.
//!
//! Arguments, errors, promises and typed arrays are those of `bindings/node`, by their files: a module of Node.js can't be a
//! library too, and one that is both would have the classes of `adead`.

// What JavaScript sees is documented in `index.d.ts`.
#![allow(missing_docs)]
// napi-derive registers nothing in a build for tests, which clippy makes.
#![cfg_attr(test, allow(dead_code))]

#[allow(dead_code)]
#[path = "../../../bindings/node/src/args.rs"]
mod args;
#[allow(dead_code)]
#[path = "../../../bindings/node/src/array.rs"]
mod array;
mod encoder;
#[path = "../../../bindings/node/src/error.rs"]
mod error;
#[allow(dead_code)]
#[path = "../../../bindings/node/src/task.rs"]
mod task;
