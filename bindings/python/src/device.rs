//! Devices and the report on the machine.

use crate::errors::{Result, detached};
use adead::device::{DeviceInfo, MemoryUse};
use adead::hardware::{self, Cache, Gpu, Hardware};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Describes a device.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "Device")]
#[derive(Clone)]
pub struct PyDevice {
    /// The id that opens it: "cpu", "cuda:0".
    id: String,
    /// The vendor's name for it.
    name: String,
    /// How it keeps the arithmetic contract: "native" or "emulated".
    contract: &'static str,
    /// The target of its kernels: an instruction set, a compute capability, a version of Vulkan.
    arch: String,
    /// The number of execution units that work at the same time; 0 if the driver doesn't report it.
    units: usize,
    /// Bytes of memory; 0 if unknown.
    memory: u64,
    /// The kind: "cpu", "discrete", "integrated", "virtual" or "software".
    kind: &'static str,
    /// Its vendor.
    vendor: String,
    /// Its driver, with the version; empty for a CPU.
    driver: String,
    /// The driver's unique identifier of this physical device, in hex; None for a CPU.
    uuid: Option<String>,
    /// The PCI address, as "0000:65:00.0"; None for a CPU, and if the driver doesn't report it.
    bus: Option<String>,
}

impl From<&DeviceInfo> for PyDevice {
    fn from(info: &DeviceInfo) -> PyDevice {
        let DeviceInfo { id, name, contract, arch, units, memory, kind, vendor, driver, uuid, bus } = info.clone();
        let uuid = uuid.map(|uuid| uuid.iter().map(|byte| format!("{byte:02x}")).collect());
        PyDevice {
            id,
            name,
            contract: contract.name(),
            arch,
            units,
            memory,
            kind: kind.name(),
            vendor,
            driver,
            uuid,
            bus,
        }
    }
}

#[pymethods]
impl PyDevice {
    fn __repr__(&self) -> String {
        format!("Device({}: {}, {}, contract {})", self.id, self.name, self.arch, self.contract)
    }
}

/// Returns a device's memory use as a dict: bytes, and the number of allocations.
pub fn memory_use<'py>(py: Python<'py>, memory: &MemoryUse) -> Result<Bound<'py, PyDict>> {
    let MemoryUse { total, free, held, used, allocations } = *memory;
    let dict = PyDict::new(py);
    for (name, value) in
        [("total", total), ("free", free), ("held", held), ("used", used), ("allocations", allocations)]
    {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// A data or unified cache.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "Cache")]
#[derive(Clone)]
pub struct PyCache {
    /// The level; 1 is the nearest to the core.
    level: u8,
    /// The size in bytes.
    size: usize,
    /// Bytes of a line.
    line: usize,
}

#[pymethods]
impl PyCache {
    fn __repr__(&self) -> String {
        format!("Cache(level {}, {} bytes, lines of {})", self.level, self.size, self.line)
    }
}

/// The processor.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "Cpu")]
#[derive(Clone)]
pub struct PyCpu {
    /// "GenuineIntel", "AuthenticAMD" …
    vendor: String,
    /// The vendor's name for it.
    model: String,
    /// Physical cores that this process may use.
    cores: usize,
    /// Hardware threads that this process may use.
    threads: usize,
    /// The nominal frequency in MHz; 0 if unknown.
    frequency_mhz: u32,
    /// The caches, the nearest first.
    caches: Vec<PyCache>,
    /// Instruction-set extensions that kernels may use.
    features: Vec<String>,
}

#[pymethods]
impl PyCpu {
    fn __repr__(&self) -> String {
        format!("Cpu({}, {} cores, {} threads)", self.model, self.cores, self.threads)
    }
}

/// A GPU, and every backend that sees it.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "GpuInfo")]
#[derive(Clone)]
pub struct PyGpuInfo {
    /// The GPU as its preferred backend sees it.
    info: PyDevice,
    /// The GPU as each backend sees it, the preferred one first.
    backends: Vec<PyDevice>,
}

#[pymethods]
impl PyGpuInfo {
    fn __repr__(&self) -> String {
        let ids: Vec<_> = self.backends.iter().map(|device| device.id.as_str()).collect();
        format!("GpuInfo({}: {})", ids.join(", "), self.info.name)
    }
}

/// A report on the machine.
#[pyclass(frozen, get_all, module = "adead", name = "Hardware")]
pub struct PyHardware {
    /// The processor.
    cpu: PyCpu,
    /// Bytes of host memory that this process could use if it were alone.
    memory_total: u64,
    /// Bytes of host memory that it could use now.
    memory_available: u64,
    /// The GPUs, the preferred one first.
    gpus: Vec<PyGpuInfo>,
    /// The recommended mode for this machine: "cpu", "gpu" or "hybrid", a name that `Context` takes.
    recommended_mode: &'static str,
    /// The same as `recommended_mode`.
    recommended: &'static str,
}

impl From<Hardware> for PyHardware {
    fn from(hardware: Hardware) -> PyHardware {
        let recommended = hardware.recommended.name();
        let (memory, hardware::Cpu { vendor, model, cores, threads, frequency_mhz, caches, features }) =
            (hardware.memory, hardware.cpu);
        let caches = caches.iter().map(|&Cache { level, size, line }| PyCache { level, size, line }).collect();
        let gpu =
            |gpu: &Gpu| PyGpuInfo { info: (&gpu.info).into(), backends: gpu.backends().map(Into::into).collect() };
        PyHardware {
            cpu: PyCpu { vendor, model, cores, threads, frequency_mhz, caches, features },
            memory_total: memory.total,
            memory_available: memory.available,
            gpus: hardware.gpus.iter().map(gpu).collect(),
            recommended_mode: recommended,
            recommended,
        }
    }
}

#[pymethods]
impl PyHardware {
    fn __repr__(&self) -> String {
        let PyHardware { cpu, gpus, recommended, .. } = self;
        format!("Hardware({}, {} threads, {} GPUs: {recommended})", cpu.model, cpu.threads, gpus.len())
    }
}

/// Describes the machine: processor, memory, GPUs and the recommended mode.
#[pyfunction(name = "hardware")]
pub fn report(py: Python<'_>) -> Result<PyHardware> {
    Ok(detached(py, || Ok(hardware::detect()))?.into())
}
