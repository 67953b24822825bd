//! Watches over streams: the times of every piece of work that a stream receives.

use super::recorder::{ProfilerHandle, Times, cycles};
use super::what::What;
use crate::hal::{Device, DeviceKind, Stream, Timestamp};
use std::sync::Arc;
use std::time::Instant;

/// Watches the work that a stream receives, piece by piece. Without a profile it does nothing.
pub(crate) struct Watch<'a>(Option<Box<Watching<'a>>>);

struct Watching<'a> {
    profiler: &'a ProfilerHandle,
    device: &'a Arc<dyn Device>,
    stream: usize,
    since: Point,
}

/// The moment between two pieces of work.
struct Point {
    host: Instant,
    cycles: Option<u64>,
    device: Option<Arc<dyn Timestamp>>,
}

impl<'a> Watch<'a> {
    /// Makes a watch that does nothing.
    pub fn nothing() -> Watch<'a> {
        Watch(None)
    }

    /// Begins to watch the stream with this number.
    #[inline]
    pub fn begin(
        profiler: &'a ProfilerHandle,
        device: &'a Arc<dyn Device>,
        number: usize,
        stream: &mut dyn Stream,
    ) -> Watch<'a> {
        if profiler.is_on() { Watch::over(profiler, device, number, stream) } else { Watch(None) }
    }

    #[cold]
    #[inline(never)]
    fn over(
        profiler: &'a ProfilerHandle,
        device: &'a Arc<dyn Device>,
        number: usize,
        stream: &mut dyn Stream,
    ) -> Watch<'a> {
        if !is_host(device) {
            profiler.know(device);
        }
        Watch(Some(Box::new(Watching { profiler, device, stream: number, since: Point::now(device, stream) })))
    }

    /// Records the work that the stream received since the last step.
    #[inline]
    pub fn step(&mut self, stream: &mut dyn Stream, what: &What<'_>) {
        if let Some(watching) = &mut self.0 {
            watching.step(stream, what);
        }
    }
}

impl Watching<'_> {
    #[cold]
    #[inline(never)]
    fn step(&mut self, stream: &mut dyn Stream, what: &What<'_>) {
        let mut now = Point::now(self.device, stream);
        let host = [self.since.host, now.host];
        let times = if is_host(self.device) {
            Times::Host(now.cycles.zip(self.since.cycles).map(|(end, begin)| end.saturating_sub(begin)))
        } else {
            match (self.since.device.take(), &now.device) {
                (Some(begin), Some(end)) => Times::Device(begin, end.clone()),
                _ => Times::None,
            }
        };
        self.profiler.push(&self.device.info().id, what, self.stream, host, times);
        // The time to write the record does not count.
        (now.host, now.cycles) = (Instant::now(), cycles());
        self.since = now;
    }
}

impl Point {
    fn now(device: &Arc<dyn Device>, stream: &mut dyn Stream) -> Point {
        let taken = if is_host(device) { None } else { stream.timestamp().ok() };
        Point { host: Instant::now(), cycles: cycles(), device: taken }
    }
}

/// Whether the caller's thread does the work before the call returns.
fn is_host(device: &Arc<dyn Device>) -> bool {
    device.info().kind == DeviceKind::Cpu
}
