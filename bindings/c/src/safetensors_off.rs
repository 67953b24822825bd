//! Files of weights in a library that was built without them: every function says so.

use crate::module::without;
use crate::status::adead_status;
use std::ffi::{c_char, c_void};

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_open(_: *const c_char, _: *mut *mut c_void) -> adead_status {
    without()
}

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_close(_: *mut c_void) {}

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_count(_: *const c_void, _: *mut usize) -> adead_status {
    without()
}

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_name(_: *const c_void, _: usize, _: *mut *const c_char) -> adead_status {
    without()
}

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_contains(_: *const c_void, _: *const c_char, _: *mut i32) -> adead_status {
    without()
}

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_dims(
    _: *const c_void,
    _: *const c_char,
    _: *mut *const usize,
    _: *mut usize,
) -> adead_status {
    without()
}

/// As in `safetensors.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_safetensors_tensor(
    _: *const c_void,
    _: *const c_char,
    _: *const usize,
    _: usize,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}
