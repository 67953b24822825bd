//! A plan on the CPU: its steps run one after another in memory allocated beforehand. Runs of elementwise operations are computed
//! in parts that stay in a core's cache.

use super::fuse::{Link, Step};
use super::graph::Source;
use super::plan::{Arrangement, Each, Place};
use super::weights::Weights;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::hal::cpu::{CpuDevice, Elementwise, Reach, Run, RunOperand, RunStep, Shared};
use crate::hal::{Device, DeviceInfo, Workers};
use crate::interrupt;
use crate::memory::host::HostBuffer;
use crate::operand::{Inputs, Meta, View, ViewMut};
use crate::ops::Family;
use crate::profile::{ProfilerHandle, Reason};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Instant;

/// The CPU device with the memory block of a plan.
pub(super) struct Host {
    cpu: Arc<CpuDevice>,
    profiler: ProfilerHandle,
    weights: Weights,
    /// One run uses the block at a time. A run that finds it taken, or too small, allocates its own.
    block: Mutex<HostBuffer>,
    /// By the states' numbers: their memory. Runs of a pipeline with states hold this, so they take turns.
    states: Mutex<Vec<HostBuffer>>,
}

/// Elements of one part of a run. With one operand they fit the first-level cache or little more.
const PART: usize = 8 * 1024;
/// Elements times a run's weight that are worth another thread. In the weight a function counts [`FUNCTION`], any other
/// operation 1.
const GRAIN: usize = 256 * 1024;
const FUNCTION: usize = 8;

/// Where the values of one run are.
struct Values<'a> {
    plan: &'a Arrangement,
    block: NonNull<u8>,
    inputs: &'a [&'a Tensor],
    outputs: &'a [Tensor],
    states: &'a [HostBuffer],
}

// SAFETY: the memory belongs to one run, whose tasks write disjoint parts of it.
unsafe impl Sync for Values<'_> {}

impl Values<'_> {
    /// A value's first byte.
    fn pointer(&self, node: u32) -> Result<NonNull<u8>> {
        let place = self.place(node)?;
        // SAFETY: rows begin inside the value that they are of.
        Ok(unsafe { place.add(self.plan.offsets[node as usize]) })
    }

    /// The first byte of a value's place.
    fn place(&self, node: u32) -> Result<NonNull<u8>> {
        Ok(match self.plan.places[node as usize] {
            Place::Input(i) => self.inputs[i as usize].host()?,
            Place::Constant(i) => match &self.plan.graph.nodes[self.plan.constants[i as usize] as usize].source {
                Source::Constant(tensor) => tensor.host()?,
                _ => fail!(Internal, "a pipeline's constant is missing"),
            },
            Place::Output(i) => self.outputs[i as usize].host()?,
            Place::State(i) => self.states[i as usize].pointer(),
            // SAFETY: the plan's places are inside its block.
            Place::Block(at) => unsafe { self.block.add(at) },
            Place::None => fail!(Internal, "a value of a pipeline has no memory"),
        })
    }
}

impl Host {
    /// Makes the block of a plan's values, of `block` bytes, and its states.
    pub fn new(
        cpu: &Arc<CpuDevice>,
        profiler: &ProfilerHandle,
        plan: &Arrangement,
        weights: Weights,
        block: usize,
    ) -> Result<Host> {
        let mut states = Vec::new();
        for state in &plan.graph.states {
            let Source::State(tensor) = &plan.graph.nodes[state.node as usize].source else { continue };
            let memory = HostBuffer::uninitialised(tensor.byte_len())?;
            write(&memory, 0, tensor.host_bytes()?);
            states.push(memory);
        }
        let block = Mutex::new(HostBuffer::uninitialised(block)?);
        Ok(Host { cpu: cpu.clone(), profiler: profiler.clone(), weights, block, states: Mutex::new(states) })
    }

    /// Returns a copy of a state from a byte on.
    pub fn state(&self, number: usize, offset: usize, meta: &Meta) -> Result<Tensor> {
        let copy = HostBuffer::uninitialised(meta.bytes())?;
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(offset + meta.bytes() <= states[number].len());
        // SAFETY: the state has these bytes, all written. No run changes them while the lock is held.
        let bytes = unsafe { std::slice::from_raw_parts(states[number].pointer().as_ptr().add(offset), meta.bytes()) };
        write(&copy, 0, bytes);
        // SAFETY: all bytes were written just now.
        Ok(unsafe { Tensor::written(meta, copy) })
    }

    /// Writes a tensor's bytes into a state, from a byte on.
    pub fn write_state(&self, number: usize, offset: usize, tensor: &Tensor) -> Result<()> {
        let bytes = tensor.host_bytes()?;
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        write(&states[number], offset, bytes);
        Ok(())
    }

    pub fn info(&self) -> &DeviceInfo {
        self.cpu.info()
    }

    /// Runs the plan and returns the computed outputs. If `times` is given, adds the seconds of each step. Passes the outputs that are
    /// handed out early to `each` when they are written.
    pub fn run(
        &self,
        plan: &Arrangement,
        inputs: &[&Tensor],
        reason: Reason,
        mut times: Option<&mut Vec<f64>>,
        each: Each<'_>,
    ) -> Result<Vec<Tensor>> {
        let own;
        let kept = match self.block.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let block = match kept.as_ref().filter(|kept| kept.len() >= plan.block) {
            Some(kept) => kept.pointer(),
            None => {
                own = HostBuffer::uninitialised(plan.block)?;
                own.pointer()
            }
        };
        // SAFETY: every output is the result of a step. Nobody gets it before this step is done.
        let unwritten = |&node: &u32| unsafe { Tensor::unwritten(self.cpu.results(), plan.graph.meta(node)) };
        let outputs = plan.computed.iter().map(unwritten).collect::<Result<Vec<_>>>()?;
        let states =
            (!plan.graph.states.is_empty()).then(|| self.states.lock().unwrap_or_else(PoisonError::into_inner));
        let states = states.as_deref().map_or(&[][..], |states| states);
        let values = Values { plan, block, inputs, outputs: &outputs, states };
        let (first_change, mut paused) = (plan.first_change(), None);
        for (i, step) in plan.steps.iter().enumerate() {
            if i == first_change {
                // What changes states is soon done, so an interruption comes before it, and changes none.
                paused = Some(interrupt::pause());
            }
            let begin = times.is_some().then(Instant::now);
            if self.profiler.is_on() {
                let what = || step.described(&plan.graph);
                self.profiler.perform(&self.cpu, reason, &what, &mut || self.step(&values, step))?;
            } else {
                self.step(&values, step)?;
            }
            if let (Some(times), Some(begin)) = (&mut times, begin) {
                times.push(begin.elapsed().as_secs_f64());
            }
            for (number, _) in plan.done().iter().enumerate().filter(|(_, end)| **end == i + 1) {
                each(number, &outputs[number])?;
            }
        }
        drop(paused);
        for &(state, node) in &plan.copied {
            let (from, bytes) = (values.pointer(node)?, plan.graph.meta(node).bytes());
            // SAFETY: a step wrote all of the value. It is in other memory than the state, which only this run uses.
            write(&states[state as usize], 0, unsafe { std::slice::from_raw_parts(from.as_ptr(), bytes) });
        }
        Ok(outputs)
    }

    fn step(&self, values: &Values<'_>, step: &Step) -> Result<()> {
        if let Some((steps, rows, length)) = tiled(values, step)? {
            let run = Run { steps: &steps, rows, length };
            // SAFETY: the pointers are the values' memory, whose sizes `tiled` has compared with the result's. Each step of a run works
            // on the one before it in place, or writes the result, which the plan gives no memory that a later tile reads.
            return unsafe { self.cpu.compute_run(&run) };
        }
        match Parts::of(values.plan, step) {
            Some(parts) => self.run_in_parts(values, step, &parts),
            None => {
                let mut links = step.links.iter().zip(&step.nodes);
                links.try_for_each(|(link, &node)| self.execute(values, link, node, None))
            }
        }
    }

    /// Executes an operation on all elements, or on one part of a run's.
    fn execute(&self, values: &Values<'_>, link: &Link, node: u32, part: Option<&Part<'_>>) -> Result<()> {
        let graph = &values.plan.graph;
        let described = |node: u32| match part {
            Some(part) => part.of(graph.meta(node)),
            None => Ok((*graph.meta(node), 0)),
        };
        let mut metas = [Meta::scalar(); 8];
        let mut many;
        let metas: &mut [Meta] = if link.operands.len() <= metas.len() {
            &mut metas
        } else {
            many = vec![Meta::scalar(); link.operands.len()];
            &mut many
        };
        let mut offsets = Vec::with_capacity(link.operands.len());
        for (meta, operand) in metas.iter_mut().zip(&link.operands) {
            let (own, offset) = operand.map_or(Ok((Meta::scalar(), 0)), described)?;
            meta.assign(&own);
            offsets.push(offset);
        }
        let mut inputs = Inputs::new();
        for (i, ((meta, offset), operand)) in metas.iter().zip(&offsets).zip(&link.operands).enumerate() {
            if let Some(packed) = self.weights.of(link, i) {
                inputs.push(Some(View::packed(packed)));
                continue;
            }
            inputs.push(match *operand {
                // SAFETY: the pointer is the value's memory from the part's first element on. An earlier step wrote it, or it was
                // written before the run. Until the operation ends, only the operation itself writes to it, in place.
                Some(node) => Some(unsafe { View::from_raw(values.pointer(node)?.add(*offset), meta) }),
                None => None,
            });
        }
        let (meta, offset) = described(node)?;
        // SAFETY: this is the value's memory. The plan gives it to no other value before the value's last use.
        let output = unsafe { ViewMut::from_raw(values.pointer(node)?.add(offset), &meta) };
        self.cpu.execute(&mut self.weights.command(link, &inputs, output)?)
    }

    /// Computes a run part by part, with several threads if that pays.
    fn run_in_parts(&self, values: &Values<'_>, step: &Step, parts: &Parts) -> Result<()> {
        let count = parts.units.div_ceil(parts.size);
        let weight = |link: &Link| if link.op.family() == Family::Function { FUNCTION } else { 1 };
        let weight: usize = step.links.iter().map(weight).sum();
        let each = (GRAIN / weight).div_ceil(parts.size * parts.elements).max(1);
        let failed = Mutex::new(Ok(()));
        let task = |task: usize| {
            for i in task * each..((task + 1) * each).min(count) {
                let first = i * parts.size;
                let part = Part { parts, first, units: parts.size.min(parts.units - first) };
                let links = || step.links.iter().zip(&step.nodes);
                let done = links().try_for_each(|(link, &node)| self.execute(values, link, node, Some(&part)));
                if done.is_err() {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = done;
                }
            }
        };
        match count.div_ceil(each) {
            1 => task(0),
            tasks => self.cpu.run(tasks, &task),
        }
        failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes bytes into memory that nothing else uses now, from a byte on. The memory must have them.
fn write(to: &HostBuffer, offset: usize, bytes: &[u8]) {
    assert!(offset + bytes.len() <= to.len());
    // SAFETY: the range is inside the memory, and a slice elsewhere does not overlap it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.pointer().as_ptr().add(offset), bytes.len()) }
}

/// Returns the steps of a run of f32 operations that is computed in tiles, its rows and their length. `None` for other steps.
fn tiled(values: &Values<'_>, step: &Step) -> Result<Option<(Vec<RunStep>, usize, usize)>> {
    let graph = &values.plan.graph;
    let shape = graph.meta(step.result()).shape;
    let (n, mut length) = (shape.elements(), shape.elements());
    if step.links.len() == 1 || n <= PART {
        return Ok(None);
    }
    let mut steps = Vec::with_capacity(step.links.len());
    for (link, &node) in step.links.iter().zip(&step.nodes) {
        let Some(operation) = Elementwise::of(link.op, &link.attrs) else { return Ok(None) };
        let mut operands = [None; 2];
        for (to, number) in operands.iter_mut().zip(link.operands.iter().flatten()) {
            let Meta { dtype, shape: own } = *graph.meta(*number);
            let row = own.dims().last().copied().unwrap_or(1);
            let reach = match own.elements() {
                _ if dtype != DType::F32 => return Ok(None),
                _ if own == shape => Reach::All,
                1 => Reach::One,
                count if count == row && shape.dims().last() == Some(&row) => Reach::Row,
                _ => return Ok(None),
            };
            if reach == Reach::Row {
                length = row;
            }
            *to = Some(RunOperand { data: Shared(values.pointer(*number)?.cast().as_ptr()), reach });
        }
        let [Some(first), second] = operands else { return Ok(None) };
        if *graph.meta(node) != Meta::new(DType::F32, shape) || second.is_none() && first.reach != Reach::All {
            return Ok(None);
        }
        let to = Shared(values.pointer(node)?.cast().as_ptr());
        steps.push(RunStep { operation, operands: [first, second.unwrap_or(first)], to });
    }
    let rows = n / length;
    Ok(Run::takes(rows, length).then_some((steps, rows, length)))
}

/// How a run is cut: into elements, or into rows if an operand is one row that all rows share.
struct Parts {
    /// Elements of a unit: 1, or the length of a row.
    elements: usize,
    units: usize,
    /// Units in a part.
    size: usize,
    shape: Shape,
}

impl Parts {
    /// Returns `None` if the step is no run, is small, or has an operand that is broadcast in another way.
    fn of(plan: &Arrangement, step: &Step) -> Option<Parts> {
        let shape = plan.graph.meta(step.result()).shape;
        let n = shape.elements();
        if step.links.len() == 1 || n <= PART {
            return None;
        }
        let mut elements = 1;
        for node in step.links.iter().flat_map(|link| link.operands.iter().flatten()) {
            let own = &plan.graph.meta(*node).shape;
            if *own == shape || own.elements() == 1 {
                continue;
            }
            let row = *shape.dims().last()?;
            if own.dims().last() != Some(&row) || own.elements() != row {
                return None;
            }
            elements = row;
        }
        Some(Parts { elements, units: n / elements, size: (PART / elements).max(1), shape })
    }
}

/// One part of a run.
struct Part<'a> {
    parts: &'a Parts,
    first: usize,
    units: usize,
}

impl Part<'_> {
    /// An operand's description within the part, and its byte offset.
    fn of(&self, meta: &Meta) -> Result<(Meta, usize)> {
        let Parts { elements, shape, .. } = self.parts;
        let mut own = Meta::scalar();
        if meta.shape == *shape {
            own.set(meta.dtype, &[self.units, *elements])?;
            return Ok((own, self.first * elements * meta.dtype.size()));
        }
        // One row or one element: every part reads the same.
        own.set(meta.dtype, &[meta.shape.elements()])?;
        Ok((own, 0))
    }
}
