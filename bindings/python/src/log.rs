//! What the runtime tells of itself, to the module `logging`.
//!
//! A message may come from any thread, with or without the GIL, while the runtime holds a lock of its own: whoever takes the GIL
//! there can wait for a thread that has it and waits for that lock. So a message is only kept, and the interpreter asked to
//! call back, which it does in its main thread between two steps of a program. `adead/_log.py` gives it to `logging` then.

use adead::config::Config;
use adead::log::{LevelFilter, PREFIX};
use log::{Level, Log, Metadata, Record};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages that are kept while the main thread takes none, at most: those that are older stay.
const MOST: usize = 1000;

/// The module's logger.
struct Logger(Mutex<State>);

/// Messages under way: level, target, text.
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
        // Where too many calls wait already it says so, and the next message asks again.
        // SAFETY: any thread may call both, without the GIL, while there is an interpreter.
        state.asked = state.asked
            || unsafe { ffi::Py_IsInitialized() != 0 && ffi::Py_AddPendingCall(Some(deliver), null_mut()) == 0 };
    }

    fn flush(&self) {}
}

/// The number of a level in `logging`, which has none for `trace`; above all of them where nothing is wanted.
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

/// Gives what is kept to `logging`. The interpreter calls it with the GIL.
extern "C" fn deliver(_: *mut c_void) -> c_int {
    let messages = {
        let mut state = LOGGER.state();
        state.asked = false;
        std::mem::take(&mut state.kept)
    };
    // At the interpreter's end nobody takes them any more.
    let _ = Python::try_attach(|py| {
        let deliver = || py.import("adead._log")?.getattr("deliver")?.call1((messages,)).map(drop);
        if let Err(error) = deliver() {
            // The code that runs now did not ask for the message.
            error.write_unraisable(py, None);
        }
    });
    0
}

/// Makes it the logger of this module. What is to be printed, as `ADEAD_LOG` or adead.toml say, is `_LOG_LEVEL`: a level of
/// `logging`, None where neither does. A configuration with a fault is told of when a context is opened.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let level = Config::load().ok().and_then(|config| config.log);
    if log::set_logger(&LOGGER).is_ok() {
        // `logging` may be told what it wants at any time, so all are kept for it but those of single calls, which it has no
        // level for.
        log::set_max_level(level.unwrap_or(LevelFilter::Debug).max(LevelFilter::Debug));
    }
    module.add("_LOG_LEVEL", level.map(number))
}
