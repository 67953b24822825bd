//! Numbers that stand for matrices and streams.

use crate::flat::adead_flat_handle;
use crate::pointers::fail;
use adead_core::gpu::{Buffer, Stream};
use adead_core::{Context, DType, Meta, Result, Shape};
use std::sync::Arc;

/// Which device: the CPU, or a GPU by its number.
#[derive(Clone, Copy, PartialEq)]
pub struct Place {
    pub use_gpu: bool,
    pub device: i32,
}

/// A device that was used.
pub struct Device {
    pub place: Place,
    pub context: Context,
    /// That of work which names none.
    pub stream: Stream,
}

pub struct Matrix {
    pub place: Place,
    pub buffer: Arc<Buffer>,
    pub rows: i64,
    pub cols: i64,
    /// The stream that used it last; 0 is the device's own. One that is gone has done its work.
    pub used_in: adead_flat_handle,
}

impl Matrix {
    pub fn new(place: Place, buffer: Buffer, rows: i64, cols: i64) -> Matrix {
        Matrix { place, buffer: Arc::new(buffer), rows, cols, used_in: 0 }
    }

    pub fn meta(&self) -> Result<Meta> {
        Ok(Meta::new(DType::F32, Shape::new(&[self.rows as usize, self.cols as usize])?))
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Matrix = 1,
    Stream = 2,
}

impl Kind {
    fn name(self) -> &'static str {
        if self == Kind::Matrix { "a matrix" } else { "a stream" }
    }
}

pub enum Entry {
    Matrix(Matrix),
    Stream(Place, Stream),
}

impl Entry {
    fn kind(&self) -> Kind {
        match self {
            Entry::Matrix(_) => Kind::Matrix,
            Entry::Stream(..) => Kind::Stream,
        }
    }
}

struct Slot {
    /// How often it was used.
    generation: u64,
    /// None where it is free.
    entry: Option<Entry>,
}

/// A number has a slot's place in its lower half, counted from 1, and above that how often the slot was used and the kind. So a
/// number that was freed is known as such, also when its place is taken again.
const KIND_SHIFT: u32 = 56;
const GENERATION_SHIFT: u32 = 32;
const GENERATIONS: u64 = 0xff_ffff;

/// All matrices and streams, and the devices that were used, each opened once.
pub struct Table {
    slots: Vec<Slot>,
    /// Places that are free, the one that was freed last at the end.
    freed: Vec<u32>,
    pub devices: Vec<Device>,
}

impl Table {
    pub const fn new() -> Table {
        Table { slots: Vec::new(), freed: Vec::new(), devices: Vec::new() }
    }

    /// Room for one more, which the next `add` takes.
    pub fn reserve(&mut self) -> Result<()> {
        let count = self.slots.len();
        if count >= u32::MAX as usize {
            fail!(OutOfMemory, "{count} matrices and streams are all that there can be");
        }
        // Every slot's place can be freed without memory.
        if self.slots.try_reserve(1).is_err() || self.freed.try_reserve(count + 1 - self.freed.len()).is_err() {
            fail!(OutOfMemory, "no memory for {} matrices and streams", count + 1);
        }
        Ok(())
    }

    /// The number of a new entry.
    pub fn add(&mut self, entry: Entry) -> adead_flat_handle {
        let at = self.freed.pop().map_or(self.slots.len(), |at| at as usize);
        if at == self.slots.len() {
            self.slots.push(Slot { generation: 0, entry: None });
        }
        let (slot, kind) = (&mut self.slots[at], entry.kind() as u64);
        slot.generation = (slot.generation + 1) & GENERATIONS;
        slot.entry = Some(entry);
        (kind << KIND_SHIFT | slot.generation << GENERATION_SHIFT | (at as u64 + 1)) as adead_flat_handle
    }

    /// The slot of a number that stands for such a thing.
    fn find(&mut self, handle: adead_flat_handle, kind: Kind) -> Result<(usize, &mut Entry)> {
        let (bits, wanted) = (handle as u64, kind.name());
        let own = [Kind::Matrix, Kind::Stream].into_iter().find(|&own| own as u64 == bits >> KIND_SHIFT);
        let place = (bits & u64::from(u32::MAX)) as usize;
        let (Some(own), true) = (own, (1..=self.slots.len()).contains(&place)) else {
            fail!(InvalidArgument, "{handle} is no handle; {wanted} is wanted");
        };
        if own != kind {
            fail!(InvalidArgument, "{handle} is {}; {wanted} is wanted", own.name());
        }
        let slot = &mut self.slots[place - 1];
        let current = slot.generation == bits >> GENERATION_SHIFT & GENERATIONS;
        match &mut slot.entry {
            Some(entry) if current && entry.kind() == kind => Ok((place - 1, entry)),
            _ => fail!(InvalidArgument, "{handle} was {wanted} and is freed"),
        }
    }

    pub fn matrix(&mut self, handle: adead_flat_handle) -> Result<&mut Matrix> {
        match self.find(handle, Kind::Matrix)?.1 {
            Entry::Matrix(matrix) => Ok(matrix),
            Entry::Stream(..) => fail!(Internal, "{handle} is a stream"),
        }
    }

    pub fn stream(&mut self, handle: adead_flat_handle) -> Result<(Place, &mut Stream)> {
        match self.find(handle, Kind::Stream)?.1 {
            Entry::Stream(place, stream) => Ok((*place, stream)),
            Entry::Matrix(_) => fail!(Internal, "{handle} is a matrix"),
        }
    }

    /// Lets go of what a number stands for.
    pub fn remove(&mut self, handle: adead_flat_handle, kind: Kind) -> Result<()> {
        let at = self.find(handle, kind)?.0;
        self.slots[at].entry = None;
        self.freed.push(at as u32);
        Ok(())
    }

    pub fn live(&self) -> usize {
        self.slots.len() - self.freed.len()
    }

    /// Lets go of everything; numbers from before stay known as freed.
    pub fn reset(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.entry.take().is_some() {
                self.freed.push(at as u32);
            }
        }
        self.devices.clear();
    }
}
