//! What the runtime tells of itself through the crate `log`: few messages, and none on the way of a call but, at trace, that it
//! is divided. Their targets are `adead::config`, `adead::devices`, `adead::dispatch`, `adead::pipeline`, `adead::program`, `adead::cache` and
//! `adead::memory`. Without the feature `log` nothing is compiled of them.

/// Tells something: a level of `log::Level`, what it is about, a text to format.
#[cfg(feature = "log")]
macro_rules! log {
    ($level:ident, $about:literal, $($text:tt)*) => {
        $crate::log::tell(::log::Level::$level, concat!("adead::", $about), format_args!($($text)*))
    };
}

/// Nothing, of what is checked to be a text.
#[cfg(not(feature = "log"))]
macro_rules! log {
    ($level:ident, $about:literal, $($text:tt)*) => {
        if false {
            let _ = format_args!($($text)*);
        }
    };
}

pub(crate) use log;

/// What `log::log!` does, as a function: of its code in each place not even the names of files are small.
#[cfg(feature = "log")]
#[cold]
#[inline(never)]
pub(crate) fn tell(level: ::log::Level, target: &'static str, message: std::fmt::Arguments<'_>) {
    if level <= ::log::STATIC_MAX_LEVEL && level <= ::log::max_level() {
        ::log::logger().log(&::log::Record::builder().level(level).target(target).args(message).build());
    }
}
