//! What `ci/cuda-kernels` compiles the operations' kernels for. `core/build.rs` packs it, `images.rs` chooses of it.

/// Compute capabilities with machine code: a 9.0 is 90. Later ones of the same major version run it, too. More would take the C
/// library's archive above its limit (docs/performance.md): the drivers of other GPUs compile PTX.
pub const MACHINE_CODE: [u32; 1] = [90];

/// Compute capabilities that there is PTX for, which drivers compile for all later ones. From 8.0 on it copies to shared memory
/// while it computes.
pub const PTX: [u32; 2] = [70, 80];
