//! Modules in a library that was built without them: every function says so.

use crate::pointers::fail;
use crate::status::{adead_status, guard};
use std::ffi::{c_char, c_void};

/// What every one of them returns.
#[inline(never)]
pub(crate) fn without() -> adead_status {
    guard(|| {
        fail!(Unsupported, "this is a minimal build of adead, which has no layers: build it without ADEAD_MINIMAL")
    })
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_linear(
    _: *const c_void,
    _: *const c_void,
    _: *const c_void,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_embedding(_: *const c_void, _: *const c_void, _: *mut *mut c_void) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_layer_norm(
    _: *const c_void,
    _: *const c_void,
    _: *const c_void,
    _: f32,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_relu(_: *const c_void, _: *mut *mut c_void) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_gelu(_: *const c_void, _: i32, _: *mut *mut c_void) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_sequential(_: *const *const c_void, _: usize, _: *mut *mut c_void) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_feed_forward(
    _: *const c_void,
    _: *const c_void,
    _: i32,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_attention(
    _: *const c_void,
    _: *const c_void,
    _: usize,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_transformer_layer(
    _: *const c_void,
    _: *const c_void,
    _: *const c_void,
    _: *const c_void,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_transformer_encoder(
    _: *const *const c_void,
    _: usize,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_load(
    _: *const c_void,
    _: *const c_void,
    _: *const c_char,
    _: *const c_void,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_destroy(_: *mut c_void) {}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_describe(_: *const c_void, _: *mut c_void) -> adead_status {
    without()
}

/// As in `module.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_module_forward(
    _: *const c_void,
    _: *const c_void,
    _: *const c_void,
    _: *mut *mut c_void,
) -> adead_status {
    without()
}
