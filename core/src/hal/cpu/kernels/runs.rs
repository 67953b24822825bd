//! Runs of elementwise operations on f32 values: tiles that stay in the first-level cache go through all of a run's steps. A step of a
//! tile is one call of a row function, so small tiles cost little.

use super::elementwise::{Function, GRAIN};
use super::{Exec, Shared};
use crate::error::Result;
use crate::isa::Isa;
use crate::ops::Binary;

/// The most elements of a tile. Three tiles fit the first-level cache of any processor.
const TILE: usize = 2048;

/// The shortest rows whose steps are worth calls of their own.
const SHORTEST: usize = 128;

/// An operation applied to every element.
#[derive(Clone, Copy)]
pub enum Elementwise {
    One(Function),
    Two(Binary),
}

/// An operand: as many values as the result, one row of them, or one value.
#[derive(Clone, Copy)]
pub struct Operand {
    pub data: Shared<f32>,
    pub reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    All,
    Row,
    One,
}

/// A step of a run. It may write where it reads.
#[derive(Clone, Copy)]
pub struct RunStep {
    pub operation: Elementwise,
    /// An operation of one operand reads the first.
    pub operands: [Operand; 2],
    pub to: Shared<f32>,
}

/// A run over rows of a length. Without an operand that is a row, all elements are one row.
pub struct Run<'a> {
    pub steps: &'a [RunStep],
    pub rows: usize,
    pub length: usize,
}

impl Operand {
    /// Returns where the operand's values for a row's elements begin from a column on, and the distance between them.
    fn at(&self, row: usize, length: usize, column: usize) -> (*const f32, usize) {
        let at = match self.reach {
            Reach::All => row * length + column,
            Reach::Row => column,
            Reach::One => 0,
        };
        (self.data.get().wrapping_add(at), usize::from(self.reach != Reach::One))
    }
}

impl Run<'_> {
    /// Whether this way takes rows of this length.
    pub fn takes(rows: usize, length: usize) -> bool {
        rows == 1 || length >= SHORTEST
    }

    /// Computes the run.
    ///
    /// # Safety
    /// The operands have as many values as they reach, and `to` has room for all of the result. What a step writes may only be its own
    /// operand in the same place, or memory that no other step of another tile reads.
    pub unsafe fn compute(&self, exec: &Exec<'_>) -> Result<()> {
        let Run { steps, rows, length } = *self;
        let across = length.div_ceil(TILE).max(1);
        let tile = length.div_ceil(across).next_multiple_of(16);
        let weight: usize = steps.iter().map(|step| step.weight()).sum();
        let each = (4 * GRAIN / weight.max(1)).div_ceil(tile).max(1);
        let (count, isa) = (rows * across, exec.isa);
        exec.pool.try_run_near(count.div_ceil(each), &|task, _| {
            for number in task * each..((task + 1) * each).min(count) {
                let (row, column) = (number / across, number % across * tile);
                if column < length {
                    // SAFETY: the tile lies inside the rows, and the caller promises the rest.
                    unsafe { self.tile(isa, row, column, tile.min(length - column)) };
                }
            }
        })
    }

    /// Computes `n` elements of a row.
    ///
    /// # Safety
    /// As [`Run::compute`]'s; the elements lie inside the row.
    unsafe fn tile(&self, isa: Isa, row: usize, column: usize, n: usize) {
        for RunStep { operation, operands: [a, b], to } in self.steps {
            let ((a, a_step), (b, b_step)) = (a.at(row, self.length, column), b.at(row, self.length, column));
            // SAFETY: passed on. An operation of one operand has one as long as the result, because steps don't broadcast it.
            unsafe {
                let y = to.get().add(row * self.length + column);
                match *operation {
                    Elementwise::One(function) => function.row(isa, a, y, n),
                    Elementwise::Two(f) => super::binary::row(isa, f, [a, b], [a_step, b_step], y, n),
                }
            }
        }
    }
}

impl RunStep {
    /// The time of an element, in additions: 8 for a long function.
    fn weight(&self) -> usize {
        match self.operation {
            Elementwise::One(function) => GRAIN.div_ceil(function.grain()).pow(3),
            Elementwise::Two(Binary::Pow) => 8,
            Elementwise::Two(_) => 1,
        }
    }
}
