//! How a shared library with a C interface is linked: its SONAME, and without a dependency on libgcc_s.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Tells cargo, which runs this as a part of a package's build script.
pub fn shared_library(soname: &str) {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    // Worker threads may still be parked in the library when a host closes it: it stays mapped.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // `_Unwind_Backtrace` is the one in src/runtime.rs, not the unwinder's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs");
    if links_with_lld() {
        // Functions of the same code are there once.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--icf=all");
    }
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        // rustc asks the linker for gcc_s, the unwinder. Found first, this text gives it the static one instead.
        let folder = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("unwinder");
        fs::create_dir_all(&folder).expect("OUT_DIR is writable");
        fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").expect("OUT_DIR is writable");
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
}

/// Whether rustc links with its own lld, as it does from 1.90 on for this one target unless it is told otherwise.
fn links_with_lld() -> bool {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|own| own == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let version = env::var_os("RUSTC").and_then(|rustc| Command::new(rustc).arg("--version").output().ok());
    let minor = version.and_then(|version| {
        String::from_utf8_lossy(&version.stdout).split(['.', ' ']).nth(2).and_then(|minor| minor.parse::<u32>().ok())
    });
    is("TARGET", TARGET)
        && is("HOST", TARGET)
        && env::var_os("RUSTC_LINKER").is_none()
        && !flags.contains("link")
        && minor.is_some_and(|minor| minor >= 90)
}
