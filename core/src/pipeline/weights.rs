//! Constants that products in exact integers read as right operands. Where a device keeps digits, they are cut once, when the
//! pipeline is compiled.

use super::fuse::Link;
use super::graph::Source;
use super::plan::Arrangement;
use crate::command::Command;
use crate::context::Context;
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::{Result, Status};
use crate::operand::{Packed, View, ViewMut};
use crate::ops::{Attrs, Op};
use crate::tensor::Tensor;

/// The packed operands of a plan.
#[derive(Default)]
pub(super) struct Weights(Vec<(Key, Packed)>);

/// A value, whether products read it transposed, and their precision.
type Key = (u32, bool, u8);

/// Packs an f32 matrix that represents one of a dtype: transposed or not, for products of a precision. Returns `None` if the device keeps
/// no digits of it.
pub(super) type Packs<'a> = &'a dyn Fn(&Tensor, DType, bool, Precision) -> Result<Option<Packed>>;

/// Returns the operand's key if a product in exact integers reads it as a right operand.
fn key(link: &Link, i: usize) -> Option<Key> {
    let right = match link.op {
        Op::Matmul => i == 1,
        Op::Ffn => i == 1 || i == 3,
        _ => false,
    };
    let precision = link.attrs.precision();
    let node = link.operands[i].filter(|_| right && precision != Precision::F32)?;
    Some((node, link.op == Op::Matmul && link.attrs.trans_b, precision as u8))
}

impl Weights {
    /// Packs a plan's constants. If the device's memory is too small for the digits, there are none; also for a pipeline that is `kept` in
    /// a cache, whose operands are inputs.
    pub fn new(context: &Context, plan: &Arrangement, kept: bool, pack: Packs<'_>) -> Result<Weights> {
        let mut all = Weights::default();
        if kept || !cfg!(feature = "integers") {
            return Ok(all);
        }
        for link in plan.steps.iter().flat_map(|step| &step.links) {
            for i in 0..link.operands.len() {
                match all.add(context, plan, link, i, pack) {
                    Err(error) if error.status() == Status::OutOfMemory => return Ok(Weights::default()),
                    done => done?,
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, context: &Context, plan: &Arrangement, link: &Link, i: usize, pack: Packs<'_>) -> Result<()> {
        let Some(key) = key(link, i).filter(|_| self.of(link, i).is_none()) else { return Ok(()) };
        let graph = &plan.graph;
        let Source::Constant(root) = &graph.nodes[graph.root(key.0) as usize].source else { return Ok(()) };
        let mut tensor = graph.of_root(key.0, root)?;
        let dtype = tensor.dtype();
        if tensor.shape().rank() != 2 {
            return Ok(());
        }
        if dtype != DType::F32 {
            let attrs = Attrs { dtype: Some(DType::F32), ..Attrs::DEFAULT };
            tensor = context.run_views(Op::Cast, &attrs, &[Some(tensor.view())])?;
        }
        self.0.extend(pack(&tensor, dtype, key.1, link.attrs.precision())?.map(|packed| (key, packed)));
        Ok(())
    }

    /// Returns the packed matrix that stands for an operand.
    pub fn of(&self, link: &Link, i: usize) -> Option<&Packed> {
        if !cfg!(feature = "integers") || self.0.is_empty() {
            return None;
        }
        let key = key(link, i)?;
        self.0.iter().find(|(other, _)| *other == key).map(|(_, packed)| packed)
    }

    /// Makes the command of a link, whose inputs are packed where [`Weights::of`] says so.
    pub fn command<'a>(
        &self,
        link: &'a Link,
        inputs: &'a [Option<View<'a>>],
        output: ViewMut<'a>,
    ) -> Result<Command<'a>> {
        // A packed matrix is not transposed.
        if link.attrs.trans_b && self.of(link, 1).is_some() {
            return Command::new(link.op, Attrs { trans_b: false, ..link.attrs }, inputs, output);
        }
        Command::lent(link.op, &link.attrs, inputs, output)
    }

    /// Returns whether the plan reads this constant itself, and not only its digits.
    pub fn leave(&self, plan: &Arrangement, constant: u32) -> bool {
        if !cfg!(feature = "integers") || self.0.is_empty() {
            return true;
        }
        let is_it = |node: u32| plan.graph.root(node) == constant;
        for link in plan.steps.iter().flat_map(|step| &step.links) {
            for (i, operand) in link.operands.iter().enumerate() {
                if operand.is_some_and(is_it) && self.of(link, i).is_none() {
                    return true;
                }
            }
        }
        plan.computed.iter().any(|&node| is_it(node)) || plan.copied.iter().any(|&(_, node)| is_it(node))
    }
}

#[cfg(test)]
mod tests;
