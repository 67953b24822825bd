//! The default context. The module's functions, and tensors' methods and operators, run on it.
//!
//! Inside `with Context(…):` it is that context, for the thread and the asyncio task that entered the block; a Python context
//! variable holds it. Elsewhere it is the context that was set. Without one, it is the context that the environment and
//! adead.toml name, opened when it is first needed.

use crate::context::PyContext;
use crate::errors::{Result, detached, guard};
use adead::Context;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A reference to the context outside of every `with`; NULL before it is opened. Read and changed with the GIL.
static DEFAULT: AtomicPtr<PyObject> = AtomicPtr::new(ptr::null_mut());

/// The number of `with` blocks that are open in all threads. If it is 0, nothing reads the variable.
static ENTERED: AtomicUsize = AtomicUsize::new(0);

/// The variable: a tuple of the entered contexts, the innermost last.
static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns the default context.
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
    // SAFETY: NULL or a context, which is replaced only with the GIL, as here.
    unsafe {
        let ctx = Bound::from_borrowed_ptr_or_opt(py, DEFAULT.load(Ordering::Relaxed))?;
        Some(ctx.cast_into_unchecked())
    }
}

#[cold]
fn open(py: Python<'_>) -> Result<Bound<'_, PyContext>> {
    let ctx = Bound::new(py, PyContext::of(detached(py, Context::auto)?))?;
    // Another thread may have opened one meanwhile. The first to finish wins.
    if let Some(other) = outermost(py) {
        return Ok(other);
    }
    replace(py, Some(ctx.clone()));
    Ok(ctx)
}

fn replace(py: Python<'_>, ctx: Option<Bound<'_, PyContext>>) {
    let new = ctx.map_or(ptr::null_mut(), |ctx| ctx.into_any().into_ptr());
    let old = DEFAULT.swap(new, Ordering::Relaxed);
    // SAFETY: it is a reference that this module owns, or NULL.
    drop(unsafe { Bound::from_owned_ptr_or_opt(py, old) });
}

/// Returns the context on which the module's functions and tensors' methods run: that of the innermost `with` block, or
/// else the one that was set. Otherwise it is the one that the environment and adead.toml name, opened when first
/// needed.
#[pyfunction(name = "default_context")]
pub fn the_default(py: Python<'_>) -> Result<Bound<'_, PyContext>> {
    default_context(py)
}

/// Sets the default context outside of `with` blocks, in all threads. None restores the one that the environment and
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

/// Makes a context the default one of this thread and task.
pub fn enter(ctx: &Bound<'_, PyContext>) -> Result<()> {
    let py = ctx.py();
    let stack = entered(py)?;
    let deeper = PyTuple::new(py, stack.iter().chain([ctx.as_any().clone()]).collect::<Vec<_>>())?;
    variable(py)?.call_method1("set", (deeper,))?;
    ENTERED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Undoes the innermost [`enter`] of a context. If this thread or task has not entered it, nothing changes.
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
