//! What `core/build.rs`, which packs the operations' kernels, and `shaders.rs`, which unpacks them, have in common.

// Streams.
pub const CLASS: usize = 0;
pub const OPCODE: usize = 1;
pub const LENGTH: usize = 2;
pub const TYPE: usize = 3;
pub const RESULT: usize = 4;
pub const ID: usize = 5;
pub const NUMBER: usize = 6;
pub const LITERAL: usize = 7;
pub const STREAMS: usize = 8;

// Bits of an opcode's class.
pub const HAS_TYPE: u32 = 1;
pub const HAS_RESULT: u32 = 2;
/// What operands are.
pub const NUMBERS: u32 = 4;
pub const LITERALS: u32 = 8;
