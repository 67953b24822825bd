//! Calls of the usual form: they ask a handle for one output, which is a value or a new handle.

use crate::pointers::{Out, exclusive, reference};
use crate::status::{adead_status, guard};
use adead_core::Result;

/// Writes the value that `ask` returns for a handle.
///
/// # Safety
/// As [`reference`] and [`Out::new`].
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

/// As [`asked`], for a handle that the call changes.
///
/// # Safety
/// As [`exclusive`] and [`Out::new`].
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

/// Hands out the new handle that `make` makes from another.
///
/// # Safety
/// As [`asked`].
pub(crate) unsafe fn made<H, T>(
    handle: *const H,
    name: &str,
    out: *mut *mut T,
    make: impl FnOnce(&H) -> Result<T>,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { asked(handle, name, out, |handle| Ok(Box::into_raw(Box::new(make(handle)?)))) }
}

/// As [`made`], for a handle that the call changes.
///
/// # Safety
/// As [`asked_of`].
pub(crate) unsafe fn made_by<H, T>(
    handle: *mut H,
    name: &str,
    out: *mut *mut T,
    make: impl FnOnce(&mut H) -> Result<T>,
) -> adead_status {
    // SAFETY: passed on.
    unsafe { asked_of(handle, name, out, |handle| Ok(Box::into_raw(Box::new(make(handle)?)))) }
}
