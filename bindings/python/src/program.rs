//! Programs: decode, check, estimate, run and encode them.

use crate::buffers::{Doubles, Exported};
use crate::context::PyContext;
use crate::current::default_context;
use crate::errors::{Result, detached, fail, guard, interruptible};
use crate::survey::PySurvey;
use crate::tensor::PyTensor;
use crate::values::Operand;
use adead::DType;
use adead::program::{Format, Program, RunOptions, Slot, Trace};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// A decoded program. It never changes, so threads may share one.
#[pyclass(frozen, module = "adead", name = "Program")]
pub struct PyProgram(Arc<Program>);

impl PyProgram {
    /// Makes a program for Python.
    pub fn new(program: Program) -> PyProgram {
        PyProgram(Arc::new(program))
    }
}

/// Returns the given limit, or else the core's default.
fn limit(bytes: Option<usize>) -> usize {
    bytes.unwrap_or(RunOptions::default().memory_limit)
}

#[pymethods]
impl PyProgram {
    /// Decodes an .adead, AGPU or AHYB file, .hex text or program text. The bytes determine the format.
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

    /// Returns the program as text, which `assemble` turns back into this program.
    fn disassemble(&self) -> Result<String> {
        guard(|| Ok(self.0.disassemble()))
    }

    /// Encodes the program as a file: "adead", "agpu", "hex" or "text".
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
                _ => fail!(InvalidArgument, "format is '{format}'; it must be adead, agpu, hex or text"),
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The format that the program was decoded from.
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format().name()
    }

    /// Whether the whole program is AGPU.
    #[getter]
    fn is_agpu(&self) -> bool {
        self.0.is_agpu()
    }

    /// The named inputs and outputs.
    #[getter]
    fn slots(&self) -> Vec<PySlot> {
        self.0.slots().iter().cloned().map(PySlot).collect()
    }

    /// The symbols of an AHYB file, by name.
    #[getter]
    fn symbols<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let symbols = PyDict::new(py);
        for symbol in self.0.symbols() {
            symbols.set_item(&symbol.name, symbol.value)?;
        }
        Ok(symbols)
    }

    /// Notes for the user, such as skipped parts and opcodes that do nothing.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.report().to_vec()
    }

    /// Returns the text of one instruction. `IndexError` if the program has no instruction of that index.
    fn line(&self, instruction: usize) -> Result<String> {
        match self.0.line(instruction) {
            Some(line) => Ok(line),
            None => {
                let text = format!("instruction is {instruction}; the program has {}", self.0.len());
                Err(pyo3::exceptions::PyIndexError::new_err(text).into())
            }
        }
    }

    /// Checks the program as far as is possible without data. Returns the most bytes that a run takes at the same time.
    #[pyo3(signature = (memory_limit=None))]
    fn validate(&self, py: Python<'_>, memory_limit: Option<usize>) -> Result<usize> {
        detached(py, || Ok(self.0.validate(limit(memory_limit))?.memory()))
    }

    /// Estimates the cost of each step without running the program, and finds steps that would waste a GPU.
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

    /// Runs the program. `inputs` maps names of slots to tensors, or to anything that can become one.
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
            let name: String = name.extract()?;
            let is_f64 = |slot: &Slot| slot.name == name && slot.meta.dtype == DType::F64;
            let doubles = Doubles::beside(self.0.slots().iter().any(is_f64));
            options.inputs.push((name, Operand::with(&value, doubles)?.tensor()?));
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

    /// Returns the number of instructions.
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
    /// The tensor's name. In AGPU programs it is the host address as text, such as "0x1000".
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The direction in which its contents move: "in", "out" or "both".
    #[getter]
    fn direction(&self) -> &'static str {
        self.0.direction.name()
    }

    /// Bytes of its contents.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes
    }

    /// The dtype of its elements.
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

/// The outcome of a program's run.
#[pyclass(frozen, get_all, module = "adead", name = "Outcome")]
pub struct PyOutcome {
    /// The outputs, by the name of their slot.
    outputs: Py<PyDict>,
    /// Instructions that ran.
    instructions: usize,
    /// Floating-point operations; a multiply-add is two.
    flops: f64,
    /// Seconds from the start of the first instruction to the end of the last one.
    seconds: f64,
    /// The most bytes that registers, temporaries and outputs took at the same time.
    memory: usize,
    /// What each instruction did.
    trace: Vec<PyTrace>,
}

#[pymethods]
impl PyOutcome {
    /// Returns an output by the name of its slot.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.outputs.bind(py).as_any().get_item(name)
    }

    fn __repr__(&self) -> String {
        format!("Outcome({} instructions, {} flops, {} s)", self.instructions, self.flops, self.seconds)
    }
}

/// Statistics of one instruction in a run.
#[pyclass(frozen, get_all, from_py_object, module = "adead", name = "Trace")]
#[derive(Clone)]
pub struct PyTrace {
    /// The instruction's index in the program.
    instruction: usize,
    /// The instruction's name.
    name: String,
    /// The device that it ran on.
    device: String,
    /// Seconds spent on it.
    seconds: f64,
    /// Floating-point operations; a multiply-add is two.
    flops: f64,
    /// Bytes read and written, each operand once.
    bytes: f64,
    /// Floating-point operations per nanosecond; 0 if there were none.
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
