//! Python's values as tensors and operands: numbers, nested sequences, arrays, DLPack.

use crate::buffers::{Doubles, Exported};
use crate::dlpack;
use crate::errors::{Result, detached_copy, fail, wrong_type};
use crate::tensor::PyTensor;
use adead::{Attrs, Context, DType, MAX_RANK, Meta, Op, Packed, Tensor, View};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};
use std::alloc::{Layout, alloc_zeroed};
use std::ptr;

/// A packed matrix, used as the b of `matmul`. `Context.pack` makes it. It never changes.
#[pyclass(frozen, module = "adead", name = "Packed")]
pub struct PyPacked(pub Packed);

#[pymethods]
impl PyPacked {
    /// The dimensions K and N, in this order for both layouts of the matrix.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().dims())
    }

    /// The dtype of the matrix that was packed.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype().name()
    }

    /// Bytes of memory that it takes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// An operand while a call lasts.
pub enum Operand<'py> {
    /// None.
    Absent,
    Tensor(Bound<'py, PyTensor>),
    Packed(Bound<'py, PyPacked>),
    /// An array that is read in place.
    Array(Exported<'py>, Meta),
    /// A value that was made for the call.
    Own(Tensor),
}

impl<'py> Operand<'py> {
    /// Makes an operand from a tensor, a packed matrix, an array, an object with DLPack, or None. Float64 arrays become f32.
    pub fn new(object: &Bound<'py, PyAny>) -> Result<Operand<'py>> {
        Operand::with(object, Doubles::Narrowed)
    }

    /// Does the same, where float64 arrays may keep their dtype.
    pub fn with(object: &Bound<'py, PyAny>, doubles: Doubles) -> Result<Operand<'py>> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Operand::Tensor(tensor.clone()));
        }
        if object.is_none() {
            return Ok(Operand::Absent);
        }
        if let Ok(packed) = object.cast::<PyPacked>() {
            return Ok(Operand::Packed(packed.clone()));
        }
        if Exported::supports_buffer_protocol(object) {
            let array = Exported::new(object, doubles)?;
            let meta = array.meta()?;
            return Ok(match array.is_plain(&meta) {
                true => Operand::Array(array, meta),
                false => Operand::Own(copied(&array, &meta)?),
            });
        }
        if dlpack::supports_dlpack(object)? {
            let tensor = dlpack::tensor(object, None)?;
            return Ok(Operand::Own(if doubles == Doubles::Narrowed { narrowed(tensor)? } else { tensor }));
        }
        Err(wrong_type(format!(
            "an operand is a tensor, an array or None, not a {}: adead.Tensor(…) converts numbers and lists",
            object.get_type().name()?
        )))
    }

    /// Returns the core's view of it.
    pub fn view(&self) -> Option<View<'_>> {
        match self {
            Operand::Absent => None,
            Operand::Tensor(tensor) => Some(tensor.get().0.view()),
            Operand::Packed(packed) => Some(View::packed(&packed.get().0)),
            // SAFETY: the array is plain, aligned, and exported while this lives. As with NumPy, a thread that writes
            // to it meanwhile makes a mistake, and the operation then reads arbitrary bits.
            Operand::Array(array, meta) => Some(unsafe { View::from_raw(array.start(), meta) }),
            Operand::Own(tensor) => Some(tensor.view()),
        }
    }

    /// Returns a tensor; arrays are copied.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Operand::Tensor(tensor) => Ok(tensor.get().0.clone()),
            Operand::Array(array, meta) => copied(array, meta),
            Operand::Own(tensor) => Ok(tensor.clone()),
            Operand::Absent => Err(wrong_type("expected a tensor, not None".into())),
            Operand::Packed(_) => Err(wrong_type("expected a tensor, not a packed matrix".into())),
        }
    }
}

/// Returns whether an object is an f64 tensor.
pub fn is_f64_tensor(object: &Bound<'_, PyAny>) -> bool {
    object.cast::<PyTensor>().is_ok_and(|tensor| tensor.get().0.dtype() == DType::F64)
}

/// Returns a tensor in host memory with f64 rounded to f32, as [`Doubles::Narrowed`] says.
fn narrowed(tensor: Tensor) -> Result<Tensor> {
    if tensor.dtype() != DType::F64 {
        return Ok(tensor);
    }
    let mut values = reserved(tensor.len())?;
    values.extend(tensor.as_doubles()?.iter().map(|&value| value as f32));
    Ok(Tensor::new(&values, tensor.dims())?)
}

/// Makes a tensor with a copy of an array.
pub fn copied(array: &Exported<'_>, meta: &Meta) -> Result<Tensor> {
    if array.is_plain(meta) {
        let bytes = array.bytes();
        return detached_copy(array.py(), bytes.len(), || Tensor::from_bytes(bytes, meta.dtype, meta.shape.dims()));
    }
    let mut bytes = reserved(meta.bytes())?;
    // SAFETY: there is room for `meta.bytes()` bytes, and every element is written.
    unsafe {
        if let Some(to) = std::ptr::NonNull::new(bytes.as_mut_ptr()) {
            array.gather(to, meta);
        }
        bytes.set_len(meta.bytes());
    }
    Ok(Tensor::from_bytes(&bytes, meta.dtype, meta.shape.dims())?)
}

/// Reserves room for values; an error instead of an abort without memory.
pub fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    if room.try_reserve_exact(count).is_err() {
        let size = size_of::<T>();
        fail!(OutOfMemory, "can't allocate {count} times {size} bytes: refused by the system");
    }
    Ok(room)
}

/// Allocates zeroed words; an error instead of an abort without memory. The system provides large pieces zeroed, so no
/// code has to clear them.
pub fn zeroed(count: usize) -> Result<Vec<u64>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout has a size above 0.
    let first = Layout::array::<u64>(count).map_or(ptr::null_mut(), |layout| unsafe { alloc_zeroed(layout) });
    if first.is_null() {
        fail!(OutOfMemory, "can't allocate {count} times 8 bytes: refused by the system");
    }
    // SAFETY: this allocator allocated it, with the layout of this many words, which are zero.
    Ok(unsafe { Vec::from_raw_parts(first.cast(), count, count) })
}

/// Makes a tensor from an array, an object with DLPack, a number or nested sequences of numbers, and casts it if a
/// dtype is given. Without one, floats become f32, ints i64, bools bool; float64 arrays become f32.
pub fn tensor_of(ctx: &Context, object: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<Tensor> {
    if !is_number(object) && !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
        let tensor = Operand::with(object, Doubles::towards(dtype))?.tensor()?;
        return cast(ctx, tensor, dtype);
    }
    let mut numbers = Numbers { dims: Vec::new(), values: Vec::new(), integers: true, bools: true };
    numbers.read(object, 0)?;
    let Numbers { dims, values, integers, bools } = numbers;
    let own = match values.is_empty() {
        false if bools => DType::Bool,
        false if integers => DType::I64,
        _ => DType::default(),
    };
    let exact = dtype.unwrap_or(own);
    if exact == DType::Bool {
        let values: Vec<bool> = values.iter().map(|value| value.float() != 0.0).collect();
        return Ok(Tensor::from_bools(&values, &dims)?);
    }
    if exact == DType::F32 {
        // A large int becomes the nearest f64, and then the nearest f32, as in NumPy.
        let values: Vec<f32> = values.iter().map(|value| value.float() as f32).collect();
        return Ok(Tensor::new(&values, &dims)?);
    }
    if exact.is_float() {
        let values: Vec<f64> = values.iter().map(Number::float).collect();
        return cast(ctx, Tensor::from_doubles(&values, &dims)?, dtype);
    }
    let values: Vec<i64> = values.iter().map(Number::integer).collect::<Result<_>>()?;
    for &value in &values {
        let fits = match exact {
            DType::I32 => i32::try_from(value).is_ok(),
            DType::U32 => u32::try_from(value).is_ok(),
            DType::U8 => u8::try_from(value).is_ok(),
            _ => true,
        };
        if !fits {
            fail!(InvalidArgument, "{value} does not fit in {exact}");
        }
    }
    cast(ctx, Tensor::new(&values, &dims)?, dtype)
}

fn cast(ctx: &Context, tensor: Tensor, dtype: Option<DType>) -> Result<Tensor> {
    match dtype {
        Some(to) if to != tensor.dtype() => {
            Ok(ctx.run(Op::Cast, &Attrs { dtype: Some(to), ..Attrs::default() }, &[Some(&tensor)])?)
        }
        _ => Ok(tensor),
    }
}

/// Returns whether it is a number, which as an operator's other operand becomes a scalar.
pub fn is_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>() || is_scalar(object)
}

/// Returns whether a number is an int, or another library's integer.
pub fn is_integer(number: &Bound<'_, PyAny>) -> bool {
    !number.is_instance_of::<PyFloat>()
        && (number.is_instance_of::<PyInt>() || number.hasattr("__index__").unwrap_or(false))
}

/// Returns whether the type has a length, as arrays and sequences do: quicker than to look up the method's name.
fn has_length(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object's type lives as long as the object, and every type may be asked for its slots.
    unsafe { !ffi::PyType_GetSlot(ffi::Py_TYPE(object.as_ptr()), ffi::Py_mp_length).is_null() }
}

/// Returns whether it is another library's number, such as NumPy's. Unlike an array, it becomes a float or an int and
/// has no length.
fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    let has = |name| object.hasattr(name).unwrap_or(false);
    if object.is_none() || has_length(object) || has("__len__") || !(has("__float__") || has("__index__")) {
        return false;
    }
    // NumPy's complex numbers and bools have those methods, too.
    let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
    kind.map_or(true, |kind| kind.extract::<&str>().is_ok_and(|kind| matches!(kind, "f" | "i" | "u")))
}

/// Makes a number a scalar of a dtype, as an operator's other operand.
pub fn scalar(ctx: &Context, number: &Bound<'_, PyAny>, dtype: DType) -> Result<Tensor> {
    let number = number.extract::<f64>()?;
    if dtype == DType::F64 {
        return Ok(Tensor::from_doubles(&[number], &[])?);
    }
    let value = Tensor::new(&[number as f32], &[])?;
    cast(ctx, value, Some(dtype).filter(|dtype| dtype.is_float()))
}

#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Integer(i64),
}

impl Number {
    fn float(&self) -> f64 {
        match *self {
            Number::Float(value) => value,
            Number::Integer(value) => value as f64,
        }
    }

    fn integer(&self) -> Result<i64> {
        match *self {
            Number::Integer(value) => Ok(value),
            Number::Float(value) => fail!(DtypeMismatch, "{value} is a float, but the dtype is an integer type"),
        }
    }
}

/// Nested sequences, read in order.
struct Numbers {
    /// The lengths of the first sequence of each depth.
    dims: Vec<usize>,
    values: Vec<Number>,
    integers: bool,
    bools: bool,
}

impl Numbers {
    fn read(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        let number = match () {
            () if object.is_instance_of::<PyInt>() => Some(Number::Integer(object.extract()?)),
            () if object.is_instance_of::<PyFloat>() => Some(Number::Float(object.extract()?)),
            () if !is_scalar(object) => None,
            () if object.hasattr("__index__")? => Some(Number::Integer(object.extract()?)),
            () => Some(Number::Float(object.extract()?)),
        };
        if let Some(number) = number {
            if depth != self.dims.len() {
                fail!(ShapeMismatch, "expected a sequence of {}, got a number", self.dims[depth]);
            }
            self.bools &= object.is_instance_of::<PyBool>();
            self.integers &= matches!(number, Number::Integer(_));
            self.values.push(number);
            return Ok(());
        }
        if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
            return Err(wrong_type(format!("a {} is not a number", object.get_type().name()?)));
        }
        let length = object.len()?;
        match self.dims.get(depth) {
            None if self.values.is_empty() && depth < MAX_RANK => self.dims.push(length),
            Some(&expected) if expected == length => {}
            Some(expected) => fail!(ShapeMismatch, "a sequence has {length} entries, another has {expected}"),
            None => fail!(ShapeMismatch, "expected a number, got a sequence at depth {depth}"),
        }
        if self.values.try_reserve(length).is_err() {
            fail!(OutOfMemory, "no memory for {length} more numbers");
        }
        for item in object.try_iter()? {
            self.read(&item?, depth + 1)?;
        }
        Ok(())
    }
}
