//! The guard around every call of a C interface, and the text of the last error.

use adead_core::{Error, Result, Status};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST_ERROR: RefCell<Option<CString>> = const { RefCell::new(None) };
    /// The number of failed calls on this thread.
    static FAILURES: Cell<usize> = const { Cell::new(0) };
    /// The place of this thread's last panic, as the hook reported it.
    static PANIC_PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Runs a call and returns its status. An error or a panic sets this thread's error text; no panic leaves the call.
#[inline]
pub fn guard(call: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::Ok as i32,
        Ok(Err(error)) => failed(error),
        Err(panic) => panicked(panic),
    }
}

/// Works like [`guard`], for `_destroy` functions, which return nothing.
///
/// # Safety
/// `handle` is NULL or was made by `Box::into_raw`, and the caller gives it up.
pub unsafe fn guard_destroy<T>(handle: *mut T) {
    guard(|| {
        if !handle.is_null() {
            // SAFETY: not NULL, so `Box::into_raw` made it, and the caller gives it up.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

// `extern "C"` tells the compiler that no panic leaves these, so callers need no code to unwind.
#[cold]
#[allow(improper_ctypes_definitions)]
extern "C" fn failed(error: Error) -> i32 {
    remember(error.message());
    error.status() as i32
}

#[cold]
#[allow(improper_ctypes_definitions)]
extern "C" fn panicked(panic: Box<dyn Any + Send>) -> i32 {
    let text = match panic.downcast_ref::<String>() {
        Some(text) => text.as_str(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or("a panic without a message"),
    };
    let place = PANIC_PLACE.try_with(Cell::take).ok().flatten().unwrap_or_default();
    remember(&format!("a bug in adead, please report it: {text}{place}"));
    Status::Internal as i32
}

/// Sets the text of this thread's last failure.
pub fn remember(text: &str) {
    // A thread that is exiting may have destroyed these variables already.
    let _ = LAST_ERROR.try_with(|last| last.replace(Some(c_text(text))));
    let _ = FAILURES.try_with(|failures| failures.set(failures.get().wrapping_add(1)));
}

/// Returns the number of failed calls on this thread, which tells whether a call failed inside a callback.
pub fn failures() -> usize {
    FAILURES.try_with(Cell::get).unwrap_or_default()
}

/// Converts a text for C; a NUL in it becomes U+FFFD.
#[inline(never)]
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Sets the panic hook of a library that has its own Rust runtime. A panic is reported by its status and error text,
/// and printed only if `ADEAD_LOG` is set.
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

/// Returns the error text of the last call that failed on this thread, or "". It stays until the next failure.
pub fn last_error() -> *const c_char {
    let text = LAST_ERROR.try_with(|last| last.borrow().as_ref().map(|text| text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last_error() -> String {
        // SAFETY: the text stays until the next failure on this thread.
        unsafe { CStr::from_ptr(super::last_error()) }.to_str().unwrap().into()
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

    /// Runs only in a process of its own, as below, because the panic hook belongs to the process.
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
                .args(["--exact", "guard::tests::quiet_child", "--nocapture", "--test-threads=1"])
                .env("ADEAD_QUIET_CHILD", "1")
                .env("ADEAD_LOG", log)
                .output()
                .unwrap();
            let (told, printed) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
            assert!(child.status.success() && told.contains("in the child (") && told.contains("guard.rs:"), "{told}");
            assert_eq!(printed.contains("in the child"), !log.is_empty(), "{printed}");
        }
    }
}
