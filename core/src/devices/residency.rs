//! Which values stay on a device, what is evicted when its memory is full, and where the operands of a command are.

use super::Opened;
use crate::command::Command;
use crate::error::{Error, Result, Status};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Buffer, Download, Event, Slice};
use crate::interrupt;
use crate::operand::{Place, View};
use crate::ops::{Op, check_ids};
use crate::profile::{Activity, Reason, What};
use crate::tensor::{Cache, Keeper, Piece, Tensor, is_same};
use std::ops::Range;
use std::sync::Arc;

/// The device memory of a result, if the result stays on a device.
pub(super) type ResultMemory = Option<Arc<dyn Buffer>>;

impl Opened {
    /// Allocates device memory, zeroed or with unspecified contents. Frees room if needed, as [`Opened::retry_when_full`]
    /// does.
    pub fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Arc<dyn Buffer>> {
        let device = &self.device;
        let memory = self.retry_when_full(u64::MAX, &mut || {
            if zeroed { device.allocate(bytes) } else { device.allocate_unset(bytes) }.map(Some)
        })?;
        memory.ok_or_else(|| Error::new(Status::Internal, "allocated memory was not returned"))
    }

    /// Calls `take`, which allocates device memory, and retries while the device has none left. Before the first retry,
    /// the stream's work finishes, because that work keeps the memory of dropped buffers. Before the second, all
    /// tensors not used after `since` are evicted. The caller must not hold the stream's lock.
    pub(super) fn retry_when_full(
        &self,
        since: u64,
        take: &mut dyn FnMut() -> Result<ResultMemory>,
    ) -> Result<ResultMemory> {
        let mut tried = 0;
        loop {
            match take() {
                Err(error) if is_full(&error) && self.free_memory(tried, since)? => tried += 1,
                done => return done,
            }
        }
    }

    /// Frees device memory in the way that `tried` selects. Returns whether a retry may succeed.
    #[cold]
    #[inline(never)]
    fn free_memory(&self, tried: usize, since: u64) -> Result<bool> {
        if tried > 1 || tried == 1 && !self.cache.shrink(self, 0, since)? {
            return Ok(false);
        }
        self.reuse.clear();
        // An error of this work is returned to the caller who synchronises.
        self.with(|stream| {
            stream.event()?.wait(u64::MAX)?;
            stream.is_idle()
        })?;
        Ok(true)
    }

    /// Makes room for a command's result and for its operands that are not on this device. First brings operands from
    /// other devices to the host, because this device's stream must not be locked then. Returns the tick from which
    /// uses are the command's own.
    pub(super) fn make_room(&self, command: &Command<'_>) -> Result<u64> {
        let since = self.cache.use_one();
        let mut bytes = command.output().meta().bytes();
        let (mut hits, mut misses) = (0, 0);
        for view in command.inputs().iter().flatten() {
            let Some((tensor, at)) = Tensor::at(view.place()) else { continue };
            if tensor.part_on(self, at..at + view.meta().bytes()).is_some() {
                hits += 1;
                continue;
            }
            misses += 1;
            if self.bring(tensor)? {
                continue;
            }
            view.host()?;
            bytes += view.meta().bytes();
        }
        self.cache.count(hits, misses);
        self.cache.make_room(self, bytes as u64, since)?;
        Ok(since)
    }

    /// Copies a tensor's values from other devices to this one, if it reaches their memory. Returns whether it did. The caller must
    /// not hold the stream's lock.
    pub fn bring(&self, tensor: &Tensor) -> Result<bool> {
        // No other backend's devices reach each other's memory.
        if !cfg!(feature = "cuda") {
            return Ok(false);
        }
        let (root, _) = tensor.root();
        match self.bring_pieces(root) {
            // What is on the host too needs no other device.
            Err(_) if root.if_on_host().is_some() => Ok(false),
            done => done,
        }
    }

    fn bring_pieces(&self, root: &Tensor) -> Result<bool> {
        let pieces = root.pieces();
        let is_own = |piece: &Piece| is_same(&*piece.keeper, self);
        let reaches = |piece: &Piece| is_own(piece) || self.device.reaches(&*piece.memory);
        if pieces.is_empty() || !pieces.iter().all(reaches) {
            return Ok(false);
        }
        let (bytes, since) = (root.byte_len(), self.cache.use_one());
        self.cache.make_room(self, bytes as u64, since)?;
        let buffer = self.allocate(bytes, false)?;
        for piece in &pieces {
            let what = What::bytes(Activity::Copy, piece.bytes.len(), "tensor", Reason::Operands);
            let to = Slice { buffer: &*buffer, offset: piece.bytes.start, bytes: piece.bytes.len() };
            if is_own(piece) {
                self.watched(&what, |stream| stream.copy(piece.slice(), to))?;
                continue;
            }
            // Taken before this device's stream is locked, because two devices may copy from one another.
            let after = piece.keeper.point()?;
            self.watched(&what, |stream| stream.copy_from(piece.slice(), &*after, to))?;
            piece.keeper.lend(piece.memory.clone(), self.point()?);
        }
        if let Some(opened) = self.me.upgrade() {
            root.keep_copy(opened, &buffer);
        }
        Ok(true)
    }

    /// Copies a tensor's values to this device, unless a copy is there.
    pub fn upload_tensor(&self, tensor: &Tensor) -> Result<()> {
        let (root, _) = tensor.root();
        self.upload_part(root, 0..root.byte_len())
    }

    /// Copies these bytes of a root to this device, unless they are there.
    pub(super) fn upload_part(&self, root: &Tensor, part: Range<usize>) -> Result<()> {
        if root.part_on(self, part.clone()).is_some() || self.bring(root)? {
            return Ok(());
        }
        let (bytes, since) = (&root.host_bytes()?[part.clone()], self.cache.use_one());
        self.cache.make_room(self, bytes.len() as u64, since)?;
        let buffer = self.allocate(bytes.len(), false)?;
        let what = What::bytes(Activity::Upload, bytes.len(), "tensor", Reason::Operands);
        self.watched(&what, |stream| stream.write(&*buffer, 0, bytes))?;
        if let Some(opened) = self.me.upgrade() {
            root.keep_part(opened, &buffer, part);
        }
        Ok(())
    }
}

impl Keeper for Opened {
    fn id(&self) -> &str {
        &self.device.info().id
    }

    fn cache(&self) -> &Cache {
        &self.cache
    }

    fn point(&self) -> Result<Arc<dyn Event>> {
        self.with(|stream| stream.event())
    }

    fn download(&self, part: Slice<'_>) -> Result<Box<dyn Download>> {
        let what = What::bytes(Activity::Download, part.bytes, "tensor", Reason::Operands);
        self.with(|stream| {
            let mut watch = self.begin_watch(0, stream);
            let download = stream.download(part)?;
            watch.step(stream, &what);
            Ok(download)
        })
    }

    fn take(&self, download: Box<dyn Download>, into: &mut [u8]) -> Result<()> {
        let _environment = DefaultEnvironment::enter();
        interrupt::arrived(&*download)?;
        download.take(into)
    }

    fn read(&self, part: Slice<'_>, into: &mut [u8]) -> Result<()> {
        let what = What::bytes(Activity::Download, into.len(), "tensor", Reason::Operands);
        self.catch_up()?;
        self.watched(&what, |stream| stream.read(part.buffer, part.offset, into))
    }

    fn lend(&self, memory: Arc<dyn Buffer>, until: Arc<dyn Event>) {
        self.reuse.lend(memory, until);
    }
}

fn is_full(error: &Error) -> bool {
    error.status() == Status::OutOfMemory
}

/// Returns the id of the device that holds an operand or the output of a command; `None` if all are in host memory.
pub(crate) fn device_of<'a>(command: &Command<'a>) -> Option<&'a str> {
    let on_device = |place| match place {
        Place::Buffer(buffer, _) if buffer.host_pointer().is_none() => Some(buffer.device_name()),
        Place::Packed(packed) => packed.on_device().map(|memory| memory.device_name()),
        _ => None,
    };
    on_device(command.output().place())
        .or_else(|| command.inputs().iter().flatten().find_map(|view| on_device(view.place())))
}

/// Returns whether an operand is in memory that the host can't address.
fn is_off_host(place: Place<'_>) -> bool {
    match place {
        Place::Buffer(buffer, _) => buffer.host_pointer().is_none(),
        Place::Tensor(tensor, _) => tensor.if_on_host().is_none(),
        Place::Packed(packed) => packed.on_device().is_some(),
        _ => false,
    }
}

/// Returns whether all operands of a command are in memory that the host can address.
pub(crate) fn are_on_host(command: &Command<'_>) -> bool {
    !is_off_host(command.output().place()) && !command.inputs().iter().flatten().any(|view| is_off_host(view.place()))
}

/// Returns whether only the device can check that a command's ids are rows of its table. Ids in host memory are checked here, because
/// that takes less time than waiting for the device.
pub(super) fn needs_device_check(command: &Command<'_>) -> bool {
    let ids = match command.inputs() {
        [_, Some(ids)] if command.op() == Op::Embedding => ids,
        _ => return command.op().checks_ids(),
    };
    is_off_host(ids.place()) || check_ids(command.inputs(), 0..ids.shape().elements()).is_err()
}

/// Downloads operands that are tensors on devices.
pub(crate) fn download_inputs(inputs: &[Option<View<'_>>]) -> Result<()> {
    let tensors = inputs.iter().flatten().filter(|view| matches!(view.place(), Place::Tensor(..)));
    tensors.map(View::host).try_for_each(|first| first.map(|_| ()))
}

#[cfg(all(test, feature = "cuda"))]
mod tests;
