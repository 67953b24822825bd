//! The types of stored values.

use adead::{Error, Result, Status};
use std::fmt;
use std::str::FromStr;

/// The type of a tensor's values: floats, or blocks of integers with common factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types)]
pub enum Kind {
    /// 32-bit floats.
    F32,
    /// 16-bit floats of IEEE 754.
    F16,
    /// The upper 16 bits of 32-bit floats.
    BF16,
    /// 32 values in 34 bytes.
    Q8_0,
    /// 32 values in 18 bytes.
    Q4_0,
    /// 32 values in 20 bytes.
    Q4_1,
    /// 32 values in 22 bytes.
    Q5_0,
    /// 32 values in 24 bytes.
    Q5_1,
    /// 256 values in 144 bytes.
    Q4_K,
    /// 256 values in 176 bytes.
    Q5_K,
    /// 256 values in 210 bytes.
    Q6_K,
    /// Another type, by ggml's number. [`Gguf::tensor`](super::Gguf::tensor) refuses tensors of it.
    Other(u32),
}

/// ggml's types: number, name, values of a block and bytes of a block.
const TYPES: [(u32, &str, usize, usize); 34] = [
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 40),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
];

impl Kind {
    /// The kinds that [`Gguf::tensor`](super::Gguf::tensor) accepts, by ggml's numbers.
    pub const ALL: [Kind; 11] = [
        Kind::F32,
        Kind::F16,
        Kind::Q4_0,
        Kind::Q4_1,
        Kind::Q5_0,
        Kind::Q5_1,
        Kind::Q8_0,
        Kind::Q4_K,
        Kind::Q5_K,
        Kind::Q6_K,
        Kind::BF16,
    ];

    /// Returns the kind with ggml's number.
    pub fn from_number(number: u32) -> Kind {
        Kind::ALL.into_iter().find(|kind| kind.number() == number).unwrap_or(Kind::Other(number))
    }

    /// Returns ggml's number, which the file has.
    pub const fn number(self) -> u32 {
        match self {
            Kind::F32 => 0,
            Kind::F16 => 1,
            Kind::Q4_0 => 2,
            Kind::Q4_1 => 3,
            Kind::Q5_0 => 6,
            Kind::Q5_1 => 7,
            Kind::Q8_0 => 8,
            Kind::Q4_K => 12,
            Kind::Q5_K => 13,
            Kind::Q6_K => 14,
            Kind::BF16 => 30,
            Kind::Other(number) => number,
        }
    }

    fn row(self) -> Option<&'static (u32, &'static str, usize, usize)> {
        TYPES.iter().find(|(number, ..)| *number == self.number())
    }

    /// Returns ggml's name, such as `Q4_K`. `None` for a number that this version doesn't know.
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|(_, name, ..)| *name)
    }

    /// Returns the number of values in a block: 1, 32 or 256 for the kinds that are accepted. `None` for an unknown number.
    pub fn block(self) -> Option<usize> {
        self.row().map(|(_, _, block, _)| *block)
    }

    /// Returns the number of bytes of a block. `None` for an unknown number.
    pub fn block_bytes(self) -> Option<usize> {
        self.row().map(|(.., bytes)| *bytes)
    }
}

/// Reads a name of [`Kind::ALL`] in upper or lower case, such as `q4_k`. `invalid_argument` for another one.
impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Kind> {
        let named = |kind: &Kind| kind.name().is_some_and(|known| known.eq_ignore_ascii_case(name));
        Kind::ALL.into_iter().find(named).ok_or_else(|| {
            let known = Kind::ALL.map(|kind| kind.to_string().to_ascii_lowercase()).join(", ");
            Error::new(Status::InvalidArgument, format!("no kind of values '{name}': it must be one of {known}"))
        })
    }
}

/// Writes the name, or `type 99` for an unknown number.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type {}", self.number()),
        }
    }
}
