//! Arrays: what layers take and return.

use super::device::Device;
use super::memory::{Block, Memory};
use adead_core::gpu::Operand;
use adead_core::{DType, Element, Error, Meta, Result, Shape, Status, Tensor, View, ViewMut, gpu};
use std::ptr::NonNull;
use std::sync::Arc;

/// A shaped value where its [`Device`] computes: in host memory, or on a GPU. Clones share the memory; contents don't change
/// once an array is made.
#[derive(Clone)]
pub struct Array {
    device: Device,
    pub(super) block: Arc<Block>,
    /// Where in the block it begins, in bytes.
    offset: usize,
    meta: Meta,
}

impl Array {
    pub(super) fn new(device: &Device, block: Block, meta: Meta) -> Array {
        Array { device: device.clone(), block: Arc::new(block), offset: 0, meta }
    }

    /// Where it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        self.meta.shape.dims()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.meta.dtype
    }

    /// Dtype and shape.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The same values in another shape of as many elements, without a copy. `shape_mismatch` for another number.
    pub fn reshape(&self, dims: &[usize]) -> Result<Array> {
        if let Some(tensor) = self.tensor() {
            return self.device.array(&tensor.reshape(dims)?);
        }
        let shape = Shape::new(dims)?;
        let own = &self.meta.shape;
        if shape.elements() != own.elements() {
            let (from, to) = (own.elements(), shape.elements());
            let text = format!("{own} can't become {shape}: {from} elements against {to}");
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        Ok(Array { meta: Meta::new(self.dtype(), shape), ..self.clone() })
    }

    /// `count` entries of the first axis from `first` on, without a copy. `shape_mismatch` for a scalar, `invalid_argument`
    /// beyond the end.
    pub fn rows(&self, first: usize, count: usize) -> Result<Array> {
        if let Some(tensor) = self.tensor() {
            return self.device.array(&tensor.rows(first, count)?);
        }
        let mut dims = self.dims().to_vec();
        let Some(rows) = dims.first_mut() else {
            return Err(Error::new(Status::ShapeMismatch, "a scalar has no rows"));
        };
        if first > *rows || count > *rows - first {
            let text = format!("there are no {count} rows from {first} on in {}", self.meta.shape);
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let skipped = self.meta.bytes().checked_div(*rows).unwrap_or(0) * first;
        *rows = count;
        let meta = Meta::new(self.dtype(), Shape::new(&dims)?);
        Ok(Array { offset: self.offset + skipped, meta, ..self.clone() })
    }

    /// Its values on their way to the host, behind everything that its device was given so far.
    pub fn download(&self) -> Result<Download> {
        Ok(Download(match self.block.memory() {
            Memory::Host(_) => Way::Here(self.clone()),
            Memory::Gpu(buffer) => Way::Coming(self.device.download(buffer, self.offset, self.meta.bytes())?),
        }))
    }

    /// Its values as a tensor.
    pub fn to_tensor(&self) -> Result<Tensor> {
        if let Some(tensor) = self.tensor() {
            return Ok(tensor.clone());
        }
        let bytes = self.download()?.to_bytes()?;
        Tensor::from_bytes(&bytes, self.dtype(), self.dims())
    }

    /// The tensor that it is, where its device keeps those.
    fn tensor(&self) -> Option<&Tensor> {
        match self.block.memory() {
            Memory::Host(tensor) if self.device.keeps_tensors() => Some(tensor),
            _ => None,
        }
    }

    /// Its first byte in host memory.
    fn host(&self) -> Option<NonNull<u8>> {
        let Memory::Host(tensor) = self.block.memory() else { return None };
        // SAFETY: the offset is inside the block.
        NonNull::new(unsafe { tensor.view().host().ok()?.add(self.offset) })
    }

    /// It as an operand in host memory.
    pub(super) fn view(&self) -> Result<View<'_>> {
        if let Some(tensor) = self.tensor() {
            return Ok(tensor.view());
        }
        let Some(start) = self.host() else { return Err(elsewhere()) };
        // SAFETY: aligned, as blocks are and offsets are whole elements; inside the block, which is kept; written before,
        // and by nobody while there are arrays in it.
        Ok(unsafe { View::from_raw(start, &self.meta) })
    }

    /// It as the operand that is written, in host memory: the caller says that the array, or this part of its block, is
    /// nobody else's yet.
    ///
    /// # Safety
    /// The block is a pool's, and no view of these bytes is there.
    pub(super) unsafe fn view_mut(&mut self) -> Result<ViewMut<'_>> {
        let Some(start) = self.host() else { return Err(elsewhere()) };
        // SAFETY: as for `view`; nobody else touches these bytes, as the caller says.
        Ok(unsafe { ViewMut::from_raw(start, &self.meta) })
    }

    /// It as an operand on a GPU.
    pub(super) fn operand(&self) -> Result<Operand<'_>> {
        match self.block.memory() {
            Memory::Gpu(buffer) => Ok(Operand { buffer, offset: self.offset, meta: &self.meta }),
            Memory::Host(_) => Err(elsewhere()),
        }
    }
}

fn elsewhere() -> Error {
    Error::new(Status::InvalidArgument, "the array is of another device: make it with the device of the layer")
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({:?} on {:?})", self.meta, self.device)
    }
}

/// Values on their way to the host.
pub struct Download(Way);

enum Way {
    Here(Array),
    Coming(gpu::Download),
}

impl Download {
    /// Waits for the bytes.
    pub fn to_bytes(self) -> Result<Vec<u8>> {
        match self.0 {
            Way::Coming(download) => download.to_bytes(),
            Way::Here(array) => {
                let start = array.host().ok_or_else(elsewhere)?;
                // SAFETY: the array's bytes, all written when it was made.
                Ok(unsafe { std::slice::from_raw_parts(start.as_ptr(), array.meta.bytes()) }.to_vec())
            }
        }
    }

    /// Waits for the values. `shape_mismatch` unless `into` has as many bytes.
    pub fn take<T: Element>(self, into: &mut [T]) -> Result<()> {
        let bytes = self.to_bytes()?;
        if bytes.len() != size_of_val(into) {
            let text = format!("{} bytes don't fit into {}", bytes.len(), size_of_val(into));
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        // SAFETY: as many bytes, and an element may have any bits.
        unsafe { into.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}
