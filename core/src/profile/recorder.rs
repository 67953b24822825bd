//! The recorder: the flag that calls read, the session, and its records.

use super::record::{Reason, Record, Span};
use super::report::{DeviceUse, Report};
use super::what::{Described, What};
use crate::command::Command;
use crate::error::{Result, fail};
use crate::hal::cpu::CpuDevice;
use crate::hal::{Device, Timestamp};
use crate::ops::Cost;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most records whose device times are not read yet. Beyond it, times are read as soon as the device has them, because
/// timestamps occupy objects of the driver.
const UNREAD: usize = 256;

/// Whether a context is profiled, and the recorded session.
#[derive(Default)]
pub(crate) struct Profiler {
    on: AtomicBool,
    session: Mutex<Option<Box<Session>>>,
    streams: AtomicUsize,
}

/// A profiler, shared by a context and its devices.
pub(crate) type ProfilerHandle = Arc<Profiler>;

/// The state of a running profile.
pub(super) struct Session {
    pub start: Instant,
    limit: usize,
    /// Records and devices. Totals are computed when the profile ends.
    pub report: Report,
    /// By device: the nanoseconds to add to its clock to get the session's time.
    offsets: Vec<Option<i64>>,
    threads: Vec<usize>,
    unread: Vec<Unread>,
}

/// A record whose times are still on the device.
struct Unread {
    record: usize,
    begin: Arc<dyn Timestamp>,
    end: Arc<dyn Timestamp>,
}

/// The number of this thread, from 1. The standard library's ThreadId allocates in threads that Rust did not start.
fn thread_number() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(0) });
    if NUMBER.get() == 0 {
        NUMBER.set(LAST.fetch_add(1, Relaxed) + 1);
    }
    NUMBER.get()
}

/// Reads the processor's time stamp counter, if it has one.
pub(super) fn cycles() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

impl Profiler {
    /// Returns whether a profile is running.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Returns a number for a new stream.
    pub fn number_stream(&self) -> usize {
        self.streams.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn begin(&self, limit: usize) -> Result<()> {
        let mut session = self.session();
        if session.is_some() {
            fail!(InvalidArgument, "a profile of this context is under way: finish it before the next one");
        }
        *session = Some(Box::new(Session {
            start: Instant::now(),
            limit,
            report: Report::default(),
            offsets: Vec::new(),
            threads: Vec::new(),
            unread: Vec::new(),
        }));
        self.on.store(true, Relaxed);
        Ok(())
    }

    pub(super) fn end(&self) -> Option<Box<Session>> {
        self.on.store(false, Relaxed);
        let mut session = self.session().take()?;
        for unread in std::mem::take(&mut session.unread) {
            unread.read(&mut session.report, &session.offsets);
        }
        Some(session)
    }

    /// Executes a command on the CPU, and records it if a profile is running.
    #[inline]
    pub fn execute(&self, cpu: &CpuDevice, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        if self.is_on() { self.record(cpu, command, reason) } else { cpu.execute(command) }
    }

    #[cold]
    #[inline(never)]
    fn record(&self, cpu: &CpuDevice, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        let (begin, ticks) = (Instant::now(), cycles());
        cpu.execute(command)?;
        let (taken, end) = (cycles().zip(ticks).map(|(end, begin)| end.saturating_sub(begin)), Instant::now());
        self.push(&cpu.info().id, &What::command(command, reason), 0, [begin, end], Times::Host(taken));
        Ok(())
    }

    /// Runs work of several operations on the CPU, and records it.
    #[cold]
    #[inline(never)]
    pub fn perform(
        &self,
        cpu: &CpuDevice,
        reason: Reason,
        what: &dyn Fn() -> Described,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let (begin, ticks) = (Instant::now(), cycles());
        work()?;
        let (taken, end) = (cycles().zip(ticks).map(|(end, begin)| end.saturating_sub(begin)), Instant::now());
        self.push(&cpu.info().id, &What::step(&what(), reason), 0, [begin, end], Times::Host(taken));
        Ok(())
    }

    fn session(&self) -> MutexGuard<'_, Option<Box<Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the clocks of a device and the host, once in a session. It uses a new stream, so the device's other streams
    /// continue.
    pub(super) fn know(&self, device: &Arc<dyn Device>) {
        let id = &device.info().id;
        let start = match &*self.session() {
            Some(session) if session.report.devices.iter().all(|known| known.id != *id) => session.start,
            _ => return,
        };
        let offset = compare(device, start);
        if let Some(session) = &mut *self.session() {
            session.device(id, offset);
        }
    }

    /// Adds a record to the session, or counts it as dropped beyond the limit.
    pub(super) fn push(&self, id: &str, what: &What<'_>, stream: usize, [begin, end]: [Instant; 2], times: Times) {
        let mut guard = self.session();
        let Some(session) = &mut *guard else { return };
        // Work that began before this profile belongs to the previous one.
        let Some(begin) = begin.checked_duration_since(session.start) else { return };
        if session.report.records.len() >= session.limit {
            session.report.dropped += 1;
            return;
        }
        let end = end.saturating_duration_since(session.start);
        let host = Span { begin_ns: begin.as_nanos() as u64, end_ns: end.as_nanos() as u64 };
        let caller = thread_number();
        let thread = session.threads.iter().position(|&known| known == caller).unwrap_or(session.threads.len());
        if thread == session.threads.len() {
            session.threads.push(caller);
        }
        let device = session.device(id, None);
        let (mut work, mut cycles) = (None, None);
        match times {
            Times::Host(taken) => (work, cycles) = (Some(host), taken),
            Times::Device(begin, end) => {
                session.unread.push(Unread { record: session.report.records.len(), begin, end });
            }
            Times::None => {}
        }
        let (activity, name, operands, Cost { flops, bytes }) = what.describe();
        session.report.records.push(Record {
            activity,
            name,
            operands,
            device,
            reason: what.reason,
            thread,
            stream,
            host,
            work,
            cycles,
            flops,
            bytes,
        });
        while session.unread.len() > UNREAD && session.read_first() {}
    }
}

/// Where a record's times come from.
pub(super) enum Times {
    /// The host did the work itself. The value is the cycles that it took.
    Host(Option<u64>),
    /// The device measures them.
    Device(Arc<dyn Timestamp>, Arc<dyn Timestamp>),
    /// The device can't measure.
    None,
}

impl Session {
    /// Returns a device's index.
    fn device(&mut self, id: &str, offset: Option<i64>) -> usize {
        let devices = &mut self.report.devices;
        if let Some(index) = devices.iter().position(|known| known.id == id) {
            return index;
        }
        devices.push(DeviceUse { id: id.into(), figures: None, work_ns: 0, uploaded: 0, downloaded: 0 });
        self.offsets.push(offset);
        devices.len() - 1
    }

    /// Reads the times of the oldest unread record. Returns whether they were available.
    fn read_first(&mut self) -> bool {
        let done = self.unread.first().is_some_and(|unread| unread.read(&mut self.report, &self.offsets));
        if done {
            self.unread.remove(0);
        }
        done
    }
}

impl Unread {
    /// Reads the times. Returns whether they were available.
    fn read(&self, report: &mut Report, offsets: &[Option<i64>]) -> bool {
        let (Ok(begin), Ok(end)) = (self.begin.nanoseconds(), self.end.nanoseconds()) else { return false };
        let record = &mut report.records[self.record];
        if let Some(offset) = offsets[record.device] {
            let begin_ns = begin.saturating_add_signed(offset);
            record.work = Some(Span { begin_ns, end_ns: begin_ns + end.saturating_sub(begin) });
        }
        true
    }
}

/// Finds the nanoseconds to add to a device's clock to get the time since `start`. The shortest of three comparisons counts.
fn compare(device: &Arc<dyn Device>, start: Instant) -> Option<i64> {
    let mut stream = device.clone().stream().ok()?;
    let mut best: Option<(u64, i64)> = None;
    for _ in 0..3 {
        let before = start.elapsed().as_nanos() as u64;
        let taken = stream.timestamp().ok()?;
        stream.synchronize().ok()?;
        let window = start.elapsed().as_nanos() as u64 - before;
        let offset = (before + window / 2) as i64 - taken.nanoseconds().ok()? as i64;
        if best.is_none_or(|(least, _)| window < least) {
            best = Some((window, offset));
        }
    }
    Some(best?.1)
}
