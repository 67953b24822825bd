//! Matrices and streams as numbers in a library that was built without them: every function says so.

use crate::pointers::fail;
use crate::status::{adead_status, guard};
use std::ffi::c_char;

/// As in `flat.rs`.
pub type adead_flat_handle = i64;

/// What every one of them returns.
#[inline(never)]
fn without() -> adead_status {
    guard(|| {
        fail!(
            Unsupported,
            "this is a minimal build of adead, which has no matrices as numbers: build it without ADEAD_MINIMAL"
        )
    })
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_gpu_available(_: *mut i32) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_device_count(_: *mut i32) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_backend_name(_: i32, _: i32, _: *mut *const c_char) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_alloc_zeros(_: i64, _: i64, _: i32, _: i32, _: *mut adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_alloc_ones(_: i64, _: i64, _: i32, _: i32, _: *mut adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_alloc_upload(
    _: *const f32,
    _: i64,
    _: i64,
    _: i32,
    _: i32,
    _: *mut adead_flat_handle,
) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_free(_: adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_shape(_: adead_flat_handle, _: *mut i64, _: *mut i64) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_device(_: adead_flat_handle, _: *mut i32, _: *mut i32) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_upload(_: adead_flat_handle, _: *const f32, _: i64) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_download(_: adead_flat_handle, _: *mut f32, _: i64) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_to(_: adead_flat_handle, _: i32, _: i32, _: *mut adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_matmul(
    _: adead_flat_handle,
    _: adead_flat_handle,
    _: adead_flat_handle,
    _: *mut adead_flat_handle,
) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_run(
    _: *const c_char,
    _: *const adead_flat_handle,
    _: i32,
    _: *const c_char,
    _: adead_flat_handle,
    _: adead_flat_handle,
) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_stream_create(_: i32, _: i32, _: *mut adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_stream_sync(_: adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_stream_query(_: adead_flat_handle, _: *mut i32) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_stream_destroy(_: adead_flat_handle) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_async_upload_batch(
    _: adead_flat_handle,
    _: *const adead_flat_handle,
    _: *const *const f32,
    _: *const i64,
    _: i32,
) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_count(_: *mut i64) -> adead_status {
    without()
}

/// As in `flat.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_flat_reset() -> adead_status {
    without()
}
