//! What a backend offers to the operations: kernels by family, memory for them, and their limits.

use super::attention;
use super::tiles::{Cost, Sizes, Tile};
use crate::error::{Error, Result};
use crate::operand::Place;

/// A family of kernels, of one source in each language of devices. Its first constants choose among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernels {
    /// Attention.
    Attention,
    /// Elementwise operations, and the last step of softmax and the norms.
    Elementwise,
    /// Matrix products of fixed-point numbers.
    Fixed,
    /// Reductions, and softmax and norms of rows.
    Lines,
    /// Matrix products.
    Matmul,
    /// transpose, concat, embedding, cast.
    Moves,
    /// Known answers.
    Probe,
}

impl Kernels {
    /// How many families there are.
    pub const COUNT: usize = 7;
}

/// What shapes kernels.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory that a workgroup shares.
    pub shared_memory: u32,
    /// Threads of a workgroup, in all.
    pub threads: u32,
    /// Multiprocessors, or a guess where the driver does not tell.
    pub units: u32,
    /// Loop iterations that a thread may run.
    pub iterations: u32,
    /// Whether products and attention want their operands' rows at multiples of 16 bytes.
    pub pitched: bool,
    /// Tiles of matrix products.
    pub tiles: &'static [Cost],
    /// The tile for a product of few rows or columns, where it is not one of the others.
    pub narrow: fn(&Sizes) -> Option<Tile>,
    /// Rows and columns of a tile of products of fixed-point numbers.
    pub fixed_tile: [u32; 2],
    /// Rows and columns of the tiles that tensor cores compute, for so many digits and m, n and batches, where the device has such
    /// a kernel.
    pub fixed_wide: Option<fn(&Limits, u32, [u32; 3]) -> [u32; 2]>,
    /// The tile of attention for so many heads, each with so many queries, their width and the values'.
    pub attention: fn(&Limits, u64, u32, u32, u32) -> attention::Tile,
}

/// Makes an error of the four words in which a kernel said what is wrong with its data.
pub type Explain = fn([u32; 4]) -> Error;

/// Puts the kernels of one command behind what was encoded before: all of them, or none if one can't be had.
pub trait Encoder {
    /// The address of an operand, which is kept until the work is done.
    fn address(&mut self, place: Place<'_>) -> Result<u64>;

    /// Enqueues a kernel behind everything encoded before, with its own constants, its push constants and its workgroups, each
    /// of which is at least 1.
    fn dispatch(&mut self, kernels: Kernels, constants: &[u32], push: &[u32], groups: [u32; 3]) -> Result<()>;

    /// Device memory for intermediate values until the work is done: an address, a multiple of 256.
    fn scratch(&mut self, bytes: u64) -> Result<u64>;

    /// The address of a copy of these words, for parameters of the next dispatch that don't fit in push constants.
    fn parameters(&mut self, words: &[u32]) -> Result<u64>;

    /// The address of four words, zero before the command runs: where a kernel that finds wrong data says so. If the first is
    /// not zero afterwards, what `explain` makes of them is what synchronising returns.
    fn fault(&mut self, explain: Explain) -> Result<u64>;

    /// What shapes kernels.
    fn limits(&self) -> Limits;
}

/// Bytes of push constants that every device has.
pub const PUSH_BYTES: usize = 128;

/// Push constants under construction.
#[derive(Default)]
pub struct Push {
    words: [u32; PUSH_BYTES / 4],
    len: usize,
}

impl Push {
    /// None yet.
    pub fn new() -> Push {
        Push::default()
    }

    /// An address, low word first. An address stands on an even word, as the kernels' layout has it.
    pub fn address(self, address: u64) -> Push {
        debug_assert!(self.len.is_multiple_of(2), "an address at word {}", self.len);
        self.word(address as u32).word((address >> 32) as u32)
    }

    /// A word.
    pub fn word(mut self, word: u32) -> Push {
        self.words[self.len] = word;
        self.len += 1;
        self
    }

    /// A number.
    pub fn float(self, x: f32) -> Push {
        self.word(x.to_bits())
    }

    /// Those that are there already.
    pub fn of(words: &[u32]) -> Push {
        let mut push = Push { len: words.len(), ..Push::default() };
        push.words[..words.len()].copy_from_slice(words);
        push
    }

    /// As memory.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: words are readable as their bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), 4 * self.len) }
    }
}

impl std::ops::Deref for Push {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.words[..self.len]
    }
}
