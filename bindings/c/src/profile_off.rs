//! Profiles in a library that was built without them: every function says so.

use crate::context::adead_context;
use crate::pointers::fail;
use crate::status::{adead_status, guard};
use std::ffi::c_void;

/// What every one of them returns.
#[inline(never)]
fn without() -> adead_status {
    guard(|| {
        fail!(Unsupported, "this is a minimal build of adead, which has no profiler: build it without ADEAD_MINIMAL")
    })
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_begin(_: *const adead_context, _: usize, _: *mut *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_finish(_: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_destroy(_: *mut c_void) {}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_report(_: *const c_void, _: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_record_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_total_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_device_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_table(_: *const c_void, _: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_json(_: *const c_void, _: *mut c_void) -> adead_status {
    without()
}

/// As in `profile.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_profile_trace(_: *const c_void, _: *mut c_void) -> adead_status {
    without()
}
