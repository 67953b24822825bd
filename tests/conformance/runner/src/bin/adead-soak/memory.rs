//! Checks whether memory grows. Sometimes all threads pause and idle memory is released; the rest is compared.

use adead_core::Gpu;
use std::time::Duration;

/// Shorter runs can't show growth, because kernels are still compiled on first use.
const SHORTEST: Duration = Duration::from_secs(60);
/// Allowed growth: code loaded on first use, and partly used pages of the allocator.
const SLACK: u64 = 64 << 20;

/// The memory left at each measurement.
#[derive(Default)]
pub struct Growth {
    left: Vec<[u64; 2]>,
}

const WHAT: [&str; 2] = ["the process's memory", "memory taken from the driver"];

impl Growth {
    /// Measures. Every thread must pause and no work may be in progress.
    pub fn look(&mut self, gpu: &Gpu) -> Result<(), String> {
        none_in_use(gpu)?;
        gpu.trim();
        give_back();
        let memory = gpu.memory().map_err(|error| error.to_string())?;
        self.left.push([resident(), memory.held]);
        Ok(())
    }

    /// Compares the last measurement with the second, after a run of this length. At the first, not everything had been used.
    pub fn judge(&self, time: Duration) -> Result<(), String> {
        for (i, what) in WHAT.iter().enumerate() {
            let all: Vec<u64> = self.left.iter().map(|left| left[i]).collect();
            let text: Vec<String> = all.iter().map(|bytes| format!("{}", bytes >> 20)).collect();
            println!("{what} when nothing is in use, in MiB: {}", text.join(", "));
            if let (Some(&early), Some(&late)) = (all.get(1), all.last())
                && time >= SHORTEST
                && late > early + early / 8 + SLACK
            {
                return Err(format!("{what} grows: from {early} to {late} bytes"));
            }
        }
        Ok(())
    }
}

/// Checks that no memory is in use when no work is in progress.
pub fn none_in_use(gpu: &Gpu) -> Result<(), String> {
    gpu.wait().map_err(|error| error.to_string())?;
    let memory = gpu.memory().map_err(|error| error.to_string())?;
    if memory.allocations > 0 || memory.used > 0 {
        return Err(format!("memory is in use although no work is in progress: {memory:?}"));
    }
    Ok(())
}

/// The current memory, as text.
pub fn now(gpu: &Gpu) -> String {
    let memory = gpu.memory().unwrap_or_default();
    format!("process {} MiB, device {} MiB of {}", resident() >> 20, memory.used >> 20, memory.held >> 20)
}

/// Makes the C library release free memory, so that the process grows only if memory in use grows. By default it keeps up to 32
/// MiB of each thread's large blocks, in pieces.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        const M_MMAP_THRESHOLD: i32 = -3;
        const M_ARENA_MAX: i32 = -8;
        // SAFETY: both functions take a number, and no other threads exist yet.
        unsafe {
            mallopt(M_ARENA_MAX, 1);
            mallopt(M_MMAP_THRESHOLD, 256 << 10);
        }
    }
}

/// Makes the C library release the memory that it keeps.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: it may be called at any time.
        unsafe { malloc_trim(0) };
    }
}

/// Bytes of the process in memory; 0 if the system does not report them.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
