//! Profiles: where a context's operations, kernels and transfers ran, and how long they took.

use crate::context::Context;
use adead::profile::{self, DEFAULT_RECORDS};
use adead_node_support::args::Size;
use adead_node_support::error::{fail, guard};
use napi::Env;
use napi_derive::napi;
use std::cell::RefCell;

/// Options of `Context.profile`.
#[napi(object, object_to_js = false)]
pub struct ProfileOptions {
    /// The most records to keep. Records beyond the limit are only counted. The default is 65,536.
    #[napi(ts_type = "number")]
    pub records: Option<Size>,
}

/// A running profile: `Context.profile` begins it, `finish` ends it. It also ends when it is garbage-collected.
#[napi]
pub struct Profile {
    inner: RefCell<Option<profile::Profile>>,
}

/// The result of a profile. Times are in nanoseconds; those of records are since the profile began.
#[napi]
pub struct ProfileReport {
    inner: profile::Report,
}

/// A span of time, in nanoseconds since the profile began.
#[napi(object)]
pub struct ProfileSpan {
    /// When it began.
    pub begin_ns: f64,
    /// When it ended; never before it began.
    pub end_ns: f64,
}

impl From<profile::Span> for ProfileSpan {
    fn from(span: profile::Span) -> ProfileSpan {
        ProfileSpan { begin_ns: span.begin_ns as f64, end_ns: span.end_ns as f64 }
    }
}

/// A piece of work: an operation, a user's kernel, a transfer.
#[napi(object)]
pub struct ProfileRecord {
    /// The kind of work.
    #[napi(ts_type = "'operation' | 'kernel' | 'replay' | 'upload' | 'download' | 'copy' | 'clear'")]
    pub activity: String,
    /// The name of the operation or kernel. For other work, the name of its kind.
    pub name: String,
    /// Its operands: dtypes and shapes, a kernel's workgroups, or the operation that a transfer serves.
    pub operands: String,
    /// The device's id.
    pub device: String,
    /// Why the work ran on this device.
    pub reason: String,
    /// The thread that called, numbered from 0 in the order of first records.
    pub thread: f64,
    /// The device's stream. 0 is the context's own; others are numbered in the order in which they were made.
    pub stream: f64,
    /// The call. A device that works asynchronously only receives the work in this time.
    pub host: ProfileSpan,
    /// The work itself, on the host's clock. Missing if the device has no timestamps, or if the work was not done when the
    /// profile ended.
    pub work: Option<ProfileSpan>,
    /// Cycles of the processor's time stamp counter. Missing on GPUs and on processors without a counter.
    pub cycles: Option<f64>,
    /// Floating-point operations. A multiply-add counts as two. 0 if unknown.
    pub flops: f64,
    /// Bytes read and written, each operand counted once. For transfers and copies, the bytes that moved. 0 if unknown.
    pub bytes: f64,
}

/// The total of all records with one kind, name, device and reason.
#[napi(object)]
pub struct ProfileTotal {
    /// The kind of work.
    #[napi(ts_type = "ProfileRecord['activity']")]
    pub activity: String,
    /// The operation's or the kernel's name.
    pub name: String,
    /// The device's id.
    pub device: String,
    /// Why the work ran on this device.
    pub reason: String,
    /// The number of records.
    pub count: f64,
    /// The number of records with a time. The fields below count only these.
    pub timed: f64,
    /// The sum of their times in nanoseconds.
    pub ns: f64,
    /// The shortest time in nanoseconds.
    pub min_ns: f64,
    /// The longest time in nanoseconds.
    pub max_ns: f64,
    /// The mean time in nanoseconds.
    pub mean_ns: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written. For transfers, the bytes that moved.
    pub bytes: f64,
    /// Floating-point operations per nanosecond.
    pub gflops: f64,
    /// Bytes per nanosecond.
    pub gbytes: f64,
    /// The share of the device's peak rate of arithmetic or of memory, whichever is larger. For transfers, the share of the
    /// link's rate. It can be above 1.
    pub of_peak: f64,
}

/// A device that worked.
#[napi(object)]
pub struct ProfileDevice {
    /// The device's id.
    pub id: String,
    /// Nanoseconds of work other than transfers. Pieces of work that overlap both count.
    pub work_ns: f64,
    /// Bytes that were uploaded to the device.
    pub uploaded: f64,
    /// Bytes that were downloaded from the device.
    pub downloaded: f64,
    /// The dispatcher's figure for the peak rate of arithmetic, in floating-point operations per nanosecond.
    pub peak_gflops: Option<f64>,
    /// The dispatcher's figure for the peak rate of memory, in bytes per nanosecond.
    pub peak_gbytes: Option<f64>,
    /// Whether these figures were measured on this machine.
    pub calibrated: bool,
    /// The source of these figures.
    pub figures: Option<String>,
}

#[napi]
impl Context {
    /// Starts recording the work of this context and its streams, on every thread (https://adead.github.io/adead/profile.html).
    /// `invalid_argument` if the context is being profiled already.
    #[napi]
    pub fn profile(&self, env: Env, options: Option<ProfileOptions>) -> napi::Result<Profile> {
        let records = options.and_then(|options| options.records).map_or(DEFAULT_RECORDS, |records| records.0);
        guard(env, || Ok(Profile { inner: RefCell::new(Some(self.inner.profile_with(records)?)) }))
    }
}

#[napi]
impl Profile {
    /// Ends the profile and returns its report. Waits for the work that the context enqueued. Synchronize your own streams and
    /// await promises before. `invalid_argument` if the profile is finished already.
    #[napi]
    pub fn finish(&self, env: Env) -> napi::Result<ProfileReport> {
        guard(env, || match self.inner.take() {
            Some(profile) => Ok(ProfileReport { inner: profile.finish() }),
            None => fail!(InvalidArgument, "the profile is finished already"),
        })
    }
}

#[napi]
impl ProfileReport {
    /// Every piece of work, in the order in which the calls returned.
    #[napi(getter)]
    pub fn records(&self) -> Vec<ProfileRecord> {
        let record = |record: &profile::Record| ProfileRecord {
            activity: record.activity.name().into(),
            name: record.name.clone().into_owned(),
            operands: record.operands.clone(),
            device: self.inner.devices[record.device].id.clone(),
            reason: record.reason.to_string(),
            thread: record.thread as f64,
            stream: record.stream as f64,
            host: record.host.into(),
            work: record.work.map(ProfileSpan::from),
            cycles: record.cycles.map(|cycles| cycles as f64),
            flops: record.flops,
            bytes: record.bytes,
        };
        self.inner.records.iter().map(record).collect()
    }

    /// Totals by kind, name, device and reason, the longest time first.
    #[napi(getter)]
    pub fn totals(&self) -> Vec<ProfileTotal> {
        let total = |total: &profile::Total| ProfileTotal {
            activity: total.activity.name().into(),
            name: total.name.clone().into_owned(),
            device: self.inner.devices[total.device].id.clone(),
            reason: total.reason.to_string(),
            count: total.count as f64,
            timed: total.timed as f64,
            ns: total.ns as f64,
            min_ns: total.min_ns as f64,
            max_ns: total.max_ns as f64,
            mean_ns: total.mean_ns(),
            flops: total.flops,
            bytes: total.bytes,
            gflops: total.gflops(),
            gbytes: total.gbytes(),
            of_peak: total.of_peak(),
        };
        self.inner.totals.iter().map(total).collect()
    }

    /// The devices that worked.
    #[napi(getter)]
    pub fn devices(&self) -> Vec<ProfileDevice> {
        let device = |device: &profile::DeviceUse| ProfileDevice {
            id: device.id.clone(),
            work_ns: device.work_ns as f64,
            uploaded: device.uploaded as f64,
            downloaded: device.downloaded as f64,
            peak_gflops: device.figures.as_ref().map(|figures| figures.peak().gflops),
            peak_gbytes: device.figures.as_ref().map(|figures| figures.peak().gbytes),
            calibrated: device.is_calibrated(),
            figures: device.figures.as_ref().map(|figures| figures.source.to_string()),
        };
        self.inner.devices.iter().map(device).collect()
    }

    /// The number of records beyond the limit. They are only counted.
    #[napi(getter)]
    pub fn dropped(&self) -> f64 {
        self.inner.dropped as f64
    }

    /// The length of the profile in nanoseconds.
    #[napi(getter)]
    pub fn ns(&self) -> f64 {
        self.inner.ns as f64
    }

    /// Nanoseconds in which any of these was in progress: work on the CPU, work on a GPU, a transfer.
    #[napi(getter)]
    pub fn busy_ns(&self) -> f64 {
        self.inner.busy_ns as f64
    }

    /// Of these, the nanoseconds in which at least two of the three were in progress.
    #[napi(getter)]
    pub fn overlapped_ns(&self) -> f64 {
        self.inner.overlapped_ns as f64
    }

    /// `overlappedNs` as a share of `busyNs`.
    #[napi(getter)]
    pub fn overlap(&self) -> f64 {
        self.inner.overlap()
    }

    /// Returns the report as JSON text, with the names that Rust uses: `begin_ns`.
    #[napi]
    pub fn to_json(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_json()))
    }

    /// Returns a trace for Perfetto and chrome://tracing, as JSON text.
    #[napi]
    pub fn to_trace(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_trace()))
    }

    /// Returns the report as a table.
    #[napi]
    #[allow(clippy::inherent_to_string, reason = "JavaScript's toString")]
    pub fn to_string(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_string()))
    }
}
