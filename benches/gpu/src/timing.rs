//! Times one piece of work, by the device's clock and by the host's.

use adead_core::Result;
use adead_core::gpu::{Buffer, Recording, Stream};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Seconds: the median, the middle half of the samples, and the number of samples.
pub struct Times {
    pub median: f64,
    low: f64,
    high: f64,
    samples: usize,
    /// Runs in one sample.
    runs: usize,
}

impl Times {
    /// Makes times from samples of this many runs each.
    pub fn of(mut seconds: Vec<f64>, runs: usize) -> Times {
        seconds.iter_mut().for_each(|sample| *sample /= runs as f64);
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize];
        Times { median: at(0.5), low: at(0.25), high: at(0.75), samples: seconds.len(), runs }
    }

    /// The times as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "median": self.median, "low": self.low, "high": self.high, "samples": self.samples, "runs": self.runs,
        })
    }
}

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// The time for each kind of measurement.
    pub time: Duration,
    /// The fewest samples, however long they take.
    pub least: usize,
}

impl Effort {
    /// Takes samples until the time is up.
    pub fn samples(&self, mut one: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
        let begin = Instant::now();
        let mut samples = Vec::new();
        while samples.len() < self.least || (begin.elapsed() < self.time && samples.len() < 1000) {
            samples.push(one()?);
        }
        Ok(samples)
    }
}

/// The number of runs in one sample so that it takes about this long.
pub fn repeats(one: f64, seconds: f64, most: usize) -> usize {
    ((seconds / one.max(1e-9)).ceil() as usize).clamp(1, most)
}

/// A function that enqueues work in a stream.
pub type Work<'a> = &'a mut dyn FnMut(&mut Stream) -> Result<()>;

/// Seconds from the first call until the work is done, by the host's clock.
pub fn completion(stream: &mut Stream, work: Work<'_>) -> Result<f64> {
    let begin = Instant::now();
    work(stream)?;
    stream.synchronize()?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Seconds that a recording takes, by the device's clock. `before` keeps the device busy, untimed, until the recording is
/// enqueued behind the first timestamp. It also brings the caches into the wanted state.
pub fn on_device(stream: &mut Stream, before: Work<'_>, recording: &Recording) -> Result<f64> {
    before(stream)?;
    let begin = stream.timestamp()?;
    stream.replay(recording)?;
    let end = stream.timestamp()?;
    stream.synchronize()?;
    Ok(end.since(&begin)? as f64 * 1e-9)
}

/// Enqueues work that takes a while and evicts everything from the caches.
pub fn occupy(stream: &mut Stream, ballast: &Buffer) -> Result<()> {
    stream.clear(ballast, 0, ballast.size())
}
