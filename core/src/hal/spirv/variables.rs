//! Variables, decorations and capabilities.

use super::capability_name;
use super::check::{Checker, WHOLE};
use super::names::*;
use super::types::Shape;
use crate::error::Result;

/// The capabilities that are asked for where they are needed, by their place here.
pub(super) const CAPABILITIES: [u16; 21] =
    [1, 9, 10, 11, 22, 39, 61, 62, 63, 64, 65, 66, 67, 68, 4433, 4434, 4435, 4448, 4449, 4450, 5347];

/// Those of a list as bits.
pub(super) const fn any(list: &[u16]) -> u64 {
    let (mut bits, mut i) = (0, 0);
    while i < CAPABILITIES.len() * list.len() {
        if CAPABILITIES[i / list.len()] == list[i % list.len()] {
            bits |= 1 << (i / list.len());
        }
        i += 1;
    }
    bits
}

/// The most bytes of a variable that is not a buffer.
const MOST_BYTES: u64 = 1 << 24;

impl Checker<'_> {
    /// One of these capabilities is declared.
    pub fn needs(&self, capabilities: u64) -> Result<()> {
        let first = CAPABILITIES[capabilities.trailing_zeros() as usize];
        if self.capabilities & capabilities != 0 {
            return Ok(());
        }
        let name = capability_name(first.into()).unwrap_or_default();
        Err(self.fault(&format!("it needs a capability such as {name}, number"), first.into()))
    }

    /// A variable of storage class `class`, with an initial value unless that is 0.
    pub fn variable(&mut self, of: u32, class: u32, initial: u32) -> Result<()> {
        let (id, to) = (self.words[self.at + 2], self.word(of, 3));
        let inside = self.function != 0;
        let placed = self.word(of, 2) == class && inside == (class == FUNCTION);
        self.ensure(
            placed && (!inside || self.block == self.first_block),
            "it can't be here, of storage class",
            class,
        )?;
        let element = self.opcode(self.element(to));
        let good = match class {
            FUNCTION | PRIVATE | WORKGROUP => (1..=MOST_BYTES).contains(&self.bytes(to)) && !self.runtime(to),
            UNIFORM | STORAGE => element == 30,
            PUSH => self.opcode(to) == 30,
            CONSTANT => matches!(element, 25..=27),
            INPUT => {
                let number = self.find(id, WHOLE, decoration::BUILT_IN).unwrap_or(u32::MAX);
                let count = match number {
                    24 | 26..=28 => 3,
                    29 | 36 | 38 | 40 | 41 | 4438 => 1,
                    4416..=4420 => 4,
                    _ => 0,
                };
                self.shape(to) == Shape::new(Shape::INTEGER, 32, count)
            }
            _ => false,
        };
        self.ensure(good, "no variable of this storage class can be of the type", to)?;
        if initial != 0 {
            let given = self.constant(initial)?;
            let good = given == to && matches!(class, FUNCTION | PRIVATE | WORKGROUP);
            self.ensure(good, "its type doesn't fit of the initial value", initial)?;
        }
        Ok(())
    }

    /// A decoration, its number at `from`.
    pub fn decoration(&mut self, target: u32, member: u32, from: usize) -> Result<()> {
        use decoration::*;
        const ONE: u64 =
            1 << 1 | 1 << 6 | 1 << 7 | 1 << 11 | 0xff << 29 | 1 << 37 | 7 << 38 | 1 << 43 | 1 << 44 | 1 << 45;
        let (kind, numbers) = (self.words[from], self.end - from - 1);
        let number = if numbers > 0 { self.words[from + 1] } else { 0 };
        let good = match kind {
            41 => self.text(from + 1)? + 1 == self.end,
            0..=45 => kind != 12 && numbers as u64 == ONE >> kind & 1,
            4469 | 4470 | 5300 | 5355 | 5356 => numbers == 0,
            _ => false,
        };
        self.ensure(good, "its words don't fit the decoration", kind)?;
        let of = self.opcode(target);
        let good = match kind {
            SPEC_ID => matches!(of, 48..=50),
            BLOCK | BUFFER_BLOCK => of == 30 && member == WHOLE,
            ROW_MAJOR | MATRIX_STRIDE | OFFSET => member != WHOLE,
            ARRAY_STRIDE => matches!(of, 28 | 29 | 32) && member == WHOLE && number > 0,
            BINDING | SET => of == 59,
            BUILT_IN if number == 25 => matches!(of, 44 | 51),
            BUILT_IN => of == 59 && member == WHOLE,
            _ => true,
        };
        self.ensure(good, "nothing like its target has the decoration", kind)?;
        self.decorations.push([target, member, kind, number]);
        Ok(())
    }
}
