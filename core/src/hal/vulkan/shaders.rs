//! The operations' kernels in SPIR-V.

use crate::error::Result;

/// A module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Shader {
    /// Known answers.
    Probe,
}

impl Shader {
    /// How many there are.
    pub const COUNT: usize = 1;

    /// The module's words.
    pub fn code(self) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }
}
