//! Which thread of a pool computes which task of a job.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// The number of this thread in its pool: 0 for a caller, from 1 on for workers.
    pub(super) static MEMBER: Cell<usize> = const { Cell::new(0) };
}

/// Words of the set of claimed tasks. Jobs with more tasks than bits don't fit in caches anyway.
const WORDS: usize = 8;

/// The tasks of a job that no thread has begun.
pub(super) struct Claims {
    tasks: usize,
    /// Tasks in order: the next one.
    next: AtomicUsize,
    /// Tasks near their memory: the number of threads, and the set of claimed tasks.
    threads: Option<usize>,
    taken: [AtomicU64; WORDS],
}

impl Claims {
    /// Threads claim tasks in order, so that those under way are neighbours.
    pub(super) fn in_order(tasks: usize) -> Claims {
        Claims { tasks, next: AtomicUsize::new(0), threads: None, taken: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// Each thread of a pool first claims the tasks of its own range, which is the same in every job with as many tasks. So
    /// memory that one job wrote is still in the cache of the core that reads it in the next one.
    pub(super) fn near(tasks: usize, threads: usize) -> Claims {
        Claims { threads: Some(threads).filter(|_| tasks <= 64 * WORDS), ..Claims::in_order(tasks) }
    }

    /// Where the calling thread begins to look for tasks.
    pub(super) fn begin(&self) -> usize {
        self.threads.map_or(0, |threads| MEMBER.get() % threads * self.tasks / threads)
    }

    /// Claims a task, from where the thread has come to.
    pub(super) fn claim(&self, from: &mut usize) -> Option<usize> {
        if self.threads.is_none() {
            let task = self.next.fetch_add(1, Relaxed);
            return (task < self.tasks).then_some(task);
        }
        for task in (*from..self.tasks).chain(0..*from) {
            let (word, bit) = (&self.taken[task / 64], 1 << (task % 64));
            if word.load(Relaxed) & bit == 0 && word.fetch_or(bit, Relaxed) & bit == 0 {
                *from = task;
                return Some(task);
            }
        }
        None
    }

    /// Returns how many tasks no thread has claimed.
    pub(super) fn left(&self) -> usize {
        if self.threads.is_none() {
            return self.tasks.saturating_sub(self.next.load(Relaxed));
        }
        let taken: u32 = self.taken.iter().map(|word| word.load(Relaxed).count_ones()).sum();
        self.tasks.saturating_sub(taken as usize)
    }

    /// Makes all tasks claimed, so that no thread begins another one.
    pub(super) fn close(&self) {
        self.next.store(self.tasks, Relaxed);
        self.taken.iter().for_each(|word| word.store(u64::MAX, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_claimed_once_from_wherever_a_thread_begins() {
        for (tasks, threads) in [(1, 1), (1, 4), (7, 3), (60, 16), (64, 16), (65, 16), (512, 128), (513, 4)] {
            for claims in [Claims::in_order(tasks), Claims::near(tasks, threads)] {
                let (mut seen, mut from) = (vec![0; tasks], vec![0; threads]);
                for member in 0..threads {
                    MEMBER.set(member);
                    from[member] = claims.begin();
                    assert!(from[member] < tasks);
                }
                MEMBER.set(0);
                for step in 0..tasks {
                    assert_eq!(claims.left(), tasks - step);
                    seen[claims.claim(&mut from[step % threads]).unwrap()] += 1;
                }
                assert!(seen.iter().all(|&count| count == 1), "{tasks} tasks, {threads} threads: {seen:?}");
                assert_eq!((claims.left(), claims.claim(&mut 0)), (0, None));
            }
        }
    }

    #[test]
    fn a_thread_claims_its_own_range_first() {
        let claims = Claims::near(60, 16);
        MEMBER.set(5);
        let mut from = claims.begin();
        MEMBER.set(0);
        let own: Vec<_> = (0..4).map(|_| claims.claim(&mut from).unwrap()).collect();
        assert_eq!(own, [18, 19, 20, 21]);
        // A worker of a larger pool.
        MEMBER.set(21);
        assert_eq!(claims.begin(), 18);
        MEMBER.set(0);
    }

    #[test]
    fn closed_claims_give_no_task() {
        for claims in [Claims::in_order(100), Claims::near(100, 4)] {
            assert_eq!(claims.claim(&mut 0), Some(0));
            claims.close();
            assert_eq!((claims.left(), claims.claim(&mut 0)), (0, None));
        }
    }
}
