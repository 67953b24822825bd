//! What the runtime tells of itself: a callback gets it, or stderr where `ADEAD_LOG` or adead.toml say so. The feature `log`;
//! without it `without.rs` has its function.

use crate::pointers::fail;
use crate::status::{adead_status, guard};
use adead_core::config::Config;
use log::{LevelFilter, Log, Metadata, Record};
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How serious a message is, one of `ADEAD_LOG_…`.
pub type adead_log_level = i32;

/// What gets messages: a level, what it is about ("adead.devices"), a text, and what `adead_log_set` was given for it. Both
/// texts are the library's and go with the call.
pub type adead_log_callback =
    Option<unsafe extern "C" fn(level: adead_log_level, target: *const c_char, text: *const c_char, user: *mut c_void)>;

/// The library's logger.
struct Logger(Mutex<State>);

struct State {
    callback: adead_log_callback,
    user: *mut c_void,
    /// Whether the level is what the program or its configuration say.
    known: bool,
}

// SAFETY: the pointer is only handed to the callback, whose giver vouches that any thread may call it.
unsafe impl Send for State {}

static LOGGER: Logger = Logger(Mutex::new(State { callback: None, user: std::ptr::null_mut(), known: false }));

thread_local! {
    /// Whether this thread tells something: what that tells in turn is lost.
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
                    // SAFETY: who gave the callback vouches for it and its pointer, and nobody takes it away meanwhile.
                    unsafe { callback(level as adead_log_level, target, text, state.user) }
                }
                None => {
                    let level = ["off", "error", "warn", "info", "debug", "trace"][level];
                    let line = format!("adead {level} {about}: {}\n", record.args());
                    // What can't be written is lost.
                    let _ = std::io::stderr().write_all(line.as_bytes());
                }
            }
        }
        drop(state);
        TELLING.set(false);
    }

    fn flush(&self) {}
}

/// What is printed where no callback takes it. A configuration with a fault is told of when a context is opened.
fn printed() -> LevelFilter {
    Config::load().ok().and_then(|config| config.log).unwrap_or(LevelFilter::Off)
}

/// Makes it the logger of this library; what is printed is read with the first message. Once more, it changes nothing.
pub fn start_log() {
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
}

/// Gives what the runtime tells of itself, from a level on, to a callback, with a pointer of the caller's; one for the
/// process, the last one that was given. NULL is none: then `ADEAD_LOG` or adead.toml say what is printed to stderr, and
/// `level` is not looked at. `unsupported` in a library built with ADEAD_MINIMAL.
///
/// The callback is called where a message comes from, by any thread, one call at a time, and not after this returns when
/// another one is given. It must return: no longjmp and no exception leaves it. It must not call adead, which may hold locks
/// of its own; `adead_log_set` there is `invalid_argument`.
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
