//! The memory plan of a pipeline: one block, in which a value's memory is used again once nothing reads the value.

use super::fuse::{Step, steps};
use super::graph::{Graph, Source};
use crate::error::{Result, fail};
use crate::ops::Op;
use crate::tensor::Tensor;

/// The alignment of values. Every GPU's kernels accept it, and CPU kernels are fast with it.
const ALIGN: usize = 256;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: the value is never stored.
    None,
    /// The memory of this input.
    Input(u32),
    /// The memory of this constant.
    Constant(u32),
    /// The memory of this state.
    State(u32),
    /// The memory of this output. The number counts computed outputs.
    Output(u32),
    /// In the block, at this byte offset.
    Block(usize),
}

/// The steps in order, and the places of their values.
pub(super) struct Arrangement {
    pub graph: Graph,
    pub steps: Vec<Step>,
    /// By node number.
    pub places: Vec<Place>,
    /// By node number: the byte of its place where it begins. Only rows of other values begin behind the first.
    pub offsets: Vec<usize>,
    /// The constants' nodes, by constant number.
    pub constants: Vec<u32>,
    /// The nodes of computed outputs, by output number. An output that reshapes another one is not computed.
    pub computed: Vec<u32>,
    /// The states whose next values are computed elsewhere, to be copied at the end, and those values' nodes.
    pub copied: Vec<(u32, u32)>,
    /// See [`Arrangement::done`].
    done: Vec<usize>,
    /// Bytes of the block.
    pub block: usize,
    /// Bytes that the values in the block would take without reuse.
    pub values: usize,
}

/// Gets the outputs that are handed out early, by their numbers among those that are computed.
pub(super) type Each<'a> = &'a mut dyn FnMut(usize, &Tensor) -> Result<()>;

/// A graph of more nodes has too many values to place them by their sizes.
const MANY: usize = 1 << 13;

/// A part of the block.
struct Part {
    begin: usize,
    end: usize,
    /// The step that writes it.
    made: usize,
    /// The last step that reads it.
    last: usize,
}

/// Moves the steps that shall run early behind the last step that computes an operand of them.
fn in_order(steps: Vec<Step>, graph: &Graph) -> Vec<Step> {
    let Some(early) = graph.early() else { return steps };
    // By node: the place in the order at which it is computed.
    let mut places = vec![0; graph.nodes.len()];
    let mut ordered: Vec<(u32, Step)> = Vec::with_capacity(steps.len());
    for step in steps {
        let operands = step.links.iter().flat_map(|link| link.operands.iter().flatten());
        let place = match step.nodes[0] < early {
            true => step.result(),
            false => operands.map(|&node| places[graph.root(node) as usize]).max().unwrap_or(0),
        };
        step.nodes.iter().for_each(|&node| places[node as usize] = place);
        // Behind those with the same place, which are its operands or were recorded before it.
        ordered.insert(ordered.partition_point(|(other, _)| *other <= place), (place, step));
    }
    ordered.into_iter().map(|(_, step)| step).collect()
}

impl Arrangement {
    /// Plans a graph. With `all`, inputs and outputs are in the block too, as a GPU needs them.
    pub fn new(graph: Graph, all: bool) -> Arrangement {
        let steps = in_order(steps(&graph), &graph);
        let mut plan = Arrangement {
            places: vec![Place::None; graph.nodes.len()],
            offsets: vec![0; graph.nodes.len()],
            steps,
            constants: Vec::new(),
            computed: Vec::new(),
            copied: Vec::new(),
            done: Vec::new(),
            block: 0,
            values: 0,
            graph,
        };
        plan.place_fixed(all);
        plan.place_states();
        plan.place_rest(all);
        // All results within a run are at the place of its last one. A reshape is at the place of its source.
        for step in &plan.steps {
            let place = plan.places[step.result() as usize];
            step.nodes.iter().for_each(|&node| plan.places[node as usize] = place);
        }
        for node in 0..plan.places.len() {
            let (root, offset) = plan.graph.place(node as u32);
            (plan.places[node], plan.offsets[node]) = (plan.places[root as usize], offset);
        }
        plan
    }

    /// Places the values outside the block.
    fn place_fixed(&mut self, all: bool) {
        for (i, node) in self.graph.nodes.iter().enumerate() {
            if let Source::Constant(_) = node.source {
                self.places[i] = Place::Constant(self.constants.len() as u32);
                self.constants.push(i as u32);
            }
        }
        for i in 0..self.graph.outputs.len() {
            let root = self.graph.root(self.graph.outputs[i]);
            if self.computed.contains(&root) {
                continue;
            }
            let mut at = self.computed.len();
            if self.graph.early().is_some() {
                // In the order in which they are computed.
                let own = self.steps.iter().position(|step| step.result() == root);
                let end = own.map_or(self.steps.len(), |step| step + 1);
                at = self.done.partition_point(|&other| other <= end);
                self.done.insert(at, end);
            }
            self.computed.insert(at, root);
        }
        if !all {
            let inputs = self.graph.inputs.iter().enumerate().map(|(i, &node)| (node, Place::Input(i as u32)));
            let outputs = self.computed.iter().enumerate().map(|(i, &node)| (node, Place::Output(i as u32)));
            inputs.chain(outputs).for_each(|(node, place)| self.places[node as usize] = place);
        }
    }

    /// Places the states, and their next values too where these may be written over them.
    fn place_states(&mut self) {
        for (i, state) in self.graph.states.iter().enumerate() {
            self.places[state.node as usize] = Place::State(i as u32);
        }
        for (i, state) in self.graph.states.iter().enumerate() {
            let Some(next) = state.next else { continue };
            let root = self.graph.root(next);
            let whole = self.graph.meta(root).bytes() == self.graph.meta(next).bytes();
            if whole && self.may_be_written_over(state.node, root) {
                self.places[root as usize] = Place::State(i as u32);
            } else {
                self.copied.push((i as u32, next));
            }
        }
    }

    /// Whether the step that computes a state's next value may write it over the state: it has no other place, no later operation
    /// reads the state, and the operation itself does so in place if at all.
    fn may_be_written_over(&self, state: u32, next: u32) -> bool {
        let Some(at) = self.steps.iter().position(|step| step.result() == next) else { return false };
        let of_state = |node: &u32| self.graph.root(*node) == state;
        let reads = |step: &Step| step.links.iter().any(|link| link.operands.iter().flatten().any(of_state));
        let step = &self.steps[at];
        let (first, rest) = (&step.links[0], &step.links[1..]);
        let in_place = first.op.info().in_place;
        let exact = |node: &u32| in_place && self.graph.meta(*node) == self.graph.meta(step.nodes[0]);
        self.places[next as usize] == Place::None
            && !self.computed.contains(&next)
            && !self.steps[at + 1..].iter().any(reads)
            && !rest.iter().any(|link| link.operands.iter().flatten().any(of_state))
            && first.operands.iter().flatten().filter(|&node| of_state(node)).all(exact)
    }

    /// Places the other values, each in the first gap that is large enough among those that live at the same time.
    fn place_rest(&mut self, all: bool) {
        let count = self.steps.len();
        // By node: the last step that reads it. Outputs are read after the last step.
        let mut last = vec![0; self.graph.nodes.len()];
        let ends = self.ends(all);
        for (step, end) in self.steps.iter().zip(ends) {
            let read = step.links.iter().flat_map(|link| link.operands.iter().flatten());
            read.for_each(|&node| last[self.graph.root(node) as usize] = end);
        }
        self.computed.iter().for_each(|&node| last[node as usize] = count);
        self.copied.iter().for_each(|&(_, node)| last[self.graph.root(node) as usize] = count);
        let mut values = Vec::with_capacity(count);
        if all {
            // All inputs are written before the first step, so none of them may share memory.
            self.graph.inputs.iter().for_each(|&node| self.insert(&mut values, node, 0));
        }
        for (i, step) in self.steps.iter().enumerate() {
            self.insert(&mut values, step.result(), i);
        }
        let mut parts: Vec<Part> = Vec::new();
        let by_size = self.graph.nodes.len() <= MANY;
        for (node, made) in values {
            if !by_size {
                parts.retain(|part| part.last >= made);
            }
            self.place(node, &mut parts, made, last[node as usize].max(made));
        }
    }

    /// Inserts a value that has no place yet behind those that are larger, so that the larger ones are placed first and it may fit between
    /// them. Very many values, which would take too long, stay in the order of their steps.
    fn insert(&self, values: &mut Vec<(u32, usize)>, node: u32, made: usize) {
        if self.places[node as usize] == Place::None {
            let size = |node: u32| self.graph.meta(node).bytes();
            let many = self.graph.nodes.len() > MANY;
            // A sort would take kilobytes of code.
            let at = values.partition_point(|&(other, _)| many || size(other) >= size(node));
            values.insert(at, (node, made));
        }
    }

    /// By step: the step at whose end its operands are read. On a GPU a kernel may do what several steps do, so none of their results may
    /// be where an operand of them is.
    fn ends(&self, on_gpu: bool) -> Vec<usize> {
        let mut ends: Vec<usize> = (0..self.steps.len()).collect();
        for i in (1..self.steps.len()).rev() {
            let [a, b] = [i - 1, i].map(|i| &self.steps[i]);
            if on_gpu && (a.reads_to_the_end() || b.reads_to_the_end()) && a.shares_kernels(b, &self.graph) {
                ends[i - 1] = ends[i];
            }
        }
        ends
    }

    /// Places a node, which lives from step `made` to step `last`, in the first gap between parts that do too. The parts are sorted.
    fn place(&mut self, node: u32, parts: &mut Vec<Part>, made: usize, last: usize) {
        // A program file may claim any sizes, so their sum may overflow a usize.
        let bytes = self.graph.meta(node).bytes().max(1).checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        let mut begin = 0usize;
        for part in parts.iter().filter(|part| part.last >= made && part.made <= last) {
            if part.begin >= begin.saturating_add(bytes) {
                break;
            }
            begin = begin.max(part.end);
        }
        let at = parts.partition_point(|part| part.begin < begin);
        let end = begin.saturating_add(bytes);
        parts.insert(at, Part { begin, end, made, last });
        self.places[node as usize] = Place::Block(begin);
        self.block = self.block.max(end);
        self.values = self.values.saturating_add(bytes);
    }

    /// The bytes that a run's values take besides inputs and constants. On a GPU the block contains the inputs too, so they are
    /// subtracted.
    pub fn takes(&self, all: bool) -> usize {
        let bytes =
            |nodes: &[u32]| nodes.iter().fold(0usize, |sum, &node| sum.saturating_add(self.graph.meta(node).bytes()));
        if all {
            self.block.saturating_sub(bytes(&self.graph.inputs))
        } else {
            self.block.saturating_add(bytes(&self.computed))
        }
    }

    /// Returns `out_of_memory` if the values take more than `limit` bytes.
    pub fn check(&self, all: bool, limit: usize) -> Result<()> {
        // Sums saturate. Beyond `isize::MAX` they are no real sizes, and no process has that much memory anyway.
        let limit = limit.min(isize::MAX as usize);
        let takes = self.takes(all);
        if takes > limit || self.block > isize::MAX as usize {
            fail!(OutOfMemory, "the values of a run take {takes} bytes; the limit is {limit}");
        }
        Ok(())
    }

    /// The first step that writes over a state, if it and all behind it go through their elements once; else the number of steps.
    pub fn first_change(&self) -> usize {
        let writes = |step: &Step| matches!(self.places[step.result() as usize], Place::State(_));
        let once = |step: &Step| step.links.iter().all(|link| link.op.is_elementwise() || link.op == Op::Where);
        let first = self.steps.iter().position(writes).unwrap_or(self.steps.len());
        if self.steps[first..].iter().all(once) { first } else { self.steps.len() }
    }

    /// Behind which step each computed output is handed out, by output number. Empty unless that is [early](Graph::early).
    pub fn done(&self) -> &[usize] {
        if self.graph.early().is_some() { &self.done } else { &[] }
    }

    /// The step behind the part of a run that begins with a step: where an output is handed out early, or behind the last step.
    pub fn end(&self, begin: usize) -> usize {
        self.done().iter().copied().find(|&end| end > begin).unwrap_or(self.steps.len())
    }

    /// The number of recorded operations that the steps compute.
    pub fn operations(&self) -> usize {
        self.steps.iter().map(|step| step.recorded().count()).sum()
    }
}
