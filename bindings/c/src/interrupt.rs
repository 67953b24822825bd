//! Flags that end long work early.

use crate::pointers::Out;
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::Interrupt;
use std::mem::offset_of;
use std::ptr::null;

/// A flag that ends long calls early. Threads and signal handlers may share one.
pub struct adead_interrupt(Interrupt);

/// Has the core look at a flag on this thread; the one before.
///
/// # Safety
/// It is NULL or lives until another one takes its place.
unsafe fn watch(interrupt: *const adead_interrupt) -> *const adead_interrupt {
    // SAFETY: as asked; every flag that was given before is one's field.
    unsafe {
        let before = Interrupt::watch(interrupt.as_ref().map_or(null(), |interrupt| &raw const interrupt.0));
        if before.is_null() { null() } else { before.byte_sub(offset_of!(adead_interrupt, 0)).cast() }
    }
}

/// A flag that is not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_create(out: *mut *mut adead_interrupt) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { Out::new(out, "out") }?.give(adead_interrupt(Interrupt::new()));
        Ok(())
    })
}

/// Gives a flag up; NULL is fine. No other thread has it from `adead_interrupt_watch` any more; the calling thread then has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_destroy(interrupt: *mut adead_interrupt) {
    // SAFETY: a flag that is watched has not been given up.
    unsafe {
        let watched = watch(null());
        if !std::ptr::eq(watched, interrupt) {
            watch(watched);
        }
    }
    guard_destroy(interrupt);
}

/// Sets a flag, or with 0 takes it back; NULL is fine. Calls that saw it end all the same. Async-signal-safe: a signal handler may
/// call it, as may any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_set(interrupt: *mut adead_interrupt, value: i32) {
    // SAFETY: the caller vouches for the pointer.
    if let Some(interrupt) = unsafe { interrupt.as_ref() } {
        interrupt.0.set(value != 0);
    }
}

/// Whether a flag is set: 0 or 1; NULL is not. Async-signal-safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_get(interrupt: *const adead_interrupt) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { interrupt.as_ref() }.is_some_and(|interrupt| interrupt.0.is_set()).into()
}

/// From here on, long calls of the calling thread end with `not_ready` within 0.1 s while the flag is set: operations, programs and
/// pipelines on the processor, and waiting for a GPU, where what it was given goes on. Calls of a few milliseconds are done whole.
/// A call that ends early gives no result, but parts of the arrays and buffers that it was to write may be written; everything
/// works as before afterwards. NULL: nothing ends them.
///
/// The flag that there was before, or NULL, is what the function returns, to be put back: a flag must be watched by no thread when
/// it is given up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_watch(interrupt: *const adead_interrupt) -> *const adead_interrupt {
    // SAFETY: the caller vouches that the flag lives until another one, or NULL, takes its place.
    unsafe { watch(interrupt) }
}
