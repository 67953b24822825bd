//! The cost model: tasks, and the time that a device takes for a task.
//!
//! `time = launch + compute + transfers`. Compute time is the larger of the times for arithmetic and memory, on one thread or,
//! after waking the other threads, on all. Transfers count only for operands that are not on the device yet and for a result that
//! is wanted elsewhere.

use super::profile::{DeviceProfile, Kind, Rate};
use crate::contract::Precision;
use crate::family::Family;
use crate::operand::Meta;
use crate::ops::{Attrs, Cost, Metas, Op};

/// The places that hold a valid copy of a value: host memory, and devices by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places(u64);

impl Places {
    /// Nowhere. A result with this place may stay where it was computed.
    pub const NOWHERE: Places = Places(0);
    /// Host memory.
    pub const HOST: Places = Places(1);
    /// Several devices, each of which has its own part.
    pub const SCATTERED: Places = Places(1 << 63);
    /// The most devices that a dispatcher chooses from.
    pub const MAX_DEVICES: usize = 62;

    /// Returns the memory of device `index`, which must be below [`Places::MAX_DEVICES`].
    pub const fn device(index: usize) -> Places {
        Places(2 << index)
    }

    /// Returns the places of both.
    pub const fn and(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    /// Returns whether all places of `other` are among these.
    pub const fn contain(self, other: Places) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether there are no places.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first device among the places.
    fn some_device(self) -> Option<usize> {
        if self.0 < 2 { None } else { Some((self.0 & !1).trailing_zeros() as usize - 1) }
    }
}

/// An operand or a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Item {
    /// Its size in bytes.
    pub bytes: usize,
    /// The places of an operand, or the places where a result is wanted.
    pub at: Places,
}

/// An operation as the cost model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// The operation's family.
    pub family: Family,
    /// The precision of its products.
    pub precision: Precision,
    /// Its work.
    pub cost: Cost,
    /// Elements of the largest operand or result. Thresholds are compared with this number.
    pub elements: usize,
    /// The operands; unused entries have 0 bytes. The last entry sums up all operands from the eighth on.
    pub operands: [Item; 8],
    /// The result.
    pub output: Item,
}

impl Task {
    /// Makes a task from an operation with operands and result in host memory. The operands must fit the operation.
    pub fn new<'a>(op: Op, attrs: &Attrs, inputs: impl Into<Metas<'a>>, output: &Meta) -> Task {
        Task::placed(op, attrs, inputs, output, &|_| Places::HOST)
    }

    /// Makes a task with operand `i` at `at(i)`, and the result wanted at `at(inputs.len())`.
    pub fn placed<'a>(
        op: Op,
        attrs: &Attrs,
        inputs: impl Into<Metas<'a>>,
        output: &Meta,
        at: &dyn Fn(usize) -> Places,
    ) -> Task {
        let inputs = inputs.into();
        let mut elements = output.shape.elements();
        let mut operands = [Item::default(); 8];
        for (i, meta) in inputs.iter().enumerate() {
            let Some(meta) = meta else { continue };
            elements = elements.max(meta.shape.elements());
            let item = &mut operands[i.min(7)];
            item.bytes = item.bytes.saturating_add(meta.bytes());
            item.at = at(i);
        }
        let output_item = Item { bytes: output.bytes(), at: at(inputs.len()) };
        Task {
            family: op.family(),
            precision: attrs.precision(),
            cost: op.info().cost(attrs, inputs, output),
            elements,
            operands,
            output: output_item,
        }
    }

    /// Makes a typical task of a family from a number of elements: a product of square matrices, one head of attention of width
    /// 64, an elementwise operation with two operands, or another operation with one. All of it is in host memory.
    pub fn typical(family: Family, elements: usize) -> Task {
        let n = elements as f64;
        let (flops, operands) = match family {
            Family::Matmul => (2.0 * n * n.sqrt(), 2),
            Family::Attention => (4.0 * n * (n / 64.0), 3),
            Family::Elementwise => (n, 2),
            Family::Function => (20.0 * n, 1),
            Family::Reduction => (8.0 * n, 1),
            Family::Move => (0.0, 1),
        };
        let item = Item { bytes: elements.saturating_mul(4), at: Places::HOST };
        let cost = Cost { flops, bytes: item.bytes as f64 * (operands + 1) as f64 };
        let precision = Precision::F32;
        let mut task = Task { family, precision, cost, elements, operands: [Item::default(); 8], output: item };
        task.operands[..operands].fill(item);
        task
    }

    /// Returns the bytes that a device's memory must hold for the task.
    pub fn footprint(&self) -> u64 {
        self.operands.iter().fold(self.output.bytes as u64, |sum, item| sum.saturating_add(item.bytes as u64))
    }
}

/// The time that a device would take for a task, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The time of the work itself.
    pub compute_ns: f64,
    /// The time to launch it.
    pub launch_ns: f64,
    /// The time to move operands to the device and the result to where it is wanted.
    pub transfer_ns: f64,
    /// The bytes that move.
    pub transfer_bytes: f64,
    /// Whether operands and result fit in the device's memory.
    pub fits: bool,
}

impl Estimate {
    /// Whether this estimate is better than another: it fits, or it takes less time.
    pub(super) fn beats(&self, other: &Estimate) -> bool {
        if self.fits != other.fits { self.fits } else { self.total_ns() < other.total_ns() }
    }

    /// Returns the sum of all times.
    pub fn total_ns(&self) -> f64 {
        self.compute_ns + self.launch_ns + self.transfer_ns
    }
}

impl DeviceProfile {
    /// Returns the nanoseconds that an operation's work takes after the launch. Products depend on their precision.
    pub fn work_ns(&self, family: Family, precision: Precision, cost: &Cost) -> f64 {
        let rate = self.rate(family);
        self.ns_at(Rate { gflops: self.exact.rate_of(family, precision).unwrap_or(rate.gflops), ..rate }, cost)
    }

    /// Returns the nanoseconds that work takes in f32.
    pub fn compute_ns(&self, family: Family, cost: &Cost) -> f64 {
        self.ns_at(self.rate(family), cost)
    }

    fn ns_at(&self, rate: Rate, cost: &Cost) -> f64 {
        let memory = self.memory_ns(cost, rate.gbytes);
        let arithmetic = cost.flops / rate.gflops;
        let alone = (arithmetic / self.alone).max(memory / self.alone_memory);
        alone.min(self.wake_ns + arithmetic.max(memory))
    }
}

/// The estimate of device `index` for a task.
pub(super) fn price(profiles: &[DeviceProfile], index: usize, task: &Task) -> Estimate {
    let profile = &profiles[index];
    let (mut transfer_ns, mut transfer_bytes) = (0.0, 0.0);
    let mut add = |item: &Item, from: Places, to: Places| {
        let ns = transfer(profiles, item.bytes, from, to);
        if ns > 0.0 {
            transfer_ns += ns;
            transfer_bytes += item.bytes as f64;
        }
    };
    let here = place_of(profiles, index);
    task.operands.iter().for_each(|item| add(item, item.at, here));
    add(&task.output, here, task.output.at);
    Estimate {
        compute_ns: profile.work_ns(task.family, task.precision, &task.cost),
        launch_ns: profile.launch_ns,
        transfer_ns,
        transfer_bytes,
        fits: profile.memory == 0 || task.footprint() <= profile.memory,
    }
}

/// What one GPU copies from another stays there, and so does each GPU's part of the results that follow. The operation that needs it
/// first counts this part of the time. Otherwise a value that begins on one GPU would keep all that follows from the others.
const LATER: f64 = 4.0;

/// The place of a device's own memory. A processor's memory is the host's.
pub(super) fn place_of(profiles: &[DeviceProfile], index: usize) -> Places {
    if profiles[index].kind == Kind::Cpu { Places::HOST } else { Places::device(index) }
}

/// Nanoseconds to copy bytes from `from` to `to`. Copies between two devices go through host memory, unless both are peers.
pub(super) fn transfer(profiles: &[DeviceProfile], bytes: usize, from: Places, to: Places) -> f64 {
    if bytes == 0 || from.is_empty() || from.contain(to) {
        return 0.0;
    }
    let ns = |link: Option<&super::Link>| link.map_or(0.0, |link| link.latency_ns + bytes as f64 / link.gbytes);
    let peer = |device: usize| profiles.get(device)?.peer.as_ref().filter(|_| cfg!(feature = "cuda"));
    // Only peers keep their parts of a value.
    let scattered = || (0..profiles.len()).find(|&device| peer(device).is_some());
    let source = if from == Places::SCATTERED { scattered() } else { from.some_device() };
    let down = if from.contain(Places::HOST) { None } else { source };
    let up = to.some_device();
    let through_host = ns(down.and_then(|device| Some(&profiles.get(device)?.download)))
        + ns(up.and_then(|device| Some(&profiles.get(device)?.upload)));
    match (source.and_then(peer), up.and_then(peer)) {
        (Some(_), Some(link)) => through_host.min(ns(Some(link)) / LATER),
        _ => through_host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<DeviceProfile> {
        let mut cpu = DeviceProfile::reference("mid").unwrap();
        (cpu.kind, cpu.wake_ns, cpu.memory) = (Kind::Cpu, 1000.0, 0);
        (cpu.alone, cpu.alone_memory) = (0.5, 1.0);
        let mut gpu = DeviceProfile::reference("mid").unwrap();
        for profile in [&mut cpu, &mut gpu] {
            profile.rates.fill(crate::dispatch::Rate { gflops: 10.0, gbytes: 1.0 });
            profile.launch_ns = 100.0;
        }
        (gpu.upload, gpu.download) = (
            crate::dispatch::Link { latency_ns: 10.0, gbytes: 2.0 },
            crate::dispatch::Link { latency_ns: 20.0, gbytes: 4.0 },
        );
        gpu.memory = 100_000;
        vec![cpu, gpu]
    }

    #[test]
    fn work_is_the_slower_of_arithmetic_and_memory_on_one_thread_or_all() {
        let machine = machine();
        let ns = |flops, bytes| machine[0].compute_ns(Family::Matmul, &Cost { flops, bytes });
        assert_eq!(ns(0.0, 0.0), 0.0);
        assert_eq!(ns(100.0, 10.0), 20.0, "alone at half the rate");
        assert_eq!(ns(100.0, 50.0), 50.0, "memory is slower");
        assert_eq!(ns(1e6, 10.0), 101_000.0, "all, after waking them");
        let mut cached = machine[0].clone();
        (cached.cache_bytes, cached.cache_gain) = (1000.0, 4.0);
        let ns = |bytes| cached.compute_ns(Family::Move, &Cost { flops: 0.0, bytes });
        assert_eq!((ns(1000.0), ns(2000.0)), (250.0, 1250.0), "what fits in the cache is faster");
    }

    #[test]
    fn only_what_has_to_move_is_counted() {
        let machine = machine();
        let there = Places::device(1);
        let transfer = |from, to| transfer(&machine, 1000, from, to);
        assert_eq!(transfer(Places::HOST, Places::HOST), 0.0);
        assert_eq!(transfer(Places::HOST, there), 510.0);
        assert_eq!(transfer(there, Places::HOST), 270.0);
        assert_eq!(transfer(there, there), 0.0);
        assert_eq!(transfer(there.and(Places::HOST), Places::HOST), 0.0);
        assert_eq!(transfer(there.and(Places::HOST), there), 0.0);
        assert_eq!(transfer(there, Places::NOWHERE), 0.0, "a result that may stay");
        let mut task = Task::typical(Family::Function, 250);
        assert_eq!(price(&machine, 0, &task).transfer_ns, 0.0);
        let all = price(&machine, 1, &task);
        assert_eq!((all.transfer_ns, all.transfer_bytes), (510.0 + 270.0, 2000.0));
        task.operands[0].at = there;
        assert_eq!(price(&machine, 1, &task).transfer_ns, 270.0);
        assert_eq!(price(&machine, 0, &task).transfer_ns, 270.0);
        task.output.at = Places::NOWHERE;
        assert_eq!(price(&machine, 1, &task).transfer_ns, 0.0);
        assert_eq!(price(&machine, 1, &task).total_ns(), 100.0 + price(&machine, 1, &task).compute_ns);
    }

    #[test]
    fn between_two_devices_things_go_through_the_host() {
        let mut machine = machine();
        machine.push(machine[1].clone());
        assert_eq!(transfer(&machine, 1000, Places::device(1), Places::device(2)), 270.0 + 510.0);
    }

    #[test]
    fn between_peers_things_go_directly() {
        let mut machine = machine();
        machine[1].peer = Some(crate::dispatch::Link { latency_ns: 5.0, gbytes: 10.0 });
        machine.push(machine[1].clone());
        assert_eq!(transfer(&machine, 1000, Places::device(1), Places::device(2)), 105.0 / LATER);
        // A value in parts comes from the others, and goes to the host as from one device.
        assert_eq!(transfer(&machine, 1000, Places::SCATTERED, Places::device(1)), 105.0 / LATER);
        assert_eq!(transfer(&machine, 1000, Places::SCATTERED, Places::HOST), 270.0);
        assert_eq!(transfer(&machine, 1000, Places::HOST, Places::device(2)), 510.0);
        assert_eq!(transfer(&machine, 1000, Places::HOST.and(Places::device(1)), Places::device(2)), 105.0 / LATER);
        machine[2].peer = None;
        assert_eq!(transfer(&machine, 1000, Places::device(1), Places::device(2)), 270.0 + 510.0);
    }

    #[test]
    fn what_does_not_fit_is_known() {
        let machine = machine();
        assert!(price(&machine, 1, &Task::typical(Family::Function, 12_500)).fits);
        assert!(!price(&machine, 1, &Task::typical(Family::Function, 12_501)).fits);
        assert!(price(&machine, 0, &Task::typical(Family::Function, usize::MAX)).fits, "0 bytes of memory: unknown");
    }
}
