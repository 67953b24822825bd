//! The back end whose GPU the tests use: the one that `ADEAD_TEST_BACKEND` names (`vulkan`, `cuda`), or Vulkan.

// Every test file takes what it needs of this.
#![allow(dead_code)]

use std::fmt::Display;

const VARIABLE: &str = "ADEAD_TEST_BACKEND";

/// Returns the back end that the environment names.
pub fn named() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// Returns the back end that the environment names, or `vulkan`.
pub fn backend() -> String {
    named().unwrap_or("vulkan".into())
}

/// Prints that a test skips a device that this machine doesn't have.
///
/// # Panics
/// If the environment names the device's back end: whoever names it wants the test to run.
pub fn skip(device: &str, error: &dyn Display) {
    if let Some(backend) = named().filter(|backend| device.contains(&**backend)) {
        panic!("{VARIABLE} is '{backend}', but '{device}' can't be opened: {error}");
    }
    println!("skipped: {device}: {error}");
}
