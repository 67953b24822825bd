//! The order of a batch's work on its stream, for bindings that have their own lanes: [`begin`], the work, [`bring`].

use adead_core::Result;
use adead_core::gpu::{Buffer, Download, Event, Stream};

/// Enqueues a batch's upload. The work that follows waits for `before`, the point after the work of the batch before.
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

/// Enqueues the download of part of a buffer. Returns the download, and the point after which the work of the next batch may
/// begin. If only this batch uses the buffer (`own`), the download is concurrent with that work. That work may write any other
/// buffer, so it waits for the download.
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

/// Returns the point after everything on a stream, and submits the stream's work.
fn done(stream: &mut Stream) -> Result<Event> {
    log('e');
    let event = stream.event()?;
    log('f');
    stream.flush()?;
    Ok(event)
}

/// Records the next call on a stream, for a test. A device that runs one thing after another does not show the order.
pub(super) fn log(_call: char) {
    #[cfg(test)]
    CALLS.with_borrow_mut(|calls| calls.push(_call));
}

#[cfg(test)]
thread_local! {
    pub(super) static CALLS: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}
