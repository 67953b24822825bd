//! Parameters in one vector, so that an optimiser's step is a few kernels and a few copies, however many parameters there are.

use super::network::Parameter;
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Axis, Op, Result, Tensor};

/// Where each parameter is in the vector.
pub(super) struct Flat {
    dims: Vec<Vec<usize>>,
    /// By parameter: its first element.
    begins: Vec<usize>,
    /// The parameters' numbers in the order in which they are in the vector.
    order: Vec<usize>,
    elements: usize,
}

impl Flat {
    /// Parameters of many elements divisible by a power of two come first, so that GPUs read nearly all of them at aligned
    /// addresses.
    pub fn new(parameters: &[Parameter]) -> Flat {
        let dims: Vec<Vec<usize>> = parameters.iter().map(|parameter| parameter.tensor.dims().to_vec()).collect();
        let count = |i: usize| dims[i].iter().product::<usize>();
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(count(i).trailing_zeros().min(6)));
        let (mut begins, mut elements) = (vec![0; dims.len()], 0);
        for &i in &order {
            begins[i] = elements;
            elements += count(i);
        }
        Flat { begins, order, elements, dims }
    }

    /// The number of elements of all parameters.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The parameters' dimensions.
    pub fn dims(&self) -> &[Vec<usize>] {
        &self.dims
    }

    /// Items of the parameters in the vector's order.
    pub fn ordered<T: Clone>(&self, of: &[T]) -> Vec<T> {
        self.order.iter().map(|&i| of[i].clone()).collect()
    }

    /// The vector of these tensors, in host memory.
    pub fn joined(&self, tensors: &[Tensor]) -> Result<Tensor> {
        let mut all = Vec::with_capacity(self.elements);
        for tensor in self.ordered(tensors) {
            all.extend_from_slice(tensor.as_slice::<f32>()?);
        }
        Tensor::new(&all, &[self.elements])
    }

    /// The parameters' tensors, parts of a vector that may have more elements.
    pub fn parts(&self, whole: &Tensor) -> Result<Vec<Tensor>> {
        let rows = |i: usize| whole.rows(self.begins[i], self.dims[i].iter().product());
        (0..self.dims.len()).map(|i| rows(i)?.reshape(&self.dims[i])).collect()
    }

    /// The same in a pipeline.
    pub fn values(&self, pipeline: &mut Pipeline, whole: Value) -> Result<Vec<Value>> {
        let mut part = |i: usize| {
            let rows = pipeline.rows(whole, self.begins[i], self.dims[i].iter().product())?;
            pipeline.reshape(rows, &self.dims[i])
        };
        (0..self.dims.len()).map(&mut part).collect()
    }

    /// Records the vector of the parameters' values, with others behind them.
    pub fn gather(&self, pipeline: &mut Pipeline, values: &[Value], behind: &[Value]) -> Result<Value> {
        let mut all = Vec::new();
        for value in self.ordered(values).iter().chain(behind) {
            let count = pipeline.meta(*value)?.shape.elements();
            all.push(Some(pipeline.reshape(*value, &[count])?));
        }
        pipeline.op(Op::Concat, &Attrs { axis: Axis::At(0), ..Attrs::DEFAULT }, &all)
    }
}
