//! Division of an operation among devices, by rows of its result, so that all devices finish at the same time.
//!
//! A device's time for a part is nearly linear: a constant plus a time for each row. Both follow from the prices of the whole
//! operation and of half of it. The host gives all GPUs their operands at the same time and then computes its own part. So each
//! device's rows follow from the common end time. The host's rows also depend on the slowest upload. The end time follows from
//! the total number of rows.

use super::cost::{Estimate, Item, Places, Task, place_of, price, transfer};
use super::dispatcher::AutoDispatcher;
use super::profile::{DeviceProfile, Kind};
use crate::ops::{Cut, Part};

/// A divided operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Rows of the result by device, in the order of [`AutoDispatcher::profiles`]. The first device has the first rows.
    pub rows: Vec<usize>,
    /// Nanoseconds until all devices are done.
    pub ns: f64,
}

/// A device's time for its rows: `fixed + each · rows`, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Line {
    fixed: f64,
    each: f64,
}

impl Line {
    /// The line through the times of half and of all rows.
    fn through((half, at_half): (f64, f64), (all, at_all): (f64, f64)) -> Line {
        // If more rows cost nothing, this device would get everything, so each row costs at least a little.
        let each = ((at_all - at_half) / (all - half)).max(at_all / all * 1e-3);
        Line { fixed: (at_all - each * all).max(0.0), each }
    }

    fn at(self, rows: f64) -> f64 {
        self.fixed + self.each * rows
    }
}

/// A device that may get rows.
struct Share {
    device: usize,
    /// Whether it is the host, which begins when the others have their operands.
    last: bool,
    /// The time in which the host gives the device its operands and does nothing else.
    up: Line,
    /// The time after that.
    rest: Line,
    /// The most rows that its memory holds.
    most: f64,
    /// Its rows, once they are fixed by something other than the common end time: none, or all that fit.
    rows: Option<f64>,
}

/// The times of device `index` for a task whose operands and result are in host memory: before the host can continue, and after.
fn halves(profiles: &[DeviceProfile], index: usize, task: &Task) -> (f64, f64, Estimate) {
    let estimate = price(profiles, index, task);
    let down = transfer(profiles, task.output.bytes, place_of(profiles, index), task.output.at);
    let up = estimate.transfer_ns - down;
    (up, estimate.total_ns() - up, estimate)
}

/// The task of a part. `whole` has the places of operands that stay where they are. `follows`: the parts are those of an operand
/// that is divided among devices already.
fn task(cut: &Cut<'_>, part: &Part, whole: &Task, follows: bool) -> Task {
    let metas = part.metas(cut);
    if !cut.stays() {
        return Task::new(cut.op(), cut.attrs(), &metas, part.result());
    }
    let count = metas.len();
    let mut task = Task::placed(cut.op(), cut.attrs(), &metas, part.result(), &|i| match whole.operands[i.min(7)].at {
        _ if i == count => Places::NOWHERE,
        at => at,
    });
    for (own, all) in task.operands.iter_mut().zip(&whole.operands) {
        // Each device has its rows.
        if follows && own.at == Places::SCATTERED && own.bytes < all.bytes {
            own.at = Places::NOWHERE;
        }
    }
    task
}

impl Share {
    fn new(profiles: &[DeviceProfile], device: usize, rows: usize, half: &Task, all: &Task) -> Share {
        let (n, total) = ((rows / 2) as f64, rows as f64);
        let (half_up, half_rest, _) = halves(profiles, device, half);
        let (all_up, all_rest, _) = halves(profiles, device, all);
        let up = if all_up > 0.0 { Line::through((n, half_up), (total, all_up)) } else { Line::default() };
        let rest = Line::through((n, half_rest), (total, all_rest));
        let bytes = Line::through((n, half.footprint() as f64), (total, all.footprint() as f64));
        // Other programs use some of the memory.
        let room = profiles[device].memory as f64 * 0.9;
        let most = if room == 0.0 { total } else { ((room - bytes.fixed) / bytes.each).max(0.0) };
        Share { device, last: profiles[device].kind == Kind::Cpu, up, rest, most, rows: None }
    }
}

/// Distributes `total` rows so that all devices finish at the same time. `None` if their memories are too small.
fn balance(shares: &mut [Share], total: f64) -> Option<Vec<f64>> {
    loop {
        // Rows of each device, and of all so far, as a line: rows per nanosecond until the end, plus a constant.
        let (mut rows, mut sum) = (Vec::with_capacity(shares.len()), (0.0, 0.0));
        // The time that the host waits, as a line: that of the slowest upload.
        let mut before = (0.0, 0.0);
        let mut slowest = 0.0;
        for share in &*shares {
            let own = match share.rows {
                Some(rows) => (0.0, rows),
                None => {
                    let each = share.up.each + share.rest.each;
                    let before = if share.last { before } else { (0.0, 0.0) };
                    ((1.0 - before.0) / each, -(share.up.fixed + share.rest.fixed + before.1) / each)
                }
            };
            let way = share.up.at(total);
            if share.rows != Some(0.0) && way > slowest {
                slowest = way;
                before = (share.up.each * own.0, share.up.at(own.1));
            }
            sum = (sum.0 + own.0, sum.1 + own.1);
            rows.push(own);
        }
        if sum.0 <= 0.0 {
            return None;
        }
        let end = (total - sum.1) / sum.0;
        let rows: Vec<f64> = rows.into_iter().map(|(each, more)| each * end + more).collect();
        let free = |(i, _): &(usize, &f64)| shares[*i].rows.is_none();
        // A device that would finish last even without a row gets none. Then the others' rows are computed again.
        let least = rows.iter().enumerate().filter(free).min_by(|a, b| a.1.total_cmp(b.1));
        let full = rows.iter().enumerate().filter(free).find(|(i, rows)| **rows > shares[*i].most);
        match (least, full) {
            (Some((i, rows)), _) if *rows < 1.0 => shares[i].rows = Some(0.0),
            (_, Some((i, _))) => shares[i].rows = Some(shares[i].most.floor()),
            _ => return Some(rows),
        }
    }
}

impl AutoDispatcher {
    /// Divides a cut operation among all devices, or among all GPUs if its operands stay there. `whole` is the operation's task.
    /// `None` if `alone`, the best device's estimate for all of it, is less.
    pub(crate) fn split(&self, cut: &Cut<'_>, whole: &Task, alone: &Estimate) -> Option<Split> {
        let profiles = self.profiles();
        let index = |id: &str| profiles.iter().position(|profile| profile.id == id);
        let priced =
            |rows: Vec<usize>, follows| Some(Split { ns: self.together_ns(cut, whole, &rows, follows)?, rows });
        let as_it_is = cut.stays().then(|| cut.division(profiles.len(), &index)).flatten();
        let as_it_is = as_it_is.and_then(|rows| priced(rows, true));
        let balanced = self.balanced(cut, whole).and_then(|rows| priced(rows, false));
        // To divide anew, devices copy rows that others have.
        let splits = as_it_is.into_iter().chain(balanced);
        let split = splits.min_by(|a, b| a.ns.total_cmp(&b.ns))?;
        let better = !alone.fits || split.ns < alone.total_ns();
        (better && split.rows.iter().filter(|&&rows| rows > 0).count() > 1).then_some(split)
    }

    /// The rows with which all devices finish at the same time.
    fn balanced(&self, cut: &Cut<'_>, whole: &Task) -> Option<Vec<usize>> {
        let profiles = self.profiles();
        // Copies between GPUs are made once, and what follows has the same rows. So equal GPUs get equally many, wherever the operands
        // are at first.
        let still = Task { operands: whole.operands.map(|item| Item { at: Places::NOWHERE, ..item }), ..*whole };
        let part = |rows| task(cut, &cut.part(0, rows), &still, false);
        let (half, all) = (part(cut.rows / 2), part(cut.rows));
        // The host comes last: it computes its part when the others have their operands.
        let host = |device: &usize| profiles[*device].kind == Kind::Cpu;
        let (cpus, gpus): (Vec<usize>, Vec<usize>) = (0..profiles.len()).partition(host);
        let share = |&device: &usize| Share::new(profiles, device, cut.rows, &half, &all);
        let cpus = if cut.stays() { &[] } else { &cpus[..] };
        let mut shares: Vec<Share> = gpus.iter().chain(cpus).map(share).collect();
        let balanced = balance(&mut shares, cut.rows as f64)?;
        // With many rows, each device gets whole tiles of most kernels. The last device gets the rest.
        let step = (cut.rows / 256).clamp(1, 64);
        let (mut rows, mut left) = (vec![0; profiles.len()], cut.rows);
        let last = balanced.iter().rposition(|&rows| rows >= 1.0)?;
        for (share, own) in shares.iter().zip(balanced).take(last) {
            rows[share.device] = ((own as usize + step / 2) / step * step).min(left);
            left -= rows[share.device];
        }
        rows[shares[last].device] = left;
        Some(rows)
    }

    /// Nanoseconds until all devices have computed these rows. `None` if the memory of one is too small.
    pub(super) fn together_ns(&self, cut: &Cut<'_>, whole: &Task, rows: &[usize], follows: bool) -> Option<f64> {
        let profiles = self.profiles();
        let (mut before, mut ns, mut host) = (0.0f64, 0.0f64, 0.0);
        for (device, &rows) in rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            let (up, rest, estimate) = halves(profiles, device, &task(cut, &cut.part(0, rows), whole, follows));
            if !estimate.fits {
                return None;
            }
            before = before.max(up);
            if profiles[device].kind == Kind::Cpu {
                host = rest;
            } else {
                ns = ns.max(up + rest);
            }
        }
        // The host computes once all other devices have their operands.
        Some(ns.max(before + host))
    }
}

#[cfg(test)]
mod tests;
