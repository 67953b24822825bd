//! Users' kernels: PTX, which the driver compiles, or machine code as a cubin or fatbin.
//!
//! A kernel's leading 64-bit parameters are the addresses of its buffers. All parameters from the first other one to
//! the end are its push constants, each at its own offset.

use super::api::{Handle, code};
use super::kernels::Function;
use super::shared::Shared;
use super::stream::{CudaStream, of_device};
use super::{cubin, ptx};
use crate::error::{Error, Result, Status, fail};
use crate::hal::{Kernel, KernelSource, Parameter, PushNumber, Slice, check_slice};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;

/// The most bytes of a kernel's parameters.
pub const MOST_PARAMETERS: usize = 32_764;
/// Offsets of buffers' slices are multiples of this, as in Vulkan on these GPUs.
const ALIGN: usize = 16;

/// A kernel as its module declares it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Offset and bytes of each parameter.
    pub parameters: Vec<(usize, usize)>,
    /// The parameters whose type is known.
    pub numbers: Vec<PushNumber>,
    /// The threads of a block in x, y, z, if the kernel fixes them.
    pub required: Option<[u32; 3]>,
    /// The most threads of a block: the product of these.
    pub most: Option<[u32; 3]>,
}

/// A user's kernel. Clones share it.
pub struct UserKernel(Arc<Inner>);

/// A module, unloaded when dropped.
struct Module {
    shared: Arc<Shared>,
    handle: Handle,
}

struct Inner {
    module: Module,
    function: Handle,
    name: String,
    parameters: Vec<Parameter>,
    /// The offset and the bytes of the push constants.
    push: (usize, usize),
    numbers: Vec<PushNumber>,
    workgroup: [u32; 3],
}

// SAFETY: any thread may use the handles.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl UserKernel {
    /// Checks a module and loads it. Errors: see [`crate::hal::Device::kernel`].
    pub fn new(shared: &Arc<Shared>, source: &KernelSource<'_>) -> Result<UserKernel> {
        let entries = declared_entries(source.code)?;
        if !source.constants.is_empty() {
            fail!(InvalidArgument, "a CUDA kernel takes no specialization constants; got {}", source.constants.len());
        }
        let entry = entries.map(|entries| choose(entries, source.entry)).transpose()?;
        let _entered = shared.enter()?;
        let module = Module::load(shared, source.code)?;
        let fatbin = entry.is_none();
        let mut entry = match entry {
            Some(entry) => entry,
            None => choose(module.entries()?, source.entry)?,
        };
        let function = module.function(&entry.name)?;
        if fatbin || source.code.starts_with(ELF) {
            match shared.parameters_of(function)? {
                Some(parameters) => entry.parameters = parameters,
                None if fatbin => return Err(shared.too_old()),
                None => {}
            }
        }
        let workgroup = workgroup(shared, &entry, source.workgroup, function)?;
        let buffers = entry.parameters.iter().enumerate().take_while(|&(i, &place)| place == (8 * i, 8)).count();
        let end = entry.parameters.last().map_or(0, |&(at, size)| at + size);
        let at = entry.parameters.get(buffers).map_or(end, |&(at, _)| at);
        let parameter = |i| Parameter { slot: (0, i), least: 0, stride: 0, readonly: false };
        let parameters = (0..buffers as u32).map(parameter).collect();
        let push = (at, end - at);
        let numbers = push_numbers(&entry, buffers, at);
        Ok(UserKernel(Arc::new(Inner { module, function, name: entry.name, parameters, push, numbers, workgroup })))
    }

    /// Returns its function.
    #[cfg(test)]
    pub fn function(&self) -> Handle {
        self.0.function
    }

    /// Checks a call and enqueues it.
    pub fn launch(&self, stream: &mut CudaStream, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<()> {
        let Inner { module, function, name, parameters, push: (at, bytes), workgroup, .. } = &*self.0;
        let shared = stream.shared.clone();
        if !Arc::ptr_eq(&module.shared, &shared) {
            fail!(InvalidArgument, "kernel '{name}' was built on another opening of {}", shared.id());
        }
        if (buffers.len(), push.len()) != (parameters.len(), *bytes) {
            fail!(
                InvalidArgument,
                "kernel '{name}' takes {} buffers and {bytes} bytes of push constants, and got {} and {}",
                parameters.len(),
                buffers.len(),
                push.len()
            );
        }
        for (&count, &most) in groups.iter().zip(&shared.physical.grid) {
            if count == 0 || count > most {
                fail!(InvalidArgument, "kernel '{name}': {groups:?} workgroups; each axis must be 1 to {most}");
            }
        }
        let entered = shared.enter()?;
        let mut block = SmallVec::<[u8; 256]>::from_elem(0, at + bytes);
        for (i, buffer) in buffers.iter().enumerate() {
            check_slice("dispatch", buffer.buffer.size(), buffer.offset, buffer.bytes)?;
            if !buffer.offset.is_multiple_of(ALIGN) {
                let offset = buffer.offset;
                fail!(
                    InvalidArgument,
                    "kernel '{name}', buffer {i}: offset {offset}; it must be a multiple of {ALIGN}"
                );
            }
            let address = stream.keep_memory(of_device(buffer.buffer, &shared)?) + buffer.offset as u64;
            block[8 * i..8 * i + 8].copy_from_slice(&address.to_ne_bytes());
        }
        block[*at..].copy_from_slice(push);
        stream.keep(self.0.clone());
        // SAFETY: a function of this device with that many bytes of parameters, and the stream keeps the module and the
        // memory. The author of the kernel vouches for what it does with its buffers.
        unsafe { stream.launch(Function { handle: *function, waits: false }, groups, *workgroup, 0, &block, &entered) }
    }
}

/// The first bytes of a cubin.
const ELF: &[u8] = b"\x7fELF";
/// The first bytes of a fatbin.
const FATBIN: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();

/// Returns the kernels of a well-formed module; `None` for a fatbin, which only the driver can unpack.
fn declared_entries(module: &[u8]) -> Result<Option<Vec<Entry>>> {
    let spirv = 0x0723_0203_u32;
    if module.starts_with(&spirv.to_le_bytes()) || module.starts_with(&spirv.to_be_bytes()) {
        fail!(
            InvalidKernel,
            "the module is SPIR-V, which a Vulkan device takes: open 'vulkan'; CUDA takes PTX, cubin or fatbin"
        );
    }
    if module.starts_with(ELF) {
        return cubin::entries(module).map(Some);
    }
    if module.starts_with(&FATBIN) {
        if !cubin::is_whole(module) {
            return Err(cubin::bad("it is cut off"));
        }
        return Ok(None);
    }
    let text = module.strip_suffix(&[0]).unwrap_or(module);
    match std::str::from_utf8(text) {
        Ok(text) => ptx::entries(text).map(Some),
        Err(_) => Err(cubin::bad("it is neither PTX nor a cubin nor a fatbin")),
    }
}

/// Returns the kernel with this name, or the first if there is no name.
fn choose(mut entries: Vec<Entry>, name: Option<&str>) -> Result<Entry> {
    if entries.is_empty() {
        return Err(cubin::bad("it has no kernel"));
    }
    let found = name.map_or(Some(0), |name| entries.iter().position(|entry| entry.name == name));
    match (found, name) {
        (Some(found), _) => Ok(entries.swap_remove(found)),
        (None, name) => {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
            fail!(
                InvalidArgument,
                "the module has no kernel '{}': it has {}",
                name.unwrap_or_default(),
                names.join(", ")
            )
        }
    }
}

/// Returns the push constants as numbers. Empty unless the type of each is known.
fn push_numbers(entry: &Entry, buffers: usize, first: usize) -> Vec<PushNumber> {
    let known =
        entry.numbers.iter().filter(|number| number.offset as usize >= first && entry.parameters.len() > buffers);
    let numbers = known.map(|number| PushNumber { offset: number.offset - first as u32, ..number.clone() });
    let numbers: Vec<PushNumber> = numbers.collect();
    if numbers.len() == entry.parameters.len() - buffers { numbers } else { Vec::new() }
}

/// Returns the threads of a block: the kernel's fixed number, else the requested one, else the most that the kernel
/// allows.
fn workgroup(shared: &Shared, entry: &Entry, asked: Option<[u32; 3]>, function: Handle) -> Result<[u32; 3]> {
    let name = &entry.name;
    let product = |size: [u32; 3]| size.iter().map(|&n| u64::from(n)).product::<u64>();
    if let (Some(required), Some(asked)) = (entry.required, asked)
        && required != asked
    {
        fail!(InvalidArgument, "workgroup={asked:?}: kernel '{name}' has workgroups of {required:?} threads");
    }
    let Some(size) = entry.required.or(asked).or(entry.most) else {
        fail!(
            InvalidArgument,
            "kernel '{name}' does not declare the threads of a workgroup (.reqntid, .maxntid): pass a workgroup"
        );
    };
    let physical = &shared.physical;
    // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: the limit for this kernel's registers and shared memory on this device.
    let mut threads = 0;
    // SAFETY: a function of this device, and the call writes one number.
    let result = unsafe { (shared.api().function_attribute)(&mut threads, 0, function) };
    shared.check(result, "asking what a kernel takes")?;
    let most = u64::from(physical.threads).min(threads.max(0) as u64).min(entry.most.map_or(u64::MAX, product));
    if product(size) > most || size.contains(&0) || size.iter().zip(physical.block).any(|(&n, most)| n > most) {
        let by_axis = physical.block;
        fail!(
            Unsupported,
            "kernel '{name}': workgroups of {size:?} threads; it takes up to {most} in total and {by_axis:?} per axis"
        );
    }
    Ok(size)
}

impl Module {
    fn load(shared: &Arc<Shared>, image: &[u8]) -> Result<Module> {
        // PTX must end with NUL; a NUL behind machine code does no harm.
        let mut image = image.to_vec();
        image.push(0);
        let mut log = [0u8; 1024];
        // CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, whose value is a number in place of a
        // pointer.
        let mut options = [5, 6];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(log.len() - 1)];
        let mut handle = ptr::null_mut();
        // SAFETY: the module is complete as far as adead can check. Options and values are equally many, and live until
        // the call returns.
        let result = unsafe {
            let image = image.as_ptr().cast();
            (shared.api().module_load)(&mut handle, image, 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        let status = match result {
            code::SUCCESS => return Ok(Module { shared: shared.clone(), handle }),
            code::INVALID_IMAGE | code::INVALID_PTX | code::INVALID_SOURCE | code::FILE_NOT_FOUND => {
                Status::InvalidKernel
            }
            // 221 and 223: this driver can't compile PTX at all.
            code::NO_BINARY_FOR_GPU | code::UNSUPPORTED_PTX_VERSION | 221 | 223 => Status::Unsupported,
            _ => return Err(shared.failure(result, "loading a module")),
        };
        let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
        let (id, result) = (shared.id(), shared.physical.driver.name(result));
        Err(Error::new(status, format!("{id}'s driver refuses the module ({result}) {}", log.trim()).trim_end()))
    }

    fn function(&self, name: &str) -> Result<Handle> {
        let Ok(c_name) = CString::new(name) else { fail!(InvalidKernel, "a kernel's name contains a NUL byte") };
        let mut function = ptr::null_mut();
        // SAFETY: a loaded module, and a text that ends with NUL.
        let result = unsafe { (self.shared.api().module_function)(&mut function, self.handle, c_name.as_ptr()) };
        if result == code::NOT_FOUND {
            fail!(InvalidKernel, "{}'s driver finds no kernel '{name}' in the module", self.shared.id());
        }
        self.shared.check(result, "taking a kernel")?;
        Ok(function)
    }

    /// Lists the module's kernels by name. `unsupported` if the driver has no function for it.
    fn entries(&self) -> Result<Vec<Entry>> {
        let api = self.shared.api();
        let (Some(count), Some(functions), Some(name)) =
            (api.module_function_count, api.module_functions, api.function_name)
        else {
            return Err(self.shared.too_old());
        };
        let mut number = 0;
        // SAFETY: the call writes one number.
        self.shared.check(unsafe { count(&mut number, self.handle) }, "counting a module's kernels")?;
        let mut list = vec![ptr::null_mut(); number as usize];
        // SAFETY: the list has room for `number` handles.
        let result = unsafe { functions(list.as_mut_ptr(), number, self.handle) };
        self.shared.check(result, "listing a module's kernels")?;
        let mut entries = Vec::new();
        for function in list {
            let mut text = ptr::null();
            // SAFETY: a function of the module. The call writes the address of a text that ends with NUL and lives as
            // long as the module.
            let result = unsafe { name(&mut text, function) };
            self.shared.check(result, "asking for a kernel's name")?;
            if !text.is_null() {
                // SAFETY: as above.
                let name = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
                entries.push(Entry { name, ..Entry::default() });
            }
        }
        Ok(entries)
    }
}

impl Shared {
    /// Makes the error for a fatbin that an old driver can't describe.
    #[cold]
    fn too_old(&self) -> Error {
        let text = format!("{}'s driver is older than CUDA 12.4: it takes PTX and cubins, not fatbins", self.id());
        Error::new(Status::Unsupported, text)
    }

    /// Returns offset and bytes of a function's parameters; `None` if the driver has no function for it.
    fn parameters_of(&self, function: Handle) -> Result<Option<Vec<(usize, usize)>>> {
        let Some(info) = self.api().function_parameter else { return Ok(None) };
        let (mut list, mut end) = (Vec::new(), 0);
        loop {
            let (mut at, mut size) = (0, 0);
            // SAFETY: the call writes two numbers.
            match unsafe { info(function, list.len(), &mut at, &mut size) } {
                code::SUCCESS if at >= end && size > 0 && at.saturating_add(size) <= MOST_PARAMETERS => {
                    end = at + size;
                    list.push((at, size));
                }
                // The index is behind the last parameter.
                code::INVALID_VALUE => return Ok(Some(list)),
                result => {
                    self.check(result, "asking for a kernel's parameters")?;
                    fail!(InvalidKernel, "a kernel's parameter {} has {size} bytes at {at}", list.len());
                }
            }
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(_entered) = self.shared.enter_to_destroy() {
            // SAFETY: work that uses the module holds it, so no work does any more.
            let _ = unsafe { (self.shared.api().module_unload)(self.handle) };
        }
    }
}

// SAFETY: `as_any` returns `self`.
unsafe impl Kernel for UserKernel {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }

    fn push_bytes(&self) -> usize {
        self.0.push.1
    }

    fn push_numbers(&self) -> &[PushNumber] {
        &self.0.numbers
    }

    fn workgroup(&self) -> [u32; 3] {
        self.0.workgroup
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
