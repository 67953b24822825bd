//! Colours, only on a terminal and only if `NO_COLOR` is unset.

use std::io::IsTerminal;

/// A colour.
#[derive(Clone, Copy, Debug)]
pub enum Color {
    Red = 31,
    Green = 32,
    Yellow = 33,
}

/// Returns whether a stream shows colours. <https://no-color.org> defines `NO_COLOR`.
pub fn shows(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns the text in a bold colour, or unchanged if the stream shows none.
pub fn paint(text: &str, color: Color, shown: bool) -> String {
    if shown { format!("\x1b[1;{}m{text}\x1b[0m", color as u8) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_shows_colours_gets_them() {
        assert_eq!(paint("ok", Color::Green, false), "ok");
        assert_eq!(paint("ok", Color::Green, true), "\x1b[1;32mok\x1b[0m");
        assert!(!shows(&std::fs::File::open("/dev/null").unwrap()));
    }
}
