//! Inputs that become parts of one input, and inputs that become states.

use super::graph::{Pipeline, Source, State, Value};
use crate::error::{Result, fail};
use crate::operand::Meta;
use crate::shape::Shape;
use crate::tensor::Tensor;

impl Pipeline {
    /// Replaces inputs by one new input, a vector that has their elements behind each other in this order. The inputs' values stay
    /// usable, without a copy, but runs no longer receive them. The new input is the last one; the others keep their order.
    ///
    /// Returns `invalid_argument` if there are no values, or one of them is no input or is given twice, and `dtype_mismatch` for
    /// inputs of several dtypes. On an error nothing changes.
    ///
    /// ```
    /// use adead_core::{Context, DType, Op, Tensor};
    ///
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let a = pipeline.input(DType::F32, &[2, 2])?;
    /// let b = pipeline.input(DType::F32, &[2])?;
    /// let sum = pipeline.op(Op::Add, &Default::default(), &[Some(a), Some(b)])?;
    /// pipeline.output(sum)?;
    /// pipeline.join_inputs(&[b, a])?;
    /// let x = Tensor::new(&[10.0f32, 20.0, 1.0, 2.0, 3.0, 4.0], &[6])?;
    /// assert_eq!(pipeline.compile()?.run(&[&x])?[0].as_slice::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
    /// # Ok::<(), adead_core::Error>(())
    /// ```
    pub fn join_inputs(&mut self, inputs: &[Value]) -> Result<Value> {
        let nodes = inputs.iter().map(|&value| self.node(value)).collect::<Result<Vec<u32>>>()?;
        let Some(&first) = nodes.first() else { fail!(InvalidArgument, "no inputs to join") };
        let dtype = self.graph.meta(first).dtype;
        let mut elements = 0usize;
        for (i, node) in nodes.iter().enumerate() {
            if !self.graph.inputs.contains(node) {
                fail!(InvalidArgument, "value {i} is no input of the pipeline; only inputs can be joined");
            }
            if nodes[..i].contains(node) {
                fail!(InvalidArgument, "value {i} is given twice");
            }
            let meta = self.graph.meta(*node);
            if meta.dtype != dtype {
                fail!(DtypeMismatch, "inputs to join are {dtype} and {}", meta.dtype);
            }
            elements = elements.saturating_add(meta.shape.elements());
        }
        let whole = self.push(Meta::new(dtype, Shape::new(&[elements])?), Source::Input)?;
        let joined = self.node(whole)?;
        let mut begin = 0;
        for &node in &nodes {
            let count = self.graph.meta(node).shape.elements();
            let rows = self.push(Meta::new(dtype, Shape::new(&[count])?), Source::Rows(joined, begin))?;
            self.graph.nodes[node as usize].source = Source::Reshape(self.node(rows)?);
            begin += count;
        }
        self.graph.inputs.retain(|node| !nodes.contains(node));
        self.graph.inputs.push(joined);
        Ok(whole)
    }

    /// Turns an input into a state with the next number, whose value before the first run is `tensor`. What was recorded from the
    /// input is then computed from the state, and runs no longer receive the input.
    ///
    /// Returns `invalid_argument` for a value that is no input, and `dtype_mismatch` or `shape_mismatch` for a tensor that differs
    /// from it. On an error nothing changes.
    ///
    /// ```
    /// use adead_core::{Context, DType, Op, Tensor};
    ///
    /// let mut pipeline = Context::open("cpu")?.pipeline();
    /// let sum = pipeline.input(DType::F32, &[2])?;
    /// let x = pipeline.input(DType::F32, &[2])?;
    /// let next = pipeline.op(Op::Add, &Default::default(), &[Some(sum), Some(x)])?;
    /// pipeline.hold(sum, &Tensor::new(&[10.0f32, 20.0], &[2])?)?;
    /// pipeline.assign(sum, next)?;
    /// let compiled = pipeline.compile()?;
    /// compiled.run(&[&Tensor::new(&[1.0f32, 2.0], &[2])?])?;
    /// assert_eq!(compiled.state(0)?.as_slice::<f32>()?, [11.0, 22.0]);
    /// # Ok::<(), adead_core::Error>(())
    /// ```
    pub fn hold(&mut self, input: Value, tensor: &Tensor) -> Result<()> {
        let node = self.node(input)?;
        let Some(at) = self.graph.inputs.iter().position(|&own| own == node) else {
            fail!(InvalidArgument, "the value is no input of the pipeline; only an input can become a state");
        };
        let meta = self.graph.meta(node);
        if tensor.dtype() != meta.dtype {
            fail!(DtypeMismatch, "input {at} is {}; the tensor is {}", meta.dtype, tensor.dtype());
        }
        if *tensor.shape() != meta.shape {
            fail!(ShapeMismatch, "input {at} is {}; the tensor is {}", meta.shape, tensor.shape());
        }
        self.graph.inputs.remove(at);
        self.graph.nodes[node as usize].source = Source::State(tensor.clone());
        self.graph.states.push(State { node, next: None });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::dtype::DType;
    use crate::error::Status;
    use crate::ops::{Attrs, Op};
    use crate::tensor::Tensor;

    #[test]
    fn joined_inputs_are_parts_of_one() {
        let context = Context::open("cpu").unwrap();
        let mut pipeline = context.pipeline();
        let w = pipeline.input(DType::F32, &[3, 2]).unwrap();
        let x = pipeline.input(DType::F32, &[2, 3]).unwrap();
        let b = pipeline.input(DType::F32, &[2]).unwrap();
        let product = pipeline.op(Op::Matmul, &Attrs::DEFAULT, &[Some(x), Some(w)]).unwrap();
        let y = pipeline.op(Op::Add, &Attrs::DEFAULT, &[Some(product), Some(b)]).unwrap();
        pipeline.output(y).unwrap();
        let errors = [
            pipeline.join_inputs(&[]).unwrap_err(),
            pipeline.join_inputs(&[w, product]).unwrap_err(),
            pipeline.join_inputs(&[w, b, w]).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.status() == Status::InvalidArgument), "{errors:?}");
        pipeline.join_inputs(&[b, w]).unwrap();
        let compiled = pipeline.compile().unwrap();
        let x = Tensor::new(&[1.0f32, 0.0, 0.0, 0.0, 1.0, 1.0], &[2, 3]).unwrap();
        let parameters = Tensor::new(&[100.0f32, 200.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[8]).unwrap();
        let found = compiled.run(&[&x, &parameters]).unwrap();
        assert_eq!(found[0].as_slice::<f32>().unwrap(), [101.0, 202.0, 108.0, 210.0]);
    }

    #[test]
    fn inputs_of_two_dtypes_are_refused() {
        let mut pipeline = Context::open("cpu").unwrap().pipeline();
        let a = pipeline.input(DType::F32, &[2]).unwrap();
        let b = pipeline.input(DType::I64, &[2]).unwrap();
        let error = pipeline.join_inputs(&[a, b]).unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::DtypeMismatch, "inputs to join are f32 and i64"));
    }
}
