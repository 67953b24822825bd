//! Buffers: memory on a context's device.

use crate::call::asked;
use crate::context::adead_context;
use crate::pointers::{Out, array, array_mut, reference};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::gpu::Buffer;
use std::ffi::c_void;

/// A range of memory on a device, with a size in bytes and no type. Threads may share one, but must order their own
/// uses of it. Enqueued work keeps the memory of its buffers until it finishes.
pub struct adead_buffer(pub(crate) Buffer);
// Code relies on this: a handle's address is its Buffer's, so an array of handles is one of references to Buffers.
const _: () = assert!(std::mem::offset_of!(adead_buffer, 0) == 0 && size_of::<adead_buffer>() == size_of::<Buffer>());

/// Creates a buffer of `bytes` bytes on the context's GPU, or in host memory if the context has no GPU. It holds a copy
/// of the bytes at `data`, or zeros if `data` is NULL. `out_of_memory` reports the bytes requested and free.
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

/// Destroys a buffer, and frees its memory if that was not freed before. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_destroy(buffer: *mut adead_buffer) {
    guard_destroy(buffer);
}

/// Frees the memory once the work that uses it has finished. The handle stays valid until it is destroyed. A second
/// free, and any other use after it, fails with `invalid_argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_free(buffer: *mut adead_buffer) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { reference(buffer, "buffer") }?.0.free())
}

/// Returns the buffer's size in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_buffer_size(buffer: *const adead_buffer, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(buffer, "buffer", out, |buffer| Ok(buffer.0.size())) }
}

/// Copies `bytes` bytes from `data` to the buffer at `offset`, after everything that its context has enqueued. The
/// caller may reuse `data` when the call returns. `invalid_argument` if the bytes don't fit.
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

/// Waits for everything that the buffer's context has enqueued, and copies `bytes` bytes at `offset` to `dst`.
/// `invalid_argument` if the buffer has fewer bytes.
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
