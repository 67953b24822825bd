//! The dispatcher. It prices a task on every device and chooses the cheapest, unless the caller has set a device or a threshold.
//!
//! If only a number of elements is known, a precomputed table of steps answers: each step is a device and the number of elements
//! at which the next step begins.

use super::cost::{Estimate, Places, Task, place_of, price, transfer};
use super::explain::Explanation;
use super::profile::{DeviceProfile, Kind};
use super::split::Split;
use crate::command::Command;
use crate::error::{Result, fail};
use crate::family::Family;
use crate::fpenv::DefaultEnvironment;
use crate::log::log;
use crate::operand::{Place, View};
use crate::ops::Cut;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Chooses devices. Threads may share it. Settings of one thread apply to the next calls of all.
pub struct AutoDispatcher {
    profiles: Vec<DeviceProfile>,
    /// By family: `limit << 8 | device` for each step; the last step has no limit. A step is one word, so readers need no lock. A
    /// reader may see some words before a change and some after it. Each of them names an existing device.
    steps: [Vec<AtomicU64>; Family::COUNT],
    thresholds: [AtomicUsize; Family::COUNT],
    /// By family: up to this many elements of all operands together, the first device finishes before any other would begin.
    tiny: [AtomicUsize; Family::COUNT],
    forced: AtomicUsize,
    hybrid: AtomicBool,
    /// The shortest launch time of all devices but the first. No work on them takes less.
    others_ns: f64,
    /// Locked while a setting changes.
    setting: Mutex<()>,
}

/// Stands for no threshold and for no forced device.
const NONE: usize = usize::MAX;

/// A limit above every number of elements.
const NO_LIMIT: u64 = u64::MAX >> 8;

/// Why a device was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is the only device.
    Only,
    /// The caller forced it.
    Forced,
    /// The family has a threshold of this many elements.
    Threshold(usize),
    /// It is the cheapest.
    Cheapest,
}

/// A chosen device with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The device, by its index in [`AutoDispatcher::profiles`].
    pub device: usize,
    /// The reason.
    pub why: Why,
}

impl AutoDispatcher {
    /// Makes a dispatcher for these devices. The first processor among them is the host. Returns `invalid_argument` for no
    /// devices, more than [`Places::MAX_DEVICES`], two with one id, or figures that are out of range.
    pub fn new(profiles: Vec<DeviceProfile>) -> Result<AutoDispatcher> {
        if profiles.is_empty() || profiles.len() > Places::MAX_DEVICES {
            fail!(InvalidArgument, "a dispatcher has 1 to {} devices, not {}", Places::MAX_DEVICES, profiles.len());
        }
        for (i, profile) in profiles.iter().enumerate() {
            profile.check()?;
            if profiles[..i].iter().any(|other| other.id == profile.id) {
                fail!(InvalidArgument, "two devices have the id '{}'", profile.id);
            }
        }
        // Launch and wake times can make two devices' costs cross more than once. A single device needs one step.
        let words = 3 * profiles.len() - 2;
        let others_ns = profiles[1..].iter().map(|profile| profile.launch_ns).fold(f64::INFINITY, f64::min);
        let dispatcher = AutoDispatcher {
            profiles,
            steps: std::array::from_fn(|_| (0..words).map(|_| AtomicU64::new(NO_LIMIT << 8)).collect()),
            thresholds: std::array::from_fn(|_| AtomicUsize::new(NONE)),
            tiny: std::array::from_fn(|_| AtomicUsize::new(0)),
            forced: AtomicUsize::new(NONE),
            hybrid: AtomicBool::new(false),
            others_ns,
            setting: Mutex::new(()),
        };
        Family::ALL.into_iter().for_each(|family| dispatcher.compute_steps(family));
        Ok(dispatcher)
    }

    /// Returns the devices' profiles.
    pub fn profiles(&self) -> &[DeviceProfile] {
        &self.profiles
    }

    /// Returns the index of the device with this id. For an unknown id it returns `invalid_argument` with the known ids.
    pub fn index(&self, id: &str) -> Result<usize> {
        match self.profiles.iter().position(|profile| profile.id == id) {
            Some(index) => Ok(index),
            None => {
                let ids: Vec<&str> = self.profiles.iter().map(|profile| profile.id.as_str()).collect();
                fail!(InvalidArgument, "no device '{id}': there are {}", ids.join(", "))
            }
        }
    }

    /// Returns the index of the device for work on this many elements when nothing else is known. The work is priced as
    /// [`Family::Function`] on values that come from host memory and return there. Takes a few nanoseconds.
    #[inline]
    pub fn select(&self, elements: usize) -> usize {
        self.select_for(Family::Function, elements)
    }

    /// Returns the index of the device for an operation of a family on this many elements in host memory. [`Task::typical`]
    /// defines the priced operation. Takes a few nanoseconds.
    #[inline]
    pub fn select_for(&self, family: Family, elements: usize) -> usize {
        let mut device = 0;
        for step in &self.steps[family as usize] {
            let step = step.load(Relaxed);
            device = (step & 0xff) as usize;
            if (elements as u64) < step >> 8 {
                break;
            }
        }
        device
    }

    /// Chooses the device for a command.
    pub fn choose(&self, command: &Command<'_>) -> Decision {
        // With a single device there is nothing to price.
        if self.profiles.len() == 1 { self.only() } else { self.choose_task(&self.task(command)) }
    }

    /// Whether a command on host memory is so small that [`AutoDispatcher::done_before_others_begin`] holds for any operation of
    /// its family. It computes with integers only, so the caller's floating-point modes don't matter.
    #[inline]
    pub(crate) fn is_tiny(&self, command: &Command<'_>) -> bool {
        let elements = command.output().meta().shape.elements();
        let elements = command
            .inputs()
            .iter()
            .flatten()
            .fold(elements, |sum, view| sum.saturating_add(view.meta().shape.elements()));
        elements <= self.tiny(command.op().family())
    }

    /// Returns the number of elements, of all operands and the result together, up to which the first device finishes an
    /// operation on host memory before any other device would begin. It is a power of two, at most 4096, or 0 if the caller has
    /// set a device or a threshold.
    #[inline]
    pub fn tiny(&self, family: Family) -> usize {
        self.tiny[family as usize].load(Relaxed)
    }

    /// Whether the first device finishes a command on host memory before any other would begin. Then it is chosen without making
    /// and pricing a task.
    #[inline]
    pub(crate) fn done_before_others_begin(&self, command: &Command<'_>) -> bool {
        let (host, family) = (&self.profiles[0], command.op().family());
        if host.kind != Kind::Cpu || self.forced().is_some() || self.threshold(family).is_some() {
            return false;
        }
        let cost = command.op().info().cost(command.attrs(), command.inputs(), command.output().meta());
        let fits = host.memory == 0 || cost.bytes <= host.memory as f64;
        fits && host.launch_ns + host.work_ns(family, command.attrs().precision, &cost) <= self.others_ns
    }

    /// Chooses the device for a task.
    pub fn choose_task(&self, task: &Task) -> Decision {
        if let Some(device) = self.forced() {
            return Decision { device, why: Why::Forced };
        }
        if self.profiles.len() == 1 {
            return self.only();
        }
        let limit = self.thresholds[task.family as usize].load(Relaxed);
        if limit != NONE
            && let Some(gpu) = self.accelerator(task.family)
        {
            let device = if task.elements < limit { self.host() } else { gpu };
            return Decision { device, why: Why::Threshold(limit) };
        }
        Decision { device: self.cheapest(task), why: Why::Cheapest }
    }

    /// Chooses the device for a task. If dividing its operation among all devices is faster, also returns how.
    pub(crate) fn choose_parts(&self, task: &Task, cut: Option<&Cut<'_>>) -> (Decision, Option<Split>) {
        let decision = self.choose_task(task);
        let cut = cut.filter(|_| decision.why == Why::Cheapest && self.is_hybrid());
        (decision, cut.and_then(|cut| self.split(cut, &self.estimate(task, decision.device))))
    }

    /// Returns every device's estimate for a task, in the order of [`AutoDispatcher::profiles`].
    pub fn estimates(&self, task: &Task) -> Vec<Estimate> {
        (0..self.profiles.len()).map(|device| self.estimate(task, device)).collect()
    }

    /// Returns one device's estimate for a task. The index must be that of a profile.
    pub fn estimate(&self, task: &Task, device: usize) -> Estimate {
        price(&self.profiles, device, task)
    }

    /// Explains the choice for a command: the device, the reason, the estimates of all devices.
    pub fn explain(&self, command: &Command<'_>) -> Explanation<'_> {
        let output = command.output();
        let here = output.host().is_ok();
        let cut = if here { Cut::of(command.op(), command.attrs(), command.inputs(), output.meta()) } else { None };
        self.explain_parts(&self.task(command), cut.as_ref())
    }

    /// Explains the choice for a task. A task alone can't be divided.
    pub fn explain_task(&self, task: &Task) -> Explanation<'_> {
        self.explain_parts(task, None)
    }

    pub(crate) fn explain_parts(&self, task: &Task, cut: Option<&Cut<'_>>) -> Explanation<'_> {
        let _environment = DefaultEnvironment::enter();
        let (decision, split) = self.choose_parts(task, cut);
        Explanation::new(self, task, decision, split)
    }

    /// Makes a task from a command, with its operands at their places. A result in host memory is wanted there. But if an operand
    /// is only on a device, the result may stay where it is computed, as its operand did.
    pub fn task(&self, command: &Command<'_>) -> Task {
        let (inputs, output) = (command.inputs(), command.output());
        let stays = |view: &View<'_>| matches!(view.place(), Place::Tensor(tensor, _) if tensor.if_on_host().is_none());
        let stays = inputs.iter().flatten().any(stays);
        Task::placed(command.op(), command.attrs(), inputs, output.meta(), &|i| match inputs.get(i) {
            Some(input) => input.as_ref().map_or(Places::HOST, |view| self.places(view.place())),
            None if stays && matches!(output.place(), Place::Host(_) | Place::Nowhere) => Places::NOWHERE,
            None => self.places(output.place()),
        })
    }

    /// The places of an operand.
    fn places(&self, place: Place<'_>) -> Places {
        let of = |id: &str| {
            let device = self.profiles.iter().position(|profile| profile.id == id);
            device.map_or(Places::HOST, |device| place_of(&self.profiles, device))
        };
        match place {
            Place::Buffer(buffer, _) if buffer.host_pointer().is_none() => of(buffer.device_name()),
            Place::Tensor(tensor, _) => {
                let on_host = tensor.if_on_host().is_some();
                let mut places = if on_host { Places::HOST } else { Places::NOWHERE };
                tensor.each_device(&mut |id| places = places.and(of(id)));
                places
            }
            _ => Places::HOST,
        }
    }

    /// Returns the nanoseconds to copy bytes from `from` to `to`.
    pub fn transfer_ns(&self, bytes: usize, from: Places, to: Places) -> f64 {
        transfer(&self.profiles, bytes, from, to)
    }

    /// Returns the memory of device `index`, as a place for operands.
    pub fn place(&self, index: usize) -> Places {
        place_of(&self.profiles, index)
    }

    /// Sets a family's threshold: operations with at least this many elements go to the GPU that is fastest for large ones,
    /// smaller operations to the processor. `None` returns to the cost model. Without a GPU this has no effect.
    pub fn set_threshold(&self, family: Family, elements: Option<usize>) {
        let _one_at_a_time = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        match elements {
            Some(elements) => log!(Debug, "dispatch", "the threshold of {} is {elements} elements", family.name()),
            None => log!(Debug, "dispatch", "{} has no threshold", family.name()),
        }
        let elements = elements.map_or(NONE, |elements| elements.min(NONE - 1));
        self.thresholds[family as usize].store(elements, Relaxed);
        self.compute_steps(family);
    }

    /// Returns the threshold that was set for a family.
    pub fn threshold(&self, family: Family) -> Option<usize> {
        Some(self.thresholds[family as usize].load(Relaxed)).filter(|&elements| elements != NONE)
    }

    /// Sends everything to one device, whatever it costs. `None` returns to the cost model. Returns `invalid_argument` with the
    /// known ids if the device is not among them.
    pub fn force(&self, id: Option<&str>) -> Result<()> {
        let device = id.map_or(Ok(NONE), |id| self.index(id))?;
        let _one_at_a_time = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        log!(Debug, "dispatch", "forced device: {}", id.unwrap_or("none"));
        self.forced.store(device, Relaxed);
        Family::ALL.into_iter().for_each(|family| self.compute_steps(family));
        Ok(())
    }

    /// Sets whether large operations on host memory are divided among all devices, by rows of their results, where that takes
    /// less time than the best device alone. A threshold or a forced device takes precedence.
    pub fn set_hybrid(&self, hybrid: bool) {
        self.hybrid.store(hybrid, Relaxed);
    }

    /// Whether large operations are divided.
    pub fn is_hybrid(&self) -> bool {
        self.hybrid.load(Relaxed)
    }

    /// Returns the index of the forced device.
    pub fn forced(&self) -> Option<usize> {
        Some(self.forced.load(Relaxed)).filter(|&device| device != NONE)
    }

    /// Returns the steps of a family: each device, with the number of elements at which the next device takes over.
    pub fn steps(&self, family: Family) -> Vec<(usize, Option<usize>)> {
        let mut list = Vec::new();
        for step in &self.steps[family as usize] {
            let step = step.load(Relaxed);
            let limit = Some((step >> 8) as usize).filter(|_| step >> 8 < NO_LIMIT);
            if limit != Some(0) {
                list.push(((step & 0xff) as usize, limit));
            }
            if limit.is_none() {
                break;
            }
        }
        list
    }

    fn only(&self) -> Decision {
        Decision { device: 0, why: Why::Only }
    }

    /// The device whose memory is the host's.
    fn host(&self) -> usize {
        self.profiles.iter().position(|profile| profile.kind == Kind::Cpu).unwrap_or(0)
    }

    /// The GPU that is fastest at large operations of a family.
    fn accelerator(&self, family: Family) -> Option<usize> {
        let cost = Task::typical(family, 1 << 30).cost;
        let mut best = None;
        for (device, profile) in self.profiles.iter().enumerate() {
            let ns = profile.compute_ns(family, &cost);
            if profile.kind != Kind::Cpu && best.is_none_or(|(_, other)| ns < other) {
                best = Some((device, ns));
            }
        }
        Some(best?.0)
    }

    /// The cheapest device, the first of equals. A device whose memory is too small is chosen only if no device has enough.
    fn cheapest(&self, task: &Task) -> usize {
        let mut best = (0, self.estimate(task, 0));
        for device in 1..self.profiles.len() {
            // A device whose launch alone takes longer can't be cheaper.
            if best.1.fits && self.profiles[device].launch_ns >= best.1.total_ns() {
                continue;
            }
            let other = self.estimate(task, device);
            if other.beats(&best.1) {
                best = (device, other);
            }
        }
        best.0
    }

    /// Recomputes the steps of a family.
    fn compute_steps(&self, family: Family) {
        let _environment = DefaultEnvironment::enter();
        let limit = self.thresholds[family as usize].load(Relaxed);
        let words = &self.steps[family as usize];
        let mut next = 0;
        // If costs cross more often than there are words, the last step covers everything above it.
        let mut put = |limit: u64, device: usize| {
            let limit = if next + 1 < words.len() { limit.min(NO_LIMIT) } else { NO_LIMIT };
            if let Some(word) = words.get(next) {
                word.store(limit << 8 | device as u64, Relaxed);
            }
            next += 1;
        };
        match (self.forced(), self.accelerator(family)) {
            (Some(device), _) => put(NO_LIMIT, device),
            (None, Some(gpu)) if limit != NONE => {
                put(limit as u64, self.host());
                put(NO_LIMIT, gpu);
            }
            _ => self.crossings(family, &mut put),
        }
        // The remaining words repeat the last step.
        let mut last = 0;
        for (i, word) in words.iter().enumerate() {
            if i < next {
                last = word.load(Relaxed);
            } else {
                word.store(last, Relaxed);
            }
        }
        let chosen = self.forced().is_some() || self.threshold(family).is_some();
        let tiny = if chosen || self.profiles[0].kind != Kind::Cpu { 0 } else { self.largest_tiny(family) };
        self.tiny[family as usize].store(tiny, Relaxed);
    }

    /// The largest power of two for which [`AutoDispatcher::is_tiny`] holds, or 0.
    fn largest_tiny(&self, family: Family) -> usize {
        let host = &self.profiles[0];
        let done = |elements: usize| {
            let cost = family.most(elements);
            let fits = host.memory == 0 || cost.bytes <= host.memory as f64;
            fits && host.launch_ns + host.compute_ns(family, &cost) <= self.others_ns
        };
        (0..=12).rev().map(|power| 1 << power).find(|&elements| done(elements)).unwrap_or(0)
    }

    /// Finds where the cheapest device for typical tasks of a family changes: first between powers of two, then by bisection.
    fn crossings(&self, family: Family, put: &mut dyn FnMut(u64, usize)) {
        // A single device never changes.
        let largest = if self.profiles.len() == 1 { 0 } else { 40 };
        let best = |elements: u64| self.cheapest(&Task::typical(family, elements as usize));
        let mut device = best(1);
        for power in 1..=largest {
            let (mut low, mut high) = (1u64 << (power - 1), 1u64 << power);
            let next = best(high);
            if next == device {
                continue;
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                *(if best(middle) == device { &mut low } else { &mut high }) = middle;
            }
            put(high, device);
            device = next;
        }
        put(NO_LIMIT, device);
    }
}

impl std::fmt::Debug for AutoDispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.profiles.iter().map(|profile| &profile.id)).finish()
    }
}
