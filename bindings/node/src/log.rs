//! What the runtime tells of itself: a function of JavaScript gets it, or stderr where `ADEAD_LOG` or adead.toml say so.

use crate::args::Text;
use crate::error::{fail, guard};
use adead::config::Config;
use adead::log::{LevelFilter, PREFIX, print};
use log::{Log, Metadata, Record};
use napi::bindgen_prelude::{FnArgs, Function, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;
use std::sync::{Once, PoisonError, RwLock};

/// Level, target, message.
type Message = FnArgs<(String, String, String)>;

/// A function of some thread's JavaScript, which does not keep that thread's event loop alive.
type Callback = ThreadsafeFunction<Message, Unknown<'static>, Message, Status, false, true>;

/// The process's logger.
struct Logger {
    callback: RwLock<Option<Callback>>,
}

static LOGGER: Logger = Logger { callback: RwLock::new(None) };

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(PREFIX)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let (level, target) = (record.level(), record.target());
        match &*self.callback.read().unwrap_or_else(PoisonError::into_inner) {
            Some(callback) => {
                let level = level.as_str().to_ascii_lowercase();
                let message = (level, target.replace("::", "."), record.args().to_string());
                // Never waits. Where the thread has ended the message goes to nobody.
                let _ = callback.call(message.into(), ThreadsafeFunctionCallMode::NonBlocking);
            }
            None => print(level, target, record.args()),
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
/// alive: a level, what it is about ("adead.devices"), a text. One function for the process, the last one that was given; null
/// is none, and then `ADEAD_LOG` or adead.toml say what is printed to stderr.
#[napi(
    ts_args_type = "logger: ((level: LogLevel, target: string, message: string) => void) | null, options?: LoggerOptions"
)]
pub fn set_logger(
    env: Env,
    logger: Option<Function<'_, Message, Unknown<'static>>>,
    options: Option<LoggerOptions>,
) -> napi::Result<()> {
    let name = options.and_then(|options| options.level);
    let level = guard(env, || match name.as_deref() {
        None => Ok(LevelFilter::Info),
        Some(name) => match LevelFilter::iter().find(|level| level.as_str().eq_ignore_ascii_case(name)) {
            Some(level) => Ok(level),
            None => fail!(InvalidArgument, "no level '{name}': it must be off, error, warn, info, debug or trace"),
        },
    })?;
    let level = if logger.is_some() { level } else { printed() };
    let callback = logger.map(|logger| logger.build_threadsafe_function().weak::<true>().build()).transpose()?;
    let before = std::mem::replace(&mut *LOGGER.callback.write().unwrap_or_else(PoisonError::into_inner), callback);
    log::set_max_level(level);
    // Let go of when the lock is.
    drop(before);
    Ok(())
}
