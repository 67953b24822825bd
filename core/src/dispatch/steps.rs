//! Choices without prices. A table, computed in advance, has the steps of each family: each step is a device and the number of
//! elements at which the next step begins. A second table has the sizes for which only the first device is an option.

use super::cost::Task;
use super::dispatcher::{AutoDispatcher, NONE};
use super::profile::Kind;
use crate::command::Command;
use crate::contract::Precision;
use crate::family::Family;
use crate::fpenv::DefaultEnvironment;
use crate::ops::{Op, most};
use std::sync::atomic::Ordering::Relaxed;

/// A limit above every number of elements.
pub(super) const NO_LIMIT: u64 = u64::MAX >> 8;

impl AutoDispatcher {
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

    /// Whether a command on host memory is so small that [`AutoDispatcher::done_before_others_begin`] holds for any operation with
    /// its bound. It computes with integers only, so the caller's floating-point modes don't matter.
    #[inline]
    pub(crate) fn is_tiny(&self, command: &Command<'_>) -> bool {
        let elements = command.output().meta().shape.elements();
        let elements = command
            .inputs()
            .iter()
            .flatten()
            .fold(elements, |sum, view| sum.saturating_add(view.meta().shape.elements()));
        elements <= self.tiny(command.op())
    }

    /// Returns the number of elements, of all operands and the result together, up to which the first device finishes an
    /// operation on host memory before any other device would begin. It is a power of two, at most 4096, or 0 if the caller has
    /// set a device or a threshold.
    #[inline]
    pub fn tiny(&self, op: Op) -> usize {
        self.tiny[op.bound()].load(Relaxed)
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

    /// Recomputes the steps of a family.
    pub(super) fn compute_steps(&self, family: Family) {
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
        let chosen = chosen || self.profiles[0].kind != Kind::Cpu;
        for (bound, tiny) in self.tiny.iter().enumerate() {
            if bound == family as usize || bound == Op::Matmul.bound() && family == Family::Matmul {
                tiny.store(if chosen { 0 } else { self.largest_tiny(family, bound) }, Relaxed);
            }
        }
    }

    /// The largest power of two for which [`AutoDispatcher::is_tiny`] holds, or 0.
    fn largest_tiny(&self, family: Family, bound: usize) -> usize {
        let host = &self.profiles[0];
        let done = |elements: usize| {
            let cost = most(bound, elements);
            let fits = host.memory == 0 || cost.bytes <= host.memory as f64;
            // Products may be in f32 or in exact integers.
            let exact = matches!(family, Family::Matmul | Family::Attention);
            let precisions = if exact { &Precision::ALL[..] } else { &[Precision::F32] };
            let ends =
                |&precision: &Precision| host.launch_ns + host.work_ns(family, precision, &cost) <= self.others_ns;
            fits && precisions.iter().all(ends)
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
