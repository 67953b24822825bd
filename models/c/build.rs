//! How `libadead_models.so` is linked.

use std::env;

fn main() {
    adead_c_link::shared_library("libadead_models.so.0");
    // The crate llguidance exports functions for C, which are no part of this library's interface. Zig, which links releases, has no such
    // option.
    let with_zig = env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zigcc"));
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") && !with_zig {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
