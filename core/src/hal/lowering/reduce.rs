//! Lowers reductions along one axis, several axes or all to kernels.

use super::operands::{Arguments, aligned, dispatch};
use super::{Call, moves};
use super::{Encoder, Kernels};
use crate::contract::SUM_BLOCK;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Gives, Lines, Reduced, Reduction, table};

macro_rules! functions {
    (
        unary $unary:tt
        binary $binary:tt
        comparison $comparisons:tt
        reduction { $($(#[$doc:meta])* $op:ident = $number:literal
            $name:ident: $family:ident, $function:ident = $code:literal $gives:ident $($reduction_integers:ident)?;)* }
        own $own:tt
    ) => {
        /// Every operation's function: its name in kernels, its number and the operation.
        #[cfg(test)]
        pub const ALL: &[(&str, u32, Reduction)] = &[$((stringify!($function), $code, Reduction::$op),)*];

        /// Fails to compile if a number belongs to a function of rows.
        const _: () = assert!(true $(&& $code < ROWS)*, "numbers from 16 on belong to functions of rows");

        /// Returns an operation's function: a value of the first constant of `lines.comp`.
        const fn function(op: Reduction) -> u32 {
            match op {
                $(Reduction::$op => $code,)*
            }
        }
    };
}
table!(functions);

pub const SUM: u32 = function(Reduction::Sum);
pub const MAX: u32 = function(Reduction::Max);
const ARGMAX: u32 = function(Reduction::Argmax);
const ARGMIN: u32 = function(Reduction::Argmin);
/// Numbers from this one on belong to functions of contiguous rows.
pub const ROWS: u32 = 16;

/// The number of blocks that a workgroup takes.
const GROUP: u32 = 32;

/// Encodes a reduction.
pub fn reduce(encoder: &mut dyn Encoder, op: Reduction, call: &Call<'_>) -> Result<()> {
    let x = call.operand(0);
    let Reduced { order, lines } = Reduced::new(x.shape, call.attrs);
    let mut arguments = Arguments { x: x.address, y: call.output.address, ..Arguments::default() };
    // If the reduced axes are not adjacent, the elements are permuted first.
    if let Some(order) = order {
        arguments.x = encoder.scratch(4 * x.elements() as u64)?;
        moves::permute(encoder, x.shape, &order, 4, x.address, arguments.x)?;
    }
    let finish = match op.gives() {
        Gives::Value | Gives::Element => Finish::Whole,
        Gives::Mean => Finish::Mean,
        Gives::Index if call.output.dtype == DType::I64 => Finish::Long,
        Gives::Index => Finish::Short,
    };
    along(encoder, function(op), lines, Map::Same, finish, arguments)
}

/// The value that is added up for an element x. p is a statistic of its line.
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

/// The step that turns a line's result into the stored one.
#[derive(Clone, Copy)]
pub enum Finish {
    /// Stores the result.
    Whole,
    /// Divides the result by the line's length.
    Mean,
    /// Divides the result by the line's length, adds eps, and takes the reciprocal of the square root.
    Factor,
    /// Stores the index in one word.
    Short,
    /// Stores the index in two words.
    Long,
}

/// Reduces each line of x to one result at y. There must be at least one line. The results of blocks of 1024 are
/// reduced again until one is left.
pub fn along(
    encoder: &mut dyn Encoder,
    function: u32,
    lines: Lines,
    map: Map,
    finish: Finish,
    mut arguments: Arguments,
) -> Result<()> {
    let Lines { mut outer, mut n, mut inner } = lines;
    if n == 1 {
        // Lines of one element lie across too, and a group of threads has many of those.
        (outer, inner) = (1, outer * inner);
    }
    let index = function == ARGMAX || function == ARGMIN;
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
            if index {
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
        map = u32::from(index);
        n = blocks as usize;
    }
}
