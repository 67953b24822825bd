//! Buffers: untyped memory on a device, with a size in bytes.

use crate::devices::Opened;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{self, DeviceInfo};
use crate::operand::Meta;
use crate::profile::{Activity, Reason, What};
use crate::tensor::{Element, Tensor};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Holds memory on a device. Enqueued work keeps the memory alive, so the buffer may be dropped or freed while work uses it.
pub struct Buffer {
    opened: Arc<Opened>,
    memory: RwLock<Option<Arc<dyn hal::Buffer>>>,
    bytes: usize,
    /// The buffer's number among buffers with guards.
    guard: Option<usize>,
}

/// A buffer as an operand of an operation: the byte offset of its elements, and their description.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The buffer that contains the elements.
    pub buffer: &'a Buffer,
    /// The byte offset of the first element.
    pub offset: usize,
    /// The dtype and shape of the elements.
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

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Returns the device of the buffer.
    pub fn device(&self) -> &DeviceInfo {
        self.opened.device.info()
    }

    /// The buffer's number among buffers with guards.
    pub(super) fn guard(&self) -> Option<usize> {
        self.guard
    }

    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Returns the underlying memory, for commands of your own. Returns `invalid_argument` if the buffer was freed.
    pub fn memory(&self) -> Result<Arc<dyn hal::Buffer>> {
        match &*self.memory.read().unwrap_or_else(PoisonError::into_inner) {
            Some(memory) => Ok(memory.clone()),
            None => fail!(InvalidArgument, "the buffer of {} bytes was freed", self.bytes),
        }
    }

    /// Copies values to a byte offset of the buffer, after everything that the context enqueued, and waits until they are
    /// written. Any stream may use them then. [`Stream::upload`](super::Stream::upload) does not wait. Returns `invalid_argument`
    /// if the values don't fit or the buffer was freed.
    pub fn write<T: Element>(&self, offset: usize, data: &[T]) -> Result<()> {
        // SAFETY: any Copy slice is readable as its bytes.
        self.write_bytes(offset, unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) })
    }

    /// Copies bytes like [`Buffer::write`].
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let memory = self.memory()?;
        let what = What::bytes(Activity::Upload, bytes.len(), "", Reason::Operands);
        self.opened.watched(&what, |stream| stream.write(&*memory, offset, bytes))?;
        self.opened.catch_up()?;
        self.opened.with(|stream| stream.synchronize())
    }

    /// Waits for everything that the context enqueued and copies values from a byte offset. Returns `invalid_argument` if there
    /// are fewer values or the buffer was freed.
    pub fn read<T: Element>(&self, offset: usize, into: &mut [T]) -> Result<()> {
        let bytes = size_of_val(into);
        // SAFETY: elements may have any bits, so the slice is writable as its bytes.
        self.read_bytes(offset, unsafe { std::slice::from_raw_parts_mut(into.as_mut_ptr().cast(), bytes) })
    }

    /// Reads bytes like [`Buffer::read`].
    pub fn read_bytes(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        let (memory, size) = (self.memory()?, into.len());
        let what = What::bytes(Activity::Download, size, "", Reason::Operands);
        self.opened.catch_up()?;
        self.opened.watched(&what, |stream| stream.read(&*memory, offset, into))
    }

    /// Reads a part of the buffer, from a byte offset, into a new tensor. Returns `invalid_argument` if the part does not fit or
    /// the buffer was freed.
    pub fn to_tensor(&self, offset: usize, meta: &Meta) -> Result<Tensor> {
        Tensor::filled(meta, |to| {
            // SAFETY: this is the new tensor's memory, which nothing else uses. It is written before it is read.
            let into = unsafe { std::slice::from_raw_parts_mut(to.host()?, meta.bytes()) };
            self.read_bytes(offset, into)
        })
    }

    /// Reads the whole buffer as values. Returns `invalid_argument` if its size is not a multiple of the element size.
    pub fn to_vec<T: Element + Default>(&self) -> Result<Vec<T>> {
        let size = size_of::<T>();
        if !self.bytes.is_multiple_of(size) {
            fail!(
                InvalidArgument,
                "a buffer of {} bytes is not a whole number of {}s of {size} bytes",
                self.bytes,
                T::DTYPE
            );
        }
        let mut values = vec![T::default(); self.bytes / size];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// Frees the memory once the work that uses it is done. Returns `invalid_argument` if it was freed before.
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
