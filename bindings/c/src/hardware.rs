//! A description of this machine.

use crate::pointers::{fixed, growing, report};
use crate::status::{adead_status, guard};
use adead_core::hardware::{Cache, detect};
use std::ffi::c_char;

/// How a device keeps the arithmetic contract, one of `ADEAD_CONTRACT_…`.
pub type adead_contract_level = i32;

/// Where work should run, one of `ADEAD_MODE_…`.
pub type adead_mode = i32;

/// The most caches that a report lists.
pub const ADEAD_MAX_CACHES: usize = 8;

/// A data or unified cache.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct adead_cache {
    /// The level; 1 is nearest to the core.
    pub level: u32,
    /// Bytes of a cache line.
    pub line: u32,
    /// Bytes.
    pub size: u64,
}

/// A report on the machine. The caller sets `struct_size`. Texts end with NUL and are cut if they are too long.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_hardware {
    /// `sizeof(adead_hardware)`.
    pub struct_size: usize,
    /// Bytes of host memory that this process could use if it were alone.
    pub memory_total: u64,
    /// Bytes of host memory that this process could use now.
    pub memory_available: u64,
    /// Physical cores that this process may use.
    pub cpu_cores: u32,
    /// Hardware threads that this process may use.
    pub cpu_threads: u32,
    /// The nominal frequency in MHz; 0 if unknown.
    pub cpu_frequency_mhz: u32,
    /// The mode that suits the machine.
    pub recommended: adead_mode,
    /// The number of `cpu_caches`, from the nearest level.
    pub cpu_cache_count: usize,
    /// The caches.
    pub cpu_caches: [adead_cache; ADEAD_MAX_CACHES],
    /// "GenuineIntel", "AuthenticAMD", …
    pub cpu_vendor: [c_char; 32],
    /// The vendor's name for the processor.
    pub cpu_model: [c_char; 128],
    /// Instruction-set extensions that kernels may use, separated by spaces.
    pub cpu_features: [c_char; 512],
    /// The number of GPUs that `adead_gpu_info` can describe.
    pub gpu_count: usize,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_hardware, 848);

/// Describes the machine: processor, memory, GPUs and the recommended mode. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_hardware_report(out: *mut adead_hardware) -> adead_status {
    guard(|| {
        let make = |struct_size| {
            let hardware = detect();
            let cpu = &hardware.cpu;
            let number = |n: usize| n.try_into().unwrap_or(u32::MAX);
            let mut cpu_caches = [adead_cache::default(); ADEAD_MAX_CACHES];
            for (to, &Cache { level, size, line }) in cpu_caches.iter_mut().zip(&cpu.caches) {
                *to = adead_cache { level: level.into(), line: number(line), size: size as u64 };
            }
            Ok(adead_hardware {
                struct_size,
                memory_total: hardware.memory.total,
                memory_available: hardware.memory.available,
                cpu_cores: number(cpu.cores),
                cpu_threads: number(cpu.threads),
                cpu_frequency_mhz: cpu.frequency_mhz,
                recommended: hardware.recommended as adead_mode,
                cpu_cache_count: cpu.caches.len().min(ADEAD_MAX_CACHES),
                cpu_caches,
                cpu_vendor: fixed(&cpu.vendor),
                cpu_model: fixed(&cpu.model),
                cpu_features: fixed(&cpu.features.join(" ")),
                gpu_count: hardware.gpus.len(),
            })
        };
        // SAFETY: the caller vouches for the pointer.
        unsafe { report(out, "out", make) }
    })
}
