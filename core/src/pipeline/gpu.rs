//! A plan on a GPU: recorded once and replayed by each run.

use super::fuse::Step;
use super::graph::Source;
use super::plan::{Arrangement, Each, Place};
use super::weights::Weights;
use crate::command::Command;
use crate::devices::Opened;
use crate::error::{Result, fail};
use crate::hal::{Buffer, DeviceInfo, Recording, Slice, Stream};
use crate::operand::{Meta, View, ViewMut};
use crate::ops::Op;
use crate::profile::{Activity, Reason, What};
use crate::tensor::Tensor;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// A plan on a GPU: its memory and its recordings.
pub(super) struct Gpu {
    opened: Arc<Opened>,
    block: Arc<dyn Buffer>,
    /// By the constants' numbers: their memory, and where they begin in it.
    constants: Vec<Constant>,
    /// The constants whose digits products read.
    weights: Weights,
    /// By the states' numbers: their memory.
    states: Vec<Arc<dyn Buffer>>,
    /// Whether an operation can find an error in its operands' values, such as an id outside a table.
    looks: bool,
    /// One for each part of a run.
    recordings: Vec<Arc<dyn Recording>>,
    /// A run holds this from writing the inputs to reading the outputs, because runs share the block and the states.
    turn: Mutex<()>,
}

/// A constant's memory, and where it begins there. `None` if only its digits are read.
type Constant = Option<(Arc<dyn Buffer>, usize)>;

impl Gpu {
    /// Uploads those of the plan's constants that are not on the device yet, and records the plan there.
    pub fn new(opened: &Arc<Opened>, plan: &Arrangement, weights: Weights, reason: Reason) -> Result<Gpu> {
        let block = opened.allocate(plan.block, false)?;
        let mut constants = Vec::new();
        for &node in &plan.constants {
            let Source::Constant(tensor) = &plan.graph.nodes[node as usize].source else { continue };
            if !weights.leave(plan, node) {
                constants.push(None);
                continue;
            }
            let (root, at) = tensor.root();
            if let Some(copy) = root.copy_on(&**opened) {
                constants.push(Some((copy, at)));
                continue;
            }
            let buffer = opened.allocate(tensor.byte_len(), false)?;
            put(opened, tensor, Slice { buffer: &*buffer, offset: 0, bytes: tensor.byte_len() }, reason)?;
            constants.push(Some((buffer, 0)));
        }
        let (mut states, mut zeros) = (Vec::new(), None);
        for state in &plan.graph.states {
            let Source::State(tensor) = &plan.graph.nodes[state.node as usize].source else { continue };
            // States often begin with the same zeros, which need no copy.
            let known = zeros.is_some_and(|zeros: &Tensor| zeros.is_same(tensor));
            let is_zero = known || tensor.if_on_host().is_some() && tensor.host_bytes()?.iter().all(|&byte| byte == 0);
            let memory = opened.allocate(tensor.byte_len(), is_zero)?;
            if is_zero {
                zeros = Some(tensor);
            } else {
                let all = Slice { buffer: &*memory, offset: 0, bytes: tensor.byte_len() };
                put(opened, tensor, all, reason)?;
            }
            states.push(memory);
        }
        let recordings = opened.with(|stream| {
            // The uploads finish here, because the recordings may be replayed on another stream.
            stream.synchronize()?;
            let memory = Memory { block: &*block, constants: &constants, weights: &weights, states: &states };
            let (mut begin, mut all) = (0, Vec::new());
            loop {
                let end = plan.end(begin);
                stream.start_recording()?;
                let mut recorded = record(plan, begin..end, &memory, true, &mut |_, commands| stream.submit(commands));
                if end == plan.steps.len() {
                    recorded = recorded.and_then(|()| memory.assign(plan, stream));
                }
                let recording = stream.finish_recording();
                all.push(recorded.and(recording)?);
                if end == plan.steps.len() {
                    break;
                }
                begin = end;
            }
            Ok(all)
        })?;
        let ops = plan.steps.iter().flat_map(|step| &step.links).map(|link| link.op);
        let looks = ops.into_iter().any(|op| matches!(op, Op::Embedding | Op::Gather));
        Ok(Gpu { opened: opened.clone(), block, constants, weights, states, looks, recordings, turn: Mutex::new(()) })
    }

    fn memory(&self) -> Memory<'_> {
        Memory { block: &*self.block, constants: &self.constants, weights: &self.weights, states: &self.states }
    }

    /// Returns a copy of a state from a byte on, which stays on the device.
    pub fn state(&self, number: usize, offset: usize, meta: &Meta) -> Result<Tensor> {
        let since = self.opened.cache.use_one();
        self.opened.cache.make_room(&*self.opened, meta.bytes() as u64, since)?;
        let memory = self.opened.allocate(meta.bytes(), false)?;
        let slice = |buffer, offset| Slice { buffer, offset, bytes: meta.bytes() };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.opened.with(|stream| stream.copy(slice(&*self.states[number], offset), slice(&*memory, 0)))?;
        Ok(Tensor::computed(meta, self.opened.clone(), memory))
    }

    /// Writes a tensor's bytes into a state, from a byte on.
    pub fn write_state(&self, number: usize, offset: usize, tensor: &Tensor, reason: Reason) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let to = Slice { buffer: &*self.states[number], offset, bytes: tensor.byte_len() };
        put(&self.opened, tensor, to, reason)
    }

    pub fn info(&self) -> &DeviceInfo {
        self.opened.device.info()
    }

    /// Runs the plan: uploads inputs, submits once, downloads outputs. Inputs that are on the device already are copied there. The
    /// outputs stay on the device if the caller wants it, or if an input is only there. A plan that hands out outputs early is submitted in
    /// parts, and `each` gets the outputs of a part before the next one.
    ///
    /// Under a profile the steps are submitted one by one, so that each step gets its own time.
    pub fn run(
        &self,
        plan: &Arrangement,
        inputs: &[&Tensor],
        reason: Reason,
        stay: bool,
        each: Each<'_>,
    ) -> Result<Vec<Tensor>> {
        let stay = stay || inputs.iter().any(|tensor| tensor.if_on_host().is_none());
        let mut room = Vec::new();
        if stay {
            let sizes = || plan.computed.iter().map(|&node| plan.graph.meta(node).bytes());
            let since = self.opened.cache.use_one();
            self.opened.cache.make_room(&*self.opened, sizes().sum::<usize>() as u64, since)?;
            // Allocated before the stream is locked, because evicting tensors from a full device needs the stream.
            room = sizes().map(|bytes| self.opened.allocate(bytes, false)).collect::<Result<_>>()?;
        }
        let mut sources = Vec::with_capacity(inputs.len());
        for tensor in inputs {
            let (root, at) = tensor.root();
            let mut copy = root.copy_on(&*self.opened);
            if copy.is_none() {
                // Brings the tensor from another device before this device's stream is locked.
                if self.opened.bring(root)? {
                    copy = root.copy_on(&*self.opened);
                }
                if copy.is_none() {
                    tensor.host()?;
                }
            }
            sources.push(copy.map(|copy| (copy, at)));
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = self.memory();
        let slice = |node: u32| memory.slice(plan, node);
        let (mut begin, mut outputs) = (0, Vec::with_capacity(plan.computed.len()));
        for recording in &self.recordings {
            let (end, first) = (plan.end(begin), outputs.len());
            self.opened.with(|stream| {
                let mut watch = self.opened.begin_watch(0, stream);
                if begin == 0 {
                    for ((source, tensor), &node) in sources.iter().zip(inputs).zip(&plan.graph.inputs) {
                        let to = slice(node)?;
                        let activity = match source {
                            Some((copy, at)) => {
                                stream.copy(Slice { buffer: &**copy, offset: *at, bytes: to.bytes }, to)?;
                                Activity::Copy
                            }
                            None => {
                                stream.write(to.buffer, to.offset, tensor.host_bytes()?)?;
                                Activity::Upload
                            }
                        };
                        watch.step(stream, &What::bytes(activity, to.bytes, PURPOSE, reason));
                    }
                }
                if self.opened.profiler.is_on() {
                    record(plan, begin..end, &memory, false, &mut |step, commands| {
                        stream.submit(commands)?;
                        watch.step(stream, &What::step(&step.described(&plan.graph), reason));
                        Ok(())
                    })?;
                    if end == plan.steps.len() {
                        memory.assign(plan, stream)?;
                        let copied = plan.copied.iter().map(|&(_, node)| plan.graph.meta(node).bytes()).sum();
                        if copied > 0 {
                            watch.step(stream, &What::bytes(Activity::Copy, copied, PURPOSE, reason));
                        }
                    }
                } else {
                    stream.replay(&**recording)?;
                }
                // Without outputs that are handed out early, there is one part.
                for (i, &node) in plan.computed.iter().enumerate().skip(first) {
                    if plan.done().get(i).is_some_and(|&done| done > end) {
                        break;
                    }
                    let (meta, from) = (plan.graph.meta(node), slice(node)?);
                    if let Some(memory) = room.get(i) {
                        stream.copy(from, Slice { buffer: &**memory, offset: 0, ..from })?;
                        watch.step(stream, &What::bytes(Activity::Copy, from.bytes, PURPOSE, reason));
                        outputs.push(Tensor::computed(meta, self.opened.clone(), memory.clone()));
                        continue;
                    }
                    let output = Tensor::filled(meta, |to| {
                        // SAFETY: the new tensor's memory, which nothing else uses. It is written before it is read.
                        let into = unsafe { std::slice::from_raw_parts_mut(to.host()?, from.bytes) };
                        stream.read(from.buffer, from.offset, into)
                    })?;
                    watch.step(stream, &What::bytes(Activity::Download, from.bytes, PURPOSE, reason));
                    outputs.push(output);
                }
                // Errors that only the device can find are returned by this run.
                if stay && self.looks && end == plan.steps.len() {
                    stream.synchronize()?;
                }
                Ok(())
            })?;
            if !plan.done().is_empty() {
                outputs.iter().enumerate().skip(first).try_for_each(|(i, output)| each(i, output))?;
            }
            begin = end;
        }
        Ok(outputs)
    }
}

/// The purpose of transfers that profiles show.
const PURPOSE: &str = "pipeline";

/// Copies a tensor's values to device memory.
fn put(opened: &Arc<Opened>, tensor: &Tensor, to: Slice<'_>, reason: Reason) -> Result<()> {
    let (root, at) = tensor.root();
    if let Some(copy) = root.copy_on(&**opened) {
        return opened.with(|stream| stream.copy(Slice { buffer: &*copy, offset: at, bytes: to.bytes }, to));
    }
    // Read before the stream is locked, because the tensor may be on another device.
    let bytes = tensor.host_bytes()?;
    let what = What::bytes(Activity::Upload, bytes.len(), PURPOSE, reason);
    opened.watched(&what, |stream| stream.write(to.buffer, to.offset, bytes))
}

/// Where the values of a plan are.
struct Memory<'a> {
    block: &'a dyn Buffer,
    constants: &'a [Constant],
    weights: &'a Weights,
    states: &'a [Arc<dyn Buffer>],
}

impl Memory<'_> {
    /// A value's memory.
    fn slice(&self, plan: &Arrangement, node: u32) -> Result<Slice<'_>> {
        let (buffer, offset) = match plan.places[node as usize] {
            Place::Constant(i) => match &self.constants[i as usize] {
                Some((buffer, at)) => (&**buffer, *at),
                None => fail!(Internal, "only a constant's digits are on the device"),
            },
            Place::State(i) => (&*self.states[i as usize], 0),
            Place::Block(at) => (self.block, at),
            _ => fail!(Internal, "a value of a pipeline has no memory"),
        };
        let offset = offset + plan.offsets[node as usize];
        Ok(Slice { buffer, offset, bytes: plan.graph.meta(node).bytes() })
    }

    /// Copies the states' next values that are not in the states' memory.
    fn assign(&self, plan: &Arrangement, stream: &mut dyn Stream) -> Result<()> {
        for &(state, node) in &plan.copied {
            let to = self.slice(plan, plan.graph.states[state as usize].node)?;
            stream.copy(self.slice(plan, node)?, to)?;
        }
        Ok(())
    }
}

/// Passes the commands of these steps to `submit`, with their operands in device memory; those of several steps if they go `together`.
fn record(
    plan: &Arrangement,
    steps: Range<usize>,
    memory: &Memory<'_>,
    together: bool,
    submit: &mut dyn FnMut(&Step, &mut [Command<'_>]) -> Result<()>,
) -> Result<()> {
    let place = |node: u32| memory.slice(plan, node).map(|Slice { buffer, offset, .. }| (buffer, offset));
    for steps in plan.steps[steps].chunk_by(|a, b| together && a.shares_kernels(b, &plan.graph)) {
        let links = || steps.iter().flat_map(|step| step.links.iter().zip(&step.nodes));
        let mut inputs = Vec::new();
        for (link, _) in links() {
            for (i, operand) in link.operands.iter().enumerate() {
                inputs.push(match (*operand, memory.weights.of(link, i)) {
                    (_, Some(packed)) => Some(View::packed(packed)),
                    (Some(node), None) => {
                        let (buffer, at) = place(node)?;
                        Some(View::buffer(buffer, at, plan.graph.meta(node))?)
                    }
                    (None, None) => None,
                });
            }
        }
        let (mut commands, mut rest) = (Vec::new(), &*inputs);
        for (link, &node) in links() {
            let of_link;
            (of_link, rest) = rest.split_at(link.operands.len());
            let (buffer, at) = place(node)?;
            let output = ViewMut::buffer(buffer, at, plan.graph.meta(node))?;
            commands.push(memory.weights.command(link, of_link, output)?);
        }
        submit(&steps[0], &mut commands)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
