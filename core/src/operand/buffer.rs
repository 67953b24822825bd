//! Device memory as an operand.

use std::any::Any;
use std::ptr::NonNull;

/// Memory on a device.
///
/// # Safety
/// `size` initialised bytes must exist at `host_pointer` or `device_address`, if it has one, as long as the buffer does. Neither
/// may change. Commands and streams rely on that.
pub unsafe trait Buffer: Send + Sync {
    /// Returns the size in bytes.
    fn size(&self) -> usize;

    /// Returns the name of the buffer's device, for messages.
    fn device_name(&self) -> &str;

    /// Returns the address of the first byte, if the host can access it.
    fn host_pointer(&self) -> Option<NonNull<u8>>;

    /// Returns the device address of the first byte, if other code's kernels on the same device can access it (CUDA).
    fn device_address(&self) -> Option<u64> {
        None
    }

    /// Returns itself, for its own backend to downcast.
    fn as_any(&self) -> &dyn Any;
}
