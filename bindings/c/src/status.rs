//! Statuses, the text of the last error, and versions.

use adead_core::{Error, Result, Status, contract};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

pub(crate) use adead_c_support::guard;

/// The result of a call: `ADEAD_OK` (0), or why it failed.
pub type adead_status = i32;

/// Returns the error of functions that make texts for people, in a library without the feature `programs`.
#[cold]
pub(crate) fn without_texts() -> Error {
    let text =
        "this is a minimal build of adead, which has no texts of choices and plans: build it without ADEAD_MINIMAL";
    Error::new(Status::Unsupported, text)
}

/// Returns that error early, so that the compiler drops the code after it.
#[inline(always)]
pub(crate) fn texts() -> Result<()> {
    if cfg!(feature = "programs") { Ok(()) } else { Err(without_texts()) }
}

/// Destroys a handle.
pub(crate) fn guard_destroy<T>(handle: *mut T) {
    // SAFETY: the caller vouches that the library made the handle by `Box::into_raw`, and gives up the handle.
    unsafe { adead_c_support::guard_destroy(handle) }
}

/// Texts of the core as C strings that are never freed.
pub(crate) struct Names(OnceLock<Vec<CString>>);

impl Names {
    pub const fn new() -> Names {
        Names(OnceLock::new())
    }

    /// Returns text `i` of those that `all` yields, or NULL if there is none.
    pub fn get(&self, i: Option<usize>, all: &mut dyn Iterator<Item = &'static str>) -> *const c_char {
        let texts = self.0.get_or_init(|| all.map(|text| CString::new(text).unwrap_or_default()).collect());
        i.and_then(|i| texts.get(i)).map_or(std::ptr::null(), |text| text.as_ptr())
    }
}

/// Returns the error text of the last call that failed on this thread: what was wrong, with the numbers, and what to
/// do. "" if no call failed. It is valid until the next call on this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn adead_last_error() -> *const c_char {
    adead_c_support::last_error()
}

/// Returns the name of a status, such as "shape_mismatch", or NULL for an unknown number. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_status_name(status: adead_status) -> *const c_char {
    static NAMES: Names = Names::new();
    let i = Status::ALL.iter().position(|&known| known as adead_status == status);
    NAMES.get(i, &mut Status::ALL.iter().map(|status| status.name()))
}

/// Returns the version of the library, such as "0.1.0". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_version() -> *const c_char {
    static NAME: Names = Names::new();
    NAME.get(Some(0), &mut [adead_core::VERSION].into_iter())
}

/// Returns the version of this interface. A program built with `ADEAD_ABI_VERSION` n runs with every library that
/// returns n.
#[unsafe(no_mangle)]
pub extern "C" fn adead_abi_version() -> u32 {
    ADEAD_ABI_VERSION
}

/// The version of the interface that this header describes.
pub const ADEAD_ABI_VERSION: u32 = 1;

/// Returns the version of the arithmetic contract, such as "adead-contract-2". Libraries with the same version compute
/// the same bits. Publish it beside every hash. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_contract_version() -> *const c_char {
    static NAME: Names = Names::new();
    NAME.get(Some(0), &mut [contract::VERSION].into_iter())
}
