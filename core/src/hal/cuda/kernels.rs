//! The operations' kernels: which function a dispatch of a family is, with how many threads and how much shared memory.

use super::api::{Handle, code};
use super::images::{Image, images};
use super::physical::Physical;
use super::shared::Shared;
use crate::error::{Error, Result, Status, fail};
use crate::hal::lowering::attention::Tile as AttentionTile;
use crate::hal::lowering::tiles::{Cost, Sizes, Tile, tile};
use crate::hal::lowering::{CUMSUM, Kernels, Limits, ROWS, RUN_WORDS, SOFTMAX_ROWS, TOPK_MERGE, TOPK_SORT};
use crate::log::log;
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
/// Of products of fixed-point numbers: the kernel for tensor cores.
const FIXED_WIDE: u32 = 2;
/// Threads of the kernels that have no choice.
const THREADS: u32 = 256;

/// Tiles of products, as fast as they were beside each other on an H200, in the words of `lowering::tiles`.
const TILES: [Cost; 4] = [
    Cost { tile: held(256, [128, 128], [8, 8], 16), alone: 110.0, shared: 95.0, slots: 2 },
    Cost { tile: held(128, [64, 64], [8, 4], 32), alone: 38.0, shared: 33.0, slots: 4 },
    Cost { tile: held(128, [32, 64], [4, 4], 32), alone: 31.0, shared: 21.8, slots: 4 },
    Cost { tile: held(64, [16, 32], [2, 4], 64), alone: 17.0, shared: 8.8, slots: 4 },
];

/// The same where a multiprocessor has less shared memory than an H200's 228 KiB, so that fewer of them share one: compute
/// capability 7.5 has 64 KiB, 7.0 has 96, 8.6, 8.9 and 12.0 have 100, 8.0 and 8.7 have 164.
static BY_SHARED_MEMORY: [(u32, [Cost; 4]); 5] =
    [(228, TILES), (164, within(164)), (100, within(100)), (96, within(96)), (64, within(64))];

/// The tiles with as many slots as so many KiB have room for. What the time of each is then lies between `alone` and `shared`.
const fn within(kibibytes: u32) -> [Cost; 4] {
    let mut tiles = TILES;
    let mut i = 0;
    while i < tiles.len() {
        let Cost { tile, alone, shared, slots } = tiles[i];
        // The driver keeps 1 KiB for each block.
        let room = (kibibytes << 10) / (shared_of(tile.bm, tile.bn, tile.bk) + 1024);
        if room > 0 && (room as u64) < slots {
            // All of a multiprocessor's, for each k: from one block alone to as many as there are slots.
            let full = slots as f64 * shared;
            let some = alone + (full - alone) * (room - 1) as f64 / (slots - 1) as f64;
            tiles[i] = Cost { tile, alone, shared: some / room as f64, slots: room as u64 };
        }
        i += 1;
    }
    tiles
}

const fn held(threads: u32, [bm, bn]: [u32; 2], own: [u32; 2], bk: u32) -> Tile {
    let steps = 4 * 2 * bk * (bm + bn);
    Tile { held: shared_of(bm, bn, bk) - steps, ..tile(threads, [bm, bn], own, bk, 2) }
}

/// Of products with at most four rows, where B is read as it lies.
fn narrow(sizes: &Sizes) -> Option<Tile> {
    (sizes.m <= 4 && !sizes.trans_b).then(|| tile(128, [4, 128], [4, 1], 1, 2))
}

/// Rows and columns of that kernel's tiles, for so many digits.
fn fixed_wide(digits: u32) -> [u32; 2] {
    if digits == 3 { [128, 64] } else { [128, 128] }
}

impl Launch {
    /// The function for a dispatch of a family with these constants.
    pub fn plan(kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<Launch> {
        let words = ([0; CONSTANTS], 0);
        let mut launch = Launch { name: c"", pushed: 0, threads: THREADS, shared_bytes: 0, groups, words };
        match kernels {
            Kernels::Elementwise => {
                (launch.name, launch.pushed) = (c"elementwise", RUN_WORDS);
                launch.take(constants);
            }
            Kernels::Moves => {
                launch.name = match constants[0] {
                    0 | 1 | 6 => c"copy",
                    2 | 3 => c"check",
                    4 => c"transpose",
                    7 => c"compare",
                    8 => c"select_units",
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
                // In registers.
                let held = *whole == 1 && *steps == 32;
                (launch.name, launch.threads) = match (function, held) {
                    (0..ROWS, _) if *across == 0 => (c"reduce_along", THREADS),
                    (0..ROWS, _) => (c"reduce_across", THREADS),
                    (&CUMSUM, _) => (c"cumulate", THREADS),
                    (&TOPK_SORT, _) => (c"topk_sort", THREADS),
                    (&TOPK_MERGE, _) => (c"topk_merge", THREADS),
                    (&SOFTMAX_ROWS, true) => (c"softmax_whole", *size),
                    (&SOFTMAX_ROWS, false) => (c"softmax_rows", *size),
                    (_, true) => (c"norm_whole", *size),
                    (_, false) => (c"norm_rows", *size),
                };
                if *function < ROWS && *across == 0 {
                    // A warp for each of the 32 blocks that a workgroup has elsewhere.
                    launch.groups[0] = groups[0].checked_mul(4).ok_or_else(too_many)?;
                } else if (ROWS..CUMSUM).contains(function) && !held {
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
            Kernels::Fixed if constants[0] == FIXED_WIDE => {
                let &[_, digits, has, tiles] = constants else {
                    fail!(Internal, "a wide fixed-point product has {} constants", constants.len());
                };
                launch.name = if digits == 3 { c"fixed_wide_3" } else { c"fixed_wide_2" };
                launch.threads = 384;
                // Six steps of both operands' planes, 64 of K.
                let [rows, columns] = fixed_wide(digits);
                launch.shared_bytes = 6 * digits * (rows + columns) * 64;
                launch.take(&[tiles, has]);
            }
            Kernels::Fixed => {
                let &[stage, digits, has] = constants else {
                    fail!(Internal, "a fixed-point product has {} constants", constants.len());
                };
                (launch.name, launch.threads) = match (stage, digits) {
                    (0, _) => (c"fixed_cut", THREADS),
                    (_, 3) => (c"fixed_product_3", THREADS),
                    _ => (c"fixed_product_2", THREADS),
                };
                if stage > 0 {
                    // Two steps of both operands' planes, of 64 lines and 64 of K.
                    launch.shared_bytes = 4 * digits * 64 * 64;
                }
                launch.take(&[digits, has]);
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

/// Of attention.
fn attention(limits: &Limits, heads: u64, queries: u32, width: u32, value_width: u32) -> AttentionTile {
    if queries <= 16 || width > 256 {
        return FEW;
    }
    let narrow = value_width <= 64;
    // Twice as many of half the rows are faster where multiprocessors would not have two blocks each.
    let many = narrow && heads * queries.div_ceil(128) as u64 > 2 * limits.units as u64;
    let tile = |columns, of_thread| AttentionTile { threads: 128, queries: 16 * of_thread, columns, of_thread };
    let fits = |tile: &AttentionTile| {
        attention_bytes(tile.columns, tile.threads, tile.of_thread, width) <= limits.shared_memory
    };
    let tiles = [many.then(|| tile(64, 8)), (!narrow).then(|| tile(128, 4)), Some(tile(64, 4))];
    tiles.into_iter().flatten().find(fits).unwrap_or(FEW)
}

const FEW: AttentionTile = AttentionTile { threads: 32, queries: 16, columns: 64, of_thread: 4 };

/// Bytes of shared memory of a product's block: two steps of both operands, whose rows are apart by four more, and the totals.
const fn shared_of(bm: u32, bn: u32, bk: u32) -> u32 {
    4 * (2 * bk * (bm + 4 + bn + 4) + bm * bn)
}

impl Limits {
    /// Those of a GPU.
    pub(super) fn of_cuda(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        // Of a driver that does not tell, the least.
        let has = |&&(kibibytes, _): &&(u32, _)| kibibytes << 10 <= physical.shared_memory_of_unit;
        let (_, tiles) = BY_SHARED_MEMORY.iter().find(has).unwrap_or(&BY_SHARED_MEMORY[4]);
        Limits {
            shared_memory: physical.shared_memory[1].max(physical.shared_memory[0]),
            threads: physical.threads,
            units: physical.info.units as u32,
            iterations: u32::MAX,
            pitched: true,
            tiles,
            narrow,
            fixed_tile: [64, 64],
            fixed_wide: (physical.capability == 90).then_some(fixed_wide),
            attention,
        }
    }
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
            None => *loaded.modules[kernels as usize].insert(load(shared, kernels)?),
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

/// Loads a family's module: the best that the driver takes.
fn load(shared: &Shared, kernels: Kernels) -> Result<Handle> {
    let mut images = images(&shared.physical).peekable();
    while let Some(image) = images.next() {
        let bytes = image.bytes(kernels)?;
        if let Image::Ptx(_) = image {
            let Physical { info, .. } = &shared.physical;
            log!(Info, "devices", "{} compiles {kernels:?} for {} ({})", info.id, info.arch, image.name());
        }
        let mut module = ptr::null_mut();
        // SAFETY: an image of ours, which lives until it returns.
        let result = unsafe {
            (shared.api().module_load)(&mut module, bytes.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut())
        };
        match result {
            // Machine code is for drivers as new as its compiler.
            code::INVALID_IMAGE | code::NO_BINARY_FOR_GPU if images.peek().is_some() => {}
            result => return shared.check(result, "loading the operations' kernels").map(|()| module),
        }
    }
    fail!(Internal, "there are no kernels for {}", shared.physical.info.arch)
}

// CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const STATIC_SHARED_MEMORY: i32 = 1;
const DYNAMIC_SHARED_MEMORY: i32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::cuda::fake::{Card, Fake};
    use crate::hal::cuda::{CudaDevice, Opening};
    use crate::hal::lowering::tiles::choose;

    fn limits(capability: i32) -> Limits {
        let fake = Fake::new(&[Card { capability, ..Card::default() }]);
        let device = CudaDevice::open(0, &Opening { driver: Some(fake.driver()), ..Opening::default() }).unwrap();
        Limits::of_cuda(&device.shared)
    }

    #[test]
    fn as_many_tiles_share_a_multiprocessor_as_its_memory_holds() {
        let slots = |capability| limits(capability).tiles.iter().map(|cost| cost.slots).collect::<Vec<_>>();
        assert_eq!(slots(90), [2, 4, 4, 4]);
        assert_eq!(slots(100), [2, 4, 4, 4]);
        assert_eq!(slots(80), [1, 3, 4, 4]);
        for capability in [86, 89, 120] {
            assert_eq!(slots(capability), [1, 1, 2, 3], "{capability}");
        }
        assert_eq!(slots(75), [2, 1, 1, 2], "the first does not fit at all");
        // What is alone takes the time of one alone; else it is between both.
        for (here, whole) in limits(86).tiles.iter().zip(&TILES) {
            assert_eq!((here.tile, here.alone), (whole.tile, whole.alone));
            assert!(if here.slots == 1 { here.shared == here.alone } else { here.shared < here.alone });
            assert!(here.shared >= whole.shared);
        }
    }

    #[test]
    fn products_have_tiles_that_fit() {
        for capability in [70, 75, 80, 86, 90, 100, 120] {
            let limits = limits(capability);
            for n in [16, 64, 256, 1024, 4096] {
                let (tile, _) = choose(Sizes { m: n, n, k: n, batches: 1, trans_a: false, trans_b: false }, &limits);
                let bytes = shared_of(tile.bm, tile.bn, tile.bk);
                assert!(bytes <= limits.shared_memory, "{capability}: {n}: {tile:?} takes {bytes} bytes");
            }
        }
        // The largest is for large ones wherever it fits.
        for (capability, bm) in [(75, 64), (80, 128), (86, 128), (90, 128), (120, 128)] {
            let sizes = Sizes { m: 4096, n: 4096, k: 4096, batches: 1, trans_a: false, trans_b: false };
            assert_eq!(choose(sizes, &limits(capability)).0.bm, bm, "{capability}");
        }
    }

    #[test]
    fn attention_has_the_largest_tile_that_fits() {
        let of = |capability, width, value_width| {
            let limits = limits(capability);
            let AttentionTile { threads, columns, of_thread, .. } = attention(&limits, 64, 2048, width, value_width);
            assert!(attention_bytes(columns, threads, of_thread, width) <= limits.shared_memory);
            (threads, columns, of_thread)
        };
        assert_eq!((of(90, 64, 64), of(90, 128, 128)), ((128, 64, 8), (128, 128, 4)));
        assert_eq!((of(80, 64, 64), of(80, 128, 128)), ((128, 64, 8), (128, 128, 4)));
        assert_eq!((of(86, 64, 64), of(120, 128, 128)), ((128, 64, 4), (128, 64, 4)));
        assert_eq!((of(75, 64, 64), of(90, 300, 64)), ((32, 64, 4), (32, 64, 4)));
    }
}
