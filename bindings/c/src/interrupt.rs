//! Flags that end long calls early.

use crate::pointers::Out;
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::Interrupt;
use std::mem::offset_of;
use std::ptr::null;

/// A flag that ends long calls early. Threads and signal handlers may share one.
pub struct adead_interrupt(Interrupt);

/// Makes the core watch a flag on this thread. Returns the flag that it watched before.
///
/// # Safety
/// The pointer is NULL, or stays valid until another one replaces it on this thread.
unsafe fn watch(interrupt: *const adead_interrupt) -> *const adead_interrupt {
    // SAFETY: the caller vouches for the pointer; every earlier flag is the field of an `adead_interrupt`.
    unsafe {
        let before = Interrupt::watch(interrupt.as_ref().map_or(null(), |interrupt| &raw const interrupt.0));
        if before.is_null() { null() } else { before.byte_sub(offset_of!(adead_interrupt, 0)).cast() }
    }
}

/// Creates a flag that is not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_create(out: *mut *mut adead_interrupt) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { Out::new(out, "out") }?.give(adead_interrupt(Interrupt::new()));
        Ok(())
    })
}

/// Destroys a flag; NULL is allowed. No other thread may still watch it through `adead_interrupt_watch`. If the calling
/// thread watches it, the thread then watches none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_destroy(interrupt: *mut adead_interrupt) {
    // SAFETY: a watched flag has not been destroyed.
    unsafe {
        let watched = watch(null());
        if !std::ptr::eq(watched, interrupt) {
            watch(watched);
        }
    }
    guard_destroy(interrupt);
}

/// Sets a flag, or clears it if the value is 0; NULL is allowed. Calls that have seen the flag set still end early. Any
/// thread may call this, and so may a signal handler: it is async-signal-safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_set(interrupt: *mut adead_interrupt, value: i32) {
    // SAFETY: the caller vouches for the pointer.
    if let Some(interrupt) = unsafe { interrupt.as_ref() } {
        interrupt.0.set(value != 0);
    }
}

/// Returns whether a flag is set: 0 or 1. NULL is not set. Async-signal-safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_get(interrupt: *const adead_interrupt) -> i32 {
    // SAFETY: the caller vouches for the pointer.
    unsafe { interrupt.as_ref() }.is_some_and(|interrupt| interrupt.0.is_set()).into()
}

/// Makes the calling thread watch a flag, or none if it is NULL. While the flag is set, the thread's long calls end
/// with `not_ready` within 0.1 s. Long calls are operations, programs and pipelines on the CPU, and waits for a GPU.
/// Work already submitted to the GPU continues. Calls of a few milliseconds finish. A call that ends early gives no
/// result, but may have written parts of its output arrays and buffers. Everything works as before afterwards.
///
/// Returns the flag that the thread watched before, or NULL, so that the caller can restore it. No thread may watch a
/// flag when it is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_interrupt_watch(interrupt: *const adead_interrupt) -> *const adead_interrupt {
    // SAFETY: the caller vouches that the flag lives until another one, or NULL, replaces it.
    unsafe { watch(interrupt) }
}
