//! Constants: their types, and values that sizes depend on.

use super::check::{Checker, WHOLE};
use super::names::decoration;
use super::types::Shape;
use crate::error::Result;

impl Checker<'_> {
    /// Rules for constants, and their values.
    pub fn constant_rules(&mut self, opcode: u32, of: u32) -> Result<()> {
        let id = self.words[self.at + 2];
        let shape = self.shape(of);
        let value = match opcode {
            41 | 42 | 48 | 49 => {
                self.ensure(shape.count == 1, "it can't be of the type", of)?;
                u64::from(matches!(opcode, 41 | 48))
            }
            43 | 50 => {
                let number = matches!(shape.class, Shape::INTEGER | Shape::FLOAT) && shape.count == 1;
                let words = (self.end - self.at - 3) as u32;
                self.ensure(number && words == shape.width.div_ceil(32), "its words don't fit its type:", words)?;
                let low = self.words[self.at + 3];
                if shape.width < 32 {
                    // Above a narrow number are zeros, or its sign if it has one.
                    let unused = 32 - shape.width;
                    let signed = shape.class == Shape::INTEGER && self.word(of, 3) == 1;
                    let good =
                        if signed { (low << unused) as i32 >> unused == low as i32 } else { low >> shape.width == 0 };
                    self.ensure(good, "it is not of its type, the number", low)?;
                }
                let high = if words == 2 { self.words[self.at + 4] } else { 0 };
                u64::from(high) << 32 | u64::from(self.words[self.at + 3])
            }
            44 | 51 => return self.composite(of, self.at + 3, false),
            46 => return self.ensure(self.bytes(of) > 0 && !self.runtime(of), "there is no zero of the type", of),
            _ => {
                let inner = self.words[self.at + 3];
                let allowed = matches!(inner, 79 | 81 | 82 | 113..=116 | 126 | 128 | 130 | 132 | 134 | 135 | 137..=139
                    | 164..=179 | 194..=200);
                self.ensure(allowed, "no constant is made by instruction", inner)?;
                self.operands(inner, self.at + 4)?;
                self.evaluate(inner, shape)
            }
        };
        let given = match self.find(id, WHOLE, decoration::SPEC_ID) {
            Some(number) if matches!(opcode, 48..=50) => self.specialization.iter().find(|entry| entry.0 == number),
            _ => None,
        };
        self.value[id as usize] = given.map_or(value, |entry| entry.1);
        Ok(())
    }

    /// The value of an operation on scalar integers and bools; 0 of others, which as a size is refused.
    pub fn evaluate(&self, opcode: u32, shape: Shape) -> u64 {
        let operand = |index: usize| {
            let id = if self.at + 4 + index < self.end { self.words[self.at + 4 + index] } else { 0 };
            let value = self.value.get(id as usize).copied().unwrap_or(0);
            let bits = self.shape(if id == 0 { 0 } else { self.word(id, 1) }).width.clamp(1, 64);
            // With the sign, and without.
            ((value << (64 - bits)) as i64 >> (64 - bits), value << (64 - bits) >> (64 - bits))
        };
        if opcode == 81 {
            let path = &self.words[self.at + 5..self.end];
            let part = path.iter().try_fold(self.words[self.at + 4], |of, &index| {
                // The path was walked through the types before.
                matches!(self.opcode(of), 44 | 51).then(|| self.word(of, 3 + index as usize))
            });
            return part.map_or(0, |part| self.value[part as usize]);
        }
        if shape.count != 1 || matches!(opcode, 79 | 82) {
            return 0;
        }
        let ((sa, a), (sb, b)) = (operand(0), if self.end > self.at + 5 { operand(1) } else { (0, 0) });
        let shift = b.min(64) as u32;
        let value = match opcode {
            113 => a,
            114 => sa as u64,
            126 => a.wrapping_neg(),
            128 => a.wrapping_add(b),
            130 => a.wrapping_sub(b),
            132 => a.wrapping_mul(b),
            134 => a.checked_div(b).unwrap_or(0),
            135 => sa.checked_div(sb).unwrap_or(0) as u64,
            137 => a.checked_rem(b).unwrap_or(0),
            138 => sa.checked_rem(sb).unwrap_or(0) as u64,
            139 => {
                sa.checked_rem(sb).map_or(0, |rest| if rest != 0 && (rest < 0) != (sb < 0) { rest + sb } else { rest })
                    as u64
            }
            164 | 170 => u64::from(a == b),
            165 | 171 => u64::from(a != b),
            166 | 197 => a | b,
            167 | 199 => a & b,
            168 => u64::from(a == 0),
            169 => self.value[self.words[self.at + if a != 0 { 5 } else { 6 }] as usize],
            172 => u64::from(a > b),
            173 => u64::from(sa > sb),
            174 => u64::from(a >= b),
            175 => u64::from(sa >= sb),
            176 => u64::from(a < b),
            177 => u64::from(sa < sb),
            178 => u64::from(a <= b),
            179 => u64::from(sa <= sb),
            194 => a.checked_shr(shift).unwrap_or(0),
            195 => sa.checked_shr(shift).unwrap_or(0) as u64,
            196 => a.checked_shl(shift).unwrap_or(0),
            198 => a ^ b,
            200 => !a,
            _ => 0,
        };
        let bits = shape.width.clamp(1, 64);
        value << (64 - bits) >> (64 - bits)
    }

    /// A composite's parts fit its members; a vector may be `joined` from vectors.
    pub fn composite(&mut self, of: u32, first: usize, joined: bool) -> Result<()> {
        let parts = (self.end - first) as u64;
        let vector = self.shape(of);
        if joined && self.opcode(of) == 23 {
            let mut count = 0;
            for index in first..self.end {
                let given = self.value(self.words[index])?;
                let part = self.shape(given);
                let fits = part.count > 0 && self.component(given) == self.component(of);
                self.ensure(fits, "its type doesn't fit of the component", self.words[index])?;
                count += u64::from(part.count);
            }
            return self.ensure(count == u64::from(vector.count) && parts > 1, "its components are", count as u32);
        }
        self.ensure(parts == self.members(of), "its members are", parts as u32)?;
        for index in first..self.end {
            let member = self.member(of, (index - first) as u64)?;
            let given = self.value(self.words[index])?;
            self.ensure(given == member, "its type doesn't fit of the member", self.words[index])?;
        }
        Ok(())
    }
}
