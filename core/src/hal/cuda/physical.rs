//! The GPUs that the driver lists, with their attributes.

use super::api::{Api, Driver, attribute, code};
use crate::error::{Result, fail};
use crate::hal::{ContractLevel, DeviceInfo, DeviceKind};
use std::ffi::{CStr, c_char};

/// A GPU.
#[derive(Clone)]
pub struct Physical {
    pub driver: &'static Driver,
    pub info: DeviceInfo,
    pub handle: i32,
    /// The compute capability: 90 is 9.0.
    pub capability: u32,
    /// The most threads of a block.
    pub threads: u32,
    /// The most threads of a block along each axis.
    pub block: [u32; 3],
    /// The most blocks of a grid along each axis.
    pub grid: [u32; 3],
    /// Bytes of shared memory of a block: by default, and if the kernel requests more.
    pub shared_memory: [u32; 2],
    /// Bytes of shared memory of a multiprocessor; 0 if the driver doesn't report them.
    pub shared_memory_of_unit: u32,
}

/// The lowest compute capability that the kernels are built for.
pub const LEAST: u32 = 70;

/// Lists all GPUs in the driver's order. `backend_unavailable` without a GPU, and in a forked child.
pub fn enumerate(driver: &'static Driver) -> Result<Vec<Physical>> {
    if !driver.opened_in_this_process() {
        fail!(
            BackendUnavailable,
            "this process was forked from one that already used CUDA, so it can't use CUDA: fork first"
        );
    }
    let mut count = 0;
    // SAFETY: the call writes one number.
    driver.check(unsafe { (driver.api.device_count)(&mut count) }, "CUDA", "counting devices")?;
    (0..count).map(|index| Physical::inspect(driver, index)).collect()
}

impl Physical {
    fn inspect(driver: &'static Driver, index: i32) -> Result<Physical> {
        let (api, id) = (&driver.api, format!("cuda:{index}"));
        let (mut handle, mut memory, mut uuid) = (0, 0usize, [0; 16]);
        let (mut name, mut bus) = ([0 as c_char; 128], [0 as c_char; 32]);
        // SAFETY: each call writes one value, or a text into an array of the given size.
        let (result, has_uuid, has_bus) = unsafe {
            driver.check((api.device_get)(&mut handle, index), &id, "finding it")?;
            let _ = (api.device_name)(name.as_mut_ptr(), name.len() as i32, handle);
            let has_bus = (api.device_bus)(bus.as_mut_ptr(), bus.len() as i32, handle) == code::SUCCESS;
            ((api.device_memory)(&mut memory, handle), (api.device_uuid)(&mut uuid, handle) == code::SUCCESS, has_bus)
        };
        driver.check(result, &id, "asking for its memory")?;
        let get = |what: i32| attribute_of(api, handle, what);
        let (major, minor) = (get(attribute::MAJOR), get(attribute::MINOR));
        let info = DeviceInfo {
            id,
            name: text(&mut name),
            contract: ContractLevel::Native,
            arch: format!("sm_{major}{minor}"),
            units: get(attribute::MULTIPROCESSORS) as usize,
            memory: memory as u64,
            kind: if get(attribute::INTEGRATED) != 0 { DeviceKind::Integrated } else { DeviceKind::Discrete },
            vendor: "NVIDIA".into(),
            driver: format!("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10),
            uuid: has_uuid.then_some(uuid),
            bus: has_bus.then(|| text(&mut bus).to_ascii_lowercase()),
        };
        Ok(Physical {
            driver,
            info,
            handle,
            capability: major * 10 + minor,
            threads: get(attribute::MAX_THREADS),
            block: attribute::MAX_BLOCK.map(get),
            grid: attribute::MAX_GRID.map(get),
            shared_memory: [get(attribute::SHARED_MEMORY), get(attribute::SHARED_MEMORY_OPTIN)],
            shared_memory_of_unit: get(attribute::SHARED_MEMORY_OF_UNIT),
        })
    }
}

/// Returns an attribute of a device; 0 if the driver doesn't know it.
#[inline(never)]
fn attribute_of(api: &Api, device: i32, what: i32) -> u32 {
    let mut value = 0;
    // SAFETY: the call writes one number.
    let known = unsafe { (api.device_attribute)(&mut value, what, device) } == code::SUCCESS;
    if known { value.max(0) as u32 } else { 0 }
}

/// Converts text in a fixed array, up to its NUL.
fn text(bytes: &mut [c_char]) -> String {
    if let Some(last) = bytes.last_mut() {
        *last = 0;
    }
    // SAFETY: the array's last byte is a NUL.
    unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned()
}
