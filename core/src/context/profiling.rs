//! Profiles of a context.

use super::Context;
use crate::devices::Slot;
use crate::dispatch::DeviceProfile;
use crate::error::Result;
use crate::profile::{DEFAULT_RECORDS, Profile, Profiled, Profiler};

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
        Profile::begin(Box::new(self.clone()), records)
    }
}

impl Profiled for Context {
    fn profiler(&self) -> &Profiler {
        &self.profiler
    }

    fn wait_for_devices(&self) {
        for gpu in self.gpus.iter().filter_map(Slot::if_opened) {
            // A device that is lost has no times either.
            let _ = gpu.with(|stream| stream.event()?.wait(u64::MAX));
        }
    }

    fn devices(&self) -> &[DeviceProfile] {
        self.dispatcher.profiles()
    }
}
