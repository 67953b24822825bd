//! `libadead.so` and `libadead.a`: the functions of `adead-c` with a Rust runtime of their own.

pub use adead_c::*;

mod runtime;
