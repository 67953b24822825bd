//! Divides batches among several devices. Each computes whole batches, because the products of one batch are too small to divide.

use adead::{Error, Result, Status};
use std::collections::VecDeque;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A device that claims and computes batches.
pub(crate) trait Worker: Sync {
    /// A batch in flight.
    type Sent;
    /// The result of a batch.
    type Done: Send;
    /// Whether the device is slow compared with the others. It then takes batches from the end, where they are short.
    fn is_slow(&self) -> bool;
    /// The number of batches in flight at once, at least 1.
    fn depth(&self) -> usize;
    fn start(&self, batch: usize) -> Result<Self::Sent>;
    fn wait(&self, batch: usize, sent: Self::Sent) -> Result<Self::Done>;
}

/// The unclaimed batches, and the speed of each device so far.
struct Queue<'a> {
    /// The cost of each batch, in any unit.
    costs: &'a [f64],
    first: usize,
    end: usize,
    left: f64,
    /// The cost per second of each device; 0 until it is known.
    rates: Vec<f64>,
}

impl Queue<'_> {
    fn new(costs: &[f64], devices: usize) -> Queue<'_> {
        Queue { costs, first: 0, end: costs.len(), left: costs.iter().sum(), rates: vec![0.0; devices] }
    }

    /// Returns the next batch for a device. A slow device gets none if the others would finish all remaining batches sooner than it
    /// would finish this one.
    fn claim(&mut self, device: usize, slow: bool) -> Option<usize> {
        if self.first == self.end {
            return None;
        }
        let batch = if slow { self.end - 1 } else { self.first };
        if slow {
            let others: f64 = self.rates.iter().enumerate().filter(|(i, _)| *i != device).map(|(_, rate)| rate).sum();
            let own = self.rates[device];
            // Before it is known how fast it is, one batch, where there are some for everyone.
            let waits = if own > 0.0 { others > 0.0 && self.costs[batch] / own > self.left / others } else { false };
            if waits || own == 0.0 && self.end - self.first < 2 * self.rates.len() {
                return None;
            }
            self.end -= 1;
        } else {
            self.first += 1;
        }
        self.left -= self.costs[batch];
        Some(batch)
    }
}

/// Has `workers` do all batches, each of which costs so much, and gives what they come to to `finish`, on this thread, as it comes.
/// The first error of any ends it and is returned. A panic of a worker goes on here.
pub(crate) fn divide<W: Worker>(
    workers: &[W],
    costs: &[f64],
    mut finish: impl FnMut(usize, W::Done) -> Result<()>,
) -> Result<()> {
    let queue = Mutex::new(Queue::new(costs, workers.len()));
    let mut done = 0;
    std::thread::scope(|scope| {
        let (give, results) = sync_channel(2 * workers.len());
        for (device, worker) in workers.iter().enumerate() {
            let (give, queue) = (give.clone(), &queue);
            let work = move || {
                let each = |batch: usize, result: Result<W::Done>| {
                    let failed = result.is_err();
                    // Nobody listens any more once something failed.
                    give.send((batch, result)).is_ok() && !failed
                };
                run(device, worker, queue, &each);
            };
            let name = format!("adead-batches-{device}");
            if let Err(error) = std::thread::Builder::new().name(name).spawn_scoped(scope, work) {
                // The others do it all, if there are any that do.
                if device == 0 {
                    return Err(Error::new(Status::Io, format!("no thread can be started: {error}")));
                }
                break;
            }
        }
        drop(give);
        results.into_iter().try_for_each(|(batch, result)| {
            done += 1;
            finish(batch, result?)
        })
    })?;
    if done < costs.len() {
        return Err(Error::new(Status::Internal, format!("{done} of {} batches were computed", costs.len())));
    }
    Ok(())
}

/// Claims and computes batches until none are left or `each` ends the loop.
fn run<W: Worker>(device: usize, worker: &W, queue: &Mutex<Queue<'_>>, each: &dyn Fn(usize, Result<W::Done>) -> bool) {
    let queue = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut under_way, mut begin, mut cost, mut warm) = (VecDeque::new(), Instant::now(), 0.0, false);
    loop {
        let claimed = if under_way.len() < worker.depth() { queue().claim(device, worker.is_slow()) } else { None };
        if let Some(batch) = claimed {
            match worker.start(batch) {
                Ok(sent) => under_way.push_back((batch, sent)),
                Err(error) => {
                    each(batch, Err(error));
                    return;
                }
            }
            continue;
        }
        let Some((batch, sent)) = under_way.pop_front() else { return };
        let result = worker.wait(batch, sent);
        {
            let mut queue = queue();
            cost += queue.costs[batch];
            queue.rates[device] = cost / begin.elapsed().as_secs_f64().max(1e-9);
        }
        // What is made at first use says nothing.
        if !warm {
            (warm, begin, cost) = (true, Instant::now(), 0.0);
        }
        if !each(batch, result) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Fake {
        slow: bool,
        depth: usize,
        takes: Duration,
        fails: Option<usize>,
    }

    impl Worker for Fake {
        type Sent = usize;
        type Done = usize;

        fn is_slow(&self) -> bool {
            self.slow
        }

        fn depth(&self) -> usize {
            self.depth
        }

        fn start(&self, batch: usize) -> Result<usize> {
            if self.fails == Some(batch) {
                return Err(Error::new(Status::InvalidArgument, format!("batch {batch}")));
            }
            Ok(batch * 2)
        }

        fn wait(&self, _: usize, sent: usize) -> Result<usize> {
            std::thread::sleep(self.takes);
            Ok(sent)
        }
    }

    fn fake(slow: bool, depth: usize, micros: u64) -> Fake {
        Fake { slow, depth, takes: Duration::from_micros(micros), fails: None }
    }

    #[test]
    fn every_batch_is_done_once() {
        for count in [0, 1, 2, 5, 40] {
            let workers = [fake(false, 3, 50), fake(false, 3, 50), fake(true, 1, 500)];
            let mut seen = vec![0; count];
            let done = divide(&workers, &vec![1.0; count], |batch, twice| {
                assert_eq!(twice, 2 * batch);
                seen[batch] += 1;
                Ok(())
            });
            assert!(done.is_ok());
            assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
        }
    }

    #[test]
    fn an_error_ends_it() {
        let mut workers = [fake(false, 2, 10), fake(true, 1, 10)];
        workers[0].fails = Some(7);
        let found = divide(&workers, &[1.0; 1000], |_, _| Ok(()));
        assert_eq!(found.map_err(|error| error.message().to_owned()), Err("batch 7".to_owned()));
        workers[0].fails = None;
        let mut taken = 0;
        let found = divide(&workers, &[1.0; 1000], |_, _| {
            taken += 1;
            if taken == 5 { Err(Error::new(Status::Io, "enough")) } else { Ok(()) }
        });
        assert_eq!((found.map_err(|error| error.message().to_owned()), taken), (Err("enough".to_owned()), 5));
    }

    #[test]
    fn a_slow_device_takes_what_it_has_done_before_the_others_end() {
        let costs = [8.0, 8.0, 4.0, 4.0, 2.0, 2.0];
        let mut queue = Queue::new(&costs, 2);
        assert_eq!(queue.claim(1, true), Some(5), "one to see how fast it is");
        assert_eq!(queue.claim(0, false), Some(0));
        // 18 are left: ten seconds for the fast one, of which the slow one needs four for a batch.
        queue.rates = vec![1.8, 0.5];
        assert_eq!(queue.claim(1, true), Some(4));
        // Two thirds of a second: before that it would not be done.
        queue.rates = vec![24.0, 0.5];
        assert_eq!(queue.claim(1, true), None);
        assert_eq!([queue.claim(0, false), queue.claim(0, false), queue.claim(0, false)], [Some(1), Some(2), Some(3)]);
        assert_eq!(queue.claim(0, false), None);
        // Where there are few, it gets none.
        assert_eq!(Queue::new(&costs[..3], 2).claim(1, true), None);
        // A batch is done by somebody, though nobody is fast.
        let mut alone = Queue::new(&costs, 1);
        alone.rates = vec![0.1];
        assert_eq!(alone.claim(0, true), Some(5));
    }
}
