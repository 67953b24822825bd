//! A tensor's elements as Python's numbers and as text; dtypes and shapes from Python's values.

use crate::current::default_context;
use crate::errors::{Result, fail};
use crate::tensor::PyTensor;
use crate::values::reserved;
use adead::{Attrs, DType, Op, Shape, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyList;

impl PyTensor {
    /// Returns the elements as text, each as short as its dtype allows.
    pub fn texts(&self, py: Python<'_>) -> Result<Vec<String>> {
        fn all<T: std::fmt::Debug>(values: &[T]) -> Vec<String> {
            values.iter().map(|value| format!("{value:?}")).collect()
        }
        Ok(match self.0.dtype() {
            DType::F32 => all(self.0.as_slice::<f32>()?),
            DType::I32 => all(self.0.as_slice::<i32>()?),
            DType::I64 => all(self.0.as_slice::<i64>()?),
            DType::U32 => all(self.0.as_slice::<u32>()?),
            DType::U8 => all(self.0.as_slice::<u8>()?),
            DType::F64 => all(self.0.as_doubles()?),
            DType::Bool => {
                self.0.to_bools()?.iter().map(|&value| if value { "True" } else { "False" }.into()).collect()
            }
            DType::F16 | DType::BF16 => all(self.wide(py)?.as_slice::<f32>()?),
        })
    }

    /// Converts f16 and bf16 exactly to f32.
    fn wide(&self, py: Python<'_>) -> Result<Tensor> {
        let attrs = Attrs { dtype: Some(DType::F32), ..Attrs::DEFAULT };
        Ok(default_context(py)?.get().inner.run(Op::Cast, &attrs, &[Some(&self.0)])?)
    }

    /// Returns the elements as numbers.
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
            DType::U8 => all(py, self.0.as_slice::<u8>()?.iter()),
            DType::F64 => all(py, self.0.as_doubles()?.iter()),
            DType::Bool => all(py, self.0.to_bools()?.into_iter()),
            DType::F16 | DType::BF16 => all(py, self.wide(py)?.as_slice::<f32>()?.iter()),
        }
    }
}

/// Returns dimensions from an int or a sequence of ints. Negative ones are an error.
pub fn dimensions(shape: &Bound<'_, PyAny>) -> Result<Vec<usize>> {
    let length = |value: &Bound<'_, PyAny>| -> Result<usize> {
        let value: i64 = value.extract()?;
        match usize::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => fail!(InvalidArgument, "a dimension can't be {value}"),
        }
    };
    match shape.try_iter() {
        Ok(all) => all.map(|value| length(&value?)).collect(),
        Err(_) => Ok(vec![length(shape)?]),
    }
}

/// Returns the dimensions of `elements` elements; one of them may be -1.
pub fn inferred(shape: &Bound<'_, PyAny>, elements: usize) -> Result<Vec<usize>> {
    let given: Vec<i64> = match shape.try_iter() {
        Ok(all) => all.map(|value| value?.extract::<i64>()).collect::<PyResult<_>>()?,
        Err(_) => vec![shape.extract()?],
    };
    Ok(Shape::inferred(&given, elements)?.dims().to_vec())
}

/// Returns nested lists of a shape.
pub fn nested<'py>(py: Python<'py>, values: &[Bound<'py, PyAny>], dims: &[usize]) -> Result<Bound<'py, PyAny>> {
    let Some((&rows, rest)) = dims.split_first() else {
        return match values.first() {
            Some(value) => Ok(value.clone()),
            None => fail!(Internal, "a scalar has no value"),
        };
    };
    let step = rest.iter().product();
    let mut lists = reserved(rows)?;
    for row in 0..rows {
        lists.push(nested(py, &values[row * step..][..step], rest)?);
    }
    Ok(PyList::new(py, lists)?.into_any())
}

/// The entries that are shown at each end of a shortened axis.
const EDGE: usize = 3;
/// The most elements that are all shown.
const SHOWN: usize = 1000;

/// Returns a tensor as text: `Tensor(f32[3, 3], [[1.0, …`, with aligned rows.
pub fn rows_text(py: Python<'_>, tensor: &PyTensor) -> Result<String> {
    let (dims, n) = (tensor.0.dims(), tensor.0.len());
    let mut text = format!("Tensor({}{}, ", tensor.0.dtype(), tensor.0.shape());
    if n == 0 {
        text.push_str("[])");
        return Ok(text);
    }
    // Several rows are aligned with the first one.
    let indent = if dims.len() > 1 { text.chars().count() } else { 0 };
    rows(py, &mut text, &tensor.0, n > SHOWN, indent)?;
    text.push(')');
    Ok(text)
}

fn rows(py: Python<'_>, text: &mut String, part: &Tensor, is_cut: bool, indent: usize) -> Result<()> {
    let Some(&count) = part.dims().first() else {
        text.push_str(&PyTensor(part.clone()).texts(py)?.join(""));
        return Ok(());
    };
    let cut = is_cut && count > 2 * EDGE;
    let separator = match part.dims().len() {
        1 => ", ".into(),
        rank => format!(",{}{}", "\n".repeat(rank - 1), " ".repeat(indent + 1)),
    };
    text.push('[');
    let ranges = if cut { [0..EDGE, count - EDGE..count] } else { [0..count, count..count] };
    for (i, range) in ranges.into_iter().enumerate() {
        if cut && i == 1 {
            text.push_str(&separator);
            text.push('…');
        }
        // The elements of a row stay on one line.
        if part.dims().len() == 1 {
            let some = PyTensor(part.rows(range.start, range.len())?).texts(py)?;
            if cut && i == 1 {
                text.push_str(&separator);
            }
            text.push_str(&some.join(&separator));
            continue;
        }
        for row in range.clone() {
            if row > range.start || i == 1 {
                text.push_str(&separator);
            }
            let row = part.rows(row, 1)?.reshape(&part.dims()[1..])?;
            rows(py, text, &row, is_cut, indent + 1)?;
        }
    }
    text.push(']');
    Ok(())
}
