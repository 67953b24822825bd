//! Code shared by the C interfaces. `adead-c` and `adead-models-c` turn C's pointers into values with [`pointers`] and
//! make their calls inside [`guard()`]. [`runtime!`] gives their libraries the definitions that their own Rust runtime
//! needs.

#![allow(non_camel_case_types)]

pub mod context;
mod guard;
pub mod pointers;
mod runtime;

pub use guard::{c_text, failures, guard, guard_destroy, keep_panics_quiet, last_error, remember};
