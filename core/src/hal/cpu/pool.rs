//! The thread pool: workers claim tasks of a job from a counter, so who computes what never matters and a slow
//! neighbour costs only the tasks it holds.
//!
//! The calling thread always works on its own job and never waits for a task that nobody has begun. So jobs may be
//! submitted from several threads, and from inside a job, without deadlock.
//!
//! A worker that has nothing to do looks out for the next job for some microseconds before it sleeps, and a caller looks
//! out for its last workers likewise: a job that follows soon is handed over without a system call. Nobody does so where
//! more of the process's pool threads are awake than there are processors to run them.

use crate::error::Result;
use crate::fpenv::default_environment;
use crate::host::{MOST_THREADS, available_threads};
use crate::interrupt::{self, Work};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a worker looks out for a job before it sleeps: some times what being woken takes.
const IDLE: Duration = Duration::from_micros(50);

/// How long a caller looks out for its last workers besides some times what a task took, and at most. One that needs
/// longer is not running, perhaps for want of the caller's processor.
const LATE: Duration = Duration::from_micros(10);
const LATEST: Duration = Duration::from_micros(500);

/// Threads of this process that work on a job or look out for one, in all pools.
static AWAKE: AtomicIsize = AtomicIsize::new(0);

/// The process that [`AWAKE`] counts in: a fork copies the number and not the threads.
static COUNTED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whose worker this thread is.
    static WORKS_FOR: Cell<*const Crew> = const { Cell::new(std::ptr::null()) };

    /// Whether this thread asks nobody for help: see [`single_threaded`].
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` with all operations that this thread begins computed by this thread alone. For programs that divide their work
/// among threads of their own, where operations that were divided once more would only hand memory from core to core.
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

/// Threads that work together: the caller and `threads − 1` workers.
pub struct Pool {
    threads: usize,
    /// From `Box::into_raw`. Only a forked child replaces it, and what it replaces is never freed.
    shared: AtomicPtr<Arc<Crew>>,
}

/// What the workers of one process share.
struct Crew {
    process: u32,
    /// Processors that the process may use.
    processors: isize,
    state: Mutex<State>,
    /// A job came, or workers are to end.
    work: Condvar,
    /// A worker left a job whose caller waits.
    left: Condvar,
    /// Callers that sleep until their last worker has left.
    waiting: AtomicUsize,
    /// Changes with every reason to look at the state; changed under its lock.
    news: News,
}

/// Alone in its cache line, as it is looked at all the time.
#[derive(Default)]
#[repr(align(128))]
struct News(AtomicUsize);

#[derive(Default)]
struct State {
    jobs: Vec<JobPointer>,
    /// The workers that were started for this generation.
    workers: Vec<JoinHandle<()>>,
    /// Workers of an earlier one end.
    generation: usize,
    /// Workers that look out for a job.
    watching: usize,
    /// Workers that sleep.
    asleep: usize,
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
    /// The next participant's number; also how many ever joined. Changed under the pool's lock.
    joined: AtomicUsize,
    /// Participants besides the caller that are inside now. Grows under the pool's lock.
    inside: AtomicUsize,
    seats: usize,
    panicked: AtomicBool,
    /// What ends it early.
    work: Work,
}

impl Job<'_> {
    /// Claims and does tasks until none is left. How many it did.
    fn work(&self, seat: usize) -> u32 {
        self.work.join(|| {
            let mut done = 0;
            loop {
                let task = self.next.fetch_add(1, Ordering::Relaxed);
                if task >= self.tasks {
                    return done;
                }
                if interrupt::is_stopped() {
                    // Nobody begins another one.
                    self.next.store(self.tasks, Ordering::Relaxed);
                    return done;
                }
                (self.body)(task, seat);
                done += 1;
            }
        })
    }

    /// Participants that it still has room and work for.
    fn wants(&self) -> usize {
        let free = self.seats - self.joined.load(Ordering::Relaxed);
        free.min(self.tasks.saturating_sub(self.next.load(Ordering::Relaxed)))
    }
}

/// Counts a thread as awake while it lives.
struct Awake;

impl Awake {
    fn new() -> Awake {
        AWAKE.fetch_add(1, Ordering::Relaxed);
        Awake
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        AWAKE.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew {
    fn new(process: u32) -> *mut Arc<Crew> {
        Box::into_raw(Box::new(Arc::new(Crew {
            process,
            processors: available_threads() as isize,
            state: Mutex::default(),
            work: Condvar::new(),
            left: Condvar::new(),
            waiting: AtomicUsize::new(0),
            news: News::default(),
        })))
    }

    /// Looks out until `done`, but not for longer than that and not where threads crowd the processors. Whether it is done.
    fn look_out(&self, longest: Duration, done: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        loop {
            for _ in 0..16 {
                if done() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if AWAKE.load(Ordering::Relaxed) > self.processors || begin.elapsed() >= longest {
                return done();
            }
        }
    }

    /// Tells watching workers, and wakes as many others as the open jobs have room for.
    fn announce(&self, state: MutexGuard<'_, State>) {
        self.news.0.fetch_add(1, Ordering::Release);
        // SAFETY: a job in the list is alive: its caller removes it under this lock before returning.
        let wanted: usize = state.jobs.iter().map(|job| unsafe { (*job.0).wants() }).sum();
        let (wake, asleep) = (wanted.saturating_sub(state.watching), state.asleep);
        drop(state);
        if wake >= asleep {
            if asleep > 0 {
                self.work.notify_all();
            }
        } else {
            (0..wake).for_each(|_| self.work.notify_one());
        }
    }
}

impl Pool {
    /// A pool of that many threads, the caller included. Workers start with the first job that wants them.
    pub fn new(threads: usize) -> Pool {
        Pool { threads: threads.max(1), shared: AtomicPtr::new(Crew::new(crate::process::id())) }
    }

    /// How many threads work together on what this thread begins.
    pub fn threads(&self) -> usize {
        if ALONE.get() { 1 } else { self.threads }
    }

    /// Calls `body(task, seat)` for every task below `tasks`, spread over the threads; `seat` is below
    /// [`Pool::threads`] and no two calls have the same one at the same time. Returns when all are done. A panic in
    /// `body` is resumed here after the others have finished.
    pub fn run(&self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) {
        self.run_as(Work::WHOLE, tasks, body);
    }

    /// The same for work that may be ended early ([`interruptible`](crate::interruptible)): an error then, and some of the tasks
    /// were not done or not whole.
    pub fn try_run(&self, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
        if !interrupt::is_possible() {
            self.run_as(Work::WHOLE, tasks, body);
            return Ok(());
        }
        Work::shared(|work| self.run_as(work, tasks, body))
    }

    fn run_as(&self, work: Work, tasks: usize, body: &(dyn Fn(usize, usize) + Sync)) {
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
        // Only this thread asks its caller: workers might have done everything before it comes to that.
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
            tasks,
            next: AtomicUsize::new(0),
            joined: AtomicUsize::new(1),
            inside: AtomicUsize::new(0),
            seats,
            panicked: AtomicBool::new(false),
            work,
        };
        // The lifetime ends where the last worker has been seen out, below.
        let pointer = JobPointer((&raw const job).cast());
        state.jobs.push(pointer);
        shared.announce(state);
        let begin = Instant::now();
        let own = catch_unwind(AssertUnwindSafe(|| job.work(0)));
        let task = begin.elapsed() / own.as_ref().map_or(1, |&done| done.max(1));
        if own.is_err() {
            // Nobody begins another task of a job that has failed.
            job.next.store(tasks, Ordering::Relaxed);
        }
        // From here on no worker can join; those inside are waited for, so `job` outlives them.
        lock(&shared.state).jobs.retain(|other| *other != pointer);
        if !shared.look_out((LATE + 3 * task).min(LATEST), || job.inside.load(Ordering::Acquire) == 0) {
            let mut state = lock(&shared.state);
            // In one order with what a leaving worker does: it sees that it is waited for, or this that it has left.
            shared.waiting.fetch_add(1, Ordering::SeqCst);
            while job.inside.load(Ordering::SeqCst) > 0 {
                if !work.can_end() {
                    state = shared.left.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                // Nobody but this thread asks, and what is asked may want the pool.
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

    /// Ends the workers, which finish what they have begun, and waits for them. The next job starts others.
    pub fn trim(&self) {
        // SAFETY: freed only when the pool is dropped.
        let shared = unsafe { &*self.shared.load(Ordering::Acquire) };
        // In a forked child there is none, and the lock may be held by a thread that isn't there.
        if shared.process != crate::process::id() {
            return;
        }
        let mut state = lock(&shared.state);
        state.generation += 1;
        let workers = std::mem::take(&mut state.workers);
        shared.news.0.fetch_add(1, Ordering::Release);
        drop(state);
        shared.work.notify_all();
        // A worker that drops a pool's last user can't wait for itself.
        if !std::ptr::eq(WORKS_FOR.get(), &**shared) {
            // A panic in a task was caught and told.
            workers.into_iter().for_each(|worker| drop(worker.join()));
        }
    }

    /// What the workers of this process share. A forked child gets it anew: the parent's workers don't exist there, and
    /// a lock may be held by one of them for ever.
    fn shared(&self) -> &Arc<Crew> {
        let process = crate::process::id();
        let before = self.shared.load(Ordering::Acquire);
        // SAFETY: freed only when the pool is dropped.
        let shared = unsafe { &*before };
        if shared.process == process {
            return shared;
        }
        let new = Crew::new(process);
        match self.shared.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: nobody else has seen `new`; `other` as above.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }

    /// Starts the workers; whether the system gave any.
    #[cold]
    fn start(&self, shared: &Arc<Crew>, state: &mut State) -> bool {
        let before = COUNTED.swap(shared.process, Ordering::Relaxed);
        if before != 0 && before != shared.process {
            // The caller alone.
            AWAKE.store(1, Ordering::Relaxed);
        }
        for i in 1..self.threads {
            let (shared, generation) = (shared.clone(), state.generation);
            let worker = move || default_environment(|| worker(&shared, generation));
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
        // SAFETY: it is from `Box::into_raw`, and this was its owner.
        let shared = unsafe { Box::from_raw(*self.shared.get_mut()) };
        if shared.process != crate::process::id() {
            // The parent's, of whose threads and locks nothing is known here.
            std::mem::forget(shared);
        }
    }
}

fn worker(shared: &Crew, generation: usize) {
    WORKS_FOR.set(shared);
    let mut awake = Some(Awake::new());
    let mut state = lock(&shared.state);
    loop {
        // SAFETY: a job in the list is alive: its caller removes it under this lock before returning.
        let open = state.jobs.iter().copied().find(|job| unsafe { (*job.0).wants() > 0 });
        if let Some(pointer) = open {
            // SAFETY: alive as above; once `inside` counts this worker, its caller waits for it to leave.
            let job = unsafe { &*pointer.0 };
            let seat = job.joined.fetch_add(1, Ordering::Relaxed);
            job.inside.fetch_add(1, Ordering::Relaxed);
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| job.work(seat))).is_err() {
                job.next.store(job.tasks, Ordering::Relaxed);
                job.panicked.store(true, Ordering::Relaxed);
            }
            // The caller may be gone as soon as this is done.
            job.inside.fetch_sub(1, Ordering::SeqCst);
            if shared.waiting.load(Ordering::SeqCst) > 0 {
                drop(lock(&shared.state));
                shared.left.notify_all();
            }
            state = lock(&shared.state);
            continue;
        }
        if state.generation != generation {
            return;
        }
        let seen = shared.news.0.load(Ordering::Relaxed);
        let old = || shared.news.0.load(Ordering::Acquire) == seen;
        state.watching += 1;
        drop(state);
        shared.look_out(IDLE, || !old());
        state = lock(&shared.state);
        state.watching -= 1;
        if old() {
            state.asleep += 1;
            awake = None;
            while old() {
                state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.asleep -= 1;
        }
        awake.get_or_insert_with(Awake::new);
    }
}

/// How many threads to use when nobody says: `ADEAD_NUM_THREADS`, else what the cpuset and the cgroup quota leave.
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
