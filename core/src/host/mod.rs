//! What the process runs on: the processor, host memory, and how much of both it may use.

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "x86"))))]
mod arm;
mod cpu;
mod groups;
mod ram;

pub use cpu::{Cache, Cpu};
pub use ram::Memory;

use std::sync::OnceLock;

/// The most threads that a context takes: more than processors of any machine have, few enough to be started.
pub const MOST_THREADS: usize = 1024;

/// How many threads this process may run at a time, at least 1: what its processors (cpuset) and the quotas of its control groups
/// leave.
pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get())
}

/// The processor, looked at once.
pub(crate) fn cpu() -> &'static Cpu {
    static CPU: OnceLock<Cpu> = OnceLock::new();
    CPU.get_or_init(Cpu::detect)
}

/// The processor's name.
pub(crate) fn cpu_name() -> String {
    cpu().model.clone()
}

/// Host memory now.
pub fn memory() -> Memory {
    Memory::detect()
}
