//! Fused pipelines: operations that are recorded and run as a whole. `methods.rs` makes the methods of operations.

use crate::buffers::Doubles;
use crate::contents::dimensions;
use crate::device::PyDevice;
use crate::dtypes::Named;
use crate::errors::{Result, fail, guard, interruptible};
use crate::operations::Objects;
use crate::tensor::PyTensor;
use crate::values;
use adead::pipeline::{CacheUse, Compiled, Operand, Pipeline, Value};
use adead::{Attrs, Context, DType, Error, Meta, Op, Status, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value of a pipeline: an input, a constant or the result of an operation. `Pipeline.value` is one.
#[pyclass(frozen, module = "adead", name = "Value")]
pub struct PyValue {
    value: Value,
    meta: Meta,
}

#[pymethods]
impl PyValue {
    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.meta.shape.dims())
    }

    /// The dtype of its elements.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.meta.dtype.name()
    }

    fn __repr__(&self) -> String {
        format!("Value({:?})", self.meta)
    }
}

/// What `Pipeline.no_grad` returns.
#[pyclass(frozen, module = "adead", name = "NoGrad")]
pub struct PyNoGrad {
    pipeline: Py<PyPipeline>,
    /// By the blocks that are open: what was set before.
    before: Mutex<Vec<bool>>,
}

#[pymethods]
impl PyNoGrad {
    fn __enter__(&self) {
        let before = self.pipeline.get().set_grad_enabled(false);
        self.before.lock().unwrap_or_else(PoisonError::into_inner).push(before);
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        if let Some(before) = self.before.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            self.pipeline.get().set_grad_enabled(before);
        }
    }
}

/// Records operations, to be run as a whole. Make one with `Context.pipeline`.
///
/// Each operation is a method with the parameters of the context's method. Each call takes the previous result as its first
/// operand. Only the first call names all operands. Operands are values of this pipeline; tensors and arrays are constants. A
/// call that fails changes nothing.
#[pyclass(frozen, module = "adead", name = "Pipeline")]
pub struct PyPipeline(Mutex<State>);

struct State {
    pipeline: Pipeline,
    /// The value that the next operation takes.
    value: Option<Value>,
    /// Whether `output` was called.
    named: bool,
    /// What to call for the gradients of values.
    hooks: Vec<(Value, Arc<Py<PyAny>>)>,
}

impl State {
    fn current(&self) -> Result<Value> {
        match self.value {
            Some(value) => Ok(value),
            None => fail!(InvalidArgument, "the pipeline has no value yet: it begins with an input or an operation"),
        }
    }
}

impl PyPipeline {
    /// Makes an empty pipeline.
    pub fn new(ctx: &Context) -> PyPipeline {
        PyPipeline(Mutex::new(State { pipeline: ctx.pipeline(), value: None, named: false, hooks: Vec::new() }))
    }

    /// Locks the state. No Python code runs while it is locked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current value as an object, if there is one.
    pub fn current<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        let value = {
            let state = self.lock();
            let Some(value) = state.value else { return Ok(None) };
            PyValue { value, meta: state.pipeline.meta(value)? }
        };
        Ok(Some(Bound::new(py, value)?.into_any()))
    }

    /// Records an operation. The operands are in the operation's order.
    pub fn record(&self, op: Op, objects: &Objects<'_>, attrs: impl FnOnce() -> Result<Attrs>) -> Result<()> {
        let is_f64 = |object: &Bound<'_, PyAny>| match object.cast::<PyValue>() {
            Ok(value) => value.get().meta.dtype == DType::F64,
            Err(_) => values::is_f64_tensor(object),
        };
        let doubles = Doubles::beside(op == Op::Cast || objects.iter().flatten().any(is_f64));
        let given = objects.iter().map(|object| match object {
            Some(object) => Given::new(object, doubles),
            None => Ok(Given::Absent),
        });
        let given: SmallVec<[Given; 5]> = given.collect::<Result<_>>()?;
        let operands: SmallVec<[Option<Operand<'_>>; 5]> = given.iter().map(Given::operand).collect();
        let attrs = attrs()?;
        self.advance(|pipeline| pipeline.record(op, &attrs, &operands))
    }

    /// Makes the value that `next` returns the current one.
    fn advance(&self, next: impl FnOnce(&mut Pipeline) -> adead::Result<Value>) -> Result<()> {
        let mut state = self.lock();
        state.value = Some(next(&mut state.pipeline)?);
        Ok(())
    }

    /// Returns a copy to run. Without a call of `output`, the current value is its output.
    fn finished(&self) -> Result<Pipeline> {
        let state = self.lock();
        let mut pipeline = state.pipeline.clone();
        if let (false, Some(value)) = (state.named, state.value) {
            pipeline.output(value)?;
        }
        Ok(pipeline)
    }
}

/// An operand of a pipeline's operation.
enum Given {
    Absent,
    Value(Value),
    Tensor(Tensor),
}

impl Given {
    fn new(object: &Bound<'_, PyAny>, doubles: Doubles) -> Result<Given> {
        if let Ok(value) = object.cast::<PyValue>() {
            return Ok(Given::Value(value.get().value));
        }
        match values::Operand::with(object, doubles)? {
            values::Operand::Absent => Ok(Given::Absent),
            operand => Ok(Given::Tensor(operand.tensor()?)),
        }
    }

    fn operand(&self) -> Option<Operand<'_>> {
        match self {
            Given::Absent => None,
            Given::Value(value) => Some(Operand::Value(*value)),
            Given::Tensor(tensor) => Some(Operand::Tensor(tensor)),
        }
    }
}

#[pymethods]
impl PyPipeline {
    /// Adds an input and makes it the current value. Each run receives the inputs in the order of these calls.
    #[pyo3(signature = (shape, dtype=None))]
    fn input<'py>(
        slf: Bound<'py, PyPipeline>,
        shape: &Bound<'py, PyAny>,
        dtype: Option<Named>,
    ) -> Result<Bound<'py, PyPipeline>> {
        let (dtype, dims) = (dtype.map(|Named(dtype)| dtype).unwrap_or_default(), dimensions(shape)?);
        slf.get().advance(|pipeline| pipeline.input(dtype, &dims))?;
        Ok(slf)
    }

    /// Adds a constant, a tensor that is the same in each run, and makes it the current value.
    fn constant<'py>(slf: Bound<'py, PyPipeline>, tensor: &Bound<'py, PyAny>) -> Result<Bound<'py, PyPipeline>> {
        let tensor = values::Operand::new(tensor)?.tensor()?;
        slf.get().advance(|pipeline| pipeline.constant(&tensor))?;
        Ok(slf)
    }

    /// Gives the current value another shape with as many elements.
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(slf: Bound<'py, PyPipeline>, shape: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyPipeline>> {
        let dims = match shape.len() {
            1 => dimensions(&shape.get_item(0)?)?,
            _ => dimensions(shape)?,
        };
        {
            let mut state = slf.get().lock();
            let value = state.current()?;
            state.value = Some(state.pipeline.reshape(value, &dims)?);
        }
        Ok(slf)
    }

    /// Makes a value with the same elements as the current one. No gradient passes through it.
    fn detach(slf: Bound<'_, PyPipeline>) -> Result<Bound<'_, PyPipeline>> {
        {
            let mut state = slf.get().lock();
            let value = state.current()?;
            state.value = Some(state.pipeline.detach(value)?);
        }
        Ok(slf)
    }

    /// Sets whether gradients pass through what is recorded from now on, as they do at first. Returns what was set before. `no_grad`
    /// sets and restores it.
    fn set_grad_enabled(&self, enabled: bool) -> bool {
        self.lock().pipeline.set_grad_enabled(enabled)
    }

    /// In a `with` block: no gradient passes through what is recorded in it.
    fn no_grad(slf: Bound<'_, PyPipeline>) -> PyNoGrad {
        PyNoGrad { pipeline: slf.unbind(), before: Mutex::new(Vec::new()) }
    }

    /// Calls `function` when `gradients` has recorded the gradient of the current value. It receives the gradient, which is then also the
    /// current value, and returns what takes its place, or None.
    fn hook(slf: Bound<'_, PyPipeline>, function: Py<PyAny>) -> Result<Bound<'_, PyPipeline>> {
        {
            let mut state = slf.get().lock();
            let value = state.current()?;
            state.hooks.push((value, Arc::new(function)));
        }
        Ok(slf)
    }

    /// Records the gradients of the current value, which must have one element, such as a loss, with respect to values of this pipeline.
    /// Returns them in a list. The current value does not change. docs/training.md gives the rule of each operation.
    fn gradients<'py>(&self, py: Python<'py>, values: Vec<Bound<'py, PyValue>>) -> Result<Vec<Bound<'py, PyValue>>> {
        let by: Vec<Value> = values.iter().map(|value| value.get().value).collect();
        let (mut pipeline, loss, named, hooks) = {
            let mut state = self.lock();
            let loss = state.current()?;
            let empty = state.pipeline.context().pipeline();
            (std::mem::replace(&mut state.pipeline, empty), loss, state.named, state.hooks.clone())
        };
        let hooked: Vec<Value> = hooks.iter().map(|(value, _)| *value).collect();
        let mut raised = None;
        // A hook records into this object's pipeline, so the pipeline is back in it meanwhile.
        let found = pipeline.gradients_with(loss, &by, &hooked, &mut |pipeline, number, gradient| {
            let given = PyValue { value: gradient, meta: pipeline.meta(gradient)? };
            {
                let mut state = self.lock();
                std::mem::swap(&mut state.pipeline, pipeline);
                state.value = Some(gradient);
            }
            let returned = hooks[number].1.call1(py, (given,)).and_then(|found| {
                Ok(found.extract::<Option<Bound<'_, PyValue>>>(py)?.map_or(gradient, |found| found.get().value))
            });
            std::mem::swap(&mut self.lock().pipeline, pipeline);
            returned.map_err(|error| {
                raised = Some(error);
                Error::new(Status::InvalidArgument, "a hook raised an exception".to_owned())
            })
        });
        let found = {
            let mut state = self.lock();
            (state.pipeline, state.value, state.named) = (pipeline, Some(loss), named);
            if let Some(error) = raised {
                return Err(error.into());
            }
            let described = |value| Ok(PyValue { value, meta: state.pipeline.meta(value)? });
            found?.into_iter().map(described).collect::<Result<Vec<_>>>()?
        };
        Ok(found.into_iter().map(|value| Bound::new(py, value)).collect::<PyResult<_>>()?)
    }

    /// Makes an earlier value of this pipeline the current one.
    fn switch<'py>(slf: Bound<'py, PyPipeline>, value: &Bound<'py, PyValue>) -> Result<Bound<'py, PyPipeline>> {
        slf.get().advance(|pipeline| pipeline.operand(Operand::Value(value.get().value)))?;
        Ok(slf)
    }

    /// Makes the current value an output, in the order of these calls. Without a call, the last value is the output.
    fn output(slf: Bound<'_, PyPipeline>) -> Result<Bound<'_, PyPipeline>> {
        {
            let mut state = slf.get().lock();
            let value = state.current()?;
            state.pipeline.output(value)?;
            state.named = true;
        }
        Ok(slf)
    }

    /// The current value, which the next operation takes. Keep it to use it again later.
    #[getter]
    fn value(&self) -> Result<PyValue> {
        let state = self.lock();
        let value = state.current()?;
        Ok(PyValue { value, meta: state.pipeline.meta(value)? })
    }

    /// Plans what is recorded so far for the device with the lowest estimated time.
    fn compile(&self, py: Python<'_>) -> Result<PyCompiled> {
        let pipeline = self.finished()?;
        Ok(PyCompiled(interruptible(py, || pipeline.compile())?))
    }

    /// Runs what is recorded so far, without inputs. Returns the output, or a tuple of several outputs.
    fn execute<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let pipeline = self.finished()?;
        outputs(py, interruptible(py, || pipeline.execute())?)
    }

    fn __repr__(&self) -> Result<String> {
        let state = self.lock();
        match state.value {
            Some(value) => Ok(format!("Pipeline({:?})", state.pipeline.meta(value)?)),
            None => Ok("Pipeline()".into()),
        }
    }
}

/// A compiled pipeline, which runs any number of times. Threads may share it.
#[pyclass(frozen, module = "adead", name = "Compiled")]
pub struct PyCompiled(Compiled);

#[pymethods]
impl PyCompiled {
    /// Runs the pipeline on its inputs, in the order of the `input` calls. Returns the output, or a tuple of several outputs.
    #[pyo3(signature = (*inputs))]
    fn run<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        let metas = self.0.inputs();
        let given = inputs.iter().enumerate().map(|(i, input)| {
            let has_f64 = metas.get(i).is_some_and(|meta| meta.dtype == DType::F64);
            values::Operand::with(&input, Doubles::beside(has_f64))?.tensor()
        });
        let tensors: Vec<Tensor> = given.collect::<Result<_>>()?;
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        outputs(py, interruptible(py, || self.0.run(&tensors))?)
    }

    /// Does the same as `run`.
    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        self.run(py, inputs)
    }

    /// The device that it runs on.
    #[getter]
    fn device(&self) -> PyDevice {
        self.0.device().into()
    }

    /// Shape and dtype of each input.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        described(py, self.0.inputs())
    }

    /// Shape and dtype of each output.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        described(py, self.0.outputs())
    }

    /// The number of steps. A step is one kernel if its operation needs only one.
    #[getter]
    fn steps(&self) -> usize {
        self.0.steps()
    }

    /// The number of recorded operations that an output needs.
    #[getter]
    fn operations(&self) -> usize {
        self.0.operations()
    }

    /// Bytes of the memory that intermediate values share. On a GPU it includes inputs and outputs.
    #[getter]
    fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Returns the plan as a graph in the DOT language, which Graphviz draws.
    fn to_dot(&self) -> Result<String> {
        guard(|| Ok(self.0.to_dot()))
    }

    /// Returns the plan as text, with a line for each step.
    fn __str__(&self) -> Result<String> {
        guard(|| Ok(self.0.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Returns a run's output: a tensor, or a tuple of several.
fn outputs(py: Python<'_>, mut tensors: Vec<Tensor>) -> Result<Bound<'_, PyAny>> {
    if tensors.len() == 1 {
        return Ok(Bound::new(py, PyTensor(tensors.remove(0)))?.into_any());
    }
    Ok(PyTuple::new(py, tensors.into_iter().map(PyTensor))?.into_any())
}

/// Returns pairs of shape and dtype.
fn described<'py>(py: Python<'py>, metas: Vec<Meta>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let pair = |meta: Meta| (PyTuple::new(py, meta.shape.dims())?, meta.dtype.name()).into_bound_py_any(py);
    metas.into_iter().map(pair).collect()
}

/// Returns how a context's cache of compiled pipelines was used.
pub fn cache_use<'py>(py: Python<'py>, ctx: &Context) -> Result<Bound<'py, PyDict>> {
    let CacheUse { entries, most, hits, misses } = ctx.pipeline_cache();
    let dict = PyDict::new(py);
    for (name, value) in [("entries", entries as u64), ("most", most as u64), ("hits", hits), ("misses", misses)] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
