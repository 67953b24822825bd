//! `libadead.so` and `libadead.a`: the functions of `adead-c` with a Rust runtime of their own.

pub use adead_c::*;

adead_c_support::runtime!(|| {
    #[cfg(feature = "log")]
    adead_c::start_log();
});
