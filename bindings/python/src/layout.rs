//! Orders of elements in memory that suit GPUs.

use crate::dtypes::Named;
use crate::errors::{Result, detached_copy, fail, guard};
use crate::tensor::PyTensor;
use crate::values::Operand;
use adead::layout::Layout;
use adead::{Meta, Tensor};
use pyo3::prelude::*;

/// How the elements of a row-major matrix are arranged; padding is zero. It never changes.
#[pyclass(frozen, module = "adead", name = "Layout")]
pub struct PyLayout(Layout);

impl PyLayout {
    fn arranged(&self, data: &Bound<'_, PyAny>, undo: bool) -> Result<PyTensor> {
        let tensor = Operand::new(data)?.tensor()?;
        let (size, layout) = (tensor.dtype().size(), &self.0);
        let elements = if undo { layout.elements() } else { layout.stored() };
        let fits = tensor.len() == if undo { layout.stored() } else { layout.elements() };
        // What doesn't fit is refused by core, before there is room for a result.
        let elements = if fits { elements } else { 0 };
        let mut bytes = crate::values::reserved(elements * size)?;
        bytes.resize(elements * size, 0);
        let arranged = detached_copy(data.py(), bytes.len(), || {
            match undo {
                true => layout.undo_bytes(size, tensor.host_bytes()?, &mut bytes)?,
                false => layout.apply_bytes(size, tensor.host_bytes()?, &mut bytes)?,
            }
            Tensor::from_bytes(&bytes, tensor.dtype(), &[elements])
        })?;
        Ok(PyTensor(arranged))
    }
}

#[pymethods]
impl PyLayout {
    /// A matrix as tiles of `tile_size` by `tile_size`, those at its edges filled up with zeros.
    #[staticmethod]
    fn tiled(rows: usize, cols: usize, tile_size: usize) -> Result<PyLayout> {
        guard(|| Ok(PyLayout(Layout::tiled(rows, cols, tile_size)?)))
    }

    /// A matrix of a dtype whose rows begin at multiples of `alignment` bytes.
    #[staticmethod]
    fn aligned(rows: usize, cols: usize, dtype: Named, alignment: usize) -> Result<PyLayout> {
        let size = dtype.0.size();
        guard(|| Ok(PyLayout(Layout::aligned(rows, cols, size, alignment)?)))
    }

    /// Groups of `stride` elements as `stride` sequences: an array of structures as a structure of arrays.
    #[staticmethod]
    fn coalesced(elements: usize, stride: usize) -> Result<PyLayout> {
        guard(|| Ok(PyLayout(Layout::coalesced(elements, stride)?)))
    }

    /// A matrix along the Z-order curve, its sides filled up to powers of two.
    #[staticmethod]
    fn morton(rows: usize, cols: usize) -> Result<PyLayout> {
        guard(|| Ok(PyLayout(Layout::morton(rows, cols)?)))
    }

    /// Rows and columns as they are stored; of coalesced elements the sequences and their length.
    #[getter]
    fn dims(&self) -> (usize, usize) {
        self.0.dims()
    }

    /// Elements before.
    #[getter]
    fn elements(&self) -> usize {
        self.0.elements()
    }

    /// Elements after, the zeros among them.
    #[getter]
    fn stored(&self) -> usize {
        self.0.stored()
    }

    /// The elements in this arrangement, as a tensor of one dimension.
    fn apply(&self, data: &Bound<'_, PyAny>) -> Result<PyTensor> {
        self.arranged(data, false)
    }

    /// The elements as they were before, as a tensor of one dimension.
    fn undo(&self, arranged: &Bound<'_, PyAny>) -> Result<PyTensor> {
        self.arranged(arranged, true)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The elements' shape and dtype, of an array, a tensor or numbers.
fn described(data: &Bound<'_, PyAny>) -> Result<Meta> {
    match Operand::new(data)?.view() {
        Some(view) => Ok(*view.meta()),
        None => fail!(InvalidArgument, "there are no values to arrange"),
    }
}

/// Rows and columns: those that are given, else a matrix's own.
fn sides(data: &Bound<'_, PyAny>, rows: Option<usize>, cols: Option<usize>) -> Result<(usize, usize)> {
    if let (Some(rows), Some(cols)) = (rows, cols) {
        return Ok((rows, cols));
    }
    let meta = described(data)?;
    match (rows, cols, meta.shape.dims()) {
        (None, None, &[rows, cols]) => Ok((rows, cols)),
        (None, None, dims) => fail!(
            ShapeMismatch,
            "optimize_matrix: the data's shape is {dims:?}; it must be [rows, columns], or give rows and cols"
        ),
        _ => fail!(InvalidArgument, "optimize_matrix: give rows and cols, or neither where the data is a matrix"),
    }
}

/// A matrix as tiles, those at its edges filled up with zeros; rows and columns are the matrix's own unless they are given.
/// `restore_matrix` is the way back.
#[pyfunction]
#[pyo3(signature = (data, rows=None, cols=None, tile_size=32))]
pub fn optimize_matrix(
    data: &Bound<'_, PyAny>,
    rows: Option<usize>,
    cols: Option<usize>,
    tile_size: usize,
) -> Result<PyTensor> {
    let (rows, cols) = sides(data, rows, cols)?;
    PyLayout::tiled(rows, cols, tile_size)?.apply(data)
}

/// What `optimize_matrix` was given, as one row.
#[pyfunction]
#[pyo3(signature = (data, rows, cols, tile_size=32))]
pub fn restore_matrix(data: &Bound<'_, PyAny>, rows: usize, cols: usize, tile_size: usize) -> Result<PyTensor> {
    PyLayout::tiled(rows, cols, tile_size)?.undo(data)
}

/// Values filled up with zeros to a multiple of `alignment` bytes.
#[pyfunction]
#[pyo3(signature = (data, alignment=256))]
pub fn align(data: &Bound<'_, PyAny>, alignment: usize) -> Result<PyTensor> {
    let meta = described(data)?;
    let layout = guard(|| Ok(Layout::aligned(1, meta.shape.elements(), meta.dtype.size(), alignment)?))?;
    PyLayout(layout).apply(data)
}

/// Values that lie `stride` apart brought side by side; `scatter` is the way back.
#[pyfunction]
pub fn coalesce(data: &Bound<'_, PyAny>, stride: usize) -> Result<PyTensor> {
    PyLayout::coalesced(described(data)?.shape.elements(), stride)?.apply(data)
}

/// What `coalesce` was given.
#[pyfunction]
pub fn scatter(data: &Bound<'_, PyAny>, stride: usize) -> Result<PyTensor> {
    PyLayout::coalesced(described(data)?.shape.elements(), stride)?.undo(data)
}

/// The same functions as methods: layouts that suit a GPU's way through memory.
#[pyclass(frozen, module = "adead", name = "GPUOptimizer")]
pub struct PyOptimizer;

#[pymethods]
impl PyOptimizer {
    #[new]
    fn new() -> PyOptimizer {
        PyOptimizer
    }

    /// A matrix as tiles; see `adead.optimize_matrix`.
    #[pyo3(signature = (data, rows=None, cols=None, tile_size=32))]
    fn optimize_matrix(
        &self,
        data: &Bound<'_, PyAny>,
        rows: Option<usize>,
        cols: Option<usize>,
        tile_size: usize,
    ) -> Result<PyTensor> {
        optimize_matrix(data, rows, cols, tile_size)
    }

    /// Values filled up with zeros to a multiple of `alignment` bytes.
    #[pyo3(signature = (data, alignment=256))]
    fn align(&self, data: &Bound<'_, PyAny>, alignment: usize) -> Result<PyTensor> {
        align(data, alignment)
    }

    /// Values that lie `stride` apart brought side by side.
    fn coalesce(&self, data: &Bound<'_, PyAny>, stride: usize) -> Result<PyTensor> {
        coalesce(data, stride)
    }

    fn __repr__(&self) -> &'static str {
        "GPUOptimizer()"
    }
}
