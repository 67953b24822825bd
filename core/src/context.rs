//! A context: opened devices and the road from a call to a kernel.

use crate::command::{Command, Inputs, Meta, Place, View};
use crate::config::Config;
use crate::devices::{self, Opened, Slot};
use crate::dispatch::{AutoDispatcher, DeviceProfile, Explanation, Places, Task, Why, calibration};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::cpu::{CpuDevice, DefaultEnvironment, Isa, Packed};
use crate::hal::{Device, DeviceInfo};
use crate::ops::{Attrs, Family, Op};
use crate::profile::{Profiler, Reason};
use crate::tensor::Tensor;
use std::sync::{Arc, OnceLock};

/// How to open a context; `Default` asks the environment.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// The CPU's instruction set; `None` is `ADEAD_ISA`, else the best.
    pub isa: Option<Isa>,
    /// CPU threads; `None` is `ADEAD_NUM_THREADS`, else what the machine gives.
    pub threads: Option<usize>,
}

/// Opened devices. Clones share them; threads may too.
#[derive(Clone)]
pub struct Context {
    cpu: Arc<CpuDevice>,
    gpus: Arc<[Slot]>,
    dispatcher: Arc<AutoDispatcher>,
    profiler: Arc<Profiler>,
    /// The CPU as a device with a stream, for buffers where there is no GPU; made when first asked for.
    host: Arc<OnceLock<Arc<Opened>>>,
}

impl Context {
    /// The best device at hand, or the one that `ADEAD_DEVICE` or `adead.toml` names.
    pub fn auto() -> Result<Context> {
        Context::configured(None, &ContextOptions::default(), &Config::load()?)
    }

    /// A device by name: `auto`, `cpu`, `vulkan` (the best GPU), `vulkan:1`, a part of a GPU's name, or its UUID.
    /// `backend_unavailable` if it is not there, `unsupported` if it can't keep the arithmetic contract.
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
        let device = match device.unwrap_or(config.device_name()) {
            "auto" if config.use_gpu == Some(false) => "cpu",
            device => device,
        };
        let cpu = Arc::new(CpuDevice::open(options.isa.or(config.isa), options.threads.or(config.threads))?);
        let machine = calibration::machine(cpu.info());
        let profile = calibration::profile(config, &machine, || DeviceProfile::of_cpu(&cpu));
        let profiler = Arc::<Profiler>::default();
        let slot = |info| Slot::new(info, config, cpu.clone(), profiler.clone());
        let gpus: Arc<[Slot]> = devices::choose(device, config)?.into_iter().map(slot).collect();
        let of_gpu = |slot: &Slot| calibration::profile(config, &machine, || DeviceProfile::of_gpu(slot.info()));
        let profiles = std::iter::once(profile).chain(gpus.iter().map(of_gpu)).take(Places::MAX_DEVICES).collect();
        let dispatcher = AutoDispatcher::new(profiles)?;
        for (family, elements) in Family::ALL.into_iter().zip(config.thresholds) {
            if elements.is_some() {
                dispatcher.set_threshold(family, elements);
            }
        }
        let host = Arc::default();
        if device != "auto" {
            dispatcher.force(Some(gpus.first().map_or("cpu", |slot| &slot.info().id)))?;
            // A device that was asked for and can't be used is an error now.
            gpus.iter().try_for_each(|slot| slot.opened().map(|_| ()))?;
        }
        Ok(Context { cpu, gpus, dispatcher: Arc::new(dispatcher), profiler, host })
    }

    /// What its device is: the one that it was opened on; the CPU of one that chooses.
    pub fn device_info(&self) -> &DeviceInfo {
        match self.dispatcher.forced() {
            Some(device) if device > 0 => self.gpus[device - 1].info(),
            _ => self.cpu.info(),
        }
    }

    /// Every device that this context can use. A GPU that was not used yet says [`ContractLevel::Emulated`], as nobody has
    /// looked how it computes.
    ///
    /// [`ContractLevel::Emulated`]: crate::hal::ContractLevel::Emulated
    pub fn devices(&self) -> Vec<DeviceInfo> {
        std::iter::once(self.cpu.info()).chain(self.gpus.iter().map(Slot::info)).cloned().collect()
    }

    /// Where buffers and users' kernels go: the GPU that it was opened on, else the first, else the CPU.
    pub(crate) fn working(&self) -> Result<&Arc<Opened>> {
        let forced = self.dispatcher.forced();
        if let (None | Some(1..), Some(slot)) = (forced, self.gpus.get(forced.map_or(0, |device| device.max(1) - 1))) {
            return slot.opened();
        }
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = Opened::new(self.cpu.clone(), self.profiler.clone())?;
        Ok(self.host.get_or_init(|| host))
    }

    /// Gives back what is kept for the next work: scratch memory goes to the system, worker threads finish what they have
    /// begun and end. For a program that computes now and then; the next call takes both anew, which costs some 100 µs.
    /// May be called while others compute.
    pub fn trim(&self) {
        let _environment = DefaultEnvironment::enter();
        self.cpu.trim();
        self.gpus.iter().filter_map(Slot::if_opened).for_each(|gpu| gpu.device.trim());
    }

    /// What records while a profile is under way.
    pub(crate) fn profiler(&self) -> &Profiler {
        &self.profiler
    }

    /// Waits for what this context enqueued, and leaves what a device found in it to whoever synchronises.
    pub(crate) fn wait_for_devices(&self) {
        for gpu in self.gpus.iter().filter_map(Slot::if_opened) {
            // A device that is lost has no times either.
            let _ = gpu.with(|stream| stream.event()?.wait(u64::MAX));
        }
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

    /// On which device [`Context::run`] would run these operands, why, and what every device would take. Runs nothing.
    pub fn explain(&self, op: Op, attrs: &Attrs, operands: &[Option<&Tensor>]) -> Result<Explanation<'_>> {
        let inputs: Vec<_> = operands.iter().map(|tensor| tensor.map(Tensor::view)).collect();
        let output = op.info().infer(attrs, &inputs)?;
        Ok(self.dispatcher.explain_task(&Task::new(op, attrs, &inputs, &output)))
    }

    /// Executes a checked command and returns when its output is written.
    ///
    /// With operands in buffers of a GPU it runs there, and with the output in one too it returns when it is enqueued: reading
    /// the buffer waits.
    #[inline]
    pub fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        let only = self.gpus.is_empty() && !self.profiler.is_on();
        if only { self.cpu.execute(command) } else { self.execute_among(command) }
    }

    #[inline(never)]
    fn execute_among(&self, command: &mut Command<'_>) -> Result<()> {
        // Costs are computed.
        let _environment = DefaultEnvironment::enter();
        match self.road(command)? {
            (Some(gpu), reason) => gpu.execute(command, reason),
            (None, reason) if self.profiler.is_on() => self.profiler.on_cpu(&self.cpu, command, reason),
            _ => self.cpu.execute(command),
        }
    }

    /// The GPU that a command goes to, `None` for the CPU, and why.
    fn road(&self, command: &Command<'_>) -> Result<(Option<&Arc<Opened>>, Reason)> {
        if let Some(id) = devices::place_of(command) {
            let slot = self.gpus.iter().find(|slot| slot.info().id == id);
            let Some(slot) = slot else {
                fail!(InvalidArgument, "an operand is on {id}, which is not of this context")
            };
            return Ok((Some(slot.opened()?), Reason::Operands));
        }
        if !self.gpus.is_empty() && self.dispatcher.done_before_others_begin(command) {
            return Ok((None, Reason::Chosen(Why::Cheapest)));
        }
        // Packed operands are in the layout of the CPU's kernels.
        let packed = command.inputs.iter().flatten().any(|view| matches!(view.place(), Place::Packed(_)));
        let choice = self.dispatcher.choose(command);
        if packed || choice.device == 0 {
            let packed = packed && choice.device > 0;
            return Ok((None, if packed { Reason::Packed } else { Reason::Chosen(choice.why) }));
        }
        match self.gpus[choice.device - 1].opened() {
            Ok(gpu) => Ok((Some(gpu), Reason::Chosen(choice.why))),
            // Nobody asked for a GPU that can't be used.
            Err(_) if choice.why != Why::Forced => Ok((None, Reason::Fallback)),
            Err(error) => Err(error),
        }
    }

    /// Executes an operation into a new tensor. Operands are in the operation's order, `None` where an optional one is
    /// left out; trailing ones may be missing.
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
        let mut meta = Meta::scalar();
        op.info().describe(attrs, inputs, &mut meta)?;
        // The output is what the rule says and memory of its own: `Command::new` would find nothing else.
        Tensor::filled(&meta, |output| self.execute(&mut Command { op, attrs: *attrs, inputs, output }))
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

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let info = self.device_info();
        write!(f, "Context({}: {}, {}, {} threads)", info.id, info.name, info.arch, info.units)
    }
}
