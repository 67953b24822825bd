//! A lane: a stream and the buffers of the one batch that is under way on it.

use super::output::{Output, Pool};
use adead_core::gpu::{Buffer, Download, Event, Stream};
use adead_core::{Context, Result};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A buffer of so many bytes: the one that is there, if it has that size and nobody else keeps it, else a new one.
fn fit(context: &Context, place: &mut Option<Arc<Buffer>>, bytes: usize) -> Result<Arc<Buffer>> {
    if let Some(buffer) = place.as_mut().filter(|buffer| buffer.size() == bytes)
        && Arc::get_mut(buffer).is_some()
    {
        return Ok(buffer.clone());
    }
    // What does not fit goes first, that both need not be there at once.
    *place = None;
    Ok(place.insert(Arc::new(context.buffer_zeroed(bytes)?)).clone())
}

/// A batch's result on the device: part of a buffer, or nothing.
pub struct Part(Option<(Arc<Buffer>, usize, usize)>);

impl Part {
    /// So many bytes of a buffer from an offset on.
    pub fn new(buffer: Arc<Buffer>, offset: usize, bytes: usize) -> Part {
        Part(Some((buffer, offset, bytes)))
    }
}

/// All of a buffer.
impl From<Arc<Buffer>> for Part {
    fn from(buffer: Arc<Buffer>) -> Part {
        let bytes = buffer.size();
        Part::new(buffer, 0, bytes)
    }
}

/// Nothing to bring to the host: a result of no bytes says that the batch is done.
impl From<()> for Part {
    fn from((): ()) -> Part {
        Part(None)
    }
}

/// What the closure of [`overlap`](super::overlap()) is given for a batch: the stream, as which it can be used, and its
/// buffers.
pub struct Stage<'a> {
    stream: &'a mut Stream,
    context: &'a Context,
    input: Arc<Buffer>,
    buffers: &'a mut Vec<Option<Arc<Buffer>>>,
    used: usize,
    index: usize,
}

impl Stage<'_> {
    /// Of which batch: the first one is 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The batch on the device: a buffer of exactly its bytes. Work on the stream finds it there.
    pub fn input(&self) -> Arc<Buffer> {
        self.input.clone()
    }

    /// A buffer of so many bytes for results and intermediate values. The n-th call for a batch gives what the n-th call gave
    /// for an earlier one, with what it had, if that had the same size and nobody keeps it; else a new one, zeroed.
    /// `out_of_memory` with the bytes asked and free.
    pub fn buffer(&mut self, bytes: usize) -> Result<Arc<Buffer>> {
        if self.used == self.buffers.len() {
            self.buffers.push(None);
        }
        let buffer = fit(self.context, &mut self.buffers[self.used], bytes)?;
        self.used += 1;
        Ok(buffer)
    }
}

impl Deref for Stage<'_> {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        self.stream
    }
}

impl DerefMut for Stage<'_> {
    fn deref_mut(&mut self) -> &mut Stream {
        self.stream
    }
}

/// A stream with the buffers of the batch on it. Whoever has it may use it: lanes are passed on, never shared.
pub(super) struct Lane {
    stream: Stream,
    input: Option<Arc<Buffer>>,
    buffers: Vec<Option<Arc<Buffer>>>,
}

impl Lane {
    pub(super) fn new(context: &Context) -> Result<Lane> {
        Ok(Lane { stream: context.stream()?, input: None, buffers: Vec::new() })
    }

    /// Enqueues a batch: upload, what `work` enqueues behind the work of the batch before, download. `before` is the point
    /// after that work and becomes this one's.
    pub(super) fn start<P: Into<Part>>(
        mut self,
        context: &Context,
        index: usize,
        bytes: &[u8],
        before: &mut Option<Event>,
        work: impl FnOnce(&mut Stage<'_>) -> Result<P>,
    ) -> Result<Started> {
        let input = fit(context, &mut self.input, bytes.len())?;
        self.stream.upload(&input, 0, bytes)?;
        if let Some(before) = before {
            self.stream.wait_for(before)?;
        }
        let (stream, buffers) = (&mut self.stream, &mut self.buffers);
        let mut stage = Stage { stream, context, input, buffers, used: 0, index };
        let part = work(&mut stage)?.into();
        drop(stage);
        let download = match &part.0 {
            Some((buffer, offset, bytes)) => {
                // A buffer that others have too may be written by the work of the next batch: that waits for the download.
                let own = self.has(buffer);
                if own {
                    *before = Some(self.stream.event()?);
                }
                let download = self.stream.download(buffer, *offset, *bytes)?;
                if !own {
                    *before = Some(self.stream.event()?);
                }
                Some(download)
            }
            None => {
                *before = Some(self.stream.event()?);
                None
            }
        };
        self.stream.flush()?;
        Ok(Started { lane: self, download, index })
    }

    /// Whether a part's buffer is one of this lane's, which nobody else has.
    fn has(&self, buffer: &Arc<Buffer>) -> bool {
        let mut own = self.buffers.iter().chain([&self.input]).flatten();
        own.any(|own| Arc::ptr_eq(own, buffer)) && Arc::strong_count(buffer) == 2 && Arc::weak_count(buffer) == 0
    }
}

/// A batch under way.
pub(super) struct Started {
    lane: Lane,
    download: Option<Download>,
    index: usize,
}

impl Started {
    /// Waits for it; the lane is free then.
    pub(super) fn finish(mut self, pool: &Arc<Pool>) -> Result<(Lane, Output)> {
        // What only the device can find is told here.
        self.lane.stream.synchronize()?;
        let output = pool.output(self.index, self.download.take())?;
        Ok((self.lane, output))
    }
}
