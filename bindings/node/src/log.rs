//! What the runtime tells of itself: a function of JavaScript gets it, or stderr where `ADEAD_LOG` or adead.toml say so.

use adead::config::Config;
use adead::log::{LevelFilter, PREFIX, print};
use adead_node_support::args::Text;
use adead_node_support::error::{fail, guard};
use log::{Log, Metadata, Record};
use napi::bindgen_prelude::{Function, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// A function of some thread's JavaScript that fetches what is kept. It does not keep that thread's event loop alive.
type Wake = ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>;

/// Messages that are kept while nobody fetches them, at most: those that are older stay.
const MOST: usize = 1000;

/// The process's logger.
struct Logger(Mutex<State>);

/// What fetches messages, and those that are kept: level, target, text.
struct State {
    wake: Option<Wake>,
    /// Of how many functions it is the last.
    number: u32,
    kept: Vec<Vec<String>>,
}

static LOGGER: Logger = Logger(Mutex::new(State { wake: None, number: 0, kept: Vec::new() }));

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
        let (level, target) = (record.level(), record.target());
        let mut state = self.state();
        let State { wake: Some(wake), kept, .. } = &mut *state else {
            drop(state);
            return print(level, target, record.args());
        };
        if kept.is_empty() {
            // Never waits. Where its thread has ended, nobody fetches them.
            let _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
        if kept.len() < MOST {
            kept.push(vec![level.as_str().to_ascii_lowercase(), target.replace("::", "."), record.args().to_string()]);
        }
    }

    fn flush(&self) {}
}

/// What is printed where no function takes it. A configuration with a fault is told of when a context is opened.
fn printed() -> LevelFilter {
    Config::load().ok().and_then(|config| config.log).unwrap_or(LevelFilter::Off)
}

/// Makes it the logger of this module; once for all threads.
#[napi(skip_typescript)]
pub fn start_logger() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let level = printed();
        if log::set_logger(&LOGGER).is_ok() {
            log::set_max_level(level);
        }
    });
}

/// Which messages a logger gets.
#[napi(object, object_to_js = false)]
pub struct LoggerOptions {
    /// The least serious ones: "error", "warn", "info", "debug" or "trace". "info" where it is not given.
    #[napi(ts_type = "'off' | LogLevel")]
    pub level: Option<Text>,
}

/// Gives what the runtime tells of itself to a function, from some turn of this thread's event loop on, which it does not keep
/// alive, or when that ends: a level, what it is about ("adead.devices"), a text. One function for the process, the last one that
/// was given; null is none, and then `ADEAD_LOG` or adead.toml say what is printed to stderr.
// index.js has the function: here it is what fetches the messages. Its number, for `takeMessages`.
#[napi(
    ts_args_type = "logger: ((level: LogLevel, target: string, message: string) => void) | null, options?: LoggerOptions",
    ts_return_type = "void"
)]
pub fn set_logger(
    env: Env,
    wake: Option<Function<'_, (), Unknown<'static>>>,
    options: Option<LoggerOptions>,
) -> napi::Result<u32> {
    let name = options.and_then(|options| options.level);
    let level = guard(env, || match name.as_deref() {
        None => Ok(LevelFilter::Info),
        Some(name) => match LevelFilter::iter().find(|level| level.as_str().eq_ignore_ascii_case(name)) {
            Some(level) => Ok(level),
            None => fail!(InvalidArgument, "no level '{name}': it must be off, error, warn, info, debug or trace"),
        },
    })?;
    let level = if wake.is_some() { level } else { printed() };
    let wake = wake.map(|wake| wake.build_threadsafe_function().weak::<true>().build()).transpose()?;
    let mut state = LOGGER.state();
    let number = state.number.wrapping_add(1);
    let before = std::mem::replace(&mut *state, State { wake, number, kept: Vec::new() });
    log::set_max_level(level);
    drop(state);
    // Let go of when the lock is.
    drop(before);
    Ok(number)
}

/// What is kept for the function of that number; nothing if there is a later one.
#[napi(skip_typescript)]
pub fn take_messages(number: u32) -> Vec<Vec<String>> {
    let mut state = LOGGER.state();
    if state.number == number { std::mem::take(&mut state.kept) } else { Vec::new() }
}
