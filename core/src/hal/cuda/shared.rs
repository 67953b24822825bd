//! One opened device, shared by everything made from it: context, driver, memory, modules. The last user closes it.

use super::Opening;
use super::api::{Api, Driver, Handle, LaunchWith, code};
use super::event::{Base, Mark};
use super::kernels::Modules;
use super::memory::Memory;
use super::physical::{LEAST, Physical};
use super::tiles::tile_costs;
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Priority, TileCosts, Workers, copy};
use crate::log::log;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// CU_STREAM_LEGACY: the stream that other code of the process uses if it names none.
pub const DEFAULT_STREAM: Handle = ptr::without_provenance_mut(1);

/// An opened device. Its context is the primary one, which CUDA's runtime and its users share.
pub struct Shared {
    pub physical: Physical,
    context: Handle,
    pub memory: Memory,
    pub modules: Modules,
    /// The tiles of products, and their costs.
    pub tiles: TileCosts,
    /// A stream for work without its own stream, which is waited for at once.
    own: Mutex<Handle>,
    /// Events for reuse.
    pub events: Mutex<Vec<Handle>>,
    /// The event that timestamps count from.
    pub base: Mutex<Option<Arc<Base>>>,
    workers: Option<Arc<dyn Workers>>,
    /// The contexts of devices whose memory this one may read.
    reached: Mutex<Vec<usize>>,
    lost: AtomicBool,
    /// Launches a kernel that may start while the one before it runs, where drivers can record that.
    pub overlaps: Option<LaunchWith>,
}

// SAFETY: any thread may use the handles, and locks guard what changes.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// While it lives, the device's context is this thread's current one.
pub struct Entered {
    pushed: Option<&'static Api>,
    /// Drivers compute on the CPU, and don't expect the caller's floating-point traps.
    _environment: DefaultEnvironment,
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if let Some(api) = self.pushed {
            leave(api);
        }
    }
}

#[inline(never)]
fn leave(api: &Api) {
    let mut ours = ptr::null_mut();
    // SAFETY: this thread pushed our context, so the pop restores the one before it.
    let _ = unsafe { (api.context_pop)(&mut ours) };
}

/// The CUDA version from which recordings keep that a kernel may start early: 12.4.
const RECORDS_OVERLAPS: i32 = 12_040;

impl Shared {
    /// Opens a device. `unsupported` if its compute capability is too low.
    pub fn open(physical: &Physical, opening: &Opening) -> Result<Shared> {
        let Physical { driver, info, handle, capability, .. } = physical;
        if *capability < LEAST {
            fail!(Unsupported, "{} ({}) is {}; adead needs sm_{LEAST} or later", info.id, info.name, info.arch);
        }
        let mut context = ptr::null_mut();
        // SAFETY: a device of this driver. Dropping `Shared` releases the context.
        let result = unsafe { (driver.api.context_retain)(&mut context, *handle) };
        driver.check(result, &info.id, "opening it")?;
        let shared = Shared {
            physical: physical.clone(),
            context,
            memory: Memory::new(),
            modules: Modules::new(),
            tiles: tile_costs(physical),
            own: Mutex::new(ptr::null_mut()),
            events: Mutex::new(Vec::new()),
            base: Mutex::new(None),
            workers: opening.workers.clone(),
            reached: Mutex::new(Vec::new()),
            lost: AtomicBool::new(false),
            overlaps: driver.api.launch_with.filter(|_| driver.version >= RECORDS_OVERLAPS),
        };
        let own = shared.new_stream(Priority::Normal)?;
        *shared.own_stream() = own;
        Ok(shared)
    }

    /// Returns the driver's functions.
    #[inline]
    pub fn api(&self) -> &'static Api {
        &self.physical.driver.api
    }

    fn driver(&self) -> &'static Driver {
        self.physical.driver
    }

    /// Returns the device's id.
    pub fn id(&self) -> &str {
        &self.physical.info.id
    }

    fn own_stream(&self) -> MutexGuard<'_, Handle> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the context current. An error if the device is lost, or if this is a forked child.
    #[inline(never)]
    pub fn enter(&self) -> Result<Entered> {
        self.usable()?;
        self.make_current()
    }

    /// Makes the context current to free something, even on a lost device. `None` in a forked child, which has no
    /// driver.
    #[inline(never)]
    pub fn enter_to_destroy(&self) -> Option<Entered> {
        if !self.opened_in_this_process() {
            return None;
        }
        self.make_current()
            .or_else(|_| {
                let mut entered = Entered { pushed: None, _environment: DefaultEnvironment::enter() };
                self.push(&mut entered).map(|()| entered)
            })
            .ok()
    }

    fn make_current(&self) -> Result<Entered> {
        let mut entered = Entered { pushed: None, _environment: DefaultEnvironment::enter() };
        let mut current = ptr::null_mut();
        // SAFETY: the call writes one handle.
        self.check(unsafe { (self.api().context_current)(&mut current) }, "asking for the context")?;
        if current != self.context {
            self.push(&mut entered)?;
        }
        Ok(entered)
    }

    fn push(&self, entered: &mut Entered) -> Result<()> {
        // SAFETY: the context is retained.
        self.check(unsafe { (self.api().context_push)(self.context) }, "making the context current")?;
        entered.pushed = Some(self.api());
        Ok(())
    }

    /// Makes a stream that does not wait for the default stream's work.
    pub fn new_stream(&self, priority: Priority) -> Result<Handle> {
        const NON_BLOCKING: u32 = 1;
        // A lower number is a higher priority. The driver uses the nearest number that it supports.
        const HIGHEST: i32 = -100;
        let priority = if priority == Priority::High { HIGHEST } else { 0 };
        let _entered = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: the call writes one handle.
        let result = unsafe { (self.api().stream_create)(&mut stream, NON_BLOCKING, priority) };
        self.check(result, "making a stream")?;
        Ok(stream)
    }

    /// Runs `work` on the device's own stream, and waits for it.
    pub fn run_and_wait(&self, doing: &str, work: &dyn Fn(Handle) -> i32) -> Result<()> {
        let _entered = self.enter()?;
        let own = self.own_stream();
        self.check(work(*own), doing)?;
        // SAFETY: a stream of this device.
        let wait = || unsafe { (self.api().stream_synchronize)(*own) };
        let result = wait();
        if result != code::SUCCESS {
            // After an error the caller frees what the work uses, so the wait is tried once more.
            let _ = wait();
        }
        self.check(result, doing)
    }

    /// Waits for CUDA's default stream, which other code gives work to.
    pub fn wait_for_default(&self) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: every context has the default stream.
        self.check(unsafe { (self.api().stream_synchronize)(DEFAULT_STREAM) }, "waiting for the default stream")
    }

    /// Copies host bytes to or from pinned memory, with the help of the workers.
    ///
    /// # Safety
    /// As for [`copy`].
    pub unsafe fn copy(&self, from: &[u8], to: *mut u8) {
        // SAFETY: the caller vouches for `to`.
        unsafe { copy(self.workers.as_deref(), from, to) };
    }

    /// Returns whether another opened device is of the same driver: another GPU, or another opening of this one.
    pub fn is_peer_of(&self, other: &Shared) -> bool {
        ptr::eq(self.driver(), other.driver()) && !ptr::eq(self, other)
    }

    /// Returns the device's context.
    pub fn context(&self) -> Handle {
        self.context
    }

    /// Lets this device, whose context is current, read another one's memory directly, where the machine can do that. Without it the
    /// driver copies through the host.
    pub fn reach(&self, other: &Shared) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if other.context != self.context && !reached.contains(&other.context.addr()) {
            reached.push(other.context.addr());
            // SAFETY: the other context is retained. An error says that it has no direct way, or has one already.
            let result = unsafe { (self.api().context_peer)(other.context, 0) };
            log!(Debug, "memory", "{} reads memory of {}: result {result}", self.id(), other.id());
        }
    }

    /// Returns the bytes of the device's memory that the driver reports as free.
    pub fn free_memory(&self) -> Option<u64> {
        let _entered = self.enter().ok()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the call writes two numbers.
        let result = unsafe { (self.api().memory_info)(&mut free, &mut total) };
        if result == code::SUCCESS { Some(free as u64) } else { None }
    }

    /// Returns an error if the device is lost, or if this is a forked child.
    #[inline(never)]
    pub fn usable(&self) -> Result<()> {
        if self.lost.load(Relaxed) {
            return Err(self.lost());
        }
        if !self.opened_in_this_process() {
            fail!(
                BackendUnavailable,
                "{} was opened before this process was forked, and can't be used here: fork first",
                self.id()
            );
        }
        Ok(())
    }

    /// Returns whether this process opened the device. A forked child must never call the driver.
    pub fn opened_in_this_process(&self) -> bool {
        self.driver().opened_in_this_process()
    }

    /// Converts the driver's result into an error. After a fault of a kernel or the hardware, the device counts as lost
    /// for good.
    #[inline]
    pub fn check(&self, result: i32, doing: &str) -> Result<()> {
        if result == code::SUCCESS { Ok(()) } else { Err(self.failure(result, doing)) }
    }

    /// Converts the result of a query: whether the work is done.
    pub fn is_done(&self, result: i32) -> Result<bool> {
        match result {
            code::NOT_READY => Ok(false),
            _ => self.check(result, "asking how far the device is").map(|()| true),
        }
    }

    #[cold]
    pub fn failure(&self, result: i32, doing: &str) -> Error {
        match result {
            // A kernel or the hardware failed: from now on every call in the context returns this error.
            214 | 220 | 700 | 702 | 709..=719 => {
                self.lost.store(true, Relaxed);
                let error = self.lost();
                log!(Error, "devices", "{error}: {doing}: {}", self.driver().name(result));
                Error::formatted(
                    error.status(),
                    format_args!("{}: {doing}: {}", error.message(), self.driver().name(result)),
                )
            }
            _ => match self.driver().failure(result, self.id(), doing) {
                // On an opened device these results don't say whether a device exists.
                error if error.status() == Status::BackendUnavailable => Error::new(Status::Internal, error.message()),
                error => error,
            },
        }
    }

    /// Makes the error of every use of a lost device.
    #[cold]
    fn lost(&self) -> Error {
        let info = &self.physical.info;
        let text = format!("{} ({}) was lost: its driver stopped answering; open it again", info.id, info.name);
        Error::new(Status::DeviceLost, text)
    }

    /// Returns an event without a timer: an idle one, or a new one.
    pub fn take_event(&self) -> Result<Handle> {
        match self.events.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(event) => Ok(event),
            None => self.new_event(Mark::FLAGS),
        }
    }

    /// Makes an event.
    pub fn new_event(&self, flags: u32) -> Result<Handle> {
        let mut event = ptr::null_mut();
        let _entered = self.enter()?;
        // SAFETY: the call writes one handle.
        self.check(unsafe { (self.api().event_create)(&mut event, flags) }, "making an event")?;
        Ok(event)
    }

    /// Destroys an event.
    pub fn destroy_event(&self, event: Handle) {
        if let Some(_entered) = self.enter_to_destroy() {
            // SAFETY: nothing else has the event.
            let _ = unsafe { (self.api().event_destroy)(event) };
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if !self.opened_in_this_process() {
            return;
        }
        // The base has an event, which is destroyed here.
        let base = self.base.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.drop_base(base);
        let events = std::mem::take(self.events.get_mut().unwrap_or_else(PoisonError::into_inner));
        events.into_iter().for_each(|event| self.destroy_event(event));
        if let Some(_entered) = self.enter_to_destroy() {
            let own = *self.own_stream();
            if !own.is_null() {
                // SAFETY: every user of the device held a reference, so none is left.
                let _ = unsafe { (self.api().stream_destroy)(own) };
            }
        }
        self.modules.unload(self);
        self.memory.trim(self, 0);
        // SAFETY: `open` retained the context once.
        let _ = unsafe { (self.api().context_release)(self.physical.handle) };
    }
}
