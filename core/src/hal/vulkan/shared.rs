//! What everything of one opening of a device shares: the process's logical device, and what is this opening's alone.

use super::Opening;
use super::logical::Logical;
use super::memory::Space;
use super::physical::Physical;
use super::probe::Modes;
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;
use crate::hal::{ContractLevel, DeviceInfo, Workers, copy};
use ash::vk;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An opened device.
pub struct Shared {
    pub info: DeviceInfo,
    pub modes: Modes,
    /// What of the device's memory is in use through this opening.
    pub uses: Uses,
    workers: Option<Arc<dyn Workers>>,
    logical: Arc<Logical>,
}

/// Bytes and allocations in use, by space.
#[derive(Default)]
pub struct Uses([(AtomicUsize, AtomicUsize); 2]);

impl Uses {
    /// One more allocation.
    pub fn add(&self, space: Space, bytes: usize) {
        self.0[space as usize].0.fetch_add(bytes, Relaxed);
        self.0[space as usize].1.fetch_add(1, Relaxed);
    }

    /// One less.
    pub fn remove(&self, space: Space, bytes: usize) {
        self.0[space as usize].0.fetch_sub(bytes, Relaxed);
        self.0[space as usize].1.fetch_sub(1, Relaxed);
    }

    /// Bytes and allocations.
    pub fn of(&self, space: Space) -> (usize, usize) {
        let (bytes, live) = &self.0[space as usize];
        (bytes.load(Relaxed), live.load(Relaxed))
    }
}

impl Deref for Shared {
    type Target = Logical;

    fn deref(&self) -> &Logical {
        &self.logical
    }
}

impl Shared {
    /// Opens a device. `unsupported` says what it lacks.
    pub fn open(physical: &Physical, id: String, opening: &Opening) -> Result<Shared> {
        let logical = Logical::get(physical, &id, opening)?;
        let modes = logical.modes();
        let mut info = Shared::describe(physical, id);
        info.contract = if modes.fma == 0 { ContractLevel::Native } else { ContractLevel::Emulated };
        Ok(Shared::new(info, modes, opening.workers.clone(), logical))
    }

    /// To look how a device computes under modes that are not decided yet.
    pub fn trial(logical: &Arc<Logical>, modes: Modes) -> Shared {
        let info = Shared::describe(&logical.physical, String::new());
        Shared::new(info, modes, None, logical.clone())
    }

    fn new(info: DeviceInfo, modes: Modes, workers: Option<Arc<dyn Workers>>, logical: Arc<Logical>) -> Shared {
        logical.enter();
        Shared { info, modes, uses: Uses::default(), workers, logical }
    }

    /// Copies between host memory and memory that the device sees, with all threads.
    ///
    /// # Safety
    /// As [`copy`].
    pub unsafe fn copy(&self, from: &[u8], to: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { copy(self.workers.as_deref(), from, to) };
    }

    /// What a device is, its contract level still to be found.
    pub fn describe(physical: &Physical, id: String) -> DeviceInfo {
        let (major, minor) = (vk::api_version_major(physical.api_version), vk::api_version_minor(physical.api_version));
        DeviceInfo {
            id,
            name: physical.name.clone(),
            contract: ContractLevel::Emulated,
            arch: format!("vulkan {major}.{minor}"),
            units: physical.units,
            memory: physical.memory,
            kind: physical.kind,
            vendor: physical.vendor.clone(),
            driver: physical.driver.clone(),
            uuid: Some(physical.uuid),
            bus: physical.bus.clone(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if self.is_here() {
            self.logical.leave();
        }
    }
}
