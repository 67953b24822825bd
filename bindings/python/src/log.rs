//! Passes the runtime's messages to Python's `logging` module.
//!
//! A message may come from any thread, with or without the GIL, while the runtime holds one of its locks. Taking the GIL there
//! could deadlock with a thread that holds the GIL and waits for that lock. So the message is queued, and the interpreter is
//! asked to call back. It calls back in its main thread, between two bytecode instructions. Then `adead/_log.py` passes the
//! message to `logging`.

use adead::config::Config;
use adead::log::{LevelFilter, PREFIX};
use log::{Level, Log, Metadata, Record};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most messages that are queued until the main thread takes them. Newer ones are dropped.
const MOST: usize = 1000;

/// The module's logger.
struct Logger(Mutex<State>);

/// Kept messages: level, target, text.
struct State {
    kept: Vec<(c_int, String, String)>,
    /// Whether the interpreter was asked to fetch them.
    asked: bool,
}

static LOGGER: Logger = Logger(Mutex::new(State { kept: Vec::new(), asked: false }));

impl Logger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(PREFIX)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message =
            (number(record.level().to_level_filter()), record.target().replace("::", "."), record.args().to_string());
        let mut state = self.state();
        if state.kept.len() < MOST {
            state.kept.push(message);
        }
        // If too many calls are pending, this fails, and the next message asks again.
        // SAFETY: any thread may call both, without the GIL, while there is an interpreter.
        state.asked = state.asked
            || unsafe { ffi::Py_IsInitialized() != 0 && ffi::Py_AddPendingCall(Some(deliver), null_mut()) == 0 };
    }

    fn flush(&self) {}
}

/// Returns the number of a level in `logging`, which has none for `trace`. If nothing is wanted, it is above all
/// levels.
fn number(level: LevelFilter) -> c_int {
    match level.to_level() {
        Some(Level::Error) => 40,
        Some(Level::Warn) => 30,
        Some(Level::Info) => 20,
        Some(Level::Debug) => 10,
        Some(Level::Trace) => 5,
        None => 100,
    }
}

/// Passes the kept messages to `logging`. The interpreter calls it with the GIL.
extern "C" fn deliver(_: *mut c_void) -> c_int {
    let messages = {
        let mut state = LOGGER.state();
        state.asked = false;
        std::mem::take(&mut state.kept)
    };
    // When the interpreter ends, the messages are lost.
    let _ = Python::try_attach(|py| {
        let deliver = || py.import("adead._log")?.getattr("deliver")?.call1((messages,)).map(drop);
        if let Err(error) = deliver() {
            // The running code did not ask for the message, so it must not get the exception.
            error.write_unraisable(py, None);
        }
    });
    0
}

/// Makes this the module's logger. `_LOG_LEVEL` is the level to print, as `ADEAD_LOG` or adead.toml says: a level of
/// `logging`, or None if neither says one. Opening a context reports an invalid configuration.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let level = Config::load().ok().and_then(|config| config.log);
    if log::set_logger(&LOGGER).is_ok() {
        // A program may change the level of `logging` at any time, so all messages are kept for it. The exception is
        // trace messages of single calls, for which `logging` has no level.
        log::set_max_level(level.unwrap_or(LevelFilter::Debug).max(LevelFilter::Debug));
    }
    module.add("_LOG_LEVEL", level.map(number))
}
