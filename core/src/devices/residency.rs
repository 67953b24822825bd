//! Which values stay on a device, what leaves it where its memory ends, and where the operands of a command are.

use super::Opened;
use crate::command::Command;
use crate::error::{Error, Result, Status};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Buffer, Download, Slice};
use crate::interrupt;
use crate::operand::{Place, View};
use crate::ops::{Op, check_ids};
use crate::profile::{Activity, Reason, What};
use crate::tensor::{Cache, Keeper, Tensor};
use std::sync::Arc;

/// The memory that a result is in, if it stays on a device.
pub(super) type Kept = Option<Arc<dyn Buffer>>;

impl Opened {
    /// Memory of the device, of any contents or zeroed; see [`Opened::with_room`].
    pub fn allocate(&self, bytes: usize, zeroed: bool) -> Result<Arc<dyn Buffer>> {
        let device = &self.device;
        let memory = self.with_room(u64::MAX, &mut || {
            if zeroed { device.allocate(bytes) } else { device.allocate_unset(bytes) }.map(Some)
        })?;
        memory.ok_or_else(|| Error::new(Status::Internal, "memory that was allocated is nowhere"))
    }

    /// What takes memory of the device, while nobody has the stream. Where there is none left it is tried again: when work under
    /// way is done, which keeps the memory of what is gone, and when all tensors have left that were not used after `since`.
    pub(super) fn with_room(&self, since: u64, take: &mut dyn FnMut() -> Result<Kept>) -> Result<Kept> {
        let mut tried = 0;
        loop {
            match take() {
                Err(error) if is_full(&error) && self.find_room(tried, since)? => tried += 1,
                done => return done,
            }
        }
    }

    /// Whether there may be more room than before; what was tried says what is next.
    #[cold]
    #[inline(never)]
    fn find_room(&self, tried: usize, since: u64) -> Result<bool> {
        if tried > 1 || tried == 1 && !self.cache.shrink(self, 0, since)? {
            return Ok(false);
        }
        self.give_back();
        // What was wrong with that work is for whoever synchronises.
        self.with(|stream| {
            stream.event()?.wait(u64::MAX)?;
            stream.is_idle()
        })?;
        Ok(true)
    }

    /// Makes room for what a command's result and operands need here that is not here yet; operands that are on another device
    /// come to the host, before this one's stream is locked. The time from which on uses are the command's.
    pub(super) fn make_room(&self, command: &Command<'_>) -> Result<u64> {
        let since = self.cache.use_one();
        let mut bytes = command.output().meta().bytes();
        let (mut hits, mut misses) = (0, 0);
        for view in command.inputs().iter().flatten() {
            let Some((tensor, _)) = Tensor::at(view.place()) else { continue };
            if tensor.copy_on(self).is_some() {
                hits += 1;
                continue;
            }
            view.host()?;
            (misses, bytes) = (misses + 1, bytes + view.meta().bytes());
        }
        self.cache.count(hits, misses);
        self.cache.make_room(self, bytes as u64, since)?;
        Ok(since)
    }

    /// Makes a copy of a tensor's values here, unless there is one.
    pub fn bring(&self, tensor: &Tensor) -> Result<()> {
        let (root, _) = tensor.root();
        if root.copy_on(self).is_some() {
            return Ok(());
        }
        let (bytes, since) = (root.host_bytes()?, self.cache.use_one());
        self.cache.make_room(self, bytes.len() as u64, since)?;
        let buffer = self.allocate(bytes.len(), false)?;
        let what = What::bytes(Activity::Upload, bytes.len(), "tensor", Reason::Operands);
        self.watched(&what, |stream| stream.write(&*buffer, 0, bytes))?;
        if let Some(opened) = self.me.upgrade() {
            root.keep_copy(opened, &buffer);
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

    fn read(&self, memory: &dyn Buffer, into: &mut [u8]) -> Result<()> {
        let what = What::bytes(Activity::Download, into.len(), "tensor", Reason::Operands);
        self.catch_up()?;
        self.watched(&what, |stream| stream.read(memory, 0, into))
    }
}

fn is_full(error: &Error) -> bool {
    error.status() == Status::OutOfMemory
}

/// The device whose memory an operand of a command is in, by its id, if it is not the host's.
pub(crate) fn place_of<'a>(command: &Command<'a>) -> Option<&'a str> {
    let far = |place| match place {
        Place::Buffer(buffer, _) if buffer.host_pointer().is_none() => Some(buffer.device_name()),
        _ => None,
    };
    far(command.output().place()).or_else(|| command.inputs().iter().flatten().find_map(|view| far(view.place())))
}

/// Whether an operand is on a device alone, in memory that the host can't address.
fn is_far(place: Place<'_>) -> bool {
    match place {
        Place::Buffer(buffer, _) => buffer.host_pointer().is_none(),
        Place::Tensor(tensor, _) => tensor.if_on_host().is_none(),
        _ => false,
    }
}

/// Whether every operand of a command is in host memory, or in memory that the host can address.
pub(crate) fn are_on_host(command: &Command<'_>) -> bool {
    !is_far(command.output().place()) && !command.inputs().iter().flatten().any(|view| is_far(view.place()))
}

/// Whether only the device can say if the ids of a command are rows of its table. Ids in host memory are looked at here, which is
/// sooner done than waiting for the device.
pub(super) fn needs_answer(command: &Command<'_>) -> bool {
    let ids = match command.inputs() {
        [_, Some(ids)] if command.op() == Op::Embedding => ids,
        _ => return command.op().checks_ids(),
    };
    is_far(ids.place()) || check_ids(command.inputs(), 0..ids.shape().elements()).is_err()
}

/// Brings operands to host memory that are tensors on devices.
pub(crate) fn bring_to_host(inputs: &[Option<View<'_>>]) -> Result<()> {
    let tensors = inputs.iter().flatten().filter(|view| matches!(view.place(), Place::Tensor(..)));
    tensors.map(View::host).try_for_each(|first| first.map(|_| ()))
}

#[cfg(all(test, feature = "cuda"))]
mod tests;
