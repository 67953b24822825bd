//! Results on the host, in the memory of downloads or in memory that is reused.

use adead_core::gpu::Download;
use adead_core::{Element, Error, Result, Status};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The unit of results' memory. Its alignment suits every element type.
type Word = u64;

/// The memory of results. At most a fixed number of results stay in the memory of their downloads, because the device
/// can access only a limited amount. The others are copied to memory that later results reuse, which is limited to the
/// same number.
pub(super) struct Pool {
    idle: Mutex<Vec<Vec<Word>>>,
    in_place: AtomicUsize,
    most: usize,
}

impl Pool {
    pub(super) fn new(most: usize) -> Arc<Pool> {
        Arc::new(Pool { idle: Mutex::new(Vec::new()), in_place: AtomicUsize::new(0), most })
    }

    /// Makes a batch's result, once it has arrived; without a download it has no bytes.
    pub(super) fn output(self: &Arc<Pool>, index: usize, download: Option<Download>) -> Result<Output> {
        let Some(download) = download else { return Ok(self.copied(index, 0)) };
        let bytes = download.bytes()?;
        let (first, count) = (bytes.as_ptr(), bytes.len());
        if first.cast::<Word>().is_aligned() && self.reserve() {
            let memory = Memory::InPlace { first, _download: download };
            return Ok(Output { memory, bytes: count, index, pool: Arc::downgrade(self) });
        }
        let mut output = self.copied(index, count);
        download.take(output.bytes_mut())?;
        Ok(output)
    }

    /// Returns whether one more result may stay in place.
    fn reserve(&self) -> bool {
        self.in_place.fetch_update(Relaxed, Relaxed, |count| (count < self.most).then_some(count + 1)).is_ok()
    }

    /// Returns memory for `bytes` bytes, which keeps its old contents.
    fn copied(self: &Arc<Pool>, index: usize, bytes: usize) -> Output {
        let words = bytes.div_ceil(size_of::<Word>());
        let mut memory = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        if memory.capacity() < words {
            // The old memory has nothing worth copying.
            memory = vec![0; words];
        }
        memory.resize(words, 0);
        Output { memory: Memory::Copied(memory), bytes, index, pool: Arc::downgrade(self) }
    }

    fn give_back(&self, memory: &mut Memory) {
        match memory {
            Memory::InPlace { .. } => {
                self.in_place.fetch_sub(1, Relaxed);
            }
            Memory::Copied(memory) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < self.most {
                    idle.push(std::mem::take(memory));
                }
            }
        }
    }
}

/// The place of a result's bytes.
enum Memory {
    /// The memory of the download.
    InPlace {
        first: *const u8,
        _download: Download,
    },
    Copied(Vec<Word>),
}

// SAFETY: the pointer is to the download's memory, which any thread may own and nothing writes to.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// A batch's result on the host. After it is dropped, a later result reuses its memory.
pub struct Output {
    memory: Memory,
    bytes: usize,
    index: usize,
    pool: Weak<Pool>,
}

impl Output {
    /// Returns the index of the batch; the first one is 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the whole result as values. `invalid_argument` if its size is not a multiple of theirs.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        const { assert!(align_of::<T>() <= align_of::<Word>()) };
        let size = size_of::<T>();
        if !self.bytes.is_multiple_of(size) {
            let text = format!("a result of {} bytes is not an array of {}s of {size}", self.bytes, T::DTYPE);
            return Err(Error::new(Status::InvalidArgument, text));
        }
        // SAFETY: there are this many bytes, they are aligned, and an element may have any bits.
        Ok(unsafe { std::slice::from_raw_parts(self.first().cast(), self.bytes / size) })
    }

    /// Returns a copy of the whole result as values. Errors as for [`Output::as_slice`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.as_slice().map(<[T]>::to_vec)
    }

    fn first(&self) -> *const u8 {
        match &self.memory {
            Memory::InPlace { first, .. } => *first,
            Memory::Copied(memory) => memory.as_ptr().cast(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::InPlace { .. } => &mut [],
            // SAFETY: there are this many bytes, and a word may have any bits.
            Memory::Copied(memory) => unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), self.bytes) },
        }
    }
}

/// Dereferences to its bytes.
impl Deref for Output {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: there are this many bytes.
        unsafe { std::slice::from_raw_parts(self.first(), self.bytes) }
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
            pool.give_back(&mut self.memory);
        }
    }
}
