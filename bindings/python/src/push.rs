//! Push constants: raw bytes, or numbers with the types that the kernel's module states.

use crate::buffers::Exported;
use crate::errors::{Result, wrong_type};
use crate::values::is_number;
use adead::gpu::{Kernel, Number};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Returns the bytes of a dispatch's push constants. They come from bytes, a number, a list of numbers in the module's
/// order, or a dict or dataclass of numbers by name. Structures and arrays may be nested in these.
pub fn bytes(kernel: &Kernel, push: Option<&Bound<'_, PyAny>>) -> Result<Vec<u8>> {
    let Some(push) = push else { return Ok(Vec::new()) };
    if !is_number(push) && Exported::supports_buffer_protocol(push) {
        return Ok(Exported::bytes_of(push)?.bytes().to_vec());
    }
    let mut numbers = Vec::new();
    if let Some(fields) = fields(push)? {
        named("", &fields, &mut numbers)?;
        let numbers: Vec<_> = numbers.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        return Ok(kernel.pack_named(&numbers)?);
    }
    collect("", push, &mut numbers)?;
    let numbers: Vec<_> = numbers.into_iter().map(|(_, number)| number).collect();
    Ok(kernel.pack(&numbers)?)
}

/// Returns the fields of a dict or a dataclass.
fn fields<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyDict>>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(Some(dict.clone()));
    }
    let Ok(names) = value.getattr("__dataclass_fields__") else { return Ok(None) };
    let fields = PyDict::new(value.py());
    for name in names.try_iter()? {
        let name = name?.cast_into::<PyString>().map_err(PyErr::from)?;
        fields.set_item(&name, value.getattr(&name)?)?;
    }
    Ok(Some(fields))
}

/// Collects the numbers of a structure by their names in the module: `origin.x`.
fn named(prefix: &str, fields: &Bound<'_, PyDict>, numbers: &mut Vec<(String, Number)>) -> Result<()> {
    for (name, value) in fields {
        let name: String = name.extract()?;
        let dot = if prefix.is_empty() { "" } else { "." };
        collect(&format!("{prefix}{dot}{name}"), &value, numbers)?;
    }
    Ok(())
}

/// Collects a value's numbers, those of an array as `flags[2]`.
fn collect(name: &str, value: &Bound<'_, PyAny>, numbers: &mut Vec<(String, Number)>) -> Result<()> {
    if is_number(value) {
        let is_float = value.is_instance_of::<PyFloat>();
        let number = if !is_float && (value.is_instance_of::<PyInt>() || value.hasattr("__index__")?) {
            let whole = value.extract::<i64>().map(i128::from).or_else(|_| value.extract::<u64>().map(i128::from));
            Number::Integer(whole?)
        } else {
            Number::Float(value.extract()?)
        };
        numbers.push((name.into(), number));
        return Ok(());
    }
    if let Some(fields) = fields(value)? {
        return named(name, &fields, numbers);
    }
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        let class = value.get_type().name()?;
        return Err(wrong_type(format!(
            "push constants are numbers, lists, tuples, dicts or dataclasses of numbers, or bytes; got a {class}"
        )));
    }
    for (i, item) in value.try_iter()?.enumerate() {
        collect(&format!("{name}[{i}]"), &item?, numbers)?;
    }
    Ok(())
}
