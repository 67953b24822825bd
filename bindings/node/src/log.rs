//! Messages of the runtime. They go to a JavaScript function, or else to stderr if `ADEAD_LOG` or adead.toml says so.

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

/// The JavaScript function that fetches the kept messages, on its own thread. It does not keep that thread's event loop alive.
type Wake = ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>;

/// The most messages that are kept until they are fetched. When it is reached, newer messages are dropped.
const MOST: usize = 1000;

/// The process's logger.
struct Logger(Mutex<State>);

/// The function that fetches messages, and the kept messages: level, target, text.
struct State {
    wake: Option<Wake>,
    /// The number of `wake`: how many times `set_logger` was called.
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
            // This never waits. If the function's thread has ended, nobody fetches the messages.
            let _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
        if kept.len() < MOST {
            kept.push(vec![level.as_str().to_ascii_lowercase(), target.replace("::", "."), record.args().to_string()]);
        }
    }

    fn flush(&self) {}
}

/// Returns the level that is printed while no function is set. Faults in the configuration are reported when a context is
/// opened.
fn printed() -> LevelFilter {
    Config::load().ok().and_then(|config| config.log).unwrap_or(LevelFilter::Off)
}

/// Installs the process's logger, once for all threads.
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

/// Options of `setLogger`.
#[napi(object, object_to_js = false)]
pub struct LoggerOptions {
    /// The least serious level that is reported: "error", "warn", "info", "debug" or "trace". The default is "info".
    #[napi(ts_type = "'off' | LogLevel")]
    pub level: Option<Text>,
}

/// Sets the function that receives the runtime's messages: a level, a target ("adead.devices") and a text. It is called in a
/// later turn of this thread's event loop, or when the loop ends. It does not keep the loop alive. The process has one such
/// function, the last one set. With null, `ADEAD_LOG` or adead.toml chooses what is printed to stderr.
// index.js keeps the logger itself. `wake` here is the function that fetches the messages. Returns its number, for
// `takeMessages`.
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
            None => fail!(InvalidArgument, "level is '{name}'; it must be off, error, warn, info, debug or trace"),
        },
    })?;
    let level = if wake.is_some() { level } else { printed() };
    let wake = wake.map(|wake| wake.build_threadsafe_function().weak::<true>().build()).transpose()?;
    let mut state = LOGGER.state();
    let number = state.number.wrapping_add(1);
    let before = std::mem::replace(&mut *state, State { wake, number, kept: Vec::new() });
    log::set_max_level(level);
    drop(state);
    // Dropped only once the lock is released.
    drop(before);
    Ok(number)
}

/// Takes the messages kept for the function with this number. Empty if a later function has been set.
#[napi(skip_typescript)]
pub fn take_messages(number: u32) -> Vec<Vec<String>> {
    let mut state = LOGGER.state();
    if state.number == number { std::mem::take(&mut state.kept) } else { Vec::new() }
}
