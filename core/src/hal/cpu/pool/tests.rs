//! Tests of the pool's promises, under everything that can happen at once.

use super::*;
use std::sync::atomic::AtomicU64;

#[test]
fn every_task_is_done_once_and_seats_are_exclusive() {
    for threads in [1, 2, 3, 7] {
        let pool = Pool::new(threads);
        let counts: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
        let seats: Vec<AtomicBool> = (0..threads).map(|_| AtomicBool::new(false)).collect();
        let body = |task: usize, seat: usize| {
            assert!(!seats[seat].swap(true, Ordering::Acquire), "seat {seat} is taken");
            counts[task].fetch_add(1, Ordering::Relaxed);
            seats[seat].store(false, Ordering::Release);
        };
        for _ in 0..20 {
            pool.run(counts.len(), &body);
            pool.try_run_near(counts.len(), &body).unwrap();
            pool.try_run_near(200, &body).unwrap();
        }
        assert!(counts[..200].iter().all(|count| count.load(Ordering::Relaxed) == 60));
        assert!(counts[200..].iter().all(|count| count.load(Ordering::Relaxed) == 40));
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
fn a_thread_that_works_alone_gets_no_help_and_leaves_others_theirs() {
    let pool = Pool::new(3);
    let own = std::thread::current().id();
    single_threaded(|| {
        assert_eq!(pool.threads(), 1);
        pool.run(100, &|_, seat| assert_eq!((seat, std::thread::current().id()), (0, own)));
        let others = std::thread::scope(|scope| scope.spawn(|| pool.threads()).join());
        assert_eq!(others.ok(), Some(3));
        single_threaded(|| assert_eq!(pool.threads(), 1));
        assert_eq!(pool.threads(), 1);
    });
    let caught = catch_unwind(AssertUnwindSafe(|| single_threaded(|| panic!("alone"))));
    assert!(caught.is_err());
    assert_eq!(pool.threads(), 3);
    // Three tasks that wait for each other finish only if three threads run them.
    let barrier = std::sync::Barrier::new(3);
    pool.run(3, &|_, _| {
        barrier.wait();
    });
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

/// Jobs of all sizes from several threads, some nested and some that panic, while workers are ended again and again.
#[test]
fn anything_at_once() {
    fn some(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) % below
    }
    fn job(pool: &Pool, seed: u64, depth: u64) -> u64 {
        let mut own = seed;
        let tasks = some(&mut own, 20);
        let total = AtomicU64::new(0);
        pool.run(tasks as usize, &|task, _| {
            let mut seed = seed ^ (task as u64 + 1) << 32;
            let nested = if depth > 0 && some(&mut seed, 4) == 0 { job(pool, seed, depth - 1) } else { 1 };
            total.fetch_add(nested, Ordering::Relaxed);
            if some(&mut seed, 50) == 0 {
                std::thread::yield_now();
            }
        });
        total.into_inner()
    }
    for threads in [2, 5] {
        let pool = Pool::new(threads);
        let alone = Pool::new(1);
        std::thread::scope(|scope| {
            for caller in 0..3 {
                let (pool, alone) = (&pool, &alone);
                scope.spawn(move || {
                    let mut seed = caller + 1;
                    for round in 0..200 {
                        let job_seed = some(&mut seed, 1 << 31);
                        assert_eq!(job(pool, job_seed, 2), job(alone, job_seed, 2));
                        match some(&mut seed, 20) {
                            0 => pool.trim(),
                            1 => std::thread::sleep(Duration::from_micros(300)),
                            2 => {
                                let caught = catch_unwind(AssertUnwindSafe(|| {
                                    pool.run(9, &|task, _| assert!(task != round % 9, "in a task"));
                                }));
                                assert!(caught.is_err());
                            }
                            _ => {}
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn workers_end_with_their_pool_and_start_again_after_a_trim() {
    let marks: Arc<()> = Arc::new(());
    thread_local!(static MARK: std::cell::RefCell<Option<Arc<()>>> = const { std::cell::RefCell::new(None) });
    let mark = |pool: &Pool| {
        // Both threads are inside at once, so one of them is the worker.
        let inside = AtomicUsize::new(0);
        pool.run(2, &|_, seat| {
            inside.fetch_add(1, Ordering::SeqCst);
            while inside.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            if seat > 0 {
                MARK.set(Some(marks.clone()));
            }
        });
    };
    let pool = Pool::new(2);
    for _ in 0..20 {
        mark(&pool);
        assert_eq!(Arc::strong_count(&marks), 2);
        pool.trim();
        assert_eq!(Arc::strong_count(&marks), 1, "the worker has ended");
    }
    mark(&pool);
    drop(pool);
    assert_eq!(Arc::strong_count(&marks), 1);
}

#[test]
fn no_thread_begins_work_that_was_ended_before() {
    let (pool, begun) = (Pool::new(4), AtomicUsize::new(0));
    let stop = crate::Interrupt::new();
    stop.set(true);
    for _ in 0..200 {
        let ended = stop.run(|| pool.try_run(100, &|_, _| _ = begun.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(ended.unwrap_err().status(), crate::Status::NotReady);
    }
    assert_eq!(begun.load(Ordering::Relaxed), 0);
}
