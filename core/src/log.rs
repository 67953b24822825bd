//! What the runtime tells of itself through the crate `log`: few messages, and none on the way of a call. Their targets are
//! `adead::config`, `adead::devices`, `adead::dispatch`, `adead::pipeline`, `adead::cache` and `adead::memory`. Without the
//! feature `log` nothing is compiled of them.

/// Tells something: a level of `log::Level`, what it is about, a text to format.
#[cfg(feature = "log")]
macro_rules! log {
    ($level:ident, $about:literal, $($text:tt)*) => {
        ::log::log!(target: concat!("adead::", $about), ::log::Level::$level, $($text)*)
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
