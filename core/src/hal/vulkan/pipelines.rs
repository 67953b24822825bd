//! The pipelines of the operations' kernels, compiled at first use, and the cache file of compiled pipelines.

use super::api::DeviceApi;
use super::logical::Logical;
use super::physical::Physical;
use super::shaders;
use super::shared::Shared;
use crate::error::{Error, Result, Status};
use crate::hal::lowering::{Kernels, PUSH_BYTES};
use crate::log::log;
use ash::vk;
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

/// Specialization constants 0 to 9 hold the device's modes; a kernel's own constants start here.
pub const FIRST_OWN: u32 = 10;

/// The compiled pipelines of a device.
pub struct Pipelines {
    /// The layout of every operation's kernel: push constants and no descriptors.
    pub layout: vk::PipelineLayout,
    compiled: [RwLock<Vec<Compiled>>; Kernels::COUNT],
    cache: Mutex<Cache>,
}

/// A kernel's own constants, and the pipeline that was compiled with them.
type Compiled = (Box<[u32]>, vk::Pipeline);

struct Cache {
    handle: vk::PipelineCache,
    /// The folders of all openings' cache files, each with whether its file lacks new pipelines.
    folders: Vec<(PathBuf, bool)>,
    /// Whether any pipeline was compiled.
    made: bool,
}

// SAFETY: it holds handles. Vulkan requires a lock only for the cache, which has one.
unsafe impl Send for Pipelines {}
// SAFETY: as above.
unsafe impl Sync for Pipelines {}

impl Pipelines {
    /// Makes a set without pipelines.
    pub fn new(api: &DeviceApi, device: vk::Device, physical: &Physical) -> Result<Pipelines> {
        let range =
            vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: PUSH_BYTES as u32 };
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(std::slice::from_ref(&range));
        let mut layout = vk::PipelineLayout::null();
        // SAFETY: the structures live until the call returns.
        let result = unsafe { (api.create_pipeline_layout)(device, &info, ptr::null(), &mut layout) };
        if result != vk::Result::SUCCESS {
            let text = format!("{}: no pipeline layout (Vulkan: {})", physical.name, result.as_raw());
            return Err(Error::new(Status::OutOfMemory, text));
        }
        // Without a cache, pipelines are compiled all the same.
        let handle = new_cache(api, device, &[]).unwrap_or_default();
        let compiled = std::array::from_fn(|_| RwLock::new(Vec::new()));
        Ok(Pipelines { layout, compiled, cache: Mutex::new(Cache { handle, folders: Vec::new(), made: false }) })
    }

    /// Also keeps the cache in a file in `folder`. Reads the file if it exists and is of this driver build.
    pub fn keep_in(&self, logical: &Logical, folder: &Path) {
        let Logical { api, device, physical, .. } = logical;
        let file = folder.join(file_name(physical));
        let mut cache = self.cache();
        if cache.folders.iter().any(|(known, _)| known.as_os_str() == folder.as_os_str()) {
            return;
        }
        let saved = fs::read(&file).ok();
        let found = saved.is_some();
        let saved = saved.filter(|bytes| is_of(bytes, physical)).unwrap_or_default();
        let outcome = match (found, saved.len()) {
            (false, _) => "does not exist or can't be read",
            (true, 0) => "is ignored: it is damaged or from another driver",
            _ => "is read",
        };
        log!(Debug, "cache", "{} {outcome}", file.to_string_lossy());
        // The driver may refuse the data; then the file is ignored.
        if !saved.is_empty()
            && cache.handle != vk::PipelineCache::null()
            && let Some(more) = new_cache(api, *device, header_off(&saved))
        {
            // SAFETY: both caches are of this device. The destination is locked, and nothing else has the other one.
            unsafe {
                let _ = (api.merge_pipeline_caches)(*device, cache.handle, 1, &more);
                (api.destroy_pipeline_cache)(*device, more, ptr::null());
            }
        }
        let made = cache.made;
        cache.folders.push((folder.into(), made));
    }

    /// Returns the pipeline of a kernel with these constants, and compiles it at first use.
    pub fn get(&self, shared: &Shared, kernels: Kernels, constants: &[u32]) -> Result<vk::Pipeline> {
        let slot = &self.compiled[kernels as usize];
        let find = |made: &[Compiled]| made.iter().find(|(own, _)| **own == *constants).map(|&(_, pipeline)| pipeline);
        if let Some(pipeline) = find(&slot.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(pipeline);
        }
        // The lock is held while compiling, so two threads that need the same pipeline compile it once.
        let mut made = slot.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = find(&made) {
            return Ok(pipeline);
        }
        let own = (FIRST_OWN..).zip(constants.iter().copied());
        let all: Vec<(u32, u32)> = (0..).zip(shared.modes.constants()).chain(own).collect();
        // The subgroups of a kernel with matrices have the size that its constants say.
        let size = shared
            .physical
            .optional
            .matrices
            .filter(|_| kernels == Kernels::Matrices)
            .map(|matrices| matrices.subgroup);
        let pipeline = self.compile(shared, shaders::code(kernels)?, c"main", &all, self.layout, size)?;
        made.push((constants.into(), pipeline));
        Ok(pipeline)
    }

    /// Compiles a module, with subgroups of this size if one is given. `invalid_kernel` if the driver refuses it.
    pub fn compile(
        &self,
        shared: &Shared,
        code: &[u32],
        entry: &std::ffi::CStr,
        constants: &[(u32, u32)],
        layout: vk::PipelineLayout,
        subgroup: Option<u32>,
    ) -> Result<vk::Pipeline> {
        shared.usable()?;
        let (api, device) = (&shared.api, shared.device);
        let info = vk::ShaderModuleCreateInfo::default().code(code);
        let mut module = vk::ShaderModule::null();
        // SAFETY: the code was checked or is adead's own, and it lives until the call returns.
        let result = unsafe { (api.create_shader_module)(device, &info, ptr::null(), &mut module) };
        let mut pipeline = vk::Pipeline::null();
        let result = result.result().and_then(|()| {
            let entries: Vec<vk::SpecializationMapEntry> = (0..)
                .zip(constants)
                .map(|(i, &(constant_id, _))| vk::SpecializationMapEntry { constant_id, offset: 4 * i, size: 4 })
                .collect();
            let data: Vec<u8> = constants.iter().flat_map(|&(_, word)| word.to_ne_bytes()).collect();
            let specialization = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
            let mut stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(entry)
                .specialization_info(&specialization);
            let mut sized = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default();
            if let Some(size) = subgroup {
                sized.required_subgroup_size = size;
                stage = stage.push_next(&mut sized);
            }
            let info = vk::ComputePipelineCreateInfo::default()
                .flags(vk::PipelineCreateFlags::DISPATCH_BASE)
                .stage(stage)
                .layout(layout);
            let mut cache = self.cache();
            cache.made = true;
            cache.folders.iter_mut().for_each(|(_, behind)| *behind = true);
            // SAFETY: the structures live until the call returns, and the cache is locked.
            let result =
                unsafe { (api.create_compute_pipelines)(device, cache.handle, 1, &info, ptr::null(), &mut pipeline) };
            result.result()
        });
        // SAFETY: a compiled pipeline doesn't need its module.
        unsafe { (api.destroy_shader_module)(device, module, ptr::null()) };
        match result {
            Ok(()) => Ok(pipeline),
            Err(result @ (vk::Result::ERROR_DEVICE_LOST | vk::Result::ERROR_OUT_OF_HOST_MEMORY)) => {
                shared.check(result, "compiling a kernel").map(|()| pipeline)
            }
            Err(result) => {
                let text = format!("{}: the driver refuses the kernel (Vulkan: {})", shared.info.id, result.as_raw());
                Err(Error::new(Status::InvalidKernel, text))
            }
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the cache to the files that lack new pipelines. A failed write only means that they are compiled again
    /// later.
    pub fn save(&self, api: &DeviceApi, device: vk::Device, physical: &Physical) {
        let mut cache = self.cache();
        if cache.folders.iter().all(|(_, behind)| !behind) {
            return;
        }
        let mut bytes = header(physical);
        let start = bytes.len();
        let mut size = 0;
        // SAFETY: the first call writes only the size; the second writes at most `size` bytes, and the buffer has room
        // for them.
        let result = unsafe {
            let result = (api.pipeline_cache_data)(device, cache.handle, &mut size, ptr::null_mut());
            bytes.resize(start + size, 0);
            result.result().and_then(|()| {
                let to = bytes[start..].as_mut_ptr().cast();
                (api.pipeline_cache_data)(device, cache.handle, &mut size, to).result()
            })
        };
        bytes.truncate(start + size);
        let sum = checksum(&bytes[start..]);
        bytes[CHECKSUM..CHECKSUM + 8].copy_from_slice(&sum.to_le_bytes());
        for (folder, behind) in cache.folders.iter_mut().filter(|(_, behind)| *behind) {
            *behind = false;
            if result.is_ok() {
                write(folder, &file_name(physical), &bytes);
            }
        }
    }

    /// Saves the cache and destroys everything. Nothing may be in use.
    pub fn destroy(&self, api: &DeviceApi, device: vk::Device, physical: &Physical) {
        self.save(api, device, physical);
        // SAFETY: everything is of this device, and nothing is in use.
        unsafe {
            for pipelines in &self.compiled {
                for (_, pipeline) in pipelines.write().unwrap_or_else(PoisonError::into_inner).drain(..) {
                    (api.destroy_pipeline)(device, pipeline, ptr::null());
                }
            }
            (api.destroy_pipeline_cache)(device, self.cache().handle, ptr::null());
            (api.destroy_pipeline_layout)(device, self.layout, ptr::null());
        }
    }
}

/// Makes a cache from the contents of a file; `None` if the driver refuses.
fn new_cache(api: &DeviceApi, device: vk::Device, data: &[u8]) -> Option<vk::PipelineCache> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    let mut handle = vk::PipelineCache::null();
    // SAFETY: the structures and the data live until the call returns.
    let result = unsafe { (api.create_pipeline_cache)(device, &info, ptr::null(), &mut handle) };
    (result == vk::Result::SUCCESS).then_some(handle)
}

/// Replaces a file atomically: another process that reads or writes it sees either the old or the new contents.
fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let [draft, file] = [&format!("{name}.{}.new", std::process::id()), name].map(|name| folder.join(name));
    let _ = fs::create_dir_all(folder);
    let name = file.to_string_lossy();
    match fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &file)) {
        Ok(()) => log!(Debug, "cache", "{name} is written"),
        Err(error) => {
            log!(Warn, "cache", "{name} can't be written: {error}");
            let _ = fs::remove_file(&draft);
        }
    }
}

/// The first bytes of a cache file; the last character is the format's version.
const MAGIC: &[u8; 8] = b"adeadpc1";
/// Offsets in the header: the driver, the checksum, and the header's end.
const DRIVER: usize = 8;
const CHECKSUM: usize = DRIVER + 28;
const HEADER: usize = CHECKSUM + 8;

/// Makes the header of a cache file, with a checksum of zero.
fn header(physical: &Physical) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for number in [physical.vendor_id, physical.device_id, physical.driver_version] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(physical.cache_uuid);
    bytes.resize(HEADER, 0);
    bytes
}

/// Returns whether a file is an undamaged cache of this device and driver build.
fn is_of(bytes: &[u8], physical: &Physical) -> bool {
    let expected = header(physical);
    bytes.len() > HEADER
        && bytes[..CHECKSUM] == expected[..CHECKSUM]
        && bytes[CHECKSUM..HEADER] == checksum(&bytes[HEADER..]).to_le_bytes()
}

/// Returns a cache file without its header.
fn header_off(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER..).unwrap_or_default()
}

/// FNV-1a: it detects damage, not forgery.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the name of the cache file of a device and driver build.
fn file_name(physical: &Physical) -> String {
    let uuid: String = physical.cache_uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("vulkan-{:x}-{:x}-{:x}-{uuid}.cache", physical.vendor_id, physical.device_id, physical.driver_version)
}
