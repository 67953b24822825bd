//! The runtime's messages: those of the crate `log` whose targets begin with `adead::`. The program's logger receives
//! them. [`to_stderr`] is a logger for programs without one.

use std::fmt::Arguments;
use std::io::Write;

pub use ::log::{Level, LevelFilter};

/// Prints messages from a level on to stderr, as `adead info devices: …`. Returns whether this is now the program's
/// logger; `false` if the program already has one.
pub fn to_stderr(level: LevelFilter) -> bool {
    let ours = ::log::set_logger(&Printer).is_ok();
    if ours {
        ::log::set_max_level(level);
    }
    ours
}

/// Prints a message, as [`to_stderr`] does. A message that can't be written is lost.
pub fn print(level: Level, target: &str, message: &Arguments<'_>) {
    let about = target.strip_prefix(PREFIX).unwrap_or(target);
    let _ = writeln!(std::io::stderr(), "adead {} {about}: {message}", level.as_str().to_ascii_lowercase());
}

/// The prefix of the runtime's targets.
pub const PREFIX: &str = "adead::";

struct Printer;

impl ::log::Log for Printer {
    fn enabled(&self, metadata: &::log::Metadata<'_>) -> bool {
        metadata.target().starts_with(PREFIX)
    }

    fn log(&self, record: &::log::Record<'_>) {
        if self.enabled(record.metadata()) {
            print(record.level(), record.target(), record.args());
        }
    }

    fn flush(&self) {}
}
