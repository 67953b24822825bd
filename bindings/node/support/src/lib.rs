//! Code shared by the Node.js modules `adead-node` and `adead-models-node`. They read arguments with [`args`] and [`mod@array`]. They make
//! their calls inside [`error::guard`], or on a libuv thread inside [`task::promise`].
//!
//! No item here is `#[napi]`: napi-rs would register it in every module that links this crate, and its types would be missing
//! from the module's declarations.

// Functions take Node.js's handles, which are raw pointers. A module receives them only from Node.js. napi-rs's
// `Env::from_raw`, which makes a safe type from one, is a safe function as well.
#![allow(clippy::not_unsafe_ptr_arg_deref)]

pub mod args;
pub mod array;
pub mod error;
pub mod task;
