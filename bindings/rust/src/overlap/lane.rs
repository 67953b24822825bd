//! A lane: a stream and the buffers of the one batch that is under way on it.

use super::order;
use adead_core::gpu::{Buffer, Download, Event, Stream};
use adead_core::{Context, Error, Result};
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

/// What the work of a batch leaves to be brought to the host: bytes of a buffer from an offset on.
pub enum Brought<'b> {
    /// Nothing: a result of no bytes says that the batch is done.
    Nothing,
    /// Of a buffer that the work shares.
    Part(Arc<Buffer>, usize, usize),
    /// Of a buffer that is the stage's, or the caller's until the batch is done.
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

    /// Whether a buffer is one of this lane's, which has so many owners: nobody else has it then.
    fn has(&self, buffer: &Buffer, owners: usize) -> bool {
        let mut all = self.buffers.iter().chain([&self.input]).flatten();
        all.any(|own| {
            std::ptr::eq(&raw const **own, buffer) && Arc::strong_count(own) == owners && Arc::weak_count(own) == 0
        })
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
    pub(super) fn finish(mut self) -> Result<(Lane, usize, Option<Download>)> {
        order::log('s');
        // What only the device can find is told here.
        self.lane.stream.synchronize()?;
        Ok((self.lane, self.index, self.download))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lanes;
    use super::super::order::{CALLS, log};
    use super::*;

    /// Work waits for the work before it. What a lane has for itself is brought beside the next batch's work; what others write
    /// too, before it.
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
        // A lane's buffer that the work keeps is another's too.
        let mut kept = Vec::new();
        order(with_others, &mut |stage| {
            kept.push(stage.buffer(4).unwrap());
            Brought::Part(kept[kept.len() - 1].clone(), 0, 4)
        });
    }

    /// Buffers that are lent are told apart by where they are.
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
        // SAFETY: the lane has it.
        assert!(lane.has(unsafe { &*first }, 1));
    }
}
