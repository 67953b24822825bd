//! Profiles of a context, with the feature `profile`.

use super::Context;
use crate::devices::Slot;
use crate::dispatch::DeviceProfile;
use crate::error::Result;
use crate::profile::{DEFAULT_RECORDS, Profile, Profiled, Profiler};

impl Context {
    /// Begins to record what this context, its clones and its streams do, in every thread, up to [`DEFAULT_RECORDS`] records.
    ///
    /// A context has one profile at a time: while one is running, another is `invalid_argument`. Work that began before the
    /// profile is not recorded. Commands that a stream records for a later replay are not recorded either; the replay is.
    pub fn profile(&self) -> Result<Profile> {
        self.profile_with(DEFAULT_RECORDS)
    }

    /// Begins a profile like [`Context::profile`] with another limit. Records beyond the limit are counted and dropped.
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
            // A lost device has no times to wait for, so its error does not matter.
            let _ = gpu.with(|stream| stream.event()?.wait(u64::MAX));
        }
    }

    fn devices(&self) -> &[DeviceProfile] {
        self.dispatcher.profiles()
    }
}
