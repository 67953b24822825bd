//! The copies of a tensor's values on devices.
//!
//! A tensor's values never change, so every copy stays valid. This module tracks where the copies are: in host memory
//! and on devices. Values that a device computed reach host memory when they are first read there. If several devices
//! computed a result, each has its own rows at first.

use super::Cache;
use crate::error::{Result, fail};
use crate::hal::{Buffer, Download, Event, Slice};
use crate::log::log;
use crate::memory::host::HostBuffer;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of a device that are downloaded at a time while those of others are.
const SLICE: usize = 16 << 20;

/// A device that keeps copies of tensors' values. Clones of one `Arc` are the same keeper.
pub(crate) trait Keeper: Send + Sync {
    /// Returns the device's id.
    fn id(&self) -> &str;

    /// Returns the cache of the device, which knows the tensors with a copy on it.
    fn cache(&self) -> &Cache;

    /// Returns an event behind all work that the device has been given.
    fn point(&self) -> Result<Arc<dyn Event>>;

    /// Starts to download part of a copy to host memory, without waiting.
    fn download(&self, part: Slice<'_>) -> Result<Box<dyn Download>>;

    /// Waits for a download, and copies its bytes.
    fn take(&self, download: Box<dyn Download>, into: &mut [u8]) -> Result<()>;

    /// Reads part of a copy, and waits for it.
    fn read(&self, part: Slice<'_>, into: &mut [u8]) -> Result<()>;

    /// Keeps memory from being used again before `until`, when another device has copied it.
    fn lend(&self, memory: Arc<dyn Buffer>, until: Arc<dyn Event>);
}

/// What a device has of a tensor's values.
#[derive(Clone)]
pub(crate) struct Piece {
    pub keeper: Arc<dyn Keeper>,
    /// It begins with the first of the bytes.
    pub memory: Arc<dyn Buffer>,
    /// The bytes, counted from the tensor's first.
    pub bytes: Range<usize>,
}

/// Returns whether both are the same device, opened once.
pub(crate) fn is_same(one: &dyn Keeper, other: &dyn Keeper) -> bool {
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
    /// The downloads of the values to host memory, if they are under way, with the place of each.
    coming: Mutex<Vec<Coming>>,
}

/// A download, and the place of its bytes.
type Coming = (Box<dyn Download>, Range<usize>);

/// A copy on a device, or a part of one.
struct There {
    piece: Piece,
    /// The last use, in the cache's count of uses.
    used: u64,
}

impl Piece {
    /// Returns the memory of the bytes.
    pub fn slice(&self) -> Slice<'_> {
        Slice { buffer: &*self.memory, offset: 0, bytes: self.bytes.len() }
    }
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

    /// Calls `each` with the id of every device that has values, and the bytes that it has, from the first to the one
    /// after the last; `None` if it has all.
    pub fn devices(&self, each: &mut dyn FnMut(&str, Option<Range<usize>>)) {
        for There { piece, .. } in lock(&self.there).iter() {
            each(piece.keeper.id(), Some(piece.bytes.clone()).filter(|bytes| *bytes != (0..self.bytes)));
        }
    }

    /// Returns a device's memory that has these bytes, and the first byte's place in it. Counts a use of it.
    pub fn on(&self, keeper: &dyn Keeper, part: Range<usize>) -> Option<(Arc<dyn Buffer>, usize)> {
        let used = keeper.cache().use_one();
        let mut there = lock(&self.there);
        let copy = there.iter_mut().find(|copy| is_same(&*copy.piece.keeper, keeper))?;
        let there = &copy.piece.bytes;
        if part.start < there.start || part.end > there.end {
            return None;
        }
        copy.used = used;
        Some((copy.piece.memory.clone(), part.start - there.start))
    }

    /// Returns when the copy on a device was last used.
    pub fn used(&self, keeper: &dyn Keeper) -> Option<u64> {
        lock(&self.there).iter().find(|copy| is_same(&*copy.piece.keeper, keeper)).map(|copy| copy.used)
    }

    /// Keeps a copy on a device, or a part of one, unless that device already has as much or the tensor keeps none.
    pub fn put(self: &Arc<Copies>, piece: Piece) {
        let (keeper, used) = (piece.keeper.clone(), piece.keeper.cache().use_one());
        let mut there = lock(&self.there);
        if self.alone.load(Relaxed) {
            return;
        }
        match there.iter_mut().find(|copy| is_same(&*copy.piece.keeper, &*keeper)) {
            Some(copy) if copy.piece.bytes.len() < piece.bytes.len() => {
                keeper.cache().grow(piece.bytes.len() - copy.piece.bytes.len());
                *copy = There { piece, used };
            }
            Some(_) => {}
            None => {
                // This is under the lock, so that no other thread can evict the copy before the cache counts it.
                keeper.cache().enter(self, piece.bytes.len());
                there.push(There { piece, used });
            }
        }
    }

    /// Drops the copy on a device. Values that are nowhere else are read first. Returns whether there was a copy.
    pub fn leave(&self, keeper: &dyn Keeper) -> Result<bool> {
        if !self.are_on_host() {
            self.fetch()?;
        }
        let left = {
            let mut there = lock(&self.there);
            let at = there.iter().position(|copy| is_same(&*copy.piece.keeper, keeper));
            at.map(|at| there.swap_remove(at))
        };
        if let Some(copy) = &left {
            keeper.cache().left(copy.piece.bytes.len(), Some(self));
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
        there.iter().for_each(|copy| copy.piece.keeper.cache().left(copy.piece.bytes.len(), None));
        Ok(())
    }

    /// Returns pieces that together are all values: one device's copy if there is one, else the parts of several, in order. Empty if
    /// some values are on no device.
    pub fn pieces(&self) -> Vec<Piece> {
        let there = lock(&self.there);
        if let Some(whole) = there.iter().find(|copy| copy.piece.bytes.len() == self.bytes) {
            return vec![whole.piece.clone()];
        }
        let (mut pieces, mut end) = (Vec::new(), 0);
        // An operand without values may have left a piece without bytes.
        let follows = |piece: &Piece, end| piece.bytes.start == end && piece.bytes.end > end;
        while let Some(next) = there.iter().find(|copy| follows(&copy.piece, end)) {
            end = next.piece.bytes.end;
            pieces.push(next.piece.clone());
        }
        if end < self.bytes {
            pieces.clear();
        }
        pieces
    }

    /// Starts a download to host memory if the values are only on devices. Doesn't wait.
    pub fn come(&self) -> Result<()> {
        let mut coming = lock(&self.coming);
        if !coming.is_empty() || self.are_on_host() {
            return Ok(());
        }
        let start = |piece: Piece| Ok((piece.keeper.download(piece.slice())?, piece.bytes));
        *coming = self.pieces().into_iter().map(start).collect::<Result<_>>()?;
        Ok(())
    }

    /// Returns the values in host memory that is not the tensor's own, and reads them first if necessary.
    pub fn fetch(&self) -> Result<NonNull<u8>> {
        if let Some(fetched) = self.fetched.get() {
            return Ok(fetched.pointer());
        }
        let coming = std::mem::take(&mut *lock(&self.coming));
        let pieces = self.pieces();
        if pieces.is_empty() {
            // Another thread has read the values and dropped the copy.
            return match self.fetched.get() {
                Some(fetched) => Ok(fetched.pointer()),
                None => fail!(Internal, "a tensor's values are missing"),
            };
        }
        let host = HostBuffer::uninitialised(self.bytes)?;
        // SAFETY: the memory is new, so nothing else refers to it, and it is `bytes` long. It is written before it is
        // read, because the pieces are all values.
        let into = unsafe { slice::from_raw_parts_mut(host.pointer().as_ptr(), self.bytes) };
        read_all(&pieces, coming, into)?;
        // Another thread may have read the same values first.
        Ok(self.fetched.get_or_init(|| host).pointer())
    }
}

/// Of values on devices, what is at most such a part of all is read alone.
const ALONE: usize = 8;

impl Copies {
    /// Returns a small part of values that are only on devices, in new host memory. `None` if all of them are better read, or have
    /// been or are being.
    pub fn read_part(&self, bytes: Range<usize>) -> Result<Option<HostBuffer>> {
        if bytes.len() > self.bytes / ALONE || self.are_on_host() || !lock(&self.coming).is_empty() {
            return Ok(None);
        }
        let pieces = self.pieces();
        if pieces.is_empty() {
            return Ok(None);
        }
        let host = HostBuffer::uninitialised(bytes.len())?;
        // SAFETY: the memory is new, so nothing else refers to it, and it is as long. It is written before it is read, because the
        // pieces are all values.
        let into = unsafe { slice::from_raw_parts_mut(host.pointer().as_ptr(), bytes.len()) };
        for piece in &pieces {
            let (start, end) = (bytes.start.max(piece.bytes.start), bytes.end.min(piece.bytes.end));
            if start < end {
                log!(Trace, "tensors", "{} of {} bytes are read from {}", end - start, self.bytes, piece.keeper.id());
                let offset = start - piece.bytes.start;
                let part = Slice { buffer: &*piece.memory, offset, bytes: end - start };
                piece.keeper.read(part, &mut into[start - bytes.start..end - bytes.start])?;
            }
        }
        Ok(Some(host))
    }
}

/// Reads pieces to their places in host memory. Downloads that are under way have the bytes of the first pieces.
fn read_all(pieces: &[Piece], coming: Vec<Coming>, into: &mut [u8]) -> Result<()> {
    if cfg!(feature = "cuda") && coming.is_empty() && pieces.len() > 1 {
        return read_together(pieces, into);
    }
    let mut coming = coming.into_iter();
    for piece in pieces {
        let into = &mut into[piece.bytes.clone()];
        match coming.next() {
            Some((download, place)) if place == piece.bytes => piece.keeper.take(download, into)?,
            _ => {
                log!(Trace, "tensors", "{} bytes are read from {}", into.len(), piece.keeper.id());
                piece.keeper.read(piece.slice(), into)?;
            }
        }
    }
    Ok(())
}

/// Reads pieces of several devices, slice by slice. While the devices copy, the host takes the slices before.
fn read_together(pieces: &[Piece], into: &mut [u8]) -> Result<()> {
    let (mut first, mut under_way) = (0, Vec::new());
    loop {
        let mut next = Vec::new();
        for piece in pieces.iter().filter(|piece| first < piece.bytes.len()) {
            let bytes = (piece.bytes.len() - first).min(SLICE);
            let at = piece.bytes.start + first;
            let slice = Slice { buffer: &*piece.memory, offset: first, bytes };
            next.push((&piece.keeper, at..at + bytes, piece.keeper.download(slice)?));
        }
        for (keeper, place, download) in std::mem::replace(&mut under_way, next) {
            keeper.take(download, &mut into[place])?;
        }
        if under_way.is_empty() {
            return Ok(());
        }
        first += SLICE;
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for copy in lock(&self.there).drain(..) {
            copy.piece.keeper.cache().left(copy.piece.bytes.len(), None);
        }
    }
}
