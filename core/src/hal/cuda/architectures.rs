//! What `ci/cuda-kernels` compiles the operations' kernels for. `core/build.rs` packs it, `images.rs` chooses of it.

/// Compute capabilities with machine code: a 9.0 is 90. Later ones of the same major version run it: 8.0's is 8.6's and 8.9's, too.
/// 12.0's would take the C library's archive above its limit (docs/performance.md): such a GPU's driver compiles PTX.
pub const MACHINE_CODE: [u32; 2] = [80, 90];

/// Compute capabilities that there is PTX for, which drivers compile for all later ones. From 8.0 on it copies to shared memory
/// while it computes.
pub const PTX: [u32; 2] = [70, 80];
