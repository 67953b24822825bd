//! Messages in a library that was built without them: their function says so.

use crate::pointers::fail;
use crate::status::{adead_status, guard};
use std::ffi::c_void;

/// As in `log.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn adead_log_set(_: i32, _: *const c_void, _: *mut c_void) -> adead_status {
    guard(|| {
        fail!(Unsupported, "this is a minimal build of adead, which has no messages: build it without ADEAD_MINIMAL")
    })
}
