//! The operations as kernels: which ones a command takes, with what parameters.

use super::encoder::Encoder;
use crate::command::Command;
use crate::error::{Result, fail};

/// Encodes a command, all of whose operands are on the device.
pub fn encode(encoder: &mut Encoder<'_>, command: &Command<'_>) -> Result<()> {
    let _ = encoder.limits();
    fail!(Unsupported, "{} has no Vulkan kernel yet", command.op)
}
