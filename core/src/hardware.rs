//! The report on the machine: processor, memory, GPUs, and the recommended mode.

pub use crate::host::{Cache, Cpu, Memory, memory};
pub use crate::machine::{Gpu, Mode};

use crate::config::Config;
use crate::devices;
use crate::host;
use crate::machine;

/// A report on the machine.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// The processor.
    pub cpu: Cpu,
    /// Host memory, within the limits of this process.
    pub memory: Memory,
    /// The GPUs that `ADEAD_VISIBLE_DEVICES` permits, the preferred one first; none without a driver. They are not opened, so
    /// those through Vulkan report the contract level [`Emulated`](crate::hal::ContractLevel::Emulated).
    pub gpus: Vec<Gpu>,
    /// The recommended mode for this machine.
    pub recommended: Mode,
}

/// Examines the machine.
pub fn detect() -> Hardware {
    let gpus = Gpu::join(devices::gpus(&Config::load().unwrap_or_default()).unwrap_or_default());
    let recommended = Mode::for_gpu_memory(machine::largest(&gpus));
    Hardware { cpu: host::cpu().clone(), memory: memory(), gpus, recommended }
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
}
