//! Objects that streams hand out: events, downloads, timestamps, recordings.

use crate::call::{asked, made};
use crate::context::adead_context;
use crate::pointers::{Out, array_mut, exclusive, fail, reference};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::gpu::{Download, Event, Recording, Timestamp};
use std::ffi::c_void;
use std::time::Duration;

/// A wait without a limit.
pub const ADEAD_FOREVER: u64 = u64::MAX;

/// A point in a stream. The host can query it and wait for it, and other streams can wait for it. Threads may share
/// one.
pub struct adead_event(pub(crate) Event);

/// A copy of bytes from a device to the host, perhaps still in flight. One thread at a time may use it.
pub struct adead_download(pub(crate) Option<Download>);

/// A time on a device's clock. Threads may share one.
pub struct adead_timestamp(pub(crate) Timestamp);

/// Work that a stream recorded, to be replayed. Threads may share one.
pub struct adead_recording(pub(crate) Recording);

/// Creates an event after everything that the context has enqueued so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_create(context: *const adead_context, out: *mut *mut adead_event) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(context, "context", out, |context| Ok(adead_event(context.0.event()?))) }
}

/// Destroys an event; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_destroy(event: *mut adead_event) {
    guard_destroy(event);
}

/// Returns whether the stream has reached the event: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_query(event: *const adead_event, out: *mut i32) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(event, "event", out, |event| Ok(event.0.is_done()?.into())) }
}

/// Waits until the stream has reached the event, for at most the given nanoseconds; `ADEAD_FOREVER` is no limit.
/// `not_ready` if the time was too short.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_wait(event: *const adead_event, nanoseconds: u64) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { reference(event, "event") }?.0.wait_for(Duration::from_nanos(nanoseconds)))
}

/// Destroys a download; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_download_destroy(download: *mut adead_download) {
    guard_destroy(download);
}

/// Returns whether the bytes have arrived: 0 or 1. It stays 1 after they were read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_download_query(download: *const adead_download, out: *mut i32) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (download, out) = unsafe { (reference(download, "download")?, Out::new(out, "out")?) };
        let arrived = match &download.0 {
            Some(download) => download.is_done()?,
            None => true,
        };
        out.write(arrived.into());
        Ok(())
    })
}

/// Waits for the bytes and returns their address without a copy. The address is valid until the download is read or
/// destroyed. The device can access this memory, which is scarce, so don't keep it for long. `invalid_argument` if the
/// download was read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_download_data(download: *const adead_download, out: *mut *const c_void) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (download, out) = unsafe { (reference(download, "download")?, Out::new(out, "out")?) };
        match &download.0 {
            None => fail!(InvalidArgument, "the download was read before"),
            Some(it) => out.write(it.bytes()?.as_ptr().cast()),
        }
        Ok(())
    })
}

/// Waits for the bytes and copies them to `dst`, once. `invalid_argument` unless `bytes` is the size of the download,
/// and for a second read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_download_read(
    download: *mut adead_download,
    dst: *mut c_void,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (download, into) = unsafe { (exclusive(download, "download")?, array_mut(dst, bytes, "dst")?) };
        match &download.0 {
            None => fail!(InvalidArgument, "the download was read before"),
            Some(it) if it.size() != bytes => {
                fail!(InvalidArgument, "bytes is {bytes}; the download has {}", it.size())
            }
            Some(_) => download.0.take().map_or(Ok(()), |it| it.take(into)),
        }
    })
}

/// Destroys a timestamp; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_timestamp_destroy(timestamp: *mut adead_timestamp) {
    guard_destroy(timestamp);
}

/// Returns the nanoseconds from `earlier` to `timestamp`, both of the same device. `not_ready` until the device has
/// taken both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_timestamp_since(
    timestamp: *const adead_timestamp,
    earlier: *const adead_timestamp,
    out: *mut u64,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (timestamp, earlier, out) =
            unsafe { (reference(timestamp, "timestamp")?, reference(earlier, "earlier")?, Out::new(out, "out")?) };
        out.write(timestamp.0.since(&earlier.0)?);
        Ok(())
    })
}

/// Destroys a recording; NULL is allowed. Enqueued replays of it continue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_recording_destroy(recording: *mut adead_recording) {
    guard_destroy(recording);
}
