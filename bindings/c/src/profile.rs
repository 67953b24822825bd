//! Profiles: what a context's operations, kernels and transfers took, and where they ran.

use crate::call::asked;
use crate::context::adead_context;
use crate::pointers::{Error, Out, Status, exclusive, fail, growing, reference, report};
use crate::status::{adead_status, guard, guard_destroy};
use adead_c_support::c_text;
use adead_core::Result;
use adead_core::dispatch::Why;
use adead_core::profile::{DEFAULT_RECORDS, DeviceUse, Profile, Reason, Report};
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::OnceLock;

/// What kind of work, one of `ADEAD_ACTIVITY_…`.
pub type adead_activity = i32;

/// A profile of a context: under way, and after `adead_profile_finish` what it recorded.
pub struct adead_profile {
    under_way: Option<Profile>,
    /// Its texts end with NUL.
    report: Option<Report>,
    /// Where the devices' figures are from.
    figures: Vec<Option<CString>>,
    /// The table, JSON and the trace, written when they are asked for first.
    texts: [OnceLock<CString>; 3],
}

/// What was recorded, in numbers. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_summary {
    /// `sizeof(adead_profile_summary)`.
    pub struct_size: usize,
    /// Records, for `adead_profile_record_at`.
    pub records: usize,
    /// Totals, for `adead_profile_total_at`.
    pub totals: usize,
    /// Devices that worked, for `adead_profile_device_at`.
    pub devices: usize,
    /// Records beyond the limit, which are only counted: in nothing else here.
    pub dropped: u64,
    /// From the profile's beginning to its end, in nanoseconds.
    pub ns: u64,
    /// Nanoseconds in which anything was under way: work on the CPU, work on a GPU, a transfer.
    pub busy_ns: u64,
    /// Of these, nanoseconds in which at least two of the three were.
    pub overlapped_ns: u64,
    /// The share of `busy_ns` that `overlapped_ns` is.
    pub overlap: f64,
}

// SAFETY: as asked.
growing!(unsafe adead_profile_summary, 72);

/// A piece of work: an operation, a user's kernel, a transfer. The caller sets `struct_size`; texts belong to the
/// profile and go with it. Times are nanoseconds since the profile's beginning.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_record {
    /// `sizeof(adead_profile_record)`.
    pub struct_size: usize,
    /// What kind: `ADEAD_ACTIVITY_…`.
    pub activity: adead_activity,
    /// Whether `work_begin_ns` and `work_end_ns` are there: 0 or 1; 0 where the device takes no times, and for work that was not
    /// done when the profile ended.
    pub has_work: i32,
    /// Whether `cycles` is there: 0 or 1; 0 on GPUs and where the processor has no counter.
    pub has_cycles: i32,
    /// 0.
    pub reserved: i32,
    /// The operation's or the kernel's name; of the others, that of their kind.
    pub name: *const c_char,
    /// What it worked on: dtypes and shapes, a kernel's workgroups, the operation that bytes travel for.
    pub operands: *const c_char,
    /// The device, by its index for `adead_profile_device_at`.
    pub device: usize,
    /// Its id: "cpu", "cuda:0".
    pub device_id: *const c_char,
    /// Why there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand", "stream's device",
    /// "divided" or "chosen GPU can't be opened".
    pub reason: *const c_char,
    /// Of "threshold", how many elements it is; else 0.
    pub threshold: u64,
    /// The thread that called, counted from 0 in the order of their first records.
    pub thread: usize,
    /// The device's stream: 0 is the context's own, others are numbered in the order in which they were made.
    pub stream: usize,
    /// When the call began. Where the device works behind the caller's back, it only hands work over.
    pub host_begin_ns: u64,
    /// When the call ended.
    pub host_end_ns: u64,
    /// When the work itself began, on the host's clock.
    pub work_begin_ns: u64,
    /// When it ended.
    pub work_end_ns: u64,
    /// Cycles of the processor's time stamp counter.
    pub cycles: u64,
    /// Floating-point operations; a multiply-add is two. 0 where nobody knows.
    pub flops: f64,
    /// Bytes read and written, each operand once; of transfers and copies, those that travelled. 0 where nobody knows.
    pub bytes: f64,
}

// SAFETY: as asked.
growing!(unsafe adead_profile_record, 144);

/// What was recorded of one kind and name, on one device, for one reason. The caller sets `struct_size`; texts belong to the
/// profile and go with it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_total {
    /// `sizeof(adead_profile_total)`.
    pub struct_size: usize,
    /// What kind: `ADEAD_ACTIVITY_…`.
    pub activity: adead_activity,
    /// 0.
    pub reserved: i32,
    /// The operation's or the kernel's name.
    pub name: *const c_char,
    /// The device, by its index for `adead_profile_device_at`.
    pub device: usize,
    /// Its id: "cpu", "cuda:0".
    pub device_id: *const c_char,
    /// Why there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand", "stream's device",
    /// "divided" or "chosen GPU can't be opened".
    pub reason: *const c_char,
    /// Of "threshold", how many elements it is; else 0.
    pub threshold: u64,
    /// How often.
    pub count: u64,
    /// Of these, how many have a time; the numbers below are of those.
    pub timed: u64,
    /// Nanoseconds of all.
    pub ns: u64,
    /// Nanoseconds of the fastest.
    pub min_ns: u64,
    /// Nanoseconds of the slowest.
    pub max_ns: u64,
    /// Nanoseconds of one, on average.
    pub mean_ns: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written; of transfers, those that travelled.
    pub bytes: f64,
    /// Floating-point operations a nanosecond.
    pub gflops: f64,
    /// Bytes a nanosecond.
    pub gbytes: f64,
    /// The share of the device's peak, of arithmetic or of memory, whichever is nearer; of transfers, of the link's rate. It can
    /// be above 1.
    pub of_peak: f64,
}

// SAFETY: as asked.
growing!(unsafe adead_profile_total, 144);

/// A device that worked. The caller sets `struct_size`; texts belong to the profile and go with
/// it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_device {
    /// `sizeof(adead_profile_device)`.
    pub struct_size: usize,
    /// Its id: "cpu", "cuda:0".
    pub id: *const c_char,
    /// Nanoseconds of work other than transfers; of two pieces at a time, both.
    pub work_ns: u64,
    /// Bytes that it was sent.
    pub uploaded: u64,
    /// Bytes that it sent back.
    pub downloaded: u64,
    /// Its best rate of arithmetic as the dispatcher knows it, in floating-point operations a nanosecond; 0 where it does not.
    pub peak_gflops: f64,
    /// Its best rate of memory as the dispatcher knows it, in bytes a nanosecond; 0 where it does not.
    pub peak_gbytes: f64,
    /// Where these are from; NULL where there are none.
    pub figures: *const c_char,
    /// Whether they were measured on this machine: 0 or 1.
    pub calibrated: i32,
    /// 0.
    pub reserved: i32,
}

// SAFETY: as asked.
growing!(unsafe adead_profile_device, 72);

/// What it recorded.
fn finished(profile: &adead_profile) -> Result<&Report> {
    let under_way = || Error::new(Status::NotReady, "the profile is under way: finish it first");
    profile.report.as_ref().ok_or_else(under_way)
}

#[cold]
#[inline(never)]
fn beyond(index: usize, count: usize, what: &str) -> Error {
    Error::formatted(Status::InvalidArgument, format_args!("index is {index}; the profile has {count} {what}"))
}

/// Changes all texts of a report that belong to it.
fn each_text(report: &mut Report, change: fn(&mut String)) {
    for record in &mut report.records {
        change(record.name.to_mut());
        change(&mut record.operands);
    }
    for total in &mut report.totals {
        change(total.name.to_mut());
    }
    for device in &mut report.devices {
        change(&mut device.id);
    }
}

impl adead_profile {
    /// Keeps what was recorded, with texts that end with NUL.
    fn keep(&mut self, mut report: Report) {
        each_text(&mut report, |text| text.push('\0'));
        let figures = |device: &DeviceUse| device.figures.as_ref().map(|figures| c_text(&figures.source.to_string()));
        self.figures = report.devices.iter().map(figures).collect();
        self.report = Some(report);
    }

    /// The report as a text.
    fn text(&self, format: usize, write: fn(&Report) -> String) -> Result<*const c_char> {
        let report = finished(self)?;
        let text = self.texts[format].get_or_init(|| {
            let mut report = report.clone();
            each_text(&mut report, |text| text.truncate(text.len() - 1));
            c_text(&write(&report))
        });
        Ok(text.as_ptr())
    }
}

/// The text of a reason and the elements of a threshold.
#[inline(never)]
fn why(reason: Reason) -> (*const c_char, u64) {
    let text = match reason {
        Reason::Chosen(Why::Only) => c"only device",
        Reason::Chosen(Why::Forced) => c"forced",
        Reason::Chosen(Why::Threshold(elements)) => return (c"threshold".as_ptr(), elements as u64),
        Reason::Chosen(Why::Cheapest) => c"cheapest",
        Reason::Operands => c"operands are there",
        Reason::Packed => c"packed operand",
        Reason::Stream => c"stream's device",
        Reason::Split => c"divided",
        Reason::Fallback => c"chosen GPU can't be opened",
    };
    (text.as_ptr(), 0)
}

/// A text that ends with NUL.
fn ended(text: &str) -> *const c_char {
    text.as_ptr().cast()
}

/// Begins to record what a context and its streams do, in every thread: up to so many records, 0 for 65,536, and what is
/// beyond is only counted. `invalid_argument` while another profile of the context is under way. The context may be
/// closed before the profile. As with all functions of profiles, `unsupported` in a library built with ADEAD_MINIMAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_begin(
    context: *const adead_context,
    records: usize,
    out: *mut *mut adead_profile,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
        let records = if records > 0 { records } else { DEFAULT_RECORDS };
        let under_way = Some(context.0.profile_with(records)?);
        out.give(adead_profile { under_way, report: None, figures: Vec::new(), texts: Default::default() });
        Ok(())
    })
}

/// Ends it, and it can be asked for what it recorded. Waits for what the context enqueued; synchronise streams of your
/// own before. `invalid_argument` if it is finished already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_finish(profile: *mut adead_profile) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let profile = unsafe { exclusive(profile, "profile") }?;
        let Some(under_way) = profile.under_way.take() else {
            fail!(InvalidArgument, "the profile is finished already");
        };
        profile.keep(under_way.finish());
        Ok(())
    })
}

/// Gives a profile up; NULL is fine. One that is under way ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_destroy(profile: *mut adead_profile) {
    guard_destroy(profile);
}

/// What was recorded, in numbers. `not_ready` while the profile is under way. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_report(
    profile: *const adead_profile,
    out: *mut adead_profile_summary,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let it = finished(reference(profile, "profile")?)?;
            report(out, "out", |struct_size| {
                Ok(adead_profile_summary {
                    struct_size,
                    records: it.records.len(),
                    totals: it.totals.len(),
                    devices: it.devices.len(),
                    dropped: it.dropped,
                    ns: it.ns,
                    busy_ns: it.busy_ns,
                    overlapped_ns: it.overlapped_ns,
                    overlap: it.overlap(),
                })
            })
        }
    })
}

/// Record `index`, in the order in which the calls returned. `not_ready` while the profile is under way. The caller sets
/// `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_record_at(
    profile: *const adead_profile,
    index: usize,
    out: *mut adead_profile_record,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let it = finished(reference(profile, "profile")?)?;
            report(out, "out", |struct_size| {
                let Some(record) = it.records.get(index) else {
                    return Err(beyond(index, it.records.len(), "records"));
                };
                let work = record.work.unwrap_or_default();
                let (reason, threshold) = why(record.reason);
                Ok(adead_profile_record {
                    struct_size,
                    activity: record.activity as adead_activity,
                    has_work: record.work.is_some().into(),
                    has_cycles: record.cycles.is_some().into(),
                    reserved: 0,
                    name: ended(&record.name),
                    operands: ended(&record.operands),
                    device: record.device,
                    device_id: ended(&it.devices[record.device].id),
                    reason,
                    threshold,
                    thread: record.thread,
                    stream: record.stream,
                    host_begin_ns: record.host.begin_ns,
                    host_end_ns: record.host.end_ns,
                    work_begin_ns: work.begin_ns,
                    work_end_ns: work.end_ns,
                    cycles: record.cycles.unwrap_or(0),
                    flops: record.flops,
                    bytes: record.bytes,
                })
            })
        }
    })
}

/// Total `index`: what took longest is first. `not_ready` while the profile is under way. The caller sets
/// `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_total_at(
    profile: *const adead_profile,
    index: usize,
    out: *mut adead_profile_total,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let it = finished(reference(profile, "profile")?)?;
            report(out, "out", |struct_size| {
                let Some(total) = it.totals.get(index) else {
                    return Err(beyond(index, it.totals.len(), "totals"));
                };
                let (reason, threshold) = why(total.reason);
                Ok(adead_profile_total {
                    struct_size,
                    activity: total.activity as adead_activity,
                    reserved: 0,
                    name: ended(&total.name),
                    device: total.device,
                    device_id: ended(&it.devices[total.device].id),
                    reason,
                    threshold,
                    count: total.count,
                    timed: total.timed,
                    ns: total.ns,
                    min_ns: total.min_ns,
                    max_ns: total.max_ns,
                    mean_ns: total.mean_ns(),
                    flops: total.flops,
                    bytes: total.bytes,
                    gflops: total.gflops(),
                    gbytes: total.gbytes(),
                    of_peak: total.of_peak(),
                })
            })
        }
    })
}

/// Device `index` of those that worked. `not_ready` while the profile is under way. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_device_at(
    profile: *const adead_profile,
    index: usize,
    out: *mut adead_profile_device,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let profile = reference(profile, "profile")?;
            let it = finished(profile)?;
            report(out, "out", |struct_size| {
                let Some(device) = it.devices.get(index) else {
                    return Err(beyond(index, it.devices.len(), "devices"));
                };
                let peak = device.figures.as_ref().map(|figures| figures.peak());
                Ok(adead_profile_device {
                    struct_size,
                    id: ended(&device.id),
                    work_ns: device.work_ns,
                    uploaded: device.uploaded,
                    downloaded: device.downloaded,
                    peak_gflops: peak.map_or(0.0, |peak| peak.gflops),
                    peak_gbytes: peak.map_or(0.0, |peak| peak.gbytes),
                    figures: profile.figures[index].as_ref().map_or(null(), |text| text.as_ptr()),
                    calibrated: device.is_calibrated().into(),
                    reserved: 0,
                })
            })
        }
    })
}

/// A table: a line for each kind of work, device and reason, what took longest first, and what the devices did. The text
/// belongs to the profile and goes with it. `not_ready` while the profile is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_table(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(profile, "profile", out, |profile| profile.text(0, Report::to_string)) }
}

/// All of it as JSON: an object with `ns`, `busy_ns`, `overlapped_ns`, `overlap`, `dropped` and the lists `devices`, `totals`
/// and `records`. The text belongs to the profile and goes with it. `not_ready` while the profile is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_json(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(profile, "profile", out, |profile| profile.text(1, Report::to_json)) }
}

/// A trace in Chrome's format, for Perfetto and chrome://tracing. The text belongs to the profile and goes with it.
/// `not_ready` while the profile is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_trace(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(profile, "profile", out, |profile| profile.text(2, Report::to_trace)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn reasons_are_named_as_the_core_does() {
        let text = |reason| {
            let (text, threshold) = why(reason);
            // SAFETY: a text of the program's own.
            (unsafe { CStr::from_ptr(text) }.to_str().unwrap(), threshold)
        };
        for why in [Why::Only, Why::Forced, Why::Cheapest] {
            assert_eq!(text(Reason::Chosen(why)), (Reason::Chosen(why).to_string().as_str(), 0));
        }
        for reason in [Reason::Operands, Reason::Packed, Reason::Stream, Reason::Split, Reason::Fallback] {
            assert_eq!(text(reason), (reason.to_string().as_str(), 0));
        }
        let threshold = Reason::Chosen(Why::Threshold(4096));
        let (word, elements) = text(threshold);
        assert_eq!(threshold.to_string(), format!("{word} of {elements} elements"));
    }
    /// Texts with quotes, control characters and more bytes than characters are those of Rust, byte for byte.
    #[test]
    fn texts_are_the_reports() {
        let context = adead_core::Context::open("cpu").unwrap();
        let x = adead_core::Tensor::new(&[1.0f32; 12], &[3, 4]).unwrap();
        let under_way = context.profile().unwrap();
        context.relu(&x).unwrap();
        let mut report = under_way.finish();
        report.dropped = 3;
        for name in ["a \"b\" \\ c", "\n\t\u{1f}", "é✓𝄞", ""] {
            let (mut record, mut total) = (report.records[0].clone(), report.totals[0].clone());
            (record.name, total.name) = (name.into(), name.into());
            (record.reason, total.reason) = (Reason::Fallback, Reason::Chosen(Why::Threshold(4096)));
            report.records.push(record);
            report.totals.push(total);
        }
        let mut profile =
            adead_profile { under_way: None, report: None, figures: Vec::new(), texts: Default::default() };
        type Write = unsafe extern "C" fn(*const adead_profile, *mut *const c_char) -> adead_status;
        let text = |profile: &adead_profile, write: Write| {
            let mut out = null();
            // SAFETY: both are there.
            let status = unsafe { write(profile, &mut out) };
            // SAFETY: the profile's text, or none.
            let text = (!out.is_null()).then(|| unsafe { CStr::from_ptr(out) }.to_str().unwrap().to_string());
            (status, text)
        };
        assert_eq!(text(&profile, adead_profile_json), (Status::NotReady as i32, None));
        profile.keep(report.clone());
        for _ in 0..2 {
            assert_eq!(text(&profile, adead_profile_table), (0, Some(report.to_string())));
            assert_eq!(text(&profile, adead_profile_json), (0, Some(report.to_json())));
            assert_eq!(text(&profile, adead_profile_trace), (0, Some(report.to_trace())));
        }
    }
}
