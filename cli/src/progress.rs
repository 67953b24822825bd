//! A line on the terminal that says how far long work is. Nothing appears where stderr is no terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The line; it goes away when this does.
pub struct Progress {
    terminal: bool,
    shown: bool,
    next: Instant,
}

impl Progress {
    /// Nothing is shown yet, and nothing will be if all is done in a moment.
    pub fn new() -> Progress {
        Progress { terminal: stderr().is_terminal(), shown: false, next: Instant::now() + Duration::from_millis(300) }
    }

    /// Shows a text, a few times a second at most.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.terminal || Instant::now() < self.next {
            return;
        }
        let text: String = text().chars().take(78).collect();
        let _ = write!(stderr(), "\r\x1b[K{text}");
        self.shown = true;
        self.next = Instant::now() + Duration::from_millis(100);
    }

    /// Takes the line away, before something else is printed.
    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
