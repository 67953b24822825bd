//! The profiler: the times of commands and transfers, their devices, and the reasons for these devices.
//!
//! [`Context::profile`](crate::Context::profile) begins a profile, [`Profile::finish`] returns a [`Report`]. In between, every
//! operation, user's kernel and transfer of the context and its streams leaves a [`Record`]. A GPU's times come from the GPU:
//! CUDA events, Vulkan timestamps. One comparison of the clocks maps them to the host's clock, so that all records share one time
//! line. Without a profile, a call reads one flag. Without the feature `profile`, `off.rs` replaces this module, and a call reads
//! nothing.

mod record;
mod recorder;
mod report;
mod text;
mod watch;
mod what;

pub use record::{Activity, Reason, Record, Span};
pub(crate) use recorder::{Profiler, ProfilerHandle};
pub use report::{DeviceUse, Report, Total};
pub(crate) use watch::Watch;
pub(crate) use what::{Described, What};

use crate::dispatch::DeviceProfile;
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;

/// The number of records that a profile keeps by default: some 20 MB.
pub const DEFAULT_RECORDS: usize = 1 << 16;

/// A running profile. Dropping it ends the profile without a report.
#[must_use = "dropped, it records nothing"]
pub struct Profile {
    /// `None` once finished, because the context's next profile may be running by then.
    of: Option<Box<dyn Profiled>>,
}

/// The owner of a profiler: a context.
pub(crate) trait Profiled: Send + Sync {
    /// The profiler.
    fn profiler(&self) -> &Profiler;

    /// Waits for the work that was enqueued.
    fn wait_for_devices(&self);

    /// The profiles of its devices.
    fn devices(&self) -> &[DeviceProfile];
}

impl Profile {
    /// Begins a profile that keeps at most this many records.
    pub(crate) fn begin(of: Box<dyn Profiled>, records: usize) -> Result<Profile> {
        of.profiler().begin(records)?;
        Ok(Profile { of: Some(of) })
    }

    /// Ends the profile and returns its report. It waits for the work that the context enqueued, so that the devices' times are
    /// known. For streams of your own, call [`Stream::synchronize`](crate::gpu::Stream::synchronize) first: work still in
    /// progress has no device time.
    pub fn finish(mut self) -> Report {
        let _environment = DefaultEnvironment::enter();
        let Some(of) = self.of.take() else { return Report::default() };
        of.wait_for_devices();
        let Some(mut session) = of.profiler().end() else { return Report::default() };
        let ns = session.start.elapsed().as_nanos() as u64;
        session.report.complete(ns, of.devices());
        session.report
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        if let Some(of) = &self.of {
            of.profiler().end();
        }
    }
}
