//! A context: opened devices and the road from a call to a kernel.

use crate::command::{Command, Inputs, Meta, View};
use crate::config::Config;
use crate::dispatch::{AutoDispatcher, DeviceProfile, Explanation, Task, calibration};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::cpu::{CpuDevice, Isa, Packed};
use crate::hal::{Device, DeviceInfo};
use crate::ops::{Attrs, Family, Op};
use crate::tensor::Tensor;
use std::sync::Arc;

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
    dispatcher: Arc<AutoDispatcher>,
}

impl Context {
    /// The best device at hand, or the one that `ADEAD_DEVICE` or `adead.toml` names.
    pub fn auto() -> Result<Context> {
        Context::configured(None, &ContextOptions::default(), &Config::load()?)
    }

    /// A device by name: `auto` or `cpu`.
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
        let device = match device.unwrap_or(config.device_name()) {
            "auto" if config.use_gpu == Some(false) => "cpu",
            device => device,
        };
        if !matches!(device, "auto" | "cpu") {
            let backend = device.split(':').next().unwrap_or_default();
            if matches!(backend, "cuda" | "vulkan" | "hybrid") {
                fail!(BackendUnavailable, "'{device}': this version has no {backend} backend; use 'cpu'");
            }
            fail!(InvalidArgument, "no device '{device}': this version knows 'auto' and 'cpu'")
        }
        let cpu = CpuDevice::open(options.isa.or(config.isa), options.threads.or(config.threads))?;
        let machine = calibration::machine(cpu.info());
        let profile = calibration::profile(config, &machine, || DeviceProfile::of_cpu(&cpu));
        let dispatcher = AutoDispatcher::new(vec![profile])?;
        for (family, elements) in Family::ALL.into_iter().zip(config.thresholds) {
            if elements.is_some() {
                dispatcher.set_threshold(family, elements);
            }
        }
        if device != "auto" {
            dispatcher.force(Some(device))?;
        }
        Ok(Context { cpu: Arc::new(cpu), dispatcher: Arc::new(dispatcher) })
    }

    /// What its device is.
    pub fn device_info(&self) -> &DeviceInfo {
        self.cpu.info()
    }

    /// Every device that this context can use.
    pub fn devices(&self) -> Vec<DeviceInfo> {
        vec![self.cpu.info().clone()]
    }

    /// Gives back what is kept for the next work: scratch memory goes to the system, worker threads finish what they have
    /// begun and end. For a program that computes now and then; the next call takes both anew, which costs some 100 µs.
    /// May be called while others compute.
    pub fn trim(&self) {
        self.cpu.trim();
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
    #[inline]
    pub fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        self.cpu.execute(command)
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
