//! How an operation is divided among devices: by rows of its result, so that all of them are done at the same time.
//!
//! What a device takes for a part is nearly a constant and a time for each row: both follow from the prices of the whole and of
//! half of it. The host gives all GPUs their operands at the same time, and then computes its own part. So each device's rows follow
//! from the time at which all are to be done, the host's also from how long the slowest way to a GPU takes, and that time follows
//! from the number of rows.

use super::cost::{Estimate, Places, Task, place_of, price, transfer};
use super::dispatcher::AutoDispatcher;
use super::profile::{DeviceProfile, Kind};
use crate::ops::{Cut, Part};

/// An operation, divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Rows of the result by device, in the order of [`AutoDispatcher::profiles`]: those of the first one first.
    pub rows: Vec<usize>,
    /// Nanoseconds until all have theirs done.
    pub ns: f64,
}

/// What a device takes for its rows: `fixed + each · rows`, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Line {
    fixed: f64,
    each: f64,
}

impl Line {
    /// Through what half and all of the rows take.
    fn through((half, at_half): (f64, f64), (all, at_all): (f64, f64)) -> Line {
        // Where more rows cost nothing, everything would be this device's: some time they take.
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
    /// The host, which begins when the others have their operands.
    last: bool,
    /// While the host gives it its operands and does nothing else.
    up: Line,
    /// From then on.
    rest: Line,
    /// The rows that its memory holds.
    most: f64,
    /// Once it is known that they are not what makes it done with the others.
    rows: Option<f64>,
}

/// What device `index` takes for a task whose operands and result are in host memory: before the host can go on, and after.
fn halves(profiles: &[DeviceProfile], index: usize, task: &Task) -> (f64, f64, Estimate) {
    let estimate = price(profiles, index, task);
    let down = transfer(profiles, task.output.bytes, place_of(profiles, index), Places::HOST);
    let up = estimate.transfer_ns - down;
    (up, estimate.total_ns() - up, estimate)
}

fn task(cut: &Cut<'_>, part: &Part) -> Task {
    let metas = part.metas(cut);
    Task::new(cut.op(), cut.attrs(), &metas, part.result())
}

impl Share {
    fn new(profiles: &[DeviceProfile], device: usize, rows: usize, half: &Task, all: &Task) -> Share {
        let (n, total) = ((rows / 2) as f64, rows as f64);
        let (half_up, half_rest, _) = halves(profiles, device, half);
        let (all_up, all_rest, _) = halves(profiles, device, all);
        let up = if all_up > 0.0 { Line::through((n, half_up), (total, all_up)) } else { Line::default() };
        let rest = Line::through((n, half_rest), (total, all_rest));
        let bytes = Line::through((n, half.footprint() as f64), (total, all.footprint() as f64));
        // Some of it is others'.
        let room = profiles[device].memory as f64 * 0.9;
        let most = if room == 0.0 { total } else { ((room - bytes.fixed) / bytes.each).max(0.0) };
        Share { device, last: profiles[device].kind == Kind::Cpu, up, rest, most, rows: None }
    }
}

/// Rows for each, so many together, that all are done at the same time; `None` if their memories are too small.
fn balance(shares: &mut [Share], total: f64) -> Option<Vec<f64>> {
    loop {
        // Rows of each and of all so far: so many for each nanosecond until the end, and so many more.
        let (mut rows, mut sum) = (Vec::with_capacity(shares.len()), (0.0, 0.0));
        // What the host waits for: the slowest of the ways up.
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
        // The one that would be last even without a row gets none; then the others' rows are other ones.
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
    /// How a cut operation is divided among all devices. `None` if `alone`, what the best of them takes for all of it, is less.
    pub(crate) fn split(&self, cut: &Cut<'_>, alone: &Estimate) -> Option<Split> {
        let profiles = self.profiles();
        let (half, all) = (task(cut, &cut.part(0, cut.rows / 2)), task(cut, &cut.part(0, cut.rows)));
        // The host computes its part when the others have theirs.
        let host = |device: &usize| profiles[*device].kind == Kind::Cpu;
        let (cpus, gpus): (Vec<usize>, Vec<usize>) = (0..profiles.len()).partition(host);
        let share = |&device: &usize| Share::new(profiles, device, cut.rows, &half, &all);
        let mut shares: Vec<Share> = gpus.iter().chain(&cpus).map(share).collect();
        let balanced = balance(&mut shares, cut.rows as f64)?;
        // Where there are many, whole tiles of most kernels; the last one gets what is left.
        let step = (cut.rows / 256).clamp(1, 64);
        let (mut rows, mut left) = (vec![0; profiles.len()], cut.rows);
        let last = balanced.iter().rposition(|&rows| rows >= 1.0)?;
        for (share, own) in shares.iter().zip(balanced).take(last) {
            rows[share.device] = ((own as usize + step / 2) / step * step).min(left);
            left -= rows[share.device];
        }
        rows[shares[last].device] = left;
        let ns = self.together_ns(cut, &rows)?;
        let better = !alone.fits || ns < alone.total_ns();
        (better && rows.iter().filter(|&&rows| rows > 0).count() > 1).then_some(Split { rows, ns })
    }

    /// Nanoseconds until all devices have done so many rows each; `None` if one's memory is too small.
    pub(super) fn together_ns(&self, cut: &Cut<'_>, rows: &[usize]) -> Option<f64> {
        let profiles = self.profiles();
        let (mut before, mut ns, mut host) = (0.0f64, 0.0f64, 0.0);
        for (device, &rows) in rows.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            let (up, rest, estimate) = halves(profiles, device, &task(cut, &cut.part(0, rows)));
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
        // The host computes when all others have their operands.
        Some(ns.max(before + host))
    }
}

#[cfg(test)]
mod tests;
