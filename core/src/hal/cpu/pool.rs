//! The thread pool. Threads claim a job's tasks one by one ([`claims`]). So results don't depend on which thread computes
//! a task, and a slow thread delays only the tasks that it holds.
//!
//! The calling thread always works on its own job, and never waits for a task that no thread has begun. So several
//! threads can submit jobs, and a job can submit jobs, without deadlock.
//!
//! An idle worker polls for the next job for some microseconds before it sleeps, and a caller polls for its last
//! workers. So a job that follows soon starts without a system call. Threads don't poll while more of the process's
//! pool threads are awake than it has processors.

mod claims;
mod crew;

use crate::error::Result;
use crate::fpenv::default_environment;
use crate::host::{MOST_THREADS, available_threads};
use crate::interrupt::{self, Work};
use claims::Claims;
use crew::{AWAKE, Awake, Crew, Job, JobPointer, State, WORKS_FOR, lock, worker};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How long a caller polls for its last workers: `LATE` plus a few times the duration of a task, at most `LATEST`. A
/// worker that takes longer is not running, perhaps because the caller has its processor.
const LATE: Duration = Duration::from_micros(10);
const LATEST: Duration = Duration::from_micros(500);

/// Whether workers join a job without the lock where they can. The smallest library does without, which saves 600 bytes.
const SLOT: bool = cfg!(feature = "avx512");

/// The process that [`AWAKE`] counts in. A fork copies the count but not the threads.
static COUNTED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether this thread computes without help; see [`single_threaded`].
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, and computes all operations that this thread begins on this thread alone. For programs that divide
/// their work among their own threads: dividing the operations again would only move memory from core to core.
pub fn single_threaded<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    work()
}

/// Threads that work together: the caller and `threads - 1` workers.
pub struct Pool {
    threads: usize,
    /// Comes from `Box::into_raw`. Only a forked child replaces it, and never frees what it replaced.
    shared: AtomicPtr<Arc<Crew>>,
}

impl Pool {
    /// Makes a pool of `threads` threads, including the caller. Workers start with the first job that needs them.
    pub fn new(threads: usize) -> Pool {
        Pool { threads: threads.max(1), shared: AtomicPtr::new(Crew::new(crate::process::id())) }
    }

    /// Returns how many threads work on what this thread begins.
    pub fn threads(&self) -> usize {
        if ALONE.get() { 1 } else { self.threads }
    }

    /// Calls `body(task, seat)` for every task below `tasks`, on several threads, and returns when all calls have
    /// finished. `seat` is below [`Pool::threads`], and no two calls have the same seat at the same time. A panic in
    /// `body` is resumed here after all other calls have finished.
    pub fn run(&self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) {
        self.run_as(Work::WHOLE, tasks, Claims::in_order(tasks), body);
    }

    /// Does as [`Pool::run`], for work that may be ended early ([`interruptible`](crate::interruptible)). It then
    /// returns an error, and some tasks were not run or not finished.
    pub fn try_run(&self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
        self.try_run_as(tasks, Claims::in_order(tasks), body)
    }

    /// Does as [`Pool::try_run`], for tasks that are parts of a memory in order: the first tasks have its first part, and so on.
    /// Where they can, threads get the same parts in every job.
    pub fn try_run_near(&self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
        self.try_run_as(tasks, Claims::near(tasks, self.threads), body)
    }

    fn try_run_as(&self, tasks: usize, claims: Claims, body: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
        if !interrupt::is_possible() {
            self.run_as(Work::WHOLE, tasks, claims, body);
            return Ok(());
        }
        Work::shared(|work| self.run_as(work, tasks, claims, body))
    }

    fn run_as(&self, work: Work, tasks: usize, claims: Claims, body: &(dyn Fn(usize, usize) + Sync)) {
        let seats = self.threads().min(tasks);
        let alone = || {
            if !work.can_end() && !interrupt::is_possible() {
                return (0..tasks).for_each(|task| body(task, 0));
            }
            work.join(|| (0..tasks).take_while(|_| !interrupt::is_stopped()).for_each(|task| body(task, 0)));
        };
        if seats <= 1 {
            return alone();
        }
        // Only the calling thread asks whether to stop. Workers might finish everything before it gets to that.
        if work.can_end() && work.join(interrupt::is_stopped) {
            return;
        }
        let shared = self.shared();
        let _awake = Awake::new();
        let mut state = lock(&shared.state);
        if state.workers.is_empty() && !self.start(shared, &mut state) {
            drop(state);
            return alone();
        }
        let job = Job {
            body,
            claims,
            joined: AtomicUsize::new(1),
            inside: AtomicUsize::new(0),
            seats,
            panicked: AtomicBool::new(false),
            work,
        };
        // The pointer is used only until the last worker has left, below.
        let pointer = JobPointer((&raw const job).cast());
        state.jobs.push(pointer);
        let (slot, own) = (&shared.news.slot, pointer.0.cast_mut());
        let in_slot =
            SLOT && slot.compare_exchange(std::ptr::null_mut(), own, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        shared.announce(state, in_slot);
        let begin = Instant::now();
        let own = catch_unwind(AssertUnwindSafe(|| job.work(0)));
        let task = begin.elapsed() / own.as_ref().map_or(1, |&done| done.max(1));
        if own.is_err() {
            // No thread begins another task of a job that has failed.
            job.claims.close();
        }
        // From here on no worker can join, and the caller waits for those inside. So `job` outlives them.
        lock(&shared.state).jobs.retain(|other| *other != pointer);
        if in_slot {
            shared.news.clear();
        }
        if !shared.look_out((LATE + 3 * task).min(LATEST), || job.inside.load(Ordering::Acquire) == 0) {
            let mut state = lock(&shared.state);
            // Sequentially consistent with a leaving worker: either it sees this caller waiting, or this caller sees
            // that it has left.
            shared.waiting.fetch_add(1, Ordering::SeqCst);
            while job.inside.load(Ordering::SeqCst) > 0 {
                if !work.can_end() {
                    state = shared.left.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                // Only this thread asks whether to stop. The question may run code that needs the pool, so the lock is
                // released.
                drop(shared.left.wait_timeout(state, interrupt::EVERY));
                work.join(interrupt::is_stopped);
                state = lock(&shared.state);
            }
            shared.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!job.panicked.load(Ordering::Relaxed), "a worker thread panicked in a kernel");
    }

    /// Ends the workers and waits until they have finished their tasks. The next job starts new ones.
    pub fn trim(&self) {
        // SAFETY: only dropping the pool frees it.
        let shared = unsafe { &*self.shared.load(Ordering::Acquire) };
        // A forked child has no workers, and a thread that exists only in the parent may hold the lock.
        if shared.process != crate::process::id() {
            return;
        }
        let mut state = lock(&shared.state);
        state.generation += 1;
        let workers = std::mem::take(&mut state.workers);
        shared.news.locked.fetch_add(1, Ordering::Release);
        shared.news.all.fetch_add(1, Ordering::Release);
        drop(state);
        shared.work.notify_all();
        // A worker that drops the last user of its own pool can't wait for itself.
        if !std::ptr::eq(WORKS_FOR.get(), &**shared) {
            // A task's panic was caught, and the job's caller was told.
            workers.into_iter().for_each(|worker| drop(worker.join()));
        }
    }

    /// Returns the state that this process's workers share. A forked child makes a new one: it has none of its parent's
    /// workers, and one of them may hold a lock forever.
    fn shared(&self) -> &Arc<Crew> {
        let process = crate::process::id();
        let before = self.shared.load(Ordering::Acquire);
        // SAFETY: only dropping the pool frees it.
        let shared = unsafe { &*before };
        if shared.process == process {
            return shared;
        }
        let new = Crew::new(process);
        match self.shared.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: no other thread has seen `new`. `other` is as above.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }

    /// Starts the workers. Returns whether the system gave any thread.
    #[cold]
    fn start(&self, shared: &Arc<Crew>, state: &mut State) -> bool {
        let before = COUNTED.swap(shared.process, Ordering::Relaxed);
        if before != 0 && before != shared.process {
            // In a forked child, only the caller is awake.
            AWAKE.store(1, Ordering::Relaxed);
        }
        for i in 1..self.threads {
            let (shared, generation) = (shared.clone(), state.generation);
            let worker = move || default_environment(|| worker(&shared, generation, i));
            if let Ok(handle) = std::thread::Builder::new().name(format!("adead-{i}")).spawn(worker) {
                state.workers.push(handle);
            }
        }
        !state.workers.is_empty()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.trim();
        // SAFETY: it comes from `Box::into_raw`, and the pool was its only owner.
        let shared = unsafe { Box::from_raw(*self.shared.get_mut()) };
        if shared.process != crate::process::id() {
            // In a forked child, the state of the parent's threads and locks is unknown.
            std::mem::forget(shared);
        }
    }
}

/// Returns the number of threads to use by default: `ADEAD_NUM_THREADS`, else what the cpuset and the cgroup quota
/// allow.
pub fn default_threads() -> crate::error::Result<usize> {
    match std::env::var("ADEAD_NUM_THREADS") {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(threads @ 1..=MOST_THREADS) => Ok(threads),
            _ => crate::error::fail!(InvalidArgument, "ADEAD_NUM_THREADS is '{text}'; it must be 1 to {MOST_THREADS}"),
        },
        _ => Ok(available_threads()),
    }
}

#[cfg(test)]
mod tests;
