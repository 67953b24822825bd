//! Messages of the runtime: a callback receives them, or stderr if `ADEAD_LOG` or adead.toml says so. Needs the feature
//! `log`; without it `without.rs` has the function.

use crate::pointers::fail;
use crate::status::{adead_status, guard};
use adead_core::config::Config;
use log::{LevelFilter, Log, Metadata, Record};
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The severity of a message, one of `ADEAD_LOG_…`.
pub type adead_log_level = i32;

/// Receives messages: a level, a target ("adead.devices"), a text, and the pointer that was passed to `adead_log_set`.
/// Both texts are valid only during the call.
pub type adead_log_callback =
    Option<unsafe extern "C" fn(level: adead_log_level, target: *const c_char, text: *const c_char, user: *mut c_void)>;

/// The library's logger.
struct Logger(Mutex<State>);

struct State {
    callback: adead_log_callback,
    user: *mut c_void,
    /// Whether the program or its configuration has set the level.
    known: bool,
}

// SAFETY: only the callback receives the pointer, and the program that set it vouches that any thread may call it.
unsafe impl Send for State {}

static LOGGER: Logger = Logger(Mutex::new(State { callback: None, user: std::ptr::null_mut(), known: false }));

thread_local! {
    /// Whether this thread is inside the callback. Messages from there are dropped.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

impl Logger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if TELLING.replace(true) {
            return;
        }
        let mut state = self.state();
        if !state.known {
            state.known = true;
            log::set_max_level(printed());
        }
        if record.level() <= log::max_level() {
            let level = record.level() as usize;
            let about = record.target().strip_prefix("adead::").unwrap_or_default();
            match state.callback {
                Some(callback) => {
                    let (target, text) = (format!("adead.{about}\0"), format!("{}\0", record.args()));
                    let (target, text) = (target.as_ptr().cast(), text.as_ptr().cast());
                    // SAFETY: the program that set the callback vouches for it and its pointer. The lock keeps both in
                    // place during the call.
                    unsafe { callback(level as adead_log_level, target, text, state.user) }
                }
                None => {
                    let level = ["off", "error", "warn", "info", "debug", "trace"][level];
                    let line = format!("adead {level} {about}: {}\n", record.args());
                    // A line that can't be written is lost.
                    let _ = std::io::stderr().write_all(line.as_bytes());
                }
            }
        }
        drop(state);
        TELLING.set(false);
    }

    fn flush(&self) {}
}

/// Returns the level of messages to print when no callback is set. An invalid configuration counts as off; opening a
/// context reports it.
fn printed() -> LevelFilter {
    Config::load().ok().and_then(|config| config.log).unwrap_or(LevelFilter::Off)
}

/// Installs the library's logger. Its first message reads the level from the configuration. A second call has no
/// effect.
pub fn start_log() {
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
}

/// Sets the callback that receives the runtime's messages of `level` and of higher severity, together with `user`. The
/// process has one callback; the last call wins. With NULL, `ADEAD_LOG` or adead.toml decides what is printed to
/// stderr, and `level` is ignored. `unsupported` in a library built with ADEAD_MINIMAL.
///
/// The callback runs in the thread that logs the message, which may be any thread. Its calls don't overlap. The old
/// callback is not called after `adead_log_set` has returned. A callback must return: no longjmp and no exception may
/// leave it. It must not call adead, which may hold its own locks; `adead_log_set` there returns `invalid_argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_log_set(
    level: adead_log_level,
    callback: adead_log_callback,
    user: *mut c_void,
) -> adead_status {
    guard(|| {
        start_log();
        if TELLING.replace(true) {
            fail!(InvalidArgument, "a log callback must not call adead_log_set");
        }
        let last = LevelFilter::Trace as adead_log_level;
        let wanted = match callback {
            Some(_) => usize::try_from(level).ok().and_then(|level| LevelFilter::iter().nth(level)),
            None => Some(printed()),
        };
        if let Some(wanted) = wanted {
            let mut state = LOGGER.state();
            *state = State { callback, user, known: true };
            log::set_max_level(wanted);
        }
        TELLING.set(false);
        match wanted {
            Some(_) => Ok(()),
            None => fail!(InvalidArgument, "level is {level}; it must be 0 to {last}"),
        }
    })
}
