//! Gradients: the backward pass of a recorded pipeline, recorded as operations of the same pipeline.
//!
//! [`Pipeline::gradients`] goes through the operations from a loss back to the values that the caller names. Each operation adds the
//! operations of its rule (`rules.rs` finds it). So a gradient has contract bits on every device: those of the operations that
//! compute it. `docs/autograd.md` states every rule.

mod attention;
mod elementwise;
mod moves;
mod normalise;
mod products;
mod recompute;
mod recorder;
mod rules;
#[cfg(test)]
mod tests;

use crate::error::{Result, fail};
use crate::pipeline::{Pipeline, Source, Value};
use recorder::Recorder;
use rules::Step;

impl Pipeline {
    /// Returns a value with the same elements that no gradient passes through.
    pub fn detach(&mut self, value: Value) -> Result<Value> {
        let meta = self.meta(value)?;
        let detached = self.reshape(value, meta.shape.dims())?;
        let node = self.node(detached)?;
        self.detached.push(node);
        Ok(detached)
    }

    /// Whether `of` depends on a value in a way that has a gradient.
    pub fn has_gradient(&self, of: Value, by: Value) -> Result<bool> {
        let (of, by) = (self.node(of)?, self.node(by)?);
        Ok(self.needed(of, &[by])[of as usize])
    }

    /// Records the gradients of `of`, which has one element, by each of these values, and returns them: of the values' shapes and
    /// dtypes. A value may be an input, a constant or a result between. A value that is used several times receives the sum over its
    /// uses, from the last one to the first.
    ///
    /// # Errors
    /// `shape_mismatch` if `of` has more than one element, `dtype_mismatch` for values that are not floating-point,
    /// `invalid_argument` if `of` does not depend on a value in a way that has a gradient, `unsupported` for an operand whose
    /// gradient this version does not compute. After an error the pipeline has the operations that it had before.
    pub fn gradients(&mut self, of: Value, by: &[Value]) -> Result<Vec<Value>> {
        let (before, detached) = (self.graph.nodes.len(), self.detached.len());
        let found = self.backward(of, by);
        if found.is_err() {
            self.graph.nodes.truncate(before);
            self.detached.truncate(detached);
        }
        found
    }

    fn backward(&mut self, of: Value, by: &[Value]) -> Result<Vec<Value>> {
        let meta = self.meta(of)?;
        if meta.shape.elements() != 1 {
            fail!(ShapeMismatch, "gradients: the value is {}; it must have one element, as a loss does", meta.shape);
        }
        let last = self.node(of)?;
        let targets = by.iter().map(|&value| self.node(value)).collect::<Result<Vec<_>>>()?;
        for (i, &node) in targets.iter().chain([&last]).enumerate() {
            let dtype = self.graph.meta(node).dtype;
            if !dtype.computes_as_f32() {
                let what = if i < targets.len() { format!("value {i}") } else { "the loss".into() };
                fail!(DtypeMismatch, "gradients: {what} is {dtype}; gradients are of f32, f16 or bf16");
            }
        }
        let needed = self.needed(last, &targets);
        let mut stands = self.stands(last);
        let mut recorder = Recorder(self);
        let seed = recorder.ones(&meta)?;
        let mut gradients: Vec<Option<Value>> = vec![None; last as usize + 1];
        gradients[last as usize] = Some(seed);
        for node in (0..=last).rev() {
            let (Some(gradient), true) = (gradients[node as usize], needed[node as usize]) else { continue };
            stands.enter(recorder.0, node)?;
            let parts: Vec<(u32, Value)> = match &recorder.0.graph.nodes[node as usize].source {
                _ if recorder.0.detached.contains(&node) => continue,
                Source::Input | Source::Constant(_) | Source::State(_) => continue,
                Source::Reshape(from) => {
                    let from = *from;
                    let dims = *recorder.0.graph.meta(from);
                    vec![(from, recorder.0.reshape(gradient, dims.shape.dims())?)]
                }
                Source::Rows(from, first) => {
                    let (from, first) = (*from, *first);
                    let all = recorder.0.graph.meta(from).shape;
                    let own = recorder.0.graph.meta(node).shape.dims()[0];
                    let (mut before, mut after) = (vec![0; all.rank()], vec![0; all.rank()]);
                    (before[0], after[0]) = (first, all.dims()[0] - first - own);
                    vec![(from, recorder.pad(gradient, &before, &after, &[])?)]
                }
                Source::Op(op, attrs, operands) => {
                    let (op, attrs, operands) = (*op, *attrs, operands.clone());
                    let inputs: Vec<Option<Value>> =
                        operands.iter().map(|operand| operand.map(|node| recorder.value(stands.of(node)))).collect();
                    let wanted: Vec<bool> =
                        operands.iter().map(|operand| operand.is_some_and(|node| needed[node as usize])).collect();
                    let step = Step {
                        op,
                        attrs: &attrs,
                        inputs: &inputs,
                        output: recorder.value(stands.of(node)),
                        gradient,
                        wanted: &wanted,
                    };
                    let found = rules::backward(&mut recorder, &step)?;
                    operands.iter().zip(found).filter_map(|(&node, part)| Some((node?, part?))).collect()
                }
            };
            for (from, part) in parts {
                if !needed[from as usize] {
                    continue;
                }
                let sum = match gradients[from as usize] {
                    Some(sum) => recorder.add(sum, part)?,
                    None => part,
                };
                gradients[from as usize] = Some(sum);
            }
        }
        let found = targets.iter().enumerate().map(|(i, &node)| match gradients.get(node as usize) {
            Some(Some(gradient)) => Ok(*gradient),
            _ => {
                fail!(InvalidArgument, "gradients: the loss does not depend on value {i} in a way that has a gradient")
            }
        });
        found.collect()
    }

    /// By node up to the loss: whether it is one of the targets or depends on one.
    fn needed(&self, last: u32, targets: &[u32]) -> Vec<bool> {
        let mut needed = vec![false; last as usize + 1];
        for node in 0..=last {
            let depends = match &self.graph.nodes[node as usize].source {
                _ if targets.contains(&node) => true,
                _ if self.detached.contains(&node) => false,
                Source::Input | Source::Constant(_) | Source::State(_) => false,
                Source::Reshape(from) | Source::Rows(from, _) => needed[*from as usize],
                Source::Op(op, _, operands) => {
                    rules::has_gradient(*op)
                        && self.graph.meta(node).dtype.computes_as_f32()
                        && operands.iter().flatten().any(|&from| needed[from as usize])
                }
            };
            needed[node as usize] = depends;
        }
        needed
    }
}
