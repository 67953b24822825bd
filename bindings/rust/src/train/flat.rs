//! Parameters in one vector, so that an optimiser's step is a few kernels and a few copies, however many parameters there are.

use super::network::Parameter;
use adead_core::pipeline::{Pipeline, Value};
use adead_core::{Attrs, Axis, Op, Result, Tensor};
use std::ops::Range;

/// Where each parameter is in the vector.
pub(super) struct Flat {
    dims: Vec<Vec<usize>>,
    /// By parameter: its first element.
    begins: Vec<usize>,
    /// The parameters' numbers in the order in which they are in the vector.
    order: Vec<usize>,
    elements: usize,
    /// The parts in which gradients are added up: ranges of `order`.
    parts: Vec<Range<usize>>,
}

/// A part of the gradients has at least about this many elements, and there are at most so many parts. Ranks exchange one part while
/// they compute the next one, and each exchange has its own costs.
const PART: usize = 1 << 20;
const MOST_PARTS: usize = 8;

impl Flat {
    /// Parameters of many elements divisible by a power of two come first, so that GPUs read nearly all of them at aligned
    /// addresses.
    pub fn new(parameters: &[Parameter]) -> Flat {
        let dims: Vec<Vec<usize>> = parameters.iter().map(|parameter| parameter.tensor.dims().to_vec()).collect();
        let count = |i: usize| dims[i].iter().product::<usize>();
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_unstable_by_key(|&i| (std::cmp::Reverse(count(i).trailing_zeros().min(6)), i));
        let (mut begins, mut elements) = (vec![0; dims.len()], 0);
        for &i in &order {
            begins[i] = elements;
            elements += count(i);
        }
        let count = (elements / PART).clamp(1, MOST_PARTS);
        let (mut parts, mut first) = (Vec::new(), 0);
        for at in 1..order.len() {
            if begins[order[at]] - begins[order[first]] >= elements / count && parts.len() + 1 < count {
                parts.push(first..at);
                first = at;
            }
        }
        parts.push(first..order.len());
        Flat { begins, order, elements, parts, dims }
    }

    /// The numbers of elements of the gradients' parts, which follow each other in the vector. A backward pass computes the last one
    /// first.
    pub fn parts_elements(&self) -> Vec<usize> {
        let count = |&i: &usize| self.dims[i].iter().product::<usize>();
        self.parts.iter().map(|part| self.order[part.clone()].iter().map(count).sum()).collect()
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

    /// Records the vector of the parameters' values.
    pub fn gather(&self, pipeline: &mut Pipeline, values: &[Value]) -> Result<Value> {
        joined(pipeline, &self.ordered(values))
    }

    /// Records a part of the vector of the parameters' values, with others behind them.
    pub fn gather_part(
        &self,
        pipeline: &mut Pipeline,
        part: usize,
        values: &[Value],
        behind: &[Value],
    ) -> Result<Value> {
        let own = &self.ordered(values)[self.parts[part].clone()];
        joined(pipeline, &[own, behind].concat())
    }
}

/// Records the vector of these values' elements.
pub(super) fn joined(pipeline: &mut Pipeline, values: &[Value]) -> Result<Value> {
    let mut all = Vec::new();
    for value in values {
        let count = pipeline.meta(*value)?.shape.elements();
        all.push(Some(pipeline.reshape(*value, &[count])?));
    }
    pipeline.op(Op::Concat, &Attrs { axis: Axis::At(0), ..Attrs::DEFAULT }, &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{Init, Network};
    use adead_core::Context;

    #[test]
    fn large_networks_are_cut_at_parameters() {
        let parts = |dims: &[&[usize]]| {
            let mut net = Network::new(&Context::open("cpu").unwrap(), 7);
            for (i, dims) in dims.iter().enumerate() {
                net.parameter(&format!("{i}"), dims, &Init::Constant(0.0)).unwrap();
            }
            let flat = Flat::new(&net.parameters);
            let parts = flat.parts_elements();
            assert_eq!(parts.iter().sum::<usize>(), flat.elements());
            parts
        };
        assert_eq!(parts(&[&[3], &[64, 64], &[5]]), [4096 + 8]);
        let layer: &[usize] = &[1024, 1024];
        assert_eq!(parts(&[layer, &[3], layer, layer, layer]), [1 << 20, 1 << 20, 1 << 20, (1 << 20) + 3]);
        // One that is larger than a part is not cut.
        assert_eq!(parts(&[&[3072, 1024], layer]), [3 << 20, 1 << 20]);
        // At most eight, of at least an eighth each.
        assert_eq!(parts(&[layer; 20]), [3, 3, 3, 3, 3, 3, 2].map(|layers| layers << 20));
    }
}
