//! Opened devices with their streams, and slots for the GPUs that a context opens when first needed.

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
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// An opened device, with the stream for the context's own calls.
pub(crate) struct Opened {
    pub device: Arc<dyn Device>,
    pub profiler: ProfilerHandle,
    /// The tensors that have a copy on the device.
    pub cache: Cache,
    /// The guards around users' buffers, if `ADEAD_CHECK_BUFFERS` is set.
    pub guards: Option<Guards>,
    stream: Mutex<Box<dyn Stream>>,
    /// Memory of results that are gone, for the next ones.
    pub(super) reuse: Arc<Reuse>,
    pub(super) me: Weak<Opened>,
}

impl Opened {
    pub fn new(device: Arc<dyn Device>, profiler: ProfilerHandle) -> Result<Arc<Opened>> {
        let guards = Guards::wanted(device.info().kind)?;
        Opened::with_guards(device, profiler, guards)
    }

    /// Opens the stream, with or without guards around users' buffers.
    pub fn with_guards(
        device: Arc<dyn Device>,
        profiler: ProfilerHandle,
        guards: Option<Guards>,
    ) -> Result<Arc<Opened>> {
        let stream = Mutex::new(device.clone().stream()?);
        let (cache, reuse) = (Cache::new(device.info().memory), Reuse::new(device.info().memory));
        Ok(Arc::new_cyclic(|me| Opened { device, profiler, cache, guards, stream, reuse, me: me.clone() }))
    }

    /// Memory of any contents for a result.
    pub(super) fn memory_of_result(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        self.reuse.take(bytes, |bytes| self.device.allocate_unset(bytes))
    }

    /// Gives back what is kept for the next work.
    pub fn trim(&self) {
        self.cache.trim(self);
        self.reuse.clear();
        self.device.trim();
    }

    /// Locks the stream: one thread uses it at a time.
    pub fn lock(&self) -> MutexGuard<'_, Box<dyn Stream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` with the stream locked, in the default floating-point environment. Drivers compute on the host too,
    /// and the caller's rounding modes and traps must not reach them.
    pub fn with<R>(&self, work: impl FnOnce(&mut dyn Stream) -> Result<R>) -> Result<R> {
        let _environment = DefaultEnvironment::enter();
        work(&mut **self.lock())
    }

    /// If the caller's wait can be interrupted, waits for the stream's work without holding the lock.
    pub fn catch_up(&self) -> Result<()> {
        if interrupt::is_possible() {
            let event = self.with(|stream| stream.event())?;
            interrupt::wait(&*event, u64::MAX)?;
        }
        Ok(())
    }

    /// Waits for the stream's work. Then the backend gives memory at once, and none is kept for results.
    pub fn finish(&self) -> Result<()> {
        self.catch_up()?;
        let done = self.with(|stream| stream.synchronize());
        self.reuse.clear();
        done
    }

    /// Runs `work` on the context's stream, and records it if a profile is running.
    pub fn watched(&self, what: &What<'_>, mut work: impl FnMut(&mut dyn Stream) -> Result<()>) -> Result<()> {
        self.watch(Some(0), &mut **self.lock(), what, &mut work)
    }

    /// Starts a watch over the stream with this number.
    #[inline]
    pub fn begin_watch(&self, number: usize, stream: &mut dyn Stream) -> Watch<'_> {
        Watch::begin(&self.profiler, &self.device, number, stream)
    }

    /// Runs `work` on a stream. Records it if a profile is running and the stream has a number.
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

/// A GPU of a context, which is opened when first needed.
pub(crate) struct Slot {
    info: DeviceInfo,
    opened: OnceLock<Result<Arc<Opened>>>,
    cache: Option<PathBuf>,
    workers: Arc<dyn Workers>,
    profiler: ProfilerHandle,
    prepare: Prepare,
}

/// What a device gets from the cache folder when it is opened.
type Prepare = fn(Option<&Path>, &dyn Device);

impl Slot {
    /// Makes a slot for a GPU. `workers` help with its copies from and to the host.
    pub fn new(
        info: DeviceInfo,
        config: &Config,
        workers: Arc<dyn Workers>,
        profiler: ProfilerHandle,
        prepare: Prepare,
    ) -> Slot {
        Slot { info, opened: OnceLock::new(), cache: config.cache_folder(), workers, profiler, prepare }
    }

    /// Describes the GPU. The contract level is known once the GPU has been opened.
    pub fn info(&self) -> &DeviceInfo {
        match self.opened.get() {
            Some(Ok(opened)) => opened.device.info(),
            _ => &self.info,
        }
    }

    /// Opens the GPU on the first call and returns it. If opening fails, every call returns the same error.
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

    /// Returns the GPU if it has been opened.
    pub fn if_opened(&self) -> Option<&Arc<Opened>> {
        self.opened.get()?.as_ref().ok()
    }

    fn open(&self) -> Result<Arc<Opened>> {
        let _environment = DefaultEnvironment::enter();
        let id = &self.info.id;
        let Some((backend, number)) = Backend::of(id) else { fail!(Internal, "'{id}' belongs to no backend") };
        let opening = Opening { cache: self.cache.clone(), workers: Some(self.workers.clone()) };
        let device = (backend.open)(number, opening)?;
        (self.prepare)(self.cache.as_deref(), &*device);
        Opened::new(device, self.profiler.clone())
    }
}
