//! Constants that products in exact integers read as right operands. Where a device keeps digits, they are cut once, when the
//! pipeline is compiled.

use super::fuse::Link;
use super::graph::Source;
use super::plan::Arrangement;
use crate::command::Command;
use crate::contract::Precision;
use crate::error::{Result, Status};
use crate::operand::{Packed, View, ViewMut};
use crate::ops::{Attrs, Op};
use crate::tensor::Tensor;

/// The packed operands of a plan.
#[derive(Default)]
pub(super) struct Weights(Vec<(Key, Packed)>);

/// A value, whether products read it transposed, and their precision.
type Key = (u32, bool, u8);

/// Packs a matrix for products of a precision, transposed or not. Returns `None` if the device keeps no digits of it.
pub(super) type Packs<'a> = &'a dyn Fn(&Tensor, bool, Precision) -> Result<Option<Packed>>;

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
    /// Packs a plan's constants. If the device's memory is too small for the digits, there are none.
    pub fn new(plan: &Arrangement, pack: Packs<'_>) -> Result<Weights> {
        let mut all = Weights::default();
        for link in plan.steps.iter().flat_map(|step| &step.links) {
            for i in 0..link.operands.len() {
                match all.add(plan, link, i, pack) {
                    Err(error) if error.status() == Status::OutOfMemory => return Ok(Weights::default()),
                    done => done?,
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, plan: &Arrangement, link: &Link, i: usize, pack: Packs<'_>) -> Result<()> {
        let Some(key) = key(link, i) else { return Ok(()) };
        let Err(at) = self.at(key) else { return Ok(()) };
        let graph = &plan.graph;
        let Source::Constant(root) = &graph.nodes[graph.root(key.0) as usize].source else { return Ok(()) };
        let tensor = graph.of_root(key.0, root)?;
        if tensor.shape().rank() == 2
            && let Some(packed) = pack(&tensor, key.1, link.attrs.precision())?
        {
            self.0.insert(at, (key, packed));
        }
        Ok(())
    }

    fn at(&self, key: Key) -> std::result::Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(key, _)| *key)
    }

    /// Returns the packed matrix that stands for an operand.
    pub fn of(&self, link: &Link, i: usize) -> Option<&Packed> {
        if !cfg!(feature = "integers") || self.0.is_empty() {
            return None;
        }
        self.at(key(link, i)?).ok().map(|at| &self.0[at].1)
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
        let graph = &plan.graph;
        let links = || plan.steps.iter().flat_map(|step| &step.links);
        let reads = |link: &Link| {
            let own = |i: usize| link.operands[i].is_some_and(|node| graph.root(node) == constant);
            (0..link.operands.len()).any(|i| own(i) && self.of(link, i).is_none())
        };
        let given = plan.computed.iter().chain(plan.copied.iter().map(|(_, node)| node));
        links().any(reads) || given.into_iter().any(|&node| graph.root(node) == constant)
    }
}

#[cfg(test)]
mod tests;
