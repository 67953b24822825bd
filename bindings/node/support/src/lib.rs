//! What the modules for Node.js share: `adead-node` and `adead-models-node` read arguments with [`args`] and [`array`], make their
//! calls inside [`error::guard`], or on a thread of libuv inside [`task::promise`].
//!
//! No item here is `#[napi]`: napi-rs registers such items in every module that links this crate, and their types would be missing in
//! the module's declarations.

pub mod args;
pub mod array;
pub mod error;
pub mod task;
