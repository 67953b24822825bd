//! The operations' kernels: the function, threads and shared memory of each dispatch, and the tiles of products and
//! attention.

use super::api::{Handle, code};
use super::images::{Image, images};
use super::physical::Physical;
use super::shared::Shared;
use crate::error::{Error, Result, Status, fail};
use crate::hal::TileCosts;
use crate::hal::lowering::attention::{Sizes as AttentionSizes, Tile as AttentionTile};
use crate::hal::lowering::attention_whole::shared_bytes;
use crate::hal::lowering::tiles::{Cost, Sizes, Tile, tile};
use crate::hal::lowering::{CUMSUM, Kernels, Limits, ROWS, RUN_WORDS, SOFTMAX_ROWS, TOPK_MERGE, TOPK_SORT};
use crate::log::log;
use std::ffi::CStr;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// The modules of a device, one for each family, loaded at first use, and the functions taken from them.
pub struct Modules {
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    modules: [Option<Module>; Kernels::COUNT],
    functions: Vec<(&'static CStr, Function)>,
}

#[derive(Clone, Copy)]
struct Module {
    handle: Handle,
    waits: bool,
}

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub handle: Handle,
    /// Whether it waits itself for the kernel before it, so that it may be started while that one runs.
    pub waits: bool,
}

impl Function {
    pub const NONE: Function = Function { handle: ptr::null_mut(), waits: false };
}

// SAFETY: any thread may use the handles.
unsafe impl Send for Loaded {}

/// The most constants of a kernel.
pub const CONSTANTS: usize = 12;

/// The parameters of a kernel's launch.
pub struct Launch {
    pub name: &'static CStr,
    /// The fewest words of push constants that the kernel has.
    pub pushed: usize,
    pub threads: u32,
    pub shared_bytes: u32,
    pub groups: [u32; 3],
    /// The words behind the push constants.
    pub words: ([u32; CONSTANTS], usize),
}

// The first constants that lowering passes to a family, and the kernels that they select.
const WHOLE: u32 = 0;
const SPLIT: u32 = 1;
const MERGE: u32 = 2;
/// For fixed-point products: selects the kernel for tensor cores.
const FIXED_WIDE: u32 = 2;
/// Threads of a block, in kernels with a fixed number.
const THREADS: u32 = 256;

/// The tiles of products, with costs measured side by side on an H200. `lowering::tiles` defines the terms.
const TILES: [Cost; 4] = [
    Cost { tile: held(256, [128, 128], [8, 8], 16), alone: 110.0, shared: 95.0, slots: 2 },
    Cost { tile: held(128, [64, 64], [8, 4], 32), alone: 38.0, shared: 33.0, slots: 4 },
    Cost { tile: held(128, [32, 64], [4, 4], 32), alone: 31.0, shared: 21.8, slots: 4 },
    Cost { tile: held(64, [16, 32], [2, 4], 64), alone: 17.0, shared: 8.8, slots: 4 },
];

/// The same tiles for GPUs with less shared memory per multiprocessor than an H200's 228 KiB, where fewer blocks share
/// one. Compute capability 7.5 has 64 KiB, 7.0 has 96, 8.6, 8.9 and 12.0 have 100, 8.0 and 8.7 have 164.
static BY_SHARED_MEMORY: [(u32, [Cost; 4]); 5] =
    [(228, TILES), (164, within(164)), (100, within(100)), (96, within(96)), (64, within(64))];

/// Returns the tiles with as many slots as the shared memory holds. `shared` then lies between `alone` and the full
/// value.
const fn within(kibibytes: u32) -> [Cost; 4] {
    let mut tiles = TILES;
    let mut i = 0;
    while i < tiles.len() {
        let Cost { tile, alone, shared, slots } = tiles[i];
        // The driver reserves 1 KiB for each block.
        let room = (kibibytes << 10) / (shared_of(tile.bm, tile.bn, tile.bk) + 1024);
        if room > 0 && (room as u64) < slots {
            // The time of all slots together, for each k: interpolated between one block and a full multiprocessor.
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

/// Returns the tile for products with at most four rows, which reads B in place. With one row, a workgroup has a warp for each of up to
/// 16 K blocks, unless few workgroups would share a long K.
fn narrow(sizes: &Sizes) -> Option<Tile> {
    let &Sizes { m, n, batches, trans_b, .. } = sizes;
    let blocks = sizes.blocks();
    let alone = m == 1 && (blocks <= 16 || n.div_ceil(32) as u64 * batches as u64 >= 64);
    let rows =
        if alone { tile(32 * blocks.clamp(1, 16), [1, 32], [1, 1], 1, 2) } else { tile(128, [4, 128], [4, 1], 1, 2) };
    (m <= 4 && !trans_b).then_some(rows)
}

/// The threads that cut eight lines. With 512, few blocks run at the same time, so the second pass finds the lines in the L2 cache.
const CUT_THREADS: u32 = 512;

/// Returns the rows and columns of a tile of the tensor-core kernel. Tiles are half as wide if then no multiprocessor has two of them.
fn fixed_wide(limits: &Limits, digits: u32, [m, n, batches]: [u32; 3]) -> [u32; 2] {
    let columns = if digits == 3 { 64 } else { 128 };
    let narrow = m.div_ceil(128) as u64 * n.div_ceil(columns / 2) as u64 * batches as u64;
    [128, if narrow <= limits.units as u64 { columns / 2 } else { columns }]
}

/// Returns the shared memory of that kernel in bytes: four or five steps in flight of both operands' planes, each 64 long in k, and the
/// results with eight columns of padding.
fn fixed_wide_bytes(digits: u32, columns: u32) -> u32 {
    let steps = if digits == 2 && columns == 128 { 4 } else { 5 };
    steps * digits * (128 + columns) * 64 + 4 * 128 * (columns + 8)
}

/// The kernels of quantised blocks, by stage.
const QUANTIZED: [&CStr; 5] =
    [c"quantized_cut", c"quantized_few", c"quantized_convert", c"quantized_tiles", c"quantized_convert"];

/// The words of their push constants, and the indices of a row's units and of what x is made of.
const QUANTIZED_WORDS: usize = 26;
const UNITS: usize = 14;
const ORIGIN: usize = 21;

/// Returns the shared memory of these kernels in bytes: a workgroup's blocks and, for each row of x, four numbers of each unit; the
/// elements and numbers of four steps of a tile; or the elements and numbers of a workgroup's units.
const fn quantized_bytes(stage: u32, rows: u32) -> u32 {
    4 * match stage {
        0 => 128,
        1 => 1100 + rows * 4 * 144,
        3 => 4 * 2560,
        _ => 1100 + 11 * 128,
    }
}

impl Launch {
    /// Plans the launch of a family's kernel with these constants.
    pub fn plan(kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<Launch> {
        let words = ([0; CONSTANTS], 0);
        let mut launch = Launch { name: c"", pushed: 0, threads: THREADS, shared_bytes: 0, groups, words };
        match kernels {
            Kernels::Elementwise => {
                (launch.name, launch.pushed) = (c"elementwise", RUN_WORDS);
                // A thread has eight elements; Vulkan's invocations have four.
                launch.groups[0] = groups[0].div_ceil(2);
                launch.take(constants);
            }
            Kernels::Moves => {
                launch.name = match constants[0] {
                    0 | 1 | 6 => c"copy",
                    2 | 3 => c"check",
                    4 => c"transpose",
                    7 => c"compare",
                    8 | 9 => c"select_units",
                    _ => c"cast",
                };
                launch.take(constants);
                // Most moves pass only the first constants, so all take six.
                launch.words.1 = 6;
            }
            Kernels::Integers => {
                launch.name = if constants[0] == 0 { c"arithmetic" } else { c"fold" };
                launch.take(constants);
            }
            Kernels::Lines => {
                let [function, size, _, _, whole, across, _, _, _, _, steps, ..] = constants else {
                    fail!(Internal, "a reduction has {} constants", constants.len());
                };
                // The row is held in registers.
                let held = *whole == 1 && *steps == 32;
                (launch.name, launch.threads) = match (function, held) {
                    (0..ROWS, _) if *across == 0 => (c"reduce_along", THREADS),
                    (0..ROWS, _) => (c"reduce_across", 32 * push[LENGTH].clamp(1, 32)),
                    (&CUMSUM, _) => (c"cumulate", THREADS),
                    (&TOPK_SORT, _) => (c"topk_sort", THREADS),
                    (&TOPK_MERGE, _) => (c"topk_merge", THREADS),
                    (&SOFTMAX_ROWS, true) => (c"softmax_whole", *size),
                    (&SOFTMAX_ROWS, false) => (c"softmax_rows", *size),
                    (_, true) => (c"norm_whole", *size),
                    (_, false) => (c"norm_rows", *size),
                };
                if *function < ROWS && *across == 0 {
                    // One warp for each block of a workgroup. Vulkan's workgroups have 32 blocks, these have 8.
                    launch.groups[0] = groups[0].checked_mul(4).ok_or_else(too_many)?;
                } else if (ROWS..CUMSUM).contains(function) && !held {
                    launch.shared_bytes = 4 * size * steps;
                }
                launch.take(constants);
                let affine = constants.get(AFFINE).copied().unwrap_or(0);
                let all = launch.shared_bytes * (1 + (affine & 1) + (affine >> 2 & 1));
                if launch.name == c"norm_rows" && groups[0] <= FEW_GROUPS && all <= USUAL_SHARED {
                    launch.shared_bytes = all;
                    launch.words.0[AFFINE] = affine | STAGED;
                }
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
                    launch.shared_bytes = if bm <= 4 { 0 } else { shared_of(bm, bn, bk) };
                }
                launch.take(&[has, own]);
            }
            Kernels::Fixed if constants[0] == FIXED_WIDE => {
                let &[_, digits, has, tiles, columns] = constants else {
                    fail!(Internal, "a wide fixed-point product has {} constants", constants.len());
                };
                launch.name = match (digits, columns) {
                    (3, 64) => c"fixed_wide_3",
                    (3, _) => c"fixed_narrow_3",
                    (_, 128) => c"fixed_wide_2",
                    _ => c"fixed_narrow_2",
                };
                launch.threads = 384;
                launch.shared_bytes = fixed_wide_bytes(digits, columns);
                launch.take(&[tiles, has]);
            }
            Kernels::Fixed => {
                let &[stage, digits, has] = constants else {
                    fail!(Internal, "a fixed-point product has {} constants", constants.len());
                };
                (launch.name, launch.threads) = match (stage, digits) {
                    (0, _) => (c"fixed_cut", CUT_THREADS),
                    (3, _) => (c"fixed_most", THREADS),
                    (4, _) => (c"fixed_digits", CUT_THREADS),
                    (_, 3) => (c"fixed_product_3", THREADS),
                    _ => (c"fixed_product_2", THREADS),
                };
                if stage == 1 {
                    // Two steps in flight of both operands' planes: 64 lines, 64 long in k.
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
                    (3, ..) => (c"attention_weights", 64),
                    (4, ..) => (c"attention_join", 64),
                    (5, ..) => (c"attention_cut", 64),
                    (6, _, 3, _) => (c"attention_whole_3", threads),
                    (6, ..) => (c"attention_whole_2", threads),
                    (7, ..) => (c"attention_digits", threads),
                    (_, 256, ..) => (c"attention_rows", 256),
                    (_, 32, ..) => (c"attention_few", 32),
                    (_, _, 128, _) => (c"attention_128", 128),
                    (_, _, _, 8) => (c"attention_64", 128),
                    _ => (c"attention_64_few", 128),
                };
                if stage == 6 {
                    launch.shared_bytes = shared_bytes(columns, push[WIDTH], push[WIDTH + 1]);
                } else if stage <= SPLIT {
                    launch.shared_bytes = attention_bytes(columns, threads, of_thread, push[WIDTH]);
                }
                launch.take(&[match stage {
                    WHOLE | SPLIT => has | stage << 5,
                    7 => columns,
                    _ => has,
                }]);
            }
            Kernels::Quantized => {
                let &[stage, format, rows] = constants else {
                    fail!(Internal, "a product of quantised blocks has {} constants", constants.len());
                };
                (launch.name, launch.threads) = (QUANTIZED[(stage as usize).min(QUANTIZED.len() - 1)], 128);
                launch.shared_bytes = quantized_bytes(stage, rows);
                if stage == 1 && push[ORIGIN] != 0 {
                    // The integers of the rows, and two numbers of each unit.
                    launch.shared_bytes += 4 * rows * push[UNITS] * (8 + 2);
                }
                launch.pushed = QUANTIZED_WORDS;
                // The kernel that unpacks converts to f32 in the fourth stage.
                launch.take(&[format, if stage == 1 { rows } else { u32::from(stage == 4) }]);
            }
            Kernels::Probe => fail!(Internal, "CUDA has no probe kernel"),
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
    Error::new(Status::Unsupported, "the reduction has more lines than a kernel can count")
}

fn product(bm: u32, bn: u32) -> Result<&'static CStr> {
    Ok(match (bm, bn) {
        (128, 128) => c"matmul_128x128",
        (64, 64) => c"matmul_64x64",
        (32, 64) => c"matmul_32x64",
        (16, 32) => c"matmul_16x32",
        (4, 128) => c"matmul_4x128",
        (1, 32) => c"matmul_1x32",
        _ => fail!(Internal, "no kernel has tiles of {bm} by {bn}"),
    })
}

/// The index of what a norm has among the constants of `Lines`, and the bit of operands that come through shared memory.
const AFFINE: usize = 11;
const STAGED: u32 = 16;

/// The most blocks of threads of a norm that waits for memory rather than takes its time, and the shared memory that every block may
/// have.
const FEW_GROUPS: u32 = 64;
const USUAL_SHARED: u32 = 48 << 10;

/// The index of the width among attention's push constants.
const WIDTH: usize = 17;
/// The index of the length of lines.
const LENGTH: usize = 4;

/// Returns the bytes of shared memory of attention's block: keys, values, weights and queries of a chunk. Rows are
/// padded by four.
fn attention_bytes(columns: u32, threads: u32, of_thread: u32, width: u32) -> u32 {
    if threads == FEW_ROWS.threads {
        return row_bytes(width, columns);
    }
    let warps = threads / 32;
    let weights = warps * 64 * (4 * of_thread + 4);
    4 * (64 * 68 + 64 * columns + weights + width.next_multiple_of(64) * (4 * of_thread * warps + 4))
}

/// Returns the tile for attention.
fn attention(limits: &Limits, sizes: &AttentionSizes) -> AttentionTile {
    let AttentionSizes { queries, width, value_width, .. } = *sizes;
    let narrow_rows = (width | value_width).is_multiple_of(4) && width <= 128 && value_width <= 128;
    if queries <= 2 * FEW_ROWS.queries
        && narrow_rows
        && sizes.splits()
        && row_bytes(width, value_width) <= limits.shared_memory
    {
        return AttentionTile { columns: value_width.max(1), ..FEW_ROWS };
    }
    tiled(limits, sizes)
}

/// Returns the tile for attention on GPUs before 8.0, for which few queries have no kernel of their own.
fn tiled(limits: &Limits, sizes: &AttentionSizes) -> AttentionTile {
    let AttentionSizes { heads, queries, width, value_width, .. } = *sizes;
    if queries <= 16 || width > 256 {
        return FEW;
    }
    let narrow = value_width <= 64;
    // Blocks of half the rows are faster unless each multiprocessor gets two blocks of full size.
    let many = narrow && heads * queries.div_ceil(128) as u64 > 2 * limits.units as u64;
    let tile = |columns, of_thread| AttentionTile {
        threads: 128,
        queries: 16 * of_thread,
        columns,
        of_thread,
        of_block: false,
    };
    let fits = |tile: &AttentionTile| {
        attention_bytes(tile.columns, tile.threads, tile.of_thread, width) <= limits.shared_memory
    };
    let tiles = [many.then(|| tile(64, 8)), (!narrow).then(|| tile(128, 4)), Some(tile(64, 4))];
    tiles.into_iter().flatten().find(fits).unwrap_or(FEW)
}

const FEW: AttentionTile = AttentionTile { threads: 32, queries: 16, columns: 64, of_thread: 4, of_block: false };

/// Of few queries: all columns, one block of keys.
const FEW_ROWS: AttentionTile = AttentionTile { threads: 256, queries: 4, columns: 128, of_thread: 1, of_block: true };

/// Returns the bytes of shared memory of [`FEW_ROWS`]: keys, values, queries, weights, the warps' greatest scores.
fn row_bytes(width: u32, value_width: u32) -> u32 {
    4 * (64 * (width + 4) + 64 * value_width + 4 * width + 4 * 64 + 8)
}

/// Returns the bytes of shared memory of a product's block: two steps of both operands, rows padded by four, and the
/// totals.
const fn shared_of(bm: u32, bn: u32, bk: u32) -> u32 {
    4 * (2 * bk * (bm + 4 + bn + 4) + bm * bn)
}

/// Returns the tiles of a GPU with their built-in costs.
pub fn tile_costs(physical: &Physical) -> TileCosts {
    // A driver that doesn't report its shared memory gets the tiles for the least.
    let has = |&&(kibibytes, _): &&(u32, _)| kibibytes << 10 <= physical.shared_memory_of_unit;
    let (_, tiles) = BY_SHARED_MEMORY.iter().find(has).unwrap_or(&BY_SHARED_MEMORY[4]);
    TileCosts::new(tiles)
}

impl Limits {
    /// Returns the limits of a GPU.
    pub(super) fn of_cuda(shared: &Shared) -> Limits {
        let physical = &shared.physical;
        Limits {
            shared_memory: physical.shared_memory[1].max(physical.shared_memory[0]),
            threads: physical.threads,
            units: physical.info.units as u32,
            iterations: u32::MAX,
            pitched: true,
            tiles: shared.tiles.table(),
            narrow,
            fixed_tile: [64, 64],
            fixed_wide: (physical.capability == 90).then_some(fixed_wide),
            tensor_tiles: physical.capability >= 80,
            makes_rows: true,
            attention: if physical.capability >= 80 { attention } else { tiled },
            merges_by_warps: true,
        }
    }
}

impl Modules {
    /// Makes a set without modules.
    pub fn new() -> Modules {
        Modules { loaded: Mutex::default() }
    }

    /// Returns a function of a family, and lets it use all shared memory of a block.
    pub fn function(&self, shared: &Shared, kernels: Kernels, name: &'static CStr) -> Result<Function> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, function)) = loaded.functions.iter().find(|(known, _)| ptr::eq(*known, name)) {
            return Ok(function);
        }
        let _entered = shared.enter()?;
        let api = shared.api();
        let Module { handle, waits } = match loaded.modules[kernels as usize] {
            Some(module) => module,
            None => *loaded.modules[kernels as usize].insert(load(shared, kernels)?),
        };
        let mut function = ptr::null_mut();
        // SAFETY: a module of this device, and the call writes one handle.
        shared.check(unsafe { (api.module_function)(&mut function, handle, name.as_ptr()) }, "finding a kernel")?;
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
        let function = Function { handle: function, waits };
        loaded.functions.push((name, function));
        Ok(function)
    }

    /// Unloads all modules. No work may use them.
    pub fn unload(&self, shared: &Shared) {
        let loaded = std::mem::take(&mut *self.loaded.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(_entered) = shared.enter_to_destroy() else { return };
        for module in loaded.modules.into_iter().flatten() {
            // SAFETY: no work uses the module any more.
            let _ = unsafe { (shared.api().module_unload)(module.handle) };
        }
    }
}

/// Loads a family's module: the best image that the driver accepts.
fn load(shared: &Shared, kernels: Kernels) -> Result<Module> {
    let mut images = images(&shared.physical, kernels).peekable();
    while let Some(image) = images.next() {
        let bytes = image.bytes(kernels)?;
        if let Image::Ptx(_) = image {
            let Physical { info, .. } = &shared.physical;
            log!(Info, "devices", "{} compiles {kernels:?} for {} ({})", info.id, info.arch, image.name());
        }
        let mut module = ptr::null_mut();
        // SAFETY: the image is one of adead's, and lives until the call returns.
        let result = unsafe {
            (shared.api().module_load)(&mut module, bytes.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut())
        };
        match result {
            // A driver older than the compiler refuses the machine code.
            code::INVALID_IMAGE | code::NO_BINARY_FOR_GPU if images.peek().is_some() => {}
            result => {
                shared.check(result, "loading the operations' kernels")?;
                return Ok(Module { handle: module, waits: image.waits() });
            }
        }
    }
    fail!(Internal, "there are no kernels for {}", shared.physical.info.arch)
}

// CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const STATIC_SHARED_MEMORY: i32 = 1;
const DYNAMIC_SHARED_MEMORY: i32 = 8;

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::hal::cuda::fake::{Card, Fake};
    use crate::hal::cuda::{CudaDevice, Opening};
    use crate::hal::lowering::tiles::choose;

    /// The limits of a card of a compute capability.
    pub fn limits(capability: i32) -> Limits {
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
        // One block alone takes the time `alone`; more blocks take a time between both.
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
                let (tile, _) = choose(
                    Sizes { m: n, n, k: n, batches: 1, trans_a: false, trans_b: false },
                    &limits,
                    &TileCosts::new(limits.tiles),
                );
                let bytes = shared_of(tile.bm, tile.bn, tile.bk);
                assert!(bytes <= limits.shared_memory, "{capability}: {n}: {tile:?} takes {bytes} bytes");
            }
        }
        // Large products use the largest tile that fits.
        for (capability, bm) in [(75, 64), (80, 128), (86, 128), (90, 128), (120, 128)] {
            let sizes = Sizes { m: 4096, n: 4096, k: 4096, batches: 1, trans_a: false, trans_b: false };
            let limits = limits(capability);
            assert_eq!(choose(sizes, &limits, &TileCosts::new(limits.tiles)).0.bm, bm, "{capability}");
        }
    }

    #[test]
    fn attention_has_the_largest_tile_that_fits() {
        let of = |capability, width, value_width| {
            let limits = limits(capability);
            let sizes = AttentionSizes { heads: 64, queries: 2048, keys: 2048, width, value_width };
            let AttentionTile { threads, columns, of_thread, .. } = attention(&limits, &sizes);
            assert!(attention_bytes(columns, threads, of_thread, width) <= limits.shared_memory);
            (threads, columns, of_thread)
        };
        assert_eq!((of(90, 64, 64), of(90, 128, 128)), ((128, 64, 8), (128, 128, 4)));
        assert_eq!((of(80, 64, 64), of(80, 128, 128)), ((128, 64, 8), (128, 128, 4)));
        assert_eq!((of(86, 64, 64), of(120, 128, 128)), ((128, 64, 4), (128, 64, 4)));
        assert_eq!((of(75, 64, 64), of(90, 300, 64)), ((32, 64, 4), (32, 64, 4)));
    }

    #[test]
    fn few_queries_share_out_the_keys() {
        let of = |capability, queries, keys, width, value_width| {
            let sizes = AttentionSizes { heads: 96, queries, keys, width, value_width };
            let limits = limits(capability);
            let tile = (limits.attention)(&limits, &sizes);
            assert_eq!(tile.of_block, tile.threads == FEW_ROWS.threads);
            tile.of_block
        };
        assert!(
            !of(75, 1, 512, 64, 64)
                && of(90, 1, 512, 64, 64)
                && of(90, 8, 512, 128, 128)
                && of(120, 3, 100_000, 80, 64)
        );
        assert!(
            !of(90, 9, 512, 64, 64) && !of(90, 3, 512, 130, 64) && !of(90, 3, 512, 64, 30) && !of(90, 3, 512, 256, 64)
        );
        // Memory for all blocks.
        assert!(!of(90, 8, 10_000_000, 64, 64));
    }
}
