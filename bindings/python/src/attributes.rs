//! Attributes: Python values as the texts that core reads, so that no rule and no default is here.

use crate::dtypes::dtype_of;
use crate::errors::{Result, wrong_type};
use adead::{Attrs, Op};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// Sets an attribute from a value: a bool, an int, a float, a word, or a sequence of ints. None leaves the default.
pub fn set(attrs: &mut Attrs, op: Op, name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
    if value.is_none() {
        return Ok(());
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
    // What behaves as an int or a float, NumPy's scalars among it.
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
    // A list of one is no single value.
    let list = items.join(",") + if items.len() == 1 { "," } else { "" };
    // Core reads no numbers as no axes, which a scalar's permutation has.
    Ok(attrs.set(op, name, &list)?)
}

/// A float by the bits of its f32, which is rounded once.
fn set_number(attrs: &mut Attrs, op: Op, name: &str, value: f64) -> Result<()> {
    let mut changed = *attrs;
    match changed.set(op, name, &format!("{:#010x}", (value as f32).to_bits())) {
        Ok(()) => *attrs = changed,
        // Where it is refused, the text has the number as it was written.
        Err(_) => attrs.set(op, name, &format!("{value}"))?,
    }
    Ok(())
}
