//! Explanations: why a device was chosen, as text and as data.

use super::cost::{Estimate, Task};
use super::dispatcher::{AutoDispatcher, Decision, Why};
use super::profile::DeviceProfile;
use super::split::Split;
use crate::contract::Precision;
use crate::family::Family;
use crate::ops::Cost;
use std::fmt::{self, Write};

/// A choice with its reason and every device's estimate.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    /// The chosen device, by its index in [`AutoDispatcher::profiles`]. If the work is divided, the device with the most rows.
    pub device: usize,
    /// If the operation is divided: each device's rows of the result, and the time of all together.
    pub split: Option<Split>,
    /// The reason, in words with numbers.
    pub reason: String,
    /// The family that it was priced as.
    pub family: Family,
    /// The precision of its products.
    pub precision: Precision,
    /// Elements of the largest operand or result.
    pub elements: usize,
    /// The work.
    pub cost: Cost,
    /// Every device's estimate, in the order of [`AutoDispatcher::profiles`].
    pub estimates: Vec<Estimate>,
    profiles: &'a [DeviceProfile],
}

impl<'a> Explanation<'a> {
    pub(super) fn new(
        dispatcher: &'a AutoDispatcher,
        task: &Task,
        decision: Decision,
        split: Option<Split>,
    ) -> Explanation<'a> {
        let Decision { mut device, why } = decision;
        let (profiles, estimates) = (dispatcher.profiles(), dispatcher.estimates(task));
        let Task { family, precision, cost, elements, .. } = *task;
        let id = &profiles[device].id;
        let mut reason = match why {
            Why::Only => format!("{id} is the only device"),
            Why::Forced => format!("{id} was forced"),
            Why::Threshold(limit) => {
                let word = if elements < limit { "fewer than" } else { "at least" };
                format!("{elements} elements, {word} the threshold of {family}, {limit}")
            }
            Why::Cheapest => match &split {
                Some(split) => divided(profiles, split, id, &estimates[device]),
                None => cheapest(profiles, &estimates, device),
            },
        };
        name_unit(&mut reason, family, precision, &profiles[device]);
        if let Some(Split { rows, .. }) = &split {
            device = (0..rows.len()).max_by_key(|&device| rows[device]).unwrap_or(device);
        }
        Explanation { device, split, reason, family, precision, elements, cost, estimates, profiles }
    }

    /// Returns the chosen device's id.
    pub fn id(&self) -> &'a str {
        &self.profiles[self.device].id
    }

    /// Returns the chosen device's estimate.
    pub fn estimate(&self) -> &Estimate {
        &self.estimates[self.device]
    }
}

/// Adds the unit that computes products in integers. Adds nothing for f32.
pub(crate) fn name_unit(reason: &mut String, family: Family, precision: Precision, profile: &DeviceProfile) {
    if precision != Precision::F32 {
        // Writing to a String can't fail.
        let _ = write!(reason, "; {} by {}", precision.name(), profile.exact.unit_of(family));
    }
}

/// Describes each device's rows and the time of the best device alone.
fn divided(profiles: &[DeviceProfile], split: &Split, id: &str, alone: &Estimate) -> String {
    let mut text = format!("of {} rows", split.rows.iter().sum::<usize>());
    for (profile, rows) in profiles.iter().zip(&split.rows).filter(|(_, rows)| **rows > 0) {
        // Writing to a String can't fail.
        let _ = write!(text, " {rows} on {},", profile.id);
    }
    let _ = write!(text, " {} together: ", Time(split.ns));
    let _ = match alone.fits {
        true => write!(text, "{id} alone would take {}", Time(alone.total_ns())),
        false => write!(text, "they don't fit in the memory of {id} alone"),
    };
    text
}

/// Compares with the best of the other devices, and names what makes it slower.
fn cheapest(profiles: &[DeviceProfile], estimates: &[Estimate], device: usize) -> String {
    let mut best: Option<(&str, &Estimate)> = None;
    for (i, (profile, estimate)) in profiles.iter().zip(estimates).enumerate() {
        if i != device && best.is_none_or(|(_, other)| estimate.beats(other)) {
            best = Some((&profile.id, estimate));
        }
    }
    let Some((id, other)) = best else { return String::new() };
    let own = &estimates[device];
    if own.fits && !other.fits {
        return format!("operands and result don't fit in the memory of {id}");
    }
    let (own, total) = (own.total_ns(), other.total_ns());
    if total <= own {
        return format!("as fast as {id}");
    }
    let times = Tenths(total / own.max(1e-3));
    let text = format!("{id} would take {times} times as long: {}", Time(total));
    let (part, word) = if other.transfer_ns >= other.launch_ns.max(other.compute_ns) {
        (other.transfer_ns, "moving data")
    } else if other.launch_ns >= other.compute_ns {
        (other.launch_ns, "launching")
    } else {
        return text;
    };
    format!("{text}, {} of it {word}", Time(part))
}

/// Displays nanoseconds in the unit that suits them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub f64);

/// Displays a number with one decimal if it is below 100. It avoids the formatting of floats, which is large code.
pub(crate) struct Tenths(pub f64);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0 + 0.5) as u64;
        match (tenths / 10, tenths % 10) {
            (100.., _) => write!(f, "{}", (self.0 + 0.5) as u64),
            (whole, 0) => write!(f, "{whole}"),
            (whole, tenth) => write!(f, "{whole}.{tenth}"),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            ns if ns < 999.5 => (1.0, "ns"),
            ns if ns < 999.5e3 => (1e3, "µs"),
            ns if ns < 999.5e6 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        write!(f, "{} {unit}", Tenths(self.0 / scale))
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { reason, family, precision, elements, cost, .. } = self;
        writeln!(f, "{}: {reason}", self.id())?;
        f.write_str(family.name())?;
        if *precision != Precision::F32 {
            write!(f, " in {}", precision.name())?;
        }
        writeln!(f, ", {elements} elements, {} operations, {} bytes", cost.flops as u64, cost.bytes as u64)?;
        for (DeviceProfile { id, .. }, estimate) in self.profiles.iter().zip(&self.estimates) {
            let Estimate { compute_ns, launch_ns, transfer_ns, fits, .. } = *estimate;
            let note = if fits { "" } else { " (its memory is too small)" };
            let [total, compute, launch, moves] = [estimate.total_ns(), compute_ns, launch_ns, transfer_ns].map(Time);
            writeln!(f, "{id}: {total} = {compute} computing + {launch} launching + {moves} moving{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_unit_that_suits_them() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.3, "0.3 ns"),
            (65.0, "65 ns"),
            (999.4, "999 ns"),
            (999.6, "1 µs"),
            (1234.0, "1.2 µs"),
            (123_456.0, "123 µs"),
            (12_345_678.0, "12.3 ms"),
            (2.5e9, "2.5 s"),
        ] {
            assert_eq!(Time(ns).to_string(), text);
        }
    }
}
