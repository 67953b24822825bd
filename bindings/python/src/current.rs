//! The default context: what the module's functions, tensors' methods and operators run on.
//!
//! Inside `with Context(…):` it is that context, for the thread and the task of asyncio that entered: a context variable of
//! Python's. Elsewhere it is the one that was set, or the one that the environment and adead.toml name, opened when first needed.

use crate::context::PyContext;
use crate::errors::{Result, detached, guard};
use adead::Context;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The context outside of every `with`, a reference of its own; NULL before it was opened. Read and changed with the GIL.
static DEFAULT: AtomicPtr<PyObject> = AtomicPtr::new(ptr::null_mut());

/// How many `with` blocks were entered and not left, in all threads: without any, nobody asks for the variable.
static ENTERED: AtomicUsize = AtomicUsize::new(0);

/// The variable, a tuple of the contexts that were entered, the innermost last.
static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The default context.
#[inline]
pub fn default_context(py: Python<'_>) -> Result<Bound<'_, PyContext>> {
    if ENTERED.load(Ordering::Relaxed) > 0
        && let Some(innermost) = innermost(py)?
    {
        return Ok(innermost);
    }
    match outermost(py) {
        Some(ctx) => Ok(ctx),
        None => open(py),
    }
}

#[inline]
fn outermost(py: Python<'_>) -> Option<Bound<'_, PyContext>> {
    // SAFETY: NULL or a context, which is replaced with the GIL only, as here.
    unsafe {
        let ctx = Bound::from_borrowed_ptr_or_opt(py, DEFAULT.load(Ordering::Relaxed))?;
        Some(ctx.cast_into_unchecked())
    }
}

#[cold]
fn open(py: Python<'_>) -> Result<Bound<'_, PyContext>> {
    let ctx = Bound::new(py, PyContext::of(detached(py, Context::auto)?))?;
    // Another thread may have been here meanwhile: the first to come back is the one.
    if let Some(other) = outermost(py) {
        return Ok(other);
    }
    replace(py, Some(ctx.clone()));
    Ok(ctx)
}

fn replace(py: Python<'_>, ctx: Option<Bound<'_, PyContext>>) {
    let new = ctx.map_or(ptr::null_mut(), |ctx| ctx.into_any().into_ptr());
    let old = DEFAULT.swap(new, Ordering::Relaxed);
    // SAFETY: it was a reference of this module's own, or NULL.
    drop(unsafe { Bound::from_owned_ptr_or_opt(py, old) });
}

/// The context that the module's functions and tensors' methods run on: the innermost `with` block's, else the one that was set,
/// else the one that the environment and adead.toml name, opened when first needed.
#[pyfunction(name = "default_context")]
pub fn the_default(py: Python<'_>) -> Result<Bound<'_, PyContext>> {
    default_context(py)
}

/// Makes a context the default one outside of `with` blocks, in all threads. None goes back to what the environment and
/// adead.toml name.
#[pyfunction]
#[pyo3(signature = (context))]
pub fn set_default_context(py: Python<'_>, context: Option<Bound<'_, PyContext>>) {
    replace(py, context);
}

fn variable(py: Python<'_>) -> Result<&Bound<'_, PyAny>> {
    let make = || -> PyResult<Py<PyAny>> {
        Ok(py.import("contextvars")?.getattr("ContextVar")?.call1(("adead.default_context",))?.unbind())
    };
    Ok(VARIABLE.get_or_try_init(py, make)?.bind(py))
}

fn entered(py: Python<'_>) -> Result<Bound<'_, PyTuple>> {
    let stack = variable(py)?.call_method1("get", (PyTuple::empty(py),))?;
    Ok(stack.cast_into::<PyTuple>().map_err(PyErr::from)?)
}

fn innermost(py: Python<'_>) -> Result<Option<Bound<'_, PyContext>>> {
    let stack = entered(py)?;
    match stack.len() {
        0 => Ok(None),
        depth => Ok(Some(stack.get_item(depth - 1)?.cast_into::<PyContext>().map_err(PyErr::from)?)),
    }
}

/// Makes it the default of this thread and task.
pub fn enter(ctx: &Bound<'_, PyContext>) -> Result<()> {
    let py = ctx.py();
    let stack = entered(py)?;
    let deeper = PyTuple::new(py, stack.iter().chain([ctx.as_any().clone()]).collect::<Vec<_>>())?;
    variable(py)?.call_method1("set", (deeper,))?;
    ENTERED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Undoes the innermost [`enter`] with it. Where it was not entered, by this thread or task, nothing changes.
pub fn leave(ctx: &Bound<'_, PyContext>) -> Result<()> {
    guard(|| {
        let py = ctx.py();
        let stack = entered(py)?;
        let Some(at) = stack.iter().rposition(|other| other.is(ctx)) else { return Ok(()) };
        let kept: Vec<_> = stack.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, other)| other).collect();
        variable(py)?.call_method1("set", (PyTuple::new(py, kept)?,))?;
        ENTERED.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    })
}
