//! A CUDA driver in host memory, for tests where there is no GPU: the same table of functions.
//!
//! Streams are queues that move only when somebody waits or asks, so that a wait that is missing shows in the data. What the real
//! driver would not forgive (memory freed while work uses it, a module unloaded under its kernel, something left behind in a
//! context) is written down as a violation.

mod functions;
mod work;

use super::api::{Api, Driver};
use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use work::{Item, Work};

/// A device to make.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// Compute capability: 9.0 is 90.
    pub capability: i32,
    /// Bytes of memory.
    pub memory: usize,
    /// Whether it is in the processor.
    pub integrated: bool,
}

impl Default for Card {
    fn default() -> Card {
        Card { capability: 90, memory: 1 << 30, integrated: false }
    }
}

impl Card {
    /// Bytes of shared memory that a multiprocessor has, as NVIDIA's tables say.
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

/// The driver, for as long as this is there; another one waits for it.
pub struct Fake {
    driver: &'static Driver,
    _turn: MutexGuard<'static, ()>,
}

/// A result that calls give instead of what they do.
struct Fault {
    function: &'static str,
    /// Calls that still go well.
    after: usize,
    /// Calls that fail then.
    times: usize,
    result: i32,
}

struct Device {
    card: Card,
    used: usize,
    retained: usize,
    /// What every call gives once a kernel did something wrong.
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
    /// Set while capturing.
    captured: Option<Vec<Work>>,
    /// Destroyed with work under way, which goes on.
    orphan: bool,
}

#[derive(Default)]
struct Event {
    device: usize,
    timed: bool,
    /// How often it was recorded, and when the last was reached.
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
    /// Module and name of functions that were taken.
    functions: BTreeMap<usize, (usize, &'static str)>,
    next: usize,
    clock: u64,
    faults: Vec<Fault>,
    calls: BTreeMap<&'static str, usize>,
    violations: Vec<String>,
    priorities: Vec<i32>,
}

/// Those that were made: a driver stays, as a real one does.
static DRIVERS: Mutex<Vec<&'static Driver>> = Mutex::new(Vec::new());
static TURN: Mutex<()> = Mutex::new(());
static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The contexts of this thread, the current one last.
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// What a context's handle is.
const CONTEXT: usize = 0x1000;

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    /// A driver with these devices.
    pub fn new(cards: &[Card]) -> Fake {
        Fake::with(cards, |_| {})
    }

    /// A driver whose table is changed.
    pub fn with(cards: &[Card], change: impl FnOnce(&mut Api)) -> Fake {
        Fake::of(cards, change, false)
    }

    /// A driver that collects work until it is asked, as on Windows, or never does.
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

    /// The driver.
    pub(crate) fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// How to open its devices.
    pub fn opening(&self) -> super::Opening {
        super::Opening { driver: Some(self.driver), ..super::Opening::default() }
    }

    fn ask<R>(&self, ask: impl FnOnce(&mut State) -> R) -> R {
        ask(state().as_mut().expect("a driver is there"))
    }

    /// After so many calls that go well, a function gives this result so many times.
    pub fn fail(&self, function: &'static str, after: usize, times: usize, result: i32) {
        self.ask(|state| state.faults.push(Fault { function, after, times, result }));
    }

    /// Nothing fails from here on that was not broken before.
    pub fn heal(&self) {
        self.ask(|state| state.faults.clear());
    }

    /// How often a function was called.
    pub fn calls(&self, function: &str) -> usize {
        self.ask(|state| state.calls.get(function).copied().unwrap_or(0))
    }

    /// What was asked of streams when they were made, the earliest first.
    pub fn priorities(&self) -> Vec<i32> {
        self.ask(|state| state.priorities.clone())
    }

    /// How often all of them were.
    pub fn all_calls(&self) -> usize {
        self.ask(|state| state.calls.values().sum())
    }

    /// Objects that are there: blocks, streams, events, modules, graphs, retained contexts.
    pub fn live(&self) -> usize {
        self.ask(|state| {
            let retained: usize = state.devices.iter().map(|device| device.retained).sum();
            let graphs = state.graphs.len() + state.launchable.len();
            let streams = state.streams.values().filter(|stream| !stream.orphan).count();
            state.blocks.len() + streams + state.events.len() + state.modules.len() + graphs + retained
        })
    }

    /// Blocks of memory that are there, of devices or pinned.
    pub fn blocks(&self) -> usize {
        self.ask(|state| state.blocks.len())
    }

    /// Bytes of pinned memory that are there.
    pub fn pinned(&self) -> usize {
        self.ask(|state| state.blocks.values().filter(|block| block.host).map(|block| block.bytes).sum())
    }

    /// What was done that the real driver would not forgive.
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

/// Zeroed memory would hide what is read before it is written.
fn take(bytes: usize) -> u64 {
    // SAFETY: a size above zero.
    let pointer = unsafe { alloc(layout(bytes)) };
    assert!(!pointer.is_null(), "the host has no memory for {bytes} bytes");
    // SAFETY: as many bytes as were taken.
    unsafe { pointer.write_bytes(0xd7, bytes.min(1 << 20)) };
    pointer.expose_provenance() as u64
}

fn free(address: u64, block: &Block) {
    // SAFETY: taken with this layout, and forgotten by the caller.
    unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout(block.bytes)) };
}

impl State {
    fn id(&mut self) -> usize {
        self.next += 1;
        // Nothing that could be mistaken for an address.
        self.next << 4
    }

    /// The device of this thread's current context.
    fn current(&self) -> Result<usize, i32> {
        const INVALID_CONTEXT: i32 = 201;
        let context = CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0));
        let device = (context / CONTEXT).wrapping_sub(1);
        match self.devices.get(device) {
            Some(state) if state.retained > 0 => Ok(device),
            _ => Err(INVALID_CONTEXT),
        }
    }

    /// Whether a range is inside one block, of the host or not.
    fn holds(&self, address: u64, bytes: u64, host: bool) -> bool {
        let block = self.blocks.range(..=address).next_back();
        block.is_some_and(|(at, block)| block.host == host && address - at + bytes <= block.bytes as u64)
    }

    fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    /// Takes a block away.
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

    /// Ends a context: what is left in it goes.
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
