//! Processes batches on a device with several in flight: while one computes, the next one is uploaded and the previous one
//! is downloaded. `docs/overlap.md` describes the patterns.

mod lane;
mod lanes;
pub mod order;
mod output;

pub use lane::{Brought, Part, Stage};
pub use lanes::{Arrived, Lanes};
pub use output::Output;

use crate::batch::Batch;
use crate::thread::{caught, spawn};
use adead_core::{Context, Result};
use lane::{Lane, Started};
use lanes::{Starter, idle};
use output::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The most batches in flight at once.
pub const MAX_DEPTH: usize = 64;

/// Processes batches on a device, at most `depth` at once, each on its own stream. A batch is uploaded, `stage`
/// enqueues work on it, and the buffer that `stage` returns is downloaded. Depth 1 is sequential, 2 double buffering, 3
/// triple buffering.
///
/// At every depth the results equal those of a loop that processes one batch after the other. A batch's work begins when the
/// work of the previous batch is done, so `stage` may read and write buffers that all batches share. Uploads and downloads
/// overlap with the work. Results come in the order of the batches. An error comes in its batch's place and ends the iterator;
/// then no other batch starts. A panic in `batches` or `stage` is an error `internal`.
///
/// `batches` and `stage` are called in a separate thread. A batch is requested only when one of the `depth` lanes is free,
/// which means that the result of its last batch was taken. Lanes' buffers and results' memory are reused while sizes repeat.
/// `depth` + 1 results stay in the download's memory; further ones that are kept are copied. Dropping the iterator waits for
/// the batches in flight, and for `batches` if it is making one. On the CPU the stages run one after the other, concurrently
/// with the consumer.
///
/// `invalid_argument` unless `depth` is from 1 to [`MAX_DEPTH`].
///
/// ```
/// use adead::gpu::Operand;
/// use adead::{Attrs, Context, DType, Meta, Op, Shape};
///
/// let ctx = Context::auto()?;
/// let row = Meta::new(DType::F32, Shape::new(&[1000])?);
/// let batches = (0..8).map(|n| vec![n as f32 - 4.0; 1000]);
/// let results = adead::overlap(&ctx, batches, 3, move |stage| {
///     let (x, y) = (stage.input(), stage.buffer(4000)?);
///     let operand = |buffer| Operand { buffer, offset: 0, meta: &row };
///     stage.run(Op::Relu, &Attrs::default(), &[Some(operand(&x))], operand(&y))?;
///     Ok(y)
/// })?;
/// for (n, result) in results.enumerate() {
///     assert_eq!(result?.as_slice::<f32>()?, [(n as f32 - 4.0).max(0.0); 1000]);
/// }
/// # Ok::<(), adead::Error>(())
/// ```
pub fn overlap<I, P>(
    context: &Context,
    batches: I,
    depth: usize,
    stage: impl FnMut(&mut Stage<'_>) -> Result<P> + Send + 'static,
) -> Result<Overlap>
where
    I: IntoIterator<Item: Batch> + Send + 'static,
    P: Into<Part>,
{
    let (free, lanes) = channel();
    for lane in idle(context, depth)? {
        // [`Feeder`] has the other end.
        let _ = free.send(lane);
    }
    let (started, results) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let feeder = Feeder { starter: Starter::new(context), lanes, started, stop: stop.clone() };
    let thread = spawn("adead-overlap", move || feeder.feed(batches, stage))?;
    let running = Running { free: Some(free), results: Some(results), stop, thread: Some(thread) };
    // One more, because the consumer holds one result.
    Ok(Overlap { running: Some(running), pool: Pool::new(depth + 1) })
}

/// Iterates over the results of [`overlap`], in order.
pub struct Overlap {
    running: Option<Running>,
    pool: Arc<Pool>,
}

impl Overlap {
    fn finish(&mut self) -> Result<Option<Output>> {
        let Some(Running { free: Some(free), results: Some(results), .. }) = &self.running else { return Ok(None) };
        let Ok(started) = results.recv() else { return Ok(None) };
        let (lane, index, download) = started?.finish()?;
        let output = self.pool.output(index, download)?;
        // If no batch is left, nothing receives the lane.
        let _ = free.send(lane);
        Ok(Some(output))
    }
}

impl Iterator for Overlap {
    type Item = Result<Output>;

    fn next(&mut self) -> Option<Result<Output>> {
        let result = self.finish().transpose();
        if !matches!(result, Some(Ok(_))) {
            self.running = None;
        }
        result
    }
}

impl std::iter::FusedIterator for Overlap {}

/// The thread that starts batches, and the channels to and from it. Dropping it starts no more batches, and waits for
/// those in flight.
struct Running {
    free: Option<Sender<Lane>>,
    results: Option<Receiver<Result<Started>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.free = None;
        self.results = None;
        if let Some(thread) = self.thread.take() {
            // The thread's panics were caught.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Feeder {
    starter: Starter,
    lanes: Receiver<Lane>,
    started: Sender<Result<Started>>,
    stop: Arc<AtomicBool>,
}

impl Feeder {
    fn feed<I, P>(mut self, batches: I, stage: impl FnMut(&mut Stage<'_>) -> Result<P>)
    where
        I: IntoIterator<Item: Batch>,
        P: Into<Part>,
    {
        if let Err(error) = caught("overlap", || self.start_all(batches, stage)) {
            // If the consumer takes no more results, nothing needs the error.
            let _ = self.started.send(Err(error));
        }
    }

    fn start_all<I, P>(&mut self, batches: I, mut stage: impl FnMut(&mut Stage<'_>) -> Result<P>) -> Result<()>
    where
        I: IntoIterator<Item: Batch>,
        P: Into<Part>,
    {
        let mut batches = batches.into_iter();
        while let Ok(lane) = self.lanes.recv() {
            if self.stop.load(Relaxed) {
                break;
            }
            let Some(batch) = batches.next() else { break };
            let work = |of: &mut Stage<'_>| -> Result<_> { Ok(Brought::from(stage(of)?.into())) };
            let started = self.starter.start(lane, batch.bytes()?, work)?;
            if self.started.send(Ok(started)).is_err() {
                break;
            }
        }
        Ok(())
    }
}
