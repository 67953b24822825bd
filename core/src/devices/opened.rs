//! An opened device with its stream, and the places of those that are opened when they are needed.

use super::Described;
use super::guard::Guards;
use super::reuse::Reuse;
use crate::config::Config;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::registry::{Backend, Opening};
use crate::hal::{Buffer, Device, DeviceInfo, Stream, Workers};
use crate::interrupt;
use crate::log::log;
use crate::profile::{ProfilerHandle, Watch, What};
use crate::tensor::Cache;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// An opened device with the stream that a context's own calls go to.
pub(crate) struct Opened {
    pub device: Arc<dyn Device>,
    pub profiler: ProfilerHandle,
    /// The tensors that have a copy on it.
    pub cache: Cache,
    /// Where users' buffers lie between guards.
    pub guards: Option<Guards>,
    stream: Mutex<Box<dyn Stream>>,
    /// Memory of results, while somebody wants it used again.
    reuse: Mutex<Weak<Reuse>>,
    pub(super) me: Weak<Opened>,
}

impl Opened {
    pub fn new(device: Arc<dyn Device>, profiler: ProfilerHandle) -> Result<Arc<Opened>> {
        let guards = Guards::wanted(device.info().kind)?;
        Opened::with_guards(device, profiler, guards)
    }

    /// The same, with or without guards around users' buffers.
    pub fn with_guards(
        device: Arc<dyn Device>,
        profiler: ProfilerHandle,
        guards: Option<Guards>,
    ) -> Result<Arc<Opened>> {
        let stream = Mutex::new(device.clone().stream()?);
        let cache = Cache::new(device.info().memory);
        Ok(Arc::new_cyclic(|me| Opened {
            device,
            profiler,
            cache,
            guards,
            stream,
            reuse: Mutex::default(),
            me: me.clone(),
        }))
    }

    /// Memory of results that are gone is used again for the next ones while somebody has this.
    pub fn reuse(&self) -> Arc<Reuse> {
        let mut reuse = self.reuse.lock().unwrap_or_else(PoisonError::into_inner);
        reuse.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Reuse::default());
            *reuse = Arc::downgrade(&new);
            new
        })
    }

    /// The memory that is kept for results, if somebody wants that.
    fn kept(&self) -> Option<Arc<Reuse>> {
        self.reuse.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Memory of any contents for a result.
    pub(super) fn memory_of_result(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        match self.kept() {
            Some(kept) => kept.take(bytes, |bytes| self.device.allocate_unset(bytes)),
            None => self.device.allocate_unset(bytes),
        }
    }

    /// Gives the memory that is kept for results back to the backend.
    pub(super) fn give_back(&self) {
        if let Some(kept) = self.kept() {
            kept.clear();
        }
    }

    /// Gives back what is kept for the next work.
    pub fn trim(&self) {
        self.cache.trim(self);
        self.give_back();
        self.device.trim();
    }

    /// The stream, which is one thread's at a time.
    pub fn lock(&self) -> MutexGuard<'_, Box<dyn Stream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something with the stream. Drivers compute: they must not meet the host's floating-point modes and traps.
    pub fn with<R>(&self, work: impl FnOnce(&mut dyn Stream) -> Result<R>) -> Result<R> {
        let _environment = DefaultEnvironment::enter();
        work(&mut **self.lock())
    }

    /// Waits for what the stream was given, where somebody may end that, and while nobody has it.
    pub fn catch_up(&self) -> Result<()> {
        if interrupt::is_possible() {
            let event = self.with(|stream| stream.event())?;
            interrupt::wait(&*event, u64::MAX)?;
        }
        Ok(())
    }

    /// One piece of work for the stream, on a device that its operands chose, recorded where a profile is under way.
    pub fn watched(&self, what: &What<'_>, mut work: impl FnMut(&mut dyn Stream) -> Result<()>) -> Result<()> {
        self.watch(Some(0), &mut **self.lock(), what, &mut work)
    }

    /// A watch over a stream of that number, from here on.
    #[inline]
    pub fn begin_watch(&self, number: usize, stream: &mut dyn Stream) -> Watch<'_> {
        Watch::begin(&self.profiler, &self.device, number, stream)
    }

    /// One piece of work for a stream: recorded where a profile is under way and the stream has a number.
    #[inline(never)]
    pub fn watch(
        &self,
        number: Option<usize>,
        stream: &mut dyn Stream,
        what: &What<'_>,
        work: &mut dyn FnMut(&mut dyn Stream) -> Result<()>,
    ) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        let mut watch = number.map_or(Watch::nothing(), |number| self.begin_watch(number, stream));
        work(stream)?;
        watch.step(stream, what);
        Ok(())
    }
}

/// A GPU of a context, opened when it is first needed.
pub(crate) struct Slot {
    info: DeviceInfo,
    opened: OnceLock<Result<Arc<Opened>>>,
    cache: Option<std::path::PathBuf>,
    workers: Arc<dyn Workers>,
    profiler: ProfilerHandle,
}

impl Slot {
    /// One whose copies from and to the host `workers` help with.
    pub fn new(info: DeviceInfo, config: &Config, workers: Arc<dyn Workers>, profiler: ProfilerHandle) -> Slot {
        Slot { info, opened: OnceLock::new(), cache: config.cache_folder(), workers, profiler }
    }

    /// What it is: with its contract level once it was opened.
    pub fn info(&self) -> &DeviceInfo {
        match self.opened.get() {
            Some(Ok(opened)) => opened.device.info(),
            _ => &self.info,
        }
    }

    /// It, opened; the same error every time if it can't be.
    pub fn opened(&self) -> Result<&Arc<Opened>> {
        let open = || {
            let opened = self.open();
            match &opened {
                Ok(opened) => log!(Info, "devices", "opened {}", Described(opened.device.info())),
                Err(error) => log!(Warn, "devices", "{} can't be used: {error}", self.info.id),
            }
            opened
        };
        match self.opened.get_or_init(open) {
            Ok(opened) => Ok(opened),
            Err(error) => Err(error.clone()),
        }
    }

    /// It, if it was opened.
    pub fn if_opened(&self) -> Option<&Arc<Opened>> {
        self.opened.get()?.as_ref().ok()
    }

    fn open(&self) -> Result<Arc<Opened>> {
        let _environment = DefaultEnvironment::enter();
        let id = &self.info.id;
        let Some((backend, number)) = Backend::of(id) else { fail!(Internal, "'{id}' is of no backend") };
        let opening = Opening { cache: self.cache.clone(), workers: Some(self.workers.clone()) };
        Opened::new((backend.open)(number, opening)?, self.profiler.clone())
    }
}
