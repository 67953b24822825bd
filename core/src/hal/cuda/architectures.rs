//! The targets of the operations' kernels. `ci/cuda-kernels` compiles for them, `core/build.rs` packs them, `images.rs`
//! chooses.

/// Compute capabilities with machine code: 90 is 9.0. Later GPUs of the same major version run it too. More machine
/// code would take the C library's archive above its limit (docs/performance-log.md), so drivers of other GPUs compile PTX.
pub const MACHINE_CODE: [u32; 1] = [90];

/// The kernel families that have machine code. The others have PTX alone, which an H200's driver compiles in 0.5 s (`lines`) and
/// 0.1 s (`moves`) at their first use on a machine.
#[allow(dead_code)] // core/build.rs reads it; the library has what follows from it.
pub const COMPILED: [&str; 4] = ["attention", "elementwise", "fixed", "matmul"];

/// Those whose machine code is only in libraries with the feature `machine-code`, because it takes 55 KB of them.
#[allow(dead_code)] // As above.
pub const COMPILED_IF_ROOM: [&str; 2] = ["attention", "matmul"];

/// Compute capabilities with PTX, which drivers compile for all later GPUs. The PTX for 8.0 copies to shared memory while it computes.
/// That for 9.0 waits itself for the kernel before it; families of [`COMPILED`] have none.
pub const PTX: [u32; 3] = [70, 80, 90];

/// Whether a library has a family's machine code.
#[allow(dead_code)] // As above.
pub fn has_machine_code(family: &str, with_all: bool) -> bool {
    COMPILED.contains(&family) && (with_all || !COMPILED_IF_ROOM.contains(&family))
}

/// Whether a family has PTX for a compute capability.
#[allow(dead_code)] // As above.
pub fn has_text(family: &str, capability: u32) -> bool {
    !COMPILED.contains(&family) || !MACHINE_CODE.contains(&capability)
}
