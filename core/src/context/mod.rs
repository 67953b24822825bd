//! Contexts: opened devices, and what tensors keep on them. `running.rs` has the path of a command to a device, `profiling.rs`
//! profiles, `operators.rs` the operators on tensors.

mod joined;
#[cfg(feature = "lend")]
mod lending;
mod operators;
mod parallel;
#[cfg(feature = "profile")]
mod profiling;
mod running;

#[cfg(feature = "lend")]
pub use lending::Writing;

use crate::config::Config;
use crate::contract::Precision;
use crate::devices::{self, Choice, Named, Opened, Slot};
use crate::dispatch::{AutoDispatcher, DeviceProfile, Places, calibration, tiles};
use crate::error::{Result, fail};
use crate::family::Family;
use crate::fpenv::DefaultEnvironment;
use crate::hal::cpu::CpuDevice;
use crate::hal::{Device, DeviceInfo, DeviceKind, TileCosts};
use crate::isa::Isa;
use crate::log::log;
use crate::profile::ProfilerHandle;
use crate::tensor::{Tensor, TensorCacheUse};
use std::any::Any;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

/// How to open a context. With `Default`, the environment decides.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// The CPU's instruction set. `None`: `ADEAD_ISA`, or else the best one.
    pub isa: Option<Isa>,
    /// CPU threads, 1 to 1024. `None`: `ADEAD_NUM_THREADS`, or else as many as the machine allows.
    pub threads: Option<usize>,
    /// The default precision of products ([`Context::set_precision`]). `None`: f32.
    pub precision: Option<Precision>,
}

/// A value that a higher module keeps in a context, such as the cache of pipelines.
pub(crate) trait Kept: Any + Send + Sync {
    /// Releases everything it holds. [`Context::trim`] calls it.
    fn clear(&self);
}

/// Holds opened devices and runs operations on them. Clones share the devices. Threads may share a context.
#[derive(Clone)]
pub struct Context {
    cpu: Arc<CpuDevice>,
    gpus: Arc<[Slot]>,
    /// The number of devices before the GPUs in the dispatcher's list: 1, or 0 if the CPU was not named.
    before: usize,
    dispatcher: Arc<AutoDispatcher>,
    profiler: ProfilerHandle,
    /// The CPU as a device with a stream, for buffers on a machine without a GPU. Opened when first used.
    host: Arc<OnceLock<Arc<Opened>>>,
    kept: Arc<OnceLock<Box<dyn Kept>>>,
    /// The default precision of products. Clones share it.
    precision: DefaultPrecision,
}

/// A precision that threads may set and read.
#[derive(Clone, Debug, Default)]
pub(crate) struct DefaultPrecision(Arc<AtomicI32>);

impl DefaultPrecision {
    #[inline]
    pub fn get(&self) -> Precision {
        match self.0.load(Ordering::Relaxed) {
            0 => Precision::F32,
            code => Precision::ALL.into_iter().find(|&precision| precision as i32 == code).unwrap_or_default(),
        }
    }
}

impl Context {
    /// Opens the best device of the machine, or the one that `ADEAD_DEVICE` or `adead.toml` names.
    pub fn auto() -> Result<Context> {
        Context::configured(None, &ContextOptions::default(), &Config::load()?)
    }

    /// Opens a device by name: `auto`, `cpu`, `vulkan` (the best GPU), `vulkan:1`, a part of a GPU's name, or its UUID. Returns
    /// `backend_unavailable` if the device is missing, `unsupported` if it can't keep the arithmetic contract.
    ///
    /// Several names with commas, such as `cpu,cuda:0` or `cuda:0,cuda:1`, open devices that work as one: large operations on
    /// host memory are divided among them by rows of the result, with the same bits. `hybrid` is the CPU and every usable GPU
    /// that `auto` would consider; without a GPU it is the CPU. A device that is named twice is `invalid_argument`.
    pub fn open(device: &str) -> Result<Context> {
        Context::with_options(device, &ContextOptions::default())
    }

    /// Opens a device by name, with options.
    pub fn with_options(device: &str, options: &ContextOptions) -> Result<Context> {
        Context::configured(Some(device), options, &Config::load()?)
    }

    /// Opens a device by name, or else the one that the configuration names. Options that are not set come from the
    /// configuration.
    pub fn configured(device: Option<&str>, options: &ContextOptions, config: &Config) -> Result<Context> {
        let _environment = DefaultEnvironment::enter();
        let device = device.unwrap_or(config.device_name());
        let cpu = Arc::new(CpuDevice::open(options.isa.or(config.isa), options.threads.or(config.threads))?);
        log!(Info, "devices", "opened {}", devices::Described(cpu.info()));
        let machine = calibration::machine(cpu.info());
        let Choice { cpu: with_cpu, gpus, hybrid, named } = devices::choose(device, config)?;
        let profiler = ProfilerHandle::default();
        let slot = |info| Slot::new(info, config, cpu.clone(), profiler.clone(), tiles::load);
        let mut gpus: Vec<Slot> = gpus.into_iter().map(slot).collect();
        match named {
            Named::Chosen => {}
            Named::Usable => gpus.retain(|slot| slot.opened().is_ok()),
            // The caller named this device, so failing to open it is an error now.
            Named::Each => gpus.iter().try_for_each(|slot| slot.opened().map(|_| ()))?,
        }
        let of_cpu = with_cpu.then(|| calibration::profile(config, &machine, DeviceProfile::of_cpu(&cpu)));
        let of_gpu = |slot: &Slot| calibration::profile(config, &machine, DeviceProfile::of_gpu(slot.info()));
        let profiles = of_cpu.into_iter().chain(gpus.iter().map(of_gpu)).take(Places::MAX_DEVICES).collect();
        let dispatcher = AutoDispatcher::new(profiles)?;
        for (family, elements) in Family::ALL.into_iter().zip(config.thresholds) {
            if elements.is_some() {
                dispatcher.set_threshold(family, elements);
            }
        }
        dispatcher.set_hybrid(hybrid);
        if named == Named::Each && !hybrid {
            dispatcher.force(Some(gpus.first().map_or("cpu", |slot| &slot.info().id)))?;
        }
        let (before, gpus) = (usize::from(with_cpu), gpus.into());
        let (host, kept, precision) = Default::default();
        let context = Context { cpu, gpus, before, dispatcher: Arc::new(dispatcher), profiler, host, kept, precision };
        context.set_precision(options.precision.unwrap_or_default());
        Ok(context)
    }

    /// Makes a context that uses only one of this context's devices. `id` is an id in [`AutoDispatcher::profiles`]. It shares the
    /// opened devices, the threads and a running profile. Returns `invalid_argument` for an unknown id, and the errors of opening
    /// a GPU.
    pub fn alone(&self, id: &str) -> Result<Context> {
        let dispatcher = AutoDispatcher::new(self.dispatcher.profiles().to_vec())?;
        dispatcher.force(Some(id))?;
        if let Some(slot) = dispatcher.forced().and_then(|device| self.gpu(device)) {
            slot.opened()?;
        }
        Ok(Context { dispatcher: Arc::new(dispatcher), kept: Default::default(), ..self.clone() })
    }

    /// The GPU with this index in the dispatcher's list, or `None` for the CPU.
    pub(crate) fn gpu(&self, device: usize) -> Option<&Slot> {
        self.gpus.get(device.checked_sub(self.before)?)
    }

    /// Makes a context of the one device that holds this context's buffers: the GPU that the context was opened on or that `auto`
    /// found, else the CPU. Use it for work that should stay in one place, such as a model's layers. A GPU that was not named and
    /// can't be used is skipped. A named GPU that can't be used is an error.
    pub fn undivided(&self) -> Result<Context> {
        match self.gpus.is_empty() || self.dispatcher.forced().is_some() {
            true => Ok(self.clone()),
            false => self.alone(self.working().map_or(DeviceKind::Cpu.name(), |opened| &opened.device.info().id)),
        }
    }

    /// Returns whether every operation runs on the CPU.
    pub fn is_host_only(&self) -> bool {
        self.gpus.is_empty() || self.dispatcher.forced().is_some_and(|device| self.gpu(device).is_none())
    }

    /// Returns the description of the context's device: the device that it was opened on. A context of several devices returns
    /// the CPU, or the first GPU if it does not use the CPU.
    pub fn device_info(&self) -> &DeviceInfo {
        self.gpu(self.dispatcher.forced().unwrap_or(0)).map_or(self.cpu.info(), Slot::info)
    }

    /// Lists every device that this context can use. A GPU that was not used yet reports [`ContractLevel::Emulated`], because
    /// nothing has tested its arithmetic.
    ///
    /// [`ContractLevel::Emulated`]: crate::hal::ContractLevel::Emulated
    pub fn devices(&self) -> Vec<DeviceInfo> {
        let cpu = (self.before > 0).then(|| self.cpu.info());
        cpu.into_iter().chain(self.gpus.iter().map(Slot::info)).cloned().collect()
    }

    /// The device of buffers and users' kernels: the GPU that the context was opened on, else the first GPU, else the CPU.
    pub(crate) fn working(&self) -> Result<&Arc<Opened>> {
        if let Some(slot) = self.gpu(self.dispatcher.forced().unwrap_or(self.before)) {
            return slot.opened();
        }
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = Opened::new(self.cpu.clone(), self.profiler.clone())?;
        Ok(self.host.get_or_init(|| host))
    }

    /// Releases everything that is kept for later work: scratch memory, cached pipelines, the GPUs' copies of tensors in host
    /// memory. Worker threads finish their tasks and end. This suits a program that computes rarely. The next call allocates them
    /// again, which costs some 100 µs and repeated transfers. Other threads may compute meanwhile.
    pub fn trim(&self) {
        let _environment = DefaultEnvironment::enter();
        if let Some(kept) = self.kept.get() {
            kept.clear();
        }
        self.cpu.trim();
        for gpu in self.gpus.iter().filter_map(Slot::if_opened) {
            gpu.trim();
        }
    }

    /// Copies a tensor to one of the context's devices and returns a tensor that shares its copies with the given one. `device`
    /// is a name as in [`Context::open`]: `cuda`, `vulkan:0`, a part of a GPU's name. `cpu` is [`Tensor::to_cpu`]. It may return
    /// while the copy is still in progress. Returns `invalid_argument` for a device that the context does not have.
    pub fn to(&self, tensor: &Tensor, device: &str) -> Result<Tensor> {
        match self.named(device)? {
            Some(slot) => slot.opened()?.upload_tensor(tensor)?,
            None => return tensor.to_cpu(),
        }
        Ok(tensor.clone())
    }

    /// Returns the bytes that tensors keep on one of the context's devices. They are zero on the processor and on a GPU that was
    /// not used yet. Returns `invalid_argument` for a device that the context does not have.
    pub fn tensor_cache(&self, device: &str) -> Result<TensorCacheUse> {
        let opened = self.named(device)?.and_then(Slot::if_opened);
        Ok(opened.map_or_else(TensorCacheUse::default, |gpu| gpu.cache.now()))
    }

    /// Calls `work` with one of the context's GPUs and the costs of the tiles of its products, which it may set. `None` if the device
    /// is the processor or does not choose between tiles ([`Device::tiles`](crate::hal::Device::tiles)). Returns `invalid_argument` for a device that the context does not have, and the
    /// error of opening it.
    pub fn with_tiles<R>(&self, device: &str, work: impl FnOnce(&dyn Device, &TileCosts) -> R) -> Result<Option<R>> {
        let Some(slot) = self.named(device)? else { return Ok(None) };
        let device = &slot.opened()?.device;
        Ok(device.tiles().map(|costs| work(&**device, costs)))
    }

    /// The GPU with this name, or `None` for the processor.
    #[inline(never)]
    fn named(&self, device: &str) -> Result<Option<&Slot>> {
        let _environment = DefaultEnvironment::enter();
        let slot = self.gpus.iter().find(|slot| devices::names_device(device, slot.info()));
        if slot.is_none() && device != DeviceKind::Cpu.name() {
            let mut ids = String::from(DeviceKind::Cpu.name());
            self.gpus.iter().for_each(|slot| ids.extend([", ", &slot.info().id]));
            fail!(InvalidArgument, "no device '{device}' in this context: it has {ids}")
        }
        Ok(slot)
    }

    /// Sets the most bytes that tensors may keep on each of the context's GPUs. The default is half of the GPU's memory. The
    /// least recently used copies are evicted, now and when others are added. Values that exist nowhere else are copied to the
    /// host first. An operation's own operands may exceed the limit. With 0, nothing that is also in host memory stays on a GPU.
    /// Returns the errors of opening a GPU and of reading from it.
    pub fn set_tensor_cache(&self, bytes: u64) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        for slot in self.gpus.iter() {
            let gpu = slot.opened()?;
            gpu.cache.set_budget(&**gpu, bytes)?;
        }
        Ok(())
    }

    /// Sets the default precision of this context and its clones: the precision of products for which none is given. It applies
    /// to calls, pipelines and programs that start or are compiled later. The initial value is f32, unless
    /// [`ContextOptions::precision`] sets another. Layers keep the precision that the context had when they were made.
    pub fn set_precision(&self, precision: Precision) {
        self.precision.0.store(precision as i32, Ordering::Relaxed);
    }

    /// Returns a context with a default precision of its own. It shares the devices, threads, profile and other settings. Setting
    /// the precision of one does not change the other. A layer or a pipeline can then have another precision than the rest of a
    /// model: `Linear::new(&weight, None, &context.with_precision(Precision::Fixed24))`.
    pub fn with_precision(&self, precision: Precision) -> Context {
        let context = Context { precision: DefaultPrecision::default(), ..self.clone() };
        context.set_precision(precision);
        context
    }

    /// Returns the default precision: the precision of products for which none is given.
    #[inline]
    pub fn precision(&self) -> Precision {
        self.precision.get()
    }

    /// The shared default precision, for objects that outlive a call.
    pub(crate) fn default_precision(&self) -> &DefaultPrecision {
        &self.precision
    }

    /// The CPU device.
    pub(crate) fn cpu(&self) -> &Arc<CpuDevice> {
        &self.cpu
    }

    /// The profiler.
    pub(crate) fn profiler(&self) -> &ProfilerHandle {
        &self.profiler
    }

    /// The value that another module keeps in this context, made on first use. `None` if a value of another type is kept.
    pub(crate) fn kept<T: Kept + Default>(&self) -> Option<&T> {
        let kept: &dyn Any = &**self.kept.get_or_init(|| Box::new(T::default()));
        kept.downcast_ref()
    }

    /// Returns the dispatcher that chooses between this context's devices.
    pub fn dispatcher(&self) -> &AutoDispatcher {
        &self.dispatcher
    }

    /// Returns the id of the device for work on this many elements: see [`AutoDispatcher::select`].
    #[inline]
    pub fn select(&self, elements: usize) -> &str {
        &self.dispatcher.profiles()[self.dispatcher.select(elements)].id
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let info = self.device_info();
        write!(f, "Context({}", info.id)?;
        if self.dispatcher.is_hybrid() && self.dispatcher.forced().is_none() {
            self.dispatcher.profiles()[1..].iter().try_for_each(|profile| write!(f, ",{}", profile.id))?;
        }
        write!(f, ": {}, {}", info.name, info.arch)?;
        match (info.kind, info.units) {
            (DeviceKind::Cpu, threads) => write!(f, ", {threads} threads")?,
            // The driver does not report its units.
            (_, 0) => {}
            (_, units) => write!(f, ", {units} units")?,
        }
        match self.precision() {
            Precision::F32 => write!(f, ")"),
            precision => write!(f, ", products in {})", precision.name()),
        }
    }
}
