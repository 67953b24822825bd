//! The thread pool: workers claim chunks of a job from a counter, so who computes what never matters and a slow
//! neighbour costs only the chunks it holds.
//!
//! The calling thread always works on its own job and never waits for a chunk that nobody has begun. So jobs may be
//! submitted from several threads, and from inside a job, without deadlock.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Threads that work together: the caller and `threads − 1` workers.
pub struct Pool {
    threads: usize,
    shared: Mutex<Option<Running>>,
}

/// The workers of one process; after a fork, the child starts its own.
struct Running {
    process: u32,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A job came, or the pool ends.
    work: Condvar,
    /// A worker left a job.
    left: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Vec<JobPointer>,
    ended: bool,
}

/// A job on its caller's stack, which outlives every worker in it: see [`Pool::run`].
#[derive(Clone, Copy, PartialEq)]
struct JobPointer(*const Job<'static>);

// SAFETY: a Job is shared by reference between threads; its closure is Sync.
unsafe impl Send for JobPointer {}

struct Job<'a> {
    body: &'a (dyn Fn(usize, usize) + Sync),
    tasks: usize,
    next: AtomicUsize,
    /// The next participant's number; also how many ever joined.
    joined: AtomicUsize,
    /// Participants besides the caller that are inside now. Changed under the pool's lock.
    inside: AtomicUsize,
    seats: usize,
    panicked: AtomicBool,
}

impl Job<'_> {
    /// Claims and does tasks until none is left.
    fn work(&self, seat: usize) {
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= self.tasks {
                return;
            }
            (self.body)(task, seat);
        }
    }

    fn has_work(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.tasks && self.joined.load(Ordering::Relaxed) < self.seats
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool of that many threads, the caller included. Workers start with the first job that wants them.
    pub fn new(threads: usize) -> Pool {
        Pool { threads: threads.max(1), shared: Mutex::new(None) }
    }

    /// How many threads work together.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `body(task, seat)` for every task below `tasks`, spread over the threads; `seat` is below
    /// [`Pool::threads`] and no two calls have the same one at the same time. Returns when all are done. A panic in
    /// `body` is resumed here after the others have finished.
    pub fn run(&self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) {
        let seats = self.threads.min(tasks);
        let Some(shared) = (if seats > 1 { self.workers() } else { None }) else {
            (0..tasks).for_each(|task| body(task, 0));
            return;
        };
        let job = Job {
            body,
            tasks,
            next: AtomicUsize::new(0),
            joined: AtomicUsize::new(1),
            inside: AtomicUsize::new(0),
            seats,
            panicked: AtomicBool::new(false),
        };
        // The lifetime ends where `leave` below has seen the last worker out.
        let pointer = JobPointer((&raw const job).cast());
        lock(&shared.state).jobs.push(pointer);
        if seats == 2 {
            shared.work.notify_one()
        } else {
            shared.work.notify_all()
        }
        let own = catch_unwind(AssertUnwindSafe(|| job.work(0)));
        if own.is_err() {
            // Nobody begins another task of a job that has failed.
            job.next.store(tasks, Ordering::Relaxed);
        }
        // From here on no worker can join; those inside are waited for, so `job` outlives them.
        let mut state = lock(&shared.state);
        state.jobs.retain(|other| *other != pointer);
        while job.inside.load(Ordering::Acquire) > 0 {
            state = shared.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!job.panicked.load(Ordering::Relaxed), "a worker thread panicked in a kernel");
    }

    /// The workers of this process, started if need be; `None` where the system gives no thread.
    fn workers(&self) -> Option<Arc<Shared>> {
        let process = std::process::id();
        let mut running = lock(&self.shared);
        if let Some(running) = &*running
            && running.process == process
        {
            return Some(running.shared.clone());
        }
        let shared = Arc::new(Shared::default());
        let mut started = 0;
        for i in 1..self.threads {
            let shared = shared.clone();
            let spawned = std::thread::Builder::new().name(format!("adead-{i}")).spawn(move || worker(&shared));
            started += spawned.is_ok() as usize;
        }
        if started == 0 {
            return None;
        }
        // After a fork the parent's workers don't exist here: their state is forgotten, not joined.
        std::mem::forget(running.replace(Running { process, shared: shared.clone() }));
        Some(shared)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(running) = lock(&self.shared).take()
            && running.process == std::process::id()
        {
            lock(&running.shared.state).ended = true;
            running.shared.work.notify_all();
        }
    }
}

fn worker(shared: &Shared) {
    let mut state = lock(&shared.state);
    loop {
        // SAFETY: a job in the list is alive: its caller removes it under this lock before returning.
        let open = state.jobs.iter().copied().find(|job| unsafe { (*job.0).has_work() });
        let Some(pointer) = open else {
            if state.ended {
                return;
            }
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        // SAFETY: alive as above; once `inside` counts this worker, its caller waits for it to leave.
        let job = unsafe { &*pointer.0 };
        let seat = job.joined.fetch_add(1, Ordering::Relaxed);
        job.inside.fetch_add(1, Ordering::Relaxed);
        drop(state);
        if catch_unwind(AssertUnwindSafe(|| job.work(seat))).is_err() {
            job.next.store(job.tasks, Ordering::Relaxed);
            job.panicked.store(true, Ordering::Relaxed);
        }
        state = lock(&shared.state);
        job.inside.fetch_sub(1, Ordering::Release);
        shared.left.notify_all();
    }
}

/// How many threads to use when nobody says: `ADEAD_NUM_THREADS`, else what the cpuset and the cgroup quota leave.
pub fn default_threads() -> crate::error::Result<usize> {
    match std::env::var("ADEAD_NUM_THREADS") {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(threads @ 1..=1024) => Ok(threads),
            _ => crate::error::fail!(InvalidArgument, "ADEAD_NUM_THREADS is '{text}'; it must be 1 to 1024"),
        },
        _ => Ok(std::thread::available_parallelism().map_or(1, |threads| threads.get())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_task_is_done_once_and_seats_are_exclusive() {
        for threads in [1, 2, 3, 7] {
            let pool = Pool::new(threads);
            let counts: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
            let seats: Vec<AtomicBool> = (0..threads).map(|_| AtomicBool::new(false)).collect();
            for _ in 0..20 {
                pool.run(counts.len(), &|task, seat| {
                    assert!(!seats[seat].swap(true, Ordering::Acquire), "seat {seat} is taken");
                    counts[task].fetch_add(1, Ordering::Relaxed);
                    seats[seat].store(false, Ordering::Release);
                });
            }
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 20));
        }
    }

    #[test]
    fn nested_and_concurrent_jobs_finish() {
        let pool = Pool::new(3);
        let total = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pool.run(5, &|_, _| {
                            pool.run(7, &|task, _| {
                                total.fetch_add(task as u64, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 50 * 5 * 21);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        for task in [0, 99] {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(100, &|i, _| assert!(i != task, "task {task}"));
            }));
            assert!(caught.is_err());
        }
        let done = AtomicUsize::new(0);
        pool.run(100, &|_, _| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), 100);
    }
}
