//! Element types.

use crate::error::{Error, Result, Status};
use std::fmt;

/// The type of a tensor's elements.
///
/// Floats are computed in `f32`. `f16` and `bf16` are storage types: widened exactly, computed in f32, rounded to nearest even.
/// `f64` is only stored: it is moved, compared and cast, and arithmetic on it is refused until it is cast.
/// `i32`, `i64`, `u32` and `u8` have exact arithmetic that keeps the lowest bits. `i32`, `i64` and `u32` also hold ids and
/// indices, `bool` results of comparisons. In languages where a dtype may be omitted, the default is f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    /// IEEE-754 binary32.
    #[default]
    F32 = 0,
    /// IEEE-754 binary16, storage only.
    F16 = 1,
    /// bfloat16, storage only.
    BF16 = 2,
    /// 32-bit signed integer.
    I32 = 3,
    /// 64-bit signed integer.
    I64 = 4,
    /// 32-bit unsigned integer.
    U32 = 5,
    /// True or false, one byte each. Results are 0 or 1. Any byte other than 0 is read as true.
    Bool = 6,
    /// 8-bit unsigned integer; the bytes of quantised matrices too.
    U8 = 7,
    /// IEEE-754 binary64, storage only, without arithmetic.
    F64 = 8,
}

impl DType {
    /// All dtypes, in numeric order.
    pub const ALL: [DType; 9] =
        [DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U32, DType::Bool, DType::U8, DType::F64];

    /// Returns the size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 => 2,
            DType::I64 | DType::F64 => 8,
            DType::Bool | DType::U8 => 1,
        }
    }

    /// Returns the name, such as `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U32 => "u32",
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::F64 => "f64",
        }
    }

    /// Returns the dtype with this number, if there is one.
    pub const fn from_code(code: u32) -> Option<DType> {
        if code < Self::ALL.len() as u32 { Some(Self::ALL[code as usize]) } else { None }
    }

    /// Whether it is a float: f32, f16, bf16, f64.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16 | DType::F64)
    }

    /// Whether operations compute on it in f32: f32, f16, bf16.
    pub const fn computes_as_f32(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16)
    }

    /// Whether it is widened to f32 before arithmetic: f16, bf16.
    pub(crate) const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// Whether it can hold ids and indices: i32, i64, u32.
    pub const fn is_index(self) -> bool {
        matches!(self, DType::I32 | DType::I64 | DType::U32)
    }
}

impl std::str::FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| {
            Error::new(
                Status::InvalidArgument,
                format!("no dtype '{name}': expected f32, f16, bf16, i32, i64, u32, bool, u8 or f64"),
            )
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
