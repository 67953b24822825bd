//! Tensors in a GPU's memory for other code of the process, such as a library that moves bytes between GPUs.

use super::Context;
use crate::devices::Opened;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::{Buffer, Event};
use crate::operand::Meta;
use crate::tensor::{Keeper, Tensor};
use std::sync::Arc;

/// Gives work of other code to CUDA's default stream. It gets the addresses of the inputs and of the outputs.
pub type Give<'a> = &'a mut dyn FnMut(&[u64], &[u64]) -> Result<()>;

/// Tensors in a GPU's memory that other code writes: see [`Context::lend`].
#[must_use]
pub struct Writing {
    opened: Arc<Opened>,
    outputs: Vec<(Meta, Arc<dyn Buffer>)>,
    done: Arc<dyn Event>,
}

impl Writing {
    /// Returns whether the work is done.
    pub fn is_done(&self) -> Result<bool> {
        self.done.is_done()
    }

    /// Returns the outputs, which stay on the device. `not_ready` unless the work is done.
    pub fn finish(self) -> Result<Vec<Tensor>> {
        if !self.is_done()? {
            fail!(NotReady, "other code still writes the tensors");
        }
        let computed = |(meta, memory): (Meta, _)| Tensor::computed(&meta, self.opened.clone(), memory);
        Ok(self.outputs.into_iter().map(computed).collect())
    }
}

/// The address that kernels use.
fn address(memory: &dyn Buffer, device: &str) -> Result<u64> {
    match memory.device_address() {
        Some(address) => Ok(address),
        None => fail!(Unsupported, "{device}: its memory has no addresses that other code could use"),
    }
}

impl Context {
    /// Lets other code read tensors in a GPU's memory and write new ones. `give` gives its work to CUDA's default stream, with the
    /// device's primary context current, and need not wait for it. The work begins when everything that the context enqueued on the GPU so
    /// far has finished, and what is enqueued later does not wait for it. Inputs that are elsewhere are copied to the GPU first. Returns
    /// `unsupported` for the processor and for a device without addresses, and the errors of `give`.
    ///
    /// # Safety
    /// The work must write every byte of the outputs and no byte of the inputs, all of it on the default stream. If `give` returns an
    /// error, no work may use the memory any more.
    pub unsafe fn lend(&self, device: &str, inputs: &[&Tensor], outputs: &[Meta], give: Give<'_>) -> Result<Writing> {
        let _environment = DefaultEnvironment::enter();
        let Some(slot) = self.named(device)? else {
            fail!(Unsupported, "{device}: only a GPU's memory can be lent");
        };
        let opened = slot.opened()?;
        inputs.iter().try_for_each(|tensor| opened.upload_tensor(tensor))?;
        let bytes: usize = outputs.iter().map(Meta::bytes).sum();
        opened.cache.make_room(&**opened, bytes as u64, opened.cache.use_one())?;
        let memory = outputs.iter().map(|meta| opened.allocate(meta.bytes(), false)).collect::<Result<Vec<_>>>()?;
        let mut held = memory.clone();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for tensor in inputs {
            let (root, at) = tensor.root();
            let Some(copy) = root.copy_on(&**opened) else {
                fail!(OutOfMemory, "{device} keeps no copy of a tensor of {} bytes", root.byte_len());
            };
            from.push(address(&*copy, device)? + at as u64);
            held.push(copy);
        }
        for memory in &memory {
            to.push(address(&**memory, device)?);
        }
        let done = opened.device.lend(&*opened.point()?, &mut || give(&from, &to))?;
        // Nothing else gets the memory before the work is done, also if its tensors are dropped or evicted.
        held.into_iter().for_each(|memory| opened.lend(memory, done.clone()));
        Ok(Writing { opened: opened.clone(), outputs: outputs.iter().copied().zip(memory).collect(), done })
    }
}
