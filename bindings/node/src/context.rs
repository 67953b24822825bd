//! Contexts: opened devices, what chooses between them, and operations by name.

use crate::dispatch::Explanation;
use crate::hardware::{DeviceInfo, MemoryUse};
use crate::packed::Packed;
use crate::pipeline::{Pipeline, PipelineCache};
use crate::run::{by_name, forget_contexts, optional_signal};
use crate::tensor::{TensorCache, Value};
use adead::config::Config;
use adead::dispatch::Family;
use adead::{Gpu, Result};
use adead_node_support::args::{Flag, List, Of, Size, Text, Word};
use adead_node_support::error::{caught, guard};
use adead_node_support::task::{Job, promise, promise_with};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ObjectFinalize, Unknown};
use napi_derive::napi;
use std::sync::OnceLock;

/// Opened devices, and what chooses between them. Calls of several threads may share the devices; each worker opens its own
/// context.
#[napi(custom_finalize)]
pub struct Context {
    pub(crate) inner: adead::Context,
}

impl ObjectFinalize for Context {
    fn finalize(self, _: Env) -> napi::Result<()> {
        forget_contexts();
        Ok(())
    }
}

/// How to open a context.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ContextOptions {
    /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon". Without it what `ADEAD_ISA` names, else the best.
    #[napi(ts_type = "string")]
    pub isa: Option<Text>,
    /// CPU threads. Without it what `ADEAD_NUM_THREADS` says, else as many as the process may use.
    #[napi(ts_type = "number")]
    pub threads: Option<Word>,
    /// How products are computed whose `precision` is not said. Without it in "f32".
    #[napi(ts_type = "'f32' | 'fixed24' | 'fixed16'")]
    pub precision: Option<Text>,
    /// Only a GPU: what the class `GPU` asks for.
    #[napi(ts_type = "boolean")]
    pub gpu: Option<Flag>,
}

fn open(device: Option<Text>, options: ContextOptions) -> Result<adead::Context> {
    if matches!(options.gpu, Some(Flag(true))) {
        let gpu = match device {
            Some(device) => Gpu::open(&device)?,
            None => Gpu::new()?,
        };
        return Ok(gpu.context().clone());
    }
    let isa = options.isa.as_deref().map(str::parse).transpose()?;
    let precision = options.precision.as_deref().map(str::parse).transpose()?;
    let threads = options.threads.map(|threads| threads.0 as usize);
    let options = adead::ContextOptions { isa, threads, precision };
    adead::Context::configured(device.as_deref(), &options, &Config::load()?)
}

/// The context of calls that name none: opened by the first, as `new Context()` does; all threads share it.
pub fn default_context() -> Result<&'static adead::Context> {
    static DEFAULT: OnceLock<adead::Context> = OnceLock::new();
    if let Some(context) = DEFAULT.get() {
        return Ok(context);
    }
    let context = adead::Context::configured(None, &adead::ContextOptions::default(), &Config::load()?)?;
    Ok(DEFAULT.get_or_init(|| context))
}

/// The context of the methods of `Tensor`: opened when it is first needed, as `new Context()` does.
#[napi(js_name = "defaultContext")]
pub fn get_default_context(env: Env) -> napi::Result<Context> {
    guard(env, || Ok(Context { inner: default_context()?.clone() }))
}

#[napi]
impl Context {
    /// Opens a device: "auto", "cpu", "cuda" and "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a part of a GPU's
    /// name, or its UUID; several as one: "hybrid" (the CPU and every GPU), or names with commas between them. Without a
    /// name what `ADEAD_DEVICE` names, else what adead.toml does, else "auto".
    /// `backend_unavailable` if it is not there, `unsupported` if it can't keep the arithmetic contract.
    #[napi(constructor, ts_args_type = "device?: string | null, options?: ContextOptions")]
    pub fn new(env: Env, device: Option<Text>, options: Option<ContextOptions>) -> napi::Result<Context> {
        guard(env, || Ok(Context { inner: open(device, options.unwrap_or_default())? }))
    }

    /// `new Context(…)` on another thread.
    #[napi(ts_args_type = "device?: string | null, options?: ContextOptions", ts_return_type = "Promise<Context>")]
    pub fn open_async(device: Option<Text>, options: Option<ContextOptions>) -> AsyncTask<Job> {
        promise(Ok(move || open(device, options.unwrap_or_default())), |_, inner| Ok(Context { inner }))
    }

    /// What its device is: the one that it was opened on; the CPU of one that chooses.
    #[napi(getter)]
    pub fn device(&self) -> DeviceInfo {
        self.inner.device_info().into()
    }

    /// Every device that it can use.
    #[napi(getter)]
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.devices().iter().map(DeviceInfo::from).collect()
    }

    /// Gives back what is kept for the next work: scratch memory, worker threads, idle device memory.
    #[napi]
    pub fn trim(&self, env: Env) -> napi::Result<()> {
        guard(env, || {
            self.inner.trim();
            Ok(())
        })
    }

    /// The memory of its GPU, or of the host where it has none.
    #[napi]
    pub fn memory(&self, env: Env) -> napi::Result<MemoryUse> {
        guard(env, || Ok(self.inner.memory()?.into()))
    }

    /// Runs an operation by its name, with all of its operands in order, null where an optional one is left out; trailing ones
    /// may be missing. Attributes are in `options`, by their names in camel case.
    #[napi(
        ts_args_type = "op: OpName, operands: (Tensor | null | undefined)[], options?: Attributes",
        ts_return_type = "Tensor"
    )]
    pub fn run(
        &self,
        env: Env,
        op: Text,
        operands: List<Option<Value>>,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<Value> {
        let (op, attrs, operands) = by_name(env, &op, operands, options)?;
        let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
        guard(env, || Ok(Value(self.inner.run(op, &attrs, &operands)?)))
    }

    /// `run` on another thread.
    #[napi(
        ts_args_type = "op: OpName, operands: (Tensor | null | undefined)[], options?: Attributes & Abortable",
        ts_return_type = "Promise<Tensor>"
    )]
    pub fn run_async(
        &self,
        env: Env,
        op: Text,
        operands: List<Option<Value>>,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<AsyncTask<Job>> {
        let signal = optional_signal(env, options.as_ref())?;
        let (op, attrs, operands) = by_name(env, &op, operands, options)?;
        let context = self.inner.clone();
        let work = move || {
            let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
            context.run(op, &attrs, &operands)
        };
        Ok(promise_with(Ok(work), |_, tensor| Ok(Value(tensor)), signal))
    }

    /// The id of the device for work on that many elements of which nothing else is known; with a family, for its operations.
    #[napi(ts_args_type = "elements: number, family?: Family")]
    pub fn select(&self, env: Env, elements: Size, family: Option<Text>) -> napi::Result<String> {
        guard(env, || {
            let dispatcher = self.inner.dispatcher();
            Ok(match family {
                Some(family) => dispatcher.profiles()[dispatcher.select_for(family.parse()?, elements.0)].id.clone(),
                None => self.inner.select(elements.0).to_string(),
            })
        })
    }

    /// On which device `run` with the same arguments would run, why, and what every device would take. Runs nothing.
    #[napi(ts_args_type = "op: OpName, operands: (Tensor | null | undefined)[], options?: Attributes")]
    pub fn explain(
        &self,
        env: Env,
        op: Text,
        operands: List<Option<Value>>,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<Explanation> {
        let (op, attrs, operands) = by_name(env, &op, operands, options)?;
        let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
        guard(env, || {
            let explanation = self.inner.explain(op, &attrs, &operands)?;
            Ok(Explanation::new(&explanation, self.inner.dispatcher()))
        })
    }

    /// From how many elements on operations of a family go to a GPU and below it to the CPU; null lets the costs decide.
    /// Without a GPU it changes nothing.
    #[napi(ts_args_type = "family: Family, elements: number | null")]
    pub fn set_threshold(&self, env: Env, family: Text, elements: Option<Size>) -> napi::Result<()> {
        guard(env, || {
            self.inner.dispatcher().set_threshold(family.parse()?, elements.map(|elements| elements.0));
            Ok(())
        })
    }

    /// The threshold that was set for a family.
    #[napi(ts_args_type = "family: Family")]
    pub fn threshold(&self, env: Env, family: Text) -> napi::Result<Option<f64>> {
        guard(env, || {
            let family: Family = family.parse()?;
            Ok(self.inner.dispatcher().threshold(family).map(|elements| elements as f64))
        })
    }

    /// Sends everything to one of its devices by its id, whatever it costs; null lets the costs decide. `invalid_argument`
    /// for an id that it does not have.
    #[napi(ts_args_type = "device: string | null")]
    pub fn force(&self, env: Env, device: Option<Text>) -> napi::Result<()> {
        guard(env, || self.inner.dispatcher().force(device.as_deref()))
    }

    /// The id of the device that was forced.
    #[napi(getter)]
    pub fn forced(&self) -> Option<String> {
        let dispatcher = self.inner.dispatcher();
        dispatcher.forced().map(|device| dispatcher.profiles()[device].id.clone())
    }

    /// Begins to record operations that are to be run as a whole.
    #[napi]
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(&self.inner)
    }

    /// How the cache of what `Pipeline.execute` compiled was used; `trim` empties it.
    #[napi]
    pub fn pipeline_cache(&self) -> PipelineCache {
        self.inner.pipeline_cache().into()
    }

    /// A copy of a tensor's values on one of its devices, by its name; it shares them with the one that was given. Returns when
    /// they may be on their way. Operations find them there, and leave their results where they compute. "cpu" is
    /// `tensor.toCpu()`.
    #[napi(ts_args_type = "tensor: Tensor, device: string", ts_return_type = "Tensor")]
    pub fn to(&self, env: Env, tensor: Value, device: Text) -> napi::Result<Value> {
        guard(env, || Ok(Value(self.inner.to(&tensor.0, &device)?)))
    }

    /// What tensors keep on one of its devices, by its name: nothing on the CPU and on a GPU that was not used yet.
    #[napi(ts_args_type = "device: string")]
    pub fn tensor_cache(&self, env: Env, device: Text) -> napi::Result<TensorCache> {
        guard(env, || Ok(self.inner.tensor_cache(&device)?.into()))
    }

    /// The most bytes that tensors may keep on each of its GPUs; half of its memory where this was not called. Those that were not
    /// used for longest leave, now and when others come; no value is lost.
    #[napi(ts_args_type = "bytes: number")]
    pub fn set_tensor_cache(&self, env: Env, bytes: Size) -> napi::Result<()> {
        guard(env, || self.inner.set_tensor_cache(bytes.0 as u64))
    }

    /// How products are computed whose `precision` is not said: see `setPrecision`.
    #[napi(getter, ts_return_type = "'f32' | 'fixed24' | 'fixed16'")]
    pub fn precision(&self) -> &'static str {
        self.inner.precision().name()
    }

    /// Sets how products are computed whose `precision` is not said: those of calls, pipelines and programs that begin or are
    /// compiled after it. At first it is "f32". Layers keep what the context had when they were made.
    #[napi(ts_args_type = "precision: 'f32' | 'fixed24' | 'fixed16'")]
    pub fn set_precision(&self, env: Env, precision: Text) -> napi::Result<()> {
        guard(env, || {
            self.inner.set_precision(precision.parse()?);
            Ok(())
        })
    }

    /// Returns a context of the same devices, threads, profile and settings, whose precision is its own: setting either's does
    /// not change the other's. So a layer or a pipeline can have another precision than the rest of a model.
    #[napi(ts_args_type = "precision: 'f32' | 'fixed24' | 'fixed16'")]
    pub fn with_precision(&self, env: Env, precision: Text) -> napi::Result<Context> {
        guard(env, || Ok(Context { inner: self.inner.with_precision(precision.parse()?) }))
    }

    /// Packs a matrix that is multiplied with many times, as b of `matmulPacked`: `[K, N]`, or with `transB` `[N, K]`. It is for
    /// products of the context's precision at this time: another `precision` in a product is `invalid_argument`.
    #[napi(ts_args_type = "b: Tensor, transB?: boolean")]
    pub fn pack(&self, env: Env, b: Value, trans_b: Option<Flag>) -> napi::Result<Packed> {
        let packed = guard(env, || self.inner.pack(&b.0, trans_b.is_some_and(|flag| flag.0)))?;
        Packed::new(env, packed)
    }

    /// `pack` on another thread.
    #[napi(ts_args_type = "b: Tensor, transB?: boolean", ts_return_type = "Promise<Packed>")]
    pub fn pack_async(&self, b: Value, trans_b: Option<Flag>) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || context.pack(&b.0, trans_b.is_some_and(|flag| flag.0))), Packed::new)
    }

    /// `matmul` with a b that `pack` made, here or in a context of the same instruction set; `transB` must be false.
    #[napi(ts_args_type = "a: Tensor, b: Packed, options?: MatmulOptions", ts_return_type = "Tensor")]
    pub fn matmul_packed(
        &self,
        env: Env,
        a: Value,
        b: Of<Packed>,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<Value> {
        let call = crate::packed::Product::new(env, a, &b, options)?;
        guard(env, || Ok(Value(call.run(&self.inner)?)))
    }

    /// `matmulPacked` on another thread.
    #[napi(
        ts_args_type = "a: Tensor, b: Packed, options?: MatmulOptions & Abortable",
        ts_return_type = "Promise<Tensor>"
    )]
    pub fn matmul_packed_async(
        &self,
        env: Env,
        a: Value,
        b: Of<Packed>,
        options: Option<Unknown<'_>>,
    ) -> napi::Result<AsyncTask<Job>> {
        let signal = optional_signal(env, options.as_ref())?;
        let (call, context) = (crate::packed::Product::new(env, a, &b, options)?, self.inner.clone());
        Ok(promise_with(Ok(move || call.run(&context)), |_, tensor| Ok(Value(tensor)), signal))
    }

    /// It in words.
    #[napi]
    #[allow(clippy::inherent_to_string, reason = "JavaScript's toString")]
    pub fn to_string(&self) -> String {
        caught(|| Ok(format!("{:?}", self.inner))).unwrap_or_default()
    }
}
