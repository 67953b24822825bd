//! How an opened device runs a command: it uploads the operands, and leaves the result on the device or downloads it.

use super::Opened;
use super::residency::{ResultMemory, needs_device_check};
use crate::command::Command;
use crate::error::{Result, fail};
use crate::hal::{Buffer, Stream};
use crate::operand::{Inputs, Place, View, ViewMut};
use crate::ops::{Cut, Part};
use crate::profile::{Activity, Reason, Watch, What};
use crate::tensor::{Piece, Tensor};
use std::slice;
use std::sync::Arc;

impl Opened {
    /// Executes a command; `reason` says why it runs here. Uploads operands in host memory, and returns when the caller
    /// may reuse them. If the output is in host memory, returns when it has been written.
    pub fn execute(&self, command: &mut Command<'_>, reason: Reason) -> Result<()> {
        self.run_with_room(command, reason, true).map(|_| ())
    }

    /// Executes a command whose output is only a description, and returns the result as a tensor on this device.
    /// Returns when the operation is enqueued; if its operands can be invalid (ids), when it is done.
    pub fn compute(&self, command: &mut Command<'_>, reason: Reason) -> Result<Tensor> {
        let computed = self.run_with_room(command, reason, false)?;
        let (Some(memory), Some(opened)) = (computed, self.me.upgrade()) else {
            fail!(Internal, "{}: the result has no memory", command.op())
        };
        Ok(Tensor::computed(command.output().meta(), opened, memory))
    }

    /// Enqueues a part of an operation, and returns its piece of the result.
    pub fn compute_part(&self, cut: &Cut<'_>, part: &Part) -> Result<Piece> {
        let inputs = part.inputs(cut)?;
        let mut command = Command::lent(cut.op(), cut.attrs(), &inputs, ViewMut::nowhere(part.result()))?;
        // Each device keeps its rows, for the next operation.
        for view in inputs.iter().flatten() {
            if let Some((tensor, at)) = Tensor::at(view.place()) {
                self.upload_part(tensor, at..at + view.meta().bytes())?;
            }
        }
        let computed = self.run_with_room(&mut command, Reason::Split, false)?;
        let (Some(memory), Some(keeper)) = (computed, self.me.upgrade()) else {
            fail!(Internal, "{}: the result has no memory", cut.op())
        };
        Ok(Piece { keeper, memory, bytes: part.skipped()..part.skipped() + part.result().bytes() })
    }

    /// Returns whether a part's operands have to be uploaded to this device.
    pub fn lacks(&self, cut: &Cut<'_>, part: &Part) -> Result<bool> {
        let lacks = |view: &View<'_>| match Tensor::at(view.place()) {
            Some((root, at)) => {
                root.if_on_host().is_some() && root.part_on(self, at..at + view.meta().bytes()).is_none()
            }
            None => true,
        };
        Ok(part.inputs(cut)?.iter().flatten().any(lacks))
    }

    /// Makes room for a command's operands and result, then executes it. Other tensors are evicted to stay within the
    /// budget. If the device still has no memory, all other tensors are evicted. `to_host`: download the result.
    fn run_with_room(&self, command: &mut Command<'_>, reason: Reason, to_host: bool) -> Result<ResultMemory> {
        let since = self.make_room(command)?;
        let needs_device_check = !to_host && needs_device_check(command);
        self.retry_when_full(since, &mut || {
            self.with(|stream| {
                let mut watch = self.begin_watch(0, stream);
                let result = self.send(stream, command, reason, &mut watch)?;
                match &result {
                    Some(result) if to_host => {
                        let bytes = command.output().meta().bytes();
                        // SAFETY: the maker of the view vouched for `bytes` bytes there that nobody else uses.
                        let into = unsafe { slice::from_raw_parts_mut(command.output().host()?, bytes) };
                        stream.read(&**result, 0, into)?;
                        watch.step(stream, &What::bytes(Activity::Download, bytes, command.op().name(), reason));
                    }
                    Some(_) if needs_device_check => stream.synchronize()?,
                    _ => {}
                }
                Ok(result)
            })
        })
    }

    /// Enqueues a command under a watch; `reason` says why it runs here. Uploads operands in host memory, which the
    /// caller may reuse when it returns. If the output is in host memory, returns the buffer that will hold the result.
    pub fn send(
        &self,
        stream: &mut dyn Stream,
        command: &mut Command<'_>,
        reason: Reason,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Arc<dyn Buffer>>> {
        let mut moved: [Option<(Arc<dyn Buffer>, usize)>; 8] = Default::default();
        if command.inputs().len() > moved.len() {
            return self.send_with_copies(stream, command, reason, watch, &mut vec![None; command.inputs().len()]);
        }
        self.send_with_copies(stream, command, reason, watch, &mut moved)
    }

    fn send_with_copies(
        &self,
        stream: &mut dyn Stream,
        command: &mut Command<'_>,
        reason: Reason,
        watch: &mut Watch<'_>,
        moved: &mut [Option<(Arc<dyn Buffer>, usize)>],
    ) -> Result<Option<Arc<dyn Buffer>>> {
        for (place, view) in moved.iter_mut().zip(command.inputs()) {
            let Some(view) = view else { continue };
            if is_in_device_memory(view.place()) {
                continue;
            }
            let tensor = Tensor::at(view.place());
            *place = tensor.and_then(|(tensor, at)| tensor.part_on(self, at..at + view.meta().bytes()));
            if place.is_some() {
                continue;
            }
            let bytes = view.meta().bytes();
            let buffer = self.device.allocate_unset(bytes)?;
            // SAFETY: the maker of the view vouched for that many initialised bytes while the view is borrowed.
            stream.write(&*buffer, 0, unsafe { slice::from_raw_parts(view.host()?, bytes) })?;
            watch.step(stream, &What::bytes(Activity::Upload, bytes, command.op().name(), reason));
            // A part of a tensor is not kept as the tensor's copy.
            if let (Some((tensor, 0)), Some(opened)) = (tensor, self.me.upgrade())
                && tensor.byte_len() == bytes
            {
                tensor.keep_copy(opened, &buffer);
            }
            *place = Some((buffer, 0));
        }
        let mut inputs = Inputs::new();
        for (moved, view) in moved.iter().zip(command.inputs()) {
            inputs.push(match (moved, view) {
                (Some((buffer, at)), Some(view)) => Some(View::buffer(&**buffer, *at, view.meta())?),
                (_, view) => *view,
            });
        }
        let (op, attrs, _, output) = command.parts();
        let meta = output.meta();
        let is_in_device_memory = is_in_device_memory(output.place());
        let result = if is_in_device_memory { None } else { Some(self.memory_of_result(meta.bytes())?) };
        let output = match &result {
            Some(result) => ViewMut::buffer(&**result, 0, meta)?,
            None => output.reborrow(),
        };
        // SAFETY: operation, attributes and descriptions come from a checked command. Uploaded operands have their own
        // memory, so the command's check for overlap still holds.
        stream.submit(&mut [unsafe { Command::unchecked(op, attrs, &inputs, output) }])?;
        watch.step(stream, &What::command(command, reason));
        Ok(result)
    }
}

/// Returns whether an operand is in the memory of a device, which the host can't address.
fn is_in_device_memory(place: Place<'_>) -> bool {
    match place {
        Place::Buffer(buffer, _) => buffer.host_pointer().is_none(),
        Place::Packed(packed) => packed.on_device().is_some(),
        _ => false,
    }
}
