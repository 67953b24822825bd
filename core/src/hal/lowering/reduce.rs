//! sum, mean, max and argmax, along an axis or of everything.

use super::Call;
use super::operands::{Arguments, aligned, dispatch};
use super::{Encoder, Kernels};
use crate::contract::SUM_BLOCK;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Lines, Reduction};

// Values of lines.comp's first constant.
pub const SUM: u32 = 0;
pub const MAX: u32 = 1;
const ARGMAX: u32 = 2;

/// Blocks that a workgroup takes.
const GROUP: u32 = 32;

/// Dispatches on the operation.
pub fn reduce(encoder: &mut dyn Encoder, op: Reduction, call: &Call<'_>) -> Result<()> {
    let x = call.operand(0);
    let lines = Lines::of_reduction(x.shape, call.attrs.axis);
    let (function, finish) = match op {
        Reduction::Sum => (SUM, Finish::Whole),
        Reduction::Mean => (SUM, Finish::Mean),
        Reduction::Max => (MAX, Finish::Whole),
        Reduction::Argmax if call.output.dtype == DType::I64 => (ARGMAX, Finish::Long),
        Reduction::Argmax => (ARGMAX, Finish::Short),
    };
    let arguments = Arguments { x: x.address, y: call.output.address, ..Arguments::default() };
    along(encoder, function, lines, Map::Same, finish, arguments)
}

/// What is added up, with a statistic p of each line.
#[derive(Clone, Copy)]
pub enum Map {
    /// x.
    Same = 0,
    /// exp(x − p).
    Exp = 1,
    /// (x − p)².
    Deviation = 2,
    /// x².
    Square = 3,
}

/// What becomes of a line's result.
#[derive(Clone, Copy)]
pub enum Finish {
    /// Nothing.
    Whole,
    /// It is divided by the line's length.
    Mean,
    /// Divided, plus eps, the reciprocal of the square root.
    Factor,
    /// argmax: the index in one word.
    Short,
    /// In two.
    Long,
}

/// Reduces lines of x, of which there is at least one, to one result each at y. Results of blocks of 1024 are reduced again until
/// there is one.
pub fn along(
    encoder: &mut dyn Encoder,
    function: u32,
    lines: Lines,
    map: Map,
    finish: Finish,
    mut arguments: Arguments,
) -> Result<()> {
    let Lines { outer, mut n, inner } = lines;
    let (count, y) = ((outer * inner) as u32, arguments.y);
    let mut map = map as u32;
    arguments.inner = inner as u32;
    arguments.value = n as f32;
    loop {
        let blocks = n.div_ceil(SUM_BLOCK).max(1) as u32;
        let units = count * blocks;
        (arguments.n, arguments.blocks, arguments.units) = (n as u32, blocks, units);
        let contiguous = inner == 1 && (outer == 1 || n.is_multiple_of(4));
        let vector = u32::from(contiguous && aligned(&[arguments.x]));
        let vectors = match n {
            0..=32 => 1,
            33..=256 => 4,
            _ => 8,
        };
        let mut action = 0;
        let last = blocks == 1;
        if last {
            arguments.y = y;
            action = match finish {
                Finish::Whole => 0,
                Finish::Mean | Finish::Short => 1,
                Finish::Factor | Finish::Long => 2,
            };
        } else {
            arguments.y = encoder.scratch(4 * units as u64)?;
            if function == ARGMAX {
                arguments.q = encoder.scratch(4 * units as u64)?;
            }
        }
        let constants =
            [function, 8 * GROUP, vectors, 9 * GROUP, vector, u32::from(inner > 1), map, action, 1, 1, 1, 0];
        dispatch(encoder, Kernels::Lines, &constants, &arguments, units.div_ceil(GROUP))?;
        if last {
            return Ok(());
        }
        (arguments.x, arguments.p) = (arguments.y, arguments.q);
        map = u32::from(function == ARGMAX);
        n = blocks as usize;
    }
}
