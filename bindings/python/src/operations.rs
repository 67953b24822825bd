//! Calls of operations, as functions of the module or as methods. `methods.rs` makes both.

use crate::attributes;
use crate::buffers::Doubles;
use crate::context::PyContext;
use crate::current::default_context;
use crate::dtypes;
use crate::errors::{Fault, Result, guard, interruptible, wrong_type};
use crate::pipeline::PyPipeline;
use crate::tensor::PyTensor;
use crate::values::{Operand, is_f64_tensor, is_number, scalar, tensor_of};
use adead::{Attrs, DType, Error, Op, OpInfo, OpKind, Tensor, View};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::pyclass::{PyClass, boolean_struct::True};
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::ptr;

/// The operands' objects; None for an absent one.
pub type Objects<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 5]>;
/// The arguments of a call, by parameter.
type Given<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 12]>;
/// The operands of a call. Only `concat` can have more than five, which need a heap allocation.
type Operands<'py> = SmallVec<[Operand<'py>; 5]>;
/// The operands as the core's views.
type Views<'a> = SmallVec<[Option<View<'a>>; 5]>;

/// The object that a function is called on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The module; it uses the default context.
    Module,
    /// A context.
    Context,
    /// A tensor, which is the first operand; it uses the default context.
    Tensor,
    /// A pipeline, whose value is the first operand once it has one.
    Pipeline,
}

/// Up to this many bytes of operands, no work takes longer than releasing the GIL.
const FEW: usize = 1024;
/// The number of operations and bytes from which the GIL is released. Such work takes some microseconds; releasing and taking
/// the GIL is a few percent of that. Taking it takes longer if other threads want the GIL, but then they use the time.
const WORTH: f64 = 65_536.0;

/// Returns whether work ends before other threads could use the GIL.
#[inline]
fn is_short(ctx: &PyContext, op: Op, attrs: &Attrs, views: &[Option<View<'_>>]) -> bool {
    let bytes: usize = views.iter().flatten().map(|view| view.meta().bytes()).sum();
    if ctx.alone {
        return bytes <= FEW || is_cheap(op, attrs, views);
    }
    // On a GPU everything takes longer, if only for the transfer. The result is about as large as the operands.
    bytes <= FEW && bytes / 2 <= ctx.inner.dispatcher().tiny(op)
}

#[inline(never)]
fn is_cheap(op: Op, attrs: &Attrs, views: &[Option<View<'_>>]) -> bool {
    let info = op.info();
    // Operands that don't fit fail at once.
    info.infer(attrs, views).map_or(true, |output| {
        let cost = info.cost(attrs, views, &output);
        cost.flops + cost.bytes < WORTH
    })
}

/// Runs an operation, without the GIL if that pays off.
pub fn run(py: Python<'_>, ctx: &PyContext, op: Op, attrs: &Attrs, views: &[Option<View<'_>>]) -> Result<Tensor> {
    let result = if is_short(ctx, op, attrs, views) {
        guard(|| Ok(ctx.inner.run_views(op, attrs, views)?))
    } else {
        interruptible(py, || ctx.inner.run_views(op, attrs, views))
    };
    result.map_err(|fault| with_remedy(fault, views))
}

/// Adds Python's words for the cast that an error about f64 operands asks for.
#[cold]
fn with_remedy(fault: Fault, views: &[Option<View<'_>>]) -> Fault {
    match fault {
        Fault::Core(error)
            if error.message().contains("; cast ")
                && views.iter().flatten().any(|view| view.meta().dtype == DType::F64) =>
        {
            Error::new(error.status(), format!("{}, as in x.astype(\"f32\")", error.message())).into()
        }
        fault => fault,
    }
}

/// Runs an operation as NumPy's users expect it of tensors and functions: integers and bools of two dtypes are computed in one that
/// holds both, their sums and products in i64 and their means in f32; `floor` and `round` leave them unchanged. A context's methods
/// are the operations themselves.
pub fn run_as_numpy(
    py: Python<'_>,
    ctx: &PyContext,
    op: Op,
    attrs: &Attrs,
    views: &[Option<View<'_>>],
) -> Result<Tensor> {
    let cast = |i: usize, to| run(py, ctx, Op::Cast, &Attrs { dtype: Some(to), ..Attrs::DEFAULT }, &[views[i]]);
    if let Some(to) = reduced_in(op, views) {
        return run(py, ctx, op, attrs, &[Some(cast(0, to)?.view())]);
    }
    if let (Op::Floor | Op::Round, Some(Some(x))) = (op, views.first())
        && !x.meta().dtype.is_float()
    {
        // Integers are whole.
        return cast(0, x.meta().dtype);
    }
    let Some((first, to)) = together(op, views) else { return run(py, ctx, op, attrs, views) };
    let (a, b) = (cast(first, to)?, cast(first + 1, to)?);
    let mut views: Views<'_> = views.iter().copied().collect();
    (views[first], views[first + 1]) = (Some(a.view()), Some(b.view()));
    run(py, ctx, op, attrs, &views)
}

/// Runs an operation on operands, as [`run`] does.
pub fn run_operands(
    py: Python<'_>,
    ctx: &PyContext,
    op: Op,
    attrs: &Attrs,
    operands: &[Operand<'_>],
) -> Result<Tensor> {
    let views: Views<'_> = operands.iter().map(Operand::view).collect();
    run(py, ctx, op, attrs, &views)
}

/// Returns the operands of an operation that broadcasts two integer or bool tensors of different dtypes, and the smallest integer
/// dtype that holds both, as NumPy's users expect.
#[inline]
fn together(op: Op, views: &[Option<View<'_>>]) -> Option<(usize, DType)> {
    let first = match op.kind() {
        OpKind::Binary | OpKind::Comparison => 0,
        OpKind::Own if op == Op::Where => 1,
        _ => return None,
    };
    let dtype = |i: usize| views.get(i)?.as_ref().map(|view| view.meta().dtype);
    let (a, b) = (dtype(first)?, dtype(first + 1)?);
    if a == b { None } else { dtypes::computed_in(a, b).map(|to| (first, to)) }
}

/// Returns the dtype in which a reduction of integers or bools is computed, if that is not their own: sums and products in i64,
/// means in f32, as NumPy's users expect.
fn reduced_in(op: Op, views: &[Option<View<'_>>]) -> Option<DType> {
    let own = views.first()?.as_ref()?.meta().dtype;
    match op {
        Op::Sum | Op::Prod if !own.is_float() && own != DType::I64 => Some(DType::I64),
        Op::Mean if !own.is_float() => Some(DType::F32),
        _ => None,
    }
}

/// Returns attributes from keywords.
pub fn keywords(op: Op, given: Option<&Bound<'_, PyDict>>) -> Result<Attrs> {
    let mut attrs = Attrs::default();
    for (name, value) in given.into_iter().flatten() {
        let name = name.cast_into::<PyString>().map_err(PyErr::from)?;
        attributes::set(&mut attrs, op, name.to_str()?, &value)?;
    }
    Ok(attrs)
}

/// Returns an operation's operands from a sequence.
pub fn sequence<'py>(op: Op, objects: &Bound<'py, PyAny>) -> Result<Operands<'py>> {
    let objects = objects.try_iter()?.map(|object| Ok(Some(object?))).collect::<Result<Objects<'py>>>()?;
    let doubles = doubles_among(op, &objects);
    objects.iter().flatten().map(|object| Operand::with(object, doubles)).collect()
}

/// Returns what float64 arrays become among the operands of an operation. A cast rounds them once, to its own dtype.
fn doubles_among(op: Op, objects: &[Option<Bound<'_, PyAny>>]) -> Doubles {
    Doubles::beside(op == Op::Cast || objects.iter().flatten().any(is_f64_tensor))
}

/// Returns a function's parameters: operands and attributes.
pub fn parameters(info: &'static OpInfo) -> impl Iterator<Item = (&'static str, bool)> {
    let operands = info.operands.iter().map(|name| (name.trim_end_matches(['?', '*']), true));
    operands.chain(info.attrs.iter().map(|&name| (name, false)))
}

/// Runs a call.
///
/// # Safety
/// As for a METH_FASTCALL function with keywords.
pub unsafe fn call(
    op: Op,
    place: Place,
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python calls with the GIL.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: there are this many arguments, and they live until the call returns.
    let result = unsafe {
        let arguments = if count == 0 { &[] } else { std::slice::from_raw_parts(arguments, count as usize) };
        guard(|| {
            if place == Place::Pipeline {
                return recorded(py, op, object, arguments, names);
            }
            let tensor = match plain(py, op, place, object, arguments, names) {
                Some(result) => result,
                None => Python::attach(|py| any(py, op, place, object, arguments, names)),
            }?;
            Ok(Bound::new(py, PyTensor(tensor))?.into_any())
        })
    };
    match result {
        Ok(result) => result.into_ptr(),
        Err(fault) => {
            PyErr::from(fault).restore(py);
            ptr::null_mut()
        }
    }
}

/// Returns the context of a call.
///
/// # Safety
/// `object` is of the class that `place` says.
unsafe fn context_of(py: Python<'_>, place: Place, object: *mut PyObject) -> Result<Bound<'_, PyContext>> {
    match place {
        // SAFETY: a method of the class; its caller keeps the object.
        Place::Context => Ok(unsafe { Bound::from_borrowed_ptr(py, object).cast_into_unchecked() }),
        _ => default_context(py),
    }
}

/// Returns the Rust value in an object of a frozen class.
///
/// # Safety
/// The object is of that class, and is kept for `'a`.
#[inline]
unsafe fn of<'a, T: PyClass<Frozen = True> + Sync>(py: Python<'a>, object: &'a *mut PyObject) -> &'a T {
    // SAFETY: as the caller says; both point to the object.
    unsafe {
        let bound = Borrowed::from_ptr(py, *object).cast_unchecked::<T>();
        &*ptr::from_ref(bound.get())
    }
}

/// Runs a call with only tensors. Returns None if the call has anything else.
///
/// # Safety
/// As [`call`].
#[inline]
unsafe fn plain(
    py: Python<'_>,
    op: Op,
    place: Place,
    object: *mut PyObject,
    arguments: &[*mut PyObject],
    names: *mut PyObject,
) -> Option<Result<Tensor>> {
    let first = std::slice::from_ref(&object);
    let first = if place == Place::Tensor { first } else { &[] };
    if !names.is_null() || first.len() + arguments.len() > op.info().operands.len() || op == Op::Concat {
        return None;
    }
    let mut views = Views::new();
    for object in first.iter().chain(arguments) {
        // SAFETY: an argument, and then a tensor, which live until the call returns.
        unsafe {
            if !PyTensor::is(*object) {
                return None;
            }
            views.push(Some(of::<PyTensor>(py, object).0.view()));
        }
    }
    // SAFETY: passed on.
    let ctx = match unsafe { context_of(py, place, object) } {
        Ok(ctx) => ctx,
        Err(fault) => return Some(Err(fault)),
    };
    let run = if place == Place::Context { run } else { run_as_numpy };
    Some(run(py, ctx.get(), op, &Attrs::DEFAULT, &views))
}

/// Runs any call.
///
/// # Safety
/// As [`call`].
#[inline(never)]
unsafe fn any(
    py: Python<'_>,
    op: Op,
    place: Place,
    object: *mut PyObject,
    arguments: &[*mut PyObject],
    names: *mut PyObject,
) -> Result<Tensor> {
    // SAFETY: passed on; the object is one of this place's class.
    let given = unsafe {
        let first = (place == Place::Tensor).then(|| Bound::from_borrowed_ptr(py, object));
        given(py, op, first, arguments, names)?
    };
    // SAFETY: passed on.
    let ctx = unsafe { context_of(py, place, object) }?;
    let operands = match &given[0] {
        Some(all) if repeats(op) => sequence(op, all)?,
        _ => operands_of(op, ctx.get(), &given[..op.info().operands.len()])?,
    };
    let attrs = attributes(op, &given)?;
    let views: Views<'_> = operands.iter().map(Operand::view).collect();
    let run = if place == Place::Context { run } else { run_as_numpy };
    run(py, ctx.get(), op, &attrs, &views)
}

/// Returns operands from objects. Where operands are broadcast, a number becomes a scalar of the dtype of the others.
fn operands_of<'py>(op: Op, ctx: &PyContext, objects: &[Option<Bound<'py, PyAny>>]) -> Result<Operands<'py>> {
    let broadcasts = matches!(op.kind(), OpKind::Binary | OpKind::Comparison) || op == Op::Where;
    let is_scalar = |object: &Bound<'py, PyAny>| broadcasts && object.cast::<PyTensor>().is_err() && is_number(object);
    let doubles = doubles_among(op, objects);
    let mut operands = Operands::new();
    for object in objects {
        operands.push(match object {
            Some(object) if !is_scalar(object) => Operand::with(object, doubles)?,
            // The core's check reports a required operand that is missing.
            _ => Operand::Absent,
        });
    }
    if !broadcasts {
        return Ok(operands);
    }
    // A condition's dtype is not that of the values.
    let first = usize::from(op == Op::Where);
    let dtype = || operands.iter().skip(first).find_map(Operand::view).map(|view| view.meta().dtype);
    let absent = operands.iter().any(|operand| matches!(operand, Operand::Absent));
    let dtype = if absent { dtype() } else { None };
    for (operand, object) in operands.iter_mut().zip(objects) {
        if let (Operand::Absent, Some(object)) = (&*operand, object)
            && !object.is_none()
        {
            *operand = Operand::Own(match dtype {
                Some(dtype) if dtype.is_float() => scalar(&ctx.inner, object, dtype)?,
                _ => tensor_of(&ctx.inner, object, dtype)?,
            });
        }
    }
    Ok(operands)
}

/// Runs a call of a pipeline's method, which returns the pipeline.
///
/// # Safety
/// As [`call`]; the object is a pipeline.
unsafe fn recorded<'py>(
    py: Python<'py>,
    op: Op,
    object: *mut PyObject,
    arguments: &[*mut PyObject],
    names: *mut PyObject,
) -> Result<Bound<'py, PyAny>> {
    // SAFETY: as the caller says.
    let pipeline = unsafe { of::<PyPipeline>(py, &object) };
    let first = pipeline.current(py)?;
    // If the operands are one sequence, the pipeline's value is its first one.
    let (first, before) = if repeats(op) { (None, first) } else { (first, None) };
    // SAFETY: passed on.
    let given = unsafe { given(py, op, first, arguments, names)? };
    let mut operands: Objects<'_> = before.into_iter().map(Some).collect();
    match &given[0] {
        Some(all) if repeats(op) => {
            for object in all.try_iter()? {
                operands.push(Some(object?));
            }
        }
        _ => operands.extend(given[..op.info().operands.len()].iter().cloned()),
    }
    pipeline.record(op, &operands, || attributes(op, &given))?;
    // SAFETY: it is the object of the call.
    Ok(unsafe { Bound::from_borrowed_ptr(py, object) })
}

/// Returns whether an operation's operands are one sequence.
pub fn repeats(op: Op) -> bool {
    op.info().operands[0].as_bytes().last() == Some(&b'*')
}

/// Returns the argument of each parameter. `first` is already the argument of the first one.
///
/// # Safety
/// As [`call`].
unsafe fn given<'py>(
    py: Python<'py>,
    op: Op,
    first: Option<Bound<'py, PyAny>>,
    arguments: &[*mut PyObject],
    names: *mut PyObject,
) -> Result<Given<'py>> {
    let info = op.info();
    let (all, skipped) = (parameters(info).count(), usize::from(first.is_some()));
    let mut given: Given<'py> = SmallVec::from_elem(None, all);
    // SAFETY: arguments are objects: first the positional ones, then as many as there are names.
    unsafe {
        let object_of = |pointer: *mut PyObject| Bound::from_borrowed_ptr(py, pointer);
        let value_is_none = |pointer: *mut PyObject| pointer == pyo3::ffi::Py_None();
        let names = Bound::from_borrowed_ptr_or_opt(py, names).map(|names| names.cast_into_unchecked::<PyTuple>());
        let named = names.as_ref().map_or(0, |names| names.len());
        let (positional, keywords) = arguments.split_at(arguments.len() - named);
        if skipped + positional.len() > all {
            let most = all - skipped;
            return Err(wrong_type(format!("{op}() takes at most {most} arguments, not {}", positional.len())));
        }
        given[0] = first;
        for (to, &from) in given[skipped..].iter_mut().zip(positional) {
            *to = Some(object_of(from));
        }
        for (name, &value) in names.iter().flatten().zip(keywords) {
            let name = name.cast_into_unchecked::<PyString>();
            let name = name.to_str()?;
            let own = attributes::known(op, name);
            let Some(at) = parameters(info).position(|(known, _)| known == own) else {
                // NumPy's functions pass these to the method that they call.
                if value_is_none(value) && matches!(name, "out" | "dtype") {
                    continue;
                }
                return Err(wrong_type(format!("{op}() has no parameter '{name}'")));
            };
            if own != name && value_is_none(value) {
                continue;
            }
            if given[at].replace(object_of(value)).is_some() {
                return Err(wrong_type(format!("{op}() got '{name}' twice")));
            }
        }
    }
    Ok(given)
}

/// Returns the attributes among the arguments.
fn attributes(op: Op, given: &Given<'_>) -> Result<Attrs> {
    let mut attrs = Attrs::default();
    let info = op.info();
    for (name, value) in info.attrs.iter().zip(&given[info.operands.len()..]) {
        if let Some(value) = value {
            attributes::set(&mut attrs, op, name, value)?;
        }
    }
    Ok(attrs)
}
