//! Loaders, whose threads prepare batches in advance. Needs the feature `overlap`; without it `without.rs` has the
//! functions.

use crate::callback::{Failure, guard_own};
use crate::overlap::{Next, adead_batch, adead_next};
use crate::pointers::{Out, exclusive};
use crate::status::{adead_status, guard, guard_destroy};
use adead::DataLoader;
use adead_core::Result;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::{Arc, Mutex, PoisonError};

/// A loader: its thread prepares batches in advance. One thread at a time may take batches from it.
pub struct adead_loader {
    batches: DataLoader<Result<adead_batch, Failure>>,
    /// The batch that was taken last.
    taken: Option<adead_batch>,
    spare: Spare,
}

/// Batches whose memory later batches reuse.
#[derive(Clone, Default)]
struct Spare(Arc<Mutex<Vec<adead_batch>>>);

impl Spare {
    fn take(&self) -> adead_batch {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_else(adead_batch::new)
    }

    fn give_back(&self, batch: adead_batch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
    }
}

/// The state of the loader's thread.
struct Producer {
    next: Next,
    spare: Spare,
    ended: bool,
}

impl Iterator for Producer {
    type Item = Result<Result<adead_batch, Failure>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut batch = self.spare.take();
        match self.next.ask(&mut batch) {
            Ok(true) => Some(Ok(Ok(batch))),
            Ok(false) => None,
            Err(failure) => {
                self.ended = true;
                Some(Ok(Err(failure)))
            }
        }
    }
}

/// Starts a thread that calls `next` for batches. It is at most `ahead` batches ahead of the consumer, including the
/// batch in progress. `invalid_argument` unless `ahead` is at least 1. `io` if the system can't start a thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_loader_create(
    next: adead_next,
    user: *mut c_void,
    ahead: usize,
    out: *mut *mut adead_loader,
) -> adead_status {
    guard(|| {
        let next = Next::new(next, user)?;
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        let spare = Spare::default();
        let producer = Producer { next, spare: spare.clone(), ended: false };
        out.give(adead_loader { batches: DataLoader::new(producer, ahead)?, taken: None, spare });
        Ok(())
    })
}

/// Waits for the next batch. Its bytes stay valid until the next call for this loader. `data` is NULL if no batch is
/// left. An error of `next` is returned once, after the batches before it; then no batch is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_loader_next(
    loader: *mut adead_loader,
    data: *mut *const c_void,
    bytes: *mut usize,
) -> adead_status {
    guard_own(|| {
        // SAFETY: the caller vouches for the pointers.
        let (loader, data, bytes) =
            unsafe { (exclusive(loader, "loader")?, Out::new(data, "data")?, Out::new(bytes, "bytes")?) };
        if let Some(batch) = loader.taken.take() {
            loader.spare.give_back(batch);
        }
        let batch = loader.batches.next().transpose()?.transpose()?;
        let (first, count) = batch.as_ref().map_or((null(), 0), |batch| (batch.data.cast(), batch.bytes));
        loader.taken = batch;
        data.write(first);
        bytes.write(count);
        Ok(())
    })
}

/// Stops the thread, waits for the batch in progress, and destroys the loader. NULL is allowed. Must not be called from
/// the loader's own `next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_loader_destroy(loader: *mut adead_loader) {
    guard_destroy(loader);
}
