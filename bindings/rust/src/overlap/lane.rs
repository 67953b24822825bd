//! A lane: a stream and the buffers of the one batch in flight on it.

use super::order;
use adead_core::gpu::{Buffer, Download, Event, Stream};
use adead_core::{Context, Error, Result};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Returns a buffer of `bytes` bytes. It reuses the old one if that has the same size and no other owner.
fn fit(context: &Context, place: &mut Option<Arc<Buffer>>, bytes: usize) -> Result<Arc<Buffer>> {
    if let Some(buffer) = place.as_mut().filter(|buffer| buffer.size() == bytes)
        && Arc::get_mut(buffer).is_some()
    {
        return Ok(buffer.clone());
    }
    // An old buffer of another size is freed first, so that both are not allocated at once.
    *place = None;
    Ok(place.insert(Arc::new(context.buffer_zeroed(bytes)?)).clone())
}

/// A batch's result on the device: part of a buffer, or nothing.
pub struct Part(Option<(Arc<Buffer>, usize, usize)>);

/// The result that a batch's work leaves for the download: bytes of a buffer from an offset on.
pub enum Brought<'b> {
    /// Nothing. The batch then has an empty result, which says that the batch is done.
    Nothing,
    /// A part of a buffer that the work shares.
    Part(Arc<Buffer>, usize, usize),
    /// A part of a buffer that the stage owns, or that the caller keeps until the batch is done.
    Lent(&'b Buffer, usize, usize),
}

impl From<Part> for Brought<'static> {
    fn from(part: Part) -> Brought<'static> {
        match part.0 {
            Some((buffer, offset, bytes)) => Brought::Part(buffer, offset, bytes),
            None => Brought::Nothing,
        }
    }
}

impl Part {
    /// Makes the part of `bytes` bytes of a buffer from an offset on.
    pub fn new(buffer: Arc<Buffer>, offset: usize, bytes: usize) -> Part {
        Part(Some((buffer, offset, bytes)))
    }
}

/// Makes the part that is the whole buffer.
impl From<Arc<Buffer>> for Part {
    fn from(buffer: Arc<Buffer>) -> Part {
        let bytes = buffer.size();
        Part::new(buffer, 0, bytes)
    }
}

/// Makes an empty part. The batch then has an empty result, which says that the batch is done.
impl From<()> for Part {
    fn from((): ()) -> Part {
        Part(None)
    }
}

/// The stream and the buffers of a batch, for its work in [`overlap`](super::overlap()). It dereferences to the stream.
pub struct Stage<'a> {
    stream: &'a mut Stream,
    context: &'a Context,
    input: Arc<Buffer>,
    buffers: &'a mut Vec<Option<Arc<Buffer>>>,
    used: usize,
    index: usize,
}

impl Stage<'_> {
    /// Returns the index of the batch; the first one is 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the batch on the device: a buffer of exactly its bytes. Its upload comes before all work on the stream.
    pub fn input(&self) -> Arc<Buffer> {
        self.input.clone()
    }

    /// Returns a buffer of `bytes` bytes for results and intermediate values. The n-th call for a batch reuses the buffer of an
    /// earlier batch's n-th call, with its old bytes, if the size is the same and nothing else keeps it. Otherwise it returns a
    /// new buffer of zeros. `out_of_memory` reports the bytes requested and the bytes free.
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

/// A stream with the buffers of the batch on it. Its owner alone uses it: lanes are passed on, never shared.
pub(super) struct Lane {
    stream: Stream,
    input: Option<Arc<Buffer>>,
    buffers: Vec<Option<Arc<Buffer>>>,
}

impl Lane {
    pub(super) fn new(context: &Context) -> Result<Lane> {
        Ok(Lane { stream: context.stream()?, input: None, buffers: Vec::new() })
    }

    /// Enqueues a batch: its upload, what `work` enqueues after the work of the batch before, and the download.
    /// `before` is the point after that work, and becomes the point after this batch's work.
    pub(super) fn start<'b, E: From<Error>>(
        mut self,
        context: &Context,
        index: usize,
        bytes: &[u8],
        before: &mut Option<Event>,
        work: impl FnOnce(&mut Stage<'_>) -> Result<Brought<'b>, E>,
    ) -> Result<Started, E> {
        let input = fit(context, &mut self.input, bytes.len())?;
        order::begin(&mut self.stream, &input, bytes, before.as_ref())?;
        let (stream, buffers) = (&mut self.stream, &mut self.buffers);
        let mut stage = Stage { stream, context, input, buffers, used: 0, index };
        let brought = work(&mut stage)?;
        drop(stage);
        let (part, own) = match &brought {
            Brought::Nothing => (None, true),
            Brought::Part(buffer, offset, bytes) => (Some((&**buffer, *offset, *bytes)), self.has(buffer, 2)),
            Brought::Lent(buffer, offset, bytes) => (Some((*buffer, *offset, *bytes)), self.has(buffer, 1)),
        };
        let (event, download) = order::bring(&mut self.stream, part, own)?;
        *before = Some(event);
        Ok(Started { lane: self, download, index })
    }

    /// Returns whether a buffer is one of this lane's and has `owners` owners, so that nothing else refers to it.
    fn has(&self, buffer: &Buffer, owners: usize) -> bool {
        let mut all = self.buffers.iter().chain([&self.input]).flatten();
        all.any(|own| {
            std::ptr::eq(&raw const **own, buffer) && Arc::strong_count(own) == owners && Arc::weak_count(own) == 0
        })
    }
}

/// A batch in flight.
pub(super) struct Started {
    lane: Lane,
    download: Option<Download>,
    index: usize,
}

impl Started {
    /// Waits for the batch; then its lane is free.
    pub(super) fn finish(mut self) -> Result<(Lane, usize, Option<Download>)> {
        order::log('s');
        // This returns errors that only the device can find.
        self.lane.stream.synchronize()?;
        Ok((self.lane, self.index, self.download))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lanes;
    use super::super::order::{CALLS, log};
    use super::*;

    /// Work waits for the work before it. A lane's own buffer is downloaded concurrently with the next batch's work; a
    /// buffer that other work may write is downloaded before it.
    #[test]
    fn what_a_lane_enqueues() {
        let context = Context::open("cpu").unwrap();
        let shared = Arc::new(context.buffer_zeroed(4).unwrap());
        let (alone, with_others) = ("uxedf uwxedf st uwxedf stst", "uxdef uwxdef st uwxdef stst");
        let order = |expected: &str, work: &mut dyn FnMut(&mut Stage<'_>) -> Brought<'static>| {
            CALLS.with_borrow_mut(String::clear);
            let mut lanes = Lanes::new(&context, 2).unwrap();
            let mut started = 0;
            loop {
                while started < 3 && lanes.has_room() {
                    let work = |stage: &mut Stage<'_>| {
                        log('x');
                        Ok::<_, Error>(work(stage))
                    };
                    lanes.start(b"four", work).unwrap();
                    started += 1;
                }
                match lanes.finish() {
                    Some(arrived) => assert!([0, 4].contains(&arrived.unwrap().bytes().unwrap().len())),
                    None => break,
                }
                log('t');
            }
            assert_eq!(CALLS.with_borrow(String::clone), expected.replace(' ', ""));
        };
        order("uxef uwxef st uwxef stst", &mut |_| Brought::Nothing);
        order(alone, &mut |stage| Brought::Part(stage.input(), 0, 4));
        order(alone, &mut |stage| Brought::Part(stage.buffer(4).unwrap(), 0, 4));
        order(with_others, &mut |_| Brought::Part(shared.clone(), 0, 4));
        // A lane's buffer that the work keeps counts as shared.
        let mut kept = Vec::new();
        order(with_others, &mut |stage| {
            kept.push(stage.buffer(4).unwrap());
            Brought::Part(kept[kept.len() - 1].clone(), 0, 4)
        });
    }

    /// Lent buffers are told apart by their addresses.
    #[test]
    fn what_a_lane_has() {
        let context = Context::open("cpu").unwrap();
        let mut lane = Lane::new(&context).unwrap();
        let other = context.buffer_zeroed(4).unwrap();
        let mut before = None;
        let own = lane.start::<Error>(&context, 0, b"four", &mut before, |stage| {
            stage.buffer(8)?;
            Ok(Brought::Nothing)
        });
        lane = own.unwrap().finish().unwrap().0;
        let (input, buffer) = (lane.input.clone().unwrap(), lane.buffers[0].clone().unwrap());
        assert!(lane.has(&input, 2) && lane.has(&buffer, 2) && !lane.has(&other, 1));
        assert!(!lane.has(&input, 1), "another owner");
        let first = Arc::as_ptr(&input);
        drop(input);
        // SAFETY: the lane keeps the buffer.
        assert!(lane.has(unsafe { &*first }, 1));
    }
}
