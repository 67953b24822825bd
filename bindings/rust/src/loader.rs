//! Items that a thread makes ahead.

use crate::thread::{caught, spawn};
use adead_core::{Error, Result, Status};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Iterates over items that a producer makes in a separate thread, at most `ahead` items before the consumer.
///
/// An error of the producer is returned after the items before it, and ends the iterator and the producer. A panic becomes an
/// error `internal`. Dropping the loader stops the producer, which finishes the item that it is making.
///
/// ```
/// let files = (0..6).map(|n| if n < 5 { Ok(vec![n; 100]) } else { Err(std::io::Error::other("no such file")) });
/// let mut loader = adead::DataLoader::new(files, 2)?;
/// assert_eq!(loader.by_ref().take(5).filter(|batch| batch.is_ok()).count(), 5);
/// assert_eq!(loader.next().unwrap().unwrap_err().message(), "no such file");
/// assert!(loader.next().is_none());
/// # Ok::<(), adead::Error>(())
/// ```
pub struct DataLoader<T> {
    queue: Arc<Queue<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> DataLoader<T> {
    /// Starts a thread that makes the iterator and takes its items. At most `ahead` items are made and not yet taken, including
    /// the one that is being made. `invalid_argument` if `ahead` is 0, `io` if the system can't start a thread.
    pub fn new<E: Into<Error>>(
        producer: impl IntoIterator<Item = Result<T, E>> + Send + 'static,
        ahead: usize,
    ) -> Result<DataLoader<T>> {
        if ahead == 0 {
            return Err(Error::new(Status::InvalidArgument, "a loader must be at least 1 item ahead, not 0"));
        }
        let queue = Arc::new(Queue::new(ahead));
        let filled = queue.clone();
        let thread = spawn("adead-loader", move || {
            if let Err(error) = caught("the loader's producer", || fill(&filled, producer)) {
                filled.push(Err(error));
            }
            filled.end();
        })?;
        Ok(DataLoader { queue, thread: Some(thread) })
    }

    /// Makes a loader of a closure's items, until it returns `None`.
    pub fn from_fn<E: Into<Error>>(
        mut producer: impl FnMut() -> Result<Option<T>, E> + Send + 'static,
        ahead: usize,
    ) -> Result<DataLoader<T>> {
        DataLoader::new(std::iter::from_fn(move || producer().transpose()), ahead)
    }
}

/// Takes items while there is room for them, until the first error or until the loader is dropped.
fn fill<T, E: Into<Error>>(queue: &Queue<T>, producer: impl IntoIterator<Item = Result<T, E>>) -> Result<()> {
    let mut items = producer.into_iter();
    while queue.wait_for_room() {
        match items.next() {
            Some(item) => queue.push(Ok(item.map_err(Into::into)?)),
            None => break,
        }
    }
    Ok(())
}

impl<T> Iterator for DataLoader<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let item = self.queue.pop();
        if !matches!(item, Some(Ok(_))) {
            self.stop();
        }
        item
    }
}

impl<T> std::iter::FusedIterator for DataLoader<T> {}

impl<T> DataLoader<T> {
    fn stop(&mut self) {
        self.queue.end();
        if let Some(thread) = self.thread.take() {
            // The thread's panics were caught.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for DataLoader<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A bounded queue that either side can end.
struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    most: usize,
}

struct State<T> {
    items: VecDeque<Result<T>>,
    ended: bool,
}

impl<T> Queue<T> {
    fn new(most: usize) -> Queue<T> {
        Queue { state: Mutex::new(State { items: VecDeque::new(), ended: false }), changed: Condvar::new(), most }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another item. Returns false if the consumer wants no more items.
    fn wait_for_room(&self) -> bool {
        let full = |state: &mut State<T>| state.items.len() >= self.most && !state.ended;
        !self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner).ended
    }

    fn push(&self, item: Result<T>) {
        self.lock().items.push_back(item);
        self.changed.notify_all();
    }

    /// Returns the next item; `None` if the queue has ended and is empty.
    fn pop(&self) -> Option<Result<T>> {
        let empty = |state: &mut State<T>| state.items.is_empty() && !state.ended;
        let mut state = self.changed.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
        let item = state.items.pop_front();
        drop(state);
        self.changed.notify_all();
        item
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }
}
