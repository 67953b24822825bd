//! Memory on a device, as an operand.

use std::any::Any;
use std::ptr::NonNull;

/// Memory on a device.
///
/// # Safety
/// `size` bytes, initialised, are there at `host_pointer` or `device_address`, where it has one, as long as the buffer is; neither
/// changes. Commands and streams trust that.
pub unsafe trait Buffer: Send + Sync {
    /// Bytes.
    fn size(&self) -> usize;

    /// The device that it is on, for messages.
    fn device_name(&self) -> &str;

    /// Its first byte, where the host can address it.
    fn host_pointer(&self) -> Option<NonNull<u8>>;

    /// Its first byte, where kernels of others on the same device can address it: CUDA's.
    fn device_address(&self) -> Option<u64> {
        None
    }

    /// Itself, for its own backend.
    fn as_any(&self) -> &dyn Any;
}
