//! Links a shared library with a C interface: with its SONAME, and with its own unwinder unless the build is minimal. The build
//! script of such a library calls [`shared_library`].

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Tells cargo how to link the package whose build script calls this. Also sets the `cfg`s that `adead_c_support::runtime!`
/// reads.
pub fn shared_library(soname: &str) {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(without_backtraces, llvm_unwinder)");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    // Every loader reads this table of symbols; the older one beside it takes 3 KB.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--hash-style=gnu");
    // Worker threads may still be parked in the library when a host closes it. So the library stays mapped.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // `adead_c_support::runtime!` defines `_Unwind_Backtrace`, in place of the unwinder's.
    println!("cargo:rustc-cfg=without_backtraces");
    // Zig links releases (ci/release-check), with LLVM's unwinder inside. It accepts no symbol twice, so `runtime!` defines every
    // function in use from the object file that has LLVM's `_Unwind_Backtrace`.
    if env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zigcc")) {
        println!("cargo:rustc-cfg=llvm_unwinder");
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,muldefs");
    // A minimal build should stay below 1,000,000 bytes: it uses the system's unwinder, libgcc_s.
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        if links_with_lld() && loads_packed_relocations() {
            // Packed relocations take bits instead of 24 bytes each, which saves 27 KB.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,pack-relative-relocs,--icf=all");
        }
        return;
    }
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        // rustc asks the linker for the unwinder gcc_s. The linker finds this linker script first, and links the static unwinder
        // instead.
        let folder = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("unwinder");
        fs::create_dir_all(&folder).expect("OUT_DIR is writable");
        fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").expect("OUT_DIR is writable");
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
}

/// Returns whether this machine's C library can load packed relocations, as glibc can from 2.36 on. A build runs only
/// where its C library does.
fn loads_packed_relocations() -> bool {
    let version =
        Command::new("getconf").arg("GNU_LIBC_VERSION").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&version);
    let mut numbers =
        version.trim().strip_prefix("glibc ").unwrap_or_default().split('.').map_while(|n| n.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (2, 36)
}

/// Returns whether rustc links with its own lld. From 1.90 on it does so by default, for this one target.
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
