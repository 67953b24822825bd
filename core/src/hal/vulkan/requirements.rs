//! What a user's module requires of a device: capabilities, SPIR-V's version, and limits.

use super::shared::Shared;
use crate::error::{Result, fail};
use crate::hal::spirv::{EntryPoint, Module};
use ash::vk;

/// Checks that a device supports what a module requires.
pub(super) fn supported(shared: &Shared, module: &Module) -> Result<()> {
    let physical = &shared.physical;
    let (core, f11, f12) = (&physical.features, &physical.features11, &physical.features12);
    // Vulkan 1.2 brought SPIR-V 1.5, and Vulkan 1.3 brought 1.6.
    let most = if physical.api_version >= vk::API_VERSION_1_3 { 0x0001_0600 } else { 0x0001_0500 };
    if module.words()[1] > most {
        let (asked, most) = (module.words()[1] >> 8 & 0xff, most >> 8 & 0xff);
        fail!(Unsupported, "the module is SPIR-V 1.{asked}; {} takes up to 1.{most}", shared.info.id);
    }
    for &capability in module.capabilities() {
        let there = match capability {
            // Matrix, Shader. Float controls are properties, which modules request and drivers check.
            0 | 1 | 4464..=4468 => 1,
            9 => f12.shader_float16,
            10 => core.shader_float64,
            11 => core.shader_int64,
            12 => f12.shader_buffer_int64_atomics | f12.shader_shared_int64_atomics,
            22 => core.shader_int16,
            39 => f12.shader_int8,
            4433 => f11.storage_buffer16_bit_access,
            4434 => f11.uniform_and_storage_buffer16_bit_access,
            4435 => f11.storage_push_constant16,
            4448 => f12.storage_buffer8_bit_access,
            4449 => f12.uniform_and_storage_buffer8_bit_access,
            4450 => f12.storage_push_constant8,
            4441 => f11.variable_pointers_storage_buffer,
            4442 => f11.variable_pointers,
            // Subgroup operations: basic, vote, arithmetic, ballot, shuffle, relative shuffle, clustered, quad.
            61..=68 => u32::from(physical.subgroup_operations & (1 << (capability - 61)) != 0),
            5345 => f12.vulkan_memory_model,
            5346 => f12.vulkan_memory_model_device_scope,
            5347 => f12.buffer_device_address,
            _ => 0,
        };
        if there == 0 {
            fail!(Unsupported, "the module needs SPIR-V capability {capability}, which {} lacks", shared.info.id);
        }
    }
    Ok(())
}

/// Checks that an entry point is within a device's limits.
pub(super) fn fits(shared: &Shared, entry: &EntryPoint) -> Result<()> {
    let (limits, name) = (&shared.physical.limits, &entry.name);
    let size = entry.workgroup_size;
    let threads: u64 = size.iter().map(|&n| u64::from(n)).product();
    let most = limits.max_compute_work_group_size;
    if threads > limits.max_compute_work_group_invocations.into() || size.iter().zip(most).any(|(&n, most)| n > most) {
        fail!(
            Unsupported,
            "kernel '{name}' has workgroups of {size:?} threads; {} takes up to {most:?} per axis and {} in total",
            shared.info.id,
            limits.max_compute_work_group_invocations
        );
    }
    let push = entry.push_constants.as_ref().map_or(0, |push| push.bytes);
    for (what, asked, most) in [
        ("bytes of shared memory", entry.shared_bytes, limits.max_compute_shared_memory_size),
        ("bytes of push constants", push.into(), limits.max_push_constants_size),
        ("resources", entry.bindings.len() as u64, limits.max_per_stage_resources),
    ] {
        if asked > most.into() {
            fail!(Unsupported, "kernel '{name}' has {asked} {what}; {} takes up to {most}", shared.info.id);
        }
    }
    Ok(())
}
