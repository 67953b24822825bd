//! Slots: the data that a program exchanges with its caller. A slot has a name. No number in a program is ever an address.

use super::code::{Code, Role};
use super::opcodes::Action;
use crate::dtype::DType;
use crate::operand::Meta;
use crate::shape::Shape;
use std::collections::HashMap;

/// The direction in which a slot's contents move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The caller supplies it.
    In,
    /// The program produces it.
    Out,
    /// Both.
    Both,
}

impl Direction {
    /// Returns `in`, `out` or `both`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Both => "both",
        }
    }

    /// Returns whether the caller may bind a tensor to it.
    pub const fn takes_input(self) -> bool {
        matches!(self, Direction::In | Direction::Both)
    }
}

/// A named input or output of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The tensor's name. In AGPU programs it is the host address as text, such as `0x1000`.
    pub name: String,
    /// The direction in which its contents move.
    pub direction: Direction,
    /// The size of its contents in bytes.
    pub bytes: usize,
    /// The dtype and shape of its contents. If [`Slot::typed`] is false, they follow from the program's first use, or are f32.
    pub meta: Meta,
    /// Whether a bound tensor must have exactly this dtype and shape. Otherwise only the number of bytes must match.
    pub typed: bool,
    /// Whether the caller must supply it. False if the program writes it before reading it.
    pub required: bool,
}

/// The slots of a program, in the order of first use.
#[derive(Default)]
pub(super) struct Slots {
    pub list: Vec<Slot>,
    by_address: HashMap<u32, usize>,
    /// By slot: how many bytes from its start the program has written.
    written: Vec<usize>,
    hints: Vec<Option<Meta>>,
}

impl Slots {
    /// Collects the slots of the tensor table and of the addresses that copies name.
    pub fn new(code: &Code) -> Slots {
        let mut slots = Slots::default();
        for tensor in &code.tensors {
            let direction = match tensor.role {
                Role::Input => Direction::In,
                Role::Output => Direction::Out,
                Role::Constant | Role::Temporary => continue,
            };
            slots.push(Slot {
                name: tensor.name.clone(),
                direction,
                bytes: tensor.meta.bytes(),
                meta: tensor.meta,
                typed: true,
                required: direction == Direction::In,
            });
        }
        for instruction in &code.instructions {
            let super::code::Kind::Plain(opcode, operands) = &instruction.kind else { continue };
            match (opcode.action, operands.as_slice()) {
                (Action::Upload, &[address, _, bytes]) => slots.copy(address, bytes as usize, Direction::In),
                (Action::Download, &[_, address, bytes]) => slots.copy(address, bytes as usize, Direction::Out),
                _ => {}
            }
        }
        slots
    }

    fn push(&mut self, slot: Slot) {
        self.list.push(slot);
        self.written.push(0);
        self.hints.push(None);
    }

    fn copy(&mut self, address: u32, bytes: usize, direction: Direction) {
        let next = self.list.len();
        let index = *self.by_address.entry(address).or_insert(next);
        if index == next {
            let (name, meta) = (format!("{address:#x}"), Meta::new(DType::F32, Shape::SCALAR));
            self.push(Slot { name, direction, bytes: 0, meta, typed: false, required: false });
        }
        let slot = &mut self.list[index];
        slot.bytes = slot.bytes.max(bytes);
        // A size that no shape can have stays different from the shape's, and validation refuses it.
        slot.meta.shape = Shape::new(&[slot.bytes / DType::F32.size()]).unwrap_or(Shape::SCALAR);
        if slot.direction != direction {
            slot.direction = Direction::Both;
        }
        match direction {
            Direction::In => slot.required |= bytes > self.written[index],
            _ => self.written[index] = self.written[index].max(bytes),
        }
    }

    /// The slot of an address that a copy names.
    pub fn of_address(&self, address: u32) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    /// Records the apparent description of an untyped slot's contents. The first one counts.
    pub fn hint(&mut self, index: usize, meta: Meta) {
        let slot = &mut self.list[index];
        if self.hints[index].is_none() && !slot.typed && meta.bytes() == slot.bytes {
            self.hints[index] = Some(meta);
            slot.meta = meta;
        }
    }
}
