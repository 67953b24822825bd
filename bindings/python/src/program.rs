//! Programs of opcodes.

use crate::buffers::Exported;
use crate::context::PyContext;
use crate::current::default_context;
use crate::errors::{Result, detached, fail, guard, interruptible};
use crate::survey::PySurvey;
use crate::tensor::PyTensor;
use crate::values::Operand;
use adead::program::{Format, Program, RunOptions, Slot, Trace};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// A decoded program. It never changes, so that threads may share one.
#[pyclass(frozen, module = "adead", name = "Program")]
pub struct PyProgram(Arc<Program>);

impl PyProgram {
    /// A program for Python.
    pub fn new(program: Program) -> PyProgram {
        PyProgram(Arc::new(program))
    }
}

/// The limit that is said, else core's.
fn limit(bytes: Option<usize>) -> usize {
    bytes.unwrap_or(RunOptions::default().memory_limit)
}

#[pymethods]
impl PyProgram {
    /// Decodes .adead, AGPU, AHYB, .hex text or program text: which one, the bytes say.
    #[staticmethod]
    fn decode(py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<PyProgram> {
        let data = Exported::bytes_of(data)?;
        let bytes = data.bytes();
        Ok(PyProgram::new(detached(py, || Program::decode(bytes))?))
    }

    /// Decodes a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<PyProgram> {
        Ok(PyProgram::new(detached(py, || Program::load(&path))?))
    }

    /// Assembles program text, `.adead 1` or `.agpu 1`.
    #[staticmethod]
    fn assemble(py: Python<'_>, text: &str) -> Result<PyProgram> {
        Ok(PyProgram::new(detached(py, || Program::assemble(text))?))
    }

    /// Text that `assemble` makes this program of again.
    fn disassemble(&self) -> Result<String> {
        guard(|| Ok(self.0.disassemble()))
    }

    /// The program as a file: "adead", "agpu", "hex" or "text".
    #[pyo3(signature = (format="adead"))]
    fn encode<'py>(&self, py: Python<'py>, format: &str) -> Result<Bound<'py, PyBytes>> {
        let bytes = guard(|| {
            Ok(match format {
                format if format == Format::Adead.name() => self.0.encode(),
                format if format == Format::Agpu.name() => self.0.encode_agpu()?,
                format if format == Format::Hex.name() => self.0.encode_hex()?.into_bytes(),
                format if format == Format::Text.name() => self.0.disassemble().into_bytes(),
                format if format == Format::Ahyb.name() => {
                    fail!(Unsupported, "AHYB files are read, not written; use 'agpu'")
                }
                _ => fail!(InvalidArgument, "no format '{format}': adead, agpu, hex or text"),
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What it was decoded from.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format().name()
    }

    /// Whether all of it is AGPU.
    #[getter]
    fn is_agpu(&self) -> bool {
        self.0.is_agpu()
    }

    /// Its named inputs and outputs.
    #[getter]
    fn slots(&self) -> Vec<PySlot> {
        self.0.slots().iter().cloned().map(PySlot).collect()
    }

    /// What an AHYB file named.
    #[getter]
    fn symbols<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let symbols = PyDict::new(py);
        for symbol in self.0.symbols() {
            symbols.set_item(&symbol.name, symbol.value)?;
        }
        Ok(symbols)
    }

    /// What a user should know: parts that were skipped, opcodes that do nothing.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.report().to_vec()
    }

    /// The text of one instruction. `IndexError` for one that is not there.
    fn line(&self, instruction: usize) -> Result<String> {
        match self.0.line(instruction) {
            Some(line) => Ok(line),
            None => {
                let text = format!("instruction {instruction} of {}", self.0.len());
                Err(pyo3::exceptions::PyIndexError::new_err(text).into())
            }
        }
    }

    /// Checks everything that can be without data, and gives the most bytes that it takes at once.
    #[pyo3(signature = (memory_limit=None))]
    fn validate(&self, py: Python<'_>, memory_limit: Option<usize>) -> Result<usize> {
        detached(py, || Ok(self.0.validate(limit(memory_limit))?.memory()))
    }

    /// Prices it step by step without running it, and finds what would waste a GPU.
    #[pyo3(signature = (context=None))]
    fn survey(&self, py: Python<'_>, context: Option<&Bound<'_, PyContext>>) -> Result<PySurvey> {
        let ctx = match context {
            Some(ctx) => ctx.clone(),
            None => default_context(py)?,
        };
        let ctx = ctx.get();
        let survey = detached(py, || self.0.survey(ctx.inner.dispatcher()))?;
        let devices = ctx.inner.dispatcher().profiles().iter().map(|profile| profile.id.clone()).collect();
        Ok(PySurvey { survey, devices })
    }

    /// Runs it: inputs are a dict of what can be tensors, by the name of their slot.
    #[pyo3(signature = (inputs=None, *, context=None, memory_limit=None, parallel=None))]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyDict>>,
        context: Option<&Bound<'_, PyContext>>,
        memory_limit: Option<usize>,
        parallel: Option<bool>,
    ) -> Result<PyOutcome> {
        let ctx = match context {
            Some(ctx) => ctx.clone(),
            None => default_context(py)?,
        };
        let ctx = ctx.get();
        let mut options = RunOptions::default();
        options.memory_limit = limit(memory_limit);
        options.parallel = parallel.unwrap_or(options.parallel);
        for (name, value) in inputs.into_iter().flatten() {
            options.inputs.push((name.extract()?, Operand::new(&value)?.tensor()?));
        }
        let outcome = interruptible(py, || self.0.run(&ctx.inner, &options))?;
        let outputs = PyDict::new(py);
        for (name, tensor) in outcome.outputs {
            outputs.set_item(name, Bound::new(py, PyTensor(tensor))?)?;
        }
        Ok(PyOutcome {
            outputs: outputs.unbind(),
            instructions: outcome.instructions,
            flops: outcome.flops,
            seconds: outcome.seconds,
            memory: outcome.memory,
            trace: outcome.trace.into_iter().map(PyTrace::from).collect(),
        })
    }

    /// The number of instructions.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A named input or output of a program.
#[pyclass(frozen, module = "adead", name = "Slot")]
pub struct PySlot(Slot);

#[pymethods]
impl PySlot {
    /// The tensor's name; for AGPU programs the host address as text, such as "0x1000".
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Which way its contents go: "in", "out" or "both".
    #[getter]
    fn direction(&self) -> &'static str {
        self.0.direction.name()
    }

    /// Bytes of its contents.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes
    }

    /// What its elements are.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.meta.dtype.name()
    }

    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.meta.shape.dims())
    }

    /// Whether a tensor bound to it must have exactly this dtype and shape, or only this many bytes.
    #[getter]
    fn typed(&self) -> bool {
        self.0.typed
    }

    /// Whether the caller must supply it.
    #[getter]
    fn required(&self) -> bool {
        self.0.required
    }

    fn __repr__(&self) -> String {
        let Slot { name, direction, meta, .. } = &self.0;
        format!("Slot({name}: {}, {meta:?})", direction.name())
    }
}

/// What a program's run gave.
#[pyclass(frozen, get_all, module = "adead", name = "Outcome")]
pub struct PyOutcome {
    /// The outputs, by the name of their slot.
    outputs: Py<PyDict>,
    /// Instructions that ran.
    instructions: usize,
    /// Floating-point operations; a multiply-add is two.
    flops: f64,
    /// Seconds from the first instruction's beginning to the last one's end.
    seconds: f64,
    /// The most bytes that registers, temporaries and outputs had at once.
    memory: usize,
    /// What each instruction did.
    trace: Vec<PyTrace>,
}

#[pymethods]
impl PyOutcome {
    /// An output by the name of its slot.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.outputs.bind(py).as_any().get_item(name)
    }

    fn __repr__(&self) -> String {
        format!("Outcome({} instructions, {} flops, {} s)", self.instructions, self.flops, self.seconds)
    }
}

/// What one instruction did in a run.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "Trace")]
#[derive(Clone)]
pub struct PyTrace {
    /// Its index in the program.
    instruction: usize,
    /// Its name.
    name: String,
    /// The device that it ran on.
    device: String,
    /// Seconds spent in it.
    seconds: f64,
    /// Floating-point operations; a multiply-add is two.
    flops: f64,
    /// Bytes read and written, each operand once.
    bytes: f64,
    /// Floating-point operations a nanosecond; 0 where there are none.
    gflops: f64,
}

impl From<Trace> for PyTrace {
    fn from(trace: Trace) -> PyTrace {
        let gflops = trace.gflops();
        let Trace { instruction, name, device, seconds, flops, bytes } = trace;
        PyTrace { instruction, name, device: device.to_string(), seconds, flops, bytes, gflops }
    }
}

#[pymethods]
impl PyTrace {
    fn __repr__(&self) -> String {
        format!("Trace({} {} on {}, {} s)", self.instruction, self.name, self.device, self.seconds)
    }
}
