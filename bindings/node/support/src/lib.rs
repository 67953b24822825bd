//! What the modules for Node.js share: `adead-node` and `adead-models-node` read arguments with [`args`] and [`mod@array`], make their
//! calls inside [`error::guard`], or on a thread of libuv inside [`task::promise`].
//!
//! No item here is `#[napi]`: napi-rs registers such items in every module that links this crate, and their types would be missing in
//! the module's declarations.

// Functions take Node.js's handles as they are. A module has them from Node.js alone, and napi-rs's `Env::from_raw`, which makes the
// safe type of one, is a safe function as well.
#![allow(clippy::not_unsafe_ptr_arg_deref)]

pub mod args;
pub mod array;
pub mod error;
pub mod task;
