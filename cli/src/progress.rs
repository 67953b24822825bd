//! A line on the terminal that shows the progress of long work. If stderr is no terminal, nothing appears.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The progress line. Dropping it removes the line.
pub struct Progress {
    terminal: bool,
    begun: Instant,
    /// This work is the part with this number of so many equal parts.
    place: (usize, usize),
    shown: bool,
    next: Instant,
}

impl Progress {
    /// Makes a line that appears only if the work takes longer than 0.3 s.
    pub fn new() -> Progress {
        let begun = Instant::now();
        Progress {
            terminal: stderr().is_terminal(),
            begun,
            place: (0, 1),
            shown: false,
            next: begun + Duration::from_millis(300),
        }
    }

    /// Whether the line is visible.
    #[cfg(feature = "models")]
    pub fn is_seen(&self) -> bool {
        self.terminal
    }

    /// Shows a text, at most ten times a second.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.terminal || Instant::now() < self.next {
            return;
        }
        let text: String = text().chars().take(78).collect();
        let _ = write!(stderr(), "\r\x1b[K{text}");
        self.shown = true;
        self.next = Instant::now() + Duration::from_millis(100);
    }

    /// Says that the following parts belong to device `place` of `places`.
    pub fn within(&mut self, place: usize, places: usize) {
        self.place = (place, places);
    }

    /// Shows a bar, the time left, and a text. `done` of `all` parts are finished.
    pub fn part(&mut self, done: usize, all: usize, text: impl FnOnce() -> String) {
        let taken = self.begun.elapsed();
        let (place, places) = self.place;
        let bar = bar((place * all + done) as u64, (places * all) as u64, taken);
        self.show(|| format!("{bar} {}", text()));
    }

    /// Removes the line before other output.
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

/// The progress of work with a known end: a bar, the share, and the time left at this rate, once a part is done.
pub fn bar(done: u64, all: u64, taken: Duration) -> String {
    const WIDTH: u64 = 20;
    let all = all.max(done).max(1);
    let full = (u128::from(done) * u128::from(WIDTH) / u128::from(all)) as usize;
    let left = taken.mul_f64((all - done) as f64 / done.max(1) as f64).as_secs();
    let bar = "#".repeat(full) + &"-".repeat(WIDTH as usize - full);
    let percent = u128::from(done) * 100 / u128::from(all);
    if done == 0 {
        return format!("[{bar}] {percent} %");
    }
    format!("[{bar}] {percent} %, {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_what_is_left() {
        assert_eq!(bar(0, 10, Duration::ZERO), "[--------------------] 0 %");
        assert_eq!(bar(25, 100, Duration::from_secs(2000)), "[#####---------------] 25 %, 1:40:00 left");
        assert_eq!(bar(10, 10, Duration::from_secs(9)), "[####################] 100 %, 0:00:00 left");
        // A file that grew, and a file without lines.
        assert_eq!(bar(11, 10, Duration::from_secs(9)), "[####################] 100 %, 0:00:00 left");
        assert_eq!(bar(0, 0, Duration::ZERO), "[--------------------] 0 %");
    }
}
