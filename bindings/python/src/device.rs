//! Devices and the report on the machine.

use crate::errors::{Result, detached};
use adead::device::{DeviceInfo, MemoryUse};
use adead::hardware::{self, Cache, Gpu, Hardware};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What a device says about itself.
#[pyclass(frozen, module = "adead", name = "Device")]
pub struct PyDevice(pub DeviceInfo);

#[pymethods]
impl PyDevice {
    /// How to open it: "cpu", "cuda:0".
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// What its maker calls it.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// How it keeps the arithmetic contract: "native" or "emulated".
    #[getter]
    fn contract(&self) -> &'static str {
        self.0.contract.name()
    }

    /// What its kernels are built for.
    #[getter]
    fn arch(&self) -> &str {
        &self.0.arch
    }

    /// Execution units that work at once; 0 where the driver does not tell.
    #[getter]
    fn units(&self) -> usize {
        self.0.units
    }

    /// Bytes of memory, 0 where unknown.
    #[getter]
    fn memory(&self) -> u64 {
        self.0.memory
    }

    /// "cpu", "discrete", "integrated", "virtual" or "software".
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.name()
    }

    /// Its maker.
    #[getter]
    fn vendor(&self) -> &str {
        &self.0.vendor
    }

    /// Its driver with the version; empty for a processor.
    #[getter]
    fn driver(&self) -> &str {
        &self.0.driver
    }

    /// What names this very device, in hex; None for a processor.
    #[getter]
    fn uuid(&self) -> Option<String> {
        Some(self.0.uuid?.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Where it is on the PCI bus, where the driver tells.
    #[getter]
    fn bus(&self) -> Option<&str> {
        self.0.bus.as_deref()
    }

    fn __repr__(&self) -> String {
        let DeviceInfo { id, name, arch, contract, .. } = &self.0;
        format!("Device({id}: {name}, {arch}, contract {})", contract.name())
    }
}

/// A device's memory in bytes.
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
#[pyclass(frozen, get_all, module = "adead", name = "Cache")]
pub struct PyCache {
    /// 1 is the nearest.
    level: u8,
    /// Bytes.
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
#[pyclass(frozen, module = "adead", name = "Cpu")]
pub struct PyCpu(hardware::Cpu);

#[pymethods]
impl PyCpu {
    /// "GenuineIntel", "AuthenticAMD" …
    #[getter]
    fn vendor(&self) -> &str {
        &self.0.vendor
    }

    /// The maker's name for it.
    #[getter]
    fn model(&self) -> &str {
        &self.0.model
    }

    /// Physical cores that this process may use.
    #[getter]
    fn cores(&self) -> usize {
        self.0.cores
    }

    /// Hardware threads that this process may use.
    #[getter]
    fn threads(&self) -> usize {
        self.0.threads
    }

    /// Nominal frequency in MHz, 0 where unknown.
    #[getter]
    fn frequency_mhz(&self) -> u32 {
        self.0.frequency_mhz
    }

    /// The caches, the nearest first.
    #[getter]
    fn caches(&self) -> Vec<PyCache> {
        self.0.caches.iter().map(|&Cache { level, size, line }| PyCache { level, size, line }).collect()
    }

    /// Instruction-set extensions that kernels may use.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.0.features.clone()
    }

    fn __repr__(&self) -> String {
        format!("Cpu({}, {} cores, {} threads)", self.0.model, self.0.cores, self.0.threads)
    }
}

/// A GPU with every way to it.
#[pyclass(frozen, module = "adead", name = "GpuInfo")]
pub struct PyGpuInfo(Gpu);

#[pymethods]
impl PyGpuInfo {
    /// What it is through the backend that is preferred.
    #[getter]
    fn info(&self) -> PyDevice {
        PyDevice(self.0.info.clone())
    }

    /// What it is through each backend, the preferred one first.
    #[getter]
    fn backends(&self) -> Vec<PyDevice> {
        self.0.backends().cloned().map(PyDevice).collect()
    }

    fn __repr__(&self) -> String {
        let ids: Vec<_> = self.0.backends().map(|info| info.id.as_str()).collect();
        format!("GpuInfo({}: {})", ids.join(", "), self.0.info.name)
    }
}

/// A report on the machine.
#[pyclass(frozen, module = "adead", name = "Hardware")]
pub struct PyHardware(Hardware);

#[pymethods]
impl PyHardware {
    /// The processor.
    #[getter]
    fn cpu(&self) -> PyCpu {
        PyCpu(self.0.cpu.clone())
    }

    /// Bytes of host memory that this process could use if it were alone.
    #[getter]
    fn memory_total(&self) -> u64 {
        self.0.memory.total
    }

    /// Bytes of host memory that it could use now.
    #[getter]
    fn memory_available(&self) -> u64 {
        self.0.memory.available
    }

    /// The GPUs, the preferred one first.
    #[getter]
    fn gpus(&self) -> Vec<PyGpuInfo> {
        self.0.gpus.iter().cloned().map(PyGpuInfo).collect()
    }

    /// The mode that suits the machine, "cpu", "gpu" or "hybrid": a name that `Context` takes.
    #[getter]
    fn recommended_mode(&self) -> &'static str {
        self.recommended()
    }

    /// The same.
    #[getter]
    fn recommended(&self) -> &'static str {
        self.0.recommended.name()
    }

    fn __repr__(&self) -> String {
        let (cpu, recommended) = (&self.0.cpu, self.0.recommended.name());
        format!("Hardware({}, {} threads, {} GPUs: {recommended})", cpu.model, cpu.threads, self.0.gpus.len())
    }
}

/// Looks at the machine: processor, memory, GPUs and the mode that suits it.
#[pyfunction(name = "hardware")]
pub fn report(py: Python<'_>) -> Result<PyHardware> {
    Ok(PyHardware(detached(py, || Ok(hardware::detect()))?))
}
