//! The operations' kernels: which function a dispatch of a family is, with how many threads and how much shared memory.

use super::api::Handle;
use super::registers::absolute;
use super::shared::Shared;
use crate::error::{Error, Result, Status, fail};
use crate::hal::lowering::attention::Tile as AttentionTile;
use crate::hal::lowering::tiles::{Cost, Sizes, Tile, tile};
use crate::hal::lowering::{Kernels, Limits, RUN_WORDS};
use crate::hal::lzma::unpack;
use std::ffi::CStr;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The families' modules for one device, loaded when first used, and the functions that were asked for.
pub struct Modules {
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    modules: [Option<Handle>; Kernels::COUNT],
    functions: Vec<(&'static CStr, Handle)>,
}

// SAFETY: handles that any thread may use.
unsafe impl Send for Loaded {}

/// Constants that a kernel has at most.
pub const CONSTANTS: usize = 12;

/// How a kernel is launched.
pub struct Launch {
    pub name: &'static CStr,
    /// Words that the push constants have at least.
    pub pushed: usize,
    pub threads: u32,
    pub shared_bytes: u32,
    pub groups: [u32; 3],
    /// What follows the push constants.
    pub words: ([u32; CONSTANTS], usize),
}

// Values of the kernels' constants: what lowering gives as a family's first constants.
const WHOLE: u32 = 0;
const SPLIT: u32 = 1;
const MERGE: u32 = 2;
/// Threads of the kernels that have no choice.
const THREADS: u32 = 256;

/// Tiles of products that there is PTX of, too.
const MIDDLE: Cost = Cost { tile: held(128, [64, 64], [8, 4], 32), alone: 38.0, shared: 33.0, slots: 4 };
const LEAST: Cost = Cost { tile: held(64, [16, 32], [2, 4], 64), alone: 17.0, shared: 8.8, slots: 4 };

/// Tiles of products, as fast as they were beside each other on an H200, in the words of `lowering::tiles`.
const TILES: [Cost; 4] = [
    Cost { tile: held(256, [128, 128], [8, 8], 16), alone: 110.0, shared: 95.0, slots: 2 },
    MIDDLE,
    Cost { tile: held(128, [32, 64], [4, 4], 32), alone: 31.0, shared: 21.8, slots: 4 },
    LEAST,
];

/// Those of GPUs that there is no machine code for.
const PORTABLE: [Cost; 2] = [MIDDLE, LEAST];

const fn held(threads: u32, [bm, bn]: [u32; 2], own: [u32; 2], bk: u32) -> Tile {
    let steps = 4 * 2 * bk * (bm + bn);
    Tile { held: shared_of(bm, bn, bk) - steps, ..tile(threads, [bm, bn], own, bk, 2) }
}

/// Of products with at most four rows, where B is read as it lies.
fn narrow(sizes: &Sizes) -> Option<Tile> {
    (sizes.m <= 4 && !sizes.trans_b).then(|| tile(128, [4, 128], [4, 1], 1, 2))
}

impl Launch {
    /// The function for a dispatch of a family with these constants, on a GPU of this compute capability.
    pub fn plan(
        kernels: Kernels,
        constants: &[u32],
        push: &[u32],
        groups: [u32; 3],
        capability: u32,
    ) -> Result<Launch> {
        let words = ([0; CONSTANTS], 0);
        let mut launch = Launch { name: c"", pushed: 0, threads: THREADS, shared_bytes: 0, groups, words };
        match kernels {
            Kernels::Elementwise => {
                (launch.name, launch.pushed) = (c"elementwise", RUN_WORDS);
                launch.take(constants);
            }
            Kernels::Moves => {
                launch.name = match constants[0] {
                    0 | 1 => c"copy",
                    2 | 3 => c"check",
                    4 => c"transpose",
                    _ => c"cast",
                };
                launch.take(constants);
                // Most moves give only the first.
                launch.words.1 = 6;
            }
            Kernels::Lines => {
                let [function, size, _, _, whole, across, _, _, _, _, steps, ..] = constants else {
                    fail!(Internal, "a reduction has {} constants", constants.len());
                };
                // In registers, which PTX leaves out.
                let held = *whole == 1 && *steps == 32 && is_native(capability);
                (launch.name, launch.threads) = match (function, held) {
                    (0..=2, _) if *across == 0 => (c"reduce_along", THREADS),
                    (0..=2, _) => (c"reduce_across", THREADS),
                    (3, true) => (c"softmax_whole", *size),
                    (3, false) => (c"softmax_rows", *size),
                    (_, true) => (c"norm_whole", *size),
                    (_, false) => (c"norm_rows", *size),
                };
                if *function <= 2 && *across == 0 {
                    // A warp for each of the 32 blocks that a workgroup has elsewhere.
                    launch.groups[0] = groups[0].checked_mul(4).ok_or_else(too_many)?;
                } else if *function > 2 && !held {
                    launch.shared_bytes = 4 * size * steps;
                }
                launch.take(constants);
            }
            Kernels::Matmul => {
                let &[threads, bm, bn, _, _, bk, stage, own, has] = constants else {
                    fail!(Internal, "a product has {} constants", constants.len());
                };
                let mut has = has;
                (launch.name, launch.threads) = match stage {
                    WHOLE | SPLIT => (product(bm, bn)?, threads),
                    MERGE => (c"matmul_merge", threads),
                    _ => (c"matmul_vectors", 64),
                };
                if stage <= SPLIT {
                    has |= stage << 12;
                    launch.shared_bytes = if bm == 4 { 0 } else { shared_of(bm, bn, bk) };
                }
                launch.take(&[has, own]);
            }
            Kernels::Attention => {
                let &[threads, columns, of_thread, stage, has] = constants else {
                    fail!(Internal, "attention has {} constants", constants.len());
                };
                (launch.name, launch.threads) = match (stage, threads, columns, of_thread) {
                    (2, ..) => (c"attention_merge", 64),
                    (_, 32, ..) => (c"attention_few", 32),
                    (_, _, 128, _) => (c"attention_128", 128),
                    (_, _, _, 8) => (c"attention_64", 128),
                    _ => (c"attention_64_few", 128),
                };
                if stage <= SPLIT {
                    launch.shared_bytes = attention_bytes(columns, threads, of_thread, push[WIDTH]);
                }
                launch.take(&[has | stage << 5]);
            }
            Kernels::Probe => fail!(Internal, "CUDA needs no probe"),
        }
        Ok(launch)
    }

    fn take(&mut self, words: &[u32]) {
        self.words.0[..words.len()].copy_from_slice(words);
        self.words.1 = words.len();
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(Status::Unsupported, "a reduction of more lines than a kernel can count")
}

fn product(bm: u32, bn: u32) -> Result<&'static CStr> {
    Ok(match (bm, bn) {
        (128, 128) => c"matmul_128x128",
        (64, 64) => c"matmul_64x64",
        (32, 64) => c"matmul_32x64",
        (16, 32) => c"matmul_16x32",
        (4, 128) => c"matmul_4x128",
        _ => fail!(Internal, "no kernel has tiles of {bm} by {bn}"),
    })
}

/// Which word of attention's push constants is the width.
const WIDTH: usize = 17;

/// Bytes of shared memory of attention's block: a chunk of keys, values, weights, queries; rows are apart by four more.
fn attention_bytes(columns: u32, threads: u32, of_thread: u32, width: u32) -> u32 {
    let warps = threads / 32;
    let weights = warps * 64 * (4 * of_thread + 4);
    4 * (64 * 68 + 64 * columns + weights + width.next_multiple_of(64) * (4 * of_thread * warps + 4))
}

/// Of attention: tiles for GPUs that there is machine code for.
fn attention(limits: &Limits, heads: u64, queries: u32, width: u32, value_width: u32) -> AttentionTile {
    let (mut of_thread, columns) = if value_width <= 64 { (8, 64) } else { (4, 128) };
    // Twice as many of half the rows are faster where multiprocessors would not have two blocks each.
    if of_thread == 8 && heads * queries.div_ceil(128) as u64 <= 2 * limits.units as u64 {
        of_thread = 4;
    }
    attention_tile(limits, queries, width, columns, of_thread)
}

/// Of attention: tiles for others.
fn portable_attention(limits: &Limits, _: u64, queries: u32, width: u32, _: u32) -> AttentionTile {
    attention_tile(limits, queries, width, 64, 4)
}

fn attention_tile(limits: &Limits, queries: u32, width: u32, columns: u32, of_thread: u32) -> AttentionTile {
    if queries <= 16 || width > 256 || attention_bytes(columns, 128, of_thread, width) > limits.shared_memory {
        return AttentionTile { threads: 32, queries: 16, columns: 64, of_thread: 4 };
    }
    AttentionTile { threads: 128, queries: 16 * of_thread, columns, of_thread }
}

/// Bytes of shared memory of a product's block: two steps of both operands, whose rows are apart by four more, and the totals.
const fn shared_of(bm: u32, bn: u32, bk: u32) -> u32 {
    4 * (2 * bk * (bm + 4 + bn + 4) + bm * bn)
}

impl Limits {
    /// Those of a GPU.
    pub(super) fn of_cuda(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        let native = is_native(physical.capability);
        Limits {
            shared_memory: physical.shared_memory[1].max(physical.shared_memory[0]),
            threads: physical.threads,
            units: physical.info.units as u32,
            iterations: u32::MAX,
            pitched: true,
            tiles: if native { &TILES } else { &PORTABLE },
            narrow: if native { narrow } else { |_| None },
            attention: if native { attention } else { portable_attention },
        }
    }
}

/// What a family's kernels are for a GPU: machine code for its architecture, else PTX, which its driver compiles.
fn image(kernels: Kernels, capability: u32) -> Result<&'static [u8]> {
    macro_rules! images {
        ($kind:literal) => {{
            // All families', behind each other as `core/build.rs` packs them, and where each ends.
            static BYTES: OnceLock<Option<Vec<u8>>> = OnceLock::new();
            const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $kind, ".packed"));
            const ENDS: [usize; Kernels::COUNT - 1] = include!(concat!(env!("OUT_DIR"), "/", $kind, ".ends"));
            (&BYTES, PACKED, ENDS)
        }};
    }
    let (bytes, packed, ends) = if is_native(capability) { images!("machine") } else { images!("ptx") };
    let family = kernels as usize;
    let from = if family == 0 { 0 } else { ends.get(family - 1).copied().unwrap_or(usize::MAX) };
    let to = ends.get(family).copied().unwrap_or(0);
    let unpacked = || {
        let bytes = unpack(packed)?;
        Some(if is_native(capability) { bytes } else { absolute(&bytes) })
    };
    match bytes.get_or_init(unpacked).as_ref().and_then(|bytes| bytes.get(from..to)) {
        Some(image) => Ok(image),
        None => fail!(Internal, "the kernels in this library are damaged"),
    }
}

/// The compute capability that there is machine code for: 9.0.
const CAPABILITY: u32 = 90;

/// Whether a GPU runs it: those of the same major version do.
fn is_native(capability: u32) -> bool {
    capability / 10 == CAPABILITY / 10 && capability >= CAPABILITY
}

impl Modules {
    /// None loaded.
    pub fn new() -> Modules {
        Modules { loaded: Mutex::default() }
    }

    /// A function of a family, ready for so many bytes of shared memory.
    pub fn function(&self, shared: &Shared, kernels: Kernels, name: &'static CStr) -> Result<Handle> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, function)) = loaded.functions.iter().find(|(known, _)| ptr::eq(*known, name)) {
            return Ok(function);
        }
        let _entered = shared.enter()?;
        let api = shared.api();
        let module = match loaded.modules[kernels as usize] {
            Some(module) => module,
            None => {
                let image = image(kernels, shared.physical.capability)?;
                let mut module = ptr::null_mut();
                // SAFETY: an image of ours, which lives until it returns.
                let result = unsafe {
                    (api.module_load)(&mut module, image.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut())
                };
                shared.check(result, "loading the operations' kernels")?;
                loaded.modules[kernels as usize] = Some(module);
                module
            }
        };
        let mut function = ptr::null_mut();
        // SAFETY: a module of this device; it writes a handle.
        shared.check(unsafe { (api.module_function)(&mut function, module, name.as_ptr()) }, "finding a kernel")?;
        let [usual, most] = shared.physical.shared_memory;
        if most > usual {
            let mut fixed = 0;
            // SAFETY: a function of this device.
            let result = unsafe {
                match (api.function_attribute)(&mut fixed, STATIC_SHARED_MEMORY, function) {
                    0 => (api.function_set)(function, DYNAMIC_SHARED_MEMORY, most as i32 - fixed),
                    failed => failed,
                }
            };
            shared.check(result, "giving a kernel shared memory")?;
        }
        loaded.functions.push((name, function));
        Ok(function)
    }

    /// Unloads them; nothing of them is under way.
    pub fn unload(&self, shared: &Shared) {
        let loaded = std::mem::take(&mut *self.loaded.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(_entered) = shared.enter_to_destroy() else { return };
        for module in loaded.modules.into_iter().flatten() {
            // SAFETY: a module that nobody uses any more.
            let _ = unsafe { (shared.api().module_unload)(module) };
        }
    }
}

// CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const STATIC_SHARED_MEMORY: i32 = 1;
const DYNAMIC_SHARED_MEMORY: i32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_compiled() {
        for (kernels, family) in [
            (Kernels::Attention, "attention"),
            (Kernels::Elementwise, "elementwise"),
            (Kernels::Lines, "lines"),
            (Kernels::Matmul, "matmul"),
            (Kernels::Moves, "moves"),
        ] {
            for (capability, ending) in [(90, "sm_90.cubin"), (70, "ptx"), (89, "ptx"), (120, "ptx")] {
                let path = format!("{}/kernels/cuda/generated/{family}.{ending}", env!("CARGO_MANIFEST_DIR"));
                let image = image(kernels, capability).unwrap();
                // And zeros.
                let rest = image.strip_prefix(std::fs::read(path).unwrap().as_slice()).unwrap();
                assert!((1..=16).contains(&rest.len()) && rest.iter().all(|&byte| byte == 0), "{family}.{ending}");
            }
        }
        assert!(image(Kernels::Probe, 90).is_err());
    }
}
