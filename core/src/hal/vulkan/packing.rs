//! The format of the packed kernels: `core/build.rs` packs them, and `shaders.rs` unpacks them.

// The streams that words are sorted into.
pub const CLASS: usize = 0;
pub const OPCODE: usize = 1;
pub const LENGTH: usize = 2;
pub const TYPE: usize = 3;
pub const RESULT: usize = 4;
pub const ID: usize = 5;
pub const NUMBER: usize = 6;
pub const LITERAL: usize = 7;
pub const STREAMS: usize = 8;

// The bits of an opcode's class.
pub const HAS_TYPE: u32 = 1;
pub const HAS_RESULT: u32 = 2;
/// How to read the operands: as numbers, or as literals; without either bit as ids.
pub const NUMBERS: u32 = 4;
pub const LITERALS: u32 = 8;

/// An id is told by its age if that is less: how many ids were defined behind it.
pub const YOUNG: u32 = 16;
/// Older ids are told as differences to the last one at their place among an instruction's operands. The last place is that of all that
/// follow, too.
pub const PLACES: usize = 4;
