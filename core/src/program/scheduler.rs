//! The task scheduler: the dependencies between steps, and the workers that take steps that are ready.
//!
//! A step waits for the step that last wrote what it reads or writes, and for the steps that read what it writes. An allocation
//! also waits for every earlier release: so in any order, no more memory is alive than at some point of the program's own order.
//! A barrier waits for all steps before it, and all steps after it wait for the barrier. A step computes the same bits whenever
//! it runs, so the order never shows in a result.

use super::lower::{Cell, Do, Step};
use crate::error::{Error, Result};
use crate::interrupt::{self, Work};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// By step: the earlier steps that it waits for, in order.
pub(super) struct Schedule {
    before: Vec<Vec<usize>>,
}

/// Sorts the list and removes duplicates. A heap does it because the scheduler uses one anyway; a sort would be five times the
/// code.
pub(super) fn in_order(list: Vec<usize>) -> Vec<usize> {
    let mut list = BinaryHeap::from(list).into_sorted_vec();
    list.dedup();
    list
}

impl Schedule {
    /// Finds the dependencies of a list of steps over this many cells.
    pub fn new(steps: &[Step], cells: usize) -> Schedule {
        #[derive(Clone, Default)]
        struct Users {
            writer: Option<usize>,
            readers: Vec<usize>,
        }
        let mut users: Vec<Users> = vec![Users::default(); cells];
        let mut before: Vec<Vec<usize>> = Vec::with_capacity(steps.len());
        let (mut allocation, mut releases) = (None, Vec::new());
        let (mut barrier, mut since_barrier) = (None, 0);
        for (i, step) in steps.iter().enumerate() {
            let mut waits: Vec<usize> = Vec::new();
            waits.extend(barrier);
            step.action.cells(|cell: Cell, written| {
                let users = &mut users[cell];
                waits.extend(users.writer);
                if written {
                    waits.append(&mut users.readers);
                    users.writer = Some(i);
                } else {
                    users.readers.push(i);
                }
            });
            match step.action {
                Do::Allocate { .. } => {
                    waits.extend(allocation.replace(i));
                    waits.append(&mut releases);
                }
                Do::Release(_) => releases.push(i),
                Do::Barrier => {
                    waits.extend(since_barrier..i);
                    (barrier, since_barrier) = (Some(i), i + 1);
                }
                _ => {}
            }
            // A step that reads and writes the same cell found itself.
            waits.retain(|other| *other != i);
            before.push(in_order(waits));
        }
        Schedule { before }
    }

    /// The steps that a step waits for.
    pub fn before(&self, step: usize) -> &[usize] {
        &self.before[step]
    }

    /// Calls `body` for every step in the program's order. Stops at the first error.
    pub fn run_in_order(&self, body: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        (0..self.before.len()).try_for_each(body)
    }

    /// Calls `body` for every step as soon as its dependencies are done, on this many threads. Returns the error of the first
    /// failing step in the program's order, as if the steps had run in order.
    pub fn run_parallel(&self, workers: usize, body: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.before.len()];
        let mut state = State { end: self.before.len(), ..State::default() };
        for (i, before) in self.before.iter().enumerate() {
            before.iter().for_each(|&other| after[other].push(i));
            state.waiting.push(before.len());
            if before.is_empty() {
                state.ready.push(Reverse(i));
            }
        }
        let shared = Progress { state: Mutex::new(state), changed: Condvar::new() };
        let steps = |work: Work| {
            std::thread::scope(|scope| {
                for i in 1..workers {
                    let worker = std::thread::Builder::new().name(format!("adead-program-{i}"));
                    // If a thread can't be started, fewer threads do the same work.
                    if worker.spawn_scoped(scope, || work.join(|| shared.work(&after, body))).is_err() {
                        break;
                    }
                }
                work.join(|| shared.work(&after, body));
            });
        };
        if interrupt::is_possible() {
            Work::shared(steps)?
        } else {
            steps(Work::WHOLE)
        }
        match shared.lock().error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct State {
    /// By step: the number of steps that it still waits for.
    waiting: Vec<usize>,
    ready: BinaryHeap<Reverse<usize>>,
    running: usize,
    /// Steps from this one on don't begin any more. In the end this is the first step that failed.
    end: usize,
    error: Option<Error>,
}

struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, after: &[Vec<usize>], body: &(dyn Fn(usize) -> Result<()> + Sync)) {
        let mut state = self.lock();
        loop {
            // The lowest ready step. If it is past the end, so are the others.
            let next = state.ready.peek().map(|step| step.0).filter(|&step| step < state.end);
            let Some(step) = next else {
                if state.running == 0 {
                    return;
                }
                if !interrupt::is_possible() {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                // This thread must ask its caller. Running steps of other threads see only the flag that this sets.
                drop(state);
                let stopped = interrupt::is_stopped();
                state = self.lock();
                if stopped {
                    state.end = 0;
                }
                if state.running > 0 {
                    let waited = self.changed.wait_timeout(state, Duration::from_millis(20));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                continue;
            };
            state.ready.pop();
            state.running += 1;
            drop(state);
            let running = Running(self);
            let result = body(step);
            state = self.lock();
            match result {
                Ok(()) => {
                    for &other in &after[step] {
                        state.waiting[other] -= 1;
                        if state.waiting[other] == 0 {
                            state.ready.push(Reverse(other));
                        }
                    }
                }
                // Steps before this one still run, so the error of the first failing step in order is reported.
                Err(error) if step < state.end => (state.end, state.error) = (step, Some(error)),
                Err(_) => {}
            }
            drop(state);
            drop(running);
            state = self.lock();
        }
    }
}

/// A running step. When it ends or panics, it wakes the other workers.
struct Running<'a>(&'a Progress);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        if std::thread::panicking() {
            // No step begins any more. Joining the threads resumes the panic.
            state.end = 0;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn steps(actions: Vec<Do>) -> Vec<Step> {
        actions.into_iter().enumerate().map(|(instruction, action)| Step { instruction, action }).collect()
    }

    #[test]
    fn reads_and_writes_order_steps() {
        let copy = |from, to| Do::Copy { from, to, bytes: 4 };
        let schedule = Schedule::new(&steps(vec![copy(0, 1), copy(0, 2), copy(1, 3), copy(2, 3), copy(4, 0)]), 5);
        assert!(schedule.before(0).is_empty());
        assert!(schedule.before(1).is_empty());
        assert_eq!(schedule.before(2), [0]);
        assert_eq!(schedule.before(3), [1, 2], "written after it was written");
        assert_eq!(schedule.before(4), [0, 1], "written after it was read");
    }

    #[test]
    fn allocations_wait_for_releases_and_barriers_for_all() {
        let allocate = |cell| Do::Allocate { cell, zeroed: true };
        let list = vec![allocate(0), allocate(1), Do::Release(0), allocate(2), Do::Barrier, Do::Nothing];
        let schedule = Schedule::new(&steps(list), 3);
        assert_eq!(schedule.before(3), [1, 2]);
        assert_eq!(schedule.before(4), [0, 1, 2, 3]);
        assert_eq!(schedule.before(5), [4]);
    }

    #[test]
    fn the_first_error_in_order_is_reported() {
        let schedule = Schedule::new(&steps((0..40).map(|_| Do::Nothing).collect()), 0);
        for _ in 0..50 {
            let begun = AtomicUsize::new(0);
            let result = schedule.run_parallel(4, &|step| {
                begun.fetch_add(1, Ordering::Relaxed);
                if step % 10 == 7 {
                    crate::error::fail!(Internal, "{step}");
                }
                Ok(())
            });
            assert_eq!(result.unwrap_err().message(), "7");
            assert!(begun.into_inner() >= 8);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_nobody_waits_for_ever() {
        let copies = (0..20).map(|i| Do::Copy { from: i, to: i + 1, bytes: 1 }).collect();
        let schedule = Schedule::new(&steps(copies), 21);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = schedule.run_parallel(3, &|step| {
                assert_ne!(step, 5, "on purpose");
                Ok(())
            });
        }));
        assert!(caught.is_err());
    }
}
