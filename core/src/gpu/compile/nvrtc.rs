//! CUDA C++ becomes PTX through the library NVRTC.

use crate::error::{Error, Result, Status, fail};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

/// The variable that names the library, and its usual names, newest first.
const VARIABLE: &str = "ADEAD_NVRTC";
const NAMES: [&str; 6] =
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
/// The variables that name CUDA's folder.
const HOMES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];

type Program = *mut c_void;

/// NVRTC's functions, of the types of nvrtc.h.
struct Api {
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    architectures: unsafe extern "C" fn(*mut c_int) -> c_int,
    architecture_count: unsafe extern "C" fn(*mut c_int) -> c_int,
}

/// A function that fills memory of the size that another one says.
type Fill = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;

/// Where NVRTC is looked for.
fn places() -> Vec<String> {
    if let Ok(name) = std::env::var(VARIABLE) {
        return vec![name];
    }
    let own = NAMES.iter().map(|name| (*name).to_owned());
    let homes = HOMES.iter().filter_map(|variable| std::env::var(variable).ok()).chain(["/usr/local/cuda".to_owned()]);
    own.chain(homes.map(|home| format!("{home}/lib64/libnvrtc.so"))).collect()
}

impl Api {
    /// Returns NVRTC, loaded once.
    fn get() -> Result<&'static Api> {
        static API: OnceLock<Result<Api>> = OnceLock::new();
        API.get_or_init(Api::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Api> {
        let places = places();
        // SAFETY: NVRTC's initialisers have no preconditions.
        let Some(library) = places.iter().find_map(|name| unsafe { Library::new(name) }.ok()) else {
            let names = places.join(", ");
            fail!(
                BackendUnavailable,
                "no compiler of CUDA C++: none of {names} is there; {VARIABLE} may name NVRTC's library"
            );
        };
        // It stays loaded.
        let library = std::mem::ManuallyDrop::new(library);
        let missing = |error: libloading::Error| Error::new(Status::BackendUnavailable, format!("NVRTC: {error}"));
        // SAFETY: the functions have the types of nvrtc.h.
        unsafe {
            macro_rules! function {
                ($name:literal) => {
                    *library.get($name).map_err(missing)?
                };
            }
            Ok(Api {
                error_text: function!(b"nvrtcGetErrorString"),
                create: function!(b"nvrtcCreateProgram"),
                destroy: function!(b"nvrtcDestroyProgram"),
                compile: function!(b"nvrtcCompileProgram"),
                log_size: function!(b"nvrtcGetProgramLogSize"),
                log: function!(b"nvrtcGetProgramLog"),
                ptx_size: function!(b"nvrtcGetPTXSize"),
                ptx: function!(b"nvrtcGetPTX"),
                architectures: function!(b"nvrtcGetSupportedArchs"),
                architecture_count: function!(b"nvrtcGetNumSupportedArchs"),
            })
        }
    }

    /// Returns an error unless a call succeeded.
    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC returns a text that stays, for any code.
        let text = unsafe { CStr::from_ptr((self.error_text)(code)) }.to_string_lossy();
        fail!(InvalidKernel, "NVRTC, {what}: {text}")
    }

    /// The architecture to compile for: the GPU's, or the newest before it that this NVRTC knows.
    fn architecture(&self, gpu: c_int) -> Result<c_int> {
        let mut count = 0;
        // SAFETY: NVRTC writes a number.
        self.check(unsafe { (self.architecture_count)(&mut count) }, "counting architectures")?;
        let mut all = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for so many numbers.
        self.check(unsafe { (self.architectures)(all.as_mut_ptr()) }, "asking for architectures")?;
        match all.iter().copied().filter(|&known| known <= gpu).max() {
            Some(found) => Ok(found),
            None => fail!(Unsupported, "this NVRTC knows no architecture up to {gpu}, the GPU's; it is too new for it"),
        }
    }
}

/// A program that is compiled.
struct Compiled {
    api: &'static Api,
    program: Program,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the program was made, and is destroyed once.
        unsafe { (self.api.destroy)(&mut self.program) };
    }
}

impl Compiled {
    fn bytes(&self, size: Size, fill: Fill, what: &str) -> Result<Vec<u8>> {
        let mut count = 0;
        // SAFETY: NVRTC writes a size.
        self.api.check(unsafe { size(self.program, &mut count) }, what)?;
        let mut bytes = vec![0u8; count];
        // SAFETY: there is room for so many bytes.
        self.api.check(unsafe { fill(self.program, bytes.as_mut_ptr().cast()) }, what)?;
        // They end with NUL.
        bytes.pop();
        Ok(bytes)
    }
}

fn text(text: &str, what: &str) -> Result<CString> {
    CString::new(text).or_else(|_| fail!(InvalidArgument, "{what} has a zero byte"))
}

/// Returns the PTX of CUDA C++ for a GPU, whose target is such as `sm_90`.
pub fn compile(source: &str, name: &str, target: &str) -> Result<Vec<u8>> {
    let api = Api::get()?;
    let digits: String = target.chars().filter(char::is_ascii_digit).collect();
    let Ok(gpu) = digits.parse::<c_int>() else { fail!(Internal, "the target '{target}' has no number") };
    let architecture = text(&format!("--gpu-architecture=compute_{}", api.architecture(gpu)?), "an option")?;
    let (source, name) = (text(source, "the source")?, text(name, "the source's name")?);
    let options = [architecture.as_ptr(), c"--std=c++17".as_ptr()];
    let mut compiled = Compiled { api, program: ptr::null_mut() };
    // SAFETY: the texts end with NUL and live during the call; there are no headers.
    let code =
        unsafe { (api.create)(&mut compiled.program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) };
    api.check(code, "reading the source")?;
    // SAFETY: so many options, which end with NUL and live during the call.
    let code = unsafe { (api.compile)(compiled.program, options.len() as c_int, options.as_ptr()) };
    if code != 0 {
        let log = compiled.bytes(api.log_size, api.log, "asking for messages")?;
        let log = String::from_utf8_lossy(&log);
        if log.trim().is_empty() {
            api.check(code, "compiling")?;
        }
        fail!(InvalidKernel, "{}", log.trim());
    }
    compiled.bytes(api.ptx_size, api.ptx, "asking for PTX")
}
