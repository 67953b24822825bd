//! The profiler: what commands and transfers took, on which device, and why there.
//!
//! [`Context::profile`](crate::Context::profile) begins, [`Profile::finish`] gives a [`Report`]. Between them every operation, user's kernel and
//! transfer of the context and its streams leaves a [`Record`]. A device's times come from the device: CUDA events, Vulkan
//! timestamps. They are put on the host's clock by one comparison of the two, so that everything shares one time line.
//! Without a profile, a call looks at one flag; without the feature `profile`, `off.rs` is in its place, and a call looks at nothing.

mod record;
mod recorder;
mod report;
mod text;

pub use record::{Activity, Reason, Record, Span};
pub(crate) use recorder::{Described, Profiler, ProfilerHandle, Watch, What};
pub use report::{DeviceUse, Report, Total};

use crate::dispatch::DeviceProfile;
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;

/// Records that a profile keeps unless it is told otherwise: some 20 MB.
pub const DEFAULT_RECORDS: usize = 1 << 16;

/// A profile under way. Dropped, it ends without a report.
#[must_use = "dropped, it records nothing"]
pub struct Profile {
    /// None once it is finished: the next profile of the context may be under way then.
    of: Option<Box<dyn Profiled>>,
}

/// What is profiled: a context.
pub(crate) trait Profiled: Send + Sync {
    /// What records.
    fn profiler(&self) -> &Profiler;

    /// Waits for what was enqueued.
    fn wait_for_devices(&self);

    /// What is known of its devices.
    fn devices(&self) -> &[DeviceProfile];
}

impl Profile {
    /// Begins one with so many records at most.
    pub(crate) fn begin(of: Box<dyn Profiled>, records: usize) -> Result<Profile> {
        of.profiler().begin(records)?;
        Ok(Profile { of: Some(of) })
    }

    /// Ends it. Waits for what the context enqueued, so that the device's times are there; for streams of your own, call
    /// [`Stream::synchronize`](crate::gpu::Stream::synchronize) first: work that is still under way is without a device's time.
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
