//! Every operation of the core's table as a function of the module and a method of contexts, tensors and pipelines.
//!
//! They are made from the table when the module is imported, so a new operation of the core needs no line here. They are plain
//! "vectorcall" functions with one body for all operations. One PyO3 method for each would be larger and slower to call.

use crate::context::PyContext;
use crate::operations::{Place, call, parameters, repeats};
use crate::pipeline::PyPipeline;
use crate::tensor::PyTensor;
use adead::{Attrs, Op, OpInfo, OpKind};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::{CString, c_void};

/// Runs operation `OP` of the table at place `PLACE`, called by Python.
unsafe extern "C" fn function<const OP: usize, const PLACE: u8>(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: isize,
    names: *mut PyObject,
) -> *mut PyObject {
    let place = [Place::Module, Place::Context, Place::Tensor, Place::Pipeline][PLACE as usize];
    // SAFETY: Python calls it as it was declared, and only numbers of the table are handed out. With names, `count`
    // counts only the positional arguments.
    unsafe {
        let named = if names.is_null() { 0 } else { ffi::PyTuple_Size(names) };
        call(Op::ALL[OP], place, object, arguments, count + named, names)
    }
}

type Function = unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, isize, *mut PyObject) -> *mut PyObject;

/// The functions of a place, by operation.
struct Functions<const PLACE: u8>;

macro_rules! functions {
    ($($number:literal)*) => {
        impl<const PLACE: u8> Functions<PLACE> {
            const ALL: &'static [Function] = &[$(function::<$number, PLACE>,)*];
        }
    };
}

// One number for each operation, and spares for later ones. Those beyond the table are never handed out.
functions!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
    40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79);
const _: () = assert!(Functions::<0>::ALL.len() >= Op::ALL.len(), "functions! needs more numbers");

/// Returns the signature of an operation, as `inspect` and the stubs read it.
fn signature(name: &str, info: &'static OpInfo, place: Place) -> String {
    let mut text = format!("{name}(");
    if place == Place::Module {
        text.push_str("$module, /");
    } else {
        text.push_str("$self, /");
    }
    // In a pipeline, only the first operation names the operand that the later ones take from the pipeline.
    let has_first = place == Place::Tensor || (place == Place::Pipeline && !info.operands[0].ends_with('*'));
    let skipped = usize::from(has_first);
    let last_needed = info.operands.iter().rposition(|name| !name.ends_with('?')).unwrap_or_default();
    for (i, (name, is_operand)) in parameters(info).enumerate().skip(skipped) {
        let needed = is_operand && i <= last_needed;
        text.push_str(", ");
        text.push_str(name);
        if !needed {
            text.push('=');
            text.push_str(&if is_operand { "None".into() } else { default(info, name) });
        }
    }
    // NumPy's word, so that calls written for its arrays have types too.
    if info.attrs.contains(&"keepdim") {
        text.push_str(", *, keepdims=None");
    }
    text.push(')');
    text
}

/// Returns an attribute's default as Python writes it. None stands for what has no value of its own, such as all axes.
fn default(info: &'static OpInfo, name: &str) -> String {
    let flag = |value: bool| if value { "True".to_string() } else { "False".to_string() };
    match (name, info.name) {
        ("trans_a", _) => flag(Attrs::DEFAULT.trans_a),
        ("trans_b", _) => flag(Attrs::DEFAULT.trans_b),
        ("keepdim", _) => flag(Attrs::DEFAULT.keepdim),
        ("causal", _) => flag(Attrs::DEFAULT.causal),
        ("interleaved", _) => flag(Attrs::DEFAULT.interleaved),
        ("alpha", _) => format!("{:?}", Attrs::DEFAULT.alpha),
        ("beta", _) => format!("{:?}", Attrs::DEFAULT.beta),
        ("eps", _) => format!("{:?}", Attrs::DEFAULT.eps),
        ("k", _) => Attrs::DEFAULT.k.to_string(),
        ("form", _) => "'erf'".into(),
        ("activation", "ffn") => "'relu'".into(),
        ("activation", _) => "'none'".into(),
        ("dtype", "cast") => "'f32'".into(),
        ("dtype", _) => "'i64'".into(),
        ("axis", "concat") => "0".into(),
        // A reduction reduces all axes.
        ("axis", _) if info.attrs.contains(&"keepdim") => "None".into(),
        ("axis", _) => "-1".into(),
        _ => "None".into(),
    }
}

/// Returns what an attribute means, for the help text.
fn meaning(info: &'static OpInfo, name: &str) -> &'static str {
    match name {
        "trans_a" => "whether a is stored transposed",
        "trans_b" => "whether b is stored transposed",
        "keepdim" => "whether reduced axes are kept, with size 1",
        "causal" => "whether a query sees only keys up to its own position",
        "interleaved" => "whether a pair is two adjacent elements instead of one element of each half",
        "alpha" if info.name == "scale" => "the factor",
        "alpha" => "the factor of the product",
        "beta" => "the factor of c",
        "eps" => "added to the variance",
        "scale" => "the factor of the scores; None is 1/sqrt(D)",
        "min" => "the lower bound; None is -inf",
        "max" => "the upper bound; None is inf",
        "axis" if info.attrs.contains(&"axes") => "an int, a tuple of ints, or None for all axes",
        "axis" if info.attrs.contains(&"keepdim") => "an int, or None for all elements in row-major order",
        "axis" => "the axis; a negative one counts from the end",
        "axes" => "the same as a tuple for axis",
        "k" => "the number of elements",
        "dtype" => "the result's dtype",
        "form" => "'erf' or 'tanh'",
        "activation" => "a name of adead.ACTIVATIONS, applied to the product",
        "precision" => "'f32', 'fixed24' or 'fixed16'; None is the context's, and for attention 'f32'",
        "format" => "required; a name of adead.BLOCK_FORMATS",
        "perm" => "the order of the axes; None reverses them",
        "start" => "the first index on each axis; None is 0",
        "stop" => "the end on each axis; None is the end of the axis",
        "step" => "the step on each axis, at least 1; None is 1",
        "before" => "the number of elements added before each axis; None is 0",
        "after" => "the number of elements added after each axis; None is 0",
        _ => "see https://adead.github.io/adead/operations.html",
    }
}

/// Makes a definition for Python, which lives as long as the process.
fn definition(name: &str, op: Op, place: Place, functions: &[Function]) -> PyResult<*mut ffi::PyMethodDef> {
    let (name, doc) = (CString::new(name)?, CString::new(documentation(name, op, place))?);
    // Operations' numbers have gaps; the functions are in the table's order.
    let at = Op::ALL.iter().position(|&known| known == op).unwrap_or_default();
    Ok(Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: functions[at] },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.into_raw(),
    })))
}

fn documentation(name: &str, op: Op, place: Place) -> String {
    let info = op.info();
    let what = match place {
        Place::Module => "on the default context",
        Place::Context => "on this context",
        Place::Tensor => "of this tensor on the default context",
        Place::Pipeline => "of the previous result. The first call names all operands",
    };
    let about = op.about();
    let mut text = format!("{}\n--\n\n{about}\n\nThe operation {} {what}.", signature(name, info, place), info.name);
    for operand in info.operands {
        let kind = match operand.chars().last() {
            Some('*') => "a sequence of tensors or arrays, of one dtype",
            Some('?') => "a tensor, an array or None",
            _ if matches!(op.kind(), OpKind::Binary | OpKind::Comparison) => {
                "a tensor, an array or a number; the operands are broadcast"
            }
            _ => "a tensor or an array",
        };
        text += &format!("\n\n{}: {kind}.", operand.trim_end_matches(['?', '*']));
    }
    for attribute in info.attrs {
        text += &format!("\n\n{attribute}: {}.", meaning(info, attribute));
    }
    if info.attrs.contains(&"keepdim") {
        text += "\n\nkeepdims: the same as keepdim.";
    }
    text + "\n\nRaises ShapeMismatchError or DtypeMismatchError if operands don't fit. The rules: https://adead.github.io/adead/operations.html"
}

/// Adds the functions to the module and the methods to the classes.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let tensors = py.get_type::<PyTensor>();
    PyTensor::remember(&tensors);
    let contexts = py.get_type::<PyContext>();
    let pipelines = py.get_type::<PyPipeline>();
    let method = |class: &Bound<'_, PyType>, name: &str, op: Op, place: Place, functions: &[Function]| {
        let def = definition(name, op, place, functions)?;
        // SAFETY: definitions live on; the result is a new reference, or NULL with an exception.
        let method = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), def))? };
        class.setattr(name, method)
    };
    for &op in Op::ALL {
        let name = module.name()?;
        // SAFETY: as above.
        let function = unsafe {
            let def = definition(op.name(), op, Place::Module, Functions::<0>::ALL)?;
            Bound::from_owned_ptr_or_err(py, ffi::PyCFunction_NewEx(def, module.as_ptr(), name.as_ptr()))?
        };
        module.add(op.name(), function)?;
        method(&contexts, op.name(), op, Place::Context, Functions::<1>::ALL)?;
        // A tensor has no method for operations whose operands are one sequence.
        if !repeats(op) {
            method(&tensors, op.name(), op, Place::Tensor, Functions::<2>::ALL)?;
        }
        method(&pipelines, op.name(), op, Place::Pipeline, Functions::<3>::ALL)?;
    }
    // `bias` is an addition that a product can fuse; the core's chains use the same name.
    method(&pipelines, "bias", Op::Add, Place::Pipeline, Functions::<3>::ALL)?;
    // `ml_meth` is a union. If its size were wrong, Python would read a wrong function pointer.
    const _: () = assert!(size_of::<ffi::PyMethodDefPointer>() == size_of::<*mut c_void>());
    Ok(())
}
