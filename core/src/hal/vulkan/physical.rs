//! The physical devices of this machine, with their features and limits.

use super::api::{Instance, instance, text};
use crate::error::Result;
use crate::hal::DeviceKind;
use crate::hal::lowering::Matrices;
use ash::vk;
use std::ptr;
use std::sync::OnceLock;

/// A physical device.
#[derive(Clone)]
pub struct Physical {
    pub handle: vk::PhysicalDevice,
    pub name: String,
    pub vendor: String,
    pub driver: String,
    pub kind: DeviceKind,
    pub uuid: [u8; 16],
    /// The address in the form of PCI tools, if the driver reports it.
    pub bus: Option<String>,
    /// The version in Vulkan's packed form.
    pub api_version: u32,
    /// Bytes of the largest device-local heap.
    pub memory: u64,
    /// Multiprocessors; 0 if the driver doesn't report their number.
    pub units: usize,
    /// A needed feature that the device lacks; `None` if adead can use it.
    pub missing_feature: Option<&'static str>,
    pub optional: OptionalFeatures,
    /// The supported features. Opening the device enables them.
    pub features: vk::PhysicalDeviceFeatures,
    pub features11: vk::PhysicalDeviceVulkan11Features<'static>,
    pub features12: vk::PhysicalDeviceVulkan12Features<'static>,
    pub limits: vk::PhysicalDeviceLimits,
    pub max_allocation: u64,
    pub subgroup: u32,
    /// Bits of `VkSubgroupFeatureFlags` that compute kernels can use.
    pub subgroup_operations: u32,
    /// Identifies this build of the driver: a pipeline cache is valid for one build only.
    pub cache_uuid: [u8; 16],
    /// The most loop iterations that a thread can run, summed over its loops; `u32::MAX` without a limit.
    pub iterations: u32,
    /// Whether a logical device is kept until the process ends; see `logical.rs`.
    pub stays: bool,
    pub vendor_id: u32,
    pub device_id: u32,
    pub driver_version: u32,
}

/// llvmpipe, the compiler in lavapipe, counts the iterations of all loops of a thread together. At this number it
/// silently ends the loops: a product with K = 1024 was wrong.
const LLVMPIPE_ITERATIONS: u32 = 0xffff;

/// Optional features that the device has.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionalFeatures {
    pub memory_budget: bool,
    pub push_descriptor: bool,
    pub shuffle: bool,
    /// Whether writes outside a descriptor's range are dropped. Otherwise they may land elsewhere in the same memory
    /// block.
    pub robustness2: bool,
    /// The cooperative matrices that multiply signed bytes.
    pub matrices: Option<Matrices>,
}

// SAFETY: a handle that any thread may use, and plain values: the `p_next` pointers of the structures are null.
unsafe impl Send for Physical {}
// SAFETY: as above.
unsafe impl Sync for Physical {}

/// Lists the physical devices: discrete, then integrated, virtual and software ones, each kind in the driver's order.
/// `backend_unavailable` without a loader or driver.
pub fn enumerate() -> Result<Vec<Physical>> {
    // A forked child gets its error here.
    let instance = instance()?;
    // Drivers are asked only once: they can answer many threads, but take locks for it.
    static FOUND: OnceLock<Vec<Physical>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let mut handles = [vk::PhysicalDevice::null(); 16];
    let mut count = handles.len() as u32;
    // SAFETY: the array has room for `count` handles. With more devices the call returns INCOMPLETE and drops the rest.
    let result =
        unsafe { (instance.api.enumerate_physical_devices)(instance.handle, &mut count, handles.as_mut_ptr()) };
    if result.as_raw() < 0 {
        count = 0;
    }
    let mut devices = Vec::new();
    let looked: Vec<Physical> =
        handles[..count as usize].iter().map(|&handle| Physical::inspect(instance, handle)).collect();
    for kind in [DeviceKind::Discrete, DeviceKind::Integrated, DeviceKind::Virtual, DeviceKind::Software] {
        devices.extend(looked.iter().filter(|device| device.kind == kind).cloned());
    }
    // An empty list isn't kept, because a device may appear later.
    if !devices.is_empty() {
        let _ = FOUND.set(devices.clone());
    }
    Ok(devices)
}

impl Physical {
    fn inspect(instance: &Instance, handle: vk::PhysicalDevice) -> Physical {
        let api = &instance.api;
        let extensions = extensions(instance, handle);
        let offers = |name: &std::ffi::CStr| {
            extensions.iter().any(|extension| extension.extension_name_as_c_str().is_ok_and(|own| own == name))
        };

        let mut sm = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut maintenance3)
            .push_next(&mut subgroup)
            .push_next(&mut driver)
            .push_next(&mut ids);
        let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let cooperates = cfg!(feature = "integers")
            && offers(vk::KHR_COOPERATIVE_MATRIX_NAME)
            && offers(vk::EXT_SUBGROUP_SIZE_CONTROL_NAME);
        if cooperates {
            properties = properties.push_next(&mut sizes);
        }
        if offers(vk::NV_SHADER_SM_BUILTINS_NAME) {
            properties = properties.push_next(&mut sm);
        }
        let has_bus = offers(vk::EXT_PCI_BUS_INFO_NAME);
        if has_bus {
            properties = properties.push_next(&mut pci);
        }
        // SAFETY: the device knows every structure of the chain, and they live until the call returns.
        unsafe { (api.properties)(handle, &mut properties) };
        let properties = properties.properties;

        let old = properties.api_version < vk::API_VERSION_1_2;
        let mut vulkan11 = vk::PhysicalDeviceVulkan11Features::default();
        let mut vulkan12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut robustness2 = vk::PhysicalDeviceRobustness2FeaturesEXT::default();
        let mut features = vk::PhysicalDeviceFeatures2::default();
        if !old {
            features = features.push_next(&mut vulkan11).push_next(&mut vulkan12);
        }
        if offers(vk::EXT_ROBUSTNESS2_NAME) {
            features = features.push_next(&mut robustness2);
        }
        let mut cooperative = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
        let mut sized = vk::PhysicalDeviceSubgroupSizeControlFeatures::default();
        if cooperates {
            features = features.push_next(&mut cooperative).push_next(&mut sized);
        }
        // SAFETY: as above.
        unsafe { (api.features)(handle, &mut features) };
        let features = features.features;
        // Features for debuggers, several devices and protected content stay off: adead doesn't use them, and they cost
        // time.
        vulkan12.buffer_device_address_capture_replay = 0;
        vulkan12.buffer_device_address_multi_device = 0;
        vulkan11.protected_memory = 0;
        vulkan11.p_next = ptr::null_mut();
        vulkan12.p_next = ptr::null_mut();

        let missing_feature = match () {
            () if old => Some("Vulkan 1.2"),
            () if vulkan12.timeline_semaphore == 0 => Some("timeline semaphores"),
            () if vulkan12.buffer_device_address == 0 => Some("buffer device addresses"),
            () if vulkan12.scalar_block_layout == 0 => Some("scalar block layouts"),
            () if properties.limits.max_compute_work_group_invocations < 256 => Some("workgroups of 256 threads"),
            () if compute_family(instance, handle).is_none() => Some("a compute queue"),
            () => None,
        };
        let subgroup_size = subgroup.subgroup_size;
        let multiplies = cooperative.cooperative_matrix & sized.subgroup_size_control & vulkan12.shader_int8 != 0
            && vulkan12.vulkan_memory_model != 0
            && sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE)
            && properties.limits.max_compute_work_group_invocations >= 4 * subgroup_size
            && properties.limits.max_compute_shared_memory_size >= MATRICES_SHARE;
        let matrices = if multiplies { matrices(instance, handle, subgroup_size) } else { None };
        let computes = subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
        let subgroup_operations = if computes { subgroup.supported_operations.as_raw() } else { 0 };
        Physical {
            handle,
            name: text(&properties.device_name),
            vendor: vendor(properties.vendor_id),
            driver: [text(&driver.driver_name), text(&driver.driver_info)].join(" ").trim().into(),
            kind: match properties.device_type {
                vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::Discrete,
                vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::Integrated,
                vk::PhysicalDeviceType::CPU => DeviceKind::Software,
                _ => DeviceKind::Virtual,
            },
            uuid: ids.device_uuid,
            bus: has_bus.then(|| {
                format!("{:04x}:{:02x}:{:02x}.{:x}", pci.pci_domain, pci.pci_bus, pci.pci_device, pci.pci_function)
            }),
            api_version: properties.api_version,
            memory: heaps(instance, handle, false).0,
            units: (sm.shader_sm_count) as usize,
            missing_feature,
            optional: OptionalFeatures {
                memory_budget: offers(vk::EXT_MEMORY_BUDGET_NAME),
                push_descriptor: offers(vk::KHR_PUSH_DESCRIPTOR_NAME),
                robustness2: robustness2.robust_buffer_access2 != 0,
                matrices,
                shuffle: subgroup_operations & vk::SubgroupFeatureFlags::SHUFFLE.as_raw() != 0,
            },
            features,
            features11: vulkan11,
            features12: vulkan12,
            limits: properties.limits,
            max_allocation: maintenance3.max_memory_allocation_size,
            subgroup: subgroup_size,
            subgroup_operations,
            cache_uuid: properties.pipeline_cache_uuid,
            iterations: if driver.driver_id == vk::DriverId::MESA_LLVMPIPE { LLVMPIPE_ITERATIONS } else { u32::MAX },
            stays: driver.driver_id == vk::DriverId::NVIDIA_PROPRIETARY,
            vendor_id: properties.vendor_id,
            device_id: properties.device_id,
            driver_version: properties.driver_version,
        }
    }

    /// Returns the bytes of its memory, and the bytes still free for this process if the driver reports them.
    pub fn memory_now(&self) -> (u64, Option<u64>) {
        match instance() {
            Ok(instance) => heaps(instance, self.handle, self.optional.memory_budget),
            Err(_) => (self.memory, None),
        }
    }
}

/// Lists the extensions of a device.
fn extensions(instance: &Instance, handle: vk::PhysicalDevice) -> Vec<vk::ExtensionProperties> {
    let mut count = 0;
    let mut list = Vec::new();
    // SAFETY: the first call writes only the count; the second writes at most `count` entries, and the list has that
    // many.
    unsafe {
        let _ = (instance.api.extensions)(handle, ptr::null(), &mut count, ptr::null_mut());
        list.resize(count as usize, vk::ExtensionProperties::default());
        let _ = (instance.api.extensions)(handle, ptr::null(), &mut count, list.as_mut_ptr());
    }
    list.truncate(count as usize);
    list
}

/// The bytes that a workgroup of `matrices.comp` shares: two steps of two digits for 128 lines, and the lines' scales.
const MATRICES_SHARE: u32 = 2 * 2 * 128 * 80 + 4 * 128;

/// Returns the largest cooperative matrices of signed bytes, with 32-bit sums, that `matrices.comp` can use.
fn matrices(instance: &Instance, handle: vk::PhysicalDevice, subgroup: u32) -> Option<Matrices> {
    let list_all = instance.matrices?;
    let mut list = [vk::CooperativeMatrixPropertiesKHR::default(); 64];
    let mut count = list.len() as u32;
    // SAFETY: the array has room for `count` entries. With more of them the call returns INCOMPLETE and drops the rest.
    let result = unsafe { list_all(handle, &mut count, list.as_mut_ptr()) };
    let count = if result.as_raw() < 0 { 0 } else { count as usize };
    let (byte, sum) = (vk::ComponentTypeKHR::SINT8, vk::ComponentTypeKHR::SINT32);
    let fits = |entry: &&vk::CooperativeMatrixPropertiesKHR| {
        [entry.a_type, entry.b_type, entry.c_type, entry.result_type] == [byte, byte, sum, sum]
            && entry.saturating_accumulation == 0
            && entry.scope == vk::ScopeKHR::SUBGROUP
            && [entry.m_size, entry.n_size] == [16, 16]
            && [16, 32].contains(&entry.k_size)
    };
    let largest = list[..count].iter().filter(fits).max_by_key(|entry| entry.k_size)?;
    Some(Matrices { subgroup, k: largest.k_size })
}

/// Lists the queue families of a device.
fn families(instance: &Instance, handle: vk::PhysicalDevice) -> Vec<vk::QueueFamilyProperties> {
    let mut count = 0;
    let mut list = Vec::new();
    // SAFETY: the first call writes only the count; the second writes at most `count` entries, and the list has that
    // many.
    unsafe {
        (instance.api.queue_families)(handle, &mut count, ptr::null_mut());
        list.resize(count as usize, vk::QueueFamilyProperties::default());
        (instance.api.queue_families)(handle, &mut count, list.as_mut_ptr());
    }
    list
}

/// Returns the queue family for computing. It prefers a family without graphics, whose queue no frames share.
pub fn compute_family(instance: &Instance, handle: vk::PhysicalDevice) -> Option<u32> {
    let families = families(instance, handle);
    let computes = |family: &&vk::QueueFamilyProperties| family.queue_flags.contains(vk::QueueFlags::COMPUTE);
    let alone = |family: &vk::QueueFamilyProperties| !family.queue_flags.contains(vk::QueueFlags::GRAPHICS);
    let index = families.iter().position(|family| computes(&family) && alone(family));
    index.or_else(|| families.iter().position(|family| computes(&family))).map(|index| index as u32)
}

/// Returns a family that only copies, if there is one: its engine copies while kernels run.
pub fn transfer_family(instance: &Instance, handle: vk::PhysicalDevice) -> Option<u32> {
    let other = vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS;
    let copies = |family: &vk::QueueFamilyProperties| {
        family.queue_flags.contains(vk::QueueFlags::TRANSFER) && !family.queue_flags.intersects(other)
    };
    families(instance, handle).iter().position(copies).map(|index| index as u32)
}

/// Lists the memory types of a device.
pub fn memory_types(instance: &Instance, handle: vk::PhysicalDevice) -> vk::PhysicalDeviceMemoryProperties {
    let mut memory = vk::PhysicalDeviceMemoryProperties2::default();
    // SAFETY: the structure lives until the call returns.
    unsafe { (instance.api.memory_properties)(handle, &mut memory) };
    memory.memory_properties
}

/// Returns the bytes of the largest device-local heap and, with `budget`, the bytes still free for this process.
fn heaps(instance: &Instance, handle: vk::PhysicalDevice, budget: bool) -> (u64, Option<u64>) {
    let mut budgets = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut memory = vk::PhysicalDeviceMemoryProperties2::default();
    if budget {
        memory = memory.push_next(&mut budgets);
    }
    // SAFETY: the device knows every structure of the chain, and they live until the call returns.
    unsafe { (instance.api.memory_properties)(handle, &mut memory) };
    let memory = memory.memory_properties;
    let heaps = &memory.memory_heaps[..memory.memory_heap_count as usize];
    let local = |heap: &vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
    let largest = (0..heaps.len()).filter(|&i| local(&heaps[i])).max_by_key(|&i| heaps[i].size);
    let Some(largest) = largest else { return (0, None) };
    let left = budgets.heap_budget[largest].saturating_sub(budgets.heap_usage[largest]);
    (heaps[largest].size, if budget { Some(left) } else { None })
}

/// Returns a vendor's name by its PCI number, or by the number that Khronos assigns to vendors without one.
fn vendor(id: u32) -> String {
    let name = match id {
        0x10de => "NVIDIA",
        0x1002 | 0x1022 => "AMD",
        0x8086 => "Intel",
        0x13b5 => "Arm",
        0x5143 => "Qualcomm",
        0x106b => "Apple",
        0x1010 => "Imagination",
        0x14e4 => "Broadcom",
        0x10005 => "Mesa",
        _ => return format!("{id:#x}"),
    };
    name.into()
}
