//! The process's number, known without a system call each time. Objects that a forked child can't use check it in every call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The process's number; 0 before the first request, and in a forked child.
static KNOWN: AtomicU32 = AtomicU32::new(0);
/// Whether the system reports forks.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Returns the number of this process, like [`std::process::id`]. A forked child has another one. A child made by the bare system
/// call, without the C library, is mistaken for its parent.
#[inline]
pub(crate) fn id() -> u32 {
    match KNOWN.load(Relaxed) {
        0 => ask(),
        known => known,
    }
}

#[cold]
fn ask() -> u32 {
    let id = std::process::id();
    // Two threads may both register, and then the child runs the handler twice. A lock could be held by a thread that does not
    // exist in the child.
    if TOLD.load(Relaxed) || listen() {
        TOLD.store(true, Relaxed);
        KNOWN.store(id, Relaxed);
    }
    id
}

/// Registers a handler that clears the number in children before `fork` returns there. Returns whether that succeeded.
#[cfg(unix)]
fn listen() -> bool {
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    unsafe extern "C" fn forget() {
        KNOWN.store(0, Relaxed);
    }
    // SAFETY: the handler stores a number, which any child may do. The C library removes it if this library is unloaded.
    unsafe { pthread_atfork(None, None, Some(forget)) == 0 }
}

/// Without fork the number never changes.
#[cfg(not(unix))]
fn listen() -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }

    #[test]
    fn a_child_and_its_child_know_who_they_are() {
        let parent = id();
        assert_eq!((parent, id()), (std::process::id(), parent));
        let is_right = || id() == std::process::id() && id() != parent && id() == KNOWN.load(Relaxed);
        // SAFETY: the children only read numbers, and leave by _exit.
        let child = unsafe { fork() };
        if child == 0 {
            let own = is_right();
            // SAFETY: as above.
            let grandchild = unsafe { fork() };
            if grandchild == 0 {
                // SAFETY: ends the grandchild.
                unsafe { _exit(i32::from(!is_right())) };
            }
            let mut status = -1;
            // SAFETY: waits for a child of this process and writes its status.
            unsafe { waitpid(grandchild, &mut status, 0) };
            // SAFETY: ends the child.
            unsafe { _exit(i32::from(!(own && status == 0 && is_right()))) };
        }
        let mut status = -1;
        // SAFETY: waits for a child of this process and writes its status.
        assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
        assert_eq!((status, id()), (0, parent));
    }
}
