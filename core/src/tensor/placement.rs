//! Where a tensor's values are: in host memory, on devices, or both.

use super::copies::{Copies, Keeper};
use super::{Origin, Storage, Tensor};
use crate::error::{Result, fail};
use crate::hal::{Buffer, DeviceKind};
use crate::operand::{Place, Residence};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

impl Tensor {
    /// The tensor whose copies it shares, and where in it it begins.
    #[inline]
    pub(crate) fn root(&self) -> (&Tensor, usize) {
        match &self.0.storage {
            Storage::Of(Origin::Tensor(origin, at)) => (origin, *at),
            _ => (self, 0),
        }
    }

    /// The first byte of a root's own memory, if it has any.
    #[inline]
    pub(super) fn own_memory(&self) -> Option<NonNull<u8>> {
        match &self.0.storage {
            Storage::Own(buffer) => Some(buffer.pointer()),
            Storage::Lent(block) => Some(block.pointer()),
            Storage::Of(Origin::Foreign(foreign)) => Some(foreign.start),
            _ => None,
        }
    }

    /// The root that an operand's values are of, and where in it they begin.
    pub(crate) fn at(place: Place<'_>) -> Option<(&Tensor, usize)> {
        let Place::Tensor(values, at) = place else { return None };
        Some((values.as_any().downcast_ref()?, at))
    }

    /// Its first byte in host memory, if its values are there.
    pub(crate) fn if_on_host(&self) -> Option<NonNull<u8>> {
        let (root, at) = self.root();
        match root.own_memory() {
            None if !root.0.copies.get()?.are_on_host() => None,
            // SAFETY: a part begins inside its origin.
            Some(own) => Some(unsafe { own.add(at) }),
            None => self.host().ok(),
        }
    }

    /// Its first byte in host memory, where its values are brought if they are on devices only.
    #[inline]
    pub(crate) fn host(&self) -> Result<NonNull<u8>> {
        let (root, at) = self.root();
        let first = match root.own_memory() {
            Some(own) => own,
            None => root.fetched()?,
        };
        // SAFETY: a part begins inside its origin.
        Ok(unsafe { first.add(at) })
    }

    #[cold]
    #[inline(never)]
    fn fetched(&self) -> Result<NonNull<u8>> {
        match self.0.copies.get() {
            Some(copies) => copies.fetch(),
            None => fail!(Internal, "a tensor's values are nowhere"),
        }
    }

    /// Whether another tensor is the same part of the same memory, described alike. Values never change, so the two are then
    /// interchangeable.
    pub(crate) fn is_same(&self, other: &Tensor) -> bool {
        let ((root, at), (other_root, other_at)) = (self.root(), other.root());
        Arc::ptr_eq(&root.0, &other_root.0) && at == other_at && self.0.meta == other.0.meta
    }

    /// Whether nobody else has a clone of it.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The copies of a root.
    fn copies(&self) -> &Arc<Copies> {
        self.0.copies.get_or_init(|| Copies::new(self.byte_len(), true))
    }

    /// The copy that a device has of a root.
    pub(crate) fn copy_on(&self, keeper: &dyn Keeper) -> Option<Arc<dyn Buffer>> {
        self.0.copies.get()?.on(keeper)
    }

    /// Keeps a copy of all of a root.
    pub(crate) fn keep_copy(&self, keeper: Arc<dyn Keeper>, memory: &Arc<dyn Buffer>) {
        // A processor's is host memory.
        if memory.host_pointer().is_none() {
            self.copies().put(keeper, memory.clone());
        }
    }

    /// The ids of the devices that have its values.
    pub(crate) fn each_device(&self, each: &mut dyn FnMut(&str)) {
        if let Some(copies) = self.root().0.0.copies.get() {
            copies.devices(each);
        }
    }

    /// Whether its values are in host memory, where reading them waits for nothing.
    pub fn is_on_host(&self) -> bool {
        self.if_on_host().is_some()
    }

    /// Whether its values are in host memory (`cpu`) or on the device of that id.
    pub fn is_on(&self, place: &str) -> bool {
        let mut found = place == DeviceKind::Cpu.name() && self.is_on_host();
        self.each_device(&mut |id| found |= id == place);
        found
    }

    /// Where its values are: `cpu` for host memory, and ids of devices.
    pub fn places(&self) -> Vec<String> {
        let mut places = Vec::new();
        if self.is_on_host() {
            places.push(DeviceKind::Cpu.name().into());
        }
        // Two contexts may have a copy each on one device.
        self.each_device(&mut |id| {
            if !places.iter().any(|place| place == id) {
                places.push(id.into());
            }
        });
        places
    }

    /// Brings its values to host memory, gives up every copy, and keeps none from now on: for whoever lets others write to the
    /// memory of [`Tensor::bytes`], which devices would not see.
    pub fn stay_on_host(&self) -> Result<()> {
        self.root().0.copies().stay_alone()
    }

    /// Starts to bring its values to host memory, where they are on devices only, and doesn't wait for them: reading them does.
    /// Errors are the device's.
    pub fn to_cpu(&self) -> Result<Tensor> {
        if let Some(copies) = self.root().0.0.copies.get() {
            copies.come()?;
        }
        Ok(self.clone())
    }
}

// SAFETY: all bytes are written when the tensor is made or its values come from a device, nobody writes them after that, and they are
// not moved before it is dropped.
unsafe impl Residence for Tensor {
    fn host(&self) -> Result<NonNull<u8>> {
        Tensor::host(self)
    }

    fn if_on_host(&self) -> Option<NonNull<u8>> {
        Tensor::if_on_host(self)
    }

    fn each_device(&self, each: &mut dyn FnMut(&str)) {
        Tensor::each_device(self, each);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
