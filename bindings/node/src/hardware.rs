//! What machine this is.

use adead::device;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

/// A device.
#[napi(object)]
pub struct DeviceInfo {
    /// How to open it: "cpu", "cuda:0", "vulkan:1".
    pub id: String,
    /// What its maker calls it.
    pub name: String,
    /// How it keeps the arithmetic contract.
    #[napi(ts_type = "'native' | 'emulated'")]
    pub contract: String,
    /// What its kernels are built for: an instruction set, a compute capability, a version of Vulkan.
    pub arch: String,
    /// Execution units that work at once: threads, multiprocessors; 0 where the driver does not tell.
    pub units: f64,
    /// Bytes of memory, 0 where unknown.
    pub memory: f64,
    /// What kind it is.
    #[napi(ts_type = "'cpu' | 'discrete' | 'integrated' | 'virtual' | 'software'")]
    pub kind: String,
    /// Its maker.
    pub vendor: String,
    /// Its driver, with the version; empty for a processor.
    pub driver: String,
    /// What names this very device among all; not there for a processor.
    pub uuid: Option<String>,
    /// Where it is on the PCI bus, as `0000:65:00.0`, where the driver tells.
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

/// A UUID as it is written.
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

/// A device's memory, in bytes.
#[napi(object)]
pub struct MemoryUse {
    /// What it has.
    pub total: f64,
    /// What the driver says is left for this process.
    pub free: f64,
    /// Taken from the driver by this process through adead.
    pub held: f64,
    /// Of that, in use.
    pub used: f64,
    /// Allocations in use.
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
    /// 1 is the nearest.
    pub level: u32,
    /// Bytes.
    pub size: f64,
    /// Bytes of a line.
    pub line: f64,
}

/// A processor.
#[napi(object)]
pub struct Cpu {
    /// "GenuineIntel", "AuthenticAMD", "Arm", …
    pub vendor: String,
    /// The maker's name for it.
    pub model: String,
    /// Physical cores that this process may use.
    pub cores: u32,
    /// Hardware threads that this process may use.
    pub threads: u32,
    /// Nominal frequency in MHz, 0 where unknown.
    pub frequency_mhz: u32,
    /// Caches, from the nearest.
    pub caches: Vec<Cache>,
    /// Instruction-set extensions that kernels may use.
    pub features: Vec<String>,
}

/// Bytes of host memory.
#[napi(object)]
pub struct HostMemory {
    /// What this process could use if it were alone.
    pub total: f64,
    /// What it could use now.
    pub available: f64,
}

/// A GPU, with every way to it.
#[napi(object)]
pub struct GpuInfo {
    /// What it is through each backend, the preferred one first.
    pub backends: Vec<DeviceInfo>,
}

/// A report on the machine.
#[napi(object)]
pub struct Hardware {
    /// The processor.
    pub cpu: Cpu,
    /// Host memory.
    pub memory: HostMemory,
    /// The GPUs that `ADEAD_VISIBLE_DEVICES` leaves, the preferred one first.
    pub gpus: Vec<GpuInfo>,
    /// Where work should run.
    #[napi(ts_type = "'cpu' | 'hybrid' | 'gpu'")]
    pub recommended: String,
    /// The same, by its longer name.
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

/// Looks at the machine: processor, memory, GPUs and the mode that suits it.
#[napi]
pub fn hardware(env: Env) -> napi::Result<Hardware> {
    guard(env, || Ok(detect()))
}

/// `hardware()` on another thread.
#[napi(ts_return_type = "Promise<Hardware>")]
pub fn hardware_async() -> AsyncTask<Job> {
    promise(Ok(|| Ok(detect())), |_, hardware| Ok(hardware))
}

/// The version of the library.
#[napi(skip_typescript)]
pub fn version() -> &'static str {
    adead::VERSION
}
