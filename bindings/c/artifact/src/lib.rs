//! `libadead.so` and `libadead.a`: the functions of `adead-c` with a Rust runtime of their own.

pub use adead_c::*;

mod runtime;

/// What else happens when the library is loaded.
fn at_load() {
    #[cfg(feature = "log")]
    adead_c::start_log();
}
