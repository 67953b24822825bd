//! A pipeline that was compiled: planned for a device, to be run any number of times.

use super::cache::Cache;
use super::gpu::Gpu;
use super::graph::{Graph, Source};
use super::host::Host;
use super::plan::Arrangement;
use super::price::Prices;
use crate::context::{Context, Kept};
use crate::dispatch::Why;
use crate::error::{Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::DeviceInfo;
use crate::operand::Meta;
use crate::profile::Reason;
use crate::tensor::Tensor;

/// A compiled [`Pipeline`](super::Pipeline). Threads may share it; on a GPU their runs follow each other.
pub struct Compiled {
    pub(super) plan: Arrangement,
    device: Device,
    /// The device that everything was sent to when it was compiled.
    forced: Option<usize>,
    /// Why it is there, for profiles.
    reason: Reason,
}

/// The most bytes of the CPU's memory that a pipeline in a cache has between its runs. More is allocated by each run.
const MOST_KEPT: usize = 64 << 20;

/// Where it runs.
enum Device {
    Cpu(Host),
    Gpu(Gpu),
}

impl Compiled {
    /// Its values may take so many bytes besides inputs and constants. In one that is `kept` in a cache, large memory of the CPU is
    /// not.
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
            let plan = Arrangement::new(graph.clone(), true);
            plan.check(true, limit)?;
            let mut gpu = slot.opened().and_then(|opened| Gpu::new(opened, &plan, reason));
            if gpu.as_ref().is_err_and(|error| error.status() == Status::OutOfMemory) {
                // What is kept for other pipelines can be made again.
                Cache::of(context)?.clear();
                gpu = slot.opened().and_then(|opened| Gpu::new(opened, &plan, reason));
            }
            match gpu {
                Ok(gpu) => return Ok(Compiled { plan, device: Device::Gpu(gpu), forced, reason }),
                // Nobody asked for a GPU that can't run it.
                Err(_) if forced.is_none() => reason = Reason::Fallback,
                Err(error) => return Err(error),
            }
        }
        let plan = Arrangement::new(graph, false);
        plan.check(false, limit)?;
        let most = if kept { MOST_KEPT } else { usize::MAX };
        let host = Host::new(context.cpu(), context.profiler(), if plan.block <= most { plan.block } else { 0 })?;
        Ok(Compiled { device: Device::Cpu(host), plan, forced, reason })
    }

    /// `out_of_memory` where its values take more than so many bytes.
    pub(super) fn check(&self, limit: usize) -> Result<()> {
        self.plan.check(matches!(self.device, Device::Gpu(_)), limit)
    }

    /// Whether a constant of it is nobody else's any more, so that no other graph can be like this one's.
    pub(super) fn is_forgotten(&self) -> bool {
        let nodes = &self.plan.graph.nodes;
        nodes.iter().any(|node| matches!(&node.source, Source::Constant(tensor) if tensor.is_unshared()))
    }

    /// Whether it is what this graph would be compiled to.
    pub(super) fn serves(&self, context: &Context, graph: &Graph) -> bool {
        self.forced == context.dispatcher().forced() && self.plan.graph.is_like(graph)
    }

    /// The device that it runs on.
    pub fn device(&self) -> &DeviceInfo {
        match &self.device {
            Device::Cpu(host) => host.info(),
            Device::Gpu(gpu) => gpu.info(),
        }
    }

    /// What its inputs must be, in order.
    pub fn inputs(&self) -> Vec<Meta> {
        self.plan.graph.inputs.iter().map(|&node| *self.plan.graph.meta(node)).collect()
    }

    /// What its outputs are, in order.
    pub fn outputs(&self) -> Vec<Meta> {
        self.plan.graph.outputs.iter().map(|&node| *self.plan.graph.meta(node)).collect()
    }

    /// Steps that it takes: kernels, where a step needs no more than one. (On a GPU a run is one for each eight operations.)
    pub fn steps(&self) -> usize {
        self.plan.steps.len()
    }

    /// Operations that were recorded and are needed.
    pub fn operations(&self) -> usize {
        self.plan.operations()
    }

    /// The nodes of the operations that each step does, in their order.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = Vec<u32>> {
        self.plan.steps.iter().map(|step| step.recorded().copied().collect())
    }

    /// Bytes of the memory that intermediate values share, on a GPU with inputs and outputs.
    pub fn memory(&self) -> usize {
        self.plan.block
    }

    /// Runs it: its outputs. `invalid_argument` for another number of inputs, `dtype_mismatch` and `shape_mismatch` for one
    /// that is not what was recorded; an error of an operation, such as an id outside a table, is the run's.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_timed(inputs, None)
    }

    /// [`Compiled::run`] with the seconds of each step, if they are asked for and it runs on the CPU.
    pub(crate) fn run_timed(&self, inputs: &[&Tensor], times: Option<&mut Vec<f64>>) -> Result<Vec<Tensor>> {
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
            Device::Cpu(host) => host.run(&self.plan, inputs, self.reason, times)?,
            Device::Gpu(gpu) => gpu.run(&self.plan, inputs, self.reason)?,
        };
        let output = |&node: &u32| {
            let root = graph.root(node);
            let Some(at) = self.plan.computed.iter().position(|&other| other == root) else {
                fail!(Internal, "an output was not computed");
            };
            if root == node { Ok(computed[at].clone()) } else { computed[at].reshape(graph.meta(node).shape.dims()) }
        };
        graph.outputs.iter().map(output).collect()
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled({} operations in {} steps on {})", self.operations(), self.steps(), self.device().id)
    }
}
