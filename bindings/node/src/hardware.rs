//! The report on the machine.

use adead::device;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

/// A device.
#[napi(object)]
pub struct DeviceInfo {
    /// The id that opens the device: "cpu", "cuda:0", "vulkan:1".
    pub id: String,
    /// The maker's name for the device.
    pub name: String,
    /// How the device keeps the arithmetic contract.
    #[napi(ts_type = "'native' | 'emulated'")]
    pub contract: String,
    /// The target of its kernels: an instruction set, a compute capability, a version of Vulkan.
    pub arch: String,
    /// The number of execution units: threads, multiprocessors. 0 if the driver doesn't report it.
    pub units: f64,
    /// Bytes of memory, or 0 if unknown.
    pub memory: f64,
    /// The kind of device.
    #[napi(ts_type = "'cpu' | 'discrete' | 'integrated' | 'virtual' | 'software'")]
    pub kind: String,
    /// The maker.
    pub vendor: String,
    /// The driver and its version. Empty for a processor.
    pub driver: String,
    /// The driver's unique id of this physical device. Missing for a processor.
    pub uuid: Option<String>,
    /// The PCI address, such as `0000:65:00.0`, if the driver reports it.
    pub bus: Option<String>,
}

impl From<&device::DeviceInfo> for DeviceInfo {
    fn from(info: &device::DeviceInfo) -> DeviceInfo {
        DeviceInfo {
            id: info.id.clone(),
            name: info.name.clone(),
            contract: info.contract.name().into(),
            arch: info.arch.clone(),
            units: info.units as f64,
            memory: info.memory as f64,
            kind: info.kind.name().into(),
            vendor: info.vendor.clone(),
            driver: info.driver.clone(),
            uuid: info.uuid.map(uuid),
            bus: info.bus.clone(),
        }
    }
}

/// Formats a UUID in its usual form.
fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}

/// The use of a device's memory, in bytes.
#[napi(object)]
pub struct MemoryUse {
    /// All memory of the device.
    pub total: f64,
    /// The memory that the driver reports as available to this process.
    pub free: f64,
    /// The memory that this process has allocated from the driver through adead.
    pub held: f64,
    /// The part of `held` that is in use.
    pub used: f64,
    /// The number of allocations in use.
    pub allocations: f64,
}

impl From<device::MemoryUse> for MemoryUse {
    fn from(memory: device::MemoryUse) -> MemoryUse {
        let device::MemoryUse { total, free, held, used, allocations } = memory;
        MemoryUse {
            total: total as f64,
            free: free as f64,
            held: held as f64,
            used: used as f64,
            allocations: allocations as f64,
        }
    }
}

/// A data or unified cache.
#[napi(object)]
pub struct Cache {
    /// The level. 1 is the nearest to the core.
    pub level: u32,
    /// The size in bytes.
    pub size: f64,
    /// The size of a line in bytes.
    pub line: f64,
}

/// A processor.
#[napi(object)]
pub struct Cpu {
    /// "GenuineIntel", "AuthenticAMD", "Arm", …
    pub vendor: String,
    /// The maker's name for the processor.
    pub model: String,
    /// Physical cores that this process may use.
    pub cores: u32,
    /// Hardware threads that this process may use.
    pub threads: u32,
    /// Nominal frequency in MHz, or 0 if unknown.
    pub frequency_mhz: u32,
    /// Caches, the nearest first.
    pub caches: Vec<Cache>,
    /// Instruction-set extensions that kernels may use.
    pub features: Vec<String>,
}

/// Host memory, in bytes.
#[napi(object)]
pub struct HostMemory {
    /// What this process could use if no other process ran.
    pub total: f64,
    /// What this process could use now.
    pub available: f64,
}

/// A GPU, and the backends that can open it.
#[napi(object)]
pub struct GpuInfo {
    /// The GPU as each backend describes it, the preferred backend first.
    pub backends: Vec<DeviceInfo>,
}

/// A report on the machine.
#[napi(object)]
pub struct Hardware {
    /// The processor.
    pub cpu: Cpu,
    /// Host memory.
    pub memory: HostMemory,
    /// The GPUs that `ADEAD_VISIBLE_DEVICES` permits, the preferred one first.
    pub gpus: Vec<GpuInfo>,
    /// The recommended mode for this machine.
    #[napi(ts_type = "'cpu' | 'hybrid' | 'gpu'")]
    pub recommended: String,
    /// The same value as `recommended`.
    #[napi(ts_type = "'cpu' | 'hybrid' | 'gpu'")]
    pub recommended_mode: String,
}

fn detect() -> Hardware {
    let hardware = adead::hardware::detect();
    let cpu = &hardware.cpu;
    let caches = cpu.caches.iter();
    Hardware {
        cpu: Cpu {
            vendor: cpu.vendor.clone(),
            model: cpu.model.clone(),
            cores: cpu.cores as u32,
            threads: cpu.threads as u32,
            frequency_mhz: cpu.frequency_mhz,
            caches: caches
                .map(|cache| Cache { level: cache.level.into(), size: cache.size as f64, line: cache.line as f64 })
                .collect(),
            features: cpu.features.clone(),
        },
        memory: HostMemory { total: hardware.memory.total as f64, available: hardware.memory.available as f64 },
        gpus: hardware
            .gpus
            .iter()
            .map(|gpu| GpuInfo { backends: gpu.backends().map(DeviceInfo::from).collect() })
            .collect(),
        recommended: hardware.recommended.name().into(),
        recommended_mode: hardware.recommended.name().into(),
    }
}

/// Examines the machine: its processor, memory, GPUs and recommended mode.
#[napi]
pub fn hardware(env: Env) -> napi::Result<Hardware> {
    guard(env, || Ok(detect()))
}

/// Runs `hardware` on another thread.
#[napi(ts_return_type = "Promise<Hardware>")]
pub fn hardware_async() -> AsyncTask<Job> {
    promise(Ok(|| Ok(detect())), |_, hardware| Ok(hardware))
}

/// Returns the version of the library.
#[napi(skip_typescript)]
pub fn version() -> &'static str {
    adead::VERSION
}

/// The use of a device's memory by tensors.
#[napi(object)]
pub struct TensorCache {
    /// The most bytes that tensors may keep there.
    pub budget: f64,
    /// The bytes that they keep. More than `budget` only if one operation needs them.
    pub used: f64,
    /// The number of tensors with a copy there.
    pub tensors: f64,
    /// How often an operand already had a copy there.
    pub hits: f64,
    /// How often an operand had to be copied there.
    pub misses: f64,
    /// How often a copy was evicted.
    pub evictions: f64,
}

impl From<adead::TensorCacheUse> for TensorCache {
    fn from(kept: adead::TensorCacheUse) -> TensorCache {
        TensorCache {
            budget: kept.budget as f64,
            used: kept.used as f64,
            tensors: kept.tensors as f64,
            hits: kept.hits as f64,
            misses: kept.misses as f64,
            evictions: kept.evictions as f64,
        }
    }
}
