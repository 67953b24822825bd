//! Loaders in a library that was built without them: every function says so.

use crate::overlap::without;
use crate::status::adead_status;
use std::ffi::c_void;

/// As in `loader.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_loader_create(_: *mut c_void, _: *mut c_void, _: usize, _: *mut c_void) -> adead_status {
    without()
}

/// As in `loader.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_loader_next(_: *mut c_void, _: *mut c_void, _: *mut usize) -> adead_status {
    without()
}

/// As in `loader.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_loader_destroy(_: *mut c_void) {}
