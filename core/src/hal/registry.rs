//! The registry of backends: one row for each GPU API.
//!
//! The order is the preference: a GPU that several backends see is opened through the first of them. Other modules take
//! a backend's name and functions from its row.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{Device, DeviceInfo, Workers, vulkan};
use crate::error::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// The options for opening a device of any backend.
pub(crate) struct Opening {
    /// The folder for files that outlive the process; `None` keeps no files.
    pub cache: Option<PathBuf>,
    /// Threads that help with copies from and to the host.
    pub workers: Option<Arc<dyn Workers>>,
}

/// The language of a user's module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// SPIR-V.
    Spirv,
    /// PTX, cubins and fatbins.
    Cuda,
}

/// A backend.
pub(crate) struct Backend {
    /// Its name, which is also the part of its device ids before the colon.
    pub name: &'static str,
    /// Lists the driver's devices without opening any. `backend_unavailable` without a driver.
    pub enumerate: fn() -> Result<Vec<DeviceInfo>>,
    /// Opens the device with this number.
    pub open: fn(usize, Opening) -> Result<Arc<dyn Device>>,
    /// The language of its user kernels.
    pub takes: Language,
}

/// All backends, the preferred one first.
pub(crate) static BACKENDS: &[Backend] = &[
    Backend { name: "cuda", enumerate: enumerate_cuda, open: open_cuda, takes: Language::Cuda },
    Backend { name: "vulkan", enumerate: vulkan::enumerate, open: open_vulkan, takes: Language::Spirv },
];

impl Backend {
    /// Returns the backend with this name.
    pub fn named(name: &str) -> Option<&'static Backend> {
        BACKENDS.iter().find(|backend| backend.name == name)
    }

    /// Returns the backend and the number in a device's id; `None` for the processor.
    pub fn of(id: &str) -> Option<(&'static Backend, usize)> {
        let (name, number) = id.split_once(':')?;
        Some((Backend::named(name)?, number.parse().ok()?))
    }

    /// Returns a device's rank in the order of preference, by its id. Devices without a backend come last.
    pub fn place(id: &str) -> usize {
        BACKENDS.iter().position(|backend| backend.has(id)).unwrap_or(BACKENDS.len())
    }

    /// Returns whether an id belongs to this backend.
    pub fn has(&self, id: &str) -> bool {
        id.split_once(':').is_some_and(|(name, _)| name == self.name)
    }

    /// Returns the backend whose user kernels are in this language.
    pub fn taking(language: Language) -> Option<&'static Backend> {
        BACKENDS.iter().find(|backend| backend.takes == language)
    }
}

fn open_vulkan(number: usize, Opening { cache, workers }: Opening) -> Result<Arc<dyn Device>> {
    Ok(Arc::new(vulkan::VulkanDevice::open(number, &vulkan::Opening::with(cache, workers))?))
}

#[cfg(feature = "cuda")]
fn enumerate_cuda() -> Result<Vec<DeviceInfo>> {
    cuda::enumerate()
}

#[cfg(feature = "cuda")]
fn open_cuda(number: usize, opening: Opening) -> Result<Arc<dyn Device>> {
    Ok(Arc::new(cuda::CudaDevice::open(number, &cuda::Opening::with(opening.workers))?))
}

#[cfg(not(feature = "cuda"))]
fn enumerate_cuda() -> Result<Vec<DeviceInfo>> {
    crate::error::fail!(
        BackendUnavailable,
        "this build of adead has no CUDA: build it without ADEAD_MINIMAL (cargo: with the feature cuda)"
    )
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_: usize, _: Opening) -> Result<Arc<dyn Device>> {
    enumerate_cuda()?;
    crate::error::fail!(Internal, "this build of adead has no CUDA")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_their_backends() {
        let of = |id| Backend::of(id).map(|(backend, number)| (backend.name, number));
        assert_eq!(of("cuda:0"), Some(("cuda", 0)));
        assert_eq!(of("vulkan:12"), Some(("vulkan", 12)));
        for id in ["cpu", "cuda", "cuda:", "cuda:x", "cudas:0", ":0", "metal:0", ""] {
            assert_eq!(of(id), None, "{id}");
        }
        assert!(
            Backend::place("cuda:1") < Backend::place("vulkan:0") && Backend::place("vulkan:0") < Backend::place("cpu")
        );
    }

    #[test]
    fn every_language_and_name_is_of_one_backend() {
        for backend in BACKENDS {
            assert!(std::ptr::eq(Backend::named(backend.name).unwrap(), backend));
            assert!(std::ptr::eq(Backend::taking(backend.takes).unwrap(), backend));
        }
    }
}
