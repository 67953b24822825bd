//! The logical device of a GPU. All openings in a process share it, as CUDA's primary context. Its last user destroys
//! it.
//!
//! NVIDIA's driver is the exception: there the logical device stays without memory, for the next opening. In driver
//! 580.159 `vkDestroyDevice` holds the driver's lock and waits for a driver thread to end. A thread that ends spins
//! until no other thread is ending, and every thread that used the driver takes the driver's lock as it ends. If the
//! three meet, they deadlock, and so does every later caller of the driver.

use super::Opening;
use super::api::{DeviceApi, Instance, instance};
use super::memory::Memory;
use super::physical::{Physical, compute_family, memory_types, transfer_family};
use super::pipelines::Pipelines;
use super::probe::{self, Modes};
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::DeviceKind;
use crate::log::log;
use ash::vk;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A queue of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Runs kernels, and small copies between them.
    Compute = 0,
    /// Runs large copies from and to the host.
    Transfer = 1,
}

/// A queue and its family.
struct Queue {
    family: u32,
    handle: Mutex<vk::Queue>,
}

/// A Vulkan device, shared by everything that opened it.
pub struct Logical {
    id: String,
    pub physical: Physical,
    pub device: vk::Device,
    pub api: DeviceApi,
    pub push_descriptors: Option<vk::PFN_vkCmdPushDescriptorSetKHR>,
    pub memory: Memory,
    pub pipelines: Pipelines,
    /// Set by the probe, before any caller gets the device.
    modes: OnceLock<Modes>,
    /// The compute queue, and the transfer queue if the device has a family for it.
    queues: Vec<Queue>,
    lost: AtomicBool,
    /// The number of openings that use it.
    users: AtomicUsize,
    /// Whether marks report a stream's progress; see `timeline.rs`.
    pub marks: bool,
    /// The process that made it. A forked child has the handles but not the driver's threads.
    process: u32,
}

/// The devices of this process.
static DEVICES: Devices = Devices(Mutex::new(Known { open: Vec::new(), kept_open: Vec::new() }));
/// Held while a device is made or destroyed.
static DEVICE_LIFETIMES: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The devices in use, and those that stay.
struct Devices(Mutex<Known>);

#[derive(Default)]
struct Known {
    open: Vec<Weak<Logical>>,
    kept_open: Vec<Arc<Logical>>,
}

impl Devices {
    /// Returns the device of this GPU, or makes it. A lost device is left to its users, and a new one is made.
    fn get(&self, physical: &Physical, id: &str, opening: &Opening) -> Result<Arc<Logical>> {
        let mut known = lock(&self.0);
        known.open.retain(|device| device.strong_count() > 0);
        let mut open = known.open.iter().filter_map(Weak::upgrade);
        if let Some(device) = open.find(|device| device.physical.handle == physical.handle && !device.is_lost()) {
            device.keep_cache(opening);
            return Ok(device);
        }
        let device = Logical::probed(physical, id, opening)?;
        known.open.push(Arc::downgrade(&device));
        if physical.stays {
            known.kept_open.push(device.clone());
        }
        Ok(device)
    }
}

impl Logical {
    /// Returns the process's device of this GPU. Makes and probes it if there is none.
    pub fn get(physical: &Physical, id: &str, opening: &Opening) -> Result<Arc<Logical>> {
        // A forked child gets its error here: a thread that exists only in its parent may hold the locks.
        instance()?;
        if opening.shares() { DEVICES.get(physical, id, opening) } else { Logical::probed(physical, id, opening) }
    }

    fn probed(physical: &Physical, id: &str, opening: &Opening) -> Result<Arc<Logical>> {
        let device = Arc::new(Logical::new(physical, id, opening)?);
        device.keep_cache(opening);
        let modes = probe::decide(&device)?;
        let _ = device.modes.set(modes);
        Ok(device)
    }

    fn keep_cache(&self, opening: &Opening) {
        if let Some(folder) = &opening.cache {
            self.pipelines.keep_in(self, folder);
        }
    }

    /// Makes a device that is not shared and not probed. `unsupported` names a feature that it lacks.
    pub fn new(physical: &Physical, id: &str, opening: &Opening) -> Result<Logical> {
        #[cfg(not(any(test, feature = "cts")))]
        let _ = opening;
        let instance = instance()?;
        if let Some(feature) = physical.missing_feature {
            fail!(Unsupported, "{id} ({}) has no {feature}, which adead needs", physical.name);
        }
        let Some(compute) = compute_family(instance, physical.handle) else {
            fail!(Unsupported, "{id} ({}) has no compute queue", physical.name);
        };
        let mut families = vec![compute];
        families.extend(transfer_family(instance, physical.handle));
        #[allow(unused_mut)]
        let mut push = physical.optional.push_descriptor;
        #[cfg(any(test, feature = "cts"))]
        if opening.plain {
            families.truncate(1);
            push = false;
        }
        // Polling marks would take processor time from a software device, which computes on the processor.
        #[allow(unused_mut)]
        let mut marks = physical.kind != DeviceKind::Software;
        #[cfg(any(test, feature = "cts"))]
        if opening.marks {
            marks = true;
        }
        let device = create(instance, physical, &families, push, !opening.unchecked)?;
        let get = |name: &std::ffi::CStr| {
            // SAFETY: the device belongs to this instance.
            unsafe { (instance.api.get_device_proc_addr)(device, name.as_ptr()) }
        };
        // SAFETY: `get` returns functions of this device, and the table has the specification's types.
        #[allow(unused_mut)]
        let mut api = unsafe { DeviceApi::load(&get) }?;
        #[cfg(any(test, feature = "cts"))]
        if let Some(faults) = opening.faults {
            faults(&mut api);
        }
        let push_descriptors = if push { get(c"vkCmdPushDescriptorSetKHR") } else { None };
        // SAFETY: the type is that of the specification for this function.
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
        let pipelines = Pipelines::new(&api, device, physical);
        let (memory, pipelines) = match (memory, pipelines) {
            (Ok(memory), Ok(pipelines)) => (memory, pipelines),
            (Err(error), _) | (_, Err(error)) => {
                let _changing = lock(&DEVICE_LIFETIMES);
                // SAFETY: everything made from the device is gone.
                unsafe { (api.destroy_device)(device, ptr::null()) };
                return Err(error);
            }
        };
        Ok(Logical {
            id: id.into(),
            physical: physical.clone(),
            device,
            api,
            push_descriptors,
            memory,
            pipelines,
            modes: OnceLock::new(),
            queues,
            lost: AtomicBool::new(false),
            users: AtomicUsize::new(0),
            marks,
            process: crate::process::id(),
        })
    }

    /// Counts one more opening.
    pub fn enter(&self) {
        self.users.fetch_add(1, Relaxed);
    }

    /// Counts one opening less. After the last one, idle memory is freed, even if the device stays.
    pub fn leave(&self) {
        self.pipelines.save(&self.api, self.device, &self.physical);
        if self.users.fetch_sub(1, Relaxed) == 1 {
            self.memory.trim(self, 0);
        }
    }

    /// Returns the modes that the probe found.
    pub fn modes(&self) -> Modes {
        self.modes.get().copied().unwrap_or_default()
    }

    /// Returns the queue to use for a lane: without a transfer queue, copies use the compute queue.
    pub fn lane(&self, wanted: Lane) -> Lane {
        if self.queues.len() > 1 { wanted } else { Lane::Compute }
    }

    /// Returns the family of a lane's queue.
    pub fn family(&self, lane: Lane) -> u32 {
        self.queues[lane as usize].family
    }

    /// Submits work to a queue.
    pub fn submit(&self, lane: Lane, info: &vk::SubmitInfo<'_>) -> Result<()> {
        self.usable()?;
        let queue = lock(&self.queues[lane as usize].handle);
        // SAFETY: the queue is locked. The stream keeps everything that `info` names until the work is done.
        let result = unsafe { (self.api.queue_submit)(*queue, 1, info, vk::Fence::null()) };
        drop(queue);
        self.check(result, "submitting work")
    }

    /// Waits until the device is idle, even if it is lost. Does nothing in a forked child, which has no driver.
    pub fn wait_idle(&self) {
        if self.opened_in_this_process() {
            let held: Vec<_> = self.queues.iter().map(|queue| lock(&queue.handle)).collect();
            // SAFETY: all queues are locked, so no thread submits work meanwhile.
            let _ = unsafe { (self.api.device_wait_idle)(self.device) };
            drop(held);
        }
    }

    /// Returns whether the device is a program on the processor.
    pub fn is_software(&self) -> bool {
        self.physical.kind == DeviceKind::Software
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// Returns an error if the device is lost, or if this is a forked child.
    #[inline]
    pub fn usable(&self) -> Result<()> {
        if self.is_lost() {
            return Err(self.lost());
        }
        if !self.opened_in_this_process() {
            fail!(
                BackendUnavailable,
                "{} was opened before this process was forked, and can't be used here: fork first",
                self.id
            );
        }
        Ok(())
    }

    /// Returns whether this process made the device. A forked child has the handles without a driver behind them, so it
    /// must not destroy anything.
    pub fn opened_in_this_process(&self) -> bool {
        self.process == crate::process::id()
    }

    /// Converts the driver's result into an error. After ERROR_DEVICE_LOST the device counts as lost for good.
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
        Error::new(status, format!("{}: {doing} failed (Vulkan: {})", self.id, result.as_raw()))
    }

    /// Makes the error of every use of a lost device.
    #[cold]
    pub fn lost(&self) -> Error {
        let text =
            format!("{} ({}) was lost: its driver stopped answering; open it again", self.id, self.physical.name);
        Error::new(Status::DeviceLost, text)
    }
}

impl Drop for Logical {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if !self.opened_in_this_process() {
            return;
        }
        let _changing = lock(&DEVICE_LIFETIMES);
        // SAFETY: every user of the device held a reference, so none is left. What the device itself owns is destroyed
        // first.
        unsafe {
            let _ = (self.api.device_wait_idle)(self.device);
            self.pipelines.destroy(&self.api, self.device, &self.physical);
            self.memory.trim(self, 0);
            (self.api.destroy_device)(self.device, ptr::null());
        }
    }
}

/// Makes a device with one queue of each family and with the supported features. `robust` keeps users' kernels inside
/// their buffers.
fn create(instance: &Instance, physical: &Physical, families: &[u32], push: bool, robust: bool) -> Result<vk::Device> {
    let priority = [1.0];
    let queues: Vec<_> = families
        .iter()
        .map(|&family| vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priority))
        .collect();
    let mut extensions = Vec::new();
    if push {
        extensions.push(vk::KHR_PUSH_DESCRIPTOR_NAME.as_ptr());
    }
    if physical.optional.memory_budget {
        extensions.push(vk::EXT_MEMORY_BUDGET_NAME.as_ptr());
    }
    // Only users' kernels use descriptors, and the driver checks only accesses through descriptors.
    let mut robustness2 = vk::PhysicalDeviceRobustness2FeaturesEXT::default().robust_buffer_access2(true);
    let robust2 = robust && physical.optional.robustness2;
    if robust2 {
        extensions.push(vk::EXT_ROBUSTNESS2_NAME.as_ptr());
    }
    let mut cooperative = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut sized = vk::PhysicalDeviceSubgroupSizeControlFeatures::default().subgroup_size_control(true);
    let multiplies = physical.optional.matrices.is_some();
    if multiplies {
        extensions.push(vk::KHR_COOPERATIVE_MATRIX_NAME.as_ptr());
        extensions.push(vk::EXT_SUBGROUP_SIZE_CONTROL_NAME.as_ptr());
    }
    let mut features = physical.features;
    features.robust_buffer_access &= vk::Bool32::from(robust);
    let mut features12 = physical.features12;
    let mut features11 = physical.features11;
    features12.p_next = ptr::null_mut();
    features11.p_next = ptr::null_mut();
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&features)
        .push_next(&mut features12)
        .push_next(&mut features11);
    if robust2 {
        info = info.push_next(&mut robustness2);
    }
    if multiplies {
        info = info.push_next(&mut cooperative).push_next(&mut sized);
    }
    let mut device = vk::Device::null();
    let _changing = lock(&DEVICE_LIFETIMES);
    // SAFETY: the structures live until the call returns.
    let result = unsafe { (instance.api.create_device)(physical.handle, &info, ptr::null(), &mut device) };
    match result {
        vk::Result::SUCCESS => Ok(device),
        _ => fail!(BackendUnavailable, "{} can't be opened (vkCreateDevice: {})", physical.name, result.as_raw()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::physical;
    use super::*;

    #[test]
    fn a_device_is_shared_until_it_is_lost_and_goes_with_its_last_user() {
        let Ok(all) = physical::enumerate() else { return };
        let Some(physical) = all.first() else { return };
        let devices = Devices(Mutex::new(Known::default()));
        let get = || devices.get(physical, "vulkan:0", &Opening::default()).unwrap();
        let (first, second) = (get(), get());
        assert!(Arc::ptr_eq(&first, &second));
        first.lost.store(true, Relaxed);
        let third = get();
        assert!(!Arc::ptr_eq(&first, &third) && third.usable().is_ok());
        assert!(first.usable().is_err(), "a lost device stays lost");
        let gone = [Arc::downgrade(&first), Arc::downgrade(&third)];
        drop((first, second, third));
        assert!(gone.iter().all(|device| (device.strong_count() > 0) == physical.stays));
        let again = get();
        assert!(again.usable().is_ok());
        assert_eq!(lock(&devices.0).open.len(), if physical.stays { 2 } else { 1 }, "what is gone is forgotten");
    }

    #[test]
    fn threads_that_open_at_once_get_the_same_device() {
        let Ok(all) = physical::enumerate() else { return };
        let Some(physical) = all.first() else { return };
        let devices = Devices(Mutex::new(Known::default()));
        let held = std::thread::scope(|scope| {
            let open = || devices.get(physical, "vulkan:0", &Opening::default()).unwrap();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(held.iter().all(|device| Arc::ptr_eq(device, &held[0])));
    }
}
