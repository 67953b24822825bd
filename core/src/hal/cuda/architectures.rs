//! The targets of the operations' kernels. `ci/cuda-kernels` compiles for them, `core/build.rs` packs them, `images.rs`
//! chooses.

/// Compute capabilities with machine code: 90 is 9.0. Later GPUs of the same major version run it too. More machine
/// code would take the C library's archive above its limit (docs/performance-log.md), so drivers of other GPUs compile PTX.
pub const MACHINE_CODE: [u32; 1] = [90];

/// The kernel families that have machine code. The others have PTX alone, which an H200's driver compiles in 0.5 s (`lines`) and
/// 0.1 s (`moves`) at their first use on a machine.
#[allow(dead_code)] // core/build.rs reads it; the library has what follows from it.
pub const COMPILED: [&str; 4] = ["attention", "elementwise", "fixed", "matmul"];

/// Those whose machine code is only in libraries with the feature `machine-code`, because it takes 100 KB of them. An H200's driver
/// compiles their PTX in 0.3 s (`elementwise`), 0.9 s (`matmul`) and 2.5 s (`attention`). `fixed` has instructions that PTX has not.
#[allow(dead_code)] // As above.
pub const COMPILED_IF_ROOM: [&str; 3] = ["attention", "elementwise", "matmul"];

/// Compute capabilities with PTX, which drivers compile for all later GPUs. The PTX for 8.0 copies to shared memory while it computes.
/// That for 9.0 waits itself for the kernel before it; a family whose machine code is in every library has none.
pub const PTX: [u32; 3] = [70, 80, 90];

/// The capability whose texts are in `generated`. Those for the others are there as ed scripts (POSIX's `diff -e`) for its text: most
/// families differ in a few lines, and the crate has a size limit.
#[allow(dead_code)] // As above.
pub const WHOLE: u32 = 80;

/// Returns a text edited by an ed script, whose commands go from the last line to the first.
#[allow(dead_code)] // As above; and a test.
pub fn edited(text: &str, script: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut script = script.lines();
    while let Some(command) = script.next() {
        let (range, kind) = command.split_at(command.len() - 1);
        let (first, last) = range.split_once(',').unwrap_or((range, range));
        let [first, last] = [first, last].map(|line| line.parse::<usize>().expect("the number of a line"));
        let new: Vec<&str> =
            if kind == "d" { Vec::new() } else { script.by_ref().take_while(|line| *line != ".").collect() };
        lines.splice(if kind == "a" { last } else { first - 1 }..last, new);
    }
    lines.join("\n") + "\n"
}

/// Whether a library has a family's machine code.
#[allow(dead_code)] // As above.
pub fn has_machine_code(family: &str, with_all: bool) -> bool {
    COMPILED.contains(&family) && (with_all || !COMPILED_IF_ROOM.contains(&family))
}

/// Whether a family has PTX for a compute capability.
#[allow(dead_code)] // As above.
pub fn has_text(family: &str, capability: u32) -> bool {
    !has_machine_code(family, false) || !MACHINE_CODE.contains(&capability)
}
