//! The operations' kernels: the function, threads and shared memory of each dispatch.

use super::api::{Handle, code};
use super::images::{Image, images};
use super::physical::Physical;
use super::shared::Shared;
use super::tiles::{attention_bytes, shared_of};
use crate::error::{Error, Result, Status, fail};
use crate::hal::lowering::attention_whole::shared_bytes;
use crate::hal::lowering::{CUMSUM, FEW, Kernels, ROWS, RUN_WORDS, SOFTMAX_ROWS, TOPK_MERGE, TOPK_SORT, few_bytes};
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
const FIXED_MOST: u32 = 3;
const FIXED_DIGITS: u32 = 4;
/// Threads of a block, in kernels with a fixed number.
const THREADS: u32 = 256;

/// The places of K and of a part's length among the words of the kernel that cuts lines, and its bits for a scale that is given and
/// for storing the largest magnitudes of parts.
const CUT_K: usize = 18;
const CUT_PART: usize = 22;
const GIVEN: u32 = 128;
const STORES_MOST: u32 = 256;

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
                // A thread has eight elements; Vulkan's invocations have four, or as many fours as a run's last constant says.
                let (constants, fours) = constants.split_at(6);
                launch.groups[0] = groups[0].div_ceil(2 / fours.first().unwrap_or(&1));
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
                if let &[FEW, digits, has] = constants {
                    (launch.name, launch.threads) = (c"fixed_few", 512);
                    // The push constants count the rows and, at the end, the blocks of k.
                    launch.shared_bytes = few_bytes(push[ROWS_OF_FEW], push[ROWS_OF_FEW + 3]);
                    launch.take(&[digits, has]);
                } else {
                    launch.name = if constants[0] == 0 { c"arithmetic" } else { c"fold" };
                    launch.take(constants);
                }
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
                    (FIXED_MOST | FIXED_DIGITS, _) => {
                        let known = stage == FIXED_DIGITS && (has & GIVEN != 0 || push[CUT_PART] < push[CUT_K]);
                        let own = 2 * push[CUT_PART].min(512).next_multiple_of(64);
                        (c"fixed_cut", if known { 512 } else { own })
                    }
                    (_, 3) => (c"fixed_product_3", THREADS),
                    _ => (c"fixed_product_2", THREADS),
                };
                if stage == 1 {
                    // Two steps in flight of both operands' planes: 64 lines, 64 long in k.
                    launch.shared_bytes = 4 * digits * 64 * 64;
                }
                launch.take(&[digits, has | if stage == FIXED_MOST { STORES_MOST } else { 0 }]);
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
            Kernels::Probe | Kernels::Matrices => fail!(Internal, "CUDA has no {kernels:?} kernels"),
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
/// The push constant that has the rows of a product of few rows; three behind it are the blocks of k.
const ROWS_OF_FEW: usize = 12;
/// The index of the length of lines.
const LENGTH: usize = 4;

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
