//! The copies of a tensor's values on devices.
//!
//! A tensor's values never change, so every copy stays valid. This module tracks where the copies are: in host memory
//! and on devices. Values that a device computed reach host memory when they are first read there.

use super::Cache;
use crate::error::{Result, fail};
use crate::hal::{Buffer, Download, Slice};
use crate::log::log;
use crate::memory::host::HostBuffer;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A device that keeps copies of tensors' values. Clones of one `Arc` are the same keeper.
pub(crate) trait Keeper: Send + Sync {
    /// Returns the device's id.
    fn id(&self) -> &str;

    /// Returns the cache of the device, which knows the tensors with a copy on it.
    fn cache(&self) -> &Cache;

    /// Starts to download part of a copy to host memory, without waiting.
    fn download(&self, part: Slice<'_>) -> Result<Box<dyn Download>>;

    /// Waits for a download, and copies its bytes.
    fn take(&self, download: Box<dyn Download>, into: &mut [u8]) -> Result<()>;

    /// Reads the first bytes of a copy, and waits for them.
    fn read(&self, memory: &dyn Buffer, into: &mut [u8]) -> Result<()>;
}

/// Returns whether both are the same device, opened once.
fn is_same(one: &dyn Keeper, other: &dyn Keeper) -> bool {
    std::ptr::addr_eq(one, other)
}

/// Where a tensor's values are, besides the tensor's own memory.
pub(crate) struct Copies {
    bytes: usize,
    /// Whether the tensor has the values in memory of its own.
    own: bool,
    /// Whether the tensor no longer keeps copies.
    alone: AtomicBool,
    /// The values in host memory, if a device computed them and they were read.
    fetched: OnceLock<HostBuffer>,
    there: Mutex<Vec<There>>,
    /// The download of the values to host memory, if one is under way.
    coming: Mutex<Option<Box<dyn Download>>>,
}

/// A copy on a device.
struct There {
    keeper: Arc<dyn Keeper>,
    memory: Arc<dyn Buffer>,
    /// The last use, in the cache's count of uses.
    used: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copies {
    /// Makes a record without copies, for values of `bytes` bytes. `own`: the tensor has them in host memory of its
    /// own.
    pub fn new(bytes: usize, own: bool) -> Arc<Copies> {
        let (alone, fetched, there, coming) = Default::default();
        Arc::new(Copies { bytes, own, alone, fetched, there, coming })
    }

    /// Returns whether the values are in host memory.
    pub fn are_on_host(&self) -> bool {
        self.own || self.fetched.get().is_some()
    }

    /// Calls `each` with the id of every device that has a copy.
    pub fn devices(&self, each: &mut dyn FnMut(&str)) {
        lock(&self.there).iter().for_each(|copy| each(copy.keeper.id()));
    }

    /// Returns the copy on a device, and counts a use of it.
    pub fn on(&self, keeper: &dyn Keeper) -> Option<Arc<dyn Buffer>> {
        let used = keeper.cache().use_one();
        let mut there = lock(&self.there);
        let copy = there.iter_mut().find(|copy| is_same(&*copy.keeper, keeper))?;
        copy.used = used;
        Some(copy.memory.clone())
    }

    /// Returns when the copy on a device was last used.
    pub fn used(&self, keeper: &dyn Keeper) -> Option<u64> {
        lock(&self.there).iter().find(|copy| is_same(&*copy.keeper, keeper)).map(|copy| copy.used)
    }

    /// Keeps a copy on a device, unless that device already has one or the tensor keeps none.
    pub fn put(self: &Arc<Copies>, keeper: Arc<dyn Keeper>, memory: Arc<dyn Buffer>) {
        let used = keeper.cache().use_one();
        let mut there = lock(&self.there);
        if !self.alone.load(Relaxed) && there.iter().all(|copy| !is_same(&*copy.keeper, &*keeper)) {
            there.push(There { keeper: keeper.clone(), memory, used });
            // This is under the lock, so that no other thread can evict the copy before the cache counts it.
            keeper.cache().enter(self, self.bytes);
        }
    }

    /// Drops the copy on a device. Values that are nowhere else are read first. Returns whether there was a copy.
    pub fn leave(&self, keeper: &dyn Keeper) -> Result<bool> {
        if !self.are_on_host() {
            self.fetch()?;
        }
        let left = {
            let mut there = lock(&self.there);
            let at = there.iter().position(|copy| is_same(&*copy.keeper, keeper));
            at.map(|at| there.swap_remove(at))
        };
        if left.is_some() {
            keeper.cache().left(self.bytes, Some(self));
        }
        Ok(left.is_some())
    }

    /// Drops all copies on devices, and keeps none from now on.
    pub fn stay_alone(&self) -> Result<()> {
        if !self.are_on_host() {
            self.fetch()?;
        }
        let there = {
            let mut there = lock(&self.there);
            self.alone.store(true, Relaxed);
            std::mem::take(&mut *there)
        };
        there.iter().for_each(|copy| copy.keeper.cache().left(self.bytes, None));
        Ok(())
    }

    /// Returns any of the copies on devices.
    fn any(&self) -> Option<(Arc<dyn Keeper>, Arc<dyn Buffer>)> {
        lock(&self.there).first().map(|copy| (copy.keeper.clone(), copy.memory.clone()))
    }

    /// Starts a download to host memory if the values are only on devices. Doesn't wait.
    pub fn come(&self) -> Result<()> {
        let mut coming = lock(&self.coming);
        let Some((keeper, memory)) = self.any().filter(|_| coming.is_none() && !self.are_on_host()) else {
            return Ok(());
        };
        *coming = Some(keeper.download(Slice { buffer: &*memory, offset: 0, bytes: self.bytes })?);
        Ok(())
    }

    /// Returns the values in host memory that is not the tensor's own, and reads them first if necessary.
    pub fn fetch(&self) -> Result<NonNull<u8>> {
        if let Some(fetched) = self.fetched.get() {
            return Ok(fetched.pointer());
        }
        let coming = lock(&self.coming).take();
        let Some((keeper, memory)) = self.any() else {
            // Another thread has read the values and dropped the copy.
            return match self.fetched.get() {
                Some(fetched) => Ok(fetched.pointer()),
                None => fail!(Internal, "a tensor's values are missing"),
            };
        };
        let host = HostBuffer::uninitialised(self.bytes)?;
        // SAFETY: the memory is new, so nothing else refers to it, and it is `bytes` long. It is written before it is
        // read.
        let into = unsafe { slice::from_raw_parts_mut(host.pointer().as_ptr(), self.bytes) };
        match coming {
            Some(download) => keeper.take(download, into)?,
            None => {
                log!(Trace, "tensors", "{} bytes are read from {}", self.bytes, keeper.id());
                keeper.read(&*memory, into)?;
            }
        }
        // Another thread may have read the same values first.
        Ok(self.fetched.get_or_init(|| host).pointer())
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for copy in lock(&self.there).drain(..) {
            copy.keeper.cache().left(self.bytes, None);
        }
    }
}
