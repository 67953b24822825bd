//! The copies of a tensor's values on devices.
//!
//! A tensor's values never change, so every copy is valid for as long as it is there. What is kept track of is where copies are:
//! in host memory, on which devices; values that were computed on a device are in host memory once somebody has read them there.

use super::Cache;
use crate::error::{Result, fail};
use crate::hal::{Buffer, Download, Slice};
use crate::log::log;
use crate::memory::host::HostBuffer;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A device that keeps copies of tensors' values. Clones of an `Arc` of one are the same keeper.
pub(crate) trait Keeper: Send + Sync {
    /// The device's id.
    fn id(&self) -> &str;

    /// The tensors that have a copy on it.
    fn cache(&self) -> &Cache;

    /// Starts to bring part of a copy to host memory. Doesn't wait.
    fn download(&self, part: Slice<'_>) -> Result<Box<dyn Download>>;

    /// Waits for what comes, and copies it.
    fn take(&self, download: Box<dyn Download>, into: &mut [u8]) -> Result<()>;

    /// Reads the beginning of a copy, and waits for it.
    fn read(&self, memory: &dyn Buffer, into: &mut [u8]) -> Result<()>;
}

/// Whether two are the same device, opened once.
fn is_same(one: &dyn Keeper, other: &dyn Keeper) -> bool {
    std::ptr::addr_eq(one, other)
}

/// Where a tensor's values are besides the tensor's own memory.
pub(crate) struct Copies {
    bytes: usize,
    /// Whether the tensor has them in memory of its own.
    own: bool,
    /// Whether no copies are kept any more.
    alone: AtomicBool,
    /// The values in host memory, if they come from a device and were read.
    fetched: OnceLock<HostBuffer>,
    there: Mutex<Vec<There>>,
    /// The values on their way to host memory.
    coming: Mutex<Option<Box<dyn Download>>>,
}

/// A copy on a device.
struct There {
    keeper: Arc<dyn Keeper>,
    memory: Arc<dyn Buffer>,
    /// When it was used last, in the device's count of uses.
    used: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Copies {
    /// No copies of so many bytes, which the tensor has in host memory of its `own`, or has not.
    pub fn new(bytes: usize, own: bool) -> Arc<Copies> {
        let (alone, fetched, there, coming) = Default::default();
        Arc::new(Copies { bytes, own, alone, fetched, there, coming })
    }

    /// Whether they are in host memory.
    pub fn are_on_host(&self) -> bool {
        self.own || self.fetched.get().is_some()
    }

    /// The ids of the devices that have a copy.
    pub fn devices(&self, each: &mut dyn FnMut(&str)) {
        lock(&self.there).iter().for_each(|copy| each(copy.keeper.id()));
    }

    /// The copy on a device, which is used now.
    pub fn on(&self, keeper: &dyn Keeper) -> Option<Arc<dyn Buffer>> {
        let used = keeper.cache().use_one();
        let mut there = lock(&self.there);
        let copy = there.iter_mut().find(|copy| is_same(&*copy.keeper, keeper))?;
        copy.used = used;
        Some(copy.memory.clone())
    }

    /// When the copy on a device was used last.
    pub fn used(&self, keeper: &dyn Keeper) -> Option<u64> {
        lock(&self.there).iter().find(|copy| is_same(&*copy.keeper, keeper)).map(|copy| copy.used)
    }

    /// Keeps a copy on a device, unless there is one.
    pub fn put(self: &Arc<Copies>, keeper: Arc<dyn Keeper>, memory: Arc<dyn Buffer>) {
        let used = keeper.cache().use_one();
        let mut there = lock(&self.there);
        if !self.alone.load(Relaxed) && there.iter().all(|copy| !is_same(&*copy.keeper, &*keeper)) {
            there.push(There { keeper: keeper.clone(), memory, used });
            // Before anybody else can find it, and have it leave.
            keeper.cache().enter(self, self.bytes);
        }
    }

    /// Gives up the copy on a device; values that are nowhere else come to the host first. Whether there was one.
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

    /// Gives up every copy on a device, and keeps none from now on.
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

    /// Any of the copies on devices.
    fn any(&self) -> Option<(Arc<dyn Keeper>, Arc<dyn Buffer>)> {
        lock(&self.there).first().map(|copy| (copy.keeper.clone(), copy.memory.clone()))
    }

    /// Starts the way to host memory, if they are only on devices. Doesn't wait.
    pub fn come(&self) -> Result<()> {
        let mut coming = lock(&self.coming);
        let Some((keeper, memory)) = self.any().filter(|_| coming.is_none() && !self.are_on_host()) else {
            return Ok(());
        };
        *coming = Some(keeper.download(Slice { buffer: &*memory, offset: 0, bytes: self.bytes })?);
        Ok(())
    }

    /// The values in host memory that is not the tensor's own, brought there where they are not yet.
    pub fn fetch(&self) -> Result<NonNull<u8>> {
        if let Some(fetched) = self.fetched.get() {
            return Ok(fetched.pointer());
        }
        let coming = lock(&self.coming).take();
        let Some((keeper, memory)) = self.any() else {
            // Another thread has read them, and given up the copy.
            return match self.fetched.get() {
                Some(fetched) => Ok(fetched.pointer()),
                None => fail!(Internal, "a tensor's values are nowhere"),
            };
        };
        let host = HostBuffer::uninitialised(self.bytes)?;
        // SAFETY: the new memory, which nobody else has; it is written before it is read.
        let into = unsafe { slice::from_raw_parts_mut(host.pointer().as_ptr(), self.bytes) };
        match coming {
            Some(download) => keeper.take(download, into)?,
            None => {
                log!(Trace, "tensors", "{} bytes are read from {}", self.bytes, keeper.id());
                keeper.read(&*memory, into)?;
            }
        }
        // Another thread may have been first, with the same values.
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
