//! Messages through the crate `log`. They are few, and a call writes none, except at level trace if it is divided. Their targets
//! are `adead::config`, `adead::devices`, `adead::dispatch`, `adead::pipeline`, `adead::program`, `adead::cache` and
//! `adead::memory`. Without the feature `log` no message is compiled.

/// Logs a message: a level of `log::Level`, a topic, a format string with arguments.
#[cfg(feature = "log")]
macro_rules! log {
    ($level:ident, $about:literal, $($text:tt)*) => {
        $crate::log::tell(::log::Level::$level, concat!("adead::", $about), format_args!($($text)*))
    };
}

/// Logs nothing, but still checks the format string.
#[cfg(not(feature = "log"))]
macro_rules! log {
    ($level:ident, $about:literal, $($text:tt)*) => {
        if false {
            let _ = format_args!($($text)*);
        }
    };
}

pub(crate) use log;

/// Does what `log::log!` does, as a function. Each use of the macro would add code, with the file's name, to the library.
#[cfg(feature = "log")]
#[cold]
#[inline(never)]
pub(crate) fn tell(level: ::log::Level, target: &'static str, message: std::fmt::Arguments<'_>) {
    if level <= ::log::STATIC_MAX_LEVEL && level <= ::log::max_level() {
        ::log::logger().log(&::log::Record::builder().level(level).target(target).args(message).build());
    }
}
