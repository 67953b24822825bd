//! A program of tensors as one graph: each instruction's result becomes a value, so the pipeline can fuse operations, plan memory
//! and run all of them as one.
//!
//! AGPU's registers are bytes, which operations of any shape read and write in part. Programs with such registers have no graph
//! and run instruction by instruction.

use super::code::{Code, Kind};
use super::lower::{Do, Located, Lowered, Source, Step, Work};
use super::opcodes::Action;
use crate::operand::Meta;
use crate::pipeline::{self, Graph, Node};

/// A program with more operations and operands than this runs one by one: the time to plan it grows with the square of their
/// number.
const MOST: usize = 1 << 13;

/// Where an input of the graph comes from.
#[derive(Clone, Copy)]
pub(super) enum Given {
    /// The caller's tensor for this slot.
    Slot(usize),
    /// Zeros: no instruction wrote it.
    Zeros,
}

/// Where an output of the program comes from.
#[derive(Clone, Copy)]
pub(super) enum Made {
    /// The graph's output with this number.
    Computed(usize),
    /// A copy of this slot's tensor.
    Slot(usize),
    /// A copy of the constant with this index in the tensor table.
    Constant(usize),
    /// Zeros: no instruction wrote it.
    Zeros,
}

/// A program as a graph.
pub(super) struct Flow {
    pub graph: Graph,
    /// By the graph's inputs.
    pub inputs: Vec<Given>,
    /// The outputs' slots, in order.
    pub outputs: Vec<(usize, Made)>,
    /// By step: the node that it computes, `None` if it computes nothing.
    pub nodes: Vec<Option<u32>>,
    /// By node: the instruction that computes it, if any.
    pub instructions: Vec<Option<usize>>,
    /// The bytes of scratch that a device may take for all steps together. A recording keeps all of it.
    pub scratch: usize,
}

/// What a cell holds.
#[derive(Clone, Copy)]
enum Holds {
    Slot(usize),
    Constant(usize),
    Zeros,
    Node(u32),
}

struct Building<'a> {
    code: &'a Code,
    flow: Flow,
    /// By cell.
    holds: Vec<Holds>,
    /// The nodes of the inputs and of the constants that operations read.
    slots: Vec<Option<u32>>,
    constants: Vec<Option<u32>>,
}

impl Flow {
    /// Returns `None` for a program that has AGPU registers, no operations, or too many operations.
    pub fn new(code: &Code, lowered: &Lowered) -> Option<Flow> {
        let is_raw = |kind: &Kind| match kind {
            Kind::Plain(opcode, _) => {
                opcode.is_gpu() && !matches!(opcode.action, Action::Nothing | Action::Barrier | Action::End)
            }
            Kind::Operation(_) => false,
        };
        let work = |step: &'_ Step| {
            if let Do::Command(work) = &step.action { (1 + work.inputs.len(), work.scratch) } else { (0, None) }
        };
        let parts: usize = lowered.steps.iter().map(|step| work(step).0).sum();
        if parts == 0 || parts > MOST || code.instructions.iter().any(|it| is_raw(&it.kind)) {
            return None;
        }
        let scratch = lowered.steps.iter().filter_map(|step| match lowered.cells[work(step).1?] {
            Source::Scratch(bytes) => Some(bytes),
            _ => None,
        });
        let flow = Flow {
            graph: Graph::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            nodes: vec![None; lowered.steps.len()],
            instructions: Vec::new(),
            scratch: scratch.fold(0, usize::saturating_add),
        };
        let holds = lowered.cells.iter().map(|source| match *source {
            Source::Input(slot) => Holds::Slot(slot),
            Source::Constant(tensor) => Holds::Constant(tensor),
            Source::Output(_) | Source::Allocated(_) | Source::Scratch(_) => Holds::Zeros,
        });
        let (slots, constants) = (vec![None; lowered.slots.list.len()], vec![None; code.tensors.len()]);
        let mut building = Building { code, flow, holds: holds.collect(), slots, constants };
        for (i, step) in lowered.steps.iter().enumerate() {
            match &step.action {
                Do::Command(work) => building.command(i, step.instruction, work)?,
                Do::Copy { from, to, .. } => building.holds[*to] = building.holds[*from],
                Do::Nothing | Do::Barrier | Do::Allocate { .. } | Do::Fill { .. } | Do::Release(_) => {}
            }
        }
        building.come_out(lowered);
        Some(building.flow)
    }
}

impl Building<'_> {
    fn push(&mut self, meta: Meta, source: pipeline::Source, instruction: Option<usize>) -> u32 {
        self.flow.graph.nodes.push(Node { meta, source });
        self.flow.instructions.push(instruction);
        self.flow.graph.nodes.len() as u32 - 1
    }

    /// Adds an input of the graph, which each run receives.
    fn input(&mut self, meta: Meta, given: Given) -> u32 {
        let node = self.push(meta, pipeline::Source::Input, None);
        self.flow.graph.inputs.push(node);
        self.flow.inputs.push(given);
        node
    }

    /// Returns the node of a cell's value. `None` for a constant without contents, which no valid program has.
    fn node(&mut self, Located { cell, meta }: Located) -> Option<u32> {
        Some(match self.holds[cell] {
            Holds::Node(node) => node,
            Holds::Zeros => self.input(meta, Given::Zeros),
            Holds::Slot(slot) => {
                let node = self.slots[slot].unwrap_or_else(|| self.input(meta, Given::Slot(slot)));
                *self.slots[slot].insert(node)
            }
            Holds::Constant(tensor) => {
                let node = match self.constants[tensor] {
                    Some(node) => node,
                    None => {
                        let data = self.code.tensors[tensor].data.clone()?;
                        self.push(meta, pipeline::Source::Constant(data), None)
                    }
                };
                *self.constants[tensor].insert(node)
            }
        })
    }

    fn command(&mut self, step: usize, instruction: usize, work: &Work) -> Option<()> {
        let Work { op, attrs, inputs, output, .. } = work;
        // An empty result needs no work, however large the other dimensions are. Only wrong ids must still be found.
        if output.meta.bytes() == 0 && !op.checks_ids() {
            self.holds[output.cell] = Holds::Zeros;
            return Some(());
        }
        let mut operands = Vec::with_capacity(inputs.len());
        for input in inputs {
            operands.push(match input {
                Some(input) => Some(self.node(*input)?),
                None => None,
            });
        }
        let node = self.push(output.meta, pipeline::Source::Op(*op, *attrs, operands), Some(instruction));
        (self.holds[output.cell], self.flow.nodes[step]) = (Holds::Node(node), Some(node));
        Some(())
    }

    /// Adds the outputs. Operations that check ids become outputs too, even if nothing reads their result, so that wrong ids are
    /// reported.
    fn come_out(&mut self, lowered: &Lowered) {
        for (cell, source) in lowered.cells.iter().enumerate() {
            let Source::Output(slot) = *source else { continue };
            let made = match self.holds[cell] {
                Holds::Slot(slot) => Made::Slot(slot),
                Holds::Constant(tensor) => Made::Constant(tensor),
                Holds::Zeros => Made::Zeros,
                Holds::Node(node) => {
                    self.flow.graph.outputs.push(node);
                    Made::Computed(self.flow.graph.outputs.len() - 1)
                }
            };
            self.flow.outputs.push((slot, made));
        }
        let mut needed = vec![false; self.flow.graph.nodes.len()];
        self.flow.graph.outputs.iter().for_each(|&node| needed[node as usize] = true);
        for (i, node) in self.flow.graph.nodes.iter().enumerate().rev() {
            let pipeline::Source::Op(op, _, operands) = &node.source else { continue };
            if op.checks_ids() && !needed[i] {
                self.flow.graph.outputs.push(i as u32);
                needed[i] = true;
            }
            if needed[i] {
                operands.iter().flatten().for_each(|&operand| needed[operand as usize] = true);
            }
        }
    }
}
