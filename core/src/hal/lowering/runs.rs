//! Runs: elementwise commands of f32, each of which works in place on the previous result, as one kernel. Intermediate
//! values stay in registers, and only the last result reaches memory. No command could have seen the others.

use super::elementwise::Grid;
use super::function;
use super::operands::aligned;
use super::{Encoder, Kernels, MOST, PUSH_BYTES};
use crate::command::Command;
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::View;
use crate::ops::{Op, OpKind};
use crate::shape::Shape;

/// The most steps of a kernel, limited by the push constants. A longer run becomes several kernels.
const STEPS: usize = 8;
/// The words of a step.
const STEP: usize = 3;
/// The index of the word that counts the steps.
const COUNT: usize = 5;
/// The index of the word by which kernels divide elements' numbers by a row's length.
const DIVIDES: usize = COUNT + 1 + STEPS * STEP;
/// The index of the word that is a row's length, or 0 without rows.
const OF_ROW: usize = DIVIDES + 1;
/// The number of words of the push constants.
pub const WORDS: usize = OF_ROW + 1;
const _: () = assert!(4 * WORDS <= PUSH_BYTES);

// The bits of a step's last word, above its number. `elementwise.comp` says what they mean.
const LEFT: u32 = 1 << 6;
const FOUR: u32 = 1 << 7;
const ONE: u32 = 2 << 7;
const ITSELF: u32 = 3 << 7;
const ROWS: u32 = 1 << 9;
const PER: u32 = 10;
/// A row must have fewer elements than this.
const MOST_PER: u32 = 1 << (32 - PER);
/// A run that repeats rows has at most so many elements: see [`reciprocal`].
const MOST_IN_ROWS: usize = 1 << 31;

/// From so many elements on, Vulkan's threads have two fours of elements.
const MANY: usize = 1 << 20;

/// Encodes the run with which the commands begin. Returns its length in commands, or 0 if they begin with no run.
pub fn encode(encoder: &mut dyn Encoder, commands: &[Command<'_>]) -> Result<usize> {
    let output = commands[0].output();
    let n = output.shape().elements();
    if !is_elementwise(&commands[0]) || !is_elementwise(&commands[1]) || n == 0 || n > MOST {
        return Ok(0);
    }
    let mut run = Run { shape: output.shape(), x: 0, y: encoder.address(output.place())?, words: [0; WORDS] };
    while run.words[COUNT] < STEPS as u32
        && let Some(command) = commands.get(run.words[COUNT] as usize)
        && run.push(encoder, command).is_some()
    {}
    let Run { x, y, mut words, .. } = run;
    let count = words[COUNT] as usize;
    if count < 2 {
        return Ok(0);
    }
    if words[OF_ROW] > 0 {
        words[DIVIDES] = reciprocal(words[OF_ROW]);
    }
    words[..COUNT].copy_from_slice(&[x as u32, (x >> 32) as u32, y as u32, (y >> 32) as u32, n as u32]);
    // Threads with two fours of elements take less time, if there are enough threads.
    let fours = if n < MANY { 1 } else { 2 };
    let constants = [function::RUN, u32::from(aligned(&[x, y])), 1, 1, 0, 0, fours];
    encoder.dispatch(Kernels::Elementwise, &constants, &words, [(n as u32).div_ceil(1024 * fours), 1, 1])?;
    Ok(count)
}

/// Returns whether a command's operation and dtype allow it in a run.
fn is_elementwise(command: &Command<'_>) -> bool {
    command.op().is_elementwise() && command.output().dtype() == DType::F32
}

/// A run that is being assembled.
struct Run<'a> {
    shape: &'a Shape,
    /// The address of the value with which the first step begins; 0 before there is a step.
    x: u64,
    /// The address of all results.
    y: u64,
    words: [u32; WORDS],
}

impl Run<'_> {
    /// Appends a command if it can be the next one. An operand that is not on the device ends the run: its command then
    /// returns the error.
    fn push(&mut self, encoder: &mut dyn Encoder, command: &Command<'_>) -> Option<()> {
        let (op, attrs, inputs, output) = (command.op(), command.attrs(), command.inputs(), command.output());
        if !is_elementwise(command) || output.shape() != self.shape || encoder.address(output.place()).ok()? != self.y {
            return None;
        }
        let mut operands = [(0, self.shape); 2];
        for (operand, view) in operands.iter_mut().zip(inputs.iter().flatten()) {
            *operand = self.operand(encoder, view)?;
        }
        let binary = op.kind() == OpKind::Binary;
        let n = self.shape.elements();
        let whole = |(_, shape): (u64, &Shape)| shape.elements() == n;
        let [a, b] = operands;
        let begins = self.x == 0;
        let is_value = |operand: (u64, &Shape)| whole(operand) && (begins || operand.0 == self.y);
        let left = binary && !is_value(a);
        let (value, other) = if left { (b, a) } else { (a, b) };
        if !is_value(value) {
            return None;
        }
        let [first, second] = function::values(op, attrs);
        let mut step = [first.to_bits(), second.to_bits(), function::of(op, attrs)?];
        if binary {
            let bits = if whole(other) && other.0 == value.0 { ITSELF } else { self.access(other)? };
            // Operands of these may change places, which costs a kernel less than the bit does.
            let order = if left && !matches!(op, Op::Add | Op::Mul) { LEFT } else { 0 };
            step = [other.0 as u32, (other.0 >> 32) as u32, step[2] | bits | order];
            let per = bits >> PER;
            if per > 0 {
                if ![0, per].contains(&self.words[OF_ROW]) || n > MOST_IN_ROWS {
                    return None;
                }
                self.words[OF_ROW] = per;
            }
        }
        if begins {
            self.x = value.0;
        }
        let at = COUNT + 1 + self.words[COUNT] as usize * STEP;
        self.words.get_mut(at..at + STEP)?.copy_from_slice(&step);
        self.words[COUNT] += 1;
        Some(())
    }

    /// Returns an operand, unless a thread could overwrite a part that another thread reads. The operand must be
    /// exactly at the result, or not overlap it.
    fn operand<'a>(&self, encoder: &mut dyn Encoder, view: &View<'a>) -> Option<(u64, &'a Shape)> {
        let (address, bytes) = (encoder.address(view.place()).ok()?, view.meta().bytes() as u64);
        let result = 4 * self.shape.elements() as u64;
        let same = address == self.y && bytes == result;
        let apart = address + bytes <= self.y || self.y + result <= address;
        (same || apart).then(|| (address, view.shape()))
    }

    /// Returns the bits that tell how an operand that is not the value is read. `None` unless it is whole, one value,
    /// or repeated row by row or within each row.
    fn access(&self, (address, shape): (u64, &Shape)) -> Option<u32> {
        let four = if aligned(&[address]) { FOUR } else { 0 };
        let mut grid = Grid::new();
        for (&size, &stride) in self.shape.dims().iter().zip(shape.broadcast_strides(self.shape).iter()) {
            grid.push(size as u32, stride as u32, 0);
        }
        // The patterns match sizes and strides.
        let (per, bits) = match grid.dims[..grid.rank] {
            [] | [(_, 1, _)] => (0, four),
            [(_, 0, _)] => (0, ROWS | ONE),
            [(_, 0, _), (n, 1, _)] => (n, if n.is_multiple_of(4) { four } else { 0 }),
            [(_, 1, _), (n, 0, _)] => (n, ROWS | if n.is_multiple_of(4) { ONE } else { 0 }),
            _ => return None,
        };
        (per < MOST_PER).then_some((per << PER) | bits)
    }
}

/// Returns 2^(31 + s) / `per`, rounded up, where s is the least for which 2^s ≥ `per` ≥ 2. Its product with a number e below 2³¹,
/// divided by 2^(31 + s), is too large by less than 2^−s ≤ 1 / `per`. So without its fraction it is e / `per` without its fraction.
fn reciprocal(per: u32) -> u32 {
    let bits = u32::BITS - (per - 1).leading_zeros();
    (((1u64 << (31 + bits)) - 1) / per as u64 + 1) as u32
}

#[cfg(test)]
pub mod tests;
