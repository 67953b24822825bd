//! A tensor's elements as Python's numbers and as text; dtypes and shapes from Python's values.

use crate::context::default_context;
use crate::errors::{Result, fail};
use crate::tensor::PyTensor;
use crate::values::reserved;
use adead::{Attrs, DType, Op, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyList;

impl PyTensor {
    /// The elements as they are written, each as short as its own dtype allows.
    pub fn texts(&self, py: Python<'_>) -> Result<Vec<String>> {
        fn all<T: std::fmt::Debug>(values: &[T]) -> Vec<String> {
            values.iter().map(|value| format!("{value:?}")).collect()
        }
        Ok(match self.0.dtype() {
            DType::F32 => all(self.0.as_slice::<f32>()?),
            DType::I32 => all(self.0.as_slice::<i32>()?),
            DType::I64 => all(self.0.as_slice::<i64>()?),
            DType::U32 => all(self.0.as_slice::<u32>()?),
            DType::F16 | DType::BF16 => all(self.wide(py)?.as_slice::<f32>()?),
        })
    }

    /// f16 and bf16 as f32, exactly.
    fn wide(&self, py: Python<'_>) -> Result<Tensor> {
        let attrs = Attrs { dtype: Some(DType::F32), ..Attrs::DEFAULT };
        Ok(default_context(py)?.inner.run(Op::Cast, &attrs, &[Some(&self.0)])?)
    }

    /// The elements as numbers.
    pub fn numbers<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        fn all<'py, T: IntoPyObject<'py>>(
            py: Python<'py>,
            values: impl ExactSizeIterator<Item = T>,
        ) -> Result<Vec<Bound<'py, PyAny>>> {
            let mut numbers = reserved(values.len())?;
            for value in values {
                numbers.push(value.into_bound_py_any(py)?);
            }
            Ok(numbers)
        }
        match self.0.dtype() {
            DType::F32 => all(py, self.0.as_slice::<f32>()?.iter()),
            DType::I32 => all(py, self.0.as_slice::<i32>()?.iter()),
            DType::I64 => all(py, self.0.as_slice::<i64>()?.iter()),
            DType::U32 => all(py, self.0.as_slice::<u32>()?.iter()),
            DType::F16 | DType::BF16 => all(py, self.wide(py)?.as_slice::<f32>()?.iter()),
        }
    }
}

/// Parses a dtype's name.
pub fn dtype_named(name: Option<&str>) -> Result<Option<DType>> {
    Ok(name.map(str::parse).transpose()?)
}

/// Dimensions from an int or a sequence of ints; negative ones are nobody's.
pub fn dimensions(shape: &Bound<'_, PyAny>) -> Result<Vec<usize>> {
    let length = |value: &Bound<'_, PyAny>| -> Result<usize> {
        let value: i64 = value.extract()?;
        match usize::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => fail!(InvalidArgument, "a shape has no dimension of {value}"),
        }
    };
    match shape.try_iter() {
        Ok(all) => all.map(|value| length(&value?)).collect(),
        Err(_) => Ok(vec![length(shape)?]),
    }
}

/// Lists within lists, as the shape says.
pub fn nested<'py>(py: Python<'py>, values: &[Bound<'py, PyAny>], dims: &[usize]) -> Result<Bound<'py, PyAny>> {
    let Some((&rows, rest)) = dims.split_first() else {
        return match values.first() {
            Some(value) => Ok(value.clone()),
            None => fail!(Internal, "a scalar without a value"),
        };
    };
    let step = rest.iter().product();
    let mut lists = reserved(rows)?;
    for row in 0..rows {
        lists.push(nested(py, &values[row * step..][..step], rest)?);
    }
    Ok(PyList::new(py, lists)?.into_any())
}

/// The same as text.
pub fn nested_text(values: &[String], dims: &[usize]) -> String {
    let Some((&rows, rest)) = dims.split_first() else { return values.join("") };
    let step: usize = rest.iter().product();
    let rows: Vec<_> = (0..rows).map(|row| nested_text(&values[row * step..][..step], rest)).collect();
    format!("[{}]", rows.join(", "))
}
