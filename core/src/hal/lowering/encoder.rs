//! The interface of a backend to the operations: kernels by family, memory for them, and their limits.

use super::attention;
use super::tiles::{Cost, Sizes, Tile, TileCosts};
use crate::error::{Error, Result};
use crate::operand::Place;

/// A family of kernels, which has one source in each device language. Its first constants choose a kernel of the
/// family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernels {
    /// Attention.
    Attention,
    /// Elementwise operations, and the last step of softmax and the norms.
    Elementwise,
    /// Matrix products of fixed-point numbers.
    Fixed,
    /// Arithmetic on integers and bools.
    Integers,
    /// Reductions, and softmax and norms of rows.
    Lines,
    /// Matrix products.
    Matmul,
    /// transpose, concat, embedding, cast.
    Moves,
    /// Products with matrices of quantised blocks.
    Quantized,
    /// Kernels with known results, for checking a device. Vulkan has them alone.
    Probe,
    /// Matrix products of fixed-point numbers by cooperative matrices. Vulkan has them alone.
    Matrices,
}

impl Kernels {
    /// The number of families.
    pub const COUNT: usize = 10;
    /// The number of those that CUDA has, which come first.
    pub const OF_CUDA: usize = 8;
}

/// The limits of a device that shape its kernels.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of memory that a workgroup shares.
    pub shared_memory: u32,
    /// The most threads of a workgroup.
    pub threads: u32,
    /// The number of multiprocessors, or a guess if the driver doesn't report it.
    pub units: u32,
    /// The most loop iterations of a thread.
    pub iterations: u32,
    /// Whether products and attention need their operands' rows at multiples of 16 bytes.
    pub pitched: bool,
    /// The tiles of matrix products.
    pub tiles: &'static [Cost],
    /// Returns a special tile for a product with few rows or columns, if there is one.
    pub narrow: fn(&Sizes) -> Option<Tile>,
    /// The rows and columns of a tile of fixed-point products.
    pub fixed_tile: [u32; 2],
    /// The tiles of fixed-point products on tensor cores. `None` if the device has no such kernel.
    pub fixed_wide: Option<FixedWide>,
    /// Whether kernels find the largest elements of what they cut: of few rows that are multiplied, and of short lines.
    pub finds_most: bool,
    /// The cooperative matrices that multiply fixed-point numbers, if the device has them.
    pub matrices: Option<Matrices>,
    /// Whether a product of few rows with quantised blocks makes and cuts the rows itself.
    pub makes_rows: bool,
    /// Whether tensor cores compute tiles of products with quantised blocks, and attention in exact integers.
    pub tensor_tiles: bool,
    /// Returns the tile of attention.
    pub attention: fn(&Limits, &attention::Sizes) -> attention::Tile,
    /// Whether a warp of 32 threads merges a row of attention, or each thread four results.
    pub merges_by_warps: bool,
}

impl Limits {
    /// Whether a product of few rows with quantised blocks makes and cuts the rows itself. Without CUDA no code for it is left.
    pub fn makes_rows(&self) -> bool {
        cfg!(feature = "cuda") && self.makes_rows
    }

    /// Whether kernels find the largest elements of what they cut, likewise.
    pub fn finds_most(&self) -> bool {
        cfg!(feature = "cuda") && self.finds_most
    }
}

/// The cooperative matrices of signed bytes that a device multiplies: 16×k by k×16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrices {
    /// The threads of a subgroup, which work on one matrix.
    pub subgroup: u32,
    pub k: u32,
}

/// Returns the rows and columns of a tile that tensor cores compute, for a number of digits and [m, n, batches].
pub type FixedWide = fn(&Limits, u32, [u32; 3]) -> [u32; 2];

/// Makes an error from the four words with which a kernel reports wrong data.
pub type Explain = fn([u32; 4]) -> Error;

/// Appends the kernels of one command to what was encoded before: all of them, or none if one is not available.
pub trait Encoder {
    /// Returns an operand's address. The operand is kept until the work is done.
    fn address(&mut self, place: Place<'_>) -> Result<u64>;

    /// Enqueues a kernel after everything encoded before. `groups` counts the workgroups in each direction, at least 1.
    fn dispatch(&mut self, kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<()>;

    /// Allocates device memory for intermediate values, which is kept until the work is done. Its address is a multiple
    /// of 256.
    fn scratch(&mut self, bytes: u64) -> Result<u64>;

    /// Returns the address of a copy of these words, for parameters of the next dispatch that don't fit in push
    /// constants.
    fn parameters(&mut self, words: &[u32]) -> Result<u64>;

    /// Returns the address of four words, which are zero before the command runs. A kernel that finds wrong data writes
    /// them. If the first word is then not zero, synchronising returns the error that `explain` makes from them.
    fn fault(&mut self, explain: Explain) -> Result<u64>;

    /// Returns the limits of the device.
    fn limits(&self) -> Limits;

    /// Returns what the tiles of products cost on the device.
    fn costs(&self) -> &TileCosts;
}

/// The bytes of push constants that every device offers.
pub const PUSH_BYTES: usize = 128;

/// Push constants that are being assembled.
#[derive(Default)]
pub struct Push {
    words: [u32; PUSH_BYTES / 4],
    len: usize,
}

impl Push {
    /// Makes empty push constants.
    pub fn new() -> Push {
        Push::default()
    }

    /// Appends an address, low word first. The address must be at an even word, as in the kernels' layout.
    pub fn address(self, address: u64) -> Push {
        debug_assert!(self.len.is_multiple_of(2), "an address at word {}", self.len);
        self.word(address as u32).word((address >> 32) as u32)
    }

    /// Appends a word.
    pub fn word(mut self, word: u32) -> Push {
        self.words[self.len] = word;
        self.len += 1;
        self
    }

    /// Appends a number.
    pub fn float(self, x: f32) -> Push {
        self.word(x.to_bits())
    }

    /// Makes push constants from words.
    pub fn of(words: &[u32]) -> Push {
        let mut push = Push { len: words.len(), ..Push::default() };
        push.words[..words.len()].copy_from_slice(words);
        push
    }

    /// Returns the words as bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the first `len` words are initialised, and words are readable as bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), 4 * self.len) }
    }
}

impl std::ops::Deref for Push {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words[..self.len]
    }
}
