//! A compiled pipeline: planned for one device, to be run any number of times.

use super::cache::Cache;
use super::gpu::Gpu;
use super::graph::{Graph, Source};
use super::host::Host;
use super::ids::Ids;
use super::plan::{Arrangement, Each};
use super::price::Prices;
use super::weights::Weights;
use crate::context::{Context, Kept};
use crate::dispatch::Why;
use crate::error::{Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::DeviceInfo;
use crate::operand::Meta;
use crate::profile::Reason;
use crate::shape::MAX_RANK;
use crate::tensor::Tensor;

/// A compiled [`Pipeline`](super::Pipeline). Threads may share it. On a GPU their runs take turns.
pub struct Compiled {
    pub(super) plan: Arrangement,
    device: Device,
    /// The dispatcher's forced device when this was compiled.
    forced: Option<usize>,
    /// Why this device was chosen. Profiles show it.
    reason: Reason,
}

/// A pipeline in a cache keeps at most this much CPU memory between runs. A run that needs more allocates it.
const MOST_KEPT: usize = 64 << 20;

/// The device that the pipeline runs on.
enum Device {
    Cpu(Host),
    Gpu(Gpu),
}

impl Compiled {
    /// Compiles a graph. Fails if its values take more than `limit` bytes besides inputs and constants. A pipeline that is `kept`
    /// in a cache allocates a CPU block larger than [`MOST_KEPT`] only for the duration of each run.
    pub(super) fn new(context: &Context, graph: Graph, limit: usize, kept: bool) -> Result<Compiled> {
        let _environment = DefaultEnvironment::enter();
        let dispatcher = context.dispatcher();
        let forced = dispatcher.forced();
        let mut reason = Reason::Chosen(match forced {
            Some(_) => Why::Forced,
            None if dispatcher.profiles().len() == 1 => Why::Only,
            None => Why::Cheapest,
        });
        let device = forced.unwrap_or_else(|| Prices::new(dispatcher, &graph).device);
        if let Some(slot) = context.gpu(device) {
            let mut plan = Arrangement::new(graph.clone(), true);
            plan.check(true, limit)?;
            let mut gpu = slot.opened().and_then(|opened| {
                #[cfg(feature = "integers")]
                let weights = Weights::new(context, &plan, kept, &|matrix, dtype, transposed, precision| {
                    opened.pack(matrix, dtype, transposed, precision)
                })?;
                #[cfg(not(feature = "integers"))]
                let weights = Weights::default();
                Gpu::new(opened, &plan, weights, reason)
            });
            if gpu.as_ref().is_err_and(|error| error.status() == Status::OutOfMemory) {
                // The memory of cached pipelines is released: they can be compiled again.
                Cache::of(context)?.clear();
                gpu = slot.opened().and_then(|opened| Gpu::new(opened, &plan, Weights::default(), reason));
            }
            match gpu {
                Ok(gpu) => {
                    plan.graph.forget_states();
                    return Ok(Compiled { plan, device: Device::Gpu(gpu), forced, reason });
                }
                // The dispatcher chose this GPU, the caller did not: if the GPU can't run the pipeline, the CPU does.
                Err(_) if forced.is_none() => reason = Reason::Fallback,
                Err(error) => return Err(error),
            }
        }
        let mut plan = Arrangement::new(graph, false);
        plan.check(false, limit)?;
        let most = if kept { MOST_KEPT } else { usize::MAX };
        let block = if plan.block <= most { plan.block } else { 0 };
        let cpu = context.cpu();
        let weights = Weights::new(context, &plan, kept, &|matrix, dtype, transposed, precision| {
            let keeps = cpu.keeps_digits(matrix.shape(), transposed, precision);
            keeps.then(|| cpu.pack(&matrix.view(), dtype, transposed, precision)).transpose()
        })?;
        let host = Host::new(cpu, context.profiler(), &plan, weights, block)?;
        plan.graph.forget_states();
        Ok(Compiled { device: Device::Cpu(host), plan, forced, reason })
    }

    /// Returns `out_of_memory` if the values take more than `limit` bytes.
    pub(super) fn check(&self, limit: usize) -> Result<()> {
        self.plan.check(matches!(self.device, Device::Gpu(_)), limit)
    }

    /// Whether only this pipeline still holds one of its constants. Then no later graph can have the same constants, and the
    /// cache can drop it.
    pub(super) fn is_forgotten(&self) -> bool {
        let nodes = &self.plan.graph.nodes;
        nodes.iter().any(|node| matches!(&node.source, Source::Constant(tensor) if tensor.is_unshared()))
    }

    /// Whether compiling this graph now would give this pipeline.
    pub(super) fn serves(&self, context: &Context, graph: &Graph) -> bool {
        self.forced == context.dispatcher().forced() && self.plan.graph.is_like(graph)
    }

    /// Returns the device that the pipeline runs on.
    pub fn device(&self) -> &DeviceInfo {
        match &self.device {
            Device::Cpu(host) => host.info(),
            Device::Gpu(gpu) => gpu.info(),
        }
    }

    /// Returns the dtype and shape that each input must have, in order.
    pub fn inputs(&self) -> Vec<Meta> {
        self.plan.graph.inputs.iter().map(|&node| *self.plan.graph.meta(node)).collect()
    }

    /// Returns the dtype and shape of each output, in order.
    pub fn outputs(&self) -> Vec<Meta> {
        self.plan.graph.outputs.iter().map(|&node| *self.plan.graph.meta(node)).collect()
    }

    /// Returns the number of steps. A step is one kernel if its operation needs only one. On a GPU, every eight operations of a
    /// run of elementwise operations are one kernel.
    pub fn steps(&self) -> usize {
        self.plan.steps.len()
    }

    /// Returns the number of recorded operations that an output needs.
    pub fn operations(&self) -> usize {
        self.plan.operations()
    }

    /// Returns the nodes of the operations that each step computes, in order.
    #[cfg(feature = "programs")]
    pub(crate) fn recorded(&self) -> impl Iterator<Item = Vec<u32>> {
        self.plan.steps.iter().map(|step| step.recorded().copied().collect())
    }

    /// Returns the bytes of the block that intermediate values share. On a GPU, inputs and outputs are in the block too.
    pub fn memory(&self) -> usize {
        self.plan.block
    }

    /// Returns the dtype and shape of each state, in order.
    pub fn states(&self) -> Vec<Meta> {
        self.plan.graph.states.iter().map(|state| *self.plan.graph.meta(state.node)).collect()
    }

    fn state_meta(&self, number: usize) -> Result<&Meta> {
        match self.plan.graph.states.get(number) {
            Some(state) => Ok(self.plan.graph.meta(state.node)),
            None => {
                fail!(InvalidArgument, "there is no state {number}; the pipeline has {}", self.plan.graph.states.len())
            }
        }
    }

    /// Returns a copy of a state's present value. On a GPU the copy stays there. `invalid_argument` for a number that no state has.
    pub fn state(&self, number: usize) -> Result<Tensor> {
        let meta = self.state_meta(number)?;
        self.part_of_state(number, 0, meta)
    }

    /// Returns a copy of `count` entries of a state's first axis, from entry `first` on, like [`Compiled::state`].
    /// `invalid_argument` for a number that no state has and for entries beyond the end, `shape_mismatch` for a scalar.
    pub fn state_rows(&self, number: usize, first: usize, count: usize) -> Result<Tensor> {
        let mut meta = *self.state_meta(number)?;
        let shape = meta.shape;
        let Some(&rows) = shape.dims().first() else {
            fail!(ShapeMismatch, "state {number} is a scalar, which has no rows")
        };
        if first > rows || count > rows - first {
            fail!(InvalidArgument, "{count} rows from row {first} exceed state {number}, which is {shape}");
        }
        let of_row = meta.bytes().checked_div(rows).unwrap_or(0);
        let mut dims = [0; MAX_RANK];
        let dims = &mut dims[..shape.rank()];
        dims.copy_from_slice(shape.dims());
        dims[0] = count;
        meta.set(meta.dtype, dims)?;
        self.part_of_state(number, first * of_row, &meta)
    }

    fn part_of_state(&self, number: usize, offset: usize, meta: &Meta) -> Result<Tensor> {
        match &self.device {
            Device::Cpu(host) => host.state(number, offset, meta),
            Device::Gpu(gpu) => gpu.state(number, offset, meta),
        }
    }

    /// Replaces a state. Errors: `invalid_argument` for a number that no state has, `dtype_mismatch` and `shape_mismatch` for a
    /// tensor of another dtype or shape.
    pub fn set_state(&self, number: usize, tensor: &Tensor) -> Result<()> {
        let expected = self.state_meta(number)?;
        if *tensor.shape() != expected.shape {
            fail!(ShapeMismatch, "state {number} is {}; the tensor is {}", expected.shape, tensor.shape());
        }
        self.write_state(number, 0, tensor)
    }

    /// Writes a tensor's elements over those of a state, from its element `first` on, in row-major order. Errors:
    /// `invalid_argument` for a number that no state has and for elements beyond the state's end, `dtype_mismatch` for a tensor of
    /// another dtype.
    pub fn write_state(&self, number: usize, first: usize, tensor: &Tensor) -> Result<()> {
        let expected = self.state_meta(number)?;
        if tensor.dtype() != expected.dtype {
            fail!(DtypeMismatch, "state {number} is {}; the tensor is {}", expected.dtype, tensor.dtype());
        }
        let (all, own) = (expected.shape.elements(), tensor.shape().elements());
        if first > all || own > all - first {
            fail!(
                InvalidArgument,
                "state {number} has {all} elements; {own} from element {first} on are beyond its end"
            );
        }
        let offset = first * expected.dtype.size();
        match &self.device {
            Device::Cpu(host) => host.write_state(number, offset, tensor),
            Device::Gpu(gpu) => gpu.write_state(number, offset, tensor, self.reason),
        }
    }

    /// Returns which inputs are ids, for a caller who checks them before a run, because a run finds a wrong one perhaps after it has
    /// changed a state.
    pub fn ids(&self) -> Ids {
        Ids::of(&self.plan.graph)
    }

    /// Runs the pipeline and returns its outputs. Runs of a pipeline with states take turns. After an error or an interruption states may
    /// be changed in part; but on the CPU an interruption changes nothing if elementwise operations and `where` alone come from the first
    /// change on. Errors: `invalid_argument` for a wrong number of inputs; `dtype_mismatch` and `shape_mismatch` for an input that differs
    /// from the recorded one; the errors of operations, such as an id outside a table.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_with(inputs, None, false, &mut |_, _| Ok(()))
    }

    /// Runs like [`Compiled::run`]. On a GPU the outputs stay there until the host reads them, for callers that pass them to the
    /// next run. [`Compiled::run`] leaves them there only if an input is nowhere else.
    pub fn run_staying(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_with(inputs, None, true, &mut |_, _| Ok(()))
    }

    /// Runs like [`Compiled::run_staying`]. Passes each output with its number to `each`, at the earliest when it is computed, or on a GPU
    /// enqueued: see [`Pipeline::hand_out`](super::Pipeline::hand_out). Also returns the errors of `each`, which end the run.
    #[cfg(feature = "lend")]
    pub fn run_early(&self, inputs: &[&Tensor], each: &mut dyn FnMut(usize, Tensor) -> Result<()>) -> Result<()> {
        let graph = &self.plan.graph;
        let mut of_computed = |number: usize, root: &Tensor| {
            let of_it = |&(_, node): &(usize, &u32)| graph.root(*node) == self.plan.computed[number];
            let mut outputs = graph.outputs.iter().enumerate().filter(of_it);
            outputs.try_for_each(|(i, &node)| each(i, graph.of_root(node, root)?))
        };
        let found = self.run_with(inputs, None, true, &mut of_computed)?;
        match self.plan.done().is_empty() {
            true => found.into_iter().enumerate().try_for_each(|(i, output)| each(i, output)),
            false => Ok(()),
        }
    }

    /// Runs like [`Compiled::run`]. On the CPU it also adds the seconds of each step to `times`.
    pub(crate) fn run_timed(&self, inputs: &[&Tensor], times: Option<&mut Vec<f64>>) -> Result<Vec<Tensor>> {
        self.run_with(inputs, times, false, &mut |_, _| Ok(()))
    }

    fn run_with(
        &self,
        inputs: &[&Tensor],
        times: Option<&mut Vec<f64>>,
        stay: bool,
        each: Each<'_>,
    ) -> Result<Vec<Tensor>> {
        let graph = &self.plan.graph;
        if inputs.len() != graph.inputs.len() {
            fail!(InvalidArgument, "the pipeline has {} inputs and was given {}", graph.inputs.len(), inputs.len());
        }
        for (i, (tensor, &node)) in inputs.iter().zip(&graph.inputs).enumerate() {
            let expected = graph.meta(node);
            if tensor.dtype() != expected.dtype {
                fail!(DtypeMismatch, "input {i} is {}; the pipeline was made for {}", tensor.dtype(), expected.dtype);
            }
            if *tensor.shape() != expected.shape {
                fail!(ShapeMismatch, "input {i} is {}; the pipeline was made for {}", tensor.shape(), expected.shape);
            }
        }
        let computed = match &self.device {
            Device::Cpu(host) => host.run(&self.plan, inputs, self.reason, times, each)?,
            Device::Gpu(gpu) => gpu.run(&self.plan, inputs, self.reason, stay, each)?,
        };
        let output = |&node: &u32| {
            let root = graph.root(node);
            let Some(at) = self.plan.computed.iter().position(|&other| other == root) else {
                fail!(Internal, "an output was not computed");
            };
            graph.of_root(node, &computed[at])
        };
        graph.outputs.iter().map(output).collect()
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled({} operations in {} steps on {})", self.operations(), self.steps(), self.device().id)
    }
}
