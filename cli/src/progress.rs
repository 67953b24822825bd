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

    /// Whether anybody sees it.
    #[cfg(feature = "models")]
    pub fn is_seen(&self) -> bool {
        self.terminal
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

/// How far work is whose end is known: a bar, the share, and how long it takes at this rate.
#[cfg(feature = "models")]
pub fn bar(done: u64, all: u64, taken: Duration) -> String {
    const WIDTH: u64 = 20;
    let all = all.max(done).max(1);
    let full = (u128::from(done) * u128::from(WIDTH) / u128::from(all)) as usize;
    let left = taken.mul_f64((all - done) as f64 / done.max(1) as f64).as_secs();
    let bar = "#".repeat(full) + &"-".repeat(WIDTH as usize - full);
    let percent = u128::from(done) * 100 / u128::from(all);
    format!("[{bar}] {percent} %, {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60)
}

#[cfg(all(test, feature = "models"))]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_what_is_left() {
        assert_eq!(bar(0, 10, Duration::ZERO), "[--------------------] 0 %, 0:00:00 left");
        assert_eq!(bar(25, 100, Duration::from_secs(2000)), "[#####---------------] 25 %, 1:40:00 left");
        assert_eq!(bar(10, 10, Duration::from_secs(9)), "[####################] 100 %, 0:00:00 left");
        // A file that grew, or has no lines.
        assert_eq!(bar(11, 10, Duration::from_secs(9)), "[####################] 100 %, 0:00:00 left");
        assert_eq!(bar(0, 0, Duration::ZERO), "[--------------------] 0 %, 0:00:00 left");
    }
}
