//! The logical device of a GPU: one for the process, whoever opened it, as CUDA's primary context is. It goes with its last user.
//!
//! But not with NVIDIA's driver: there it stays, without memory, for whoever opens it next. `vkDestroyDevice` of 580.159 holds the
//! driver's lock and waits for a thread of the driver's to end. A thread that ends spins until no other thread ends, and any thread
//! that used the driver takes the driver's lock when it ends. Where the three meet, all wait for ever, and with them whoever calls
//! the driver.

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

/// Which of the device's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Kernels, and small copies between them.
    Compute = 0,
    /// Large copies from and to the host.
    Transfer = 1,
}

/// A queue and the family that it is of.
struct Queue {
    family: u32,
    handle: Mutex<vk::Queue>,
}

/// A device of the driver's, and what all who opened it share.
pub struct Logical {
    id: String,
    pub physical: Physical,
    pub device: vk::Device,
    pub api: DeviceApi,
    pub push_descriptors: Option<vk::PFN_vkCmdPushDescriptorSetKHR>,
    pub memory: Memory,
    pub pipelines: Pipelines,
    /// Decided before anybody has it.
    modes: OnceLock<Modes>,
    /// The second one only where the device has a family for it.
    queues: Vec<Queue>,
    lost: AtomicBool,
    /// Openings that use it.
    users: AtomicUsize,
    /// Whether marks tell how far a stream is: `timeline.rs`.
    pub marks: bool,
    /// The process that made it: a child of it has the handles and not the driver's threads.
    process: u32,
}

/// The devices of this process.
static DEVICES: Devices = Devices(Mutex::new(Known { open: Vec::new(), staying: Vec::new() }));
/// Held while a device is made or destroyed.
static CHANGING: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Devices that somebody has, and those that stay.
struct Devices(Mutex<Known>);

#[derive(Default)]
struct Known {
    open: Vec<Weak<Logical>>,
    staying: Vec<Arc<Logical>>,
}

impl Devices {
    /// The one of that GPU, made where nobody has one. A lost one is left to those who have it.
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
            known.staying.push(device.clone());
        }
        Ok(device)
    }
}

impl Logical {
    /// The process's device of that GPU, made and probed if nobody has it.
    pub fn get(physical: &Physical, id: &str, opening: &Opening) -> Result<Arc<Logical>> {
        // A child that was forked stops here: a thread that it does not have may hold the locks.
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

    /// One of its own, not yet probed. `unsupported` says what it lacks.
    pub fn new(physical: &Physical, id: &str, opening: &Opening) -> Result<Logical> {
        #[cfg(not(any(test, feature = "cts")))]
        let _ = opening;
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
        // Who looks at marks keeps the processor that a program needs for them.
        #[allow(unused_mut)]
        let mut marks = physical.kind != DeviceKind::Software;
        #[cfg(any(test, feature = "cts"))]
        if opening.marks {
            marks = true;
        }
        let device = create(instance, physical, &families, push, !opening.unchecked)?;
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
        let pipelines = Pipelines::new(&api, device, physical);
        let (memory, pipelines) = match (memory, pipelines) {
            (Ok(memory), Ok(pipelines)) => (memory, pipelines),
            (Err(error), _) | (_, Err(error)) => {
                let _changing = lock(&CHANGING);
                // SAFETY: nothing was made of it that is still there.
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

    /// One more opening uses it.
    pub fn enter(&self) {
        self.users.fetch_add(1, Relaxed);
    }

    /// One less. With the last one, idle memory goes, though the device may stay.
    pub fn leave(&self) {
        self.pipelines.save(&self.api, self.device, &self.physical);
        if self.users.fetch_sub(1, Relaxed) == 1 {
            self.memory.trim(self, 0);
        }
    }

    /// What the probe decided.
    pub fn modes(&self) -> Modes {
        self.modes.get().copied().unwrap_or_default()
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
        let queue = lock(&self.queues[lane as usize].handle);
        // SAFETY: the queue is held, and what the structure names lives until the work is done: its stream keeps it.
        let result = unsafe { (self.api.queue_submit)(*queue, 1, info, vk::Fence::null()) };
        drop(queue);
        self.check(result, "submitting work")
    }

    /// Waits until the device does nothing, whatever state it is in. In a forked child there is no driver to ask.
    pub fn quiet(&self) {
        if self.is_here() {
            let held: Vec<_> = self.queues.iter().map(|queue| lock(&queue.handle)).collect();
            // SAFETY: no thread hands work to a queue meanwhile.
            let _ = unsafe { (self.api.device_wait_idle)(self.device) };
            drop(held);
        }
    }

    /// Whether it is a program on the processor.
    pub fn is_software(&self) -> bool {
        self.physical.kind == DeviceKind::Software
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// An error unless the device can be used here and now.
    #[inline]
    pub fn usable(&self) -> Result<()> {
        if self.is_lost() {
            return Err(self.lost());
        }
        if !self.is_here() {
            fail!(
                BackendUnavailable,
                "{} was opened before this process was forked, and can't be used here: fork first",
                self.id
            );
        }
        Ok(())
    }

    /// Whether this is the process that made it. A child that was forked has the handles and not the driver behind them: there
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
        Error::new(status, format!("{}: {doing} failed (Vulkan: {})", self.id, result.as_raw()))
    }

    /// What using a lost device gives.
    #[cold]
    pub fn lost(&self) -> Error {
        let text = format!("{} ({}) was lost: its driver stopped answering; open it anew", self.id, self.physical.name);
        Error::new(Status::DeviceLost, text)
    }
}

impl Drop for Logical {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if !self.is_here() {
            return;
        }
        let _changing = lock(&CHANGING);
        // SAFETY: whatever used the device held it, so nothing does any more; what is left of its own is destroyed first.
        unsafe {
            let _ = (self.api.device_wait_idle)(self.device);
            self.pipelines.destroy(&self.api, self.device, &self.physical);
            self.memory.trim(self, 0);
            (self.api.destroy_device)(self.device, ptr::null());
        }
    }
}

/// Makes a device with a queue of each family and the features that are needed and there. `robust` keeps users' kernels in their
/// buffers.
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
    if physical.has.memory_budget {
        extensions.push(vk::EXT_MEMORY_BUDGET_NAME.as_ptr());
    }
    // Only users' kernels have descriptors, and only accesses through those are checked.
    let mut robustness2 = vk::PhysicalDeviceRobustness2FeaturesEXT::default().robust_buffer_access2(true);
    let robust2 = robust && physical.has.robustness2;
    if robust2 {
        extensions.push(vk::EXT_ROBUSTNESS2_NAME.as_ptr());
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
    let mut device = vk::Device::null();
    let _changing = lock(&CHANGING);
    // SAFETY: the structures live until it returns.
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
