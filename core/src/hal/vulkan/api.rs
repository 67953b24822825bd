//! Vulkan's functions, found at run time. `ash` provides the types. The tables below load only the functions that adead
//! calls, because ash's tables of all functions add 52 KB to the library.

use crate::error::{Result, fail};
use ash::vk;
use std::ffi::CStr;
use std::os::raw::c_char;
use std::sync::OnceLock;

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $pfn:ident = $symbol:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct $name { $(pub $field: vk::$pfn,)* }

        impl $name {
            /// Loads every function of the table. `backend_unavailable` names a function that is missing.
            ///
            /// # Safety
            /// `get` must return only functions with the requested names and their types, or `None`.
            pub unsafe fn load(get: &dyn Fn(&CStr) -> Option<unsafe extern "system" fn()>) -> Result<$name> {
                const NAMES: &[&CStr] = &[$($symbol),*];
                let mut found = [None::<unsafe extern "system" fn()>; NAMES.len()];
                load(NAMES, &mut found, get)?;
                // SAFETY: the struct is `repr(C)` and has one function pointer per name, in the same order. `load`
                // found all of them, and an `Option` of a function pointer has the size of the pointer.
                Ok(unsafe { std::mem::transmute::<[Option<unsafe extern "system" fn()>; NAMES.len()], $name>(found) })
            }
        }
    };
}

fn load(
    names: &[&CStr],
    found: &mut [Option<unsafe extern "system" fn()>],
    get: &dyn Fn(&CStr) -> Option<unsafe extern "system" fn()>,
) -> Result<()> {
    for (name, found) in names.iter().zip(found) {
        *found = get(name);
        if found.is_none() {
            fail!(BackendUnavailable, "the Vulkan driver has no {}", name.to_string_lossy());
        }
    }
    Ok(())
}

table! {
    /// The functions of an instance.
    InstanceApi {
        enumerate_physical_devices: PFN_vkEnumeratePhysicalDevices = c"vkEnumeratePhysicalDevices",
        properties: PFN_vkGetPhysicalDeviceProperties2 = c"vkGetPhysicalDeviceProperties2",
        features: PFN_vkGetPhysicalDeviceFeatures2 = c"vkGetPhysicalDeviceFeatures2",
        memory_properties: PFN_vkGetPhysicalDeviceMemoryProperties2 = c"vkGetPhysicalDeviceMemoryProperties2",
        queue_families: PFN_vkGetPhysicalDeviceQueueFamilyProperties = c"vkGetPhysicalDeviceQueueFamilyProperties",
        extensions: PFN_vkEnumerateDeviceExtensionProperties = c"vkEnumerateDeviceExtensionProperties",
        create_device: PFN_vkCreateDevice = c"vkCreateDevice",
        get_device_proc_addr: PFN_vkGetDeviceProcAddr = c"vkGetDeviceProcAddr",
    }
}

table! {
    /// The functions of a device.
    DeviceApi {
        destroy_device: PFN_vkDestroyDevice = c"vkDestroyDevice",
        get_device_queue: PFN_vkGetDeviceQueue = c"vkGetDeviceQueue",
        device_wait_idle: PFN_vkDeviceWaitIdle = c"vkDeviceWaitIdle",
        allocate_memory: PFN_vkAllocateMemory = c"vkAllocateMemory",
        free_memory: PFN_vkFreeMemory = c"vkFreeMemory",
        map_memory: PFN_vkMapMemory = c"vkMapMemory",
        create_buffer: PFN_vkCreateBuffer = c"vkCreateBuffer",
        destroy_buffer: PFN_vkDestroyBuffer = c"vkDestroyBuffer",
        buffer_requirements: PFN_vkGetBufferMemoryRequirements = c"vkGetBufferMemoryRequirements",
        bind_buffer_memory: PFN_vkBindBufferMemory = c"vkBindBufferMemory",
        buffer_address: PFN_vkGetBufferDeviceAddress = c"vkGetBufferDeviceAddress",
        create_semaphore: PFN_vkCreateSemaphore = c"vkCreateSemaphore",
        destroy_semaphore: PFN_vkDestroySemaphore = c"vkDestroySemaphore",
        semaphore_value: PFN_vkGetSemaphoreCounterValue = c"vkGetSemaphoreCounterValue",
        wait_semaphores: PFN_vkWaitSemaphores = c"vkWaitSemaphores",
        create_event: PFN_vkCreateEvent = c"vkCreateEvent",
        destroy_event: PFN_vkDestroyEvent = c"vkDestroyEvent",
        event_status: PFN_vkGetEventStatus = c"vkGetEventStatus",
        reset_event: PFN_vkResetEvent = c"vkResetEvent",
        cmd_set_event: PFN_vkCmdSetEvent = c"vkCmdSetEvent",
        queue_submit: PFN_vkQueueSubmit = c"vkQueueSubmit",
        create_command_pool: PFN_vkCreateCommandPool = c"vkCreateCommandPool",
        destroy_command_pool: PFN_vkDestroyCommandPool = c"vkDestroyCommandPool",
        reset_command_pool: PFN_vkResetCommandPool = c"vkResetCommandPool",
        allocate_command_buffers: PFN_vkAllocateCommandBuffers = c"vkAllocateCommandBuffers",
        begin_command_buffer: PFN_vkBeginCommandBuffer = c"vkBeginCommandBuffer",
        end_command_buffer: PFN_vkEndCommandBuffer = c"vkEndCommandBuffer",
        cmd_bind_pipeline: PFN_vkCmdBindPipeline = c"vkCmdBindPipeline",
        cmd_push_constants: PFN_vkCmdPushConstants = c"vkCmdPushConstants",
        cmd_dispatch_base: PFN_vkCmdDispatchBase = c"vkCmdDispatchBase",
        cmd_pipeline_barrier: PFN_vkCmdPipelineBarrier = c"vkCmdPipelineBarrier",
        cmd_copy_buffer: PFN_vkCmdCopyBuffer = c"vkCmdCopyBuffer",
        cmd_fill_buffer: PFN_vkCmdFillBuffer = c"vkCmdFillBuffer",
        cmd_bind_descriptor_sets: PFN_vkCmdBindDescriptorSets = c"vkCmdBindDescriptorSets",
        cmd_write_timestamp: PFN_vkCmdWriteTimestamp = c"vkCmdWriteTimestamp",
        cmd_reset_query_pool: PFN_vkCmdResetQueryPool = c"vkCmdResetQueryPool",
        create_query_pool: PFN_vkCreateQueryPool = c"vkCreateQueryPool",
        destroy_query_pool: PFN_vkDestroyQueryPool = c"vkDestroyQueryPool",
        query_results: PFN_vkGetQueryPoolResults = c"vkGetQueryPoolResults",
        create_shader_module: PFN_vkCreateShaderModule = c"vkCreateShaderModule",
        destroy_shader_module: PFN_vkDestroyShaderModule = c"vkDestroyShaderModule",
        create_pipeline_layout: PFN_vkCreatePipelineLayout = c"vkCreatePipelineLayout",
        destroy_pipeline_layout: PFN_vkDestroyPipelineLayout = c"vkDestroyPipelineLayout",
        create_compute_pipelines: PFN_vkCreateComputePipelines = c"vkCreateComputePipelines",
        destroy_pipeline: PFN_vkDestroyPipeline = c"vkDestroyPipeline",
        create_pipeline_cache: PFN_vkCreatePipelineCache = c"vkCreatePipelineCache",
        pipeline_cache_data: PFN_vkGetPipelineCacheData = c"vkGetPipelineCacheData",
        merge_pipeline_caches: PFN_vkMergePipelineCaches = c"vkMergePipelineCaches",
        destroy_pipeline_cache: PFN_vkDestroyPipelineCache = c"vkDestroyPipelineCache",
        create_descriptor_set_layout: PFN_vkCreateDescriptorSetLayout = c"vkCreateDescriptorSetLayout",
        destroy_descriptor_set_layout: PFN_vkDestroyDescriptorSetLayout = c"vkDestroyDescriptorSetLayout",
        create_descriptor_pool: PFN_vkCreateDescriptorPool = c"vkCreateDescriptorPool",
        destroy_descriptor_pool: PFN_vkDestroyDescriptorPool = c"vkDestroyDescriptorPool",
        reset_descriptor_pool: PFN_vkResetDescriptorPool = c"vkResetDescriptorPool",
        allocate_descriptor_sets: PFN_vkAllocateDescriptorSets = c"vkAllocateDescriptorSets",
        update_descriptor_sets: PFN_vkUpdateDescriptorSets = c"vkUpdateDescriptorSets",
    }
}

/// The process's instance. It lives as long as the process.
pub struct Instance {
    pub handle: vk::Instance,
    pub api: InstanceApi,
    /// Lists a device's cooperative matrices, if a driver can.
    pub matrices: Option<vk::PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>,
    process: u32,
}

// SAFETY: it holds a handle and function pointers, and Vulkan allows several threads to use an instance.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// The file names of the Vulkan loader.
const LOADERS: &[&str] = if cfg!(windows) {
    &["vulkan-1.dll"]
} else if cfg!(target_vendor = "apple") {
    &["libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"]
} else {
    &["libvulkan.so.1", "libvulkan.so"]
};

/// Returns the process's instance, made on the first call. `backend_unavailable` without a loader or driver, and in a
/// child forked after the first call: drivers rely on threads, and a forked child has none of them.
pub fn instance() -> Result<&'static Instance> {
    static INSTANCE: OnceLock<Result<Instance>> = OnceLock::new();
    match INSTANCE.get_or_init(|| open(LOADERS)) {
        Ok(instance) if instance.process == crate::process::id() => Ok(instance),
        Ok(_) => {
            fail!(
                BackendUnavailable,
                "this process was forked from one that already used Vulkan, so it can't use Vulkan: fork first"
            )
        }
        Err(error) => Err(error.clone()),
    }
}

/// Opens the first of these loaders that exists, and makes an instance.
pub(super) fn open(names: &[&str]) -> Result<Instance> {
    // SAFETY: the Vulkan loader's initialisers have no preconditions.
    let Some(library) = names.iter().find_map(|name| unsafe { libloading::Library::new(*name) }.ok()) else {
        fail!(BackendUnavailable, "there is no Vulkan loader ({}) on this machine", names.join(", "));
    };
    // SAFETY: the type is that of the specification for this name.
    let get = match unsafe { library.get::<vk::PFN_vkGetInstanceProcAddr>(b"vkGetInstanceProcAddr\0") } {
        Ok(get) => *get,
        Err(_) => fail!(BackendUnavailable, "the Vulkan loader has no vkGetInstanceProcAddr"),
    };
    // The library is never unloaded, because drivers leave threads and exit handlers behind.
    std::mem::forget(library);
    let global = |name: &CStr| {
        // SAFETY: with a null instance, the loader returns the global functions.
        unsafe { get(vk::Instance::null(), name.as_ptr()) }
    };
    // SAFETY: the type is that of the specification for this name.
    let version = global(c"vkEnumerateInstanceVersion")
        .map(|f| unsafe { std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkEnumerateInstanceVersion>(f) });
    let mut supported = vk::API_VERSION_1_0;
    if let Some(version) = version {
        // SAFETY: the call writes one u32, to `supported`.
        let _ = unsafe { version(&mut supported) };
    }
    if supported < vk::API_VERSION_1_2 {
        fail!(BackendUnavailable, "the Vulkan loader is older than version 1.2");
    }
    let Some(create) = global(c"vkCreateInstance") else {
        fail!(BackendUnavailable, "the Vulkan loader has no vkCreateInstance")
    };
    // SAFETY: as above.
    let create = unsafe { std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateInstance>(create) };
    let application = vk::ApplicationInfo::default()
        .application_name(c"adead")
        .engine_name(c"adead")
        .api_version(supported.min(vk::API_VERSION_1_3));
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    let mut handle = vk::Instance::null();
    // SAFETY: the structures live until the call returns.
    let result = unsafe { create(&info, std::ptr::null(), &mut handle) };
    if result != vk::Result::SUCCESS {
        fail!(BackendUnavailable, "no Vulkan driver answers (vkCreateInstance: {})", result.as_raw());
    }
    // SAFETY: `get` returns functions of this instance, and the table has the specification's types.
    let api = unsafe { InstanceApi::load(&|name| get(handle, name.as_ptr())) }?;
    // SAFETY: as above.
    let matrices = unsafe { get(handle, c"vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR".as_ptr()) };
    // SAFETY: the type is that of the specification for this name.
    let matrices = matrices.map(|f| unsafe {
        std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(f)
    });
    Ok(Instance { handle, api, matrices, process: crate::process::id() })
}

/// Converts text in a fixed array, up to its NUL.
pub fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().take_while(|&&byte| byte != 0).map(|byte| byte.to_ne_bytes()[0]).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
