//! Reports: a profile's records, and totals computed from them.

use super::record::{Activity, Reason, Record, Span};
use crate::dispatch::{DeviceProfile, Source};
use crate::hal::DeviceKind;
use crate::ops::Cost;
use std::borrow::Cow;
use std::collections::BinaryHeap;

/// The result of a profile. `Display` writes a table, [`Report::to_json`] JSON, [`Report::to_trace`] a trace for Perfetto and
/// chrome://tracing.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every piece of work, in the order in which the calls returned.
    pub records: Vec<Record>,
    /// The number of records beyond the limit. No other field includes them.
    pub dropped: u64,
    /// Totals by kind, name, device and reason, the longest time first.
    pub totals: Vec<Total>,
    /// The devices that worked.
    pub devices: Vec<DeviceUse>,
    /// The length of the profile in nanoseconds.
    pub ns: u64,
    /// Nanoseconds in which anything was in progress: work on the CPU, work on a GPU, or a transfer.
    pub busy_ns: u64,
    /// Of these, the nanoseconds in which at least two of the three were in progress.
    pub overlapped_ns: u64,
}

/// The total of all records with one kind, name, device and reason.
#[derive(Clone, Debug)]
pub struct Total {
    /// The kind of work.
    pub activity: Activity,
    /// The operation's or the kernel's name.
    pub name: Cow<'static, str>,
    /// The device, by its index in [`Report::devices`].
    pub device: usize,
    /// Why the work ran on this device.
    pub reason: Reason,
    /// The number of records.
    pub count: u64,
    /// The number of records with a time ([`Record::work`]). The fields below count only these.
    pub timed: u64,
    /// Nanoseconds of all together.
    pub ns: u64,
    /// Nanoseconds of the fastest.
    pub min_ns: u64,
    /// Nanoseconds of the slowest.
    pub max_ns: u64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written. For transfers, the bytes that moved.
    pub bytes: f64,
    /// Nanoseconds at the device's peak ([`DeviceProfile::least_ns`]). For transfers, at the link's rate.
    pub least_ns: f64,
}

impl Total {
    /// Returns the average nanoseconds of a record.
    pub fn mean_ns(&self) -> f64 {
        over(self.ns as f64, self.timed as f64)
    }

    /// Returns floating-point operations per nanosecond.
    pub fn gflops(&self) -> f64 {
        over(self.flops, self.ns as f64)
    }

    /// Returns bytes per nanosecond.
    pub fn gbytes(&self) -> f64 {
        over(self.bytes, self.ns as f64)
    }

    /// Returns the share of the device's peak rate of arithmetic or of memory, whichever is larger. For transfers, the share of
    /// the link's rate. 0 if neither operations nor bytes are known. It can be above 1: the figures are measured on large
    /// operands, and built-in figures are not measured at all.
    pub fn of_peak(&self) -> f64 {
        over(self.least_ns, self.ns as f64)
    }
}

fn over(amount: f64, by: f64) -> f64 {
    if by > 0.0 { amount / by } else { 0.0 }
}

/// A device that worked.
#[derive(Clone, Debug)]
pub struct DeviceUse {
    /// The device's id.
    pub id: String,
    /// The dispatcher's figures of the device. Shares of the peak refer to them.
    pub figures: Option<DeviceProfile>,
    /// Nanoseconds of work other than transfers. Pieces that overlap both count.
    pub work_ns: u64,
    /// Bytes that were uploaded to it.
    pub uploaded: u64,
    /// Bytes that were downloaded from it.
    pub downloaded: u64,
}

impl DeviceUse {
    /// Returns whether the figures were measured on this machine.
    pub fn is_calibrated(&self) -> bool {
        self.figures.as_ref().is_some_and(|figures| matches!(figures.source, Source::Calibrated(_)))
    }
}

impl Report {
    /// Computes everything that follows from records and devices.
    pub(super) fn complete(&mut self, ns: u64, profiles: &[DeviceProfile]) {
        self.ns = ns;
        for device in &mut self.devices {
            device.figures = profiles.iter().find(|profile| profile.id == device.id).cloned();
        }
        for record in &self.records {
            let device = &mut self.devices[record.device];
            match record.activity {
                Activity::Upload => device.uploaded += record.bytes as u64,
                Activity::Download => device.downloaded += record.bytes as u64,
                _ => device.work_ns += record.work.map_or(0, Span::ns),
            }
            add(&mut self.totals, record, device.figures.as_ref());
        }
        // Sorts by time, longest first; equal ones keep their order. An insertion sort, because there are few.
        let totals = &mut self.totals;
        for i in 1..totals.len() {
            let mut at = i;
            while at > 0 && totals[at - 1].ns < totals[at].ns {
                totals.swap(at - 1, at);
                at -= 1;
            }
        }
        (self.busy_ns, self.overlapped_ns) = busy(&self.records, &self.devices);
    }

    /// Returns how much work overlapped: of the time in which anything was in progress, the share in which at least two of these
    /// were: work on the CPU, work on a GPU, a transfer. 0 if nothing was.
    pub fn overlap(&self) -> f64 {
        over(self.overlapped_ns as f64, self.busy_ns as f64)
    }
}

/// Adds a record to the totals.
fn add(totals: &mut Vec<Total>, record: &Record, figures: Option<&DeviceProfile>) {
    let Record { activity, device, reason, .. } = *record;
    let same = |total: &Total| (total.activity, total.device, total.reason) == (activity, device, reason);
    let found = totals.iter().position(|total| same(total) && total.name == record.name);
    let index = found.unwrap_or(totals.len());
    if found.is_none() {
        totals.push(Total {
            activity,
            name: record.name.clone(),
            device,
            reason,
            count: 0,
            timed: 0,
            ns: 0,
            min_ns: 0,
            max_ns: 0,
            flops: 0.0,
            bytes: 0.0,
            least_ns: 0.0,
        });
    }
    let total = &mut totals[index];
    total.count += 1;
    let Some(ns) = record.work.map(Span::ns) else { return };
    total.min_ns = if total.timed == 0 { ns } else { total.min_ns.min(ns) };
    total.max_ns = total.max_ns.max(ns);
    total.timed += 1;
    total.ns += ns;
    total.flops += record.flops;
    total.bytes += record.bytes;
    let Some(figures) = figures else { return };
    total.least_ns += match activity {
        Activity::Upload => record.bytes / figures.upload.gbytes,
        Activity::Download => record.bytes / figures.download.gbytes,
        _ => figures.least_ns(&Cost { flops: record.flops, bytes: record.bytes }),
    };
}

/// Nanoseconds in which anything was in progress, and in which at least two of CPU, GPUs and transfers were.
fn busy(records: &[Record], devices: &[DeviceUse]) -> (u64, u64) {
    // A word packs the moment, the class, and whether it begins. A heap of words compiles to little code.
    let mut moments = Vec::with_capacity(2 * records.len());
    for record in records {
        let Some(Span { begin_ns, end_ns }) = record.work else { continue };
        let class = match record.activity {
            activity if activity.is_transfer() => 2,
            _ if devices[record.device].id == DeviceKind::Cpu.name() => 0,
            _ => 1,
        };
        moments.push(begin_ns << 3 | class << 1 | 1);
        moments.push(end_ns << 3 | class << 1);
    }
    let (mut under_way, mut since) = ([0i64; 3], 0);
    let (mut any, mut two) = (0, 0);
    for moment in BinaryHeap::from(moments).into_sorted_vec() {
        let (ns, class) = (moment >> 3, (moment >> 1 & 3) as usize);
        let active = under_way.iter().filter(|&&count| count > 0).count();
        any += if active > 0 { ns - since } else { 0 };
        two += if active > 1 { ns - since } else { 0 };
        under_way[class] += if moment & 1 == 1 { 1 } else { -1 };
        since = ns;
    }
    (any, two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::Why;

    fn device(id: &str) -> DeviceUse {
        DeviceUse { id: id.into(), figures: None, work_ns: 0, uploaded: 0, downloaded: 0 }
    }

    fn record(activity: Activity, device: usize, work: Option<(u64, u64)>) -> Record {
        Record {
            activity,
            name: activity.name().into(),
            operands: String::new(),
            device,
            reason: Reason::Chosen(Why::Only),
            thread: 0,
            stream: 0,
            host: Span::default(),
            work: work.map(|(begin_ns, end_ns)| Span { begin_ns, end_ns }),
            cycles: None,
            flops: 10.0,
            bytes: 20.0,
        }
    }

    #[test]
    fn only_different_kinds_of_work_overlap() {
        use Activity::{Download, Operation, Upload};
        let devices = [device("cpu"), device("cuda:0"), device("vulkan:0")];
        let busy = |list: &[(Activity, usize, (u64, u64))]| {
            let records: Vec<Record> = list.iter().map(|&(what, at, work)| record(what, at, Some(work))).collect();
            busy(&records, &devices)
        };
        assert_eq!(busy(&[]), (0, 0));
        assert_eq!(busy(&[(Operation, 0, (10, 20)), (Operation, 0, (15, 30))]), (20, 0), "two threads");
        assert_eq!(busy(&[(Operation, 1, (10, 20)), (Operation, 2, (15, 30))]), (20, 0), "two GPUs");
        assert_eq!(busy(&[(Operation, 0, (10, 20)), (Operation, 1, (20, 30))]), (20, 0), "one after the other");
        assert_eq!(busy(&[(Operation, 0, (10, 20)), (Operation, 1, (15, 30))]), (20, 5));
        assert_eq!(busy(&[(Upload, 1, (0, 8)), (Download, 1, (4, 12))]), (12, 0), "both ways");
        assert_eq!(busy(&[(Operation, 0, (0, 9)), (Operation, 1, (1, 8)), (Upload, 1, (2, 7))]), (9, 7));
        assert_eq!(busy(&[(Operation, 0, (5, 5)), (Operation, 0, (5, 5)), (Upload, 1, (0, 10))]), (10, 0));
        assert_eq!(busy(&[(Operation, 0, (0, 1)), (Operation, 1, (9, 10))]), (2, 0), "with a pause");
    }

    #[test]
    fn work_without_a_time_is_counted_and_not_rated() {
        let mut totals = Vec::new();
        add(&mut totals, &record(Activity::Operation, 1, None), None);
        assert_eq!((totals[0].count, totals[0].timed, totals[0].min_ns, totals[0].mean_ns()), (1, 0, 0, 0.0));
        add(&mut totals, &record(Activity::Operation, 1, Some((5, 15))), None);
        add(&mut totals, &record(Activity::Operation, 1, Some((20, 50))), None);
        add(&mut totals, &record(Activity::Operation, 1, None), None);
        add(&mut totals, &record(Activity::Operation, 0, None), None);
        assert_eq!(totals.len(), 2);
        let Total { count, timed, ns, min_ns, max_ns, .. } = totals[0];
        assert_eq!((count, timed, ns, min_ns, max_ns), (4, 2, 40, 10, 30));
        assert_eq!((totals[0].mean_ns(), totals[0].gflops(), totals[0].gbytes()), (20.0, 0.5, 1.0));
        assert_eq!(totals[0].of_peak(), 0.0, "nobody knows the peak");
        let mut totals = Vec::new();
        let mut figures = DeviceProfile::reference("mid").unwrap();
        figures.rates.fill(crate::dispatch::Rate { gflops: 2.0, gbytes: 10.0 });
        (figures.upload.gbytes, figures.download.gbytes) = (4.0, 5.0);
        let rated = [(Activity::Operation, 0.5), (Activity::Upload, 0.5), (Activity::Download, 0.4)];
        for (i, (activity, share)) in rated.into_iter().enumerate() {
            add(&mut totals, &record(activity, 1, Some((0, 10))), Some(&figures));
            assert_eq!(totals[i].of_peak(), share, "{activity:?}");
        }
    }
}
