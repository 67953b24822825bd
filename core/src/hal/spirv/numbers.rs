//! The numbers in a block of push constants.

use super::check::Checker;
use super::names::*;
use super::types::{CLASS, FLOAT, INTEGER};
use crate::hal::{NumberKind, PushNumber};

/// The most numbers in a block. Devices have 128 to 256 bytes for it.
const MOST: usize = 1024;
/// The most steps in the search for numbers, because structures can be empty.
const STEPS: u32 = 1 << 14;

/// The numbers found so far.
struct Found {
    numbers: Vec<PushNumber>,
    steps: u32,
}

/// The layout of the matrices in a structure's member.
#[derive(Clone, Copy)]
struct Layout {
    stride: u32,
    by_rows: bool,
}

impl Checker<'_> {
    /// Returns the numbers of a laid-out structure. Empty if a part is not a number, or if there are too many.
    pub fn numbers(&self, structure: u32) -> Vec<PushNumber> {
        let mut found = Found { numbers: Vec::new(), steps: 0 };
        let layout = Layout { stride: 0, by_rows: false };
        match self.take_apart(structure, 0, "", layout, &mut found) {
            Some(()) => found.numbers,
            None => Vec::new(),
        }
    }

    /// Adds the numbers of a type at an offset. `None` if the type has parts that are not numbers.
    fn take_apart(&self, of: u32, offset: u32, name: &str, layout: Layout, found: &mut Found) -> Option<()> {
        found.steps += 1;
        if found.steps > STEPS || found.numbers.len() >= MOST {
            return None;
        }
        let part = |index: u32, stride: u32| offset.checked_add(index.checked_mul(stride)?);
        match self.opcode(of) {
            // A float with an extra operand has a format other than IEEE's.
            22 if self.length(of) > 3 => return None,
            21 | 22 => {
                let (shape, kind) = (self.shape(of), self.part(of, 3));
                let bytes = self.bytes(of) as u8;
                let kind = match shape & CLASS {
                    FLOAT => NumberKind::Float(bytes),
                    INTEGER if kind == 1 => NumberKind::Int(bytes),
                    _ => NumberKind::Uint(bytes),
                };
                found.numbers.push(PushNumber { name: name.into(), offset, kind });
            }
            // A vector's components are contiguous, unless the vector is a row of a column-major matrix.
            23 => {
                let stride = if layout.by_rows { layout.stride } else { self.bytes(self.part(of, 2)) as u32 };
                for index in 0..self.part(of, 3) {
                    let axis = ["x", "y", "z", "w"].get(index as usize)?;
                    let name = if name.is_empty() { String::new() } else { format!("{name}.{axis}") };
                    self.take_apart(self.part(of, 2), part(index, stride)?, &name, layout, found)?;
                }
            }
            24 => {
                let column = self.part(of, 2);
                let stride = if layout.by_rows { self.bytes(self.part(column, 2)) as u32 } else { layout.stride };
                for index in 0..self.part(of, 3) {
                    self.take_apart(column, part(index, stride)?, &indexed(name, index), layout, found)?;
                }
            }
            28 => {
                let (element, stride) = (self.part(of, 2), self.stride(of).try_into().ok()?);
                for index in 0..u32::try_from(self.members(of)).ok()? {
                    self.take_apart(element, part(index, stride)?, &indexed(name, index), layout, found)?;
                }
            }
            30 => {
                for index in 0..self.length(of) - 2 {
                    let own = match self.find(of, index, NAME) {
                        0 => String::new(),
                        place => self.string(place)?,
                    };
                    let inner = if name.is_empty() || own.is_empty() { own } else { format!("{name}.{own}") };
                    let stride = match self.find(of, index, MATRIX_STRIDE) {
                        0 => 0,
                        place => self.word(place),
                    };
                    let by_rows = stride != 0 && self.find(of, index, ROW_MAJOR) != 0;
                    let at = part(1, self.word(self.find(of, index, OFFSET)))?;
                    let inner_layout = Layout { stride, by_rows };
                    self.take_apart(self.part(of, 2 + index), at, &inner, inner_layout, found)?;
                }
            }
            // The address of a buffer.
            32 => found.numbers.push(PushNumber { name: name.into(), offset, kind: NumberKind::Uint(8) }),
            _ => return None,
        }
        Some(())
    }
}

fn indexed(name: &str, index: u32) -> String {
    if name.is_empty() { String::new() } else { format!("{name}[{index}]") }
}
