//! The costs of a program that runs instruction by instruction.

use super::lower::{Do, Located, Work};
use super::survey::cpu;
use crate::dispatch::{AutoDispatcher, Estimate, Explanation, Places, Task};
use crate::ops::{Cut, MetaList};

/// Walks the steps of a program that runs instruction by instruction. Every value is in host memory between steps.
pub(super) struct Walk<'a> {
    dispatcher: &'a AutoDispatcher,
    /// By cell: the step on a GPU whose result moved to the host, the GPU, and the nanoseconds of the transfer.
    came: Vec<Option<(usize, usize, f64)>>,
}

/// The cost of one step.
#[derive(Default)]
pub(super) struct Visit {
    pub device: usize,
    pub estimate: Estimate,
    /// Why this device was chosen, for a command.
    pub reason: String,
    /// The estimates of all devices, where there was a choice.
    pub compared: Vec<Estimate>,
    /// The step whose result goes back to the GPU that computed it, the GPU, and the nanoseconds of both transfers.
    pub returned: Option<(usize, usize, f64)>,
}

impl<'a> Walk<'a> {
    pub fn new(dispatcher: &'a AutoDispatcher, cells: usize) -> Walk<'a> {
        Walk { dispatcher, came: vec![None; cells] }
    }

    /// Prices the next step, on the given device or on the cheapest. Returns `None` if it neither computes nor moves anything.
    pub fn step(&mut self, index: usize, action: &Do, forced: Option<usize>) -> Option<Visit> {
        match action {
            Do::Command(work) => Some(self.command(index, work, forced)),
            Do::Copy { from, to, .. } => {
                self.came[*to] = self.came[*from];
                Some(Visit { device: cpu(self.dispatcher).unwrap_or(0), ..Visit::default() })
            }
            Do::Allocate { cell, .. } | Do::Fill { cell, .. } => {
                self.came[*cell] = None;
                None
            }
            Do::Nothing | Do::Barrier | Do::Release(_) => None,
        }
    }

    fn command(&mut self, index: usize, work: &Work, forced: Option<usize>) -> Visit {
        let metas: MetaList<'_> = work.inputs.iter().map(|it| it.as_ref().map(|it| &it.meta)).collect();
        let hybrid = forced.is_none() && self.dispatcher.is_hybrid();
        let task = Task::new(work.op, &work.attrs, &metas, &work.output.meta);
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
            // A divided operation overlaps launches and transfers with work, so only the total is known.
            estimate = Estimate { compute_ns: split.ns, fits: true, ..Estimate::default() };
        }
        let mut returned = None;
        let here = self.dispatcher.place(device);
        let way = |bytes: usize, from: Places, to: Places| self.dispatcher.transfer_ns(bytes, from, to);
        for &Located { cell, meta } in work.inputs.iter().flatten() {
            if let Some((step, gpu, down)) = self.came[cell]
                && gpu == device
            {
                returned = Some((step, gpu, down + way(meta.bytes(), Places::HOST, here)));
                self.came[cell] = None;
            }
        }
        let down = way(work.output.meta.bytes(), here, Places::HOST);
        self.came[work.output.cell] = if down > 0.0 { Some((index, device, down)) } else { None };
        Visit { device, estimate, reason, compared, returned }
    }
}
