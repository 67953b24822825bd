//! The caller's streams: each runs its work in order, concurrently with other streams.

use crate::buffer::adead_buffer;
use crate::call::{asked_of, made, made_by};
use crate::context::adead_context;
use crate::event::{adead_download, adead_event, adead_recording, adead_timestamp};
use crate::kernel::{Call, adead_kernel};
use crate::op::{adead_attrs, adead_op, operation};
use crate::pointers::{Out, array, dimensions, exclusive, fail, reference};
use crate::status::{adead_status, guard, guard_destroy};
use crate::tensor::{adead_dtype, dtype};
use adead_core::gpu::{Operand, Priority, Stream};
use adead_core::{Attrs, Meta, Result, Shape};
use std::ffi::c_void;

/// A queue of work on a context's device. Its work runs in order; streams run concurrently. One thread at a time may
/// use it.
pub struct adead_stream(Stream);
// overlap.rs relies on this: it casts pointers to the core's streams to such handles.
const _: () = assert!(std::mem::offset_of!(adead_stream, 0) == 0 && size_of::<adead_stream>() == size_of::<Stream>());

/// A buffer as an operand of an operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_operand {
    /// The buffer with the elements. NULL: an optional operand is absent.
    pub buffer: *mut adead_buffer,
    /// The offset of the first element, in bytes.
    pub offset: usize,
    /// The dimensions.
    pub dims: *const usize,
    /// The number of dimensions.
    pub rank: usize,
    /// The type of the elements.
    pub dtype: adead_dtype,
    /// Always 0.
    pub reserved: i32,
}

/// # Safety
/// The pointers in `operand` are valid.
unsafe fn meta(operand: &adead_operand) -> Result<Meta> {
    if operand.buffer.is_null() {
        return Ok(Meta::scalar());
    }
    if operand.reserved != 0 {
        fail!(Unsupported, "reserved of adead_operand is {}; it must be 0", operand.reserved);
    }
    // SAFETY: passed on.
    let dims = unsafe { dimensions(operand.dims, operand.rank) }?;
    Ok(Meta::new(dtype(operand.dtype)?, Shape::new(dims)?))
}

/// Creates a stream on the context's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_create(
    context: *const adead_context,
    out: *mut *mut adead_stream,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(context, "context", out, |context| Ok(adead_stream(context.0.stream()?))) }
}

/// The priority of a stream's work, one of `ADEAD_PRIORITY_…`.
pub type adead_priority = i32;

/// Creates a stream with a priority on the context's device. On an NVIDIA GPU through CUDA, pending work of
/// `ADEAD_PRIORITY_HIGH` starts before that of other streams. Other devices ignore the priority.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_create_with(
    context: *const adead_context,
    priority: adead_priority,
    out: *mut *mut adead_stream,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
        let known = [Priority::Normal, Priority::High].into_iter().find(|&known| known as adead_priority == priority);
        let Some(priority) = known else {
            fail!(InvalidArgument, "priority is {priority}; it must be one of ADEAD_PRIORITY_…");
        };
        out.give(adead_stream(context.0.stream_with(priority)?));
        Ok(())
    })
}

/// Waits for the stream's work and destroys the stream; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_destroy(stream: *mut adead_stream) {
    guard_destroy(stream);
}

/// Enqueues a copy of `bytes` bytes from `data` to a buffer at `offset`. The caller may reuse `data` when the call
/// returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_upload(
    stream: *mut adead_stream,
    buffer: *mut adead_buffer,
    offset: usize,
    data: *const c_void,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let (stream, buffer) = (exclusive(stream, "stream")?, reference(buffer, "buffer")?);
            stream.0.upload(&buffer.0, offset, array(data.cast::<u8>(), bytes, "data")?)
        }
    })
}

/// Enqueues a copy of `bytes` bytes of a buffer at `offset` to the host. `adead_download_read` copies them out, and
/// `adead_download_data` gives access without a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_download(
    stream: *mut adead_stream,
    buffer: *const adead_buffer,
    offset: usize,
    bytes: usize,
    out: *mut *mut adead_download,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, buffer, out) =
            unsafe { (exclusive(stream, "stream")?, reference(buffer, "buffer")?, Out::new(out, "out")?) };
        out.give(adead_download(Some(stream.0.download(&buffer.0, offset, bytes)?)));
        Ok(())
    })
}

/// Enqueues a copy of `bytes` bytes from one buffer at `from_offset` to another at `to_offset`. Two ranges of one
/// buffer must not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_copy(
    stream: *mut adead_stream,
    from: *const adead_buffer,
    from_offset: usize,
    to: *mut adead_buffer,
    to_offset: usize,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, from, to) =
            unsafe { (exclusive(stream, "stream")?, reference(from, "from")?, reference(to, "to")?) };
        stream.0.copy((&from.0, from_offset), (&to.0, to_offset), bytes)
    })
}

/// Enqueues a fill with zeros of `bytes` bytes of a buffer from `offset` on. They must be whole 4-byte words, except at
/// the buffer's end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_clear(
    stream: *mut adead_stream,
    buffer: *mut adead_buffer,
    offset: usize,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, buffer) = unsafe { (exclusive(stream, "stream")?, reference(buffer, "buffer")?) };
        stream.0.clear(&buffer.0, offset, bytes)
    })
}

/// Enqueues a kernel, as `adead_dispatch_with` does. Pass `push_bytes` 0 for a kernel without push constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_dispatch(
    stream: *mut adead_stream,
    kernel: *const adead_kernel,
    buffers: *const *mut adead_buffer,
    count: usize,
    push: *const c_void,
    push_bytes: usize,
    groups: *const u32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let stream = exclusive(stream, "stream")?;
            let Call { kernel, buffers, push, groups } = Call::new(kernel, buffers, count, push, push_bytes, groups)?;
            stream.0.dispatch(kernel, buffers, push, groups)
        }
    })
}

/// Enqueues an operation on buffers: `count` operands in the operation's order, and a buffer for the result. The
/// result's dtype and shape must be those that follow from the operands. `attrs` may be NULL. Errors that only the
/// device can find, such as an id outside a table, come from `adead_stream_sync`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_run(
    stream: *mut adead_stream,
    op: adead_op,
    operands: *const adead_operand,
    count: usize,
    attrs: *const adead_attrs,
    result: *const adead_operand,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let stream = exclusive(stream, "stream")?;
            let (operands, result) = (array(operands, count, "operands")?, reference(result, "result")?);
            let attrs = attrs.as_ref().map_or(&Attrs::DEFAULT, |attrs| &attrs.0);
            let (mut metas, mut inputs) = (Vec::new(), Vec::new());
            for operand in operands {
                metas.push(meta(operand)?);
            }
            for (operand, meta) in operands.iter().zip(&metas) {
                let buffer = operand.buffer.as_ref();
                inputs.push(buffer.map(|buffer| Operand { buffer: &buffer.0, offset: operand.offset, meta }));
            }
            let buffer = &reference(result.buffer, "result->buffer")?.0;
            let output = Operand { buffer, offset: result.offset, meta: &meta(result)? };
            stream.0.run(operation(op)?, attrs, &inputs, output)
        }
    })
}

/// Creates an event after all work that the stream was given so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_event(stream: *mut adead_stream, out: *mut *mut adead_event) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made_by(stream, "stream", out, |stream| Ok(adead_event(stream.0.event()?))) }
}

/// Makes all work that is enqueued on the stream from now on wait for an event of the same device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_wait_event(stream: *mut adead_stream, event: *const adead_event) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, event) = unsafe { (exclusive(stream, "stream")?, reference(event, "event")?) };
        stream.0.wait_for(&event.0)
    })
}

/// Enqueues a timestamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_timestamp(
    stream: *mut adead_stream,
    out: *mut *mut adead_timestamp,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made_by(stream, "stream", out, |stream| Ok(adead_timestamp(stream.0.timestamp()?))) }
}

/// Starts recording the stream's work instead of running it, until `adead_stream_record_end`. Uploads, downloads,
/// events and timestamps can't be recorded. `invalid_argument` if the stream already records, `unsupported` on the CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_record_begin(stream: *mut adead_stream) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { exclusive(stream, "stream") }?.0.start_recording())
}

/// Ends the recording and returns it. `adead_stream_replay` runs it, any number of times. It keeps the memory and the
/// kernels that it uses alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_record_end(
    stream: *mut adead_stream,
    out: *mut *mut adead_recording,
) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made_by(stream, "stream", out, |stream| Ok(adead_recording(stream.0.finish_recording()?))) }
}

/// Enqueues a recording that was made on the same device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_replay(
    stream: *mut adead_stream,
    recording: *const adead_recording,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, recording) = unsafe { (exclusive(stream, "stream")?, reference(recording, "recording")?) };
        stream.0.replay(&recording.0)
    })
}

/// Submits the stream's work to the device now, without waiting. Work also starts without this call, but perhaps only
/// after running work has finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_flush(stream: *mut adead_stream) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { exclusive(stream, "stream") }?.0.flush())
}

/// Waits until all work of the stream has finished. Returns the first error that the device found in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_sync(stream: *mut adead_stream) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { exclusive(stream, "stream") }?.0.synchronize())
}

/// Returns whether all work of the stream has finished: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stream_query(stream: *mut adead_stream, out: *mut i32) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked_of(stream, "stream", out, |stream| Ok(stream.0.query()?.into())) }
}
