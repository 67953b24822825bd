//! The registry of backends: a row for each API that GPUs are used through.
//!
//! The order is the preference: a GPU that several backends have is taken through the first of them. A row names its backend once; what
//! is said of a backend elsewhere comes from here.

#[cfg(feature = "cuda")]
use super::cuda;
use super::{Device, DeviceInfo, Workers, vulkan};
use crate::error::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// How a device is opened, whatever its backend.
pub(crate) struct Opening {
    /// The folder for files that outlive a process; `None` keeps none.
    pub cache: Option<PathBuf>,
    /// Threads that help with copies from and to the host.
    pub workers: Option<Arc<dyn Workers>>,
}

/// What a user's module is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// SPIR-V.
    Spirv,
    /// PTX, cubins and fatbins.
    Cuda,
}

/// A backend.
pub(crate) struct Backend {
    /// Its name, and what an id of its devices begins with, before the colon and the number.
    pub name: &'static str,
    /// What its driver lists; `backend_unavailable` without one. Opens nothing.
    pub enumerate: fn() -> Result<Vec<DeviceInfo>>,
    /// Opens the device of that number.
    pub open: fn(usize, Opening) -> Result<Arc<dyn Device>>,
    /// What its users' kernels are written in.
    pub takes: Language,
}

/// Every backend, the preferred one first.
pub(crate) static BACKENDS: &[Backend] = &[
    Backend { name: "cuda", enumerate: enumerate_cuda, open: open_cuda, takes: Language::Cuda },
    Backend { name: "vulkan", enumerate: vulkan::enumerate, open: open_vulkan, takes: Language::Spirv },
];

impl Backend {
    /// The backend of that name.
    pub fn named(name: &str) -> Option<&'static Backend> {
        BACKENDS.iter().find(|backend| backend.name == name)
    }

    /// The backend and the number of a device's id; `None` for the processor's.
    pub fn of(id: &str) -> Option<(&'static Backend, usize)> {
        let (name, number) = id.split_once(':')?;
        Some((Backend::named(name)?, number.parse().ok()?))
    }

    /// Its place in the order of preference, by a device's id; devices of no backend are behind all.
    pub fn place(id: &str) -> usize {
        BACKENDS.iter().position(|backend| backend.has(id)).unwrap_or(BACKENDS.len())
    }

    /// Whether an id is that of one of its devices.
    pub fn has(&self, id: &str) -> bool {
        id.split_once(':').is_some_and(|(name, _)| name == self.name)
    }

    /// The backend whose users' kernels are written in that.
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
    crate::error::fail!(Internal, "a device of a backend that is not in this build")
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
