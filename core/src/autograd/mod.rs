//! Gradients: the backward pass of a recorded pipeline, recorded as operations of the same pipeline.
//!
//! [`Pipeline::gradients`] goes through the operations from a loss back to the values that the caller names. Each operation adds the
//! operations of its rule (`rules.rs` finds it). So a gradient has contract bits on every device: those of the operations that
//! compute it.

mod attention;
mod elementwise;
mod moves;
mod normalise;
mod pieces;
mod products;
mod recompute;
mod recorder;
mod rules;
#[cfg(test)]
mod tests;

use crate::error::{Result, fail};
use crate::ops::Op;
use crate::pipeline::{Hook, Pipeline, Source, Value};
use pieces::Given;
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

    /// Sets whether gradients pass through what is recorded from now on, as they do at first. Returns what was set before.
    ///
    /// ```
    /// use adead_core::{Context, DType, Op};
    ///
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let x = pipeline.input(DType::F32, &[])?;
    /// pipeline.set_grad_enabled(false);
    /// let constant = pipeline.op(Op::Mul, &Default::default(), &[Some(x), Some(x)])?;
    /// pipeline.set_grad_enabled(true);
    /// let product = pipeline.op(Op::Mul, &Default::default(), &[Some(constant), Some(x)])?;
    /// let gradient = pipeline.gradients(product, &[x])?;
    /// pipeline.output(gradient[0])?;
    /// let two = adead_core::Tensor::new(&[2.0f32], &[])?;
    /// assert_eq!(pipeline.compile()?.run(&[&two])?[0].as_slice::<f32>()?, [4.0]);
    /// # Ok::<(), adead_core::Error>(())
    /// ```
    pub fn set_grad_enabled(&mut self, enabled: bool) -> bool {
        !std::mem::replace(&mut self.no_grad, !enabled)
    }

    /// Whether `of` depends on a value in a way that has a gradient.
    pub fn has_gradient(&self, of: Value, by: Value) -> Result<bool> {
        let (of, by) = (self.node(of)?, self.node(by)?);
        Ok(self.needed(of, &[by])[of as usize])
    }

    /// Records the gradients of `of`, which has one element, by each of these values, and returns them: of the values' shapes and
    /// dtypes. A value may be an input, a constant or a result between. A value that is used several times receives the sum over its
    /// uses, from the last one to the first; if the uses are of parts that lie side by side and together are the value, it receives
    /// their gradients joined.
    ///
    /// # Errors
    /// `shape_mismatch` if `of` has more than one element, `dtype_mismatch` for values that are not floating-point,
    /// `invalid_argument` if `of` does not depend on a value in a way that has a gradient, `unsupported` for an operand whose
    /// gradient this version does not compute. After an error the pipeline has the operations that it had before.
    pub fn gradients(&mut self, of: Value, by: &[Value]) -> Result<Vec<Value>> {
        self.gradients_with(of, by, &[], &mut |_, _, gradient| Ok(gradient))
    }

    /// Records gradients like [`Pipeline::gradients`]. When the gradient of one of the values `hooked` is recorded, `hook` receives the
    /// pipeline, the value's number among them and its gradient, and returns what takes the gradient's place, of the same shape and
    /// dtype. Values on which no gradient depends have no call.
    ///
    /// ```
    /// use adead_core::{Attrs, Context, DType, Op};
    ///
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let x = pipeline.input(DType::F32, &[])?;
    /// let square = pipeline.op(Op::Mul, &Default::default(), &[Some(x), Some(x)])?;
    /// let gradient = pipeline.gradients_with(square, &[x], &[x], &mut |pipeline, _, gradient| {
    ///     let attrs = Attrs { min: -1.0, max: 1.0, ..Attrs::DEFAULT };
    ///     pipeline.op(Op::Clamp, &attrs, &[Some(gradient)])
    /// })?;
    /// pipeline.output(gradient[0])?;
    /// let three = adead_core::Tensor::new(&[3.0f32], &[])?;
    /// assert_eq!(pipeline.compile()?.run(&[&three])?[0].as_slice::<f32>()?, [1.0]);
    /// # Ok::<(), adead_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Pipeline::gradients`] and of `hook`; `shape_mismatch` and `dtype_mismatch` for what it returns; `invalid_argument` in a
    /// hook itself.
    pub fn gradients_with(
        &mut self,
        of: Value,
        by: &[Value],
        hooked: &[Value],
        hook: &mut Hook<'_>,
    ) -> Result<Vec<Value>> {
        // A hook that caused itself would end only with the stack.
        if self.in_gradients {
            fail!(InvalidArgument, "gradients: a hook can't record gradients, because others are being recorded");
        }
        let before = self.clone();
        self.in_gradients = true;
        let found = self.backward(of, by, hooked, hook);
        self.in_gradients = false;
        if found.is_err() {
            *self = before;
        }
        found
    }

    fn backward(&mut self, of: Value, by: &[Value], hooked: &[Value], hook: &mut Hook<'_>) -> Result<Vec<Value>> {
        let hooked = hooked.iter().map(|&value| self.node(value)).collect::<Result<Vec<_>>>()?;
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
        let mut given: Vec<Vec<Given>> = vec![Vec::new(); last as usize + 1];
        given[last as usize].push(Given::Whole(seed));
        let mut gradients: Vec<Option<Value>> = vec![None; last as usize + 1];
        for node in (0..=last).rev() {
            // Every use is behind it.
            let own = std::mem::take(&mut given[node as usize]);
            if own.is_empty() || !needed[node as usize] {
                continue;
            }
            let shape = recorder.0.graph.meta(node).shape;
            let mut gradient = pieces::gradient(&mut recorder, &shape, &own)?;
            for (number, _) in hooked.iter().enumerate().filter(|&(_, &own)| own == node) {
                let (expected, found) = (recorder.0.meta(gradient)?, hook(recorder.0, number, gradient)?);
                let own = recorder.0.meta(found)?;
                if own.dtype != expected.dtype {
                    fail!(DtypeMismatch, "hook {number} returned {}; the gradient is {}", own.dtype, expected.dtype);
                }
                if own.shape != expected.shape {
                    fail!(ShapeMismatch, "hook {number} returned {}; the gradient is {}", own.shape, expected.shape);
                }
                gradient = found;
            }
            gradients[node as usize] = Some(gradient);
            stands.enter(recorder.0, node)?;
            let parts: Vec<(u32, Given)> = match &recorder.0.graph.nodes[node as usize].source {
                _ if recorder.0.is_detached(node) => continue,
                Source::Input | Source::Constant(_) | Source::State(_) | Source::Held => continue,
                Source::Reshape(from) => {
                    let from = *from;
                    let dims = *recorder.0.graph.meta(from);
                    vec![(from, Given::Whole(recorder.0.reshape(gradient, dims.shape.dims())?))]
                }
                Source::Rows(from, first) => vec![(*from, Given::Part { gradient, axis: 0, first: *first })],
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
                    let part = match (op, operands.as_slice()) {
                        (Op::Slice, &[Some(from)]) => {
                            let whole = recorder.0.graph.meta(from).shape;
                            pieces::of_slice(&attrs, &whole, gradient)?.map(|part| vec![(from, part)])
                        }
                        _ => None,
                    };
                    match part {
                        Some(part) => part,
                        None => {
                            let found = rules::backward(&mut recorder, &step)?;
                            let found = operands.iter().zip(found);
                            found.filter_map(|(&node, part)| Some((node?, Given::Whole(part?)))).collect()
                        }
                    }
                }
            };
            for (from, part) in parts {
                if !needed[from as usize] {
                    continue;
                }
                pieces::receive(&mut recorder, &mut given[from as usize], part)?;
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

    /// Whether no gradient passes through a node.
    fn is_detached(&self, node: u32) -> bool {
        self.detached.binary_search(&node).is_ok()
    }

    /// By node up to the loss: whether it is one of the targets or depends on one.
    fn needed(&self, last: u32, targets: &[u32]) -> Vec<bool> {
        let mut needed = vec![false; last as usize + 1];
        for node in 0..=last {
            let depends = match &self.graph.nodes[node as usize].source {
                _ if targets.contains(&node) => true,
                _ if self.is_detached(node) => false,
                Source::Input | Source::Constant(_) | Source::State(_) | Source::Held => false,
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
