//! Dtypes as Python names them: adead's words, NumPy's dtypes and scalar types, and other libraries' dtypes by their
//! names.

use crate::errors::{Result, fail, wrong_type};
use adead::DType;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use std::sync::OnceLock;

/// An argument that is a dtype.
pub struct Named(pub DType);

impl<'py> FromPyObject<'_, 'py> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Named> {
        Ok(Named(dtype_of(&object)?))
    }
}

/// Returns the objects of all dtypes, in the order of the core's numbers.
pub fn objects(py: Python<'_>) -> Result<&'static [Py<PyAny>]> {
    static OBJECTS: OnceLock<Vec<Py<PyAny>>> = OnceLock::new();
    if OBJECTS.get().is_none() {
        let found: Vec<Py<PyAny>> = py.import("adead._dtypes")?.getattr("IN_ORDER")?.extract()?;
        if found.len() != DType::ALL.len() {
            fail!(Internal, "adead._dtypes has {} dtypes, not {}", found.len(), DType::ALL.len());
        }
        // Another thread may have been first; its objects are the same.
        let _ = OBJECTS.set(found);
    }
    Ok(OBJECTS.get().map_or(&[], Vec::as_slice))
}

/// Reads a dtype from `"f32"`, `"float32"`, `numpy.float32`, `numpy.dtype("float32")`, `torch.float32` or `float`.
#[inline(never)]
pub fn dtype_of(object: &Bound<'_, PyAny>) -> Result<DType> {
    if let Ok(name) = object.cast::<PyString>() {
        let name = name.to_str()?;
        return match usual(name) {
            Some(dtype) => Ok(dtype),
            None => Ok(name.parse()?),
        };
    }
    let name = if object.is_instance_of::<PyType>() {
        object.getattr("__name__")?
    } else if let Ok(name) = object.getattr("name") {
        name
    } else {
        object.str()?.into_any()
    };
    let found = match name.cast::<PyString>() {
        // PyTorch writes torch.float32.
        Ok(name) => usual(name.to_str()?.trim_start_matches("torch.")),
        Err(_) => None,
    };
    match found {
        Some(dtype) => Ok(dtype),
        None => Err(wrong_type(format!(
            "dtype={}: pass a name (\"f32\", \"f16\", \"bf16\", \"f64\", \"i32\", \"i64\", \"u32\", \"bool\", \"u8\") or a NumPy dtype of such elements; got type '{}'",
            object.repr()?,
            object.get_type().name()?
        ))),
    }
}

/// Returns the dtype of a name that Python's libraries use for it.
fn usual(name: &str) -> Option<DType> {
    Some(match name {
        "float32" | "float" => DType::F32,
        "float16" | "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "float64" | "double" | "d" => DType::F64,
        "int32" => DType::I32,
        "int64" | "int" => DType::I64,
        "uint32" => DType::U32,
        "bool" | "bool_" => DType::Bool,
        "uint8" => DType::U8,
        _ => return None,
    })
}

/// Returns the dtype in which operands of two dtypes are computed: of integers and bools the smallest that holds the values of both.
/// `None` for others that differ.
pub fn computed_in(a: DType, b: DType) -> Option<DType> {
    match (a, b) {
        _ if a == b => Some(a),
        _ if a.is_float() || b.is_float() => None,
        (DType::Bool, other) | (other, DType::Bool) | (DType::U8, other) | (other, DType::U8) => Some(other),
        _ => Some(DType::I64),
    }
}

/// The same, for `adead.result_type`.
#[pyfunction]
#[pyo3(name = "_computed_in")]
pub fn computed_in_of(a: Named, b: Named) -> Option<&'static str> {
    computed_in(a.0, b.0).map(DType::name)
}
