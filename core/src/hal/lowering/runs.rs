//! Runs: elementwise commands of f32, each of which works in place on the result of the one before, as one kernel. What is between
//! them stays in registers, so only the last one's result reaches memory; nobody could have seen the others.

use super::elementwise::Grid;
use super::function;
use super::operands::aligned;
use super::{Encoder, Kernels, MOST, PUSH_BYTES};
use crate::command::Command;
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::View;
use crate::ops::OpKind;
use crate::shape::Shape;

/// Steps of a kernel: as many as push constants have room for. What is longer becomes several kernels.
const STEPS: usize = 8;
/// Words of a step.
const STEP: usize = 3;
/// Which word of the push constants is the count of steps.
const COUNT: usize = 5;
/// Words of the push constants.
pub const WORDS: usize = COUNT + 1 + STEPS * STEP;
const _: () = assert!(4 * WORDS <= PUSH_BYTES);

// The bits of a step's last word, above its number; `elementwise.comp` says what they mean.
const LEFT: u32 = 1 << 6;
const FOUR: u32 = 1 << 7;
const ONE: u32 = 2 << 7;
const ITSELF: u32 = 3 << 7;
const ROWS: u32 = 1 << 9;
const PER: u32 = 10;
/// Elements of a row are fewer.
const MOST_PER: u32 = 1 << (32 - PER);

/// Encodes the run that the commands begin with: how many of them it has, or 0 where there is none.
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
    words[..COUNT].copy_from_slice(&[x as u32, (x >> 32) as u32, y as u32, (y >> 32) as u32, n as u32]);
    let constants = [function::RUN, u32::from(aligned(&[x, y])), 1, 1, 0, 0];
    encoder.dispatch(Kernels::Elementwise, &constants, &words, [(n as u32).div_ceil(1024), 1, 1])?;
    Ok(count)
}

/// Whether it may be in a run, by what it is.
fn is_elementwise(command: &Command<'_>) -> bool {
    command.op().is_elementwise() && command.output().dtype() == DType::F32
}

/// A run under construction.
struct Run<'a> {
    shape: &'a Shape,
    /// What the first step begins with; 0 before there is one.
    x: u64,
    /// Where everything's result is.
    y: u64,
    words: [u32; WORDS],
}

impl Run<'_> {
    /// Appends a command, if it can be the next one. (An operand that is not on the device is an error of the command by itself.)
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
            step = [other.0 as u32, (other.0 >> 32) as u32, step[2] | bits | if left { LEFT } else { 0 }];
        }
        if begins {
            self.x = value.0;
        }
        let at = COUNT + 1 + self.words[COUNT] as usize * STEP;
        self.words.get_mut(at..at + STEP)?.copy_from_slice(&step);
        self.words[COUNT] += 1;
        Some(())
    }

    /// An operand, unless part of it is overwritten that another thread reads: either it is where the result is, element by
    /// element, or it is elsewhere.
    fn operand<'a>(&self, encoder: &mut dyn Encoder, view: &View<'a>) -> Option<(u64, &'a Shape)> {
        let (address, bytes) = (encoder.address(view.place()).ok()?, view.meta().bytes() as u64);
        let result = 4 * self.shape.elements() as u64;
        let same = address == self.y && bytes == result;
        let apart = address + bytes <= self.y || self.y + result <= address;
        (same || apart).then(|| (address, view.shape()))
    }

    /// How an operand that is not the value is read: the bits that say it. `None` where it is repeated in another way than row by
    /// row or in each row.
    fn access(&self, (address, shape): (u64, &Shape)) -> Option<u32> {
        let four = if aligned(&[address]) { FOUR } else { 0 };
        let mut grid = Grid::new();
        for (&size, &stride) in self.shape.dims().iter().zip(shape.broadcast_strides(self.shape).iter()) {
            grid.push(size as u32, stride as u32, 0);
        }
        // Sizes and strides.
        let (per, bits) = match grid.dims[..grid.rank] {
            [] | [(_, 1, _)] => (0, four),
            [(_, 0, _)] => (1, ONE),
            [(_, 0, _), (n, 1, _)] => (n, if n.is_multiple_of(4) { four } else { 0 }),
            [(_, 1, _), (n, 0, _)] => (n, ROWS | if n.is_multiple_of(4) { ONE } else { 0 }),
            _ => return None,
        };
        (per < MOST_PER).then_some((per << PER) | bits)
    }
}

#[cfg(test)]
pub mod tests;
