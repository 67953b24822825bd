//! Families: groups of operations that a device runs at similar rates, so that one pair of rates prices them all.

use crate::error::{Error, Result, Status};
use std::fmt;

/// A kind of operation, for pricing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Family {
    /// Matrix products: matmul, ffn.
    Matmul = 0,
    /// attention.
    Attention = 1,
    /// A few instructions for each element: add, mul, relu, cast.
    Elementwise = 2,
    /// A polynomial for each element: exp, log, tanh, sigmoid, gelu.
    Function = 3,
    /// Along an axis: sum, max, dot, softmax, the norms.
    Reduction = 4,
    /// No arithmetic: transpose, concat, embedding.
    Move = 5,
}

impl Family {
    /// The number of families.
    pub const COUNT: usize = Family::ALL.len();

    /// All families, in numeric order.
    pub const ALL: [Family; 6] =
        [Family::Matmul, Family::Attention, Family::Elementwise, Family::Function, Family::Reduction, Family::Move];

    /// Returns the name in every language, such as `matmul`.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Matmul => "matmul",
            Family::Attention => "attention",
            Family::Elementwise => "elementwise",
            Family::Function => "function",
            Family::Reduction => "reduction",
            Family::Move => "move",
        }
    }

    /// Returns the family with this number, if there is one.
    pub fn from_code(code: u32) -> Option<Family> {
        Family::ALL.get(code as usize).copied()
    }
}

impl std::str::FromStr for Family {
    type Err = Error;

    fn from_str(name: &str) -> Result<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
            let known = Family::ALL.map(Family::name).join(", ");
            Error::new(Status::InvalidArgument, format!("no family '{name}': expected {known}"))
        })
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
