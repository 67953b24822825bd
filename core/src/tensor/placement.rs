//! The places of a tensor's values: host memory, devices, or both.

use super::copies::{Copies, Keeper, Piece};
use super::{Origin, Storage, Tensor};
use crate::error::{Result, fail};
use crate::hal::{Buffer, DeviceKind};
use crate::operand::{Place, Residence};
use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

impl Tensor {
    /// Returns the tensor whose storage and copies this one shares, and this one's byte offset in it. A tensor that is not a
    /// part of another is its own root.
    #[inline]
    pub(crate) fn root(&self) -> (&Tensor, usize) {
        match &self.0.storage {
            Storage::Of(Origin::Tensor(origin, at, _)) => (origin, *at),
            _ => (self, 0),
        }
    }

    /// Returns the first byte of a root's own memory. `None` if a device computed the values.
    #[inline]
    pub(super) fn own_memory(&self) -> Option<NonNull<u8>> {
        match &self.0.storage {
            Storage::Own(buffer) => Some(buffer.pointer()),
            Storage::Lent(block) => Some(block.pointer()),
            Storage::Of(Origin::Foreign(foreign)) => Some(foreign.start),
            _ => None,
        }
    }

    /// Returns the root of an operand that is a tensor, and the operand's byte offset in it.
    pub(crate) fn at(place: Place<'_>) -> Option<(&Tensor, usize)> {
        let Place::Tensor(values, at) = place else { return None };
        Some((values.as_any().downcast_ref()?, at))
    }

    /// Returns the first byte in host memory. `None` if the values are on devices only.
    pub(crate) fn if_on_host(&self) -> Option<NonNull<u8>> {
        let (root, at) = self.root();
        match root.own_memory() {
            None if !root.0.copies.get()?.are_on_host() => Some(self.0.read_alone()?.get()?.pointer()),
            // SAFETY: a part begins inside its origin.
            Some(own) => Some(unsafe { own.add(at) }),
            None => self.host().ok(),
        }
    }

    /// Returns the first byte in host memory. Values that are on devices only are copied there first.
    #[inline]
    pub(crate) fn host(&self) -> Result<NonNull<u8>> {
        let (root, at) = self.root();
        let first = match root.own_memory() {
            Some(own) => own,
            None => return self.fetched(),
        };
        // SAFETY: a part begins inside its origin.
        Ok(unsafe { first.add(at) })
    }

    #[cold]
    #[inline(never)]
    fn fetched(&self) -> Result<NonNull<u8>> {
        let (root, at) = self.root();
        let Some(copies) = root.0.copies.get() else { fail!(Internal, "a tensor's values are missing") };
        if let Some(alone) = self.0.read_alone() {
            if let Some(read) = alone.get() {
                return Ok(read.pointer());
            }
            if let Some(read) = copies.read_part(at..at + self.byte_len())? {
                // Another thread may have read the same values first.
                return Ok(alone.get_or_init(|| Box::new(read)).pointer());
            }
        }
        // SAFETY: a part begins inside its origin.
        Ok(unsafe { copies.fetch()?.add(at) })
    }

    /// Whether another tensor is the same part of the same memory, with the same description. Values never change, so the two are
    /// then interchangeable.
    pub(crate) fn is_same(&self, other: &Tensor) -> bool {
        let ((root, at), (other_root, other_at)) = (self.root(), other.root());
        Arc::ptr_eq(&root.0, &other_root.0) && at == other_at && self.0.meta == other.0.meta
    }

    /// Whether this is the only clone.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Returns the record of a root's copies.
    fn copies(&self) -> &Arc<Copies> {
        self.0.copies.get_or_init(|| Copies::new(self.byte_len(), true))
    }

    /// Returns the copy of a root on a device, and counts a use of it.
    pub(crate) fn copy_on(&self, keeper: &dyn Keeper) -> Option<Arc<dyn Buffer>> {
        Some(self.part_on(keeper, 0..self.byte_len())?.0)
    }

    /// Returns a device's memory that has these bytes of a root, and the first byte's place in it. Counts a use of it.
    pub(crate) fn part_on(&self, keeper: &dyn Keeper, part: Range<usize>) -> Option<(Arc<dyn Buffer>, usize)> {
        self.0.copies.get()?.on(keeper, part)
    }

    /// Returns what devices have of a root: pieces that together are all values. Empty if some are on no device.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        self.0.copies.get().map_or(Vec::new(), |copies| copies.pieces())
    }

    /// Keeps a device's copy of a whole root.
    pub(crate) fn keep_copy(&self, keeper: Arc<dyn Keeper>, memory: &Arc<dyn Buffer>) {
        self.keep_part(keeper, memory, 0..self.byte_len());
    }

    /// Keeps a device's copy of these bytes of a root.
    pub(crate) fn keep_part(&self, keeper: Arc<dyn Keeper>, memory: &Arc<dyn Buffer>, bytes: Range<usize>) {
        // A copy on the CPU device would be in host memory too.
        if memory.host_pointer().is_none() {
            self.copies().put(Piece { keeper, memory: memory.clone(), bytes });
        }
    }

    /// Calls `each` with the id of every device that has values of the root, and the bytes that it has; `None` if it has all.
    pub(crate) fn each_device(&self, each: &mut dyn FnMut(&str, Option<Range<usize>>)) {
        if let Some(copies) = self.root().0.0.copies.get() {
            copies.devices(each);
        }
    }

    /// Returns whether the values are in host memory, so that reading them does not wait for a device.
    pub fn is_on_host(&self) -> bool {
        self.if_on_host().is_some()
    }

    /// Returns whether the values are in a place: host memory (`cpu`), or the device with that id. Of a result that was divided
    /// among GPUs, each of them has its own rows.
    pub fn is_on(&self, place: &str) -> bool {
        let mut found = place == DeviceKind::Cpu.name() && self.is_on_host();
        self.each_device(&mut |id, _| found |= id == place);
        found
    }

    /// Lists the places of the values: `cpu` for host memory, and the ids of devices.
    pub fn places(&self) -> Vec<String> {
        let mut places = Vec::new();
        if self.is_on_host() {
            places.push(DeviceKind::Cpu.name().into());
        }
        // Two contexts may each have a copy on the same device.
        self.each_device(&mut |id, _| {
            if !places.iter().any(|place| place == id) {
                places.push(id.into());
            }
        });
        places
    }

    /// Copies the values to host memory if they are on devices only, and drops every copy on a device. The tensor keeps no such
    /// copies from now on. Call it before other code may write to the memory of [`Tensor::bytes`]: copies would not see the
    /// change.
    pub fn stay_on_host(&self) -> Result<()> {
        self.root().0.copies().stay_alone()
    }

    /// Starts to copy the values to host memory if they are on devices only, and returns a clone. It doesn't wait for the copy;
    /// the next read does. Returns the device's errors.
    pub fn to_cpu(&self) -> Result<Tensor> {
        if let Some(copies) = self.root().0.0.copies.get() {
            copies.come()?;
        }
        Ok(self.clone())
    }
}

// SAFETY: all bytes are written when the tensor is made or its values are copied from a device. Nothing writes to them after
// that, and they do not move before the tensor is dropped.
unsafe impl Residence for Tensor {
    fn host(&self) -> Result<NonNull<u8>> {
        Tensor::host(self)
    }

    fn if_on_host(&self) -> Option<NonNull<u8>> {
        Tensor::if_on_host(self)
    }

    fn each_device(&self, each: &mut dyn FnMut(&str, Option<Range<usize>>)) {
        Tensor::each_device(self, each);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
