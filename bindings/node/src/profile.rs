//! Profiles: what a context's operations, kernels and transfers took, and where they ran.

use crate::context::Context;
use adead::profile::{self, DEFAULT_RECORDS};
use adead_node_support::args::Size;
use adead_node_support::error::{fail, guard};
use napi::Env;
use napi_derive::napi;
use std::cell::RefCell;

/// How to profile.
#[napi(object, object_to_js = false)]
pub struct ProfileOptions {
    /// How many records are kept; those beyond are only counted. 65,536 where it is not given.
    #[napi(ts_type = "number")]
    pub records: Option<Size>,
}

/// A profile under way: `Context.profile` begins one, `finish` ends it. It also ends when it is collected.
#[napi]
pub struct Profile {
    inner: RefCell<Option<profile::Profile>>,
}

/// What was recorded. Times are nanoseconds, those of records since the profile's beginning.
#[napi]
pub struct ProfileReport {
    inner: profile::Report,
}

/// From when to when, in nanoseconds since the profile's beginning.
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
    /// What kind.
    #[napi(ts_type = "'operation' | 'kernel' | 'replay' | 'upload' | 'download' | 'copy' | 'clear'")]
    pub activity: String,
    /// The operation's or the kernel's name; of the others, that of their kind.
    pub name: String,
    /// What it worked on: dtypes and shapes, a kernel's workgroups, the operation that bytes travel for.
    pub operands: String,
    /// The device's id.
    pub device: String,
    /// Why there.
    pub reason: String,
    /// The thread that called, counted from 0 in the order of their first records.
    pub thread: f64,
    /// The device's stream: 0 is the context's own, others are numbered in the order in which they were made.
    pub stream: f64,
    /// The call. Where the device works behind the caller's back, it only hands work over.
    pub host: ProfileSpan,
    /// The work itself, on the host's clock. Not there where the device takes no times, or the work was not done when the profile
    /// ended.
    pub work: Option<ProfileSpan>,
    /// Cycles of the processor's time stamp counter; not there on GPUs and where the processor has none.
    pub cycles: Option<f64>,
    /// Floating-point operations; a multiply-add is two. 0 where nobody knows.
    pub flops: f64,
    /// Bytes read and written, each operand once; of transfers and copies, those that travelled. 0 where nobody knows.
    pub bytes: f64,
}

/// What was recorded of one kind and name, on one device, for one reason.
#[napi(object)]
pub struct ProfileTotal {
    /// What kind.
    #[napi(ts_type = "ProfileRecord['activity']")]
    pub activity: String,
    /// The operation's or the kernel's name.
    pub name: String,
    /// The device's id.
    pub device: String,
    /// Why there.
    pub reason: String,
    /// How often.
    pub count: f64,
    /// Of these, how many have a time; the numbers below are of those.
    pub timed: f64,
    /// Nanoseconds of all.
    pub ns: f64,
    /// Nanoseconds of the fastest.
    pub min_ns: f64,
    /// Nanoseconds of the slowest.
    pub max_ns: f64,
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

/// A device that worked.
#[napi(object)]
pub struct ProfileDevice {
    /// Its id.
    pub id: String,
    /// Nanoseconds of work other than transfers; of two pieces at a time, both.
    pub work_ns: f64,
    /// Bytes that it was sent.
    pub uploaded: f64,
    /// Bytes that it sent back.
    pub downloaded: f64,
    /// Its best rate of arithmetic as the dispatcher knows it, in floating-point operations a nanosecond.
    pub peak_gflops: Option<f64>,
    /// Its best rate of memory as the dispatcher knows it, in bytes a nanosecond.
    pub peak_gbytes: Option<f64>,
    /// Whether these were measured on this machine.
    pub calibrated: bool,
    /// Where they are from.
    pub figures: Option<String>,
}

#[napi]
impl Context {
    /// Begins to record what this context and its streams do, on every thread: docs/profile.md. `invalid_argument` while
    /// another profile of it is under way.
    #[napi]
    pub fn profile(&self, env: Env, options: Option<ProfileOptions>) -> napi::Result<Profile> {
        let records = options.and_then(|options| options.records).map_or(DEFAULT_RECORDS, |records| records.0);
        guard(env, || Ok(Profile { inner: RefCell::new(Some(self.inner.profile_with(records)?)) }))
    }
}

#[napi]
impl Profile {
    /// Ends it. Waits for what the context enqueued; synchronize streams of your own, and await promises, before.
    /// `invalid_argument` if it is finished already.
    #[napi]
    pub fn finish(&self, env: Env) -> napi::Result<ProfileReport> {
        guard(env, || match self.inner.take() {
            Some(profile) => Ok(ProfileReport { inner: profile.finish() }),
            None => fail!(InvalidArgument, "the profile is finished: it gave its report"),
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

    /// By kind, name, device and reason; what took longest is first.
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

    /// Records beyond the limit, which are only counted.
    #[napi(getter)]
    pub fn dropped(&self) -> f64 {
        self.inner.dropped as f64
    }

    /// From the profile's beginning to its end, in nanoseconds.
    #[napi(getter)]
    pub fn ns(&self) -> f64 {
        self.inner.ns as f64
    }

    /// Nanoseconds in which anything was under way: work on the CPU, work on a GPU, a transfer.
    #[napi(getter)]
    pub fn busy_ns(&self) -> f64 {
        self.inner.busy_ns as f64
    }

    /// Of these, nanoseconds in which at least two of the three were.
    #[napi(getter)]
    pub fn overlapped_ns(&self) -> f64 {
        self.inner.overlapped_ns as f64
    }

    /// The share of `busyNs` that `overlappedNs` is.
    #[napi(getter)]
    pub fn overlap(&self) -> f64 {
        self.inner.overlap()
    }

    /// All of it as a text of JSON, with names as in Rust: `begin_ns`.
    #[napi]
    pub fn to_json(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_json()))
    }

    /// A trace for Perfetto and chrome://tracing, as a text of JSON.
    #[napi]
    pub fn to_trace(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_trace()))
    }

    /// A table.
    #[napi]
    #[allow(clippy::inherent_to_string, reason = "JavaScript's toString")]
    pub fn to_string(&self, env: Env) -> napi::Result<String> {
        guard(env, || Ok(self.inner.to_string()))
    }
}
