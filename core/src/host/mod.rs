//! The machine that the process runs on: the processor, host memory, and the limits of this process on both.

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "x86"))))]
mod arm;
mod cpu;
mod groups;
mod ram;

pub use cpu::{Cache, Cpu};
pub use ram::Memory;

use std::sync::OnceLock;

/// The most threads of a context: more than any machine's processors have, and few enough to start.
pub const MOST_THREADS: usize = 1024;

/// The number of threads that this process may run at a time, at least 1. Its processors (cpuset) and the quotas of its control
/// groups limit it.
pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// Returns the processor, which is examined once.
pub(crate) fn cpu() -> &'static Cpu {
    static CPU: OnceLock<Cpu> = OnceLock::new();
    CPU.get_or_init(Cpu::detect)
}

/// Returns the processor's name.
pub(crate) fn cpu_name() -> String {
    cpu().model.clone()
}

/// Returns the current state of host memory.
pub fn memory() -> Memory {
    Memory::detect()
}
