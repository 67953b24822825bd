//! Profiles: how long a context's operations, kernels and transfers took, and where they ran.

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

/// A kind of work, one of `ADEAD_ACTIVITY_…`.
pub type adead_activity = i32;

/// A profile of a context. It records until `adead_profile_finish`, and then can be read.
pub struct adead_profile {
    under_way: Option<Profile>,
    /// The report. Its texts end with NUL.
    report: Option<Report>,
    /// The sources of the devices' peak rates.
    figures: Vec<Option<CString>>,
    /// The table, the JSON and the trace, each made on first use.
    texts: [OnceLock<CString>; 3],
}

/// A summary of a profile. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_summary {
    /// `sizeof(adead_profile_summary)`.
    pub struct_size: usize,
    /// The number of records, for `adead_profile_record_at`.
    pub records: usize,
    /// The number of totals, for `adead_profile_total_at`.
    pub totals: usize,
    /// The number of devices that worked, for `adead_profile_device_at`.
    pub devices: usize,
    /// Records beyond the limit. They are only counted here and appear nowhere else.
    pub dropped: u64,
    /// Nanoseconds from the start of the profile to its end.
    pub ns: u64,
    /// Nanoseconds during which there was work on the CPU, work on a GPU, or a transfer.
    pub busy_ns: u64,
    /// Nanoseconds of `busy_ns` during which at least two of the three overlapped.
    pub overlapped_ns: u64,
    /// The ratio of `overlapped_ns` to `busy_ns`.
    pub overlap: f64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_profile_summary, 72);

/// A piece of work: an operation, a user's kernel or a transfer. The caller sets `struct_size`. Texts live as long as
/// the profile. Times are nanoseconds since the profile's start.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_record {
    /// `sizeof(adead_profile_record)`.
    pub struct_size: usize,
    /// The kind: `ADEAD_ACTIVITY_…`.
    pub activity: adead_activity,
    /// Whether `work_begin_ns` and `work_end_ns` are valid: 0 or 1. It is 0 if the device measures no times, and for
    /// work that had not finished when the profile ended.
    pub has_work: i32,
    /// Whether `cycles` is valid: 0 or 1. It is 0 on GPUs and on processors without a counter.
    pub has_cycles: i32,
    /// Always 0.
    pub reserved: i32,
    /// The name of the operation or the kernel; for other work, the name of its kind.
    pub name: *const c_char,
    /// The operands: dtypes and shapes, a kernel's workgroups, or the operation that a transfer serves.
    pub operands: *const c_char,
    /// The device, by its index for `adead_profile_device_at`.
    pub device: usize,
    /// The device's id: "cpu", "cuda:0".
    pub device_id: *const c_char,
    /// Why it ran there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand",
    /// "stream's device", "divided" or "chosen GPU can't be opened".
    pub reason: *const c_char,
    /// For "threshold", the threshold in elements; else 0.
    pub threshold: u64,
    /// The calling thread, counted from 0 in the order of the threads' first records.
    pub thread: usize,
    /// The device's stream: 0 is the context's own, others are numbered in the order of their creation.
    pub stream: usize,
    /// When the call began. On an asynchronous device, the call only enqueues the work.
    pub host_begin_ns: u64,
    /// When the call ended.
    pub host_end_ns: u64,
    /// When the work itself began, on the host's clock.
    pub work_begin_ns: u64,
    /// When the work itself ended.
    pub work_end_ns: u64,
    /// Cycles of the processor's time stamp counter.
    pub cycles: u64,
    /// Floating-point operations; a multiply-add counts as two. 0 if unknown.
    pub flops: f64,
    /// Bytes read and written, counting each operand once; for transfers and copies, bytes moved. 0 if unknown.
    pub bytes: f64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_profile_record, 144);

/// The total of records with one kind, name, device and reason. The caller sets `struct_size`. Texts live as long as
/// the profile.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_total {
    /// `sizeof(adead_profile_total)`.
    pub struct_size: usize,
    /// The kind: `ADEAD_ACTIVITY_…`.
    pub activity: adead_activity,
    /// Always 0.
    pub reserved: i32,
    /// The name of the operation or the kernel.
    pub name: *const c_char,
    /// The device, by its index for `adead_profile_device_at`.
    pub device: usize,
    /// The device's id: "cpu", "cuda:0".
    pub device_id: *const c_char,
    /// Why it ran there: "only device", "forced", "threshold", "cheapest", "operands are there", "packed operand",
    /// "stream's device", "divided" or "chosen GPU can't be opened".
    pub reason: *const c_char,
    /// For "threshold", the threshold in elements; else 0.
    pub threshold: u64,
    /// The number of records.
    pub count: u64,
    /// The number of records with a measured time. The fields below cover only these.
    pub timed: u64,
    /// The sum of their times, in nanoseconds.
    pub ns: u64,
    /// The shortest time, in nanoseconds.
    pub min_ns: u64,
    /// The longest time, in nanoseconds.
    pub max_ns: u64,
    /// The mean time, in nanoseconds.
    pub mean_ns: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written; for transfers, bytes moved.
    pub bytes: f64,
    /// Floating-point operations per nanosecond.
    pub gflops: f64,
    /// Bytes per nanosecond.
    pub gbytes: f64,
    /// The fraction of the device's peak rate of arithmetic or of memory, whichever fraction is larger; for transfers,
    /// of the link's rate. It can exceed 1.
    pub of_peak: f64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_profile_total, 144);

/// A device that worked. The caller sets `struct_size`. Texts live as long as the profile.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_profile_device {
    /// `sizeof(adead_profile_device)`.
    pub struct_size: usize,
    /// The device's id: "cpu", "cuda:0".
    pub id: *const c_char,
    /// Nanoseconds of work other than transfers. Concurrent work counts twice.
    pub work_ns: u64,
    /// Bytes uploaded to the device.
    pub uploaded: u64,
    /// Bytes downloaded from the device.
    pub downloaded: u64,
    /// Its peak rate of arithmetic as the dispatcher knows it, in floating-point operations per nanosecond; 0 if
    /// unknown.
    pub peak_gflops: f64,
    /// Its peak rate of memory as the dispatcher knows it, in bytes per nanosecond; 0 if unknown.
    pub peak_gbytes: f64,
    /// The source of these rates; NULL if there are none.
    pub figures: *const c_char,
    /// Whether the rates were measured on this machine: 0 or 1.
    pub calibrated: i32,
    /// Always 0.
    pub reserved: i32,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_profile_device, 72);

/// Returns the report of a finished profile.
fn finished(profile: &adead_profile) -> Result<&Report> {
    let under_way = || Error::new(Status::NotReady, "the profile is under way: finish it first");
    profile.report.as_ref().ok_or_else(under_way)
}

#[cold]
#[inline(never)]
fn beyond(index: usize, count: usize, what: &str) -> Error {
    Error::formatted(Status::InvalidArgument, format_args!("index is {index}; the profile has {count} {what}"))
}

/// Applies a change to every text that a report owns.
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
    /// Keeps the report, with texts that end with NUL.
    fn keep(&mut self, mut report: Report) {
        each_text(&mut report, |text| text.push('\0'));
        let figures = |device: &DeviceUse| device.figures.as_ref().map(|figures| c_text(&figures.source.to_string()));
        self.figures = report.devices.iter().map(figures).collect();
        self.report = Some(report);
    }

    /// Returns the report in a format. The first call writes the text.
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

/// Returns the text of a reason and the elements of a threshold.
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

/// Returns the address of a text that ends with NUL.
fn ended(text: &str) -> *const c_char {
    text.as_ptr().cast()
}

/// Starts recording the work of a context and its streams, in every thread. It keeps at most `records` records; 0 means 65,536.
/// Records beyond the limit are only counted. `invalid_argument` while another profile of the context is active. The context may
/// be closed before the profile. Like all functions of profiles, it is `unsupported` in a library built with ADEAD_MINIMAL.
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

/// Ends the profile, so that its records can be read. Waits for everything that the context has enqueued; synchronise
/// your own streams before. `invalid_argument` if the profile has already ended.
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

/// Destroys a profile; NULL is allowed. An active profile ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_destroy(profile: *mut adead_profile) {
    guard_destroy(profile);
}

/// Reports the summary. `not_ready` while the profile is active. The caller sets `out->struct_size`.
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

/// Reports record `index`, in the order in which the calls returned. `not_ready` while the profile is active. The
/// caller sets `out->struct_size`.
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

/// Reports total `index`; the one with the longest total time is first. `not_ready` while the profile is active. The
/// caller sets `out->struct_size`.
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

/// Reports device `index` of those that worked. `not_ready` while the profile is active. The caller sets
/// `out->struct_size`.
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

/// Returns a table with a line for each kind of work, device and reason, longest time first, and a summary of the
/// devices. The text lives as long as the profile. `not_ready` while the profile is active.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_table(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(profile, "profile", out, |profile| profile.text(0, Report::to_string)) }
}

/// Returns the whole report as JSON: an object with `ns`, `busy_ns`, `overlapped_ns`, `overlap`, `dropped` and the
/// lists `devices`, `totals` and `records`. The text lives as long as the profile. `not_ready` while the profile is
/// active.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_json(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(profile, "profile", out, |profile| profile.text(1, Report::to_json)) }
}

/// Returns a trace in Chrome's format, for Perfetto and chrome://tracing. The text lives as long as the profile.
/// `not_ready` while the profile is active.
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
            // SAFETY: the text is static.
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
    /// Texts with quotes, control characters and multi-byte characters equal Rust's, byte for byte.
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
            // SAFETY: both pointers are valid.
            let status = unsafe { write(profile, &mut out) };
            // SAFETY: the text is the profile's, and ends with NUL.
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
