//! The operations' kernels: which function a dispatch of a family is, with how many threads and how much shared memory.

use super::api::Handle;
use super::shared::Shared;
use crate::error::{Error, Result, Status, fail};
use crate::hal::lowering::attention::Tile as AttentionTile;
use crate::hal::lowering::tiles::{Cost, Tile, tile};
use crate::hal::lowering::{Kernels, Limits};
use miniz_oxide::inflate::decompress_to_vec;
use std::ffi::CStr;
use std::ptr;
use std::sync::{Mutex, PoisonError};

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

/// As fast as they are beside each other on an H200, in the words of `lowering::tiles`: an estimate from what registers and shared
/// memory let run at a time.
const TILES: [Cost; 4] = [
    Cost { tile: held(256, [256, 128], [16, 8]), alone: 150.0, shared: 150.0, slots: 1 },
    Cost { tile: held(256, [128, 128], [8, 8]), alone: 92.0, shared: 84.0, slots: 2 },
    Cost { tile: held(128, [64, 64], [8, 4]), alone: 40.0, shared: 24.0, slots: 4 },
    Cost { tile: held(64, [32, 32], [4, 4]), alone: 25.0, shared: 9.3, slots: 6 },
];

const fn held(threads: u32, [bm, bn]: [u32; 2], own: [u32; 2]) -> Tile {
    let steps = 4 * 2 * STEP * (bm + bn);
    Tile { held: shared_of(bm, bn) - steps, ..tile(threads, [bm, bn], own, STEP, 2) }
}

/// Of products with few rows.
fn narrow(short: u32, _long: u32, _along_k: bool) -> Tile {
    match short {
        0..=4 => held(64, [4, 256], [4, 4]),
        5..=16 => held(128, [16, 128], [4, 4]),
        _ => held(64, [32, 32], [4, 4]),
    }
}

/// Steps along k that are in shared memory at a time.
const STEP: u32 = 16;

impl Launch {
    /// The function for a dispatch of a family with these constants.
    pub fn plan(kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<Launch> {
        let mut launch = Launch { name: c"", threads: THREADS, shared_bytes: 0, groups, words: ([0; CONSTANTS], 0) };
        match kernels {
            Kernels::Elementwise => {
                launch.name = c"elementwise";
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
                let held = *whole == 1 && *steps == 32;
                (launch.name, launch.threads) = match (function, held) {
                    (0..=2, _) if *across == 0 => (c"reduce_along", THREADS),
                    (0..=2, _) => (c"reduce_across", THREADS),
                    (3, true) => (c"softmax_whole", *size),
                    (3, false) => (c"softmax_rows", *size),
                    (4, true) => (c"layernorm_whole", *size),
                    (4, false) => (c"layernorm_rows", *size),
                    (_, true) => (c"rmsnorm_whole", *size),
                    (_, false) => (c"rmsnorm_rows", *size),
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
                let &[threads, bm, bn, _, _, _, stage, own, has] = constants else {
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
                    launch.shared_bytes = shared_of(bm, bn);
                }
                launch.take(&[has, own]);
            }
            Kernels::Attention => {
                let &[threads, columns, _, stage, has] = constants else {
                    fail!(Internal, "attention has {} constants", constants.len());
                };
                (launch.name, launch.threads) = match (stage, threads, columns) {
                    (2, ..) => (c"attention_merge", 64),
                    (_, 32, _) => (c"attention_few", 32),
                    (_, _, 64) => (c"attention_64", 128),
                    _ => (c"attention_128", 128),
                };
                if stage <= SPLIT {
                    let queries = if threads == 32 {
                        16
                    } else if columns == 64 {
                        128
                    } else {
                        64
                    };
                    launch.shared_bytes = attention_bytes(queries, columns, threads, push[WIDTH]);
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
        (256, 128) => c"matmul_256x128",
        (128, 128) => c"matmul_128x128",
        (64, 64) => c"matmul_64x64",
        (32, 32) => c"matmul_32x32",
        (16, 128) => c"matmul_16x128",
        (128, 16) => c"matmul_128x16",
        (4, 256) => c"matmul_4x256",
        (256, 4) => c"matmul_256x4",
        _ => fail!(Internal, "no kernel has tiles of {bm} by {bn}"),
    })
}

/// Which word of attention's push constants is the width.
const WIDTH: usize = 17;

/// Bytes of shared memory of attention's block: two chunks of keys, values, weights, queries.
fn attention_bytes(queries: u32, columns: u32, threads: u32, width: u32) -> u32 {
    let of_thread = queries / (threads / 8);
    let weights = threads / 32 * 4 * of_thread * 36;
    4 * (2 * 64 * 68 + 64 * columns + weights + queries * (width.next_multiple_of(64) + 4))
}

/// Of attention.
fn attention(limits: &Limits, queries: u32, width: u32, value_width: u32) -> AttentionTile {
    let (own, columns) = if value_width <= 64 { (128, 64) } else { (64, 128) };
    if queries <= 16 || width > 256 || attention_bytes(own, columns, 128, width) > limits.shared_memory {
        return AttentionTile { threads: 32, queries: 16, columns: 64, of_thread: 4 };
    }
    AttentionTile { threads: 128, queries: own, columns, of_thread: own / 16 }
}

/// Bytes of shared memory of a product's block: two steps of both operands, whose rows are apart by four more, and the totals.
const fn shared_of(bm: u32, bn: u32) -> u32 {
    4 * (2 * STEP * (bm + 4 + bn + 4) + bm * bn)
}

impl Limits {
    /// Those of a GPU.
    pub(super) fn of_cuda(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        Limits {
            shared_memory: physical.shared_memory[1].max(physical.shared_memory[0]),
            threads: physical.threads,
            units: physical.info.units as u32,
            iterations: u32::MAX,
            pitched: true,
            tiles: &TILES,
            narrow,
            attention,
        }
    }
}

/// What a family's kernels are for a GPU: machine code for its architecture, else PTX, which its driver compiles.
fn image(kernels: Kernels, capability: u32) -> Result<Vec<u8>> {
    macro_rules! packed {
        ($name:literal) => {
            [
                include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".sm_90.cubin.packed")).as_slice(),
                include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ptx.packed")).as_slice(),
            ]
        };
    }
    let [code, ptx] = match kernels {
        Kernels::Attention => packed!("attention"),
        Kernels::Elementwise => packed!("elementwise"),
        Kernels::Lines => packed!("lines"),
        Kernels::Matmul => packed!("matmul"),
        Kernels::Moves | Kernels::Probe => packed!("moves"),
    };
    // Machine code runs on later GPUs of the same major version.
    let native = capability / 10 == CAPABILITY / 10 && capability >= CAPABILITY;
    match decompress_to_vec(if native { code } else { ptx }) {
        Ok(mut bytes) => {
            // A text ends with zero.
            bytes.push(0);
            Ok(bytes)
        }
        Err(_) => fail!(Internal, "the kernels in this library are damaged"),
    }
}

/// The compute capability that there is machine code for: 9.0.
const CAPABILITY: u32 = 90;

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
