//! Extended instructions, and products of matrices.

use super::check::Checker;
use super::grammar::GLSL;
use super::types::Shape;
use crate::error::Result;

impl Checker<'_> {
    /// Products of matrices: columns and rows that fit.
    pub fn product(&mut self, opcode: u32, a: u32, b: u32, of: u32) -> Result<()> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        // The type of a column, of a component, the columns and the rows; a vector is one column.
        let [x, y, result] = [x, y, of].map(|of| match self.opcode(of) {
            24 => (24, self.word(self.word(of, 2), 2), self.word(of, 3), self.shape(self.word(of, 2)).count),
            23 => (23, self.word(of, 2), 1, self.word(of, 3)),
            _ => (0, 0, 0, 0),
        });
        let kinds = (x.0, y.0, result.0);
        let fits = match opcode {
            144 => kinds == (23, 24, 23) && x.3 == y.3 && result.3 == y.2,
            145 => kinds == (24, 23, 23) && x.2 == y.3 && result.3 == x.3,
            146 => kinds == (24, 24, 24) && x.2 == y.3 && (result.2, result.3) == (y.2, x.3),
            _ => kinds == (23, 23, 24) && (result.2, result.3) == (y.3, x.3),
        };
        self.ensure(fits && x.1 == result.1 && y.1 == result.1, "the factors don't fit, id", b)
    }

    /// Whether a set's name begins with these bytes.
    pub fn named(&self, set: u32, text: &[u8]) -> bool {
        let bytes = self.words[self.define[set as usize] as usize + 2..].iter().flat_map(|word| word.to_le_bytes());
        bytes.take(text.len()).eq(text.iter().copied())
    }

    /// An extended instruction: its set at `first`, then its number.
    pub fn import(&mut self, first: usize) -> Result<()> {
        let (set, number) = (self.words[first], self.words[first + 1]);
        self.ensure(self.opcode(set) == 11, "it is not a set of extended instructions, id", set)?;
        if self.named(set, b"GLSL.std.450\0") {
            self.ensure(self.function != 0 && number < 82, "there is no extended instruction", number)?;
            return self.operands(GLSL + number, first + 2);
        }
        // Those of other sets do nothing.
        self.words[first + 2..self.end].iter().try_for_each(|&id| self.place(id).map(|_| ()))
    }

    /// What the patterns don't say of the extended instructions.
    pub fn extended(&mut self, number: u32, first: usize, of: u32) -> Result<()> {
        let result = self.shape(of);
        let given = self.value(self.words[first])?;
        let shape = self.shape(given);
        let fits = match number {
            33 => self.opcode(given) == 24 && self.word(self.word(given, 2), 2) == of,
            34 => self.opcode(of) == 24,
            36 | 52 => {
                let pair = self.opcode(of) == 30 && self.members(of) == 2 && self.word(of, 2) == given;
                let second = if pair { self.shape(self.word(of, 3)) } else { shape };
                let class = if number == 36 { Shape::FLOAT } else { Shape::INTEGER };
                pair && shape.class == Shape::FLOAT && second.class == class && second.count == shape.count
            }
            51 => {
                let (_, to) = self.pointer(self.words[first + 1])?;
                self.shape(to).class == Shape::INTEGER && self.shape(to).count == result.count
            }
            54..=58 => (result.width, result.count) == (32, 1),
            59 => (result.width, result.count) == (64, 1) && shape == Shape::new(Shape::INTEGER, 32, 2),
            60..=62 => (result.width, result.count) == (32, 2),
            63 | 64 => (result.width, result.count) == (32, 4),
            65 => result == Shape::new(Shape::INTEGER, 32, 2) && shape == Shape::new(Shape::FLOAT, 64, 1),
            66 | 67 => shape == (Shape { count: shape.count, ..result }) && result.count == 1,
            68 => result.count == 3,
            _ => true,
        };
        self.ensure(fits, "its operands don't fit the extended instruction", number)
    }
}
