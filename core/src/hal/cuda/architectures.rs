//! The targets of the operations' kernels. `ci/cuda-kernels` compiles for them, `core/build.rs` packs them, `images.rs`
//! chooses.

/// Compute capabilities with machine code: 90 is 9.0. Later GPUs of the same major version run it too. More machine
/// code would take the C library's archive above its limit (docs/performance-log.md), so drivers of other GPUs compile PTX.
pub const MACHINE_CODE: [u32; 1] = [90];

/// The kernel families that have machine code. The others have PTX alone, which an H200's driver compiles in 0.5 s (`lines`) and
/// 0.1 s (`moves`) at their first use on a machine. Machine code of these two would take 32 KB of the archive.
#[allow(dead_code)] // core/build.rs reads it; the library has what follows from it.
pub const COMPILED: [&str; 4] = ["attention", "elementwise", "fixed", "matmul"];

/// Compute capabilities with PTX, which drivers compile for all later GPUs. The PTX for 8.0 copies to shared memory
/// while it computes.
pub const PTX: [u32; 2] = [70, 80];
