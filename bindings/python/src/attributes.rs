//! Attributes: Python values as the texts that the core reads. This module has no rule and no default of its own.

use crate::dtypes::dtype_of;
use crate::errors::{Result, fail, wrong_type};
use adead::{Attrs, Op};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Sets an attribute from a bool, an int, a float, a word, or a sequence of ints. None leaves the default. NumPy's names are accepted too:
/// `keepdims`, and a tuple as `axis` for operations that reduce several axes.
pub fn set(attrs: &mut Attrs, op: Op, name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
    if value.is_none() {
        return Ok(());
    }
    let mut name = known(op, name);
    if name == "axis" && (value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>()) && has(op, "axes") {
        name = "axes";
    }
    if name == "axes" && attrs.axes.axes().is_some() {
        fail!(InvalidArgument, "{op}: pass axis or axes, not both");
    }
    if name == "dtype" {
        return Ok(attrs.set(op, name, dtype_of(value)?.name())?);
    }
    if let Ok(word) = value.cast::<PyString>() {
        return Ok(attrs.set(op, name, word.to_str()?)?);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(attrs.set(op, name, if flag.is_true() { "1" } else { "0" })?);
    }
    if value.is_instance_of::<PyFloat>() {
        return set_number(attrs, op, name, value.extract()?);
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(attrs.set(op, name, value.str()?.to_str()?)?);
    }
    // Any object that behaves as an int or a float, including NumPy's scalars.
    if value.hasattr("__index__")? {
        return Ok(attrs.set(op, name, value.call_method0("__index__")?.str()?.to_str()?)?);
    }
    if value.hasattr("__float__")? {
        return set_number(attrs, op, name, value.extract()?);
    }
    let Ok(items) = value.try_iter() else {
        return Err(wrong_type(format!("{op}: {name} can't be a {}", value.get_type().name()?)));
    };
    let items = items.map(|item| Ok(item?.extract::<i64>()?.to_string())).collect::<PyResult<Vec<_>>>()?;
    // The comma distinguishes a list of one element from a single value.
    let list = items.join(",") + if items.len() == 1 { "," } else { "" };
    // The core reads an empty list as no axes, which a scalar's permutation has.
    Ok(attrs.set(op, name, &list)?)
}

fn has(op: Op, name: &str) -> bool {
    op.info().attrs.contains(&name)
}

/// Returns an attribute's name in the core for the one that a caller wrote.
pub fn known(op: Op, name: &str) -> &str {
    if name == "keepdims" && has(op, "keepdim") { "keepdim" } else { name }
}

/// Sets a float by the bits of its f32, so that it is rounded once.
fn set_number(attrs: &mut Attrs, op: Op, name: &str, value: f64) -> Result<()> {
    let mut changed = *attrs;
    match changed.set(op, name, &format!("{:#010x}", (value as f32).to_bits())) {
        Ok(()) => *attrs = changed,
        // On an error, the text has the number as it was written.
        Err(_) => attrs.set(op, name, &format!("{value}"))?,
    }
    Ok(())
}
