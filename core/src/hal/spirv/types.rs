//! Types: their shapes, sizes and members.

use super::check::{Checker, WHOLE};
use super::names::{PHYSICAL, decoration};
use super::variables::any;
use crate::error::Result;

/// A scalar's or vector's class, bits of a component and components; anything else has class 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub class: u32,
    pub width: u32,
    pub count: u32,
}

impl Shape {
    pub const BOOL: u32 = 20;
    pub const INTEGER: u32 = 21;
    pub const FLOAT: u32 = 22;
    const NONE: Shape = Shape { class: 0, width: 0, count: 0 };

    pub const fn new(class: u32, width: u32, count: u32) -> Shape {
        Shape { class, width, count }
    }
}

/// What [`Checker::value`] has of a type: its bytes, how deep it is, whether it ends in an array of any length,
/// and whether every part says where it lies.
const BYTES: u64 = (1 << 40) - 1;
const DEPTH: u32 = 40;
const DEEPEST: u64 = 255;
const RUNTIME: u64 = 1 << 50;
const LAID_OUT: u64 = 1 << 51;
/// Of a pointer that is declared and not yet defined.
pub(super) const POINTER: u64 = 8 | LAID_OUT;

impl Checker<'_> {
    pub fn shape(&self, of: u32) -> Shape {
        match self.opcode_of(of) {
            20 => Shape::new(Shape::BOOL, 0, 1),
            class @ (21 | 22) => Shape::new(class, self.word(of, 2), 1),
            23 => Shape { count: self.word(of, 3), ..self.shape(self.word(of, 2)) },
            // Cooperative matrices are computed with as vectors are; no vector has 0 components.
            4456 => Shape { count: 0, ..self.shape(self.word(of, 2)) },
            _ => Shape::NONE,
        }
    }

    /// A decoration's number, if there is one.
    pub fn find(&self, target: u32, member: u32, decoration: u32) -> Option<u32> {
        let key = [target, member, decoration, 0];
        let found = self.decorations.get(self.decorations.partition_point(|entry| *entry < key))?;
        (found[..3] == key[..3]).then_some(found[3])
    }

    /// Bytes of a type's fixed part, 0 of what has none.
    pub fn bytes(&self, of: u32) -> u64 {
        self.value[of as usize] & BYTES
    }

    pub fn runtime(&self, of: u32) -> bool {
        self.value[of as usize] & RUNTIME != 0
    }

    pub fn laid_out(&self, of: u32) -> bool {
        self.value[of as usize] & LAID_OUT != 0
    }

    /// The members of a type that has them all the same or numbered.
    pub fn members(&self, of: u32) -> u64 {
        match self.opcode(of) {
            23 | 24 => u64::from(self.word(of, 3)),
            28 => self.value[self.word(of, 3) as usize],
            29 => u64::MAX,
            30 => self.length(of) as u64 - 2,
            4456 => 1,
            _ => 0,
        }
    }

    /// The type of a member.
    pub fn member(&self, of: u32, index: u64) -> Result<u32> {
        self.ensure(index < self.members(of), "there is no such member:", index as u32)?;
        Ok(self.word(of, if self.opcode(of) == 30 { 2 + index as usize } else { 2 }))
    }

    /// What the arrays around a type hold.
    pub fn element(&self, mut of: u32) -> u32 {
        while let 28 | 29 = self.opcode(of) {
            of = self.word(of, 2);
        }
        of
    }

    /// Bytes that a member takes from its first to its last.
    pub fn extent(&self, structure: u32, index: u32) -> u64 {
        let mut of = self.word(structure, 2 + index as usize);
        let stride = self.find(structure, index, decoration::MATRIX_STRIDE).map(u64::from);
        let (Some(stride), 24) = (stride, self.opcode(self.element(of))) else {
            return self.bytes(of);
        };
        let mut bytes = 0u64;
        while self.opcode(of) == 28 {
            bytes = bytes.saturating_add(self.stride(of).saturating_mul(self.members(of) - 1));
            of = self.word(of, 2);
        }
        let column = self.shape(self.word(of, 2));
        let (columns, rows) = (u64::from(self.word(of, 3)), u64::from(column.count));
        let turned = self.find(structure, index, decoration::ROW_MAJOR).is_some();
        let (vectors, length) = if turned { (rows, columns) } else { (columns, rows) };
        bytes.saturating_add(stride * (vectors - 1) + length * u64::from(column.width / 8))
    }

    /// Bytes from one element of an array to the next.
    pub fn stride(&self, array: u32) -> u64 {
        let given = self.find(array, WHOLE, decoration::ARRAY_STRIDE).map(u64::from);
        given.unwrap_or_else(|| self.bytes(self.word(array, 2)))
    }

    /// Rules for types, and what is known of them later.
    pub fn type_rules(&mut self, opcode: u32) -> Result<()> {
        let id = self.words[self.at + 1];
        let operand = |index: usize| if self.at + index < self.end { self.words[self.at + index] } else { 0 };
        let (a, b) = (operand(2), operand(3));
        let mut runtime = false;
        let (mut depth, mut laid_out) = (0, true);
        if matches!(opcode, 23..=25 | 27..=29 | 4456) {
            depth = self.value[a as usize] >> DEPTH & DEEPEST;
            laid_out = self.laid_out(a);
        }
        let bytes = match opcode {
            20 => {
                laid_out = false;
                4
            }
            21 => {
                self.ensure(matches!(a, 8 | 16 | 32 | 64) && b < 2, "there are no integers of width", a)?;
                match a {
                    8 => self.needs(any(&[39, 4448, 4449, 4450]))?,
                    16 => self.needs(any(&[22, 4433, 4434, 4435]))?,
                    64 => self.needs(any(&[11, 12]))?,
                    _ => {}
                }
                u64::from(a / 8)
            }
            22 => {
                self.ensure(matches!(a, 16 | 32 | 64), "there are no floats of width", a)?;
                match a {
                    16 => self.needs(any(&[9, 4433, 4434, 4435]))?,
                    64 => self.needs(any(&[10]))?,
                    _ => {}
                }
                u64::from(a / 8)
            }
            23 | 24 => {
                let of = self.shape(a);
                let good = if opcode == 23 { of.count == 1 } else { of.class == Shape::FLOAT && of.count > 1 };
                self.ensure(good && matches!(b, 2..=4), "its components don't fit:", b)?;
                self.bytes(a) * u64::from(b)
            }
            28 | 29 => {
                let good = !matches!(self.opcode(a), 19 | 29 | 33);
                self.ensure(good, "there are no arrays of the type", a)?;
                runtime = self.runtime(a) || opcode == 29;
                laid_out &= self.find(id, WHOLE, decoration::ARRAY_STRIDE).is_some();
                if opcode == 29 {
                    0
                } else {
                    let length = self.value[b as usize];
                    self.ensure((1..=u64::from(u32::MAX)).contains(&length), "its length can't be", length as u32)?;
                    self.bytes(a).saturating_add(self.stride_of(id, a).saturating_mul(length - 1))
                }
            }
            30 => {
                let members = self.end - self.at - 2;
                self.ensure(members <= 16383, "its members are too many:", members as u32)?;
                let (mut bytes, mut next) = (0u64, 0u64);
                for index in 0..members {
                    let of = self.words[self.at + 2 + index];
                    self.ensure(!matches!(self.opcode(of), 19 | 33), "no member can be of the type", of)?;
                    let ends = self.opcode(of) == 29 && index + 1 == members;
                    runtime = self.runtime(of);
                    self.ensure(!runtime || ends, "only a last member can be of the type", of)?;
                    depth = depth.max(self.value[of as usize] >> DEPTH & DEEPEST);
                    let index = index as u32;
                    let offset = self.find(id, index, decoration::OFFSET);
                    let matrix = self.opcode(self.element(of)) == 24;
                    let strided = !matrix || self.find(id, index, decoration::MATRIX_STRIDE).is_some();
                    laid_out &= offset.is_some() && strided && self.laid_out(of);
                    next = offset.map_or(next, u64::from).saturating_add(self.extent(id, index));
                    bytes = bytes.max(next);
                }
                bytes
            }
            25 => {
                let [depth, arrayed, many, sampled, format] = [4, 5, 6, 7, 8].map(operand);
                let good = matches!(b, 0..=3 | 5) && depth < 3 && arrayed < 2 && many < 2 && format < 42;
                self.ensure(good && matches!(sampled, 1 | 2), "there are no images of kind", b)?;
                0
            }
            32 => {
                let known = matches!(a, 0..=2 | 4 | 6 | 7 | 9 | 11 | 12 | PHYSICAL);
                self.ensure(known, "compute kernels have no storage class", a)?;
                if a == PHYSICAL {
                    self.needs(any(&[5347]))?;
                }
                self.ensure(!matches!(self.opcode(b), 19 | 33), "no pointer can be to the type", b)?;
                depth = self.value[b as usize] >> DEPTH & DEEPEST;
                8
            }
            33 => {
                for index in self.at + 3..self.end {
                    let of = self.words[index];
                    self.ensure(!matches!(self.opcode(of), 19 | 29 | 33), "no parameter can be of the type", of)?;
                }
                self.ensure(!matches!(self.opcode(a), 29 | 33), "no function can return the type", a)?;
                0
            }
            4456 => {
                self.ensure(self.shape(a).count == 1, "there are no matrices of the type", a)?;
                8
            }
            _ => 0,
        };
        self.ensure(depth < DEEPEST, "types are in each other more often than", DEEPEST as u32)?;
        self.value[id as usize] =
            bytes.min(BYTES) | (depth + 1) << DEPTH | u64::from(runtime) << 50 | u64::from(laid_out) << 51;
        Ok(())
    }

    pub fn stride_of(&self, array: u32, element: u32) -> u64 {
        self.find(array, WHOLE, decoration::ARRAY_STRIDE).map_or_else(|| self.bytes(element), u64::from)
    }

    /// The type of a vector's components; of anything else itself.
    pub fn component(&self, of: u32) -> u32 {
        if self.opcode(of) == 23 { self.word(of, 2) } else { of }
    }

    /// The type that a path of indices ends at: literal ones, or ids.
    pub fn walk(&mut self, mut of: u32, from: usize, literal: bool) -> Result<u32> {
        for at in from..self.end {
            let word = self.words[at];
            let structure = self.opcode(of) == 30;
            let index = if literal {
                u64::from(word)
            } else if structure {
                self.ensure(self.opcode(word) == 43, "the index of a member is not a constant:", word)?;
                self.value[word as usize]
            } else {
                // Any index may come at run time; a type without elements has none.
                0
            };
            self.ensure(!literal || self.opcode(of) != 29, "a path goes through the type", of)?;
            of = self.member(of, index)?;
        }
        Ok(of)
    }
}
