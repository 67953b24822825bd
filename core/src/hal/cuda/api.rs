//! The CUDA driver API's functions, found at run time: neither the build nor another machine needs anything of CUDA.
//!
//! Types and symbols are those of cuda.h, with the versions (`_v2`) that cuda.h maps its names to.

use crate::error::{Error, Result, Status, fail};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

/// A context, stream, event, module, function or graph.
pub type Handle = *mut c_void;

/// A function of a type that is not known yet.
type Symbol = unsafe extern "system" fn();

#[cfg(test)]
use super::tests::signatures::{any, same};

macro_rules! table {
    (required { $($field:ident = $symbol:ident($($argument:ty),*);)* }
     optional { $($extra:ident = $extra_symbol:ident($($extra_argument:ty),*);)* }) => {
        /// The driver's functions.
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct Api {
            $(pub $field: unsafe extern "system" fn($($argument),*) -> c_int,)*
            $(pub $extra: Option<unsafe extern "system" fn($($extra_argument),*) -> c_int>,)*
        }

        const REQUIRED: &[&CStr] = &[$(name(concat!(stringify!($symbol), "\0"))),*];
        const OPTIONAL: &[&CStr] = &[$(name(concat!(stringify!($extra_symbol), "\0"))),*];

        #[cfg(test)]
        impl Api {
            /// Compares the functions' types with the crate cudarc's. Returns the number that match; with a mismatch it
            /// does not compile.
            pub fn compare(&self) -> usize {
                use cudarc::driver::sys;
                let functions = [
                    $(same(Some(self.$field), sys::$symbol as unsafe fn($(any!($argument)),*) -> _),)*
                    $(same(self.$extra, sys::$extra_symbol as unsafe fn($(any!($extra_argument)),*) -> _),)*
                ];
                functions.into_iter().filter(|&same| same).count()
            }
        }

        impl Api {
            /// Loads every function. `backend_unavailable` names a required function that is missing.
            ///
            /// # Safety
            /// `get` must return only functions with the requested names and their types, or `None`.
            pub unsafe fn load(get: &dyn Fn(&CStr) -> Option<Symbol>) -> Result<Api> {
                const COUNT: usize = REQUIRED.len() + OPTIONAL.len();
                let mut found = [None::<Symbol>; COUNT];
                load(&mut found, get)?;
                // SAFETY: the struct is `repr(C)` and has one function pointer per name, in the same order. `load`
                // found the required ones, and an `Option` of a function pointer has the size of the pointer.
                Ok(unsafe { transmute::<[Option<Symbol>; COUNT], Api>(found) })
            }
        }
    };
}

/// Makes a symbol's name from a text that ends with NUL.
const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a symbol's name has one NUL, its last byte"),
    }
}

fn load(found: &mut [Option<Symbol>], get: &dyn Fn(&CStr) -> Option<Symbol>) -> Result<()> {
    for (i, (name, found)) in REQUIRED.iter().chain(OPTIONAL).zip(found).enumerate() {
        *found = get(name);
        if found.is_none() && i < REQUIRED.len() {
            let name = name.to_string_lossy();
            fail!(BackendUnavailable, "the NVIDIA driver has no {name}: it is older than CUDA 11.4");
        }
    }
    Ok(())
}

table! {
    required {
        init = cuInit(c_uint);
        driver_version = cuDriverGetVersion(*mut c_int);
        error_name = cuGetErrorName(c_int, *mut *const c_char);
        device_count = cuDeviceGetCount(*mut c_int);
        device_get = cuDeviceGet(*mut c_int, c_int);
        device_name = cuDeviceGetName(*mut c_char, c_int, c_int);
        device_uuid = cuDeviceGetUuid_v2(*mut [u8; 16], c_int);
        device_memory = cuDeviceTotalMem_v2(*mut usize, c_int);
        device_attribute = cuDeviceGetAttribute(*mut c_int, c_int, c_int);
        device_bus = cuDeviceGetPCIBusId(*mut c_char, c_int, c_int);
        context_retain = cuDevicePrimaryCtxRetain(*mut Handle, c_int);
        context_release = cuDevicePrimaryCtxRelease_v2(c_int);
        context_current = cuCtxGetCurrent(*mut Handle);
        context_push = cuCtxPushCurrent_v2(Handle);
        context_pop = cuCtxPopCurrent_v2(*mut Handle);
        context_peer = cuCtxEnablePeerAccess(Handle, c_uint);
        memory_info = cuMemGetInfo_v2(*mut usize, *mut usize);
        memory_allocate = cuMemAlloc_v2(*mut u64, usize);
        memory_free = cuMemFree_v2(u64);
        host_allocate = cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        host_free = cuMemFreeHost(*mut c_void);
        copy_to_device = cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Handle);
        copy_to_host = cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, Handle);
        copy_on_device = cuMemcpyDtoDAsync_v2(u64, u64, usize, Handle);
        copy_from_peer = cuMemcpyPeerAsync(u64, Handle, u64, Handle, usize, Handle);
        set_words = cuMemsetD32Async(u64, c_uint, usize, Handle);
        stream_create = cuStreamCreateWithPriority(*mut Handle, c_uint, c_int);
        stream_destroy = cuStreamDestroy_v2(Handle);
        stream_query = cuStreamQuery(Handle);
        stream_synchronize = cuStreamSynchronize(Handle);
        stream_wait = cuStreamWaitEvent(Handle, Handle, c_uint);
        capture_begin = cuStreamBeginCapture_v2(Handle, c_int);
        capture_end = cuStreamEndCapture(Handle, *mut Handle);
        event_create = cuEventCreate(*mut Handle, c_uint);
        event_destroy = cuEventDestroy_v2(Handle);
        event_record = cuEventRecord(Handle, Handle);
        event_query = cuEventQuery(Handle);
        event_synchronize = cuEventSynchronize(Handle);
        event_elapsed = cuEventElapsedTime(*mut f32, Handle, Handle);
        module_load = cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        module_unload = cuModuleUnload(Handle);
        module_function = cuModuleGetFunction(*mut Handle, Handle, *const c_char);
        function_attribute = cuFuncGetAttribute(*mut c_int, c_int, Handle);
        function_set = cuFuncSetAttribute(Handle, c_int, c_int);
        launch = cuLaunchKernel(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
        graph_instantiate = cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
        graph_launch = cuGraphLaunch(Handle, Handle);
        graph_destroy = cuGraphDestroy(Handle);
        graph_exec_destroy = cuGraphExecDestroy(Handle);
    }
    optional {
        // CUDA 11.8.
        launch_with = cuLaunchKernelEx(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
        // CUDA 12.4.
        function_parameter = cuFuncGetParamInfo(Handle, usize, *mut usize, *mut usize);
        module_function_count = cuModuleGetFunctionCount(*mut c_uint, Handle);
        module_functions = cuModuleEnumerateFunctions(*mut Handle, c_uint, Handle);
        // CUDA 12.3.
        function_name = cuFuncGetName(*mut *const c_char, Handle);
    }
}

/// How a kernel is launched: `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: Handle,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: u32,
}

/// `CUlaunchAttribute`: a number, and a value of the kind that it has.
#[repr(C)]
pub struct LaunchAttribute {
    id: u32,
    padding: u32,
    value: [u64; 8],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel may start while the one before it in the stream runs.
    pub const STARTS_EARLY: LaunchAttribute = LaunchAttribute { id: 6, padding: 0, value: [1, 0, 0, 0, 0, 0, 0, 0] };
}

/// `cuLaunchKernelEx`.
pub type LaunchWith =
    unsafe extern "system" fn(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void) -> c_int;

/// Results that adead handles. It only names all others in errors.
pub mod code {
    pub const SUCCESS: i32 = 0;
    pub const INVALID_VALUE: i32 = 1;
    pub const OUT_OF_MEMORY: i32 = 2;
    pub const INVALID_IMAGE: i32 = 200;
    pub const NO_BINARY_FOR_GPU: i32 = 209;
    pub const INVALID_PTX: i32 = 218;
    pub const UNSUPPORTED_PTX_VERSION: i32 = 222;
    pub const INVALID_SOURCE: i32 = 300;
    pub const FILE_NOT_FOUND: i32 = 301;
    pub const NOT_FOUND: i32 = 500;
    pub const NOT_READY: i32 = 600;
}

/// Numbers of device attributes.
pub mod attribute {
    pub const MAX_THREADS: i32 = 1;
    pub const MAX_BLOCK: [i32; 3] = [2, 3, 4];
    pub const MAX_GRID: [i32; 3] = [5, 6, 7];
    pub const SHARED_MEMORY: i32 = 8;
    pub const MULTIPROCESSORS: i32 = 16;
    pub const INTEGRATED: i32 = 18;
    pub const MAJOR: i32 = 75;
    pub const MINOR: i32 = 76;
    pub const SHARED_MEMORY_OF_UNIT: i32 = 81;
    pub const SHARED_MEMORY_OPTIN: i32 = 97;
}

/// A driver that has started.
pub struct Driver {
    pub api: Api,
    /// The CUDA version: 1000 times the major number plus 10 times the minor number.
    pub version: i32,
    /// Whether the driver collects work until it is polled. Windows' driver does, which WSL uses too.
    pub collects: bool,
    /// Whether the variable CUDA_FORCE_PTX_JIT makes adead compile PTX even for GPUs with machine code.
    pub forces_ptx: bool,
    process: u32,
}

impl Driver {
    /// Starts a driver with these functions. `backend_unavailable` if it fails to start.
    pub fn start(api: Api) -> Result<Driver> {
        let mut version = 0;
        // SAFETY: the functions have cuda.h's types. The call writes the version before it returns.
        let result = unsafe {
            match (api.init)(0) {
                code::SUCCESS => (api.driver_version)(&mut version),
                failed => failed,
            }
        };
        let collects = cfg!(windows) || std::path::Path::new("/dev/dxg").exists();
        let forces_ptx = std::env::var_os("CUDA_FORCE_PTX_JIT").is_some_and(|value| value == "1");
        let driver = Driver { api, version, collects, forces_ptx, process: crate::process::id() };
        match result {
            code::SUCCESS => Ok(driver),
            _ => fail!(BackendUnavailable, "the NVIDIA driver does not start ({})", driver.name(result)),
        }
    }

    /// Returns the driver's name for a result.
    pub fn name(&self, result: i32) -> String {
        let mut name = std::ptr::null();
        // SAFETY: the call writes the address of a constant text, or null for an unknown result.
        let known = unsafe { (self.api.error_name)(result, &mut name) } == code::SUCCESS && !name.is_null();
        match known {
            // SAFETY: the driver's text is constant and ends with NUL.
            true => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
            false => format!("CUDA error {result}"),
        }
    }

    /// Returns whether this process started the driver. A forked child has none of the driver's threads and mappings,
    /// so it must never call the driver.
    pub fn opened_in_this_process(&self) -> bool {
        self.process == crate::process::id()
    }

    /// Converts a result into an error, for calls where a lost device plays no part.
    pub fn check(&self, result: i32, id: &str, doing: &str) -> Result<()> {
        if result == code::SUCCESS { Ok(()) } else { Err(self.failure(result, id, doing)) }
    }

    #[cold]
    pub(super) fn failure(&self, result: i32, id: &str, doing: &str) -> Error {
        let status = match result {
            code::OUT_OF_MEMORY => Status::OutOfMemory,
            // Not initialised, no device, invalid device, unknown: while a device is listed or opened.
            3 | 100 | 101 | 999 => Status::BackendUnavailable,
            _ => Status::Internal,
        };
        Error::formatted(status, format_args!("{id}: {doing} failed ({})", self.name(result)))
    }
}

/// The file names of the driver's library.
const LIBRARIES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };

/// Returns the process's driver, loaded on the first call. `backend_unavailable` without a driver or a device, and in a
/// child forked after the first call.
pub fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
    match DRIVER.get_or_init(|| open(LIBRARIES)) {
        Ok(driver) if driver.opened_in_this_process() => Ok(driver),
        Ok(_) => {
            fail!(
                BackendUnavailable,
                "this process was forked from one that already used CUDA, so it can't use CUDA: fork first"
            )
        }
        Err(error) => Err(error.clone()),
    }
}

/// Opens the first of these libraries that exists, and starts its driver.
pub(super) fn open(names: &[&str]) -> Result<Driver> {
    // SAFETY: the driver's initialisers have no preconditions.
    let Some(library) = names.iter().find_map(|name| unsafe { libloading::Library::new(*name) }.ok()) else {
        fail!(BackendUnavailable, "there is no NVIDIA driver ({}) on this machine", names.join(", "));
    };
    // The driver is never unloaded, because it leaves threads and exit handlers behind.
    let library = std::mem::ManuallyDrop::new(library);
    let get = |name: &CStr| {
        // SAFETY: the driver's function of this name has the type in cuda.h.
        unsafe { library.get::<Symbol>(name.to_bytes_with_nul()) }.ok().map(|symbol| *symbol)
    };
    // SAFETY: as above.
    Driver::start(unsafe { Api::load(&get) }?)
}
