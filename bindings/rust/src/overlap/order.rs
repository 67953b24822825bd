//! The order of a batch's work on its stream, for bindings with lanes of their own: [`begin`], the work, [`bring`].

use adead_core::Result;
use adead_core::gpu::{Buffer, Download, Event, Stream};

/// Enqueues a batch's upload. Work that follows waits for `before`, the point after the work of the batch before.
pub fn begin(stream: &mut Stream, input: &Buffer, bytes: &[u8], before: Option<&Event>) -> Result<()> {
    log('u');
    stream.upload(input, 0, bytes)?;
    match before {
        Some(before) => {
            log('w');
            stream.wait_for(before)
        }
        None => Ok(()),
    }
}

/// Enqueues the download of bytes of a buffer from an offset on, and returns it with the point where the work of the next batch may
/// begin. A buffer that only this batch has (`own`) is brought beside that work. Any other may be written by it, so it waits for
/// the download.
pub fn bring(
    stream: &mut Stream,
    part: Option<(&Buffer, usize, usize)>,
    own: bool,
) -> Result<(Event, Option<Download>)> {
    let Some((buffer, offset, bytes)) = part else { return Ok((done(stream)?, None)) };
    if own {
        log('e');
        let event = stream.event()?;
        log('d');
        let download = stream.download(buffer, offset, bytes)?;
        log('f');
        stream.flush()?;
        return Ok((event, Some(download)));
    }
    log('d');
    let download = stream.download(buffer, offset, bytes)?;
    Ok((done(stream)?, Some(download)))
}

/// The point after everything on a stream, which begins now.
fn done(stream: &mut Stream) -> Result<Event> {
    log('e');
    let event = stream.event()?;
    log('f');
    stream.flush()?;
    Ok(event)
}

/// What a stream is about to be told, for a test: a device that runs one thing after another does not show the order.
pub(super) fn log(_call: char) {
    #[cfg(test)]
    CALLS.with_borrow_mut(|calls| calls.push(_call));
}

#[cfg(test)]
thread_local! {
    pub(super) static CALLS: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}
