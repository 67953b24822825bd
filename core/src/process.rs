//! Which process this is, without a system call each time: what can't be used after a fork asks at every call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The process's number, 0 until somebody asks, and in a child that was forked.
static KNOWN: AtomicU32 = AtomicU32::new(0);
/// Whether the system says when it forks.
static TOLD: AtomicBool = AtomicBool::new(false);

/// The number of this process, as [`std::process::id`]; another one in a child that was forked. (One made by the bare system
/// call, behind the C library's back, is taken for its parent.)
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
    // Two threads may both do this: then a child is told twice. A lock could be held by a thread that a child has not.
    if TOLD.load(Relaxed) || listen() {
        TOLD.store(true, Relaxed);
        KNOWN.store(id, Relaxed);
    }
    id
}

/// Has children forget the number before `fork` returns in them; whether that could be had.
#[cfg(unix)]
fn listen() -> bool {
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> i32;
    }
    unsafe extern "C" fn forget() {
        KNOWN.store(0, Relaxed);
    }
    // SAFETY: the handler stores a number, which any child may do. The C library forgets it if this library is unloaded.
    unsafe { pthread_atfork(None, None, Some(forget)) == 0 }
}

/// No fork, no other process.
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
        // SAFETY: the children read numbers, and leave by _exit.
        let child = unsafe { fork() };
        if child == 0 {
            let own = is_right();
            // SAFETY: as above.
            let grandchild = unsafe { fork() };
            if grandchild == 0 {
                // SAFETY: it ends the grandchild.
                unsafe { _exit(i32::from(!is_right())) };
            }
            let mut status = -1;
            // SAFETY: a child of this process; it writes a number.
            unsafe { waitpid(grandchild, &mut status, 0) };
            // SAFETY: it ends the child.
            unsafe { _exit(i32::from(!(own && status == 0 && is_right()))) };
        }
        let mut status = -1;
        // SAFETY: a child of this process; it writes a number.
        assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
        assert_eq!((status, id()), (0, parent));
    }
}
