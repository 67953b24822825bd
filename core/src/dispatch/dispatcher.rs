//! The dispatcher. It prices a task on every device and chooses the cheapest, unless the caller has set a device or a threshold.
//! `steps.rs` answers without prices.

use super::cost::{Estimate, Places, Task, place_of, price, transfer};
use super::explain::Explanation;
use super::profile::{DeviceProfile, Kind};
use super::split::Split;
use super::steps;
use crate::command::Command;
use crate::error::{Result, fail};
use crate::family::Family;
use crate::fpenv::DefaultEnvironment;
use crate::log::log;
use crate::operand::{Place, View};
use crate::ops::{Cut, Op};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Chooses devices. Threads may share it. Settings of one thread apply to the next calls of all.
pub struct AutoDispatcher {
    pub(super) profiles: Vec<DeviceProfile>,
    /// By family: `limit << 8 | device` for each step; the last step has no limit. A step is one word, so readers need no lock. A
    /// reader may see some words before a change and some after it. Each of them names an existing device.
    pub(super) steps: [Vec<AtomicU64>; Family::COUNT],
    pub(super) thresholds: [AtomicUsize; Family::COUNT],
    /// By an operation's bound: up to this many elements of all operands together, the first device finishes before any other
    /// would begin.
    pub(super) tiny: [AtomicUsize; Op::BOUNDS],
    forced: AtomicUsize,
    hybrid: AtomicBool,
    /// The shortest launch time of all devices but the first. No work on them takes less.
    pub(super) others_ns: f64,
    /// Locked while a setting changes.
    setting: Mutex<()>,
}

/// Stands for no threshold and for no forced device.
pub(super) const NONE: usize = usize::MAX;

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
            steps: std::array::from_fn(|_| (0..words).map(|_| AtomicU64::new(steps::NO_LIMIT << 8)).collect()),
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
                fail!(InvalidArgument, "no device '{id}': the devices are {}", ids.join(", "))
            }
        }
    }

    /// Chooses the device for a command.
    pub fn choose(&self, command: &Command<'_>) -> Decision {
        // With a single device there is nothing to price.
        if self.profiles.len() == 1 { self.only() } else { self.choose_task(&self.task(command)) }
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
        fits && host.launch_ns + host.work_ns(family, command.attrs().precision(), &cost) <= self.others_ns
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
        (decision, cut.and_then(|cut| self.split(cut, task, &self.estimate(task, decision.device))))
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

    /// Returns whether there are several GPUs and all of them copy directly from one another.
    pub(crate) fn has_peers(&self) -> bool {
        if !cfg!(feature = "cuda") {
            return false;
        }
        let mut gpus = self.profiles.iter().filter(|profile| profile.kind != Kind::Cpu);
        gpus.clone().count() > 1 && gpus.all(|profile| profile.peer.is_some())
    }

    /// Makes a task from a command, with its operands at their places. A result in host memory is wanted there. But if an operand
    /// is only on a device, or peers are all devices, the result may stay where it is computed, as its operand did.
    pub fn task(&self, command: &Command<'_>) -> Task {
        let (inputs, output) = (command.inputs(), command.output());
        let stays = |view: &View<'_>| matches!(view.place(), Place::Tensor(tensor, _) if tensor.if_on_host().is_none());
        let peers = || self.has_peers() && self.profiles.iter().all(|profile| profile.kind != Kind::Cpu);
        let stays = inputs.iter().flatten().any(stays) || peers();
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
                let mut scattered = false;
                tensor.each_device(&mut |id, part| match part {
                    None => places = places.and(of(id)),
                    Some(_) => scattered = true,
                });
                if places.is_empty() && scattered { Places::SCATTERED } else { places }
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

    /// Returns whether large operations are divided.
    pub fn is_hybrid(&self) -> bool {
        self.hybrid.load(Relaxed)
    }

    /// Returns the index of the forced device.
    pub fn forced(&self) -> Option<usize> {
        Some(self.forced.load(Relaxed)).filter(|&device| device != NONE)
    }

    fn only(&self) -> Decision {
        Decision { device: 0, why: Why::Only }
    }

    /// The device whose memory is the host's.
    pub(super) fn host(&self) -> usize {
        self.profiles.iter().position(|profile| profile.kind == Kind::Cpu).unwrap_or(0)
    }

    /// The GPU that is fastest at large operations of a family.
    pub(super) fn accelerator(&self, family: Family) -> Option<usize> {
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

    /// The cheapest device, the first one in a tie. A device whose memory is too small is chosen only if no device has enough.
    pub(super) fn cheapest(&self, task: &Task) -> usize {
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
}

impl std::fmt::Debug for AutoDispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.profiles.iter().map(|profile| &profile.id)).finish()
    }
}
