//! What the runtime tells of itself: messages of the crate `log` whose targets begin with `adead::`, for whichever logger the
//! program has. [`to_stderr`] is one for programs that have none.

use std::fmt::Arguments;
use std::io::Write;

pub use ::log::{Level, LevelFilter};

/// Prints messages from that level on to stderr, as `adead info devices: …`. Whether this is the program's logger now: `false`
/// where it has one already.
pub fn to_stderr(level: LevelFilter) -> bool {
    let ours = ::log::set_logger(&Printer).is_ok();
    if ours {
        ::log::set_max_level(level);
    }
    ours
}

/// Prints a message, as [`to_stderr`] does. What can't be written is lost.
pub fn print(level: Level, target: &str, message: &Arguments<'_>) {
    let about = target.strip_prefix(PREFIX).unwrap_or(target);
    let _ = writeln!(std::io::stderr(), "adead {} {about}: {message}", level.as_str().to_ascii_lowercase());
}

/// What the targets of the runtime begin with.
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
