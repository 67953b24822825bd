//! The module `adead._adead`: the runtime for Python. It has no rule, default or arithmetic of its own.

mod attributes;
mod buffers;
mod contents;
mod context;
mod current;
mod device;
mod dispatch;
mod dlpack;
mod dtypes;
mod errors;
mod gpu;
mod indices;
mod layout;
mod log;
mod memory;
mod methods;
mod nn;
mod operations;
mod operators;
mod pipeline;
mod profile;
mod program;
mod push;
mod random;
mod sharing;
mod stream;
mod survey;
mod tensor;
mod values;

use adead::dispatch::Family;
use adead::{Activation, BlockFormat, DType, Op, Status};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Functions, classes and exceptions of adead; `import adead` has all of them.
#[pymodule]
fn _adead(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::keep_panics_quiet();
    let py = module.py();
    module.add("__version__", adead::VERSION)?;
    module.add("CONTRACT", adead::contract::VERSION)?;
    module.add("DTYPES", PyTuple::new(py, DType::ALL.map(DType::name))?)?;
    module.add("FAMILIES", PyTuple::new(py, Family::ALL.map(Family::name))?)?;
    module.add("OPERATIONS", PyTuple::new(py, Op::ALL.iter().map(|op| op.name()))?)?;
    module.add("ACTIVATIONS", PyTuple::new(py, Activation::ALL.map(Activation::name))?)?;
    module.add("BLOCK_FORMATS", PyTuple::new(py, BlockFormat::ALL.map(BlockFormat::name))?)?;
    module.add("STATUSES", PyTuple::new(py, Status::ALL.iter().map(|status| status.name()))?)?;
    errors::add(module)?;
    log::add(module)?;
    module.add_class::<context::PyContext>()?;
    module.add_class::<context::PyGpu>()?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<values::PyPacked>()?;
    module.add_class::<gpu::PyBuffer>()?;
    module.add_class::<gpu::PyBufferView>()?;
    module.add_class::<gpu::PyKernel>()?;
    module.add_class::<gpu::PyParameter>()?;
    module.add_class::<stream::PyStream>()?;
    module.add_class::<stream::PyEvent>()?;
    module.add_class::<stream::PyTimestamp>()?;
    module.add_class::<stream::PyDownload>()?;
    module.add_class::<stream::PyRecording>()?;
    module.add_class::<pipeline::PyPipeline>()?;
    module.add_class::<pipeline::PyNoGrad>()?;
    module.add_class::<pipeline::PyValue>()?;
    module.add_class::<pipeline::PyCompiled>()?;
    module.add_class::<profile::PySession>()?;
    module.add_class::<program::PyProgram>()?;
    module.add_class::<program::PySlot>()?;
    module.add_class::<program::PyOutcome>()?;
    module.add_class::<program::PyTrace>()?;
    module.add_class::<survey::PySurvey>()?;
    module.add_class::<survey::PyStep>()?;
    module.add_class::<survey::PyFinding>()?;
    module.add_class::<dispatch::PyExplanation>()?;
    module.add_class::<dispatch::PyEstimate>()?;
    module.add_class::<device::PyHardware>()?;
    module.add_class::<device::PyCpu>()?;
    module.add_class::<device::PyCache>()?;
    module.add_class::<device::PyGpuInfo>()?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<layout::PyLayout>()?;
    module.add_class::<layout::PyOptimizer>()?;
    // For adead.nn.
    module.add("_Weights", py.get_type::<nn::PyWeights>())?;
    module.add("_Module", py.get_type::<nn::PyLayer>())?;
    module.add_class::<memory::PyAllocator>()?;
    module.add_class::<memory::PyArena>()?;
    module.add_class::<memory::PyMemory>()?;
    module.add_function(wrap_pyfunction!(device::report, module)?)?;
    module.add_function(wrap_pyfunction!(current::the_default, module)?)?;
    module.add_function(wrap_pyfunction!(current::set_default_context, module)?)?;
    module.add_function(wrap_pyfunction!(sharing::asarray, module)?)?;
    module.add_function(wrap_pyfunction!(sharing::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(layout::optimize_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(layout::restore_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(layout::align, module)?)?;
    module.add_function(wrap_pyfunction!(layout::coalesce, module)?)?;
    module.add_function(wrap_pyfunction!(layout::scatter, module)?)?;
    // For x[…] and adead.random.
    module.add_function(wrap_pyfunction!(indices::positions, module)?)?;
    module.add_function(wrap_pyfunction!(indices::flat_index, module)?)?;
    module.add_function(wrap_pyfunction!(dtypes::computed_in_of, module)?)?;
    module.add_function(wrap_pyfunction!(random::draw_units, module)?)?;
    module.add_function(wrap_pyfunction!(random::draw_integers, module)?)?;
    module.add_function(wrap_pyfunction!(random::draw_order, module)?)?;
    methods::add(module)?;
    // All public names, in alphabetical order.
    let mut names: Vec<String> = module.dict().keys().extract()?;
    names.retain(|name| !name.starts_with('_'));
    names.sort();
    module.add("__all__", names)
}
