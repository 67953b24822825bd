//! Buffers: memory on a device with a size in bytes and no type.

use crate::devices::Opened;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{self, DeviceInfo};
use crate::operand::Meta;
use crate::profile::{Activity, Reason, What};
use crate::tensor::{Element, Tensor};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Memory on a device. Work that uses it keeps it, so it may be dropped or freed while work is under way.
pub struct Buffer {
    opened: Arc<Opened>,
    memory: RwLock<Option<Arc<dyn hal::Buffer>>>,
    bytes: usize,
    /// Its number among those between guards.
    guard: Option<usize>,
}

/// A buffer as an operand of an operation: where in it the elements begin, in bytes, and what they are.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Where they are.
    pub buffer: &'a Buffer,
    /// The first one's byte.
    pub offset: usize,
    /// Their dtype and shape.
    pub meta: &'a Meta,
}

impl Buffer {
    pub(super) fn new(opened: &Arc<Opened>, bytes: usize, zeroed: bool) -> Result<Buffer> {
        let _environment = DefaultEnvironment::enter();
        let (memory, guard) = match &opened.guards {
            None => (opened.allocate(bytes, zeroed)?, None),
            Some(guards) => {
                let (memory, number) = guards.allocate(opened, bytes, zeroed)?;
                (memory, Some(number))
            }
        };
        Ok(Buffer { opened: opened.clone(), memory: RwLock::new(Some(memory)), bytes, guard })
    }

    pub(super) fn over(opened: &Arc<Opened>, memory: Arc<dyn hal::Buffer>, bytes: usize) -> Buffer {
        Buffer { opened: opened.clone(), memory: RwLock::new(Some(memory)), bytes, guard: None }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// What it is on.
    pub fn device(&self) -> &DeviceInfo {
        self.opened.device.info()
    }

    /// Its number among those between guards.
    pub(super) fn guard(&self) -> Option<usize> {
        self.guard
    }

    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// The memory behind it, for commands of one's own. `invalid_argument` once it was freed.
    pub fn memory(&self) -> Result<Arc<dyn hal::Buffer>> {
        match &*self.memory.read().unwrap_or_else(PoisonError::into_inner) {
            Some(memory) => Ok(memory.clone()),
            None => fail!(InvalidArgument, "the buffer of {} bytes was freed", self.bytes),
        }
    }

    /// Copies values to it from a byte offset on, behind everything that the context enqueued, and waits until they are there:
    /// for any stream. [`Stream::upload`](super::Stream::upload) doesn't wait. `invalid_argument` if they don't fit or it
    /// was freed.
    pub fn write<T: Element>(&self, offset: usize, data: &[T]) -> Result<()> {
        // SAFETY: any Copy slice is readable as its bytes.
        self.write_bytes(offset, unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) })
    }

    /// [`Buffer::write`] of bytes.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let memory = self.memory()?;
        let what = What::bytes(Activity::Upload, bytes.len(), "", Reason::Operands);
        self.opened.watched(&what, |stream| stream.write(&*memory, offset, bytes))?;
        self.opened.catch_up()?;
        self.opened.with(|stream| stream.synchronize())
    }

    /// Waits for everything that the context enqueued and copies values from a byte offset on. `invalid_argument` if there are
    /// fewer or it was freed.
    pub fn read<T: Element>(&self, offset: usize, into: &mut [T]) -> Result<()> {
        let bytes = size_of_val(into);
        // SAFETY: elements may have any bits, so the slice is writable as its bytes.
        self.read_bytes(offset, unsafe { std::slice::from_raw_parts_mut(into.as_mut_ptr().cast(), bytes) })
    }

    /// [`Buffer::read`] of bytes.
    pub fn read_bytes(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        let (memory, size) = (self.memory()?, into.len());
        let what = What::bytes(Activity::Download, size, "", Reason::Operands);
        self.opened.catch_up()?;
        self.opened.watched(&what, |stream| stream.read(&*memory, offset, into))
    }

    /// Part of it as a tensor, from a byte offset on. `invalid_argument` if there is less or it was freed.
    pub fn to_tensor(&self, offset: usize, meta: &Meta) -> Result<Tensor> {
        Tensor::filled(meta, |to| {
            // SAFETY: the new tensor's memory, which nobody else has; it is written before it is read.
            let into = unsafe { std::slice::from_raw_parts_mut(to.host()?, meta.bytes()) };
            self.read_bytes(offset, into)
        })
    }

    /// All of it as values. `invalid_argument` if its size is no multiple of theirs.
    pub fn to_vec<T: Element + Default>(&self) -> Result<Vec<T>> {
        let size = size_of::<T>();
        if !self.bytes.is_multiple_of(size) {
            fail!(InvalidArgument, "a buffer of {} bytes is no array of {}s of {size}", self.bytes, T::DTYPE);
        }
        let mut values = vec![T::default(); self.bytes / size];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// Gives the memory back once work that uses it is done. `invalid_argument` the second time.
    pub fn free(&self) -> Result<()> {
        match self.memory.write().unwrap_or_else(PoisonError::into_inner).take() {
            Some(_) => Ok(()),
            None => fail!(InvalidArgument, "the buffer of {} bytes was freed before", self.bytes),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes on {})", self.bytes, self.device().id)
    }
}
