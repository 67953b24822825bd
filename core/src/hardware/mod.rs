//! What machine this is: processor, memory, GPUs, and the mode that suits it.

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "x86"))))]
mod arm;
mod cpu;
mod groups;
mod ram;
mod threads;

pub use cpu::{Cache, Cpu};
pub use ram::Memory;
pub(crate) use threads::available as available_threads;

use crate::config::Config;
use crate::devices;
use crate::hal::{DeviceInfo, DeviceKind};
use std::sync::OnceLock;

/// A report on the machine.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// The processor.
    pub cpu: Cpu,
    /// Host memory, as this process may use it.
    pub memory: Memory,
    /// The GPUs that `ADEAD_VISIBLE_DEVICES` leaves, the preferred one first; none without a driver. They were not opened:
    /// their contract level says [`Emulated`](crate::hal::ContractLevel::Emulated).
    pub gpus: Vec<DeviceInfo>,
    /// The mode that suits the machine.
    pub recommended: Mode,
}

/// Where work should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On the processor: no GPU, or one with less than 2 GB.
    Cpu,
    /// On both: a GPU with 2 to 4 GB.
    Hybrid,
    /// On the GPU: one with 4 GB or more.
    Gpu,
}

impl Mode {
    /// `cpu`, `hybrid` or `gpu`.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Cpu => "cpu",
            Mode::Hybrid => "hybrid",
            Mode::Gpu => "gpu",
        }
    }

    /// The mode for a machine whose largest GPU has that many bytes of memory, `None` without a GPU.
    pub fn for_gpu_memory(bytes: Option<u64>) -> Mode {
        // A driver keeps some for itself: a card that is sold with 4 GB has 2³² bytes, of which it reports 4.1 to
        // 4.2 billion.
        const GB: u64 = 1_000_000_000;
        match bytes {
            Some(bytes) if bytes >= 4 * GB => Mode::Gpu,
            Some(bytes) if bytes >= 2 * GB => Mode::Hybrid,
            _ => Mode::Cpu,
        }
    }
}

/// Looks at the machine.
pub fn detect() -> Hardware {
    let gpus = devices::gpus(&Config::load().unwrap_or_default()).unwrap_or_default();
    let recommended = Mode::for_gpu_memory(largest(&gpus));
    Hardware { cpu: cpu().clone(), memory: memory(), gpus, recommended }
}

/// The memory of the largest GPU; a program that plays one is none.
fn largest(gpus: &[DeviceInfo]) -> Option<u64> {
    gpus.iter().filter(|gpu| gpu.kind != DeviceKind::Software).map(|gpu| gpu.memory).max()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_plausible() {
        let report = detect();
        assert!(!report.cpu.model.is_empty() && !report.cpu.vendor.is_empty());
        assert!(report.cpu.threads >= 1 && report.cpu.cores >= 1 && report.cpu.cores <= report.cpu.threads);
        assert!(report.memory.total > 1 << 20 && report.memory.available <= report.memory.total);
        #[cfg(target_arch = "x86_64")]
        assert!(report.cpu.features.iter().any(|feature| feature == "sse2"));
        #[cfg(target_arch = "aarch64")]
        assert!(report.cpu.features.iter().any(|feature| feature == "neon"));
    }

    #[test]
    fn the_largest_gpu_counts_and_programs_do_not() {
        let gpu = |kind, memory| DeviceInfo {
            id: "vulkan:0".into(),
            name: "a GPU".into(),
            contract: crate::hal::ContractLevel::Native,
            arch: "vulkan 1.3".into(),
            units: 1,
            memory,
            kind,
            vendor: String::new(),
            driver: String::new(),
            uuid: None,
        };
        let (discrete, integrated) = (gpu(DeviceKind::Discrete, 3), gpu(DeviceKind::Integrated, 5));
        let software = gpu(DeviceKind::Software, 9);
        assert_eq!(largest(&[]), None);
        assert_eq!(largest(std::slice::from_ref(&software)), None);
        assert_eq!(largest(&[discrete, integrated, software]), Some(5));
    }

    #[test]
    fn modes_follow_the_memory_of_the_gpu() {
        const GB: u64 = 1_000_000_000;
        for (bytes, mode) in [
            (None, Mode::Cpu),
            (Some(0), Mode::Cpu),
            (Some(2 * GB - 1), Mode::Cpu),
            (Some(2 * GB), Mode::Hybrid),
            (Some(2 << 30), Mode::Hybrid),
            (Some(4 * GB - 1), Mode::Hybrid),
            (Some(4 * GB), Mode::Gpu),
            (Some(4 << 30), Mode::Gpu),
            (Some(u64::MAX), Mode::Gpu),
        ] {
            assert_eq!(Mode::for_gpu_memory(bytes), mode, "{bytes:?}");
        }
        assert_eq!([Mode::Cpu, Mode::Hybrid, Mode::Gpu].map(Mode::name), ["cpu", "hybrid", "gpu"]);
    }
}
