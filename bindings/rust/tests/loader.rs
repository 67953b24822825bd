//! Items made ahead: their number, errors, panics, early ends.

use adead::{DataLoader, Error, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};

fn numbers(count: usize) -> impl Iterator<Item = Result<usize>> + Send {
    (0..count).map(Ok)
}

#[test]
fn items_come_in_order() {
    for ahead in [1, 2, 3, 100, usize::MAX] {
        for count in [0, 1, 50] {
            let loader = DataLoader::new(numbers(count), ahead).unwrap();
            assert_eq!(loader.map(Result::unwrap).collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
        }
    }
    let mut left = 3;
    let countdown = move || {
        left -= 1;
        Ok::<_, Error>((left >= 0).then_some(left))
    };
    assert_eq!(DataLoader::from_fn(countdown, 2).unwrap().map(Result::unwrap).collect::<Vec<_>>(), [2, 1, 0]);
    let error = DataLoader::new(numbers(1), 0).err().unwrap();
    assert_eq!(
        (error.status(), error.message()),
        (Status::InvalidArgument, "a loader must be at least 1 item ahead, not 0")
    );
}

/// Returns a producer that announces when it is asked for an item.
fn announced() -> (impl Iterator<Item = Result<usize>> + Send, Receiver<usize>) {
    let (say, asked): (Sender<usize>, _) = channel();
    let producer = (0..).map(move |n| {
        let _ = say.send(n);
        Ok(n)
    });
    (producer, asked)
}

#[test]
fn never_more_items_wait_than_were_asked_for() {
    for ahead in [1, 2, 5] {
        let (producer, asked) = announced();
        let mut loader = DataLoader::new(producer, ahead).unwrap();
        for n in 0..ahead {
            assert_eq!(asked.recv(), Ok(n), "it goes ahead by itself");
        }
        for n in 0..40 {
            assert_eq!(loader.next().unwrap().unwrap(), n);
            // The taken item made room for one more.
            assert_eq!(asked.recv(), Ok(n + ahead));
            assert!(asked.try_recv().is_err(), "it is further ahead than {ahead}");
        }
    }
}

#[test]
fn errors_come_behind_what_was_made_and_end_it() {
    for ahead in [1, 3, 10] {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let producer = (0..100).map(move |n| {
            count.fetch_add(1, SeqCst);
            if n == 4 { Err(Error::new(Status::Io, "disk full")) } else { Ok(n) }
        });
        let mut loader = DataLoader::new(producer, ahead).unwrap();
        assert_eq!(loader.by_ref().take(4).map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(loader.next().unwrap().unwrap_err().message(), "disk full");
        assert!(loader.next().is_none() && loader.next().is_none());
        assert_eq!(made.load(SeqCst), 5, "nothing is made behind an error");
    }
}

#[test]
fn panics_are_errors() {
    let producer = (0..9).map(|n| if n < 2 { Ok::<_, Error>(n) } else { panic!("lost at {n}") });
    let mut loader = DataLoader::new(producer, 1).unwrap();
    assert_eq!((loader.next().unwrap().unwrap(), loader.next().unwrap().unwrap()), (0, 1));
    let error = loader.next().unwrap().unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::Internal, "the loader's producer panicked: lost at 2"));
    assert!(loader.next().is_none());
}

#[test]
fn an_early_drop_ends_the_producer() {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    for taken in [0, 1, 7] {
        let gone = Arc::new(AtomicBool::new(false));
        let inside = Gone(gone.clone());
        let producer = (0..).map(move |n| {
            let _inside = &inside;
            Ok::<_, Error>(vec![n; 1000])
        });
        let mut loader = DataLoader::new(producer, 3).unwrap();
        assert_eq!(loader.by_ref().take(taken).count(), taken);
        drop(loader);
        assert!(gone.load(SeqCst), "the thread is gone with the producer");
    }
}
