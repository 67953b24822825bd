//! Host bytes copied by several threads: one alone moves less than the bus of a GPU does.

/// Threads that help with the host's side of a device's work.
///
/// # Safety
/// `run` does every task exactly once and returns when all are done: memory is taken for written then.
pub unsafe trait Workers: Send + Sync {
    /// Calls `task` with every number below `tasks`, on several threads where there are, and returns when all are done. The
    /// caller's thread works too and waits for no other work.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// Bytes that a thread copies at a time.
const SLICE: usize = 128 << 10;

/// A place that threads write different parts of.
struct Target(*mut u8);

// SAFETY: an address; who writes what is decided in `copy`.
unsafe impl Sync for Target {}

impl Target {
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}

/// Copies bytes, on the caller's thread alone where others would come too late to help.
///
/// # Safety
/// As of `copy_from_nonoverlapping`: `to` has room for as many bytes, which nobody else touches meanwhile.
pub(crate) unsafe fn copy(workers: Option<&dyn Workers>, from: &[u8], to: *mut u8) {
    let to = Target(to);
    let slice = |task: usize| {
        let at = task * SLICE;
        let part = &from[at..from.len().min(at + SLICE)];
        // SAFETY: inside both, and nobody else's part.
        unsafe { to.at(at).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
    };
    match workers {
        Some(workers) if from.len() >= 2 * SLICE => workers.run(from.len().div_ceil(SLICE), &slice),
        // SAFETY: as the caller says.
        _ => unsafe { to.at(0).copy_from_nonoverlapping(from.as_ptr(), from.len()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::cpu::CpuDevice;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Counts what others are asked to do.
    struct Counted(CpuDevice, AtomicUsize);

    // SAFETY: a device's do.
    unsafe impl Workers for Counted {
        fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
            self.1.fetch_add(tasks, Relaxed);
            self.0.run(tasks, task);
        }
    }

    #[test]
    fn every_byte_arrives_and_no_other_changes() {
        let sizes = [0, 1, SLICE - 1, SLICE + 1, 2 * SLICE - 1, 2 * SLICE, 3 * SLICE + 5, 40 * SLICE + 4097];
        for threads in [1, 2, 7] {
            let workers = Counted(CpuDevice::open(None, Some(threads)).unwrap(), AtomicUsize::new(0));
            for bytes in sizes {
                let from: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
                for given in [None, Some(&workers as &dyn Workers)] {
                    let before = workers.1.load(Relaxed);
                    let mut to = vec![0xee; bytes + 64];
                    // SAFETY: 32 bytes more on both sides, of a vector that nobody else has.
                    unsafe { copy(given, &from, to.as_mut_ptr().add(32)) };
                    assert!(to[32..32 + bytes] == from, "{bytes} bytes");
                    assert!(to[..32].iter().chain(&to[32 + bytes..]).all(|&byte| byte == 0xee), "{bytes} bytes");
                    let asked = workers.1.load(Relaxed) - before;
                    let tasks = if bytes >= 2 * SLICE { bytes.div_ceil(SLICE) } else { 0 };
                    assert_eq!(asked, if given.is_some() { tasks } else { 0 }, "{bytes} bytes");
                }
            }
        }
    }
}
