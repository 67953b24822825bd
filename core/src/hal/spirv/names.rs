//! Numbers of the specification that more than one place needs.

/// Storage classes.
pub const CONSTANT: u32 = 0;
pub const INPUT: u32 = 1;
pub const UNIFORM: u32 = 2;
pub const WORKGROUP: u32 = 4;
pub const PRIVATE: u32 = 6;
pub const FUNCTION: u32 = 7;
pub const PUSH: u32 = 9;
pub const IMAGE: u32 = 11;
pub const STORAGE: u32 = 12;
pub const PHYSICAL: u32 = 5349;

/// Decorations.
pub mod decoration {
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
}
