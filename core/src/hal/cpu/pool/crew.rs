//! The workers of a pool: the jobs that they share with callers, and how they find work, wait for it and end.

use super::SLOT;
use super::claims::{Claims, MEMBER};
use crate::host::available_threads;
use crate::interrupt::{self, Work};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering};
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
    pub(super) news: News,
    /// The number of workers that poll for a job.
    pub(super) watching: AtomicUsize,
}

/// What polling workers look at, alone in its cache lines. They join the job in the slot without the lock: with many threads and small
/// jobs, the lock took longer than the jobs.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct News {
    /// Changes, under the state's lock, whenever there is news.
    pub(super) all: AtomicUsize,
    /// Changes with `all`, for news that a worker must take the lock for: a job that found the slot taken, or the workers' end.
    pub(super) locked: AtomicUsize,
    /// One of the open jobs, or null. Its caller clears it.
    pub(super) slot: AtomicPtr<Job<'static>>,
    /// The number of workers that may have read the slot and are not inside its job yet.
    pub(super) visitors: AtomicUsize,
}

impl News {
    /// Empties the slot. When this returns, no worker will enter the job that was in it, and those that did are counted inside.
    pub(super) fn clear(&self) {
        // Sequentially consistent with `visit`: either the visitor sees the empty slot, or this thread sees the visitor.
        self.slot.store(std::ptr::null_mut(), Ordering::SeqCst);
        let mut looks = 0;
        // A visit takes some instructions, unless the worker lost its processor.
        while self.visitors.load(Ordering::SeqCst) > 0 {
            looks += 1;
            if looks % 64 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// Enters the job in the slot, if it has a seat left.
    fn visit(&self) -> Option<(&Job<'static>, usize)> {
        self.visitors.fetch_add(1, Ordering::SeqCst);
        let pointer = self.slot.load(Ordering::SeqCst);
        // SAFETY: the caller of a job in the slot clears the slot and waits for visitors before the job ends, and then for those
        // inside, whom `enter` counts.
        let found = unsafe { pointer.as_ref() }.and_then(|job| Some((job, job.enter()?)));
        self.visitors.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) jobs: Vec<JobPointer>,
    /// The workers of this generation.
    pub(super) workers: Vec<JoinHandle<()>>,
    /// Workers of an earlier generation end.
    pub(super) generation: usize,
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
    pub(super) claims: Claims,
    /// The number of threads that have joined, and so the next one's seat.
    pub(super) joined: AtomicUsize,
    /// The number of workers that are inside now. Grows only while the job is in the list, under the pool's lock, or in the slot.
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
            let (mut done, mut from) = (0, self.claims.begin());
            while let Some(task) = self.claims.claim(&mut from) {
                if interrupt::is_stopped() {
                    self.claims.close();
                    break;
                }
                (self.body)(task, seat);
                done += 1;
            }
            done
        })
    }

    /// Counts the worker that calls this inside and returns its seat, if the job wants one more.
    fn enter(&self) -> Option<usize> {
        if self.wants() == 0 {
            return None;
        }
        // Workers that come at once may count beyond the seats.
        let seat = self.joined.fetch_add(1, Ordering::Relaxed);
        if seat >= self.seats {
            return None;
        }
        self.inside.fetch_add(1, Ordering::SeqCst);
        Some(seat)
    }

    /// Returns how many more participants the job has seats and tasks for.
    pub(super) fn wants(&self) -> usize {
        let free = self.seats.saturating_sub(self.joined.load(Ordering::Relaxed));
        free.min(self.claims.left())
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
            watching: AtomicUsize::new(0),
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

    /// Tells polling workers of the news, and wakes as many sleeping ones as the open jobs have room for. `in_slot` says whether the
    /// new job is in the slot.
    pub(super) fn announce(&self, state: MutexGuard<'_, State>, in_slot: bool) {
        if !in_slot {
            self.news.locked.fetch_add(1, Ordering::Release);
        }
        self.news.all.fetch_add(1, Ordering::Release);
        // SAFETY: a job in the list is alive, because its caller removes it under this lock before it returns.
        let wanted: usize = state.jobs.iter().map(|job| unsafe { (*job.0).wants() }).sum();
        let (wake, asleep) = (wanted.saturating_sub(self.watching.load(Ordering::Relaxed)), state.asleep);
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

impl Crew {
    /// Works on a job from a seat, and leaves it.
    fn work(&self, job: &Job<'_>, seat: usize) {
        if catch_unwind(AssertUnwindSafe(|| job.work(seat))).is_err() {
            job.claims.close();
            job.panicked.store(true, Ordering::Relaxed);
        }
        // After this the caller may return, and `job` may be gone.
        job.inside.fetch_sub(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.state));
            self.left.notify_all();
        }
    }

    /// Polls for jobs in the slot and works on them. Returns when none has come for some time, or if there is news that needs the
    /// lock. `seen` is what the worker has looked at.
    fn watch(&self, seen: &mut (usize, usize)) {
        self.watching.fetch_add(1, Ordering::Relaxed);
        loop {
            if !self.look_out(IDLE, || self.news.all.load(Ordering::Acquire) != seen.0) || !SLOT {
                break;
            }
            let now = self.news.all.load(Ordering::Acquire);
            if let Some((job, seat)) = self.news.visit() {
                self.watching.fetch_sub(1, Ordering::Relaxed);
                self.work(job, seat);
                self.watching.fetch_add(1, Ordering::Relaxed);
            }
            if self.news.locked.load(Ordering::Acquire) != seen.1 {
                break;
            }
            seen.0 = now;
        }
        self.watching.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The life of a worker with this number.
pub(super) fn worker(shared: &Crew, generation: usize, member: usize) {
    WORKS_FOR.set(shared);
    MEMBER.set(member);
    let mut awake = Some(Awake::new());
    let mut state = lock(&shared.state);
    loop {
        // SAFETY: a job in the list is alive, because its caller removes it under this lock before it returns. Once `enter` counts
        // this worker inside, the caller waits until it leaves.
        let found = state.jobs.iter().find_map(|job| unsafe { &*job.0 }.enter().map(|seat| (job.0, seat)));
        if let Some((job, seat)) = found {
            drop(state);
            // SAFETY: as above.
            shared.work(unsafe { &*job }, seat);
            state = lock(&shared.state);
            continue;
        }
        if state.generation != generation {
            return;
        }
        let mut seen = (shared.news.all.load(Ordering::Relaxed), shared.news.locked.load(Ordering::Relaxed));
        drop(state);
        shared.watch(&mut seen);
        state = lock(&shared.state);
        let old = || shared.news.all.load(Ordering::Acquire) == seen.0;
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
