//! Statuses, the text of the last error, versions, and the guard that every call goes through.

use adead_core::{Error, Result, Status, contract};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// What a call returns: `ADEAD_OK` (0), or why it failed.
pub type adead_status = i32;

thread_local! {
    static LAST_ERROR: RefCell<Option<CString>> = const { RefCell::new(None) };
    /// Where this thread panicked last, from the hook.
    static PANIC_PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Runs a call: no panic leaves it, and an error becomes a status and this thread's error text.
#[inline]
pub(crate) fn guard(call: impl FnOnce() -> Result<()>) -> adead_status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::Ok as adead_status,
        Ok(Err(error)) => failed(error),
        Err(panic) => panicked(panic),
    }
}

/// The same for `_destroy`, which returns nothing.
pub(crate) fn guard_destroy<T>(handle: *mut T) {
    guard(|| {
        if !handle.is_null() {
            // SAFETY: a handle was made by `Box::into_raw` and the caller gives it up.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

// Both end here whatever happens, which `extern "C"` tells the compiler: no function needs a way out for them.
#[cold]
#[allow(improper_ctypes_definitions)]
extern "C" fn failed(error: Error) -> adead_status {
    remember(error.message());
    error.status() as adead_status
}

#[cold]
#[allow(improper_ctypes_definitions)]
extern "C" fn panicked(panic: Box<dyn Any + Send>) -> adead_status {
    let text = match panic.downcast_ref::<String>() {
        Some(text) => text.as_str(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or("a panic without a text"),
    };
    let place = PANIC_PLACE.try_with(Cell::take).ok().flatten().unwrap_or_default();
    remember(&format!("a fault of adead, please report it: {text}{place}"));
    Status::Internal as adead_status
}

fn remember(text: &str) {
    let text = CString::new(text.replace('\0', "\u{fffd}")).ok();
    // On a thread that is ending there may be nowhere left to keep it.
    let _ = LAST_ERROR.try_with(|last| last.replace(text));
}

/// Sets the panic hook of a library that has a Rust runtime of its own: a panic is told by its status and error text,
/// and printed only if `ADEAD_LOG` is set.
#[doc(hidden)]
pub fn keep_panics_quiet() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
        let _ = PANIC_PLACE.try_with(|last| last.set(place));
        if std::env::var_os("ADEAD_LOG").is_some_and(|value| !value.is_empty() && value != "off") {
            print(info);
        }
    }));
}

/// Texts of the core as C strings that are never freed.
pub(crate) struct Names(OnceLock<Vec<CString>>);

impl Names {
    pub const fn new() -> Names {
        Names(OnceLock::new())
    }

    /// Text `i` of those that `all` gives, NULL if there is none.
    pub fn get(&self, i: Option<usize>, all: &mut dyn Iterator<Item = &'static str>) -> *const c_char {
        let texts = self.0.get_or_init(|| all.map(|text| CString::new(text).unwrap_or_default()).collect());
        i.and_then(|i| texts.get(i)).map_or(std::ptr::null(), |text| text.as_ptr())
    }
}

/// The text of the last call on this thread that failed: what was wrong, with the numbers, and what to do. "" if none
/// did. Valid until the next call on this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn adead_last_error() -> *const c_char {
    let text = LAST_ERROR.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// The name of a status, such as "shape_mismatch"; NULL for a number that is none. Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_status_name(status: adead_status) -> *const c_char {
    static NAMES: Names = Names::new();
    let i = Status::ALL.iter().position(|&known| known as adead_status == status);
    NAMES.get(i, &mut Status::ALL.iter().map(|status| status.name()))
}

/// The version of the library, such as "0.1.0". Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_version() -> *const c_char {
    static NAME: Names = Names::new();
    NAME.get(Some(0), &mut [adead_core::VERSION].into_iter())
}

/// The version of this interface. A program that was built with `ADEAD_ABI_VERSION` n runs with every library that
/// answers n.
#[unsafe(no_mangle)]
pub extern "C" fn adead_abi_version() -> u32 {
    ADEAD_ABI_VERSION
}

/// The version of this interface that the header describes.
pub const ADEAD_ABI_VERSION: u32 = 1;

/// The version of the arithmetic contract, such as "adead-contract-1": libraries that answer the same compute the same
/// bits. It belongs beside every published hash. Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_contract_version() -> *const c_char {
    static NAME: Names = Names::new();
    NAME.get(Some(0), &mut [contract::VERSION].into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last_error() -> String {
        // SAFETY: the text stays until the next failure on this thread.
        unsafe { CStr::from_ptr(adead_last_error()) }.to_str().unwrap().into()
    }

    #[test]
    fn a_panic_becomes_internal() {
        assert_eq!(last_error(), "");
        assert_eq!(guard(|| panic!("number {}", 7)), 12);
        assert!(last_error().contains("number 7"), "{}", last_error());
        assert_eq!(guard(|| Err(Error::new(Status::Io, "a\0b"))), 11);
        assert_eq!(last_error(), "a\u{fffd}b");
        assert_eq!(guard(|| Ok(())), 0);
        assert_eq!(last_error(), "a\u{fffd}b", "success keeps the text");
        let other = std::thread::spawn(last_error).join().unwrap();
        assert_eq!(other, "", "each thread has its own");
    }

    /// Only as a process of its own, as below, for the panic hook is the process's.
    #[test]
    fn quiet_child() {
        if std::env::var_os("ADEAD_QUIET_CHILD").is_some() {
            keep_panics_quiet();
            assert_eq!(guard(|| panic!("in the child")), 12);
            println!("{}", last_error());
        }
    }

    #[test]
    fn panics_are_printed_only_if_asked_for() {
        for log in ["", "1"] {
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "status::tests::quiet_child", "--nocapture", "--test-threads=1"])
                .env("ADEAD_QUIET_CHILD", "1")
                .env("ADEAD_LOG", log)
                .output()
                .unwrap();
            let (told, printed) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
            assert!(child.status.success() && told.contains("in the child (") && told.contains("status.rs:"), "{told}");
            assert_eq!(printed.contains("in the child"), !log.is_empty(), "{printed}");
        }
    }
}
