//! The table behind the flat interface: handles of matrices and streams, and the operations on them.

use crate::flat::adead_flat_handle;
use crate::gpu::{gpu, gpus};
use crate::pointers::fail;
use adead_core::gpu::{Buffer, Operand, Stream};
use adead_core::{Attrs, Context, DType, Meta, Op, Result, Shape};
use std::sync::Arc;

/// A device: the CPU, or a GPU by its number.
#[derive(Clone, Copy, PartialEq)]
pub struct Place {
    pub use_gpu: bool,
    pub device: i32,
}

/// A device that was opened.
pub struct Device {
    pub place: Place,
    pub context: Context,
    /// The stream for work that names none.
    pub stream: Stream,
}

pub struct Matrix {
    pub place: Place,
    pub buffer: Arc<Buffer>,
    pub rows: i64,
    pub cols: i64,
    /// The stream that used it last; 0 is the device's own. A freed stream has finished its work.
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
    /// The number of entries that the slot has held, modulo 2^24.
    generation: u64,
    /// None if the slot is free.
    entry: Option<Entry>,
}

/// A handle's low 32 bits hold the slot's index, counted from 1. The next 24 hold the slot's generation, the highest
/// the kind. A freed handle is recognised by its generation, even after its slot is reused.
const KIND_SHIFT: u32 = 56;
const GENERATION_SHIFT: u32 = 32;
const GENERATIONS: u64 = 0xff_ffff;

/// All matrices and streams, and the devices in use, each opened once.
pub struct Table {
    slots: Vec<Slot>,
    /// The free slots; the most recently freed one is last.
    freed: Vec<u32>,
    pub devices: Vec<Device>,
}

impl Table {
    pub const fn new() -> Table {
        Table { slots: Vec::new(), freed: Vec::new(), devices: Vec::new() }
    }

    /// Reserves room for one more entry, which the next `add` uses.
    pub fn reserve(&mut self) -> Result<()> {
        let count = self.slots.len();
        if count >= u32::MAX as usize {
            fail!(OutOfMemory, "{count} matrices and streams exist, the maximum");
        }
        // Reserve for every slot, so that freeing never allocates.
        if self.slots.try_reserve(1).is_err() || self.freed.try_reserve(count + 1 - self.freed.len()).is_err() {
            fail!(OutOfMemory, "no memory for {} matrices and streams", count + 1);
        }
        Ok(())
    }

    /// Adds an entry and returns its handle.
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

    /// Finds the slot and the entry of a handle. `invalid_argument` unless it is a live handle of this kind.
    fn find(&mut self, handle: adead_flat_handle, kind: Kind) -> Result<(usize, &mut Entry)> {
        let (bits, wanted) = (handle as u64, kind.name());
        let own = [Kind::Matrix, Kind::Stream].into_iter().find(|&own| own as u64 == bits >> KIND_SHIFT);
        let place = (bits & u64::from(u32::MAX)) as usize;
        let (Some(own), true) = (own, (1..=self.slots.len()).contains(&place)) else {
            fail!(InvalidArgument, "{handle} is not a handle; expected {wanted}");
        };
        if own != kind {
            fail!(InvalidArgument, "{handle} is {}; expected {wanted}", own.name());
        }
        let slot = &mut self.slots[place - 1];
        let current = slot.generation == bits >> GENERATION_SHIFT & GENERATIONS;
        match &mut slot.entry {
            Some(entry) if current && entry.kind() == kind => Ok((place - 1, entry)),
            _ => fail!(InvalidArgument, "{handle} was {wanted}, now freed"),
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

    /// Removes the entry of a handle. `invalid_argument` unless it is a live handle of this kind.
    pub fn remove(&mut self, handle: adead_flat_handle, kind: Kind) -> Result<()> {
        let at = self.find(handle, kind)?.0;
        self.slots[at].entry = None;
        self.freed.push(at as u32);
        Ok(())
    }

    pub fn live(&self) -> usize {
        self.slots.len() - self.freed.len()
    }

    /// Removes every entry and closes every device. Earlier handles are still recognised as freed.
    pub fn reset(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.entry.take().is_some() {
                self.freed.push(at as u32);
            }
        }
        self.devices.clear();
    }
}

/// Returns how many GPUs the machine has.
pub fn gpu_count() -> Result<i32> {
    Ok(gpus()?.len() as i32)
}

/// Returns the name of a place: "cpu", "cuda:0". Opens no device.
pub fn id(at: Place) -> Result<String> {
    let Place { use_gpu, device } = at;
    if !use_gpu {
        if device != 0 {
            fail!(InvalidArgument, "device is {device}; the CPU has only device 0");
        }
        return Ok("cpu".into());
    }
    let gpus = gpu_count()?;
    if device < 0 {
        fail!(InvalidArgument, "GPU {device}: the first GPU is 0");
    }
    if device >= gpus {
        fail!(BackendUnavailable, "GPU {device}: this machine has {gpus}, numbered from 0");
    }
    Ok(gpu(device as usize)?.info.id.clone())
}

/// Returns the number of values of a matrix.
pub fn count_of(rows: i64, cols: i64) -> Result<usize> {
    if rows < 0 || cols < 0 {
        fail!(InvalidArgument, "[{rows}, {cols}]: a size can't be negative");
    }
    match rows.checked_mul(cols).filter(|count| count.checked_mul(size_of::<f32>() as i64).is_some()) {
        Some(count) => Ok(count as usize),
        None => fail!(OutOfMemory, "[{rows}, {cols}] is more than any process can address"),
    }
}

impl Table {
    /// Returns the device at a place, and opens it if necessary.
    pub fn device(&mut self, at: Place) -> Result<&mut Device> {
        let found = self.devices.iter().position(|device| device.place == at);
        let index = match found {
            Some(index) => index,
            None => {
                let context = Context::open(&id(at)?)?;
                let stream = context.stream()?;
                self.devices.push(Device { place: at, context, stream });
                self.devices.len() - 1
            }
        };
        Ok(&mut self.devices[index])
    }

    /// Makes a matrix of a copy of `values`, or of zeros if there are none.
    pub fn make(&mut self, values: Option<&[u8]>, rows: i64, cols: i64, at: Place) -> Result<adead_flat_handle> {
        let bytes = count_of(rows, cols)? * size_of::<f32>();
        self.reserve()?;
        let context = &self.device(at)?.context;
        let buffer = match values {
            Some(values) => context.buffer_of_bytes(values)?,
            None => context.buffer_zeroed(bytes)?,
        };
        Ok(self.add(Entry::Matrix(Matrix::new(at, buffer, rows, cols))))
    }

    /// Checks that a stream belongs to the device at a place; 0 is the device's own stream.
    pub fn check_stream(&mut self, handle: adead_flat_handle, at: Place) -> Result<()> {
        if handle != 0 && self.stream(handle)?.0 != at {
            fail!(InvalidArgument, "the stream and the matrix are on different devices");
        }
        self.device(at).map(drop)
    }

    /// Waits for a stream; 0 is the device's own. A freed stream has finished its work.
    pub fn wait(&mut self, handle: adead_flat_handle, at: Place) -> Result<()> {
        if handle == 0 {
            return self.device(at)?.stream.synchronize();
        }
        self.stream(handle).map_or(Ok(()), |(_, stream)| stream.synchronize())
    }

    /// Prepares a matrix for use in a stream: waits for another stream's work on it.
    pub fn hand_over(&mut self, matrix: adead_flat_handle, stream: adead_flat_handle) -> Result<()> {
        let (used_in, at) = self.matrix(matrix).map(|it| (it.used_in, it.place))?;
        if used_in != stream {
            self.wait(used_in, at)?;
            self.matrix(matrix)?.used_in = stream;
        }
        Ok(())
    }

    pub fn enqueue(
        &mut self,
        op: Op,
        operands: &[adead_flat_handle],
        attrs: &Attrs,
        stream: adead_flat_handle,
        result: adead_flat_handle,
    ) -> Result<()> {
        let written = self.matrix(result)?;
        let (at, target, meta) = (written.place, written.buffer.clone(), written.meta()?);
        self.check_stream(stream, at)?;
        let mut matrices = Vec::with_capacity(operands.len());
        for (i, &handle) in operands.iter().enumerate() {
            if handle == 0 {
                matrices.push(None);
                continue;
            }
            let matrix = self.matrix(handle)?;
            if handle == result {
                fail!(InvalidArgument, "{op}: the result is also operand {i}");
            }
            if matrix.place != at {
                fail!(
                    InvalidArgument,
                    "{op}: operand {i} is on another device than the result; copy it (adead_flat_to)"
                );
            }
            matrices.push(Some((matrix.buffer.clone(), matrix.meta()?)));
        }
        for &handle in operands.iter().filter(|&&handle| handle != 0).chain([&result]) {
            self.hand_over(handle, stream)?;
        }
        let mut inputs = Vec::with_capacity(matrices.len());
        for matrix in &matrices {
            inputs.push(matrix.as_ref().map(|(buffer, meta)| Operand { buffer, offset: 0, meta }));
        }
        let on = if stream == 0 { &mut self.device(at)?.stream } else { self.stream(stream)?.1 };
        on.run(op, attrs, &inputs, Operand { buffer: &target, offset: 0, meta: &meta })
    }

    pub fn multiply(&mut self, [a, b]: [adead_flat_handle; 2], stream: adead_flat_handle) -> Result<adead_flat_handle> {
        let (at, rows, shared) = self.matrix(a).map(|it| (it.place, it.rows, it.cols))?;
        let (inner, cols) = self.matrix(b).map(|it| (it.rows, it.cols))?;
        self.check_stream(stream, at)?;
        if shared != inner {
            fail!(
                ShapeMismatch,
                "matmul: A is [{rows}, {shared}] and B is [{inner}, {cols}]; A's columns must equal B's rows"
            );
        }
        let result = self.make(None, rows, cols, at)?;
        match self.enqueue(Op::Matmul, &[a, b], &Attrs::default(), stream, result) {
            Ok(()) => Ok(result),
            Err(error) => {
                self.remove(result, Kind::Matrix)?;
                Err(error)
            }
        }
    }

    /// Copies a matrix's values to the host.
    pub fn values(&mut self, handle: adead_flat_handle, into: &mut [u8]) -> Result<()> {
        let (used_in, at, buffer) = self.matrix(handle).map(|it| (it.used_in, it.place, it.buffer.clone()))?;
        self.wait(used_in, at)?;
        buffer.read_bytes(0, into)
    }

    /// Returns the size of a matrix in bytes. `shape_mismatch` unless it has `count` values.
    pub fn bytes(&mut self, handle: adead_flat_handle, count: i64) -> Result<usize> {
        let Matrix { rows, cols, .. } = *self.matrix(handle)?;
        if count != rows * cols {
            fail!(ShapeMismatch, "the matrix is [{rows}, {cols}] and takes {} values, not {count}", rows * cols);
        }
        Ok(count as usize * size_of::<f32>())
    }
}
