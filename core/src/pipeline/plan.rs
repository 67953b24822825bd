//! Where values are while a pipeline runs: one block of memory, parts of which are used again once nobody reads them.

use super::fuse::{Step, steps};
use super::graph::{Graph, Source};
use crate::error::{Result, fail};

/// What every GPU's kernels can begin at, and host kernels like.
const ALIGN: usize = 256;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: nobody needs it by itself.
    None,
    /// The input of that number.
    Input(u32),
    /// The constant of that number.
    Constant(u32),
    /// The output of that number, among those that are computed.
    Output(u32),
    /// In the block, from that byte on.
    Block(usize),
}

/// Steps in their order, and where their values are.
pub(super) struct Arrangement {
    pub graph: Graph,
    pub steps: Vec<Step>,
    /// By node.
    pub places: Vec<Place>,
    /// Nodes of constants, by their numbers.
    pub constants: Vec<u32>,
    /// Nodes of outputs that are computed, by their numbers: an output that is a reshape of another has none of its own.
    pub computed: Vec<u32>,
    /// Bytes of the block.
    pub block: usize,
    /// Bytes of what is in the block, if nothing were used again.
    pub values: usize,
}

/// A part of the block while it is in use.
struct Part {
    begin: usize,
    end: usize,
    /// The last step that reads it.
    last: usize,
}

impl Arrangement {
    /// A plan. With `all`, inputs and outputs are in the block too, as a GPU has them.
    pub fn new(graph: Graph, all: bool) -> Arrangement {
        let steps = steps(&graph);
        let mut plan = Arrangement {
            places: vec![Place::None; graph.nodes.len()],
            steps,
            constants: Vec::new(),
            computed: Vec::new(),
            block: 0,
            values: 0,
            graph,
        };
        plan.place_fixed(all);
        plan.place_rest(all);
        // The results within a run are where its last one is; a reshape is where its origin is.
        for step in &plan.steps {
            let place = plan.places[step.result() as usize];
            step.nodes.iter().for_each(|&node| plan.places[node as usize] = place);
        }
        for node in 0..plan.places.len() {
            plan.places[node] = plan.places[plan.graph.root(node as u32) as usize];
        }
        plan
    }

    /// Places what is not in the block.
    fn place_fixed(&mut self, all: bool) {
        for (i, node) in self.graph.nodes.iter().enumerate() {
            if let Source::Constant(_) = node.source {
                self.places[i] = Place::Constant(self.constants.len() as u32);
                self.constants.push(i as u32);
            }
        }
        for i in 0..self.graph.outputs.len() {
            let root = self.graph.root(self.graph.outputs[i]);
            if !self.computed.contains(&root) {
                self.computed.push(root);
            }
        }
        if !all {
            let inputs = self.graph.inputs.iter().enumerate().map(|(i, &node)| (node, Place::Input(i as u32)));
            let outputs = self.computed.iter().enumerate().map(|(i, &node)| (node, Place::Output(i as u32)));
            inputs.chain(outputs).for_each(|(node, place)| self.places[node as usize] = place);
        }
    }

    /// Places the rest, each where the first gap is that is large enough.
    fn place_rest(&mut self, all: bool) {
        let count = self.steps.len();
        // The last step that reads a node; outputs are read behind the last.
        let mut last = vec![0; self.graph.nodes.len()];
        for (i, step) in self.steps.iter().enumerate() {
            let read = step.links.iter().flat_map(|link| link.operands.iter().flatten());
            read.for_each(|&node| last[self.graph.root(node) as usize] = i);
        }
        self.computed.iter().for_each(|&node| last[node as usize] = count);
        let mut parts: Vec<Part> = Vec::new();
        if all {
            // They are written before the first step, so none of them may share.
            for i in 0..self.graph.inputs.len() {
                let node = self.graph.inputs[i];
                self.place(node, &mut parts, last[node as usize]);
            }
        }
        for i in 0..count {
            let node = self.steps[i].result();
            if self.places[node as usize] == Place::None {
                parts.retain(|part| part.last >= i);
                self.place(node, &mut parts, last[node as usize]);
            }
        }
    }

    /// Places a node in the first gap between the parts in use, which are in order.
    fn place(&mut self, node: u32, parts: &mut Vec<Part>, last: usize) {
        // A program's sizes are its file's word: their sum may pass what a usize holds.
        let bytes = self.graph.meta(node).bytes().max(1).checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        let (mut begin, mut at) = (0usize, parts.len());
        for (i, part) in parts.iter().enumerate() {
            if part.begin >= begin.saturating_add(bytes) {
                at = i;
                break;
            }
            begin = begin.max(part.end);
        }
        let end = begin.saturating_add(bytes);
        parts.insert(at, Part { begin, end, last });
        self.places[node as usize] = Place::Block(begin);
        self.block = self.block.max(end);
        self.values = self.values.saturating_add(bytes);
    }

    /// The most bytes that a run's values take besides inputs and constants. On a GPU those share the block with inputs.
    pub fn takes(&self, all: bool) -> usize {
        let bytes =
            |nodes: &[u32]| nodes.iter().fold(0usize, |sum, &node| sum.saturating_add(self.graph.meta(node).bytes()));
        if all {
            self.block.saturating_sub(bytes(&self.graph.inputs))
        } else {
            self.block.saturating_add(bytes(&self.computed))
        }
    }

    /// `out_of_memory` where it takes more than so many bytes.
    pub fn check(&self, all: bool, limit: usize) -> Result<()> {
        // What no process has room for is not a sum any more.
        let limit = limit.min(isize::MAX as usize);
        let takes = self.takes(all);
        if takes > limit || self.block > isize::MAX as usize {
            fail!(OutOfMemory, "the values of a run take {takes} bytes; the limit is {limit}");
        }
        Ok(())
    }

    /// Operations that were recorded and are done.
    pub fn operations(&self) -> usize {
        self.steps.iter().map(|step| step.recorded().count()).sum()
    }
}
