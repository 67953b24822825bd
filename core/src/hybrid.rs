//! One operation on several devices at once: each device computes some rows of the result.
//!
//! First the GPUs receive their operands, all at once, from threads of the CPU's pool. While they compute, the CPU computes its
//! rows on the caller's thread and its pool. Then the GPUs' rows are downloaded. If GPUs take operands from one another, their rows
//! stay with them.

use crate::command::Command;
use crate::devices::Opened;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::cpu::{CpuDevice, check_all_ids};
use crate::hal::{Buffer, Download, Slice, Stream, Workers};
use crate::interrupt;
use crate::operand::ViewMut;
use crate::ops::{Cut, Op, Part};
use crate::profile::{Activity, Profiler, Reason, What};
use crate::tensor::Tensor;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Results up to this size are downloaded while other devices still compute, which takes as much pinned memory. Longer results
/// are downloaded in pieces afterwards.
const EARLY: usize = 64 << 20;

/// A GPU's part. The stream is locked meanwhile, so that errors on it belong to this command.
struct Sent<'a> {
    opened: &'a Opened,
    stream: MutexGuard<'a, Box<dyn Stream>>,
    part: Part,
    way: Way,
}

/// The place of a part's result, and its download if one has begun.
#[derive(Default)]
struct Way {
    result: Option<Arc<dyn Buffer>>,
    download: Option<Box<dyn Download>>,
}

/// The whole operation, shared by the threads that each give a GPU its part.
struct Whole<'a, 'b>(&'a Cut<'b>, &'a ViewMut<'b>);

// SAFETY: operands are only read, and each part writes its own rows of the result.
unsafe impl Sync for Whole<'_, '_> {}

/// Executes a cut operation on devices. `parts` has a device and its number of rows, in the order of rows; `None` is the CPU.
/// `cpu` is the CPU device and the profiler of its work. The rows must add up to all rows. After an error in any part, some rows
/// may have been written.
pub(crate) fn execute(
    cpu: (&CpuDevice, &Profiler),
    parts: &[(Option<&Opened>, usize)],
    cut: &Cut<'_>,
    output: &mut ViewMut<'_>,
) -> Result<()> {
    cut.unchecked().map_or(Ok(()), check_all_ids)?;
    let mut sent = Vec::new();
    let done = execute_parts(cpu, parts, cut, output, &mut sent);
    if done.is_err() {
        // Errors of the other parts are dropped here. Otherwise the next wait on their streams would return them.
        sent.iter_mut().for_each(|sent: &mut Sent<'_>| drop(sent.stream.synchronize()));
    }
    done
}

/// Computes a cut operation on GPUs that take operands from one another, and returns its result, which stays with them. `parts` has
/// a device and its number of rows, in the order of rows. The rows must add up to all rows.
pub(crate) fn compute(
    cpu: &CpuDevice,
    parts: &[(&Opened, usize)],
    cut: &Cut<'_>,
    output: &ViewMut<'_>,
) -> Result<Tensor> {
    let (mut first, mut jobs, mut uploads) = (0, Vec::with_capacity(parts.len()), false);
    for &(opened, rows) in parts {
        let part = cut.part(first, rows);
        first += rows;
        uploads |= opened.lacks(cut, &part)?;
        jobs.push(Mutex::new((opened, part, None)));
    }
    let whole = Whole(cut, output);
    let compute = |i: usize| {
        let _environment = DefaultEnvironment::enter();
        let Whole(cut, _) = &whole;
        let mut job = jobs[i].lock().unwrap_or_else(PoisonError::into_inner);
        let (opened, part, done) = &mut *job;
        *done = Some(opened.compute_part(cut, part));
    };
    // Uploads are waited for, so they begin at the same time. To enqueue alone takes less time than to wake a thread.
    match uploads {
        true => cpu.run(parts.len(), &compute),
        false => (0..parts.len()).for_each(compute),
    }
    let mut pieces = Vec::with_capacity(parts.len());
    for job in jobs {
        let Some(done) = job.into_inner().unwrap_or_else(PoisonError::into_inner).2 else {
            fail!(Internal, "{}: a part was not computed", cut.op())
        };
        pieces.push(done?);
    }
    Ok(Tensor::in_pieces(output.meta(), pieces))
}

fn execute_parts<'a>(
    (cpu, profiler): (&CpuDevice, &Profiler),
    parts: &[(Option<&'a Opened>, usize)],
    cut: &Cut<'_>,
    output: &mut ViewMut<'_>,
    sent: &mut Vec<Sent<'a>>,
) -> Result<()> {
    let (mut first, mut own) = (0, None);
    // Streams are locked in the same order by all threads that divide an operation, so they can't deadlock.
    for &(device, rows) in parts.iter().filter(|(_, rows)| *rows > 0) {
        let part = cut.part(first, rows);
        first += rows;
        match device {
            Some(opened) => sent.push(Sent { opened, stream: opened.lock(), part, way: Way::default() }),
            None => own = Some(part),
        }
    }
    send(cpu, cut, output, sent)?;
    if let Some(part) = own {
        let inputs = part.inputs(cut)?;
        let mut command = Command::lent(cut.op(), cut.attrs(), &inputs, part.output(output)?)?;
        // The GPUs' streams are locked, and the caller's check might need them, so it is not called.
        interrupt::unasked(|| profiler.execute(cpu, &mut command, Reason::Split))?;
    }
    sent.iter_mut().try_for_each(|sent| sent.finish(cut.op(), output))
}

/// Gives all GPUs their parts at once, because each has a bus of its own.
fn send(cpu: &CpuDevice, cut: &Cut<'_>, output: &ViewMut<'_>, sent: &mut [Sent<'_>]) -> Result<()> {
    let whole = Whole(cut, output);
    let jobs: Vec<_> = sent
        .iter_mut()
        .map(|Sent { opened, stream, part, way }| Mutex::new((*opened, &mut ***stream, &*part, way, Ok(()))))
        .collect();
    cpu.run(jobs.len(), &|i| {
        let (opened, stream, part, way, done) = &mut *jobs[i].lock().unwrap_or_else(PoisonError::into_inner);
        // The pool's thread has its own floating-point modes, which drivers must not see either.
        let _environment = DefaultEnvironment::enter();
        let sent = Way::new(opened, *stream, part, &whole);
        *done = sent.map(|sent| **way = sent);
    });
    jobs.into_iter().try_for_each(|job| job.into_inner().unwrap_or_else(PoisonError::into_inner).4)
}

impl Way {
    /// Enqueues a part.
    fn new(opened: &Opened, stream: &mut dyn Stream, part: &Part, Whole(cut, output): &Whole<'_, '_>) -> Result<Way> {
        let inputs = part.inputs(cut)?;
        let mut command = Command::lent(cut.op(), cut.attrs(), &inputs, part.output(output)?)?;
        let mut watch = opened.begin_watch(0, stream);
        let result = opened.send(stream, &mut command, Reason::Split, &mut watch)?;
        let bytes = part.result().bytes();
        let early = result.as_deref().filter(|_| bytes <= EARLY);
        // If there is no memory for an early download, the result is read later.
        let download = early.and_then(|buffer| stream.download(Slice { buffer, offset: 0, bytes }).ok());
        if download.is_some() {
            watch.step(stream, &What::bytes(Activity::Download, bytes, cut.op().name(), Reason::Split));
        }
        Ok(Way { result, download })
    }
}

impl Sent<'_> {
    fn finish(&mut self, op: Op, output: &mut ViewMut<'_>) -> Result<()> {
        let Sent { opened, stream, part, way: Way { result, download } } = self;
        let Some(result) = result else { return Ok(()) };
        let bytes = part.result().bytes();
        // SAFETY: the caller guarantees the memory of the whole output, and these rows belong to this part.
        let into = unsafe { slice::from_raw_parts_mut(part.output(output)?.host()?, bytes) };
        match download.take() {
            None => {
                let what = What::bytes(Activity::Download, bytes, op.name(), Reason::Split);
                opened.watch(Some(0), &mut ***stream, &what, &mut |stream| stream.read(&**result, 0, into))
            }
            Some(download) => {
                // Errors come first: the bytes could be the result of wrong data.
                stream.synchronize()?;
                download.take(into)
            }
        }
    }
}

#[cfg(test)]
mod tests;
