//! The dispatcher: it prices a task on every device and takes the cheapest, unless the caller has said otherwise.
//!
//! When only a number of elements is known, the answer comes from steps that were computed beforehand: up to so many
//! elements this device, from there on that one.

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

/// Chooses devices. Shareable between threads; what one sets, the others' next calls see.
pub struct AutoDispatcher {
    profiles: Vec<DeviceProfile>,
    /// By family: `limit << 8 | device` for each step, the last without a limit. A step is one word, so that a reader
    /// needs no lock; between two words of a change it may see the old and the new, and each names a device that is there.
    steps: [Vec<AtomicU64>; Family::COUNT],
    thresholds: [AtomicUsize; Family::COUNT],
    /// By family: up to so many elements of all operands together, the first device is done before any other has begun.
    tiny: [AtomicUsize; Family::COUNT],
    forced: AtomicUsize,
    hybrid: AtomicBool,
    /// What the other devices but the first take at least, whatever there is to do.
    others_ns: f64,
    /// Held while something is set.
    setting: Mutex<()>,
}

/// No threshold, no forced device.
const NONE: usize = usize::MAX;

/// A limit that no number of elements reaches.
const NO_LIMIT: u64 = u64::MAX >> 8;

/// Why a device was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no other.
    Only,
    /// It was forced.
    Forced,
    /// The family has a threshold, of that many elements.
    Threshold(usize),
    /// It is the cheapest.
    Cheapest,
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The device, by its index in [`AutoDispatcher::profiles`].
    pub device: usize,
    /// Why.
    pub why: Why,
}

impl AutoDispatcher {
    /// A dispatcher over devices; the first processor among them is the host. `invalid_argument` for none at all, more
    /// than [`Places::MAX_DEVICES`], two of one id, or figures that can't be computed with.
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
        // Launches and threads that wake make costs cross more than once; alone, a device needs one step.
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

    /// The devices.
    pub fn profiles(&self) -> &[DeviceProfile] {
        &self.profiles
    }

    /// The index of a device by its id. `invalid_argument` with the ids there are for another.
    pub fn index(&self, id: &str) -> Result<usize> {
        match self.profiles.iter().position(|profile| profile.id == id) {
            Some(index) => Ok(index),
            None => {
                let ids: Vec<&str> = self.profiles.iter().map(|profile| profile.id.as_str()).collect();
                fail!(InvalidArgument, "no device '{id}': there are {}", ids.join(", "))
            }
        }
    }

    /// The device for work on that many elements of which nothing else is known, by its index: priced as
    /// [`Family::Function`] on values that come from host memory and go back there. Takes some nanoseconds.
    #[inline]
    pub fn select(&self, elements: usize) -> usize {
        self.select_for(Family::Function, elements)
    }

    /// The device for an operation of a family on that many elements, in host memory; [`Task::typical`] says what kind
    /// of operation is priced. Takes some nanoseconds.
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

    /// The device for a command, and why.
    pub fn choose(&self, command: &Command<'_>) -> Decision {
        // Nothing to weigh, nothing to look at.
        if self.profiles.len() == 1 { self.only() } else { self.choose_task(&self.task(command)) }
    }

    /// Whether a command on host memory is so small that [`AutoDispatcher::done_before_others_begin`] without a look at what the
    /// operation does. Nothing but integers is computed: the caller's floating-point modes may be any.
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

    /// Up to how many elements of all operands on host memory together, the result among them, an operation of a family is done by
    /// the first device before any other would have begun; 0 where a choice was set. A power of two, at most 4096.
    #[inline]
    pub fn tiny(&self, family: Family) -> usize {
        self.tiny[family as usize].load(Relaxed)
    }

    /// Whether the first device has done a command on host memory before any other would have begun: it is chosen then, and no
    /// task needs to be made and priced to find that out.
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

    /// The device for a task, and why.
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

    /// The device for a task, and, where it is of an operation that is better divided among all, how it is.
    pub(crate) fn choose_parts(&self, task: &Task, cut: Option<&Cut<'_>>) -> (Decision, Option<Split>) {
        let decision = self.choose_task(task);
        let cut = cut.filter(|_| decision.why == Why::Cheapest && self.is_hybrid());
        (decision, cut.and_then(|cut| self.split(cut, &self.estimate(task, decision.device))))
    }

    /// What every device would take for a task, in the order of [`AutoDispatcher::profiles`].
    pub fn estimates(&self, task: &Task) -> Vec<Estimate> {
        (0..self.profiles.len()).map(|device| self.estimate(task, device)).collect()
    }

    /// What one device would take for a task; the index must be one of a profile.
    pub fn estimate(&self, task: &Task, device: usize) -> Estimate {
        price(&self.profiles, device, task)
    }

    /// The choice for a command with its reason and what every device would take.
    pub fn explain(&self, command: &Command<'_>) -> Explanation<'_> {
        let output = command.output();
        let here = output.host().is_ok();
        let cut = if here { Cut::of(command.op(), command.attrs(), command.inputs(), output.meta()) } else { None };
        self.explain_parts(&self.task(command), cut.as_ref())
    }

    /// The same for a task, of which nobody knows how it could be divided.
    pub fn explain_task(&self, task: &Task) -> Explanation<'_> {
        self.explain_parts(task, None)
    }

    pub(crate) fn explain_parts(&self, task: &Task, cut: Option<&Cut<'_>>) -> Explanation<'_> {
        let _environment = DefaultEnvironment::enter();
        let (decision, split) = self.choose_parts(task, cut);
        Explanation::new(self, task, decision, split)
    }

    /// A command as a task, with its operands where they are. A result that goes to host memory is wanted there, unless an
    /// operand is on a device only: then it may stay where it is computed, as what it is made of did.
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

    /// Where an operand is.
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

    /// Nanoseconds to have bytes that are at `from` at `to` as well.
    pub fn transfer_ns(&self, bytes: usize, from: Places, to: Places) -> f64 {
        transfer(&self.profiles, bytes, from, to)
    }

    /// The memory of device `index`, as a place for operands.
    pub fn place(&self, index: usize) -> Places {
        place_of(&self.profiles, index)
    }

    /// From how many elements on operations of a family go to a GPU, the fastest for large ones, and below it to the
    /// processor; `None` is what the cost model says. Without a GPU it changes nothing.
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

    /// The threshold that was set for a family.
    pub fn threshold(&self, family: Family) -> Option<usize> {
        Some(self.thresholds[family as usize].load(Relaxed)).filter(|&elements| elements != NONE)
    }

    /// Sends everything to one device, whatever it costs; `None` lets the costs decide again. `invalid_argument` with the
    /// ids there are if it is not among the devices.
    pub fn force(&self, id: Option<&str>) -> Result<()> {
        let device = id.map_or(Ok(NONE), |id| self.index(id))?;
        let _one_at_a_time = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        log!(Debug, "dispatch", "forced device: {}", id.unwrap_or("none"));
        self.forced.store(device, Relaxed);
        Family::ALL.into_iter().for_each(|family| self.compute_steps(family));
        Ok(())
    }

    /// Whether large operations on host memory are divided among all devices, by rows of their results, where that takes less
    /// than the best device alone. A threshold and a forced device beat it.
    pub fn set_hybrid(&self, hybrid: bool) {
        self.hybrid.store(hybrid, Relaxed);
    }

    /// Whether they are.
    pub fn is_hybrid(&self) -> bool {
        self.hybrid.load(Relaxed)
    }

    /// The device that was forced.
    pub fn forced(&self) -> Option<usize> {
        Some(self.forced.load(Relaxed)).filter(|&device| device != NONE)
    }

    /// The steps of a family: each device with the number of elements from which on it is the next one's turn.
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

    /// The cheapest device; of equals the first. One whose memory is too small only if none is large
    /// enough.
    fn cheapest(&self, task: &Task) -> usize {
        let mut best = (0, self.estimate(task, 0));
        for device in 1..self.profiles.len() {
            // Where getting it started takes longer, the rest need not be priced.
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

    /// Computes the steps of a family anew.
    fn compute_steps(&self, family: Family) {
        let _environment = DefaultEnvironment::enter();
        let limit = self.thresholds[family as usize].load(Relaxed);
        let words = &self.steps[family as usize];
        let mut next = 0;
        // Where costs cross more often than there are words, the last step goes on: it has all from there.
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
        // Words behind the last step say the same.
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

    /// The largest power of two of which [`AutoDispatcher::is_tiny`] is true, 0 for none.
    fn largest_tiny(&self, family: Family) -> usize {
        let host = &self.profiles[0];
        let done = |elements: usize| {
            let cost = family.most(elements);
            let fits = host.memory == 0 || cost.bytes <= host.memory as f64;
            fits && host.launch_ns + host.compute_ns(family, &cost) <= self.others_ns
        };
        (0..=12).rev().map(|power| 1 << power).find(|&elements| done(elements)).unwrap_or(0)
    }

    /// Where the cheapest device for typical tasks of a family changes: found between powers of two, then by halving.
    fn crossings(&self, family: Family, put: &mut dyn FnMut(u64, usize)) {
        // One device never changes.
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
