//! Tensors in a GPU's memory for other code of the process, such as a library that moves bytes between GPUs.

use super::Context;
use crate::error::{Result, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::Buffer;
use crate::operand::Meta;
use crate::tensor::Tensor;
use std::sync::Arc;

/// Work of other code: it is given the addresses of the inputs and of the outputs.
pub type Lent<'a> = &'a mut dyn FnMut(&[u64], &[u64]) -> Result<()>;

/// The address that kernels use.
fn address(memory: &dyn Buffer, device: &str) -> Result<u64> {
    match memory.device_address() {
        Some(address) => Ok(address),
        None => fail!(Unsupported, "{device}: its memory has no addresses that other code could use"),
    }
}

impl Context {
    /// Runs work of other code on tensors in a GPU's memory, and returns new tensors that it wrote and that stay there. Inputs that
    /// are elsewhere are copied to the GPU first. When the work begins, everything that the context enqueued on the GPU has finished,
    /// and in CUDA the device's primary context is current. Returns `unsupported` for the processor and for a device without
    /// addresses, and the work's errors.
    ///
    /// # Safety
    /// The work must write every byte of the outputs and no byte of the inputs, and be finished when it returns.
    pub unsafe fn lend(
        &self,
        device: &str,
        inputs: &[&Tensor],
        outputs: &[Meta],
        work: Lent<'_>,
    ) -> Result<Vec<Tensor>> {
        let _environment = DefaultEnvironment::enter();
        let Some(slot) = self.named(device)? else {
            fail!(Unsupported, "{device}: only a GPU's memory can be lent");
        };
        let opened = slot.opened()?;
        inputs.iter().try_for_each(|tensor| opened.upload_tensor(tensor))?;
        let bytes: usize = outputs.iter().map(Meta::bytes).sum();
        opened.cache.make_room(&**opened, bytes as u64, opened.cache.use_one())?;
        let memory = outputs.iter().map(|meta| opened.allocate(meta.bytes(), false)).collect::<Result<Vec<_>>>()?;
        // Held until the work is done, so that no other thread evicts them.
        let mut held: Vec<Arc<dyn Buffer>> = Vec::new();
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
        opened.catch_up()?;
        opened.with(|stream| stream.synchronize())?;
        opened.device.lend(&mut || work(&from, &to))?;
        Ok(outputs.iter().zip(memory).map(|(meta, memory)| Tensor::computed(meta, opened.clone(), memory)).collect())
    }
}
