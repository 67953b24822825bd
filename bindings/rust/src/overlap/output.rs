//! Results on the host, in memory that is used again.

use adead_core::{Element, Error, Result, Status};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What memory of results is made of: every element is aligned in it.
type Word = u64;

/// Memory of results that were dropped, for the next ones: at most so many.
pub(super) struct Pool {
    idle: Mutex<Vec<Vec<Word>>>,
    most: usize,
}

impl Pool {
    pub(super) fn new(most: usize) -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::new(Vec::new()), most })
    }

    /// Memory for a batch's result, with whatever was there before.
    pub(super) fn take(self: &Arc<Pool>, index: usize, bytes: usize) -> Output {
        let words = bytes.div_ceil(size_of::<Word>());
        let mut memory = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        if memory.capacity() < words {
            // Nothing of it is worth copying.
            memory = vec![0; words];
        }
        memory.resize(words, 0);
        Output { memory, bytes, index, pool: Arc::downgrade(self) }
    }

    fn give_back(&self, memory: Vec<Word>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.most {
            idle.push(memory);
        }
    }
}

/// A batch's result on the host. Dropped, its memory serves a later result.
pub struct Output {
    memory: Vec<Word>,
    bytes: usize,
    index: usize,
    pool: Weak<Pool>,
}

impl Output {
    /// Of which batch: the first one is 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// All of it as values. `invalid_argument` if its size is no multiple of theirs.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        const { assert!(align_of::<T>() <= align_of::<Word>()) };
        let size = size_of::<T>();
        if !self.bytes.is_multiple_of(size) {
            let text = format!("a result of {} bytes is no array of {}s of {size}", self.bytes, T::DTYPE);
            return Err(Error::new(Status::InvalidArgument, text));
        }
        // SAFETY: so many bytes are there and aligned, and an element may have any bits.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.bytes / size) })
    }

    /// A copy of all of it as values. Errors as of [`Output::as_slice`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.as_slice().map(<[T]>::to_vec)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are there, and a word may have any.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Its bytes.
impl Deref for Output {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are there.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.bytes) }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Output({} bytes of batch {})", self.bytes, self.index)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(std::mem::take(&mut self.memory));
        }
    }
}
