//! What everything of one opened device shares: its context, functions, memory. It goes when the last of them does.

use super::Opening;
use super::api::{Api, Driver, Handle, code};
use super::event::{Base, Mark};
use super::kernels::Modules;
use super::memory::Memory;
use super::physical::{LEAST, Physical};
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Priority, Workers, copy};
use crate::log::log;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An opened device. Its context is the primary one, which it has together with CUDA's runtime and whoever uses that.
pub struct Shared {
    pub physical: Physical,
    context: Handle,
    pub memory: Memory,
    pub modules: Modules,
    /// For what has no stream of its own and is waited for at once.
    own: Mutex<Handle>,
    /// Events that nothing looks at.
    pub events: Mutex<Vec<Handle>>,
    /// What times are counted from.
    pub base: Mutex<Option<Arc<Base>>>,
    workers: Option<Arc<dyn Workers>>,
    lost: AtomicBool,
}

// SAFETY: handles that any thread may use; what is changed is behind locks.
unsafe impl Send for Shared {}
// SAFETY: the same.
unsafe impl Sync for Shared {}

/// While it is there, the device's context is this thread's current one.
pub struct Entered {
    pushed: Option<&'static Api>,
    /// Drivers compute, and don't expect a caller's traps.
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
    // SAFETY: ours was pushed, so what was current before is below it.
    let _ = unsafe { (api.context_pop)(&mut ours) };
}

impl Shared {
    /// Opens a device. `unsupported` says what it lacks.
    pub fn open(physical: &Physical, opening: &Opening) -> Result<Shared> {
        let Physical { driver, info, handle, capability, .. } = physical;
        if *capability < LEAST {
            fail!(Unsupported, "{} ({}) is {}; adead needs sm_{LEAST} or later", info.id, info.name, info.arch);
        }
        let mut context = ptr::null_mut();
        // SAFETY: a device of this driver; the context is released when this is dropped.
        let result = unsafe { (driver.api.context_retain)(&mut context, *handle) };
        driver.check(result, &info.id, "opening it")?;
        let shared = Shared {
            physical: physical.clone(),
            context,
            memory: Memory::new(),
            modules: Modules::new(),
            own: Mutex::new(ptr::null_mut()),
            events: Mutex::new(Vec::new()),
            base: Mutex::new(None),
            workers: opening.workers.clone(),
            lost: AtomicBool::new(false),
        };
        let own = shared.new_stream(Priority::Normal)?;
        *shared.own() = own;
        Ok(shared)
    }

    /// The driver's functions.
    #[inline]
    pub fn api(&self) -> &'static Api {
        &self.physical.driver.api
    }

    fn driver(&self) -> &'static Driver {
        self.physical.driver
    }

    /// What it is called.
    pub fn id(&self) -> &str {
        &self.physical.info.id
    }

    fn own(&self) -> MutexGuard<'_, Handle> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes its context current, if it can be used here and now.
    #[inline(never)]
    pub fn enter(&self) -> Result<Entered> {
        self.usable()?;
        self.make_current()
    }

    /// Makes its context current for giving something back, which even a lost device is asked to; `None` where there is no driver.
    #[inline(never)]
    pub fn enter_to_destroy(&self) -> Option<Entered> {
        if !self.is_here() {
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
        // SAFETY: it writes a handle.
        self.check(unsafe { (self.api().context_current)(&mut current) }, "asking for the context")?;
        if current != self.context {
            self.push(&mut entered)?;
        }
        Ok(entered)
    }

    fn push(&self, entered: &mut Entered) -> Result<()> {
        // SAFETY: a context that is retained.
        self.check(unsafe { (self.api().context_push)(self.context) }, "making the context current")?;
        entered.pushed = Some(self.api());
        Ok(())
    }

    /// A stream that does not wait for the default stream's work.
    pub fn new_stream(&self, priority: Priority) -> Result<Handle> {
        const NON_BLOCKING: u32 = 1;
        // The least number is the highest; the driver takes the nearest that it has.
        const HIGHEST: i32 = -100;
        let priority = if priority == Priority::High { HIGHEST } else { 0 };
        let _entered = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: it writes a handle.
        let result = unsafe { (self.api().stream_create)(&mut stream, NON_BLOCKING, priority) };
        self.check(result, "making a stream")?;
        Ok(stream)
    }

    /// Does something with a stream that nobody else uses, and waits for it.
    pub fn at_once(&self, doing: &str, work: &dyn Fn(Handle) -> i32) -> Result<()> {
        let _entered = self.enter()?;
        let own = self.own();
        self.check(work(*own), doing)?;
        // SAFETY: a stream of this device.
        let wait = || unsafe { (self.api().stream_synchronize)(*own) };
        let result = wait();
        if result != code::SUCCESS {
            // What the work uses is given back after an error: the driver is asked once more.
            let _ = wait();
        }
        self.check(result, doing)
    }

    /// Waits for CUDA's default stream, which others give work to.
    pub fn wait_for_default(&self) -> Result<()> {
        // CU_STREAM_LEGACY.
        let stream: Handle = ptr::without_provenance_mut(1);
        let _entered = self.enter()?;
        // SAFETY: a stream that every context has.
        self.check(unsafe { (self.api().stream_synchronize)(stream) }, "waiting for the default stream")
    }

    /// Copies between host memory and pinned memory, with all threads.
    ///
    /// # Safety
    /// As [`copy`].
    pub unsafe fn copy(&self, from: &[u8], to: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { copy(self.workers.as_deref(), from, to) };
    }

    /// Bytes of the device's memory that the driver says are free.
    pub fn free_memory(&self) -> Option<u64> {
        let _entered = self.enter().ok()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: it writes two numbers.
        let result = unsafe { (self.api().memory_info)(&mut free, &mut total) };
        if result == code::SUCCESS { Some(free as u64) } else { None }
    }

    /// An error unless the device can be used here and now.
    #[inline(never)]
    pub fn usable(&self) -> Result<()> {
        if self.lost.load(Relaxed) {
            return Err(self.lost());
        }
        if !self.is_here() {
            fail!(
                BackendUnavailable,
                "{} was opened before this process was forked, and can't be used here: fork first",
                self.id()
            );
        }
        Ok(())
    }

    /// Whether this is the process that opened it: elsewhere the driver is never called.
    pub fn is_here(&self) -> bool {
        self.driver().is_here()
    }

    /// A result of the driver's as ours; a lost device stays lost.
    #[inline]
    pub fn check(&self, result: i32, doing: &str) -> Result<()> {
        if result == code::SUCCESS { Ok(()) } else { Err(self.failure(result, doing)) }
    }

    /// Whether something is done, by the result of asking for it.
    pub fn is_done(&self, result: i32) -> Result<bool> {
        match result {
            code::NOT_READY => Ok(false),
            _ => self.check(result, "asking how far the device is").map(|()| true),
        }
    }

    #[cold]
    pub fn failure(&self, result: i32, doing: &str) -> Error {
        match result {
            // What a kernel did or the hardware: from here on the context answers nothing else.
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
                // Of an opened device these say nothing about whether it is there.
                error if error.status() == Status::BackendUnavailable => Error::new(Status::Internal, error.message()),
                error => error,
            },
        }
    }

    /// What using a lost device gives.
    #[cold]
    fn lost(&self) -> Error {
        let info = &self.physical.info;
        let text = format!("{} ({}) was lost: its driver stopped answering; open it anew", info.id, info.name);
        Error::new(Status::DeviceLost, text)
    }

    /// Takes an event that nothing looks at, without a timer, or makes one.
    pub fn take_event(&self) -> Result<Handle> {
        match self.events.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(event) => Ok(event),
            None => self.new_event(Mark::FLAGS),
        }
    }

    /// A new event.
    pub fn new_event(&self, flags: u32) -> Result<Handle> {
        let mut event = ptr::null_mut();
        let _entered = self.enter()?;
        // SAFETY: it writes a handle.
        self.check(unsafe { (self.api().event_create)(&mut event, flags) }, "making an event")?;
        Ok(event)
    }

    /// Destroys an event.
    pub fn destroy_event(&self, event: Handle) {
        if let Some(_entered) = self.enter_to_destroy() {
            // SAFETY: nobody else has it.
            let _ = unsafe { (self.api().event_destroy)(event) };
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        if !self.is_here() {
            return;
        }
        // What it was counted from has an event.
        let base = self.base.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.drop_base(base);
        let events = std::mem::take(self.events.get_mut().unwrap_or_else(PoisonError::into_inner));
        events.into_iter().for_each(|event| self.destroy_event(event));
        if let Some(_entered) = self.enter_to_destroy() {
            let own = *self.own();
            if !own.is_null() {
                // SAFETY: whatever used the device held it, so nothing does any more.
                let _ = unsafe { (self.api().stream_destroy)(own) };
            }
        }
        self.modules.unload(self);
        self.memory.trim(self, 0);
        // SAFETY: it was retained once.
        let _ = unsafe { (self.api().context_release)(self.physical.handle) };
    }
}
