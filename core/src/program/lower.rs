//! Validation. Every instruction is checked, in order, against the state that the earlier ones leave, and becomes steps for the
//! engine. Nothing is allocated or computed here. Shape rules are those of the op table.

use super::code::{Code, Instruction, Kind, Operation, Role};
use super::fault::{Where, invalid, invalid_because};
use super::opcodes::Action;
use super::slots::{Direction, Slots};
use crate::dtype::DType;
use crate::error::Result;
use crate::operand::Meta;
use crate::ops::{Attrs, FfnPlan, MetaList, Op};
use std::collections::HashMap;

/// A piece of a run's memory, by index.
pub(super) type Cell = usize;

/// What a cell is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// Memory of this many bytes that exists between two steps.
    Allocated(usize),
    /// A device's scratch for one step. It counts between two steps, but the device allocates it.
    Scratch(usize),
    /// A constant, by its index in the tensor table.
    Constant(usize),
    /// The caller's tensor for a slot. Only read.
    Input(usize),
    /// An output's memory. It exists from the beginning, zeroed or with the caller's tensor copied into it.
    Output(usize),
}

/// An operand of a command: its cell and its description.
#[derive(Clone, Copy)]
pub(super) struct Located {
    pub cell: Cell,
    pub meta: Meta,
}

/// What a step does.
pub(super) enum Do {
    Nothing,
    Barrier,
    Allocate { cell: Cell, zeroed: bool },
    Release(Cell),
    Copy { from: Cell, to: Cell, bytes: usize },
    Fill { cell: Cell, value: u8, bytes: usize },
    Command(Box<Work>),
}

/// An operation and the places of its operands.
pub(super) struct Work {
    pub op: Op,
    pub attrs: Attrs,
    pub inputs: Vec<Option<Located>>,
    pub output: Located,
    /// The scratch that the device takes for the operation.
    pub scratch: Option<Cell>,
}

/// One step of the engine, made from an instruction.
pub(super) struct Step {
    pub instruction: usize,
    pub action: Do,
}

/// A validated program.
pub(super) struct Lowered {
    pub cells: Vec<Source>,
    pub steps: Vec<Step>,
    pub slots: Slots,
}

/// A register of an AGPU program.
pub(super) struct Register {
    /// Whether it was not freed since it was allocated.
    pub alive: bool,
    pub cell: Cell,
    pub bytes: usize,
    /// The slot whose contents it holds, until an instruction overwrites them.
    pub from: Option<usize>,
    /// The description of the last result written to it.
    pub holds: Option<Meta>,
}

/// The state of a tensor of the table while instructions are validated.
#[derive(Clone, Copy)]
struct State {
    cell: Option<Cell>,
    written: bool,
    was_freed: bool,
}

pub(super) struct Lowering<'a> {
    code: &'a Code,
    pub lowered: Lowered,
    tensors: Vec<State>,
    pub registers: Vec<Register>,
    /// The index of a register by its number.
    pub register_index: HashMap<u32, usize>,
    /// The cells of AGPU slots.
    slot_cells: Vec<Cell>,
    /// The current instruction.
    pub at: Where,
    index: usize,
}

impl<'a> Lowering<'a> {
    /// Validates the program. The slots are returned even if it fails.
    pub fn run(code: &'a Code) -> (Lowered, Result<()>) {
        let lowered = Lowered { cells: Vec::new(), steps: Vec::new(), slots: Slots::new(code) };
        let mut lowering = Lowering {
            code,
            lowered,
            tensors: Vec::with_capacity(code.tensors.len()),
            registers: Vec::new(),
            register_index: HashMap::new(),
            slot_cells: Vec::new(),
            at: Where::Byte(0),
            index: 0,
        };
        let result = lowering.walk();
        (lowering.lowered, result)
    }

    fn walk(&mut self) -> Result<()> {
        for (i, slot) in self.lowered.slots.list.iter().enumerate() {
            self.slot_cells.push(self.lowered.cells.len());
            self.lowered.cells.push(match slot.direction {
                Direction::In => Source::Input(i),
                Direction::Out | Direction::Both => Source::Output(i),
            });
        }
        let mut slot = 0;
        for (i, tensor) in self.code.tensors.iter().enumerate() {
            let cell = match tensor.role {
                Role::Input | Role::Output => {
                    slot += 1;
                    Some(self.slot_cells[slot - 1])
                }
                Role::Constant => {
                    self.lowered.cells.push(Source::Constant(i));
                    Some(self.lowered.cells.len() - 1)
                }
                Role::Temporary => None,
            };
            let written = matches!(tensor.role, Role::Input | Role::Constant);
            self.tensors.push(State { cell, written, was_freed: false });
        }
        let code = self.code;
        for (index, instruction) in code.instructions.iter().enumerate() {
            (self.index, self.at) = (index, instruction.at);
            self.instruction(instruction)?;
        }
        for (tensor, state) in code.tensors.iter().zip(&self.tensors) {
            if tensor.role == Role::Output && !state.written {
                return Err(invalid(tensor.at, format_args!("the output '{}' is never written", tensor.name)));
            }
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<()> {
        let (opcode, operands) = match &instruction.kind {
            Kind::Operation(call) => return self.call(call),
            Kind::Plain(opcode, operands) => (opcode, operands.as_slice()),
        };
        match (opcode.action, operands) {
            (Action::Nothing | Action::End, _) => self.step(Do::Nothing),
            (Action::Barrier, _) => self.step(Do::Barrier),
            (Action::TensorAlloc, &[tensor]) => {
                let tensor = tensor as usize;
                let name = &self.code.tensors[tensor].name;
                match (self.code.tensors[tensor].role, self.tensors[tensor]) {
                    (Role::Temporary, State { cell: None, .. }) => _ = self.appear(tensor, true),
                    // An output's memory is zero from the beginning.
                    (Role::Output, State { written: false, .. }) => self.tensors[tensor].written = true,
                    (Role::Temporary | Role::Output, _) => {
                        return Err(self.fault(format_args!("alloc: '{name}' is allocated already")));
                    }
                    (role, _) => return Err(self.fault(format_args!("alloc: '{name}' is {}, not temp", role.word()))),
                }
            }
            (Action::TensorFree, &[tensor]) => {
                let tensor = tensor as usize;
                let Declared { name, role, .. } = self.declared(tensor);
                if role != Role::Temporary {
                    return Err(self.fault(format_args!("free: '{name}' is {}, not temp", role.word())));
                }
                let cell = self.readable(tensor, "free")?;
                self.tensors[tensor] = State { cell: None, written: false, was_freed: true };
                self.step(Do::Release(cell));
            }
            (Action::Load, &[to, from]) => {
                self.copy("load", from, to, |role| matches!(role, Role::Input | Role::Constant), |_| true)?;
            }
            (Action::Store, &[from, to]) => self.copy("store", from, to, |_| true, |role| role == Role::Output)?,
            (action, operands) => super::lower_gpu::instruction(self, opcode, action, operands)?,
        }
        Ok(())
    }

    fn declared(&self, tensor: usize) -> Declared<'a> {
        let super::code::Declared { name, role, meta, .. } = &self.code.tensors[tensor];
        Declared { name, role: *role, meta: *meta }
    }

    /// Returns the cell of a tensor that is read.
    fn readable(&self, tensor: usize, what: &str) -> Result<Cell> {
        match self.tensors[tensor] {
            State { cell: Some(cell), written: true, .. } => Ok(cell),
            State { was_freed, .. } => {
                let word = if was_freed { "is used after it was freed" } else { "is used before anything wrote it" };
                Err(self.fault(format_args!("{what}: '{}' {word}", self.code.tensors[tensor].name)))
            }
        }
    }

    /// Returns the cell of a tensor that is written completely.
    fn writable(&mut self, tensor: usize, what: &str) -> Result<Cell> {
        let Declared { name, role, .. } = self.declared(tensor);
        match role {
            Role::Input | Role::Constant => {
                Err(self.fault(format_args!("{what}: '{name}' is {}: read only", role.word())))
            }
            Role::Output | Role::Temporary => match self.tensors[tensor].cell {
                Some(cell) => {
                    self.tensors[tensor].written = true;
                    Ok(cell)
                }
                None => Ok(self.appear(tensor, false)),
            },
        }
    }

    /// Allocates a temporary.
    fn appear(&mut self, tensor: usize, zeroed: bool) -> Cell {
        let cell = self.allocate(self.code.tensors[tensor].meta.bytes(), zeroed);
        self.tensors[tensor] = State { cell: Some(cell), written: true, was_freed: false };
        cell
    }

    fn copy(
        &mut self,
        what: &str,
        from: u32,
        to: u32,
        takes: impl Fn(Role) -> bool,
        gives: impl Fn(Role) -> bool,
    ) -> Result<()> {
        let (source, target) = (self.declared(from as usize), self.declared(to as usize));
        if !takes(source.role) || !gives(target.role) || from == to {
            return Err(self.fault(format_args!(
                "{what}: from '{}' ({}) to '{}' ({})",
                source.name,
                source.role.word(),
                target.name,
                target.role.word()
            )));
        }
        if source.meta != target.meta {
            return Err(self.fault(format_args!(
                "{what}: '{}' is {:?} and '{}' {:?}; they must be the same",
                source.name, source.meta, target.name, target.meta
            )));
        }
        let cell = self.readable(from as usize, what)?;
        let to = self.writable(to as usize, what)?;
        self.step(Do::Copy { from: cell, to, bytes: source.meta.bytes() });
        Ok(())
    }

    fn call(&mut self, call: &Operation) -> Result<()> {
        let mut inputs = Vec::new();
        for input in &call.inputs {
            inputs.push(match input {
                Some(tensor) => Some(Located {
                    cell: self.readable(*tensor as usize, call.op.name())?,
                    meta: self.code.tensors[*tensor as usize].meta,
                }),
                None => None,
            });
        }
        let expected = self.infer(call.op, &call.attrs, &inputs)?;
        let Declared { name, meta, .. } = self.declared(call.output as usize);
        if expected != meta {
            return Err(self.fault(format_args!("{}: '{name}' is {meta:?}; the result is {expected:?}", call.op)));
        }
        let cell = self.writable(call.output as usize, call.op.name())?;
        self.command(call.op, call.attrs, inputs, Located { cell, meta })
    }

    /// Computes the description of an operation's result by the operation's own rule.
    pub fn infer(&self, op: Op, attrs: &Attrs, inputs: &[Option<Located>]) -> Result<Meta> {
        let metas: MetaList<'_> = inputs.iter().map(|input| input.as_ref().map(|it| &it.meta)).collect();
        op.info().infer(attrs, &metas).map_err(|error| invalid_because(self.at, error))
    }

    /// Adds a step that executes an operation whose shapes were inferred.
    pub fn command(&mut self, op: Op, attrs: Attrs, inputs: Vec<Option<Located>>, output: Located) -> Result<()> {
        for (i, input) in inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            let exact = op.info().in_place && input.meta == output.meta;
            if input.cell == output.cell && !exact && input.meta.bytes() > 0 && output.meta.bytes() > 0 {
                return Err(
                    self.fault(format_args!("{op}: the result would overwrite operand {i}; it needs its own memory"))
                );
            }
        }
        let scratch = match scratch(op, &inputs, &output) {
            0 => None,
            bytes => Some(self.provide(Source::Scratch(bytes), false)),
        };
        self.step(Do::Command(Box::new(Work { op, attrs, inputs, output, scratch })));
        scratch.into_iter().for_each(|cell| self.step(Do::Release(cell)));
        Ok(())
    }

    /// Allocates memory for the following steps.
    pub fn allocate(&mut self, bytes: usize, zeroed: bool) -> Cell {
        self.provide(Source::Allocated(bytes), zeroed)
    }

    fn provide(&mut self, source: Source, zeroed: bool) -> Cell {
        let cell = self.lowered.cells.len();
        self.lowered.cells.push(source);
        self.step(Do::Allocate { cell, zeroed });
        cell
    }

    /// Returns the cell of an AGPU slot, and the slot's number.
    pub fn slot(&self, address: u32) -> Option<(Cell, usize)> {
        let slot = self.lowered.slots.of_address(address)?;
        Some((*self.slot_cells.get(slot)?, slot))
    }

    pub fn step(&mut self, action: Do) {
        self.lowered.steps.push(Step { instruction: self.index, action });
    }

    /// Makes an `invalid_program` error for the current instruction.
    pub fn fault(&self, text: std::fmt::Arguments<'_>) -> crate::error::Error {
        invalid(self.at, text)
    }
}

/// The bytes of scratch that may be large compared with an operation's operands: the hidden values of ffn, and the f32 copies in
/// which 16-bit operands and results are computed.
fn scratch(op: Op, inputs: &[Option<Located>], output: &Located) -> usize {
    let values = |elements: usize| elements.saturating_mul(DType::F32.size());
    let moves = op.is_move();
    let operands = inputs.iter().flatten().chain([output]).map(|operand| operand.meta);
    let widened = operands.filter(|meta| !moves && meta.dtype.is_half());
    let widened = widened.fold(0usize, |sum, meta| sum.saturating_add(values(meta.shape.elements())));
    let metas: MetaList<'_> = inputs.iter().map(|input| input.as_ref().map(|it| &it.meta)).collect();
    let hidden = match op {
        Op::Ffn => FfnPlan::new((&metas).into()).map_or(0, |plan| values(plan.rows.saturating_mul(plan.hidden))),
        _ => 0,
    };
    widened.saturating_add(hidden)
}

/// What an instruction must know of a tensor.
struct Declared<'a> {
    name: &'a str,
    role: Role,
    meta: Meta,
}

impl Do {
    /// Calls `touch` with every cell that the step uses, and whether the step changes it.
    pub fn cells(&self, mut touch: impl FnMut(Cell, bool)) {
        match self {
            Do::Nothing | Do::Barrier => {}
            Do::Allocate { cell, .. } | Do::Release(cell) | Do::Fill { cell, .. } => touch(*cell, true),
            Do::Copy { from, to, .. } => {
                touch(*from, false);
                touch(*to, true);
            }
            Do::Command(work) => {
                work.inputs.iter().flatten().for_each(|input| touch(input.cell, false));
                touch(work.output.cell, true);
                work.scratch.iter().for_each(|&cell| touch(cell, true));
            }
        }
    }
}
