//! Contexts: opened devices, the choice between them, and operations by name.

use crate::dispatch::Explanation;
use crate::hardware::{DeviceInfo, MemoryUse, TensorCache};
use crate::packed::Packed;
use crate::pipeline::{Pipeline, PipelineCache};
use crate::run::{by_name, forget_contexts, optional_signal};
use crate::tensor::Value;
use adead::config::Config;
use adead::dispatch::Family;
use adead::{Gpu, Result};
use adead_node_support::args::{Flag, List, Of, Size, Text, Word};
use adead_node_support::error::{caught, guard};
use adead_node_support::task::{Job, promise, promise_with};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ObjectFinalize, Unknown};
use napi_derive::napi;

/// Opens devices and runs operations on them. Calls on several threads may share the devices. Each worker opens its own
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

/// Options for opening a context.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ContextOptions {
    /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon". The default is the one in `ADEAD_ISA`, or else the best.
    #[napi(ts_type = "string")]
    pub isa: Option<Text>,
    /// The number of CPU threads. The default is `ADEAD_NUM_THREADS`, or else as many as the process may use.
    #[napi(ts_type = "number")]
    pub threads: Option<Word>,
    /// The precision of products that specify none. The default is "f32".
    #[napi(ts_type = "'f32' | 'fixed24' | 'fixed16'")]
    pub precision: Option<Text>,
    /// Whether to open only a GPU, as the class `GPU` does.
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

/// Returns the default context, for calls that name none. All threads share it.
pub fn default_context() -> Result<&'static adead::Context> {
    adead::Context::shared()
}

/// Returns the context of `Tensor`'s methods. The first use opens it, as `new Context()` does.
#[napi(js_name = "defaultContext")]
pub fn get_default_context(env: Env) -> napi::Result<Context> {
    guard(env, || Ok(Context { inner: default_context()?.clone() }))
}

#[napi]
impl Context {
    /// Opens a device: "auto", "cpu", "cuda" and "vulkan" (the best GPU of each), "cuda:1", "vulkan:1", a part of a GPU's name,
    /// or its UUID. Several devices open as one: "hybrid" (the CPU and every GPU), or names separated by commas. The default is
    /// `ADEAD_DEVICE`, or else the device in adead.toml, or else "auto". `backend_unavailable` if the device is missing,
    /// `unsupported` if it can't keep the arithmetic contract.
    #[napi(constructor, ts_args_type = "device?: string | null, options?: ContextOptions")]
    pub fn new(env: Env, device: Option<Text>, options: Option<ContextOptions>) -> napi::Result<Context> {
        guard(env, || Ok(Context { inner: open(device, options.unwrap_or_default())? }))
    }

    /// Opens a context like `new Context(…)`, on another thread.
    #[napi(ts_args_type = "device?: string | null, options?: ContextOptions", ts_return_type = "Promise<Context>")]
    pub fn open_async(device: Option<Text>, options: Option<ContextOptions>) -> AsyncTask<Job> {
        promise(Ok(move || open(device, options.unwrap_or_default())), |_, inner| Ok(Context { inner }))
    }

    /// The device that the context was opened on. With several devices, it is the CPU, or without the CPU the first GPU.
    #[napi(getter)]
    pub fn device(&self) -> DeviceInfo {
        self.inner.device_info().into()
    }

    /// Every device that the context can use.
    #[napi(getter)]
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.devices().iter().map(DeviceInfo::from).collect()
    }

    /// Releases resources kept for later work, such as scratch memory, worker threads and idle device memory.
    #[napi]
    pub fn trim(&self, env: Env) -> napi::Result<()> {
        guard(env, || {
            self.inner.trim();
            Ok(())
        })
    }

    /// Returns the memory use of the context's GPU, or of the host if the context has no GPU.
    #[napi]
    pub fn memory(&self, env: Env) -> napi::Result<MemoryUse> {
        guard(env, || Ok(self.inner.memory()?.into()))
    }

    /// Runs an operation by its name. All operands are in the operation's order, with null for an optional one that is left
    /// out. Trailing optional operands may be missing. `options` has the attributes, by their names in camel case.
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

    /// Runs `run` on another thread.
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

    /// Returns the id of the device for work on this many elements when nothing else is known. With `family`, for that family's
    /// operations.
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

    /// Explains on which device `run` would run with the same arguments, and why, with every device's estimate. Runs nothing.
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

    /// Sets a family's threshold: operations with at least this many elements run on a GPU, smaller ones on the CPU. null
    /// returns to the cost model. Without a GPU it has no effect.
    #[napi(ts_args_type = "family: Family, elements: number | null")]
    pub fn set_threshold(&self, env: Env, family: Text, elements: Option<Size>) -> napi::Result<()> {
        guard(env, || {
            self.inner.dispatcher().set_threshold(family.parse()?, elements.map(|elements| elements.0));
            Ok(())
        })
    }

    /// Returns the threshold that was set for a family, or null.
    #[napi(ts_args_type = "family: Family")]
    pub fn threshold(&self, env: Env, family: Text) -> napi::Result<Option<f64>> {
        guard(env, || {
            let family: Family = family.parse()?;
            Ok(self.inner.dispatcher().threshold(family).map(|elements| elements as f64))
        })
    }

    /// Runs all work on one of the context's devices, given by its id, whatever the cost. null returns to the cost model.
    /// `invalid_argument` if the context has no device with this id.
    #[napi(ts_args_type = "device: string | null")]
    pub fn force(&self, env: Env, device: Option<Text>) -> napi::Result<()> {
        guard(env, || self.inner.dispatcher().force(device.as_deref()))
    }

    /// The id of the forced device, or null.
    #[napi(getter)]
    pub fn forced(&self) -> Option<String> {
        let dispatcher = self.inner.dispatcher();
        dispatcher.forced().map(|device| dispatcher.profiles()[device].id.clone())
    }

    /// Begins a pipeline, which records operations and runs them as a whole.
    #[napi]
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(&self.inner)
    }

    /// Returns the use of the cache in which `Pipeline.execute` keeps compiled pipelines. `trim` empties it.
    #[napi]
    pub fn pipeline_cache(&self) -> PipelineCache {
        self.inner.pipeline_cache().into()
    }

    /// Copies a tensor to one of the context's devices, given by its name, and returns a tensor that shares its copies. Operations on the
    /// device use the copy, and their results stay on the device that computed them. May return while the copy is still in progress. "cpu"
    /// does the same as `tensor.toCpu()`.
    #[napi(ts_args_type = "tensor: Tensor, device: string", ts_return_type = "Tensor")]
    pub fn to(&self, env: Env, tensor: Value, device: Text) -> napi::Result<Value> {
        guard(env, || Ok(Value(self.inner.to(&tensor.0, &device)?)))
    }

    /// Returns the bytes that tensors keep on one of the context's devices, given by its name. They are zero on the CPU and on
    /// a GPU that has not been used yet.
    #[napi(ts_args_type = "device: string")]
    pub fn tensor_cache(&self, env: Env, device: Text) -> napi::Result<TensorCache> {
        guard(env, || Ok(self.inner.tensor_cache(&device)?.into()))
    }

    /// Sets the most bytes that tensors may keep on each of the context's GPUs. The default is half of the GPU's memory. The
    /// least recently used copies are evicted, now and when others are added. No value is lost.
    #[napi(ts_args_type = "bytes: number")]
    pub fn set_tensor_cache(&self, env: Env, bytes: Size) -> napi::Result<()> {
        guard(env, || self.inner.set_tensor_cache(bytes.0 as u64))
    }

    /// The default precision: see `setPrecision`.
    #[napi(getter, ts_return_type = "'f32' | 'fixed24' | 'fixed16'")]
    pub fn precision(&self) -> &'static str {
        self.inner.precision().name()
    }

    /// Sets the default precision: the precision of products that specify none. It applies to calls, pipelines and programs that start or
    /// are compiled later. The initial value is "f32". Layers keep the precision that the context had when they were made.
    #[napi(ts_args_type = "precision: 'f32' | 'fixed24' | 'fixed16'")]
    pub fn set_precision(&self, env: Env, precision: Text) -> napi::Result<()> {
        guard(env, || {
            self.inner.set_precision(precision.parse()?);
            Ok(())
        })
    }

    /// Returns a context with the same devices, threads, profile and settings, but with its own default precision. Setting the
    /// precision of one context does not change the other's. So a layer or a pipeline can have another precision than the rest
    /// of a model.
    #[napi(ts_args_type = "precision: 'f32' | 'fixed24' | 'fixed16'")]
    pub fn with_precision(&self, env: Env, precision: Text) -> napi::Result<Context> {
        guard(env, || Ok(Context { inner: self.inner.with_precision(precision.parse()?) }))
    }

    /// Packs a matrix for repeated products, as b of `matmulPacked`. Its shape is `[K, N]`, or `[N, K]` with `transB`. Products
    /// with it have the default precision that the context has now. A product with another `precision` is `invalid_argument`.
    /// If the context runs everything on one GPU and computes in exact integers, the GPU keeps the matrix's digits.
    #[napi(ts_args_type = "b: Tensor, transB?: boolean")]
    pub fn pack(&self, env: Env, b: Value, trans_b: Option<Flag>) -> napi::Result<Packed> {
        let packed = guard(env, || self.inner.pack(&b.0, trans_b.is_some_and(|flag| flag.0)))?;
        Packed::new(env, packed)
    }

    /// Runs `pack` on another thread.
    #[napi(ts_args_type = "b: Tensor, transB?: boolean", ts_return_type = "Promise<Packed>")]
    pub fn pack_async(&self, b: Value, trans_b: Option<Flag>) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || context.pack(&b.0, trans_b.is_some_and(|flag| flag.0))), Packed::new)
    }

    /// Computes `matmul` with a packed b. `pack` must have made it in this context or in one with the same instruction set.
    /// `transB` must be false.
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

    /// Runs `matmulPacked` on another thread.
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

    /// Returns a description of the context.
    #[napi]
    #[allow(clippy::inherent_to_string, reason = "JavaScript's toString")]
    pub fn to_string(&self) -> String {
        caught(|| Ok(format!("{:?}", self.inner))).unwrap_or_default()
    }
}
