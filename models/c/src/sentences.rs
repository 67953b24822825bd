//! Sentences as C passes them.

use adead_c_support::fail;
use adead_c_support::pointers::array;
use adead_core::Result;
use std::ffi::{CStr, c_char};

/// Returns the text of sentence `number`, which has a length or ends with NUL.
///
/// # Safety
/// `text` is NULL, or points to `length` bytes, or to a text that ends with NUL, which nothing writes during `'a`.
pub(crate) unsafe fn text_of<'a>(text: *const c_char, length: Option<usize>, number: u64) -> Result<&'a str> {
    // An empty text may have any address.
    if text.is_null() && length != Some(0) {
        fail!(InvalidArgument, "sentence {number} is NULL");
    }
    let bytes = match length {
        // SAFETY: passed on.
        Some(length) => unsafe { array(text.cast(), length, "a sentence") }?,
        // SAFETY: not NULL, and the caller vouches for the rest.
        None => unsafe { CStr::from_ptr(text) }.to_bytes(),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => fail!(InvalidArgument, "sentence {number} is not UTF-8: {error}"),
    }
}
