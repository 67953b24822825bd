//! Times of one piece of work, by the device's clock and by the host's.

use adead_core::Result;
use adead_core::gpu::{Buffer, Recording, Stream};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Seconds: the median, what half of the samples lie between, and how many there are.
pub struct Times {
    pub median: f64,
    low: f64,
    high: f64,
    samples: usize,
    /// Runs in one sample.
    runs: usize,
}

impl Times {
    /// Of samples of so many runs each.
    pub fn of(mut seconds: Vec<f64>, runs: usize) -> Times {
        seconds.iter_mut().for_each(|sample| *sample /= runs as f64);
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize];
        Times { median: at(0.5), low: at(0.25), high: at(0.75), samples: seconds.len(), runs }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "median": self.median, "low": self.low, "high": self.high, "samples": self.samples, "runs": self.runs,
        })
    }
}

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Of each kind of time.
    pub time: Duration,
    /// However long it takes.
    pub least: usize,
}

impl Effort {
    /// Samples until the time is up.
    pub fn samples(&self, mut one: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
        let begin = Instant::now();
        let mut samples = Vec::new();
        while samples.len() < self.least || (begin.elapsed() < self.time && samples.len() < 1000) {
            samples.push(one()?);
        }
        Ok(samples)
    }
}

/// How often something is run in one sample, so that it takes about that long.
pub fn repeats(one: f64, seconds: f64, most: usize) -> usize {
    ((seconds / one.max(1e-9)).ceil() as usize).clamp(1, most)
}

/// Something that a stream is given.
pub type Work<'a> = &'a mut dyn FnMut(&mut Stream) -> Result<()>;

/// Seconds of the host's clock from the first call until the work is done.
pub fn completion(stream: &mut Stream, work: Work<'_>) -> Result<f64> {
    let begin = Instant::now();
    work(stream)?;
    stream.synchronize()?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Seconds of the device's clock that a recording takes. `before` keeps the device busy, untimed, so that all of it is
/// enqueued when the first timestamp is taken, and leaves the caches as they should be.
pub fn on_device(stream: &mut Stream, before: Work<'_>, recording: &Recording) -> Result<f64> {
    before(stream)?;
    let begin = stream.timestamp()?;
    stream.replay(recording)?;
    let end = stream.timestamp()?;
    stream.synchronize()?;
    Ok(end.since(&begin)? as f64 * 1e-9)
}

/// Enqueues something that takes a while and drives everything else out of the caches.
pub fn occupy(stream: &mut Stream, ballast: &Buffer) -> Result<()> {
    stream.clear(ballast, 0, ballast.size())
}
