//! A fake CUDA driver in host memory, for tests without a GPU. It has the same table of functions.
//!
//! Streams are queues that advance only during a wait or a query, so a missing wait shows in the data. What breaks the
//! real driver's rules (memory freed while work uses it, a module unloaded under its kernel, objects left in a context)
//! is recorded as a violation.

mod calls;
mod functions;
mod work;

use super::api::{Api, Driver};
use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use work::{Item, Work};

/// A device for the fake driver.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// The compute capability: 90 is 9.0.
    pub capability: i32,
    /// Bytes of memory.
    pub memory: usize,
    /// Whether it is part of the processor.
    pub integrated: bool,
}

impl Default for Card {
    fn default() -> Card {
        Card { capability: 90, memory: 1 << 30, integrated: false }
    }
}

impl Card {
    /// Returns the bytes of shared memory of a multiprocessor, from NVIDIA's tables.
    fn shared_memory(&self) -> i32 {
        let kibibytes = match self.capability {
            ..75 => 96,
            75..80 => 64,
            80 | 87 => 164,
            86 | 89 | 120.. => 100,
            _ => 228,
        };
        kibibytes << 10
    }
}

/// The fake driver. Only one exists at a time; making another one waits.
pub struct Fake {
    driver: &'static Driver,
    _turn: MutexGuard<'static, ()>,
}

/// A result that calls return instead of running.
struct Fault {
    function: &'static str,
    /// The calls that still succeed.
    after: usize,
    /// The calls that fail after those.
    times: usize,
    result: i32,
}

struct Device {
    card: Card,
    used: usize,
    retained: usize,
    /// The result of every call after a kernel failed; 0 before.
    broken: i32,
}

struct Block {
    device: usize,
    bytes: usize,
    host: bool,
}

struct Stream {
    device: usize,
    queue: VecDeque<Item>,
    /// The captured work, while capturing.
    captured: Option<Vec<Work>>,
    /// Destroyed with work in flight, which still runs.
    orphan: bool,
}

#[derive(Default)]
struct Event {
    device: usize,
    timed: bool,
    /// The number of recordings, and the time at which the last was reached.
    recorded: usize,
    time: u64,
}

struct Module {
    device: usize,
    names: Vec<&'static str>,
}

#[derive(Default)]
struct State {
    devices: Vec<Device>,
    blocks: BTreeMap<u64, Block>,
    streams: BTreeMap<usize, Stream>,
    events: BTreeMap<usize, Event>,
    modules: BTreeMap<usize, Module>,
    graphs: BTreeMap<usize, (usize, Vec<Work>)>,
    launchable: BTreeMap<usize, (usize, Vec<Work>)>,
    /// The module and name of each function.
    functions: BTreeMap<usize, (usize, &'static str)>,
    next: usize,
    clock: u64,
    faults: Vec<Fault>,
    calls: BTreeMap<&'static str, usize>,
    violations: Vec<String>,
    priorities: Vec<i32>,
}

/// All fake drivers. They are kept, as a real driver is.
static DRIVERS: Mutex<Vec<&'static Driver>> = Mutex::new(Vec::new());
static TURN: Mutex<()> = Mutex::new(());
static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The contexts of this thread; the last is current.
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A context's handle is this times the device's number plus 1.
const CONTEXT: usize = 0x1000;

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    /// Makes a driver with these devices.
    pub fn new(cards: &[Card]) -> Fake {
        Fake::with(cards, |_| {})
    }

    /// Makes a driver with a changed table of functions.
    pub fn with(cards: &[Card], change: impl FnOnce(&mut Api)) -> Fake {
        Fake::of(cards, change, false)
    }

    /// Makes a driver that collects work until it is queried, as on Windows, or submits it at once.
    pub fn of(cards: &[Card], change: impl FnOnce(&mut Api), collects: bool) -> Fake {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let device = |&card: &Card| Device { card, used: 0, retained: 0, broken: 0 };
        *state() = Some(State { devices: cards.iter().map(device).collect(), next: 1, ..State::default() });
        let mut api = functions::TABLE;
        change(&mut api);
        let mut driver = Driver::start(api).expect("the driver of a test starts");
        driver.collects = collects;
        let driver: &'static Driver = Box::leak(Box::new(driver));
        DRIVERS.lock().unwrap_or_else(PoisonError::into_inner).push(driver);
        Fake { driver, _turn: turn }
    }

    /// Returns the driver.
    #[cfg(test)]
    pub(crate) fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// Makes the options that open its devices.
    pub fn opening(&self) -> super::Opening {
        super::Opening { driver: Some(self.driver), ..super::Opening::default() }
    }

    fn ask<R>(&self, ask: impl FnOnce(&mut State) -> R) -> R {
        ask(state().as_mut().expect("a driver is there"))
    }

    /// Makes calls of a function fail: the first `after` calls succeed, the next `times` calls return `result`.
    pub fn fail(&self, function: &'static str, after: usize, times: usize, result: i32) {
        self.ask(|state| state.faults.push(Fault { function, after, times, result }));
    }

    /// Removes all injected faults. A device that is broken stays broken.
    pub fn heal(&self) {
        self.ask(|state| state.faults.clear());
    }

    /// Returns how often a function was called.
    pub fn calls(&self, function: &str) -> usize {
        self.ask(|state| state.calls.get(function).copied().unwrap_or(0))
    }

    /// Returns the priority of each stream, in the order in which they were made.
    pub fn priorities(&self) -> Vec<i32> {
        self.ask(|state| state.priorities.clone())
    }

    /// Returns the number of calls of all functions.
    pub fn all_calls(&self) -> usize {
        self.ask(|state| state.calls.values().sum())
    }

    /// Returns the number of objects that exist: blocks, streams, events, modules, graphs and retained contexts.
    pub fn live(&self) -> usize {
        self.ask(|state| {
            let retained: usize = state.devices.iter().map(|device| device.retained).sum();
            let graphs = state.graphs.len() + state.launchable.len();
            let streams = state.streams.values().filter(|stream| !stream.orphan).count();
            state.blocks.len() + streams + state.events.len() + state.modules.len() + graphs + retained
        })
    }

    /// Returns the number of memory blocks, of devices and pinned.
    pub fn blocks(&self) -> usize {
        self.ask(|state| state.blocks.len())
    }

    /// Returns the bytes of pinned memory.
    pub fn pinned(&self) -> usize {
        self.ask(|state| state.blocks.values().filter(|block| block.host).map(|block| block.bytes).sum())
    }

    /// Returns the violations of the real driver's rules.
    pub fn violations(&self) -> Vec<String> {
        self.ask(|state| state.violations.clone())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let left = state().take();
        for (address, block) in left.into_iter().flat_map(|state| state.blocks) {
            free(address, &block);
        }
        CONTEXTS.with_borrow_mut(Vec::clear);
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), 256).expect("a size that fits")
}

/// Allocates memory filled with a pattern: zeros would hide reads of uninitialised memory.
fn take(bytes: usize) -> u64 {
    // SAFETY: the layout's size is above 0.
    let pointer = unsafe { alloc(layout(bytes)) };
    assert!(!pointer.is_null(), "the host has no memory for {bytes} bytes");
    // SAFETY: the allocation has at least that many bytes.
    unsafe { pointer.write_bytes(0xd7, bytes.min(1 << 20)) };
    pointer.expose_provenance() as u64
}

fn free(address: u64, block: &Block) {
    // SAFETY: allocated with this layout, and the caller keeps no pointer to it.
    unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout(block.bytes)) };
}

impl State {
    fn id(&mut self) -> usize {
        self.next += 1;
        // Handles can't be mistaken for addresses.
        self.next << 4
    }

    /// Returns the device of this thread's current context.
    fn current(&self) -> Result<usize, i32> {
        const INVALID_CONTEXT: i32 = 201;
        let context = CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0));
        let device = (context / CONTEXT).wrapping_sub(1);
        match self.devices.get(device) {
            Some(state) if state.retained > 0 => Ok(device),
            _ => Err(INVALID_CONTEXT),
        }
    }

    /// Returns whether a range lies inside one block of host or device memory.
    fn holds(&self, address: u64, bytes: u64, host: bool) -> bool {
        let block = self.blocks.range(..=address).next_back();
        block.is_some_and(|(at, block)| block.host == host && address - at + bytes <= block.bytes as u64)
    }

    fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    /// Frees a block.
    fn remove(&mut self, address: u64, host: bool) -> i32 {
        let Some(block) = self.blocks.remove(&address).filter(|block| block.host == host) else {
            self.violation(format!("memory at {address:#x} is freed and was not taken"));
            return super::api::code::INVALID_VALUE;
        };
        let range = address..address + block.bytes as u64;
        let used = self.streams.values().flat_map(|stream| &stream.queue).any(|item| item.uses(&range));
        if used {
            self.violation(format!("{} bytes at {address:#x} are freed while work uses them", block.bytes));
        }
        if !host {
            self.devices[block.device].used -= block.bytes;
        }
        free(address, &block);
        0
    }

    /// Ends a context and frees everything left in it.
    fn end(&mut self, device: usize) {
        let blocks: Vec<u64> =
            self.blocks.iter().filter(|(_, block)| block.device == device).map(|(&at, _)| at).collect();
        let count = |of: usize| usize::from(of == device);
        let left: usize =
            self.streams.values().filter(|stream| !stream.orphan).map(|stream| count(stream.device)).sum::<usize>()
                + self.events.values().map(|event| count(event.device)).sum::<usize>()
                + self.modules.values().map(|module| count(module.device)).sum::<usize>()
                + self.graphs.values().chain(self.launchable.values()).map(|graph| count(graph.0)).sum::<usize>()
                + blocks.len();
        if left > 0 && self.devices[device].broken == 0 {
            self.violation(format!("{left} things are left in the context of device {device}"));
        }
        self.streams.retain(|_, stream| stream.device != device);
        self.events.retain(|_, event| event.device != device);
        self.modules.retain(|_, module| module.device != device);
        self.graphs.retain(|_, graph| graph.0 != device);
        self.launchable.retain(|_, graph| graph.0 != device);
        for address in blocks {
            if let Some(block) = self.blocks.remove(&address) {
                free(address, &block);
            }
        }
        (self.devices[device].used, self.devices[device].broken) = (0, 0);
    }
}
