//! Inputs that are ids, checked before a run.

use super::graph::{Graph, Source};
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::ops::{Op, check_id, check_index, gather_axis, id};
use crate::tensor::Tensor;

/// The inputs of a pipeline that are ids: [`Compiled::ids`](super::Compiled::ids) returns them.
pub struct Ids(Vec<Lookup>);

/// An input whose elements an operation looks up.
struct Lookup {
    input: usize,
    dtype: DType,
    /// The entries that there are, and the check of an id at a position.
    entries: usize,
    check: fn(usize, i64, usize) -> Result<usize>,
}

impl Ids {
    /// Those of a graph, in the operations' order.
    pub(super) fn of(graph: &Graph) -> Ids {
        let ids = graph.nodes.iter().filter_map(|node| {
            let Source::Op(op, attrs, operands) = &node.source else { return None };
            let looked_up = operands.get(1).copied()??;
            let root = graph.root(looked_up);
            // Of an input of which only some rows are ids, the others may have any values.
            let whole = graph.meta(root).bytes() == graph.meta(looked_up).bytes();
            let input = graph.inputs.iter().position(|&node| whole && node == root)?;
            let (shape, dtype) = (graph.meta(operands[0]?).shape, graph.meta(looked_up).dtype);
            match op {
                Op::Embedding => Some(Lookup { input, dtype, entries: shape.dims()[0], check: check_id }),
                Op::Gather => {
                    let entries = shape.dims()[gather_axis(attrs, &shape).ok()?];
                    Some(Lookup { input, dtype, entries, check: check_index })
                }
                _ => None,
            }
        });
        Ids(ids.collect())
    }

    /// Returns the operation's error for the first wrong id among a run's inputs. Ids that are on devices only are copied to host memory.
    /// `invalid_argument`
    /// for fewer inputs than the pipeline has, `dtype_mismatch` for ids of another dtype.
    pub fn check(&self, inputs: &[&Tensor]) -> Result<()> {
        for Lookup { input, dtype, entries, check } in &self.0 {
            let Some(ids) = inputs.get(*input) else {
                fail!(InvalidArgument, "there are {} inputs, and input {input} has ids", inputs.len());
            };
            if ids.dtype() != *dtype {
                fail!(DtypeMismatch, "input {input} is {}; the pipeline was made for {dtype}", ids.dtype());
            }
            let at = ids.host()?;
            for position in 0..ids.len() {
                // SAFETY: the tensor has these elements, of a type of ids.
                check(position, unsafe { id(at.as_ptr(), ids.dtype(), position) }, *entries)?;
            }
        }
        Ok(())
    }
}
