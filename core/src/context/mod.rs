//! Contexts: opened devices, and the path of a command to one of them.

#[cfg(feature = "profile")]
mod profiling;

use crate::command::Command;
use crate::config::Config;
use crate::devices::{self, Choice, Named, Opened, Slot};
use crate::dispatch::{AutoDispatcher, DeviceProfile, Explanation, Places, Split, Why, calibration};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::family::Family;
use crate::fpenv::DefaultEnvironment;
use crate::hal::cpu::CpuDevice;
use crate::hal::{Device, DeviceInfo, DeviceKind};
use crate::hybrid;
use crate::isa::Isa;
use crate::log::log;
use crate::operand::{Inputs, Meta, Place, View, ViewMut, in_buffers};
use crate::operand::{Packed, Turns};
use crate::ops::{Attrs, Cut, Op};
use crate::profile::{ProfilerHandle, Reason};
use crate::tensor::{Tensor, TensorCacheUse};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// How to open a context. With `Default`, the environment decides.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// The CPU's instruction set. `None`: `ADEAD_ISA`, or else the best one.
    pub isa: Option<Isa>,
    /// CPU threads, 1 to 1024. `None`: `ADEAD_NUM_THREADS`, or else as many as the machine allows.
    pub threads: Option<usize>,
}

/// A value that a room above contexts keeps in a context, such as the cache of pipelines.
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
        let slot = |info| Slot::new(info, config, cpu.clone(), profiler.clone());
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
        let (host, kept) = Default::default();
        Ok(Context { cpu, gpus, before, dispatcher: Arc::new(dispatcher), profiler, host, kept })
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

    /// Returns the description of the context's device: the device that it was opened on, the CPU if it chooses or divides, the
    /// first of several GPUs.
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
            gpu.cache.trim(&**gpu);
            gpu.device.trim();
        }
    }

    /// Copies a tensor to one of the context's devices and returns a tensor that shares its copies with the given one. `device`
    /// is a name as in [`Context::open`]: `cuda`, `vulkan:0`, a part of a GPU's name. `cpu` is [`Tensor::to_cpu`]. It may return
    /// while the copy is still in progress. Returns `invalid_argument` for a device that the context does not have.
    pub fn to(&self, tensor: &Tensor, device: &str) -> Result<Tensor> {
        match self.named(device)? {
            Some(slot) => slot.opened()?.bring(tensor)?,
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

    /// The GPU with this name, or `None` for the processor.
    #[inline(never)]
    fn named(&self, device: &str) -> Result<Option<&Slot>> {
        let _environment = DefaultEnvironment::enter();
        let slot = self.gpus.iter().find(|slot| devices::means(device, slot.info()));
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

    /// The CPU device.
    pub(crate) fn cpu(&self) -> &Arc<CpuDevice> {
        &self.cpu
    }

    /// The profiler.
    pub(crate) fn profiler(&self) -> &ProfilerHandle {
        &self.profiler
    }

    /// The value that another room keeps in this context, made on first use. `None` if a value of another type is kept.
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

    /// Explains on which device [`Context::run`] would run this operation and why, or how it would divide the result's rows, with
    /// the estimate of every device. Runs nothing.
    pub fn explain(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Explanation<'_>> {
        let inputs: Vec<_> = operands.iter().map(|tensor| tensor.map(Tensor::view)).collect();
        let output = op.info().infer(attrs, &inputs)?;
        // SAFETY: the shape rule returned this description, and the output has no memory.
        let command = unsafe { Command::unchecked(op, attrs, &inputs, ViewMut::nowhere(&output)) };
        let cut = Cut::of(op, attrs, &inputs, &output);
        Ok(self.dispatcher.explain_parts(&self.dispatcher.task(&command), cut.as_ref()))
    }

    /// Executes a checked command.
    ///
    /// The output is written when this returns, with one exception: if operands and output are in buffers of a GPU, it returns
    /// once the command is enqueued, and reading the buffer waits. A command that ends early ([`Interrupt`](crate::Interrupt))
    /// has written parts of the output.
    #[inline]
    pub fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        if command.has_buffers() { self.execute_in_turn(command) } else { self.execute_now(command) }
    }

    /// Executes a command on buffers. Buffers in host memory wait for their turns.
    #[inline(never)]
    fn execute_in_turn(&self, command: &mut Command<'_>) -> Result<()> {
        let _turns = Turns::of_operands(command.inputs(), Some(command.output().place()))?;
        self.execute_now(command)
    }

    #[inline(always)]
    fn execute_now(&self, command: &mut Command<'_>) -> Result<()> {
        let only = self.gpus.is_empty() && !self.profiler.is_on();
        if only { self.cpu.execute(command) } else { self.execute_among(command) }
    }

    #[inline(never)]
    fn execute_among(&self, command: &mut Command<'_>) -> Result<()> {
        if self.is_for_cpu(command) {
            return self.cpu.execute(command);
        }
        // The cost model computes in floating point, so it needs the default environment.
        let _environment = DefaultEnvironment::enter();
        let target = self.target(command)?;
        self.execute_on(target, command)
    }

    /// Whether the command is so small that the processor takes it without a look at costs.
    fn is_for_cpu(&self, command: &Command<'_>) -> bool {
        let tiny = !self.gpus.is_empty() && !self.profiler.is_on() && self.dispatcher.is_tiny(command);
        tiny && devices::are_on_host(command)
    }

    fn execute_on(&self, target: Target<'_>, command: &mut Command<'_>) -> Result<()> {
        match target {
            Target::Cpu(reason) => self.execute_on_cpu(command, reason),
            Target::Gpu(gpu, reason) => gpu.execute(command, reason),
            Target::Parts(parts) => self.execute_parts(command, &parts.0, &parts.1),
        }
    }

    fn execute_on_cpu(&self, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        devices::bring_to_host(command.inputs())?;
        self.profiler.execute(&self.cpu, command, reason)
    }

    /// Decides where a command runs, and the reason.
    fn target<'a>(&'a self, command: &Command<'a>) -> Result<Target<'a>> {
        if let Some(id) = devices::place_of(command) {
            let slot = self.gpus.iter().find(|slot| slot.info().id == id);
            let Some(slot) = slot else {
                fail!(InvalidArgument, "an operand is on {id}, which this context does not use")
            };
            return Ok(Target::Gpu(slot.opened()?, Reason::Operands));
        }
        // A context without GPUs comes here only for a profile, which needs the dispatcher's reason.
        if !self.gpus.is_empty() && self.dispatcher.done_before_others_begin(command) && devices::are_on_host(command) {
            return Ok(Target::Cpu(Reason::Chosen(Why::Cheapest)));
        }
        let cut = self.cut(command);
        let (choice, split) = match &cut {
            Some(cut) => self.dispatcher.choose_parts(&self.dispatcher.task(command), Some(cut)),
            None => (self.dispatcher.choose(command), None),
        };
        if let (Some(cut), Some(split)) = (cut, split) {
            return Ok(Target::Parts(Box::new((cut, split))));
        }
        let chosen = Reason::Chosen(choice.why);
        let Some(slot) = self.gpu(choice.device) else { return Ok(Target::Cpu(chosen)) };
        if is_packed(command) {
            return Ok(Target::Cpu(Reason::Packed));
        }
        match slot.opened() {
            Ok(gpu) => Ok(Target::Gpu(gpu, chosen)),
            // The dispatcher chose this GPU, the caller did not: if it can't be used, the CPU computes.
            Err(_) if choice.why != Why::Forced => Ok(Target::Cpu(Reason::Fallback)),
            Err(error) => Err(error),
        }
    }

    /// Returns how the command can be divided, if the context divides. Packed operands have the layout of the CPU's kernels.
    fn cut<'a>(&self, command: &Command<'a>) -> Option<Cut<'a>> {
        let divisible = self.dispatcher.is_hybrid() && !is_packed(command);
        if divisible { Cut::of(command.op(), command.attrs(), command.inputs(), command.output().meta()) } else { None }
    }

    #[inline(never)]
    fn execute_parts(&self, command: &mut Command<'_>, cut: &Cut<'_>, split: &Split) -> Result<()> {
        let mut parts = Vec::with_capacity(split.rows.len());
        for (device, &rows) in split.rows.iter().enumerate() {
            parts.push(match self.gpu(device).filter(|_| rows > 0).map(Slot::opened) {
                Some(Ok(gpu)) => (Some(&**gpu), rows),
                None => (None, rows),
                // The dispatcher chose this GPU, the caller did not: if it can't be used, the CPU computes.
                Some(Err(_)) => return self.execute_on_cpu(command, Reason::Fallback),
            });
        }
        log!(Trace, "dispatch", "{} is divided, with these rows for the devices: {:?}", command.op(), split.rows);
        hybrid::execute((&self.cpu, &self.profiler), &parts, cut, command.parts().3)
    }

    /// Executes an operation and returns its result as a new tensor. Operands are in the operation's order, `None` for an
    /// optional operand that is left out. Trailing optional operands may be missing.
    ///
    /// A result that a GPU computes stays there until it is read ([`Tensor::places`]), and this returns once the operation is
    /// enqueued.
    pub fn run(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Tensor> {
        let mut inputs = Inputs::new();
        operands.iter().for_each(|tensor| inputs.push(tensor.map(Tensor::view)));
        self.run_on(op, attrs, &inputs)
    }

    /// Executes an operation like [`Context::run`], on views: of the caller's memory, or of a [`Packed`] matrix.
    #[inline(never)]
    pub fn run_views(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Tensor> {
        self.run_on(op, attrs, inputs)
    }

    /// Inlined into both callers, because one more call costs small operations a few percent.
    #[inline(always)]
    fn run_on(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Tensor> {
        let _turns = if in_buffers(inputs) { Some(Turns::of_operands(inputs, None)?) } else { None };
        let mut meta = Meta::scalar();
        op.info().describe(attrs, inputs.into(), &mut meta)?;
        if !self.gpus.is_empty() || self.profiler.is_on() {
            // SAFETY: the shape rule returned this description, and the output has no memory.
            let command = unsafe { Command::unchecked(op, attrs, inputs, ViewMut::nowhere(&meta)) };
            if let Some(tensor) = self.run_among(command)? {
                return Ok(tensor);
            }
        }
        Tensor::filled(&meta, |output| {
            // SAFETY: the output has the rule's description and memory of its own.
            self.cpu.execute(&mut unsafe { Command::unchecked(op, attrs, inputs, output) })
        })
    }

    /// Runs a command without memory for its result on the best device. Returns `None` if only the processor is an option.
    #[inline(never)]
    fn run_among(&self, mut command: Command<'_>) -> Result<Option<Tensor>> {
        if self.is_for_cpu(&command) {
            return Ok(None);
        }
        // The cost model computes in floating point, so it needs the default environment.
        let _environment = DefaultEnvironment::enter();
        let tensor = match self.target(&command)? {
            Target::Gpu(gpu, reason) => gpu.compute(&mut command, reason)?,
            target => {
                let meta = command.output().meta();
                Tensor::filled(meta, |output| {
                    // SAFETY: the output has the description of the command's output and memory of its own.
                    self.execute_on(target, &mut unsafe { command.with_output(output) })
                })?
            }
        };
        Ok(Some(tensor))
    }

    /// Packs a matrix for repeated products, as the right operand of [`Context::matmul_packed`]. Its shape is `[K, N]`, or `[N,
    /// K]` with `trans_b`. f16 and bf16 are widened to f32 here. Packing takes about as long as ten products of one row. Returns
    /// `shape_mismatch` unless b is a matrix, `dtype_mismatch` for integers.
    pub fn pack(&self, b: &Tensor, trans_b: bool) -> Result<Packed> {
        let dtype = b.dtype();
        if !dtype.is_float() {
            fail!(DtypeMismatch, "pack: b is {dtype}; products are computed on f32, f16 and bf16: cast it first");
        }
        if dtype == DType::F32 {
            return self.cpu.pack(&b.view(), dtype, trans_b);
        }
        let attrs = Attrs { dtype: Some(DType::F32), ..Attrs::default() };
        let wide = self.run_views(Op::Cast, &attrs, &[Some(b.view())])?;
        self.cpu.pack(&wide.view(), dtype, trans_b)
    }
}

/// Where a command runs.
enum Target<'a> {
    Cpu(Reason),
    Gpu(&'a Arc<Opened>, Reason),
    /// Several devices. Boxed, because this case is rare and large.
    Parts(Box<(Cut<'a>, Split)>),
}

fn is_packed(command: &Command<'_>) -> bool {
    command.inputs().iter().flatten().any(|view| matches!(view.place(), Place::Packed(_)))
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
            (DeviceKind::Cpu, threads) => write!(f, ", {threads} threads)"),
            // The driver does not report its units.
            (_, 0) => write!(f, ")"),
            (_, units) => write!(f, ", {units} units)"),
        }
    }
}
