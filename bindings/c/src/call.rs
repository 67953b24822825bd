//! The most common form of call: it takes a handle and has one output, a value or a new handle.

use crate::pointers::{Out, exclusive, reference};
use crate::status::{adead_status, guard};
use adead_core::Result;

/// Writes the value that `ask` returns for a handle.
///
/// # Safety
/// As for [`reference`] and [`Out::new`].
pub(crate) unsafe fn asked<H, T>(
    handle: *const H,
    name: &str,
    out: *mut T,
    ask: impl FnOnce(&H) -> Result<T>,
) -> adead_status {
    guard(|| {
        // SAFETY: passed on.
        let (handle, out) = unsafe { (reference(handle, name)?, Out::new(out, "out")?) };
        out.write(ask(handle)?);
        Ok(())
    })
}

/// Works like [`asked`], for a handle that the call changes.
///
/// # Safety
/// As for [`exclusive`] and [`Out::new`].
pub(crate) unsafe fn asked_of<H, T>(
    handle: *mut H,
    name: &str,
    out: *mut T,
    ask: impl FnOnce(&mut H) -> Result<T>,
) -> adead_status {
    guard(|| {
        // SAFETY: passed on.
        let (handle, out) = unsafe { (exclusive(handle, name)?, Out::new(out, "out")?) };
        out.write(ask(handle)?);
        Ok(())
    })
}

/// Writes a new handle of the object that `make` returns for a handle.
///
/// # Safety
/// As for [`asked`].
pub(crate) unsafe fn made<H, T>(
    handle: *const H,
    name: &str,
    out: *mut *mut T,
    make: impl FnOnce(&H) -> Result<T>,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { asked(handle, name, out, |handle| Ok(Box::into_raw(Box::new(make(handle)?)))) }
}

/// Works like [`made`], for a handle that the call changes.
///
/// # Safety
/// As for [`asked_of`].
pub(crate) unsafe fn made_by<H, T>(
    handle: *mut H,
    name: &str,
    out: *mut *mut T,
    make: impl FnOnce(&mut H) -> Result<T>,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { asked_of(handle, name, out, |handle| Ok(Box::into_raw(Box::new(make(handle)?)))) }
}
