//! Inputs that are ids. A pipeline with states checks them before a run, because a GPU finds a wrong one only after it has changed the
//! states.

use super::graph::{Graph, Source};
use crate::error::Result;
use crate::ops::{Op, check_id, check_index, gather_axis, id};
use crate::tensor::Tensor;

/// An input whose elements an operation looks up.
pub(super) struct Ids {
    input: usize,
    /// The entries that there are, and the check of an id at a position.
    entries: usize,
    check: fn(usize, i64, usize) -> Result<usize>,
}

impl Ids {
    /// Those of a graph, in the operations' order.
    pub fn of(graph: &Graph) -> Vec<Ids> {
        let ids = graph.nodes.iter().filter_map(|node| {
            let Source::Op(op, attrs, operands) = &node.source else { return None };
            let looked_up = operands.get(1).copied()??;
            let root = graph.root(looked_up);
            // Of an input of which only some rows are ids, the others may have any values.
            let whole = graph.meta(root).bytes() == graph.meta(looked_up).bytes();
            let input = graph.inputs.iter().position(|&node| whole && node == root)?;
            let shape = graph.meta(operands[0]?).shape;
            match op {
                Op::Embedding => Some(Ids { input, entries: shape.dims()[0], check: check_id }),
                Op::Gather => {
                    let entries = shape.dims()[gather_axis(attrs, &shape).ok()?];
                    Some(Ids { input, entries, check: check_index })
                }
                _ => None,
            }
        });
        ids.collect()
    }

    /// Returns the operation's error for the first wrong id, if the ids are in host memory.
    pub fn check(&self, inputs: &[&Tensor]) -> Result<()> {
        let ids = inputs[self.input];
        let Some(at) = ids.if_on_host() else { return Ok(()) };
        // SAFETY: the tensor has these elements of an integer type, and positions are below their number.
        let id = |position| unsafe { id(at.as_ptr(), ids.dtype(), position) };
        (0..ids.len()).try_for_each(|position| (self.check)(position, id(position), self.entries).map(|_| ()))
    }
}
