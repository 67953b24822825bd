//! Work that threads claim, and its results in one place.

use adead::{Error, Result, Status};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

/// Runs `work` on every item with `threads` threads, and passes each result to `finish` on this thread. The first error of either
/// ends all work and is returned. A panic of `work` continues on this thread.
pub(crate) fn spread<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: &(dyn Fn(&I) -> Result<T> + Sync),
    mut finish: impl FnMut(&I, T) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Nobody runs far ahead of who takes the results.
        let (give, results) = sync_channel(threads);
        for i in 0..threads {
            let (give, next) = (give.clone(), &next);
            let worker = move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item);
                    let failed = result.is_err();
                    // Nobody listens any more once something failed.
                    if give.send((item, result)).is_err() || failed {
                        return;
                    }
                }
            };
            let started = std::thread::Builder::new().name(format!("adead-models-{i}")).spawn_scoped(scope, worker);
            if let Err(error) = started {
                // The others do it all.
                if i == 0 {
                    return Err(Error::new(Status::Io, format!("no thread can be started: {error}")));
                }
                break;
            }
        }
        drop(give);
        // Of a thread that panicked less comes, and the scope goes on with its panic.
        results.into_iter().try_for_each(|(item, result)| finish(item, result?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once() {
        for (count, threads) in [(0, 2), (1, 3), (100, 2), (1000, 7)] {
            let items: Vec<usize> = (0..count).collect();
            let mut seen = vec![0; count];
            let done = spread(&items, threads, &|&i| Ok(i * 2), |&i, twice| {
                seen[i] += 1;
                assert_eq!(twice, 2 * i);
                Ok(())
            });
            assert!(done.is_ok());
            assert!(seen.iter().all(|&n| n == 1), "{count} items, {threads} threads");
        }
    }

    #[test]
    fn an_error_ends_it() {
        let items: Vec<usize> = (0..10_000).collect();
        let fault = |i: usize| Error::new(Status::InvalidArgument, format!("item {i}"));
        let work = |&i: &usize| if i == 5 { Err(fault(i)) } else { Ok(()) };
        let found = spread(&items, 3, &work, |_, ()| Ok(()));
        assert_eq!(found.map_err(|error| error.message().to_owned()), Err("item 5".to_owned()));

        let mut taken = 0;
        let found = spread(&items, 3, &|&i| Ok(i), |_, _| {
            taken += 1;
            if taken == 20 { Err(fault(taken)) } else { Ok(()) }
        });
        assert_eq!(found.map_err(|error| error.message().to_owned()), Err("item 20".to_owned()));
        assert_eq!(taken, 20);
    }

    #[test]
    fn a_panic_goes_on() {
        let items: Vec<usize> = (0..100).collect();
        let found = std::panic::catch_unwind(|| {
            spread(&items, 2, &|&i| if i == 50 { panic!("item 50") } else { Ok(()) }, |_, ()| Ok(()))
        });
        assert!(found.is_err());
    }
}
