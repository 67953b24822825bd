//! What a context recorded. `adead/_profile.py` makes classes of Python of its JSON: as getters here, each field of each class
//! would be code of the module.

use crate::errors::{Result, detached, fail};
use adead::Context;
use adead::profile::{DEFAULT_RECORDS, Profile, Report};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

enum State {
    UnderWay(Profile),
    Finished(Report),
    /// While it is being finished, and behind a panic there.
    Nothing,
}

/// A profile under way, or its report. Dropped, it ends.
#[pyclass(frozen, module = "adead", name = "_Session")]
pub struct PySession(Mutex<State>);

/// Begins a profile: an `adead.Profile`.
pub fn begin<'py>(py: Python<'py>, context: &Context, records: Option<usize>) -> Result<Bound<'py, PyAny>> {
    let profile = context.profile_with(records.unwrap_or(DEFAULT_RECORDS))?;
    let session = PySession(Mutex::new(State::UnderWay(profile)));
    Ok(py.import("adead._profile")?.getattr("Profile")?.call1((session,))?)
}

#[pymethods]
impl PySession {
    /// Ends it, if it is under way, and gives its report as "json", "trace" or "table".
    fn report(&self, py: Python<'_>, format: &str) -> Result<String> {
        // The lock is taken without the GIL: who has it never waits for the GIL.
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
                // What ends it needs none of them.
                _ => String::new(),
            })
        })
    }
}
