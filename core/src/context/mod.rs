//! A context: opened devices and the road from a call to a kernel.

mod joined;
#[cfg(feature = "profile")]
mod profiling;

use crate::command::Command;
use crate::config::Config;
use crate::devices::{self, Choice, Named, Opened, Reuse, Slot};
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

/// How to open a context; `Default` asks the environment.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// The CPU's instruction set; `None` is `ADEAD_ISA`, else the best.
    pub isa: Option<Isa>,
    /// CPU threads, 1 to 1024; `None` is `ADEAD_NUM_THREADS`, else what the machine gives.
    pub threads: Option<usize>,
}

/// What a room above contexts keeps in one.
pub(crate) trait Kept: Any + Send + Sync {
    /// Lets go of all of it: [`Context::trim`].
    fn clear(&self);
}

/// Opened devices. Clones share them; threads may too.
#[derive(Clone)]
pub struct Context {
    cpu: Arc<CpuDevice>,
    gpus: Arc<[Slot]>,
    /// How many of the dispatcher's devices come before the GPUs: 1, or 0 where the CPU is not among those that were named.
    before: usize,
    dispatcher: Arc<AutoDispatcher>,
    profiler: ProfilerHandle,
    /// The CPU as a device with a stream, for buffers where there is no GPU; made when first asked for.
    host: Arc<OnceLock<Arc<Opened>>>,
    kept: Arc<OnceLock<Box<dyn Kept>>>,
    /// Has the GPU use memory of results again.
    reuse: Option<Arc<Reuse>>,
}

impl Context {
    /// The best device at hand, or the one that `ADEAD_DEVICE` or `adead.toml` names.
    pub fn auto() -> Result<Context> {
        Context::configured(None, &ContextOptions::default(), &Config::load()?)
    }

    /// A device by name: `auto`, `cpu`, `vulkan` (the best GPU), `vulkan:1`, a part of a GPU's name, or its UUID.
    /// `backend_unavailable` if it is not there, `unsupported` if it can't keep the arithmetic contract.
    ///
    /// Several with commas between them, such as `cpu,cuda:0` or `cuda:0,cuda:1`, work as one: large operations on host memory
    /// are divided among them by rows of their results, with the same bits. `hybrid` is the CPU and every GPU that `auto` would
    /// take and that can be used; where there is none, the CPU. `invalid_argument` for a device that is named twice.
    pub fn open(device: &str) -> Result<Context> {
        Context::with_options(device, &ContextOptions::default())
    }

    /// A device by name, with options.
    pub fn with_options(device: &str, options: &ContextOptions) -> Result<Context> {
        Context::configured(Some(device), options, &Config::load()?)
    }

    /// A device by name, else the one that the configuration names; with options, and where they say nothing, with the
    /// configuration's.
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
            // A device that was asked for and can't be used is an error now.
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
        let (host, kept, reuse) = Default::default();
        Ok(Context { cpu, gpus, before, dispatcher: Arc::new(dispatcher), profiler, host, kept, reuse })
    }

    /// A context of one of this context's devices alone, by its id among [`AutoDispatcher::profiles`]. It shares what is opened, the
    /// threads, and a profile that is under way. `invalid_argument` for an id that is not there, and the errors of opening a GPU.
    pub fn alone(&self, id: &str) -> Result<Context> {
        let dispatcher = AutoDispatcher::new(self.dispatcher.profiles().to_vec())?;
        dispatcher.force(Some(id))?;
        if let Some(slot) = dispatcher.forced().and_then(|device| self.gpu(device)) {
            slot.opened()?;
        }
        Ok(Context { dispatcher: Arc::new(dispatcher), kept: Default::default(), reuse: None, ..self.clone() })
    }

    /// The GPU that is the dispatcher's device of that number, unless it is the CPU.
    pub(crate) fn gpu(&self, device: usize) -> Option<&Slot> {
        self.gpus.get(device.checked_sub(self.before)?)
    }

    /// A context of the one device where this one's buffers go: the GPU that it was opened on or that `auto` found, else the CPU.
    /// For work that is better done in one place than divided or chosen for each operation, as a model's layers are. A GPU that
    /// nobody named and that can't be used is left alone; that of one that was named is an error. While the context is there, a GPU
    /// uses memory of results that are gone again.
    pub fn undivided(&self) -> Result<Context> {
        let mut context = match self.gpus.is_empty() || self.dispatcher.forced().is_some() {
            true => self.clone(),
            false => self.alone(self.working().map_or(DeviceKind::Cpu.name(), |opened| &opened.device.info().id))?,
        };
        if let Some(slot) = context.dispatcher.forced().and_then(|device| context.gpu(device)) {
            context.reuse = Some(slot.opened()?.reuse());
        }
        Ok(context)
    }

    /// Whether every operation runs on the processor alone.
    pub fn is_host_only(&self) -> bool {
        self.gpus.is_empty() || self.dispatcher.forced().is_some_and(|device| self.gpu(device).is_none())
    }

    /// What its device is: the one that it was opened on; the CPU of one that chooses or divides, the first of several GPUs.
    pub fn device_info(&self) -> &DeviceInfo {
        self.gpu(self.dispatcher.forced().unwrap_or(0)).map_or(self.cpu.info(), Slot::info)
    }

    /// Every device that this context can use. A GPU that was not used yet says [`ContractLevel::Emulated`], as nobody has
    /// looked how it computes.
    ///
    /// [`ContractLevel::Emulated`]: crate::hal::ContractLevel::Emulated
    pub fn devices(&self) -> Vec<DeviceInfo> {
        let cpu = (self.before > 0).then(|| self.cpu.info());
        cpu.into_iter().chain(self.gpus.iter().map(Slot::info)).cloned().collect()
    }

    /// Where buffers and users' kernels go: the GPU that it was opened on, else the first, else the CPU.
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

    /// Gives back what is kept for the next work: scratch memory goes to the system, pipelines that were compiled to be run once
    /// go, copies that GPUs have of tensors in host memory too, worker threads finish what they have begun and end. For a program
    /// that computes now and then; the next call takes them anew, which costs some 100 µs and what moves again.
    /// May be called while others compute.
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

    /// A tensor with a copy on one of the context's devices, by its name, as [`Context::open`] takes it: `cuda`, `vulkan:0`, a
    /// part of a GPU's name; `cpu` is [`Tensor::to_cpu`]. It shares its copies with the one that was given, which is there then,
    /// too. Returns when the values may be on their way. `invalid_argument` for a device that the context has not.
    pub fn to(&self, tensor: &Tensor, device: &str) -> Result<Tensor> {
        match self.named(device)? {
            Some(slot) => slot.opened()?.bring(tensor)?,
            None => return tensor.to_cpu(),
        }
        Ok(tensor.clone())
    }

    /// What tensors keep on one of the context's devices, by its name: nothing on the processor and on a GPU that was not used
    /// yet. `invalid_argument` for a device that the context has not.
    pub fn tensor_cache(&self, device: &str) -> Result<TensorCacheUse> {
        let opened = self.named(device)?.and_then(Slot::if_opened);
        Ok(opened.map_or_else(TensorCacheUse::default, |gpu| gpu.cache.now()))
    }

    /// The GPU of that name, `None` for the processor.
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

    /// The most bytes that tensors may keep on each of the context's GPUs, half of its memory unless this was called. Copies that
    /// were not used for the longest time leave, now and when others come; values that are nowhere else are read first, and what
    /// one operation needs is there whatever the budget. With 0, nothing stays that is in host memory too. Errors are those of
    /// opening a GPU and of reading.
    pub fn set_tensor_cache(&self, bytes: u64) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        for slot in self.gpus.iter() {
            let gpu = slot.opened()?;
            gpu.cache.set_budget(&**gpu, bytes)?;
        }
        Ok(())
    }

    /// The processor.
    pub(crate) fn cpu(&self) -> &Arc<CpuDevice> {
        &self.cpu
    }

    /// What records, where a profile is under way.
    pub(crate) fn profiler(&self) -> &ProfilerHandle {
        &self.profiler
    }

    /// What the room of pipelines keeps in it, made when it is first asked for. `None` if it is of another type.
    pub(crate) fn kept<T: Kept + Default>(&self) -> Option<&T> {
        let kept: &dyn Any = &**self.kept.get_or_init(|| Box::new(T::default()));
        kept.downcast_ref()
    }

    /// What chooses between these devices, in the same order.
    pub fn dispatcher(&self) -> &AutoDispatcher {
        &self.dispatcher
    }

    /// The id of the device for work on that many elements; see [`AutoDispatcher::select`].
    #[inline]
    pub fn select(&self, elements: usize) -> &str {
        &self.dispatcher.profiles()[self.dispatcher.select(elements)].id
    }

    /// On which device [`Context::run`] would run these operands, or how many rows of the result on each, why, and what every
    /// device would take. Runs nothing.
    pub fn explain(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Explanation<'_>> {
        let inputs: Vec<_> = operands.iter().map(|tensor| tensor.map(Tensor::view)).collect();
        let output = op.info().infer(attrs, &inputs)?;
        // SAFETY: the rule gave this description, and there is no memory of it.
        let command = unsafe { Command::unchecked(op, attrs, &inputs, ViewMut::nowhere(&output)) };
        let cut = Cut::of(op, attrs, &inputs, &output);
        Ok(self.dispatcher.explain_parts(&self.dispatcher.task(&command), cut.as_ref()))
    }

    /// Executes a checked command and returns when its output is written.
    ///
    /// With operands in buffers of a GPU it runs there, and with the output in one too it returns when it is enqueued: reading
    /// the buffer waits. Where it is ended early ([`Interrupt`](crate::Interrupt)), parts of the output are written.
    #[inline]
    pub fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        if command.has_buffers() { self.execute_in_turn(command) } else { self.execute_now(command) }
    }

    /// A command on buffers: those in host memory wait for their turns.
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
        // Costs are computed.
        let _environment = DefaultEnvironment::enter();
        let target = self.target(command)?;
        self.execute_on(target, command)
    }

    /// Whether nothing but the processor comes into question, which needs no look at costs.
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

    /// Where a command is done, and why there.
    fn target<'a>(&'a self, command: &Command<'a>) -> Result<Target<'a>> {
        if let Some(id) = devices::place_of(command) {
            let slot = self.gpus.iter().find(|slot| slot.info().id == id);
            let Some(slot) = slot else {
                fail!(InvalidArgument, "an operand is on {id}, which is not of this context")
            };
            return Ok(Target::Gpu(slot.opened()?, Reason::Operands));
        }
        // Without GPUs it is here for a profile, which tells why.
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
            // Nobody asked for a GPU that can't be used.
            Err(_) if choice.why != Why::Forced => Ok(Target::Cpu(Reason::Fallback)),
            Err(error) => Err(error),
        }
    }

    /// How a command could be divided, where that is wanted. Packed operands are in the layout of the CPU's kernels.
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
                // Nobody asked for a GPU that can't be used.
                Some(Err(_)) => return self.execute_on_cpu(command, Reason::Fallback),
            });
        }
        log!(Trace, "dispatch", "{} is divided, with these rows for the devices: {:?}", command.op(), split.rows);
        hybrid::execute((&self.cpu, &self.profiler), &parts, cut, command.parts().3)
    }

    /// Executes an operation into a new tensor. Operands are in the operation's order, `None` where an optional one is
    /// left out; trailing ones may be missing.
    ///
    /// A result that a GPU computes stays there until somebody reads it ([`Tensor::places`]), and this returns when the
    /// operation is enqueued.
    pub fn run(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Tensor> {
        let mut inputs = Inputs::new();
        operands.iter().for_each(|tensor| inputs.push(tensor.map(Tensor::view)));
        self.run_on(op, attrs, &inputs)
    }

    /// [`Context::run`] with operands that are views: of anyone's memory, or of a [`Packed`] matrix.
    #[inline(never)]
    pub fn run_views(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Tensor> {
        self.run_on(op, attrs, inputs)
    }

    /// In both of its callers, as each further call costs small operations some percent.
    #[inline(always)]
    fn run_on(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>]) -> Result<Tensor> {
        let _turns = if in_buffers(inputs) { Some(Turns::of_operands(inputs, None)?) } else { None };
        let mut meta = Meta::scalar();
        op.info().describe(attrs, inputs.into(), &mut meta)?;
        if !self.gpus.is_empty() || self.profiler.is_on() {
            // SAFETY: the rule gave this description, and there is no memory of it.
            let command = unsafe { Command::unchecked(op, attrs, inputs, ViewMut::nowhere(&meta)) };
            if let Some(tensor) = self.run_among(command)? {
                return Ok(tensor);
            }
        }
        Tensor::result(self.cpu.results(), &meta, |output| {
            // SAFETY: the output is what the rule says and memory of its own.
            self.cpu.execute(&mut unsafe { Command::unchecked(op, attrs, inputs, output) })
        })
    }

    /// A command without memory for its result, wherever it is best done. `None` where nothing but the processor comes into
    /// question.
    #[inline(never)]
    fn run_among(&self, mut command: Command<'_>) -> Result<Option<Tensor>> {
        if self.is_for_cpu(&command) {
            return Ok(None);
        }
        // Costs are computed.
        let _environment = DefaultEnvironment::enter();
        let tensor = match self.target(&command)? {
            Target::Gpu(gpu, reason) => gpu.compute(&mut command, reason)?,
            target => {
                let meta = command.output().meta();
                Tensor::result(self.cpu.results(), meta, |output| {
                    // SAFETY: the output is described as the command's and memory of its own.
                    self.execute_on(target, &mut unsafe { command.with_output(output) })
                })?
            }
        };
        Ok(Some(tensor))
    }

    /// Packs a matrix that is multiplied with many times, as the right operand of [`Context::matmul_packed`]: `[K, N]`,
    /// or with `trans_b` `[N, K]`, of f32, f16 or bf16, which are widened here. Packing takes as long as some ten such
    /// products of one row. `shape_mismatch` unless b is a matrix, `dtype_mismatch` for integers.
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

/// Where a command is done.
enum Target<'a> {
    Cpu(Reason),
    Gpu(&'a Arc<Opened>, Reason),
    /// On several, which is rare and has more to say.
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
            // Where the driver does not tell.
            (_, 0) => write!(f, ")"),
            (_, units) => write!(f, ", {units} units)"),
        }
    }
}
