//! Copies of host bytes by several threads: a single thread can't fill a GPU's bus.

/// Threads that help with host work for a device.
///
/// # Safety
/// `run` must call every task exactly once and return after all have finished: callers then rely on the written memory.
pub unsafe trait Workers: Send + Sync {
    /// Calls `task` with every number below `tasks`, on several threads if there are any. Returns when all calls have
    /// finished. The calling thread works too, and waits for no other work.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// The bytes of one task.
const SLICE: usize = 128 << 10;

/// The destination: threads write disjoint parts of it.
struct Target(*mut u8);

// SAFETY: it holds only an address. `copy` decides which thread writes where.
unsafe impl Sync for Target {}

impl Target {
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.wrapping_add(offset)
    }
}

/// Copies bytes, with several threads if there are at least two slices. For less, other threads would start too late to
/// help.
///
/// # Safety
/// As for `copy_from_nonoverlapping`: `to` must have room for all of `from`, and nothing else may use that memory
/// meanwhile.
pub(crate) unsafe fn copy(workers: Option<&dyn Workers>, from: &[u8], to: *mut u8) {
    let to = Target(to);
    let slice = |task: usize| {
        let at = task * SLICE;
        let part = &from[at..from.len().min(at + SLICE)];
        // SAFETY: the part lies within both `from` and `to`, and no other task has it.
        unsafe { to.at(at).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
    };
    match workers {
        Some(workers) if from.len() >= 2 * SLICE => workers.run(from.len().div_ceil(SLICE), &slice),
        // SAFETY: the caller vouches for `to`.
        _ => unsafe { to.at(0).copy_from_nonoverlapping(from.as_ptr(), from.len()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::cpu::CpuDevice;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Counts the tasks that workers run.
    struct Counted(CpuDevice, AtomicUsize);

    // SAFETY: it forwards to `CpuDevice::run`, which keeps the promise.
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
                    // SAFETY: the vector is 64 bytes longer, 32 of them in front, and nothing else uses it.
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
