//! The work in the fake driver's streams, and its execution.

use super::State;
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Work for a device.
#[derive(Clone, Debug)]
pub enum Work {
    /// Copies bytes between two addresses; each says whether it is in host memory.
    Copy { from: (u64, bool), to: (u64, bool), bytes: u64 },
    /// Writes a word `count` times.
    Set { to: u64, word: u32, count: u64 },
    /// Runs a kernel of a module, with its parameters, over `threads` threads.
    Kernel { module: usize, name: &'static str, parameters: Vec<u8>, threads: u64 },
}

/// An entry of a stream.
#[derive(Clone, Debug)]
pub enum Item {
    Work(Work),
    /// Records an event for the recording with this number.
    Record(usize, usize),
    /// Waits for a recording of an event.
    Wait(usize, usize),
}

/// The kernels that the fake driver knows, with offset and bytes of their parameters.
pub const KERNELS: [(&str, &[(usize, usize)]); 4] = [
    // c[i] = a[i] + b[i] for i < n: a, b, c, n.
    ("vecadd", &[(0, 8), (8, 8), (16, 8), (24, 4)]),
    // p[i] += by for i < n: p, n, by.
    ("bump", &[(0, 8), (8, 4), (16, 8)]),
    // p[0..4] = word, 1, 2, 3 if the word is not zero: p, word.
    ("complain", &[(0, 8), (8, 4)]),
    // Reads unmapped memory.
    ("crash", &[]),
];

impl Item {
    /// Returns whether the work reads or writes in a range.
    pub fn uses(&self, range: &Range<u64>) -> bool {
        let meets = |at: u64, bytes: u64| at < range.end && range.start < at + bytes;
        match self {
            Item::Work(Work::Copy { from, to, bytes }) => meets(from.0, *bytes) || meets(to.0, *bytes),
            Item::Work(Work::Set { to, count, .. }) => meets(*to, 4 * count),
            Item::Work(Work::Kernel { parameters, name, .. }) => KERNELS
                .iter()
                .filter(|kernel| kernel.0 == *name)
                .flat_map(|kernel| kernel.1)
                .any(|&(at, bytes)| bytes == 8 && *name != "bump" && meets(u64_at(parameters, at), 1)),
            Item::Record(..) | Item::Wait(..) => false,
        }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl State {
    /// Returns the stream that has not reached this recording of an event yet.
    pub fn where_pending(&self, event: usize, time: usize) -> Option<usize> {
        let has = |item: &Item| matches!(item, Item::Record(id, number) if (*id, *number) == (event, time));
        self.streams.iter().find(|(_, stream)| stream.queue.iter().any(has)).map(|(&id, _)| id)
    }

    /// Returns whether an event is reached. If not, advances its stream by one step.
    pub fn reached(&mut self, event: usize) -> bool {
        let time = self.events.get(&event).map_or(0, |event| event.recorded);
        match self.where_pending(event, time) {
            None => true,
            Some(stream) => {
                self.step(stream);
                false
            }
        }
    }

    /// Runs the first entry of a stream, or an entry that it waits for.
    pub fn step(&mut self, stream: usize) {
        let Some(front) = self.streams.get(&stream).and_then(|stream| stream.queue.front()).cloned() else { return };
        if let Item::Wait(event, time) = front
            && let Some(other) = self.where_pending(event, time)
        {
            if other == stream {
                self.violation("a stream waits for itself".into());
            } else {
                return self.step(other);
            }
        }
        let device = self.streams.get_mut(&stream).map_or(0, |stream| {
            stream.queue.pop_front();
            stream.device
        });
        self.clock += 1000;
        match front {
            Item::Wait(..) => {}
            Item::Record(event, _) => {
                let clock = self.clock;
                if let Some(event) = self.events.get_mut(&event) {
                    event.time = clock;
                }
            }
            Item::Work(work) => {
                if self.devices[device].broken == 0 && !self.execute(&work) {
                    self.devices[device].broken = 700;
                }
            }
        }
    }

    /// Runs all entries of a stream.
    pub fn drain(&mut self, stream: usize) {
        while self.streams.get(&stream).is_some_and(|stream| !stream.queue.is_empty()) {
            self.step(stream);
        }
    }

    /// Runs work. Returns false if it leaves its memory.
    fn execute(&mut self, work: &Work) -> bool {
        match *work {
            Work::Copy { from, to, bytes } => {
                if !self.holds(from.0, bytes, from.1) || !self.holds(to.0, bytes, to.1) {
                    self.violation(format!("{work:?} leaves its memory"));
                    return false;
                }
                let (from, to) = (with_exposed_provenance::<u8>(from.0 as usize), to.0 as usize);
                // SAFETY: both ranges lie inside blocks that exist.
                unsafe { with_exposed_provenance_mut::<u8>(to).copy_from(from, bytes as usize) };
                true
            }
            Work::Set { to, word, count } => {
                if !self.holds(to, 4 * count, false) || !to.is_multiple_of(4) {
                    self.violation(format!("{work:?} leaves its memory"));
                    return false;
                }
                let to = with_exposed_provenance_mut::<u32>(to as usize);
                // SAFETY: the range lies inside a block that exists, at a multiple of four.
                (0..count as usize).for_each(|i| unsafe { to.add(i).write(word) });
                true
            }
            Work::Kernel { module, name, ref parameters, threads } => {
                if !self.modules.contains_key(&module) {
                    self.violation(format!("{name} runs and its module was unloaded"));
                    return false;
                }
                self.kernel(name, parameters, threads)
            }
        }
    }

    fn kernel(&self, name: &str, parameters: &[u8], threads: u64) -> bool {
        let words = |at: usize, count: u64| {
            let address = u64_at(parameters, at);
            let fits = self.holds(address, 4 * count, false) && address.is_multiple_of(4);
            fits.then(|| with_exposed_provenance_mut::<u32>(address as usize))
        };
        match name {
            "vecadd" => {
                let n = u64::from(u32_at(parameters, 24)).min(threads);
                let (Some(a), Some(b), Some(c)) = (words(0, n), words(8, n), words(16, n)) else { return false };
                for i in 0..n as usize {
                    // SAFETY: `words` checked that all three lie inside blocks that exist, at multiples of four.
                    unsafe {
                        let sum = f32::from_bits(a.add(i).read()) + f32::from_bits(b.add(i).read());
                        c.add(i).write(sum.to_bits());
                    }
                }
            }
            "bump" => {
                let n = u64::from(u32_at(parameters, 8)).min(threads);
                let Some(p) = words(0, n) else { return false };
                let by = u64_at(parameters, 16) as u32;
                // SAFETY: as above.
                (0..n as usize).for_each(|i| unsafe { p.add(i).write(p.add(i).read().wrapping_add(by)) });
            }
            "complain" => {
                let word = u32_at(parameters, 8);
                let Some(p) = words(0, 4) else { return false };
                if word != 0 {
                    // SAFETY: as above.
                    unsafe { p.cast::<[u32; 4]>().write_unaligned([word, 1, 2, 3]) };
                }
            }
            _ => return false,
        }
        true
    }
}
