//! A context's profile. `adead/_profile.py` makes Python classes from its JSON: getters here would add code to the module for
//! each field of each class.

use crate::errors::{Result, detached, fail};
use adead::Context;
use adead::profile::{DEFAULT_RECORDS, Profile, Report};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

enum State {
    UnderWay(Profile),
    Finished(Report),
    /// While the profile is being finished, and after a panic there.
    Nothing,
}

/// An active profile, or its report. Dropping it ends the profile.
#[pyclass(frozen, module = "adead", name = "_Session")]
pub struct PySession(Mutex<State>);

/// Starts a profile: an `adead.Profile`.
pub fn begin<'py>(py: Python<'py>, context: &Context, records: Option<usize>) -> Result<Bound<'py, PyAny>> {
    let profile = context.profile_with(records.unwrap_or(DEFAULT_RECORDS))?;
    let session = PySession(Mutex::new(State::UnderWay(profile)));
    Ok(py.import("adead._profile")?.getattr("Profile")?.call1((session,))?)
}

#[pymethods]
impl PySession {
    /// Ends the profile, if it is active, and returns its report as "json", "trace" or "table".
    fn report(&self, py: Python<'_>, format: &str) -> Result<String> {
        // The lock is taken without the GIL, because its holder never waits for the GIL.
        detached(py, || {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *state = match std::mem::replace(&mut *state, State::Nothing) {
                State::UnderWay(profile) => State::Finished(profile.finish()),
                other => other,
            };
            let State::Finished(report) = &*state else { fail!(Internal, "the profile has no report") };
            Ok(match format {
                "json" => report.to_json(),
                "trace" => report.to_trace(),
                "table" => report.to_string(),
                // A caller that only ends the profile needs no text.
                _ => String::new(),
            })
        })
    }
}
