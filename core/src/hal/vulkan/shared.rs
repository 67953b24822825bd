//! One opening of a device: a reference to the process's logical device, and what belongs to this opening alone.

use super::Opening;
use super::encoder::TILES;
use super::logical::Logical;
use super::memory::Space;
use super::physical::Physical;
use super::probe::Modes;
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;
use crate::hal::{ContractLevel, DeviceInfo, INT8_MATRICES, TileCosts, Workers, copy};
use ash::vk;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An opening of a device, shared by everything that is made from it.
pub struct Shared {
    pub info: DeviceInfo,
    pub modes: Modes,
    /// The tiles of products, and their costs.
    pub tiles: TileCosts,
    /// The device's memory in use through this opening.
    pub uses: Uses,
    workers: Option<Arc<dyn Workers>>,
    logical: Arc<Logical>,
}

/// Bytes and allocations in use, for each space.
#[derive(Default)]
pub struct Uses([(AtomicUsize, AtomicUsize); 2]);

impl Uses {
    /// Counts one more allocation.
    pub fn add(&self, space: Space, bytes: usize) {
        self.0[space as usize].0.fetch_add(bytes, Relaxed);
        self.0[space as usize].1.fetch_add(1, Relaxed);
    }

    /// Counts one allocation less.
    pub fn remove(&self, space: Space, bytes: usize) {
        self.0[space as usize].0.fetch_sub(bytes, Relaxed);
        self.0[space as usize].1.fetch_sub(1, Relaxed);
    }

    /// Returns the bytes and allocations in use.
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
    /// Opens a device. `unsupported` names a feature that it lacks.
    pub fn open(physical: &Physical, id: String, opening: &Opening) -> Result<Shared> {
        let logical = Logical::get(physical, &id, opening)?;
        let modes = logical.modes();
        let mut info = Shared::describe(physical, id);
        info.contract = if modes.fma == 0 { ContractLevel::Native } else { ContractLevel::Emulated };
        Ok(Shared::new(info, modes, opening.workers.clone(), logical))
    }

    /// Makes an opening for the probe, which tries modes before they are decided.
    pub fn trial(logical: &Arc<Logical>, modes: Modes) -> Shared {
        let info = Shared::describe(&logical.physical, String::new());
        Shared::new(info, modes, None, logical.clone())
    }

    fn new(info: DeviceInfo, modes: Modes, workers: Option<Arc<dyn Workers>>, logical: Arc<Logical>) -> Shared {
        logical.enter();
        Shared { info, modes, tiles: TileCosts::new(&TILES), uses: Uses::default(), workers, logical }
    }

    /// Copies host bytes to or from memory that the device can access, with the help of the workers.
    ///
    /// # Safety
    /// As for [`copy`].
    pub unsafe fn copy(&self, from: &[u8], to: *mut u8) {
        // SAFETY: the caller vouches for `to`.
        unsafe { copy(self.workers.as_deref(), from, to) };
    }

    /// Describes a device. The contract level is still unknown: `Emulated` is a placeholder.
    pub fn describe(physical: &Physical, id: String) -> DeviceInfo {
        let (major, minor) = (vk::api_version_major(physical.api_version), vk::api_version_minor(physical.api_version));
        DeviceInfo {
            id,
            name: physical.name.clone(),
            contract: ContractLevel::Emulated,
            arch: format!(
                "vulkan {major}.{minor}{}",
                if physical.optional.matrices.is_some() { INT8_MATRICES } else { "" }
            ),
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
        if self.opened_in_this_process() {
            self.logical.leave();
        }
    }
}
