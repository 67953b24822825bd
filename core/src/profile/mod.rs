//! The profiler: what commands and transfers took, on which device, and why there.
//!
//! [`Context::profile`] begins, [`Profile::finish`] gives a [`Report`]. Between them every operation, user's kernel and
//! transfer of the context and its streams leaves a [`Record`]. A device's times come from the device: CUDA events, Vulkan
//! timestamps. They are put on the host's clock by one comparison of the two, so that everything shares one time line.
//! Without a profile, a call looks at one flag; without the feature `profile`, `off.rs` is in its place, and a call looks at nothing.

mod record;
mod recorder;
mod report;
mod text;

pub use record::{Activity, Reason, Record, Span};
pub(crate) use recorder::{Profiler, ProfilerHandle, Watch, What};
pub use report::{DeviceUse, Report, Total};

use crate::context::Context;
use crate::error::Result;
use crate::fpenv::DefaultEnvironment;

/// Records that a profile keeps unless it is told otherwise: some 20 MB.
pub const DEFAULT_RECORDS: usize = 1 << 16;

/// A profile under way. Dropped, it ends without a report.
#[must_use = "dropped, it records nothing"]
pub struct Profile {
    /// None once it is finished: the next profile of the context may be under way then.
    context: Option<Context>,
}

impl Context {
    /// Begins to record what this context, its clones and its streams do, in every thread, up to [`DEFAULT_RECORDS`] records.
    ///
    /// A context has one profile at a time: `invalid_argument` while another is under way. What was begun before it is not
    /// recorded, and neither is what a stream records for later: a replay is.
    pub fn profile(&self) -> Result<Profile> {
        self.profile_with(DEFAULT_RECORDS)
    }

    /// [`Context::profile`] with another limit. Records beyond it are counted, not kept.
    pub fn profile_with(&self, records: usize) -> Result<Profile> {
        self.profiler().begin(records)?;
        Ok(Profile { context: Some(self.clone()) })
    }
}

impl Profile {
    /// Ends it. Waits for what the context enqueued, so that the device's times are there; for streams of your own, call
    /// [`Stream::synchronize`](crate::gpu::Stream::synchronize) first: work that is still under way is without a device's time.
    pub fn finish(mut self) -> Report {
        let _environment = DefaultEnvironment::enter();
        let Some(context) = self.context.take() else { return Report::default() };
        context.wait_for_devices();
        let Some(mut session) = context.profiler().end() else { return Report::default() };
        let ns = session.start.elapsed().as_nanos() as u64;
        session.report.complete(ns, context.dispatcher().profiles());
        session.report
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        if let Some(context) = &self.context {
            context.profiler().end();
        }
    }
}
