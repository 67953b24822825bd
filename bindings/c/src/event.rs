//! What streams give: events, downloads, timestamps, recordings.

use crate::call::{asked, made};
use crate::context::adead_context;
use crate::pointers::{Out, array_mut, exclusive, fail, reference};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::gpu::{Download, Event, Recording, Timestamp};
use std::ffi::c_void;
use std::time::Duration;

/// A wait without an end.
pub const ADEAD_FOREVER: u64 = u64::MAX;

/// A point in a stream, to ask, to wait for, and for other streams to wait for. Threads may share one.
pub struct adead_event(pub(crate) Event);

/// Bytes on their way to the host. One thread at a time.
pub struct adead_download(pub(crate) Option<Download>);

/// A time that a device took. Threads may share one.
pub struct adead_timestamp(pub(crate) Timestamp);

/// Work that was recorded. Threads may share one.
pub struct adead_recording(pub(crate) Recording);

/// The point after everything that the context enqueued so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_create(context: *const adead_context, out: *mut *mut adead_event) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { made(context, "context", out, |context| Ok(adead_event(context.0.event()?))) }
}

/// Gives an event up; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_destroy(event: *mut adead_event) {
    guard_destroy(event);
}

/// Whether its stream has come there: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_query(event: *const adead_event, out: *mut i32) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(event, "event", out, |event| Ok(event.0.is_done()?.into())) }
}

/// Waits until its stream has come there, at most so many nanoseconds; `ADEAD_FOREVER` is no limit. `not_ready` if they
/// did not suffice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_event_wait(event: *const adead_event, nanoseconds: u64) -> adead_status {
    // SAFETY: the caller vouches for the pointer.
    guard(|| unsafe { reference(event, "event") }?.0.wait_for(Duration::from_nanos(nanoseconds)))
}

/// Gives a download up; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_download_destroy(download: *mut adead_download) {
    guard_destroy(download);
}

/// Whether the bytes have arrived: 0 or 1; 1 also once they were read.
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

/// Waits for the bytes and says where they are, without a copy, until the download is read or given up. It is memory that the
/// device reaches, of which there is not much: not to be kept for long. `invalid_argument` once they were read.
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

/// Waits for the bytes and copies them to `dst`, once. `invalid_argument` unless `bytes` is what the download has, and the
/// second time.
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

/// Gives a timestamp up; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_timestamp_destroy(timestamp: *mut adead_timestamp) {
    guard_destroy(timestamp);
}

/// Nanoseconds from `earlier` to `timestamp`, both of one device. `not_ready` before both were taken.
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

/// Gives a recording up; NULL is fine. Replays of it go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_recording_destroy(recording: *mut adead_recording) {
    guard_destroy(recording);
}
