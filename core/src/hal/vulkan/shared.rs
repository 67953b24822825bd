//! What everything of one opened device shares: handles, functions, memory, pipelines. It goes when the last of them does.

use super::api::{DeviceApi, Instance, instance};
use super::memory::Memory;
use super::physical::{Physical, compute_family, memory_types, transfer_family};
use super::pipelines::Pipelines;
use super::probe::Modes;
use crate::error::{Error, Result, Status, fail};
use crate::hal::cpu::DefaultEnvironment;
use crate::hal::{ContractLevel, DeviceInfo, Workers, copy};
use crate::log::log;
use ash::vk;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Which of the device's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Kernels, and small copies between them.
    Compute = 0,
    /// Large copies from and to the host.
    Transfer = 1,
}

/// A queue and the family that it is of.
pub struct Queue {
    pub family: u32,
    handle: Mutex<vk::Queue>,
}

/// An opened device.
pub struct Shared {
    pub info: DeviceInfo,
    pub physical: Physical,
    pub device: vk::Device,
    pub api: DeviceApi,
    pub push_descriptors: Option<vk::PFN_vkCmdPushDescriptorSetKHR>,
    pub memory: Memory,
    pub pipelines: Pipelines,
    pub modes: Modes,
    /// The second one only where the device has a family for it.
    queues: Vec<Queue>,
    workers: Option<Arc<dyn Workers>>,
    lost: AtomicBool,
    /// The process that opened it: a child of it has the handles and not the driver's threads.
    process: u32,
}

/// How to open a device.
#[derive(Default)]
pub struct Opening {
    /// Where the pipeline cache is kept; `None` keeps none.
    pub cache: Option<PathBuf>,
    /// Help with copies from and to the host.
    pub workers: Option<Arc<dyn Workers>>,
    /// Changes functions before they are used: a test's faults.
    #[cfg(any(test, feature = "cts"))]
    pub faults: Option<fn(&mut DeviceApi)>,
    /// Uses no transfer queue and no push descriptors though they are there: the other ways want testing too.
    #[cfg(any(test, feature = "cts"))]
    pub plain: bool,
}

impl Opening {
    /// With a folder for the pipeline cache, and threads that help.
    #[allow(clippy::needless_update, reason = "there are more fields in tests")]
    pub fn with(cache: Option<PathBuf>, workers: Option<Arc<dyn Workers>>) -> Opening {
        Opening { cache, workers, ..Opening::default() }
    }
}

impl Shared {
    /// Opens a device. `unsupported` says what it lacks.
    pub fn open(physical: &Physical, id: String, opening: &Opening) -> Result<Shared> {
        let instance = instance()?;
        if let Some(lacks) = physical.lacks {
            fail!(Unsupported, "{id} ({}) has no {lacks}, which adead needs", physical.name);
        }
        let Some(compute) = compute_family(instance, physical.handle) else {
            fail!(Unsupported, "{id} ({}) has no compute queue", physical.name);
        };
        let mut families = vec![compute];
        families.extend(transfer_family(instance, physical.handle));
        #[allow(unused_mut)]
        let mut push = physical.has.push_descriptor;
        #[cfg(any(test, feature = "cts"))]
        if opening.plain {
            families.truncate(1);
            push = false;
        }
        let device = create(instance, physical, &families, push)?;
        let get = |name: &std::ffi::CStr| {
            // SAFETY: a device of this instance.
            unsafe { (instance.api.get_device_proc_addr)(device, name.as_ptr()) }
        };
        // SAFETY: functions of this device, typed as the specification has them.
        #[allow(unused_mut)]
        let mut api = unsafe { DeviceApi::load(&get) }?;
        #[cfg(any(test, feature = "cts"))]
        if let Some(faults) = opening.faults {
            faults(&mut api);
        }
        let push_descriptors = if push { get(c"vkCmdPushDescriptorSetKHR") } else { None };
        // SAFETY: the type of that function.
        let push_descriptors = push_descriptors.map(|f| unsafe {
            std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCmdPushDescriptorSetKHR>(f)
        });
        let queue = |&family: &u32| {
            let mut handle = vk::Queue::null();
            // SAFETY: the device was made with one queue of this family.
            unsafe { (api.get_device_queue)(device, family, 0, &mut handle) };
            Queue { family, handle: Mutex::new(handle) }
        };
        let queues = families.iter().map(queue).collect();
        let memory = Memory::new(&memory_types(instance, physical.handle), families);
        let pipelines = Pipelines::new(&api, device, physical, opening.cache.as_deref());
        let (memory, pipelines) = match (memory, pipelines) {
            (Ok(memory), Ok(pipelines)) => (memory, pipelines),
            (Err(error), _) | (_, Err(error)) => {
                // SAFETY: nothing was made of it that is still there.
                unsafe { (api.destroy_device)(device, ptr::null()) };
                return Err(error);
            }
        };
        let info = Shared::describe(physical, id);
        Ok(Shared {
            info,
            physical: physical.clone(),
            device,
            api,
            push_descriptors,
            memory,
            pipelines,
            modes: Modes::default(),
            queues,
            workers: opening.workers.clone(),
            lost: AtomicBool::new(false),
            process: crate::process::id(),
        })
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

    /// The queue for a lane: copies go with the kernels where there is only one.
    pub fn lane(&self, wanted: Lane) -> Lane {
        if self.queues.len() > 1 { wanted } else { Lane::Compute }
    }

    /// The family of a lane's queue.
    pub fn family(&self, lane: Lane) -> u32 {
        self.queues[lane as usize].family
    }

    /// Hands work to a queue.
    pub fn submit(&self, lane: Lane, info: &vk::SubmitInfo<'_>) -> Result<()> {
        self.usable()?;
        let queue = self.queues[lane as usize].handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the queue is held, and what the structure names lives until the work is done: its stream keeps it.
        let result = unsafe { (self.api.queue_submit)(*queue, 1, info, vk::Fence::null()) };
        drop(queue);
        self.check(result, "submitting work")
    }

    /// Waits until the device does nothing, whatever state it is in. In a forked child there is no driver to ask.
    pub fn quiet(&self) {
        if self.process == crate::process::id() {
            let held: Vec<_> =
                self.queues.iter().map(|queue| queue.handle.lock().unwrap_or_else(PoisonError::into_inner)).collect();
            // SAFETY: no thread hands work to a queue meanwhile.
            let _ = unsafe { (self.api.device_wait_idle)(self.device) };
            drop(held);
        }
    }

    /// An error unless the device can be used here and now.
    #[inline]
    pub fn usable(&self) -> Result<()> {
        if self.lost.load(Relaxed) {
            return Err(self.lost());
        }
        if !self.is_here() {
            fail!(
                BackendUnavailable,
                "{} was opened before this process was forked, and can't be used here: fork first",
                self.info.id
            );
        }
        Ok(())
    }

    /// Whether this is the process that opened it. A child that was forked has the handles and not the driver behind them: there
    /// nothing is destroyed.
    pub fn is_here(&self) -> bool {
        self.process == crate::process::id()
    }

    /// A result of the driver's as ours; a lost device stays lost.
    #[inline]
    pub fn check(&self, result: vk::Result, doing: &str) -> Result<()> {
        if result.as_raw() >= 0 { Ok(()) } else { Err(self.failure(result, doing)) }
    }

    #[cold]
    fn failure(&self, result: vk::Result, doing: &str) -> Error {
        let status = match result {
            vk::Result::ERROR_DEVICE_LOST => {
                self.lost.store(true, Relaxed);
                let lost = self.lost();
                log!(Error, "devices", "{lost}: {doing}");
                return lost;
            }
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => Status::OutOfMemory,
            _ => Status::Internal,
        };
        Error::new(status, format!("{}: {doing} failed (Vulkan: {})", self.info.id, result.as_raw()))
    }

    /// What using a lost device gives.
    #[cold]
    pub fn lost(&self) -> Error {
        let text =
            format!("{} ({}) was lost: its driver stopped answering; open it anew", self.info.id, self.info.name);
        Error::new(Status::DeviceLost, text)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if !self.is_here() {
            return;
        }
        // SAFETY: whatever used the device held it, so nothing does any more; what is left of its own is destroyed first.
        unsafe {
            let _ = (self.api.device_wait_idle)(self.device);
            self.pipelines.destroy(&self.api, self.device, &self.physical);
            self.memory.trim(self, 0);
            (self.api.destroy_device)(self.device, ptr::null());
        }
    }
}

/// Makes a device with a queue of each family and the features that are needed and there.
fn create(instance: &Instance, physical: &Physical, families: &[u32], push: bool) -> Result<vk::Device> {
    let priority = [1.0];
    let queues: Vec<_> = families
        .iter()
        .map(|&family| vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priority))
        .collect();
    let mut extensions = Vec::new();
    if push {
        extensions.push(vk::KHR_PUSH_DESCRIPTOR_NAME.as_ptr());
    }
    if physical.has.memory_budget {
        extensions.push(vk::EXT_MEMORY_BUDGET_NAME.as_ptr());
    }
    let mut features12 = physical.features12;
    let mut features11 = physical.features11;
    features12.p_next = ptr::null_mut();
    features11.p_next = ptr::null_mut();
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&physical.features)
        .push_next(&mut features12)
        .push_next(&mut features11);
    let mut device = vk::Device::null();
    // SAFETY: the structures live until it returns.
    let result = unsafe { (instance.api.create_device)(physical.handle, &info, ptr::null(), &mut device) };
    match result {
        vk::Result::SUCCESS => Ok(device),
        _ => fail!(BackendUnavailable, "{} can't be opened (vkCreateDevice: {})", physical.name, result.as_raw()),
    }
}
