//! Buffers: memory on a context's device.

use crate::call::asked;
use crate::context::adead_context;
use crate::pointers::{Out, array, array_mut, reference};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::gpu::Buffer;
use std::ffi::c_void;

/// Memory on a device, with a size in bytes and no type. Threads may share one; the order of what they do with it is
/// theirs to make. Work that uses it keeps its memory until it is done.
pub struct adead_buffer(pub(crate) Buffer);
// So an array of handles is one of buffers.
const _: () = assert!(std::mem::offset_of!(adead_buffer, 0) == 0 && size_of::<adead_buffer>() == size_of::<Buffer>());

/// A buffer of `bytes` bytes on the context's GPU, or in host memory where it has none: a copy of what is at `data`, or
/// zeros where `data` is NULL. `out_of_memory` with the bytes asked and free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_create(
    context: *const adead_context,
    data: *const c_void,
    bytes: usize,
    out: *mut *mut adead_buffer,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
        let buffer = if data.is_null() {
            context.0.buffer_zeroed(bytes)?
        } else {
            // SAFETY: as above.
            context.0.buffer_of_bytes(unsafe { array(data.cast::<u8>(), bytes, "data") }?)?
        };
        out.give(adead_buffer(buffer));
        Ok(())
    })
}

/// Gives a buffer up, and its memory if that was not freed; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_destroy(buffer: *mut adead_buffer) {
    guard_destroy(buffer);
}

/// Gives the memory back, once work that uses it is done; the handle stays, to be destroyed. `invalid_argument` the
/// second time, and for any other use after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_free(buffer: *mut adead_buffer) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { reference(buffer, "buffer") }?.0.free())
}

/// Bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_size(buffer: *const adead_buffer, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(buffer, "buffer", out, |buffer| Ok(buffer.0.size())) }
}

/// Copies `bytes` bytes at `data` to the buffer from `offset` on, behind everything that its context enqueued; `data` is
/// the caller's again when it returns. `invalid_argument` if they don't fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_write(
    buffer: *mut adead_buffer,
    offset: usize,
    data: *const c_void,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (buffer, data) = unsafe { (reference(buffer, "buffer")?, array(data.cast::<u8>(), bytes, "data")?) };
        buffer.0.write_bytes(offset, data)
    })
}

/// Waits for everything that its context enqueued and copies `bytes` bytes from `offset` on to `dst`.
/// `invalid_argument` if there are fewer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_read(
    buffer: *const adead_buffer,
    offset: usize,
    dst: *mut c_void,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (buffer, into) = unsafe { (reference(buffer, "buffer")?, array_mut(dst, bytes, "dst")?) };
        buffer.0.read_bytes(offset, into)
    })
}
