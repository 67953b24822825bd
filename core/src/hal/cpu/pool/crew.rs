//! The workers of a pool: the jobs that they share with callers, and how they find work, wait for it and end.

use crate::host::available_threads;
use crate::interrupt::{self, Work};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an idle worker polls before it sleeps: a few times the cost of a wake-up.
const IDLE: Duration = Duration::from_micros(50);

/// The threads of this process, in all pools, that work on a job or poll for one.
pub(super) static AWAKE: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// The pool whose worker this thread is.
    pub(super) static WORKS_FOR: Cell<*const Crew> = const { Cell::new(std::ptr::null()) };
}

/// The state that the workers of one process share.
pub(super) struct Crew {
    pub(super) process: u32,
    /// The number of processors that the process may use.
    pub(super) processors: isize,
    pub(super) state: Mutex<State>,
    /// Signalled when a job arrives, or when workers must end.
    pub(super) work: Condvar,
    /// Signalled when a worker has left a job whose caller waits.
    pub(super) left: Condvar,
    /// The number of callers that sleep until their last worker has left.
    pub(super) waiting: AtomicUsize,
    /// Changes, under the state's lock, whenever a worker must look at the state.
    pub(super) news: News,
}

/// Alone in its cache line, because idle workers poll it all the time.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct News(pub(super) AtomicUsize);

#[derive(Default)]
pub(super) struct State {
    pub(super) jobs: Vec<JobPointer>,
    /// The workers of this generation.
    pub(super) workers: Vec<JoinHandle<()>>,
    /// Workers of an earlier generation end.
    pub(super) generation: usize,
    /// The number of workers that poll for a job.
    pub(super) watching: usize,
    /// The number of workers that sleep.
    pub(super) asleep: usize,
}

/// A job on its caller's stack. It outlives every worker inside it; see `Pool::run`.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct JobPointer(pub(super) *const Job<'static>);

// SAFETY: threads share a `Job` by reference. Its closure is `Sync`, and so are its other fields.
unsafe impl Send for JobPointer {}

pub(super) struct Job<'a> {
    pub(super) body: &'a (dyn Fn(usize, usize) + Sync),
    pub(super) tasks: usize,
    pub(super) next: AtomicUsize,
    /// The number of threads that have joined, and so the next one's seat. Changes under the pool's lock.
    pub(super) joined: AtomicUsize,
    /// The number of workers that are inside now. Grows only under the pool's lock.
    pub(super) inside: AtomicUsize,
    pub(super) seats: usize,
    pub(super) panicked: AtomicBool,
    /// What can end the job early.
    pub(super) work: Work,
}

impl Job<'_> {
    /// Claims and runs tasks until none is left. Returns how many it ran.
    pub(super) fn work(&self, seat: usize) -> u32 {
        self.work.join(|| {
            let mut done = 0;
            loop {
                let task = self.next.fetch_add(1, Ordering::Relaxed);
                if task >= self.tasks {
                    return done;
                }
                if interrupt::is_stopped() {
                    // No thread begins another task.
                    self.next.store(self.tasks, Ordering::Relaxed);
                    return done;
                }
                (self.body)(task, seat);
                done += 1;
            }
        })
    }

    /// Returns how many more participants the job has seats and tasks for.
    pub(super) fn wants(&self) -> usize {
        let free = self.seats - self.joined.load(Ordering::Relaxed);
        free.min(self.tasks.saturating_sub(self.next.load(Ordering::Relaxed)))
    }
}

/// Counts a thread as awake while it lives.
pub(super) struct Awake;

impl Awake {
    pub(super) fn new() -> Awake {
        AWAKE.fetch_add(1, Ordering::Relaxed);
        Awake
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        AWAKE.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew {
    pub(super) fn new(process: u32) -> *mut Arc<Crew> {
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

    /// Polls until `done`, for at most `longest`. Stops earlier if more threads are awake than there are processors.
    /// Returns whether it is done.
    pub(super) fn look_out(&self, longest: Duration, done: impl Fn() -> bool) -> bool {
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

    /// Tells polling workers of the news, and wakes as many sleeping ones as the open jobs have room for.
    pub(super) fn announce(&self, state: MutexGuard<'_, State>) {
        self.news.0.fetch_add(1, Ordering::Release);
        // SAFETY: a job in the list is alive, because its caller removes it under this lock before it returns.
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

pub(super) fn worker(shared: &Crew, generation: usize) {
    WORKS_FOR.set(shared);
    let mut awake = Some(Awake::new());
    let mut state = lock(&shared.state);
    loop {
        // SAFETY: a job in the list is alive, because its caller removes it under this lock before it returns.
        let open = state.jobs.iter().copied().find(|job| unsafe { (*job.0).wants() > 0 });
        if let Some(pointer) = open {
            // SAFETY: alive as above. Once `inside` counts this worker, the caller waits until it leaves.
            let job = unsafe { &*pointer.0 };
            let seat = job.joined.fetch_add(1, Ordering::Relaxed);
            job.inside.fetch_add(1, Ordering::Relaxed);
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| job.work(seat))).is_err() {
                job.next.store(job.tasks, Ordering::Relaxed);
                job.panicked.store(true, Ordering::Relaxed);
            }
            // After this the caller may return, and `job` may be gone.
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
