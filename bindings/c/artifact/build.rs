//! How the shared library is linked: its SONAME, and without a dependency on libgcc_s.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libadead.so.0");
    // Worker threads may still be parked in the library when a host closes it: it stays mapped.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // `_Unwind_Backtrace` is the one in src/lib.rs, not the unwinder's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs");
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        // rustc asks the linker for gcc_s, the unwinder. Found first, this text gives it the static one instead.
        let folder = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("unwinder");
        fs::create_dir_all(&folder).expect("OUT_DIR is writable");
        fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").expect("OUT_DIR is writable");
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
}
