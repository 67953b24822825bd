//! Numbers of the specification that several files need, and the packed form of decorations.

// Storage classes.
pub const UNIFORM_CONSTANT: u32 = 0;
pub const INPUT: u32 = 1;
pub const UNIFORM: u32 = 2;
pub const WORKGROUP: u32 = 4;
pub const PRIVATE: u32 = 6;
pub const FUNCTION: u32 = 7;
pub const PUSH: u32 = 9;
pub const STORAGE: u32 = 12;
pub const PHYSICAL: u32 = 5349;

// Decorations.
pub const SPEC_ID: u32 = 1;
pub const BLOCK: u32 = 2;
pub const BUFFER_BLOCK: u32 = 3;
pub const ROW_MAJOR: u32 = 4;
pub const ARRAY_STRIDE: u32 = 6;
pub const MATRIX_STRIDE: u32 = 7;
pub const BUILT_IN: u32 = 11;
pub const NON_WRITABLE: u32 = 24;
pub const NON_READABLE: u32 = 25;
pub const BINDING: u32 = 33;
pub const SET: u32 = 34;
pub const OFFSET: u32 = 35;

/// The kind under which member names are stored among the decorations.
pub const NAME: u32 = 62;

/// Stands for no member: the decoration is for the whole. Structures have fewer members, by the specification's limits.
pub const WHOLE: u32 = (1 << 14) - 1;

/// The bits of a position in a module.
pub const PLACE: u32 = 22;

/// Packs a decoration without its position: 22 bits for the target, 14 for the member, 6 for the kind.
pub const fn decoration(target: u32, member: u32, kind: u32) -> u64 {
    ((target as u64) << 20 | (member as u64) << 6 | kind as u64) << PLACE
}

/// The most entry points, bindings or constants: no real module has as many, and each one costs a search through the
/// others.
pub const MOST: usize = 256;
