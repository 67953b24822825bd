//! The functions that a minimal build lacks: each says so.

// Generated from the sources of these functions by `ADEAD_BLESS=1 cargo test -p adead-c --test header`; don't edit.

#[cfg(not(all(feature = "compilers", feature = "flat", feature = "autograd", feature = "overlap", feature = "log", feature = "nn", feature = "programs", feature = "overlap", feature = "profile", feature = "programs", feature = "random", feature = "nn")))]
#[inline(never)]
#[rustfmt::skip]
fn lacks(build: &str, what: &str, how: &str) -> crate::status::adead_status {
    use crate::pointers::fail;
    crate::status::guard(|| fail!(Unsupported, "this is {build} of adead, which has {what}: build it {how}"))
}

/// As in `compile.rs`.
#[cfg(not(feature = "compilers"))]
#[rustfmt::skip]
mod compile {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no compilers", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_kernel_compile(_: *const c_void, _: *const c_char, _: *const c_char, _: *const c_char, _: *const u32, _: *mut *mut c_void) -> adead_status { without() }
}

/// As in `flat.rs`.
#[cfg(not(feature = "flat"))]
#[rustfmt::skip]
mod flat {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no matrices as numbers", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_gpu_available(_: *mut i32) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_device_count(_: *mut i32) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_backend_name(_: i32, _: i32, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_alloc_zeros(_: i64, _: i64, _: i32, _: i32, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_alloc_ones(_: i64, _: i64, _: i32, _: i32, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_alloc_upload(_: *const f32, _: i64, _: i64, _: i32, _: i32, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_free(_: i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_shape(_: i64, _: *mut i64, _: *mut i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_device(_: i64, _: *mut i32, _: *mut i32) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_upload(_: i64, _: *const f32, _: i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_download(_: i64, _: *mut f32, _: i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_to(_: i64, _: i32, _: i32, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_matmul(_: i64, _: i64, _: i64, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_run(_: *const c_char, _: *const c_void, _: i32, _: *const c_char, _: i64, _: i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_stream_create(_: i32, _: i32, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_stream_sync(_: i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_stream_query(_: i64, _: *mut i32) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_stream_destroy(_: i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_async_upload_batch(_: i64, _: *const c_void, _: *const *const f32, _: *const i64, _: i32) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_count(_: *mut i64) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_flat_reset() -> adead_status { without() }
}

/// As in `gradients.rs`.
#[cfg(not(feature = "autograd"))]
#[rustfmt::skip]
mod gradients {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a build", "no gradients", "with ADEAD_GRADIENTS")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_chain_detach(_: *mut c_void, _: u64, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_chain_gradients(_: *mut c_void, _: u64, _: *const c_void, _: usize, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_chain_gradients_with(_: *mut c_void, _: u64, _: *const c_void, _: usize, _: *const c_void, _: usize, _: *const c_void, _: *mut c_void, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_chain_set_grad_enabled(_: *mut c_void, _: i32, _: *mut i32) -> adead_status { without() }
}

/// As in `loader.rs`.
#[cfg(not(feature = "overlap"))]
#[rustfmt::skip]
mod loader {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no batches", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_loader_create(_: *const c_void, _: *mut c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_loader_next(_: *mut c_void, _: *mut *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_loader_destroy(_: *mut c_void) {  }
}

/// As in `log.rs`.
#[cfg(not(feature = "log"))]
#[rustfmt::skip]
mod log {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no messages", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_log_set(_: i32, _: *const c_void, _: *mut c_void) -> adead_status { without() }
}

/// As in `module.rs`.
#[cfg(not(feature = "nn"))]
#[rustfmt::skip]
mod module {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no layers", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_linear(_: *const c_void, _: *const c_void, _: *const c_void, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_embedding(_: *const c_void, _: *const c_void, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_layer_norm(_: *const c_void, _: *const c_void, _: *const c_void, _: f32, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_relu(_: *const c_void, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_gelu(_: *const c_void, _: i32, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_sequential(_: *const *const c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_feed_forward(_: *const c_void, _: *const c_void, _: i32, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_attention(_: *const c_void, _: *const c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_transformer_layer(_: *const c_void, _: *const c_void, _: *const c_void, _: *const c_void, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_transformer_encoder(_: *const *const c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_load(_: *const c_void, _: *const c_void, _: *const c_char, _: *const c_void, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_destroy(_: *mut c_void) {  }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_describe(_: *const c_void, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_module_forward(_: *const c_void, _: *const c_void, _: *const c_void, _: *mut *mut c_void) -> adead_status { without() }
}

/// As in `outcome.rs`.
#[cfg(not(feature = "programs"))]
#[rustfmt::skip]
mod outcome {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no programs", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_destroy(_: *mut c_void) {  }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_output(_: *const c_void, _: *const c_char, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_output_count(_: *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_output_name(_: *const c_void, _: usize, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_report(_: *const c_void, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_trace_count(_: *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_outcome_trace_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status { without() }
}

/// As in `overlap.rs`.
#[cfg(not(feature = "overlap"))]
#[rustfmt::skip]
mod overlap {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no batches", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_batch_memory(_: *mut c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_batch_borrow(_: *mut c_void, _: *const c_void, _: usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_overlap(_: *const c_void, _: usize, _: *const c_void, _: *const c_void, _: *const c_void, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_batches_create(_: *const c_void, _: usize, _: *const c_void, _: *const c_void, _: *mut c_void, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_batches_next(_: *mut c_void, _: *mut usize, _: *mut *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_batches_destroy(_: *mut c_void) {  }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_stage_index(_: *const c_void) -> usize { 0 }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_stage_stream(_: *const c_void) -> *mut c_void { std::ptr::null_mut() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_stage_input(_: *const c_void) -> *mut c_void { std::ptr::null_mut() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_stage_buffer(_: *mut c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_stage_result(_: *mut c_void, _: *const c_void, _: usize, _: usize) -> adead_status { without() }
}

/// As in `profile.rs`.
#[cfg(not(feature = "profile"))]
#[rustfmt::skip]
mod profile {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no profiler", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_begin(_: *const c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_finish(_: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_destroy(_: *mut c_void) {  }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_report(_: *const c_void, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_record_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_total_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_device_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_table(_: *const c_void, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_json(_: *const c_void, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_profile_trace(_: *const c_void, _: *mut *const c_char) -> adead_status { without() }
}

/// As in `program.rs`.
#[cfg(not(feature = "programs"))]
#[rustfmt::skip]
mod program {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no programs", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_decode(_: *const c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_load(_: *const c_char, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_assemble(_: *const c_char, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_destroy(_: *mut c_void) {  }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_format(_: *const c_void, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_length(_: *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_encode(_: *const c_void, _: i32, _: *mut *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_disassemble(_: *const c_void, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_note_count(_: *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_note_at(_: *const c_void, _: usize, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_slot_count(_: *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_slot_at(_: *const c_void, _: usize, _: *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_validate(_: *const c_void, _: usize, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_program_run(_: *const c_void, _: *const c_void, _: *const *const c_char, _: *const *const c_void, _: usize, _: *const c_void, _: *mut *mut c_void) -> adead_status { without() }
}

/// As in `random.rs`.
#[cfg(not(feature = "random"))]
#[rustfmt::skip]
mod random {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no random tensors", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_random_uniform(_: *mut c_void, _: *const c_void, _: f64, _: f64, _: *const usize, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_random_standard_normal(_: *mut c_void, _: *const c_void, _: *const usize, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_random_normal(_: *mut c_void, _: *const c_void, _: f32, _: f32, _: *const usize, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_random_integers(_: *mut c_void, _: i64, _: i64, _: *const usize, _: usize, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_random_permutation(_: *mut c_void, _: usize, _: *mut *mut c_void) -> adead_status { without() }
}

/// As in `safetensors.rs`.
#[cfg(not(feature = "nn"))]
#[rustfmt::skip]
mod safetensors {
    use super::lacks;
    use crate::status::adead_status;
    #[allow(unused_imports)]
    use std::ffi::{c_char, c_void};

    fn without() -> adead_status {
        lacks("a minimal build", "no layers", "without ADEAD_MINIMAL")
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_open(_: *const c_char, _: *mut *mut c_void) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_close(_: *mut c_void) {  }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_count(_: *const c_void, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_name(_: *const c_void, _: usize, _: *mut *const c_char) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_contains(_: *const c_void, _: *const c_char, _: *mut i32) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_dims(_: *const c_void, _: *const c_char, _: *mut *const usize, _: *mut usize) -> adead_status { without() }

    #[unsafe(no_mangle)]
    pub extern "C" fn adead_safetensors_tensor(_: *const c_void, _: *const c_char, _: *const usize, _: usize, _: *mut *mut c_void) -> adead_status { without() }
}
