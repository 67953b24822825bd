//! Batches in a library that was built without them: every function says so.

use crate::buffer::adead_buffer;
use crate::context::adead_context;
use crate::pointers::fail;
use crate::status::{adead_status, guard};
use crate::stream::adead_stream;
use std::ffi::c_void;

/// What every one of them, and of a loader's, returns.
#[inline(never)]
pub(crate) fn without() -> adead_status {
    guard(|| {
        fail!(Unsupported, "this is a minimal build of adead, which has no batches: build it without ADEAD_MINIMAL")
    })
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_batch_memory(_: *mut c_void, _: usize, _: *mut c_void) -> adead_status {
    without()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_batch_borrow(_: *mut c_void, _: *const c_void, _: usize) -> adead_status {
    without()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_overlap(
    _: *const adead_context,
    _: usize,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
) -> adead_status {
    without()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_batches_create(
    _: *const adead_context,
    _: usize,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
) -> adead_status {
    without()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_batches_next(_: *mut c_void, _: *mut usize, _: *mut c_void, _: *mut usize) -> adead_status {
    without()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_batches_destroy(_: *mut c_void) {}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_stage_index(_: *const c_void) -> usize {
    0
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_stage_stream(_: *const c_void) -> *mut adead_stream {
    std::ptr::null_mut()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_stage_input(_: *const c_void) -> *mut adead_buffer {
    std::ptr::null_mut()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_stage_buffer(_: *mut c_void, _: usize, _: *mut c_void) -> adead_status {
    without()
}

/// As in `overlap.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_stage_result(_: *mut c_void, _: *const adead_buffer, _: usize, _: usize) -> adead_status {
    without()
}
