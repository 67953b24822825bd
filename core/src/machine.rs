//! The GPUs of a machine, each with all its backends, and the mode that suits them.

use crate::hal::{DeviceInfo, DeviceKind};
use std::ops::Deref;

/// A GPU with all its backends.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// Its description through the preferred backend.
    pub info: DeviceInfo,
    /// The same GPU, by its UUID, through other backends: `vulkan:0` if it is also `cuda:0`.
    pub others: Vec<DeviceInfo>,
}

impl Gpu {
    /// Lists its descriptions through each backend, the preferred one first.
    pub fn backends(&self) -> impl Iterator<Item = &DeviceInfo> {
        std::iter::once(&self.info).chain(&self.others)
    }

    /// Groups the devices of all backends into GPUs, in their order. A backend never has one GPU twice.
    pub fn join(devices: Vec<DeviceInfo>) -> Vec<Gpu> {
        let backend = |info: &DeviceInfo| info.id.split(':').next().unwrap_or_default().to_string();
        let mut gpus: Vec<Gpu> = Vec::new();
        for info in devices {
            let same = |gpu: &&mut Gpu| {
                info.uuid.is_some()
                    && gpu.info.uuid == info.uuid
                    && gpu.backends().all(|other| backend(other) != backend(&info))
            };
            match gpus.iter_mut().find(same) {
                Some(gpu) => gpu.others.push(info),
                None => gpus.push(Gpu { info, others: Vec::new() }),
            }
        }
        gpus
    }
}

impl Deref for Gpu {
    type Target = DeviceInfo;

    fn deref(&self) -> &DeviceInfo {
        &self.info
    }
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
    /// Returns `cpu`, `hybrid` or `gpu`.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Cpu => "cpu",
            Mode::Hybrid => "hybrid",
            Mode::Gpu => "gpu",
        }
    }

    /// Returns the mode for a machine whose largest GPU has this many bytes of memory, `None` without a GPU.
    pub fn for_gpu_memory(bytes: Option<u64>) -> Mode {
        // A driver reserves some memory: a card sold with 4 GB has 2³² bytes and reports 4.1 to 4.2 billion.
        const GB: u64 = 1_000_000_000;
        match bytes {
            Some(bytes) if bytes >= 4 * GB => Mode::Gpu,
            Some(bytes) if bytes >= 2 * GB => Mode::Hybrid,
            _ => Mode::Cpu,
        }
    }
}

/// Returns the bytes of memory of the hardware GPU with the most memory, `None` without such a GPU.
pub(crate) fn largest(gpus: &[Gpu]) -> Option<u64> {
    gpus.iter().filter(|gpu| gpu.kind != DeviceKind::Software).map(|gpu| gpu.memory).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_gpu_counts_and_programs_do_not() {
        let gpu = |kind, memory| Gpu { info: info("vulkan:0", kind, memory, None), others: Vec::new() };
        let (discrete, integrated) = (gpu(DeviceKind::Discrete, 3), gpu(DeviceKind::Integrated, 5));
        let software = gpu(DeviceKind::Software, 9);
        assert_eq!(largest(&[]), None);
        assert_eq!(largest(std::slice::from_ref(&software)), None);
        assert_eq!(largest(&[discrete, integrated, software]), Some(5));
    }

    fn info(id: &str, kind: DeviceKind, memory: u64, uuid: Option<[u8; 16]>) -> DeviceInfo {
        DeviceInfo {
            id: id.into(),
            name: "a GPU".into(),
            contract: crate::hal::ContractLevel::Native,
            arch: "vulkan 1.3".into(),
            units: 1,
            memory,
            kind,
            vendor: String::new(),
            driver: String::new(),
            uuid,
            bus: None,
        }
    }

    #[test]
    fn a_gpu_of_two_backends_is_one() {
        let of = |id, uuid: u8| info(id, DeviceKind::Discrete, 1, (uuid > 0).then_some([uuid; 16]));
        let gpus = Gpu::join(vec![
            of("cuda:0", 7),
            of("cuda:1", 8),
            of("vulkan:0", 8),
            of("vulkan:1", 9),
            of("vulkan:2", 7),
            of("vulkan:3", 7),
            of("vulkan:4", 0),
            of("cuda:2", 0),
        ]);
        let ids: Vec<String> =
            gpus.iter().map(|gpu| gpu.backends().map(|info| info.id.as_str()).collect::<Vec<_>>().join(" ")).collect();
        let expected = ["cuda:0 vulkan:2", "cuda:1 vulkan:0", "vulkan:1", "vulkan:3", "vulkan:4", "cuda:2"];
        assert_eq!(ids, expected);
        // The preferred backend provides the description.
        assert_eq!((&*gpus[1].id, gpus[1].others.len()), ("cuda:1", 1));
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
