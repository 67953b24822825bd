//! Versions, and the text of the last error.

use std::ffi::{CStr, c_char};

/// Returns the error text of the last call of this library that failed on this thread: what was wrong, with the numbers. "" if no call
/// failed. It is valid until the next call on this thread fails. (`adead_last_error` has the texts of libadead.)
#[unsafe(no_mangle)]
pub extern "C" fn adead_models_last_error() -> *const c_char {
    adead_c_support::last_error()
}

/// Returns the version of this library, such as "0.1.0". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_models_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };
    VERSION.as_ptr()
}

/// Returns the version of this interface. A program built with `ADEAD_MODELS_ABI_VERSION` n runs with every library that returns n.
#[unsafe(no_mangle)]
pub extern "C" fn adead_models_abi_version() -> u32 {
    ADEAD_MODELS_ABI_VERSION
}

/// The version of this interface that the header describes.
pub const ADEAD_MODELS_ABI_VERSION: u32 = 1;
