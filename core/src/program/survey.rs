//! Surveys: they price each step of a validated program without running it, and find steps that would waste a GPU.
//!
//! A program of tensors runs as one graph on the device where the whole graph takes the least time. Inputs begin in host memory
//! and outputs end there. Constants and intermediate values stay on the device. Two kinds of programs are priced step by step:
//! programs with AGPU registers, and programs on devices among which operations are divided. There each step runs where the
//! dispatcher sends it, and every value is in host memory between steps. In addition to the chosen devices, every device is
//! priced as if all steps ran on it.

use super::Program;
use super::flow::Flow;
use super::lower::{Do, Step};
use super::walk::{Visit, Walk};
use crate::dispatch::{AutoDispatcher, Estimate, Kind, Time, name_unit};
use crate::error::Result;
use crate::ops::Op;
use crate::pipeline::Prices;
use std::fmt::{self, Write};

/// The prices of a program.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The steps that compute or move data, in order.
    pub steps: Vec<SurveyStep>,
    /// The findings, the costliest first.
    pub findings: Vec<Finding>,
    /// Nanoseconds of all steps on the devices that the dispatcher chooses.
    pub chosen_ns: f64,
    /// Nanoseconds of all steps on one device, in the dispatcher's order of devices.
    pub alone_ns: Vec<f64>,
}

/// A step of a program with its prices.
#[derive(Clone, Debug)]
pub struct SurveyStep {
    /// The step's instruction. [`Program::line`] returns its text.
    pub instruction: usize,
    /// The operation, or `None` for a copy.
    pub op: Option<Op>,
    /// Operands and result, such as `f32[2, 3] f32[3, 4] -> f32[2, 4]`, or the bytes of a copy.
    pub shapes: String,
    /// The chosen device, by its index in the dispatcher. A copy names the device that makes it.
    pub device: usize,
    /// Why this device was chosen.
    pub reason: String,
    /// The estimate for the chosen device, with the transfers that the step needs. Zero for steps that are done with another
    /// step.
    pub estimate: Estimate,
    /// By device: the estimates that the choice compared. For a graph, the sums of all steps decide. Empty for a copy and for a
    /// step that is done with another step.
    pub compared: Vec<Estimate>,
    /// By device: the estimate of the step if all steps run there.
    pub alone: Vec<Estimate>,
}

/// How a step would waste a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waste {
    /// The launch takes longer than the work, and the processor is faster.
    TooSmall,
    /// Moving the data takes longer than the work, and the processor is faster.
    Transfers,
    /// The processor is at least as fast.
    NoFaster,
    /// Consecutive small steps, each with a launch of its own, in a program that runs step by step.
    Unfused,
    /// A step's result is moved to the host and back to the same GPU for a later step.
    RoundTrip,
}

impl Waste {
    /// Returns `too_small`, `transfers`, `no_faster`, `unfused` or `round_trip`.
    pub const fn name(self) -> &'static str {
        match self {
            Waste::TooSmall => "too_small",
            Waste::Transfers => "transfers",
            Waste::NoFaster => "no_faster",
            Waste::Unfused => "unfused",
            Waste::RoundTrip => "round_trip",
        }
    }
}

/// A found waste.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind of waste.
    pub waste: Waste,
    /// The GPU, by its index in the dispatcher.
    pub device: usize,
    /// The first and the last step, by their indexes in [`Survey::steps`].
    pub steps: (usize, usize),
    /// Nanoseconds that are lost.
    pub lost_ns: f64,
    /// The reason, with the numbers.
    pub reason: String,
}

/// The processor's index among the devices.
pub(super) fn cpu(dispatcher: &AutoDispatcher) -> Option<usize> {
    dispatcher.profiles().iter().position(|profile| profile.kind == Kind::Cpu)
}

impl Program {
    /// Estimates the program as it would run on a dispatcher's devices: as one graph, or instruction by instruction. Runs
    /// nothing. Fails like [`Program::validate`].
    pub fn survey(&self, dispatcher: &AutoDispatcher) -> Result<Survey> {
        let plan = self.validate(usize::MAX)?;
        let lowered = plan.lowered();
        let devices = dispatcher.profiles().len();
        let mut survey =
            Survey { steps: Vec::new(), findings: Vec::new(), chosen_ns: 0.0, alone_ns: vec![0.0; devices] };
        let divided = dispatcher.is_hybrid() && dispatcher.forced().is_none();
        let whole = self.flow.as_ref().map(|flow| Whole::new(dispatcher, flow));
        let mut chosen = Walk::new(dispatcher, lowered.cells.len());
        let mut alone: Vec<_> = (0..devices).map(|_| Walk::new(dispatcher, lowered.cells.len())).collect();
        for (i, Step { instruction, action }) in lowered.steps.iter().enumerate() {
            let index = survey.steps.len();
            let one_by_one: Vec<_> =
                alone.iter_mut().enumerate().map(|(device, walk)| walk.step(index, action, Some(device))).collect();
            let Some(visit) = chosen.step(index, action, None) else { continue };
            let (mut visit, mut alone) =
                (visit, one_by_one.into_iter().flatten().map(|visit| visit.estimate).collect::<Vec<_>>());
            if let Some(whole) = &whole {
                alone = (0..devices).map(|device| whole.estimate(i, device)).collect();
                if !divided {
                    visit = whole.visit(i, action, &survey.steps);
                }
            }
            survey.chosen_ns += visit.estimate.total_ns();
            survey.alone_ns.iter_mut().zip(&alone).for_each(|(sum, estimate)| *sum += estimate.total_ns());
            if let Some((step, device, ns)) = visit.returned {
                let reason = format!("its result is moved to the host and back to the GPU: {} of transfers", Time(ns));
                survey.findings.push(Finding {
                    waste: Waste::RoundTrip,
                    device,
                    steps: (step, index),
                    lost_ns: ns,
                    reason,
                });
            }
            survey.steps.push(SurveyStep::new(*instruction, action, visit, alone));
        }
        for (device, profile) in dispatcher.profiles().iter().enumerate() {
            match cpu(dispatcher) {
                Some(cpu) if profile.kind != Kind::Cpu && whole.is_some() => survey.wasted_by_all(cpu, device),
                Some(cpu) if profile.kind != Kind::Cpu => survey.wasted(dispatcher, cpu, device),
                _ => {}
            }
        }
        survey.findings.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
        Ok(survey)
    }
}

/// The prices of a program that runs as one graph.
struct Whole<'a> {
    dispatcher: &'a AutoDispatcher,
    flow: &'a Flow,
    prices: Prices,
    reason: String,
}

impl Whole<'_> {
    fn new<'a>(dispatcher: &'a AutoDispatcher, flow: &'a Flow) -> Whole<'a> {
        let prices = Prices::new(dispatcher, &flow.graph);
        let device = prices.device;
        let id = |device: usize| &dispatcher.profiles()[device].id;
        let others = (0..dispatcher.profiles().len()).filter(|&other| other != device);
        let next = others.min_by(|&a, &b| prices.total_ns(a).total_cmp(&prices.total_ns(b)));
        let reason = match next {
            _ if dispatcher.forced().is_some() => format!("{} was forced", id(device)),
            None => format!("{} is the only device", id(device)),
            Some(next) => {
                let [here, there] = [device, next].map(|device| Time(prices.total_ns(device)));
                format!("all steps as one take {here}, on {} {there}", id(next))
            }
        };
        Whole { dispatcher, flow, prices, reason }
    }

    /// The estimate of a step on a device if all steps run there.
    fn estimate(&self, step: usize, device: usize) -> Estimate {
        match self.flow.nodes[step] {
            Some(node) => self.prices.nodes[device][node as usize],
            None => Estimate { fits: true, ..Estimate::default() },
        }
    }

    fn visit(&self, step: usize, action: &Do, before: &[SurveyStep]) -> Visit {
        let device = self.prices.device;
        let mut visit = Visit { device, estimate: self.estimate(step, device), ..Visit::default() };
        let node = self.flow.nodes[step];
        let by = node.and_then(|node| self.prices.done_by[node as usize]);
        visit.reason = match (node, by) {
            (None, _) if !matches!(action, Do::Command(_)) => String::new(),
            (Some(node), Some(by)) if node == by => {
                visit.compared = (0..self.prices.nodes.len()).map(|device| self.estimate(step, device)).collect();
                self.reason.clone()
            }
            (Some(_), Some(by)) => {
                let instruction = self.flow.instructions[by as usize];
                let at = before.iter().position(|step| Some(step.instruction) == instruction);
                format!("done with step {}", at.map_or(0, |at| at + 1))
            }
            (None, _) => "its result is empty".into(),
            (Some(_), None) => "nothing needs its result".into(),
        };
        if let (Do::Command(work), Some(_)) = (action, by) {
            let precision = work.attrs.precision.unwrap_or_default();
            name_unit(&mut visit.reason, work.op.family(), precision, &self.dispatcher.profiles()[device]);
        }
        visit
    }
}

impl SurveyStep {
    fn new(instruction: usize, action: &Do, visit: Visit, alone: Vec<Estimate>) -> SurveyStep {
        let Visit { device, estimate, reason, compared, .. } = visit;
        let Do::Command(work) = action else {
            let bytes = if let Do::Copy { bytes, .. } = action { *bytes } else { 0 };
            let (shapes, reason) = (format!("{bytes} bytes"), "moves nothing by itself".into());
            return SurveyStep { instruction, op: None, shapes, device, reason, estimate, compared, alone };
        };
        let mut shapes = String::new();
        for input in &work.inputs {
            // Writing to a String can't fail.
            let _ = match input {
                Some(input) => write!(shapes, "{:?} ", input.meta),
                None => write!(shapes, "- "),
            };
        }
        let _ = write!(shapes, "-> {:?}", work.output.meta);
        SurveyStep { instruction, op: Some(work.op), shapes, device, reason, estimate, compared, alone }
    }

    /// How the step would waste a GPU: the kind, the nanoseconds lost, the reason.
    fn waste(&self, cpu: usize, gpu: usize) -> Option<(Waste, f64, String)> {
        if self.op.is_some() { waste(&self.alone[cpu], &self.alone[gpu]) } else { None }
    }
}

/// How work with these estimates, `here` on the processor and `there` on a GPU, would waste the GPU.
fn waste(here: &Estimate, there: &Estimate) -> Option<(Waste, f64, String)> {
    let lost = there.total_ns() - here.total_ns();
    if lost <= 0.0 {
        return None;
    }
    let [compute, launch, moving, total] =
        [there.compute_ns, there.launch_ns, there.transfer_ns, here.total_ns()].map(Time);
    Some(if there.launch_ns >= there.compute_ns && there.launch_ns >= there.transfer_ns {
        (Waste::TooSmall, lost, format!("launching takes {launch}, the work {compute}; the processor takes {total}"))
    } else if there.transfer_ns >= there.compute_ns {
        let bytes = there.transfer_bytes as u64;
        let text = format!("moving {bytes} bytes takes {moving}, the work {compute}; the processor takes {total}");
        (Waste::Transfers, lost, text)
    } else {
        (Waste::NoFaster, lost, format!("the work takes {compute}; the processor takes {total}"))
    })
}

impl Survey {
    /// Adds the waste if all steps ran on a GPU as one.
    fn wasted_by_all(&mut self, cpu: usize, device: usize) {
        let sum = |device: usize| {
            self.steps.iter().fold(Estimate::default(), |sum, step| Estimate {
                compute_ns: sum.compute_ns + step.alone[device].compute_ns,
                launch_ns: sum.launch_ns + step.alone[device].launch_ns,
                transfer_ns: sum.transfer_ns + step.alone[device].transfer_ns,
                transfer_bytes: sum.transfer_bytes + step.alone[device].transfer_bytes,
                fits: true,
            })
        };
        let works = || self.steps.iter().enumerate().filter(|(_, step)| step.op.is_some());
        if let (Some((waste, lost_ns, reason)), Some((first, _)), Some((last, _))) =
            (waste(&sum(cpu), &sum(device)), works().next(), works().next_back())
        {
            self.findings.push(Finding { waste, device, steps: (first, last), lost_ns, reason });
        }
    }

    /// Adds the wastes if all steps ran on a GPU one by one.
    fn wasted(&mut self, dispatcher: &AutoDispatcher, cpu: usize, device: usize) {
        // Consecutive operations whose launch takes longer than their work.
        let mut run: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        let mut end_run = |run: &mut Vec<usize>, steps: &[SurveyStep]| {
            if let (&[first, .., last], launch) = (run.as_slice(), dispatcher.profiles()[device].launch_ns) {
                let count = run.len();
                let work: f64 = run.iter().map(|&i| steps[i].alone[device].compute_ns).sum();
                let launches = launch * count as f64;
                let reason = format!(
                    "{count} launches take {} for {} of work; fused, they need one",
                    Time(launches),
                    Time(work)
                );
                let lost_ns = launches - launch;
                found.push(Finding { waste: Waste::Unfused, device, steps: (first, last), lost_ns, reason });
            }
            run.clear();
        };
        let mut wastes = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            if step.op.is_none() {
                continue;
            }
            if let Some((waste, lost_ns, reason)) = step.waste(cpu, device) {
                wastes.push(Finding { waste, device, steps: (i, i), lost_ns, reason });
            }
            let there = &step.alone[device];
            if there.launch_ns > there.compute_ns {
                run.push(i);
            } else {
                end_run(&mut run, &self.steps);
            }
        }
        end_run(&mut run, &self.steps);
        self.findings.extend(wastes);
        self.findings.extend(found);
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.waste.name(), self.reason)
    }
}
