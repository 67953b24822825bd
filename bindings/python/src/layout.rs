//! Arrangements of elements in memory that suit GPUs.

use crate::dtypes::Named;
use crate::errors::{Result, detached_copy, fail, guard};
use crate::tensor::PyTensor;
use crate::values::Operand;
use adead::layout::Layout;
use adead::{Meta, Tensor};
use pyo3::prelude::*;

/// How the elements of a row-major matrix are arranged; padding is zero. A layout never changes.
#[pyclass(frozen, module = "adead", name = "Layout")]
pub struct PyLayout(Layout);

impl PyLayout {
    fn arranged(&self, data: &Bound<'_, PyAny>, undo: bool) -> Result<PyTensor> {
        let tensor = Operand::new(data)?.tensor()?;
        let (size, layout) = (tensor.dtype().size(), &self.0);
        let elements = if undo { layout.elements() } else { layout.stored() };
        let fits = tensor.len() == if undo { layout.stored() } else { layout.elements() };
        // The core refuses what doesn't fit before memory for a result is allocated.
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
    /// Makes a layout of tiles of `tile_size` by `tile_size`; those at the edges are padded with zeros.
    #[staticmethod]
    fn tiled(rows: usize, cols: usize, tile_size: usize) -> Result<PyLayout> {
        guard(|| Ok(PyLayout(Layout::tiled(rows, cols, tile_size)?)))
    }

    /// Makes a layout of a dtype's matrix whose rows begin at multiples of `alignment` bytes.
    #[staticmethod]
    fn aligned(rows: usize, cols: usize, dtype: Named, alignment: usize) -> Result<PyLayout> {
        let size = dtype.0.size();
        guard(|| Ok(PyLayout(Layout::aligned(rows, cols, size, alignment)?)))
    }

    /// Makes a layout in which groups of `stride` elements become `stride` sequences: an array of structures as a
    /// structure of arrays.
    #[staticmethod]
    fn coalesced(elements: usize, stride: usize) -> Result<PyLayout> {
        guard(|| Ok(PyLayout(Layout::coalesced(elements, stride)?)))
    }

    /// Makes a layout along the Z-order curve; its sides are padded to powers of two.
    #[staticmethod]
    fn morton(rows: usize, cols: usize) -> Result<PyLayout> {
        guard(|| Ok(PyLayout(Layout::morton(rows, cols)?)))
    }

    /// The rows and columns of the arranged matrix; for coalesced elements the sequences and their length.
    #[getter]
    fn dims(&self) -> (usize, usize) {
        self.0.dims()
    }

    /// The number of elements of the original matrix.
    #[getter]
    fn elements(&self) -> usize {
        self.0.elements()
    }

    /// The number of elements of the arranged matrix, including padding.
    #[getter]
    fn stored(&self) -> usize {
        self.0.stored()
    }

    /// Returns the elements in this arrangement, as a tensor of one dimension.
    fn apply(&self, data: &Bound<'_, PyAny>) -> Result<PyTensor> {
        self.arranged(data, false)
    }

    /// Returns the original elements from arranged ones, as a tensor of one dimension.
    fn undo(&self, arranged: &Bound<'_, PyAny>) -> Result<PyTensor> {
        self.arranged(arranged, true)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Returns shape and dtype of an array, a tensor or numbers.
fn described(data: &Bound<'_, PyAny>) -> Result<Meta> {
    match Operand::new(data)?.view() {
        Some(view) => Ok(*view.meta()),
        None => fail!(InvalidArgument, "there are no values"),
    }
}

/// Returns the given rows and columns, or else the matrix's own.
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
        _ => fail!(InvalidArgument, "optimize_matrix: pass rows and cols, or neither for a matrix"),
    }
}

/// Arranges a matrix as tiles; those at the edges are padded with zeros. Rows and columns are the matrix's own unless
/// they are given. `restore_matrix` is the inverse.
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

/// Returns the original matrix of `optimize_matrix`, as a tensor of one dimension.
#[pyfunction]
#[pyo3(signature = (data, rows, cols, tile_size=32))]
pub fn restore_matrix(data: &Bound<'_, PyAny>, rows: usize, cols: usize, tile_size: usize) -> Result<PyTensor> {
    PyLayout::tiled(rows, cols, tile_size)?.undo(data)
}

/// Pads values with zeros to a multiple of `alignment` bytes.
#[pyfunction]
#[pyo3(signature = (data, alignment=256))]
pub fn align(data: &Bound<'_, PyAny>, alignment: usize) -> Result<PyTensor> {
    let meta = described(data)?;
    let layout = guard(|| Ok(Layout::aligned(1, meta.shape.elements(), meta.dtype.size(), alignment)?))?;
    PyLayout(layout).apply(data)
}

/// Puts values that are `stride` elements apart next to each other. `scatter` is the inverse.
#[pyfunction]
pub fn coalesce(data: &Bound<'_, PyAny>, stride: usize) -> Result<PyTensor> {
    PyLayout::coalesced(described(data)?.shape.elements(), stride)?.apply(data)
}

/// Restores the order of values that `coalesce` arranged.
#[pyfunction]
pub fn scatter(data: &Bound<'_, PyAny>, stride: usize) -> Result<PyTensor> {
    PyLayout::coalesced(described(data)?.shape.elements(), stride)?.undo(data)
}

/// The same functions as methods: layouts that suit a GPU's memory accesses.
#[pyclass(frozen, module = "adead", name = "GPUOptimizer")]
pub struct PyOptimizer;

#[pymethods]
impl PyOptimizer {
    #[new]
    fn new() -> PyOptimizer {
        PyOptimizer
    }

    /// Arranges a matrix as tiles; see `adead.optimize_matrix`.
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

    /// Pads values with zeros to a multiple of `alignment` bytes.
    #[pyo3(signature = (data, alignment=256))]
    fn align(&self, data: &Bound<'_, PyAny>, alignment: usize) -> Result<PyTensor> {
        align(data, alignment)
    }

    /// Puts values that are `stride` elements apart next to each other.
    fn coalesce(&self, data: &Bound<'_, PyAny>, stride: usize) -> Result<PyTensor> {
        coalesce(data, stride)
    }

    fn __repr__(&self) -> &'static str {
        "GPUOptimizer()"
    }
}
