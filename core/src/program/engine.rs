//! The engine. It runs validated programs through a [`Context`]: as one graph (`whole.rs`) or instruction by instruction, in
//! order or several at a time.

use super::fault::invalid_because;
use super::lower::{Do, Located, Source, Step, Work};
use super::plan::Plan;
use super::{Program, RunOptions, whole};
use crate::command::Command;
use crate::context::Context;
use crate::error::{Error, Result, Status, fail};
use crate::log::log;
use crate::memory::host::HostBuffer;
use crate::operand::{Inputs, View, ViewMut};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The outputs with the names of their slots, in the order of [`Program::slots`].
    pub outputs: Vec<(String, Tensor)>,
    /// The number of instructions that ran.
    pub instructions: usize,
    /// Floating-point operations. A multiply-add counts as two.
    pub flops: f64,
    /// Seconds from the start of the first instruction to the end of the last one.
    pub seconds: f64,
    /// The most bytes that registers, temporaries and outputs took at one time.
    pub memory: usize,
    /// What each instruction did, in the program's order.
    pub trace: Vec<Trace>,
}

impl Outcome {
    /// Makes the outcome of a run. `spent` has seconds, flops and bytes of each instruction.
    pub(super) fn new(
        program: &Program,
        plan: &Plan<'_>,
        outputs: Vec<(String, Tensor)>,
        seconds: f64,
        device: &str,
        spent: &[[f64; 3]],
    ) -> Outcome {
        let device: Arc<str> = device.into();
        let trace = spent.iter().zip(&program.code.instructions).enumerate().map(
            |(instruction, (&[seconds, flops, bytes], it))| {
                let device = device.clone();
                Trace { instruction, name: it.name(), device, seconds, flops, bytes }
            },
        );
        let flops = spent.iter().map(|spent| spent[1]).sum();
        let (instructions, memory) = (program.len(), plan.memory());
        Outcome { outputs, instructions, flops, seconds, memory, trace: trace.collect() }
    }

    /// Returns the output with this name.
    pub fn output(&self, name: &str) -> Option<&Tensor> {
        self.outputs.iter().find(|(slot, _)| slot == name).map(|(_, tensor)| tensor)
    }
}

/// What one instruction did in a run.
///
/// Instructions that run as one are timed together: the first of them has the total, the others have zeros. Examples are a
/// product with its bias and activation, a run of elementwise operations and, on a GPU, the whole program. On a GPU,
/// [`Context::profile`] times each step. Instructions whose results nothing needs don't run and have zeros.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The instruction's index. [`Program::line`] returns its text.
    pub instruction: usize,
    /// The instruction's name.
    pub name: String,
    /// The device that ran it.
    pub device: Arc<str>,
    /// Seconds spent on it.
    pub seconds: f64,
    /// Floating-point operations. A multiply-add counts as two.
    pub flops: f64,
    /// Bytes read and written, each operand counted once.
    pub bytes: f64,
}

impl Trace {
    /// Returns floating-point operations per nanosecond, or 0 if there were none.
    pub fn gflops(&self) -> f64 {
        if self.flops > 0.0 && self.seconds > 0.0 { self.flops / self.seconds.max(1e-9) * 1e-9 } else { 0.0 }
    }
}

/// Runs programs on a context. A whole program is validated before any of it runs.
pub struct OpcodeEngine<'a> {
    context: &'a Context,
}

/// The memory of a cell. Clones share it.
#[derive(Clone)]
enum Memory {
    Buffer(Arc<HostBuffer>),
    Tensor(Tensor),
}

impl Memory {
    fn pointer(&self) -> Result<NonNull<u8>> {
        match self {
            Memory::Buffer(buffer) => Ok(buffer.pointer()),
            Memory::Tensor(tensor) => match NonNull::new(tensor.view().host()?) {
                Some(pointer) => Ok(pointer),
                None => fail!(Internal, "a tensor without memory"),
            },
        }
    }
}

/// A run in progress.
struct Run<'a> {
    context: &'a Context,
    plan: &'a Plan<'a>,
    cells: Vec<Mutex<Option<Memory>>>,
    /// By instruction: seconds, flops, bytes.
    spent: Mutex<Vec<[f64; 3]>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> OpcodeEngine<'a> {
    /// Makes an engine that executes through `context`.
    pub fn new(context: &'a Context) -> OpcodeEngine<'a> {
        OpcodeEngine { context }
    }

    /// Validates the program, binds its inputs, runs it and returns its outputs. If a step fails, there are no outputs and the
    /// caller's tensors are unchanged.
    ///
    /// A program of tensors runs as one pipeline on one device. The context caches the pipeline for the next run
    /// ([`Context::pipeline_cache`]). Three kinds of programs run instruction by instruction: programs with AGPU registers,
    /// programs on a context that divides operations among devices, and programs that fit the memory limit only this way.
    pub fn run(&self, program: &Program, options: &RunOptions) -> Result<Outcome> {
        let plan = program.validate(options.memory_limit)?;
        let given = given(program, options)?;
        if let Some(flow) = &program.flow
            && !(self.context.dispatcher().is_hybrid() && self.context.dispatcher().forced().is_none())
        {
            match whole::run(self.context, program, &plan, flow, &given, options.memory_limit) {
                Err(error) if matches!(error.status(), Status::NotReady | Status::DeviceLost) => return Err(error),
                // Nothing has changed yet. Running one by one finds the instruction that is wrong, and may take less memory.
                Err(error) => log!(Debug, "program", "runs instruction by instruction: {error}"),
                done => return done,
            }
        }
        let cells = bind(program, &plan, &given)?;
        let run = Run { context: self.context, plan: &plan, cells, spent: Mutex::new(vec![[0.0; 3]; program.len()]) };
        let steps = &plan.lowered().steps;
        let begin = Instant::now();
        let body = |step: usize| {
            let step: &Step = &steps[step];
            run.step(step).map_err(|error| {
                let at = program.code.instructions[step.instruction].at;
                Error::new(error.status(), invalid_because(at, error).message())
            })
        };
        if options.parallel {
            let workers = self.context.device_info().units.clamp(2, 8);
            plan.schedule().run_parallel(workers, &body)?;
        } else {
            plan.schedule().run_in_order(&body)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        Ok(run.outcome(program, seconds))
    }
}

/// Assigns the caller's tensors to slots.
fn given<'a>(program: &Program, options: &'a RunOptions) -> Result<Vec<Option<&'a Tensor>>> {
    let slots = program.slots();
    let mut given: Vec<Option<&Tensor>> = vec![None; slots.len()];
    let inputs = || slots.iter().enumerate().filter(|(_, slot)| slot.direction.takes_input());
    let by_name: HashMap<&str, usize> = inputs().map(|(i, slot)| (slot.name.as_str(), i)).collect();
    for (name, tensor) in &options.inputs {
        let Some(&index) = by_name.get(name.as_str()) else {
            let names: Vec<&str> = inputs().take(16).map(|(_, slot)| slot.name.as_str()).collect();
            fail!(InvalidArgument, "the program has no input '{name}': it has {names:?}");
        };
        if given[index].replace(tensor).is_some() {
            fail!(InvalidArgument, "the input '{name}' is given twice");
        }
        let slot = &slots[index];
        if slot.typed && tensor.dtype() != slot.meta.dtype {
            fail!(DtypeMismatch, "the input '{name}' is {}; it must be {}", tensor.dtype(), slot.meta.dtype);
        }
        if slot.typed && *tensor.shape() != slot.meta.shape {
            fail!(ShapeMismatch, "the input '{name}' is {}; it must be {}", tensor.shape(), slot.meta.shape);
        }
        if tensor.byte_len() != slot.bytes {
            let bytes = tensor.byte_len();
            fail!(ShapeMismatch, "the input '{name}' has {bytes} bytes; it must have {}", slot.bytes);
        }
    }
    if let Some((slot, _)) = slots.iter().zip(&given).find(|(slot, given)| slot.required && given.is_none()) {
        fail!(InvalidArgument, "the input '{}' ({:?}, {} bytes) is missing", slot.name, slot.meta, slot.bytes);
    }
    Ok(given)
}

/// Fills the cells: the caller's tensors, the constants, memory for the outputs.
fn bind(program: &Program, plan: &Plan<'_>, given: &[Option<&Tensor>]) -> Result<Vec<Mutex<Option<Memory>>>> {
    let slots = program.slots();
    let memory = |source: &Source| {
        Ok(match *source {
            Source::Allocated(_) | Source::Scratch(_) => None,
            Source::Constant(tensor) => program.code.tensors[tensor].data.clone(),
            Source::Input(slot) => match given[slot] {
                Some(tensor) => Some(tensor.clone()),
                // A slot that is not required is never read, so zeros are enough.
                None => Some(Tensor::zeros(slots[slot].meta.dtype, slots[slot].meta.shape.dims())?),
            },
            Source::Output(slot) => {
                let meta = &slots[slot].meta;
                match given[slot] {
                    Some(tensor) => Some(Tensor::from_bytes(tensor.bytes(), meta.dtype, meta.shape.dims())?),
                    None => Some(Tensor::zeros(meta.dtype, meta.shape.dims())?),
                }
            }
        }
        .map(Memory::Tensor))
    };
    plan.lowered().cells.iter().map(|source| memory(source).map(Mutex::new)).collect()
}

impl Run<'_> {
    fn memory(&self, cell: usize) -> Result<Memory> {
        match &*lock(&self.cells[cell]) {
            Some(memory) => Ok(memory.clone()),
            None => fail!(Internal, "cell {cell} has no memory"),
        }
    }

    fn step(&self, step: &Step) -> Result<()> {
        let begin = Instant::now();
        let (mut flops, mut bytes) = (0.0, 0.0);
        match &step.action {
            Do::Nothing | Do::Barrier => {}
            Do::Allocate { cell, zeroed } => {
                // The device allocates scratch itself.
                if let Source::Allocated(size) = self.plan.lowered().cells[*cell] {
                    let buffer = if *zeroed { HostBuffer::zeroed(size)? } else { HostBuffer::uninitialised(size)? };
                    *lock(&self.cells[*cell]) = Some(Memory::Buffer(Arc::new(buffer)));
                }
            }
            Do::Release(cell) => *lock(&self.cells[*cell]) = None,
            Do::Copy { from, to, bytes: count } => {
                let (from, to) = (self.memory(*from)?, self.memory(*to)?);
                // SAFETY: validation checked that both are at least this long and that they are different cells. Different cells
                // never share memory. The schedule lets no other step write `from` or touch `to` now.
                unsafe { to.pointer()?.as_ptr().copy_from_nonoverlapping(from.pointer()?.as_ptr(), *count) };
                bytes = 2.0 * *count as f64;
            }
            Do::Fill { cell, value, bytes: count } => {
                // SAFETY: validation checked that the memory is at least this long. The schedule lets no other step touch it now.
                unsafe { self.memory(*cell)?.pointer()?.as_ptr().write_bytes(*value, *count) };
                bytes = *count as f64;
            }
            Do::Command(work) => (flops, bytes) = self.command(work)?,
        }
        let spent = &mut lock(&self.spent)[step.instruction];
        spent[0] += begin.elapsed().as_secs_f64();
        spent[1] += flops;
        spent[2] += bytes;
        Ok(())
    }

    fn command(&self, work: &Work) -> Result<(f64, f64)> {
        let Work { op, attrs, inputs, output, .. } = work;
        let mut memories = SmallVec::<[Memory; 4]>::new();
        let mut views = Inputs::new();
        for input in inputs {
            let Some(Located { cell, meta }) = input else {
                views.push(None);
                continue;
            };
            let memory = self.memory(*cell)?;
            // SAFETY: validation checked that the cell is large enough. Buffers and tensors are aligned to 64 bytes and written
            // before they are read: an operation's result completely, the rest zeroed. The schedule lets no step write the cell
            // now, except this command where it works in place. `memories` keeps the memory alive.
            views.push(Some(unsafe { View::from_raw(memory.pointer()?, meta) }));
            memories.push(memory);
        }
        let memory = self.memory(output.cell)?;
        // SAFETY: as above, and the schedule lets no other step touch the memory now. The caller gets an output's tensor only
        // after the run.
        let target = unsafe { ViewMut::from_raw(memory.pointer()?, &output.meta) };
        let cost = op.info().cost(attrs, &views, &output.meta);
        let mut command = Command::lent(*op, attrs, &views, target)?;
        // An empty result needs no work, however large the other dimensions are. Only wrong ids must still be found.
        if output.meta.bytes() > 0 || op.checks_ids() {
            self.context.execute(&mut command)?;
        }
        Ok((cost.flops, cost.bytes))
    }

    fn outcome(self, program: &Program, seconds: f64) -> Outcome {
        let spent = self.spent.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut outputs = Vec::new();
        for (source, cell) in self.plan.lowered().cells.iter().zip(self.cells) {
            if let (Source::Output(slot), Some(Memory::Tensor(tensor))) =
                (source, cell.into_inner().unwrap_or_else(PoisonError::into_inner))
            {
                outputs.push((program.slots()[*slot].name.clone(), tensor));
            }
        }
        Outcome::new(program, self.plan, outputs, seconds, &self.context.device_info().id, &spent)
    }
}
