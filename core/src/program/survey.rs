//! Surveys: a validated program priced step by step without running it, and which of its steps would waste a GPU.
//!
//! The choice for each step is the dispatcher's, with every tensor where the steps before left it: inputs and constants
//! begin in host memory, outputs are wanted there, temporaries stay where they were computed. Beside it every device is
//! priced as if all steps ran on it: that is what a step costs there, transfers of what is not there yet included.
//!
//! Where operations are divided among devices, every tensor is in host memory between the steps.

use super::Program;
use super::lower::{Do, Located, Lowered, Source, Step, Work};
use crate::dispatch::{AutoDispatcher, Estimate, Explanation, Item, Kind, Places, Task, Time};
use crate::error::Result;
use crate::family::Family;
use crate::ops::{Cut, MetaList, Op};
use std::fmt::{self, Write};

/// A program, priced.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What computes or moves data, in order.
    pub steps: Vec<SurveyStep>,
    /// What would waste a GPU, the costliest first.
    pub findings: Vec<Finding>,
    /// Nanoseconds of all steps where the dispatcher sends them.
    pub chosen_ns: f64,
    /// Nanoseconds of all steps on one device, in the dispatcher's order.
    pub alone_ns: Vec<f64>,
}

/// A step of a program, priced.
#[derive(Clone, Debug)]
pub struct SurveyStep {
    /// The instruction that it belongs to; [`Program::line`] is its text.
    pub instruction: usize,
    /// The operation; `None` for a copy.
    pub op: Option<Op>,
    /// Operands and result, such as `f32[2, 3] f32[3, 4] -> f32[2, 4]`, or the bytes of a copy.
    pub shapes: String,
    /// The chosen device, by its index in the dispatcher; for a copy, where it is made.
    pub device: usize,
    /// Why.
    pub reason: String,
    /// What it takes there, with its operands where the steps before left them.
    pub estimate: Estimate,
    /// By device: what the step would take there with its operands where the steps before left them, which is what the choice was
    /// made by; of a copy nothing.
    pub compared: Vec<Estimate>,
    /// By device: what the step takes if all steps run there.
    pub alone: Vec<Estimate>,
}

/// How a step would waste a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waste {
    /// Launching it takes longer than its work, and the processor would be done.
    TooSmall,
    /// Moving its data takes longer than its work, and the processor would be done.
    Transfers,
    /// The processor is as fast.
    NoFaster,
    /// Small steps one after the other, each with a launch of its own.
    Unfused,
    /// Data comes to the processor for a step and goes back.
    RoundTrip,
}

impl Waste {
    /// `too_small`, `transfers`, `no_faster`, `unfused` or `round_trip`.
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

/// A waste that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How.
    pub waste: Waste,
    /// The GPU, by its index in the dispatcher.
    pub device: usize,
    /// The first and the last step, by their index in [`Survey::steps`].
    pub steps: (usize, usize),
    /// Nanoseconds that are lost.
    pub lost_ns: f64,
    /// Why, with the numbers.
    pub reason: String,
}

/// Where tensors are while the steps are walked.
struct Walk<'a> {
    dispatcher: &'a AutoDispatcher,
    lowered: &'a Lowered,
    /// By cell: where a valid copy is.
    at: Vec<Places>,
    /// By cell: the step on the processor, and the GPU its operands were fetched from, that it was computed by.
    fetched: Vec<Option<(usize, usize, f64)>>,
}

/// What a step costs in a walk.
struct Visit {
    device: usize,
    estimate: Estimate,
    task: Task,
    /// Why there, of a command.
    reason: String,
    /// What each device would take, where there was a choice.
    compared: Vec<Estimate>,
    /// The step whose result went back to the GPU it came from, that GPU, and the nanoseconds of both ways.
    returned: Option<(usize, usize, f64)>,
}

impl<'a> Walk<'a> {
    fn new(dispatcher: &'a AutoDispatcher, lowered: &'a Lowered) -> Walk<'a> {
        let at = vec![Places::HOST; lowered.cells.len()];
        Walk { dispatcher, lowered, at, fetched: vec![None; lowered.cells.len()] }
    }

    /// The next step, on a device or where it is cheapest. `None` for one that neither computes nor moves anything.
    fn step(&mut self, index: usize, action: &Do, forced: Option<usize>) -> Option<Visit> {
        match action {
            Do::Command(work) => Some(self.command(index, work, forced)),
            Do::Copy { from, to, bytes } => Some(self.copy(*from, *to, *bytes)),
            Do::Allocate { cell, .. } | Do::Fill { cell, .. } => {
                // It can be made wherever it is needed.
                let devices = 0..self.dispatcher.profiles().len();
                self.at[*cell] = devices.fold(Places::HOST, |at, i| at.and(self.dispatcher.place(i)));
                self.fetched[*cell] = None;
                None
            }
            Do::Nothing | Do::Barrier | Do::Release(_) => None,
        }
    }

    /// A copy is made where its source is; to an output, it brings it to the host.
    fn copy(&mut self, from: usize, to: usize, bytes: usize) -> Visit {
        let wanted = if self.is_output(to) { Places::HOST } else { Places::NOWHERE };
        let output = Item { bytes, at: wanted };
        let mut task = Task { output, ..Task::typical(Family::Move, 0) };
        task.operands[0] = Item { bytes, at: self.at[from] };
        let profiles = self.dispatcher.profiles();
        let device = if self.at[from].contain(Places::HOST) {
            profiles.iter().position(|profile| profile.kind == Kind::Cpu)
        } else {
            (0..profiles.len()).find(|&device| self.at[from].contain(self.dispatcher.place(device)))
        };
        let device = device.unwrap_or(0);
        let mut estimate = self.dispatcher.estimate(&task, device);
        // It starts nothing of its own and computes nothing.
        (estimate.launch_ns, estimate.compute_ns) = (0.0, 0.0);
        self.at[to] = self.at[from].and(wanted);
        self.fetched[to] = self.fetched[from];
        task.elements = bytes / 4;
        Visit { device, estimate, task, reason: String::new(), compared: Vec::new(), returned: None }
    }

    fn command(&mut self, index: usize, work: &Work, forced: Option<usize>) -> Visit {
        let metas: MetaList<'_> = work.inputs.iter().map(|it| it.as_ref().map(|it| &it.meta)).collect();
        let hybrid = forced.is_none() && self.dispatcher.is_hybrid();
        let wanted = if hybrid || self.is_output(work.output.cell) { Places::HOST } else { Places::NOWHERE };
        let at = |i: usize| match work.inputs.get(i) {
            Some(input) => input.map_or(Places::HOST, |input| self.at[input.cell]),
            None => wanted,
        };
        let task = Task::placed(work.op, &work.attrs, &metas, &work.output.meta, &at);
        let (device, reason, split, compared) = match forced {
            Some(device) => (device, String::new(), None, Vec::new()),
            None => {
                let cut = if hybrid { Cut::of(work.op, &work.attrs, &metas, &work.output.meta) } else { None };
                let Explanation { device, reason, split, estimates, .. } =
                    self.dispatcher.explain_parts(&task, cut.as_ref());
                (device, reason, split, estimates)
            }
        };
        let mut estimate = self.dispatcher.estimate(&task, device);
        if let Some(split) = split {
            // Launches and transfers are beside each other's work.
            estimate = Estimate { compute_ns: split.ns, fits: true, ..Estimate::default() };
        }
        let here = self.dispatcher.place(device);
        let (mut returned, mut fetched) = (None, None);
        for &Located { cell, meta } in work.inputs.iter().flatten() {
            if meta.bytes() == 0 || self.at[cell].contain(here) {
                continue;
            }
            let ns = self.dispatcher.transfer_ns(meta.bytes(), self.at[cell], here);
            if here == Places::HOST {
                let from =
                    (0..self.dispatcher.profiles().len()).find(|&i| self.at[cell].contain(self.dispatcher.place(i)));
                fetched = fetched.or(from.map(|gpu| (index, gpu, ns)));
            } else if let Some((step, gpu, down)) = self.fetched[cell]
                && gpu == device
            {
                returned = Some((step, gpu, down + ns));
            }
            self.at[cell] = self.at[cell].and(here);
        }
        self.at[work.output.cell] = here.and(wanted);
        self.fetched[work.output.cell] = fetched;
        Visit { device, estimate, task, reason, compared, returned }
    }

    fn is_output(&self, cell: usize) -> bool {
        matches!(self.lowered.cells[cell], Source::Output(_))
    }
}

impl Program {
    /// Prices the program over a dispatcher's devices. Fails as [`Program::validate`] does; runs nothing.
    pub fn survey(&self, dispatcher: &AutoDispatcher) -> Result<Survey> {
        let plan = self.validate(usize::MAX)?;
        let lowered = plan.lowered();
        let devices = dispatcher.profiles().len();
        let mut chosen = Walk::new(dispatcher, lowered);
        let mut alone: Vec<Walk<'_>> = (0..devices).map(|_| Walk::new(dispatcher, lowered)).collect();
        let mut survey =
            Survey { steps: Vec::new(), findings: Vec::new(), chosen_ns: 0.0, alone_ns: vec![0.0; devices] };
        for Step { instruction, action } in &lowered.steps {
            let index = survey.steps.len();
            let by_device: Vec<Option<Visit>> =
                alone.iter_mut().enumerate().map(|(device, walk)| walk.step(index, action, Some(device))).collect();
            let Some(visit) = chosen.step(index, action, None) else { continue };
            let alone: Vec<Estimate> = by_device.into_iter().flatten().map(|visit| visit.estimate).collect();
            survey.chosen_ns += visit.estimate.total_ns();
            survey.alone_ns.iter_mut().zip(&alone).for_each(|(sum, estimate)| *sum += estimate.total_ns());
            if let Some((step, device, ns)) = visit.returned {
                let reason = format!(
                    "what it computes on the processor comes from the GPU and goes back: {} of moving",
                    Time(ns)
                );
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
            if profile.kind != Kind::Cpu {
                survey.wasted(dispatcher, device);
            }
        }
        survey.findings.sort_by(|a, b| b.lost_ns.total_cmp(&a.lost_ns));
        Ok(survey)
    }
}

impl SurveyStep {
    fn new(instruction: usize, action: &Do, visit: Visit, alone: Vec<Estimate>) -> SurveyStep {
        let Visit { device, estimate, task, reason, compared, .. } = visit;
        let Do::Command(work) = action else {
            let reason = if estimate.transfer_bytes > 0.0 { "to the host" } else { "moves nothing by itself" }.into();
            let shapes = format!("{} bytes", task.output.bytes);
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

    /// How it would waste a GPU, what that loses, and why.
    fn waste(&self, cpu: usize, gpu: usize) -> Option<(Waste, f64, String)> {
        let (here, there) = (self.alone[cpu], self.alone[gpu]);
        let lost = there.total_ns() - here.total_ns();
        if self.op.is_none() || lost <= 0.0 {
            return None;
        }
        let [compute, launch, moving, total] =
            [there.compute_ns, there.launch_ns, there.transfer_ns, here.total_ns()].map(Time);
        Some(if there.launch_ns >= there.compute_ns && there.launch_ns >= there.transfer_ns {
            (
                Waste::TooSmall,
                lost,
                format!("launching takes {launch}, the work {compute}; the processor takes {total}"),
            )
        } else if there.transfer_ns >= there.compute_ns {
            let bytes = there.transfer_bytes as u64;
            let text = format!("moving {bytes} bytes takes {moving}, the work {compute}; the processor takes {total}");
            (Waste::Transfers, lost, text)
        } else {
            (Waste::NoFaster, lost, format!("the work takes {compute}; the processor takes {total}"))
        })
    }
}

impl Survey {
    /// Adds what would be wasted if all steps ran on a GPU.
    fn wasted(&mut self, dispatcher: &AutoDispatcher, device: usize) {
        let Some(cpu) = dispatcher.profiles().iter().position(|profile| profile.kind == Kind::Cpu) else { return };
        // Operations one after the other whose launch takes longer than their work.
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
