//! A pipeline that was compiled: planned for a device, to be run any number of times.

use super::graph::{Graph, Source};
use super::host::Host;
use super::plan::{Arrangement, Place};
use crate::command::Command;
use crate::context::Context;
use crate::devices::Opened;
use crate::dispatch::{AutoDispatcher, Places, Task};
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::cpu::CpuDevice;
use crate::hal::{Buffer, DeviceInfo, Recording, Slice};
use crate::operand::{Meta, View, ViewMut};
use crate::tensor::Tensor;
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled [`Pipeline`](super::Pipeline). Threads may share it; on a GPU their runs follow each other.
pub struct Compiled {
    pub(super) plan: Arrangement,
    device: Device,
    /// The device that everything was sent to when it was compiled.
    forced: Option<usize>,
}

/// Where it runs.
enum Device {
    Cpu(Host),
    Gpu(Gpu),
}

/// A plan on a GPU: its memory, and what was recorded on it.
struct Gpu {
    opened: Arc<Opened>,
    block: Arc<dyn Buffer>,
    recording: Arc<dyn Recording>,
    /// From writing the inputs to reading the outputs the block is one run's.
    turn: Mutex<()>,
}

impl Compiled {
    pub(super) fn new(context: &Context, graph: Graph) -> Result<Compiled> {
        let _environment = DefaultEnvironment::enter();
        let dispatcher = context.dispatcher();
        let forced = dispatcher.forced();
        let device = choose(dispatcher, &graph);
        if let Some(slot) = context.gpu(device) {
            match slot.opened().and_then(|opened| Gpu::new(opened, &graph)) {
                Ok((gpu, plan)) => return Ok(Compiled { plan, device: Device::Gpu(gpu), forced }),
                // Nobody asked for a GPU that can't run it.
                Err(_) if forced.is_none() => {}
                Err(error) => return Err(error),
            }
        }
        let plan = Arrangement::new(graph, false);
        Ok(Compiled { device: Device::Cpu(Host::new(context.cpu(), plan.block)?), plan, forced })
    }

    /// Whether it is what this graph would be compiled to.
    pub(super) fn serves(&self, context: &Context, graph: &Graph) -> bool {
        self.forced == context.dispatcher().forced() && self.plan.graph.is_like(graph)
    }

    /// The device that it runs on.
    pub fn device(&self) -> &DeviceInfo {
        match &self.device {
            Device::Cpu(host) => host.info(),
            Device::Gpu(gpu) => gpu.opened.device.info(),
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

    /// Bytes of the memory that intermediate values share, on a GPU with inputs and outputs.
    pub fn memory(&self) -> usize {
        self.plan.block
    }

    /// Runs it: its outputs. `invalid_argument` for another number of inputs, `dtype_mismatch` and `shape_mismatch` for one
    /// that is not what was recorded; an error of an operation, such as an id outside a table, is the run's.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
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
            Device::Cpu(host) => host.run(&self.plan, inputs)?,
            Device::Gpu(gpu) => gpu.run(&self.plan, inputs)?,
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

/// The device that takes least for all of it, with inputs and outputs in host memory, by its index.
fn choose(dispatcher: &AutoDispatcher, graph: &Graph) -> usize {
    if let Some(device) = dispatcher.forced() {
        return device;
    }
    let mut best = (0, f64::INFINITY);
    for (device, profile) in dispatcher.profiles().iter().enumerate() {
        let place = dispatcher.place(device);
        let moved = |nodes: &[u32], from, to| -> f64 {
            nodes.iter().map(|&node| dispatcher.transfer_ns(graph.meta(node).bytes(), from, to)).sum()
        };
        let mut ns = moved(&graph.inputs, Places::HOST, place) + moved(&graph.outputs, place, Places::HOST);
        let mut bytes = 0;
        for node in &graph.nodes {
            bytes += node.meta.bytes() as u64;
            let Source::Op(op, attrs, operands) = &node.source else { continue };
            let task = Task::placed(*op, attrs, &graph.metas(operands), &node.meta, &|_| Places::NOWHERE);
            ns += profile.compute_ns(task.family, &task.cost);
            // Of a recording each kernel but the first costs little to begin.
            ns += if place == Places::HOST { profile.launch_ns } else { 0.0 };
        }
        ns += if place == Places::HOST { 0.0 } else { profile.launch_ns };
        let fits = profile.memory == 0 || bytes <= profile.memory;
        if (fits || device == 0) && ns < best.1 {
            best = (device, ns);
        }
    }
    best.0
}

impl Gpu {
    /// The plan recorded on the device, with its constants there.
    fn new(opened: &Arc<Opened>, graph: &Graph) -> Result<(Gpu, Arrangement)> {
        let plan = Arrangement::new(graph.clone(), true);
        let block = opened.allocate(plan.block, false)?;
        let mut constants = Vec::new();
        for &node in &plan.constants {
            let Source::Constant(tensor) = &plan.graph.nodes[node as usize].source else { continue };
            // Read from where it is before the stream is locked.
            let bytes = tensor.host_bytes()?;
            let buffer = opened.allocate(bytes.len(), false)?;
            opened.with(|stream| stream.write(&*buffer, 0, bytes))?;
            constants.push(buffer);
        }
        let recording = opened.with(|stream| {
            // What the constants need is there before anything is replayed on another stream.
            stream.synchronize()?;
            stream.start_recording()?;
            let recorded = record(&plan, &*block, &constants, &mut |commands| stream.submit(commands));
            let recording = stream.finish_recording();
            recorded.and(recording)
        })?;
        Ok((Gpu { opened: opened.clone(), block, recording, turn: Mutex::new(()) }, plan))
    }

    /// One run: one submission between the inputs' way there and the outputs' way back. Inputs that are on the device already
    /// don't travel; if one is there only, the outputs stay there too.
    fn run(&self, plan: &Arrangement, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let stay = inputs.iter().any(|tensor| tensor.if_on_host().is_none());
        let mut room = Vec::new();
        if stay {
            let sizes = || plan.computed.iter().map(|&node| plan.graph.meta(node).bytes());
            let since = self.opened.cache.use_one();
            self.opened.cache.make_room(&*self.opened, sizes().sum::<usize>() as u64, since)?;
            // Before the stream is locked, so that others can leave where the device is full.
            room = sizes().map(|bytes| self.opened.allocate(bytes, false)).collect::<Result<_>>()?;
        }
        let mut sources = Vec::with_capacity(inputs.len());
        for tensor in inputs {
            let (root, at) = tensor.root();
            let copy = root.copy_on(&*self.opened);
            if copy.is_none() {
                // From another device before this one's stream is locked.
                tensor.host()?;
            }
            sources.push(copy.map(|copy| (copy, at)));
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let slice = |node: u32| {
            let offset = if let Place::Block(at) = plan.places[node as usize] { at } else { 0 };
            Slice { buffer: &*self.block, offset, bytes: plan.graph.meta(node).bytes() }
        };
        self.opened.with(|stream| {
            for ((source, tensor), &node) in sources.iter().zip(inputs).zip(&plan.graph.inputs) {
                let to = slice(node);
                match source {
                    Some((copy, at)) => stream.copy(Slice { buffer: &**copy, offset: *at, bytes: to.bytes }, to)?,
                    None => stream.write(to.buffer, to.offset, tensor.host_bytes()?)?,
                }
            }
            stream.replay(&*self.recording)?;
            let mut outputs = Vec::with_capacity(plan.computed.len());
            for (i, &node) in plan.computed.iter().enumerate() {
                let (meta, from) = (plan.graph.meta(node), slice(node));
                if let Some(memory) = room.get(i) {
                    stream.copy(from, Slice { buffer: &**memory, offset: 0, ..from })?;
                    outputs.push(Tensor::computed(meta, self.opened.clone(), memory.clone()));
                    continue;
                }
                outputs.push(Tensor::filled(meta, |to| {
                    // SAFETY: the new tensor's memory, which nobody else has; it is written before it is read.
                    let into = unsafe { std::slice::from_raw_parts_mut(to.host()?, from.bytes) };
                    stream.read(from.buffer, from.offset, into)
                })?);
            }
            // What only the device can find is this run's error.
            if stay {
                stream.synchronize()?;
            }
            Ok(outputs)
        })
    }
}

/// Gives the commands of each step to `submit`, with their operands in a device's memory.
fn record(
    plan: &Arrangement,
    block: &dyn Buffer,
    constants: &[Arc<dyn Buffer>],
    submit: &mut dyn FnMut(&mut [Command<'_>]) -> Result<()>,
) -> Result<()> {
    let place = |node: u32| match plan.places[node as usize] {
        Place::Constant(i) => Ok((&*constants[i as usize], 0)),
        Place::Block(at) => Ok((block, at)),
        _ => fail!(Internal, "a value of a pipeline is nowhere"),
    };
    for step in &plan.steps {
        let mut inputs = Vec::new();
        for operand in step.links.iter().flat_map(|link| &link.operands) {
            inputs.push(match *operand {
                Some(node) => {
                    let (buffer, at) = place(node)?;
                    Some(View::buffer(buffer, at, plan.graph.meta(node))?)
                }
                None => None,
            });
        }
        let (mut commands, mut rest) = (Vec::new(), &*inputs);
        for (link, &node) in step.links.iter().zip(&step.nodes) {
            let of_link;
            (of_link, rest) = rest.split_at(link.operands.len());
            let (buffer, at) = place(node)?;
            let output = ViewMut::buffer(buffer, at, plan.graph.meta(node))?;
            commands.push(Command::new(link.op, link.attrs, of_link, output)?);
        }
        submit(&mut commands)?;
    }
    Ok(())
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled({} operations in {} steps on {})", self.operations(), self.steps(), self.device().id)
    }
}

/// The CPU of a context, as a pipeline keeps it.
pub(super) type Cpu = Arc<CpuDevice>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::lowering::run_tests::{Dispatches, Memory};
    use crate::ops::Op;

    #[test]
    fn a_run_is_one_kernel_on_a_gpu() {
        let context = Context::open("cpu").unwrap();
        let [x, row, one] =
            [&[50, 30][..], &[30], &[]].map(|dims| Tensor::new(&vec![0.5f32; dims.iter().product()], dims));
        let (x, row, one) = (x.unwrap(), row.unwrap(), one.unwrap());
        let mut pipeline = context.pipeline();
        let begun = pipeline.input(x.dtype(), x.dims()).unwrap();
        let [row, one] = [&row, &one].map(|tensor| pipeline.constant(tensor).unwrap());
        let mut op = |op, operands: &[_]| {
            let operands: Vec<_> = operands.iter().copied().map(Some).collect();
            pipeline.op(op, &Default::default(), &operands).unwrap()
        };
        let h = op(Op::Mul, &[begun, row]);
        let h = op(Op::Add, &[row, h]);
        let h = op(Op::Gelu, &[h]);
        let h = op(Op::Sub, &[one, h]);
        let h = op(Op::Mul, &[h, h]);
        let h = op(Op::Add, &[h, begun]);
        let h = op(Op::Scale, &[h]);
        let h = op(Op::Div, &[begun, h]);
        // It is needed twice: what follows is a run of its own.
        let twice = op(Op::Tanh, &[h]);
        let last = op(Op::Exp, &[twice]);
        let last = op(Op::Add, &[last, h]);
        pipeline.output(last).unwrap();
        let graph = pipeline.graph;
        let plan = Arrangement::new(graph, true);
        let lengths: Vec<usize> = plan.steps.iter().map(|step| step.links.len()).collect();
        let memory = Memory(1 << 32, 1 << 20);
        let constants: Vec<Arc<dyn Buffer>> =
            vec![Arc::new(Memory(2 << 32, 1 << 12)), Arc::new(Memory(3 << 32, 1 << 12))];
        let mut dispatches = Dispatches::default();
        let mut counts = Vec::new();
        record(&plan, &memory, &constants, &mut |commands| {
            counts.extend(dispatches.all(commands)?);
            Ok(())
        })
        .unwrap();
        assert_eq!((lengths, counts), (vec![8, 3], vec![8, 3]));
        assert!(dispatches.0.iter().all(|kernel| kernel.0));
    }
}
