//! What a context does on its GPU: buffers, kernels, streams; where it has none, buffers are in host memory.

use crate::args::{Flag, List, Of, Size, Text, absent, kind};
use crate::array::Array;
use crate::buffer::DeviceBuffer;
use crate::context::Context;
use crate::error::guard;
use crate::kernel::{Kernel, Module, PipelineOptions, groups};
use crate::program::Program;
use crate::stream::{Event, Stream};
use crate::task::{Job, promise};
use adead::gpu::Priority;
use adead::{Result, gpu};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue};
use napi::sys;
use napi::{Env, ValueType};
use napi_derive::napi;

/// Data, or a number of bytes.
pub enum Contents {
    Data(Array),
    Bytes(usize),
}

impl FromNapiValue for Contents {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Contents> {
        // SAFETY: passed on.
        unsafe {
            if kind(env, value) == ValueType::Number {
                return Ok(Contents::Bytes(Size::from_napi_value(env, value)?.0));
            }
            Ok(Contents::Data(Array::from_napi_value(env, value)?))
        }
    }
}

impl Contents {
    /// The bytes, or how many.
    fn copied(&self) -> std::result::Result<Vec<u8>, usize> {
        match self {
            Contents::Data(data) => Ok(data.bytes().to_vec()),
            &Contents::Bytes(bytes) => Err(bytes),
        }
    }
}

/// The buffers of a dispatch.
pub struct Buffers(Vec<std::sync::Arc<gpu::Buffer>>);

impl FromNapiValue for Buffers {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Buffers> {
        let mut list = Vec::new();
        crate::args::each(env, value, |element| {
            // SAFETY: a value of this environment.
            list.push(unsafe { Of::<DeviceBuffer>::from_napi_value(env, element) }?.inner.clone());
            Ok(())
        })?;
        Ok(Buffers(list))
    }
}

impl Buffers {
    /// As the core takes them.
    pub fn list(&self) -> Vec<&gpu::Buffer> {
        self.0.iter().map(|buffer| &**buffer).collect()
    }
}

/// Three numbers of workgroups.
pub struct Groups(pub [u32; 3]);

impl FromNapiValue for Groups {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Groups> {
        // SAFETY: passed on.
        let numbers = unsafe { List::<crate::args::Word>::from_napi_value(env, value) }?;
        guard(Env::from_raw(env), || groups(&numbers)).map(Groups)
    }
}

/// Bytes of push constants; none where they are left out.
pub struct Push(pub Vec<u8>);

impl FromNapiValue for Push {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Push> {
        if absent(env, value) {
            return Ok(Push(Vec::new()));
        }
        // SAFETY: passed on.
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
    /// A buffer with a copy of an array's bytes, or of so many bytes, zeroed.
    #[napi(ts_args_type = "contents: TypedArray | number")]
    pub fn buffer(&self, env: Env, contents: Contents) -> napi::Result<DeviceBuffer> {
        let buffer = guard(env, || match contents {
            Contents::Data(data) => self.inner.buffer_of_bytes(data.bytes()),
            Contents::Bytes(bytes) => self.inner.buffer_zeroed(bytes),
        })?;
        DeviceBuffer::new(env, buffer)
    }

    /// `buffer` on another thread. An array is copied first, and the caller's again at once.
    #[napi(ts_args_type = "contents: TypedArray | number", ts_return_type = "Promise<DeviceBuffer>")]
    pub fn buffer_async(&self, contents: Contents) -> AsyncTask<Job> {
        let (context, copy) = (self.inner.clone(), contents.copied());
        let work = move || match copy {
            Ok(bytes) => context.buffer_of_bytes(&bytes),
            Err(bytes) => context.buffer_zeroed(bytes),
        };
        promise(Ok(work), DeviceBuffer::new)
    }

    /// A kernel from a SPIR-V file, or module in memory. `invalid_kernel` if it is malformed or the driver refuses it,
    /// `unsupported` if it needs what the device has not.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions")]
    pub fn load_spirv(&self, env: Env, module: Module, options: Option<PipelineOptions>) -> napi::Result<Kernel> {
        self.load(env, Language::Spirv, module, options)
    }

    /// `loadSpirv` on another thread.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn load_spirv_async(&self, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        self.load_async(Language::Spirv, module, options)
    }

    /// A kernel from a PTX file, or PTX in memory: its leading 64-bit parameters are buffers, the rest push constants.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions")]
    pub fn load_ptx(&self, env: Env, module: Module, options: Option<PipelineOptions>) -> napi::Result<Kernel> {
        self.load(env, Language::Ptx, module, options)
    }

    /// `loadPtx` on another thread.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn load_ptx_async(&self, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        self.load_async(Language::Ptx, module, options)
    }

    /// A kernel from a cubin or fatbin, in a file or in memory.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions")]
    pub fn load_cubin(&self, env: Env, module: Module, options: Option<PipelineOptions>) -> napi::Result<Kernel> {
        self.load(env, Language::Cubin, module, options)
    }

    /// `loadCubin` on another thread.
    #[napi(ts_args_type = "module: string | TypedArray, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn load_cubin_async(&self, module: Module, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        self.load_async(Language::Cubin, module, options)
    }

    /// The same module as another kernel: with another entry point, other specialization constants or another workgroup.
    #[napi(ts_args_type = "kernel: Kernel, options?: PipelineOptions")]
    pub fn create_pipeline(
        &self,
        env: Env,
        kernel: Of<Kernel>,
        options: Option<PipelineOptions>,
    ) -> napi::Result<Kernel> {
        guard(env, || Ok(self.inner.create_pipeline(&kernel.inner, &PipelineOptions::options(options)?)?.into()))
    }

    /// `createPipeline` on another thread.
    #[napi(ts_args_type = "kernel: Kernel, options?: PipelineOptions", ts_return_type = "Promise<Kernel>")]
    pub fn create_pipeline_async(&self, kernel: Of<Kernel>, options: Option<PipelineOptions>) -> AsyncTask<Job> {
        let (context, kernel) = (self.inner.clone(), kernel.inner.clone());
        let work = move || context.create_pipeline(&kernel, &PipelineOptions::options(options)?);
        promise(Ok(work), |_, kernel| Ok(Kernel::from(kernel)))
    }

    /// A program from an `.adead` file (or in an older format), to be run on this context.
    #[napi(ts_args_type = "path: string")]
    pub fn load_adead(&self, env: Env, path: Text) -> napi::Result<Program> {
        guard(env, || Ok(self.inner.load_adead(&*path)?.into()))
    }

    /// `loadAdead` on another thread.
    #[napi(ts_args_type = "path: string", ts_return_type = "Promise<Program>")]
    pub fn load_adead_async(&self, path: Text) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || context.load_adead(&*path)), |_, program| Ok(Program::from(program)))
    }

    /// Enqueues a kernel over workgroups in x, y, z, with buffers in the order of their set and binding, and the bytes of its
    /// push constants. Reading a buffer, or `wait`, waits.
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

    /// `wait` on another thread.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn wait_async(&self) -> AsyncTask<Job> {
        let context = self.inner.clone();
        promise(Ok(move || context.wait()), |_, ()| Ok(()))
    }

    /// The point after everything that the context enqueued.
    #[napi]
    pub fn event(&self, env: Env) -> napi::Result<Event> {
        guard(env, || Ok(self.inner.event()?.into()))
    }

    /// The same for the host to wait for.
    #[napi]
    pub fn fence(&self, env: Env) -> napi::Result<Event> {
        guard(env, || Ok(self.inner.fence()?.into()))
    }

    /// A stream of its own. On an NVIDIA GPU through CUDA the work of one with high priority begins before that of other streams where
    /// both wait; elsewhere it is an ordinary stream.
    #[napi(ts_args_type = "highPriority?: boolean")]
    pub fn stream(&self, env: Env, high_priority: Option<Flag>) -> napi::Result<Stream> {
        let priority = if high_priority.is_some_and(|high| high.0) { Priority::High } else { Priority::Normal };
        guard(env, || Ok(self.inner.stream_with(priority)?.into()))
    }
}
