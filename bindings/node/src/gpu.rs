//! A context's buffers, kernels and streams. They are on its GPU; without a GPU, buffers are in host memory.

use crate::buffer::{DeviceBuffer, Elements};
use crate::context::Context;
use crate::kernel::{Kernel, Module, PipelineOptions, groups};
use crate::program::Program;
use crate::stream::{Event, Stream};
use adead::gpu::Priority;
use adead::{DType, Result, gpu};
use adead_node_support::args::{Fields, Flag, List, Number, Of, Size, Text, absent, kind};
use adead_node_support::array::Array;
use adead_node_support::error::{guard, refused};
use adead_node_support::task::{Job, promise};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue};
use napi::sys;
use napi::{Env, ValueType};
use napi_derive::napi;

/// The initial contents of a buffer: data, numbers, or a number of zero bytes.
pub enum Contents {
    Data(Array),
    Numbers(Vec<u8>),
    Zeros(usize, Elements),
}

impl FromNapiValue for Contents {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Contents> {
        let mut is_list = false;
        // SAFETY: the environment of this call and a value of it.
        unsafe { sys::napi_is_array(env, value, &mut is_list) };
        if is_list {
            let mut bytes = Vec::new();
            adead_node_support::args::each(env, value, |element| {
                // SAFETY: a value of this environment.
                let Number(number) = unsafe { Number::from_napi_value(env, element) }?;
                bytes.extend_from_slice(&(number as f32).to_ne_bytes());
                Ok(())
            })?;
            return Ok(Contents::Numbers(bytes));
        }
        // SAFETY: the caller's guarantee is passed on.
        unsafe {
            if kind(env, value) == ValueType::Number {
                let text = "a single number is ambiguous: buffer({ size: n }) makes n zeros, f32 by default, and \
                            buffer({ nbytes: n }) n zero bytes";
                return Err(refused(env, text));
            }
            match Array::from_napi_value(env, value) {
                Ok(data) => return Ok(Contents::Data(data)),
                Err(error) if kind(env, value) != ValueType::Object => return Err(error),
                Err(_) => {}
            }
            Contents::zeros(env, &Fields::from_napi_value(env, value)?)
        }
    }
}

impl Contents {
    fn zeros(env: sys::napi_env, Fields(options): &Fields) -> napi::Result<Contents> {
        let (size, nbytes) = (options.get::<Size>("size")?, options.get::<Size>("nbytes")?);
        let dtype = match options.get::<Text>("dtype")? {
            Some(name) => guard(Env::from_raw(env), || name.parse::<DType>())?,
            None => DType::default(),
        };
        let bytes = match (size, nbytes) {
            (Some(size), None) => size.0.checked_mul(dtype.size()),
            (None, Some(bytes)) => Some(bytes.0),
            _ => None,
        };
        match bytes {
            Some(bytes) => Ok(Contents::Zeros(bytes, dtype.into())),
            None => {
                Err(refused(env, "buffer() takes a typed array, an array of numbers, { size, dtype? } or { nbytes }"))
            }
        }
    }

    fn elements(&self) -> Elements {
        match self {
            Contents::Data(data) => Elements { dtype: data.dtype(None).ok(), size: data.kind().element() },
            Contents::Numbers(_) => DType::F32.into(),
            &Contents::Zeros(_, elements) => elements,
        }
    }

    /// Returns a copy of the bytes, or the number of zero bytes.
    fn copied(self) -> std::result::Result<Vec<u8>, usize> {
        match self {
            Contents::Data(data) => Ok(data.bytes().to_vec()),
            Contents::Numbers(bytes) => Ok(bytes),
            Contents::Zeros(bytes, _) => Err(bytes),
        }
    }
}

/// The buffers that a dispatch passes.
pub struct Buffers(Vec<std::sync::Arc<gpu::Buffer>>);

impl FromNapiValue for Buffers {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Buffers> {
        let mut list = Vec::new();
        adead_node_support::args::each(env, value, |element| {
            // SAFETY: a value of this environment.
            list.push(unsafe { Of::<DeviceBuffer>::from_napi_value(env, element) }?.inner.clone());
            Ok(())
        })?;
        Ok(Buffers(list))
    }
}

impl Buffers {
    /// Returns the list that the core takes.
    pub fn list(&self) -> Vec<&gpu::Buffer> {
        self.0.iter().map(|buffer| &**buffer).collect()
    }
}

/// The number of workgroups in x, y, z.
pub struct Groups(pub [u32; 3]);

impl FromNapiValue for Groups {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Groups> {
        // SAFETY: the caller's guarantee is passed on.
        let numbers = unsafe { List::<adead_node_support::args::Word>::from_napi_value(env, value) }?;
        guard(Env::from_raw(env), || groups(&numbers)).map(Groups)
    }
}

/// The bytes of push constants. Empty if they are left out.
pub struct Push(pub Vec<u8>);

impl FromNapiValue for Push {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Push> {
        if absent(env, value) {
            return Ok(Push(Vec::new()));
        }
        // SAFETY: the caller's guarantee is passed on.
        Ok(Push(unsafe { Array::from_napi_value(env, value) }?.bytes().to_vec()))
    }
}

#[derive(Clone, Copy)]
enum Language {
    Spirv,
    Ptx,
    Cubin,
}

fn load(
    context: &adead::Context,
    language: Language,
    module: Module,
    options: Option<PipelineOptions>,
) -> Result<gpu::Kernel> {
    let options = PipelineOptions::options(options)?;
    let bytes = match module {
        Module::Bytes(bytes) => bytes,
        Module::Path(path) => {
            let read = std::fs::read(&path);
            read.map_err(|error| adead::Error::new(adead::Status::Io, format!("{path}: {error}")))?
        }
    };
    match language {
        Language::Spirv => context.load_spirv_with(&bytes, &options),
        Language::Ptx => context.load_ptx_with(&bytes, &options),
        Language::Cubin => context.load_cubin_with(&bytes, &options),
    }
}

fn compile(
    context: &adead::Context,
    source: Text,
    options: Option<PipelineOptions>,
    name: Option<Text>,
) -> Result<gpu::Kernel> {
    let (source, name) = (String::from(source), name.map_or("kernel".into(), String::from));
    context.compile_kernel(&source, &name, &PipelineOptions::options(options)?)
}

impl Context {
    fn load(
        &self,
        env: Env,
        language: Language,
        module: Module,
        options: Option<PipelineOptions>,
    ) -> napi::Result<Kernel> {
        guard(env, || Ok(load(&self.inner, language, module, options)?.into()))
    }

    fn load_async(&self, language: Language, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || load(&context, language, module, options)), |_, kernel| Ok(Kernel::from(kernel)))
    }
}

#[napi]
impl Context {
    /// Makes a buffer with a copy of a typed array, or of numbers as f32. `{ size, dtype }` makes `size` zeroed elements of
    /// `dtype`, f32 by default. `{ nbytes }` makes `nbytes` zeroed bytes.
    #[napi(ts_args_type = "contents: TypedArray | readonly number[] | BufferSize")]
    pub fn buffer(&self, env: Env, contents: Contents) -> napi::Result<DeviceBuffer> {
        let elements = contents.elements();
        let buffer = guard(env, || match contents {
            Contents::Data(data) => self.inner.buffer_of_bytes(data.bytes()),
            Contents::Numbers(bytes) => self.inner.buffer_of_bytes(&bytes),
            Contents::Zeros(bytes, _) => self.inner.buffer_zeroed(bytes),
        })?;
        DeviceBuffer::new(env, buffer, elements)
    }

    /// Runs `buffer` on another thread. An array is copied first, so the caller may reuse it at once.
    #[napi(
        ts_args_type = "contents: TypedArray | readonly number[] | BufferSize",
        ts_return_type = "Promise<DeviceBuffer>"
    )]
    pub fn buffer_async(&self, contents: Contents) -> AsyncTask<Job> {
        let (context, elements, copy) = (self.inner.clone(), contents.elements(), contents.copied());
        let work = move || match copy {
            Ok(bytes) => context.buffer_of_bytes(&bytes),
            Err(bytes) => context.buffer_zeroed(bytes),
        };
        promise(Ok(work), move |env, buffer| DeviceBuffer::new(env, buffer, elements))
    }

    /// Compiles a kernel from source and loads it on the context's GPU. A CUDA device takes CUDA C++, which NVRTC compiles. A Vulkan device
    /// takes a GLSL compute shader, which glslangValidator compiles. The compiler's messages call the source `name`. `invalid_kernel` has
    /// these messages, with line numbers. `backend_unavailable` says where a compiler was searched for.
    #[napi(ts_args_type = "source: string, options?: PipelineOptions, name?: string")]
    pub fn compile_kernel(
        &self,
        env: Env,
        source: Text,
        options: Option<PipelineOptions>,
        name: Option<Text>,
    ) -> napi::Result<Kernel> {
        guard(env, || Ok(compile(&self.inner, source, options, name)?.into()))
    }

    /// Runs `compileKernel` on another thread.
    #[napi(
        ts_args_type = "source: string, options?: PipelineOptions, name?: string",
        ts_return_type = "Promise<Kernel>"
    )]
    pub fn compile_kernel_async(
        &self,
        source: Text,
        options: Option<PipelineOptions>,
        name: Option<Text>,
    ) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || compile(&context, source, options, name)), |_, kernel| Ok(Kernel::from(kernel)))
    }

    /// Loads a kernel from SPIR-V: a file or a module in memory. `invalid_kernel` if the module is malformed or the driver
    /// refuses it, `unsupported` if it needs a feature that the device lacks.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions")]
    pub fn load_spirv(&self, env: Env, module: Module, options: Option<PipelineOptions>) -> napi::Result<Kernel> {
        self.load(env, Language::Spirv, module, options)
    }

    /// Runs `loadSpirv` on another thread.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn load_spirv_async(&self, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        self.load_async(Language::Spirv, module, options)
    }

    /// Loads a kernel from PTX: a file or text in memory. Its leading 64-bit parameters are buffers, the rest push constants.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions")]
    pub fn load_ptx(&self, env: Env, module: Module, options: Option<PipelineOptions>) -> napi::Result<Kernel> {
        self.load(env, Language::Ptx, module, options)
    }

    /// Runs `loadPtx` on another thread.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn load_ptx_async(&self, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        self.load_async(Language::Ptx, module, options)
    }

    /// Loads a kernel from a cubin or fatbin: a file or a module in memory.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions")]
    pub fn load_cubin(&self, env: Env, module: Module, options: Option<PipelineOptions>) -> napi::Result<Kernel> {
        self.load(env, Language::Cubin, module, options)
    }

    /// Runs `loadCubin` on another thread.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn load_cubin_async(&self, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        self.load_async(Language::Cubin, module, options)
    }

    /// Makes another kernel from a kernel's module, with a different entry point, specialization constants or workgroup.
    #[napi(ts_args_type = "kernel: Kernel, options?: PipelineOptions")]
    pub fn create_pipeline(
        &self,
        env: Env,
        kernel: Of<Kernel>,
        options: Option<PipelineOptions>,
    ) -> napi::Result<Kernel> {
        guard(env, || Ok(self.inner.create_pipeline(&kernel.inner, &PipelineOptions::options(options)?)?.into()))
    }

    /// Runs `createPipeline` on another thread.
    #[napi(ts_args_type = "kernel: Kernel, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn create_pipeline_async(&self, kernel: Of<Kernel>, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        let (context, kernel) = (self.inner.clone(), kernel.inner.clone());
        let work = move || context.create_pipeline(&kernel, &PipelineOptions::options(options)?);
        promise(Ok(work), |_, kernel| Ok(Kernel::from(kernel)))
    }

    /// Loads a program from an `.adead` file, or from a file in an older format, to run on this context.
    #[napi(ts_args_type = "path: string")]
    pub fn load_adead(&self, env: Env, path: Text) -> napi::Result<Program> {
        guard(env, || Ok(self.inner.load_adead(&*path)?.into()))
    }

    /// Runs `loadAdead` on another thread.
    #[napi(ts_args_type = "path: string", ts_return_type = "Promise<Program>")]
    pub fn load_adead_async(&self, path: Text) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || context.load_adead(&*path)), |_, program| Ok(Program::from(program)))
    }

    /// Enqueues a kernel over workgroups in x, y, z. `buffers` are in the order of set and binding; `push` has the bytes of the
    /// push constants. `wait` and reading a buffer wait for the kernel.
    #[napi(
        ts_args_type = "kernel: Kernel, buffers: DeviceBuffer[], groups: [number, number, number], push?: TypedArray"
    )]
    pub fn dispatch(
        &self,
        env: Env,
        kernel: Of<Kernel>,
        buffers: Buffers,
        groups: Groups,
        push: Option<Push>,
    ) -> napi::Result<()> {
        let push = push.map_or(Vec::new(), |push| push.0);
        guard(env, || self.inner.dispatch_with(&kernel.inner, &buffers.list(), &push, groups.0))
    }

    /// Waits until everything that the context enqueued has finished.
    #[napi]
    pub fn wait(&self, env: Env) -> napi::Result<()> {
        guard(env, || self.inner.wait())
    }

    /// Runs `wait` on another thread.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn wait_async(&self) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || context.wait()), |_, ()| Ok(()))
    }

    /// Creates an event after everything that the context has enqueued so far.
    #[napi]
    pub fn event(&self, env: Env) -> napi::Result<Event> {
        guard(env, || Ok(self.inner.event()?.into()))
    }

    /// Creates an event as `event` does, for the host to wait for.
    #[napi]
    pub fn fence(&self, env: Env) -> napi::Result<Event> {
        guard(env, || Ok(self.inner.fence()?.into()))
    }

    /// Makes a new stream. On an NVIDIA GPU through CUDA, pending work of a high-priority stream starts before that of other streams. Other
    /// devices ignore the priority.
    #[napi(ts_args_type = "highPriority?: boolean")]
    pub fn stream(&self, env: Env, high_priority: Option<Flag>) -> napi::Result<Stream> {
        let priority = if high_priority.is_some_and(|high| high.0) { Priority::High } else { Priority::Normal };
        guard(env, || Ok(self.inner.stream_with(priority)?.into()))
    }
}
