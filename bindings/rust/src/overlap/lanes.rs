//! Batches in flight without a thread: the owner starts a batch if there is room, and waits for the oldest.

use super::MAX_DEPTH;
use super::lane::{Brought, Lane, Stage, Started};
use adead_core::gpu::{Download, Event};
use adead_core::{Context, Error, Result, Status};
use std::collections::VecDeque;

/// Makes idle lanes. `invalid_argument` unless their number is from 1 to [`MAX_DEPTH`].
pub(super) fn idle(context: &Context, depth: usize) -> Result<VecDeque<Lane>> {
    if !(1..=MAX_DEPTH).contains(&depth) {
        let text = format!("overlap: the depth is {depth}; it must be from 1 to {MAX_DEPTH}");
        return Err(Error::new(Status::InvalidArgument, text));
    }
    (0..depth).map(|_| Lane::new(context)).collect()
}

/// Starts batches; the work of each comes after that of the one before.
pub(super) struct Starter {
    context: Context,
    before: Option<Event>,
    index: usize,
}

impl Starter {
    pub(super) fn new(context: &Context) -> Starter {
        Starter { context: context.clone(), before: None, index: 0 }
    }

    /// Enqueues the next batch on a lane. After an error, no other batch may be started.
    pub(super) fn start<'b, E: From<Error>>(
        &mut self,
        lane: Lane,
        bytes: &[u8],
        work: impl FnOnce(&mut Stage<'_>) -> Result<Brought<'b>, E>,
    ) -> Result<Started, E> {
        let started = lane.start(&self.context, self.index, bytes, &mut self.before, work)?;
        self.index += 1;
        Ok(started)
    }
}

/// Keeps a limited number of batches in flight, for callers with their own loop: start batches while [there is
/// room](Lanes::has_room), then [wait](Lanes::finish) for the oldest. [`overlap`](super::overlap()) does the same with a thread
/// that starts them. Dropping it waits for the batches in flight.
pub struct Lanes {
    starter: Starter,
    idle: VecDeque<Lane>,
    under_way: VecDeque<Started>,
    /// Whether a batch failed, so that no other is started.
    failed: bool,
}

impl Lanes {
    /// Makes lanes for `depth` batches in flight. `invalid_argument` unless `depth` is from 1 to [`MAX_DEPTH`].
    pub fn new(context: &Context, depth: usize) -> Result<Lanes> {
        Ok(Lanes {
            starter: Starter::new(context),
            idle: idle(context, depth)?,
            under_way: VecDeque::new(),
            failed: false,
        })
    }

    /// Returns whether another batch may be started.
    pub fn has_room(&self) -> bool {
        !self.failed && !self.idle.is_empty()
    }

    /// Uploads a batch, calls `work` to enqueue its work, and starts the download of its result. `not_ready` if there is no
    /// room. After an error no other batch starts; the earlier results still come.
    pub fn start<'b, E: From<Error>>(
        &mut self,
        bytes: &[u8],
        work: impl FnOnce(&mut Stage<'_>) -> Result<Brought<'b>, E>,
    ) -> Result<(), E> {
        let Some(lane) = self.idle.pop_front().filter(|_| !self.failed) else {
            let why = if self.failed { "a batch failed" } else { "the depth is reached" };
            return Err(Error::new(Status::NotReady, format!("overlap: no batch can be started, as {why}")).into());
        };
        let started = self.starter.start(lane, bytes, work);
        self.failed = started.is_err();
        self.under_way.push_back(started?);
        Ok(())
    }

    /// Waits for the oldest batch in flight; `None` if there is none. Then its lane is free.
    pub fn finish(&mut self) -> Option<Result<Arrived>> {
        let finished = self.under_way.pop_front()?.finish();
        if finished.is_err() {
            self.failed = true;
            // The results of the batches after it are dropped.
            self.under_way.clear();
        }
        Some(finished.map(|(lane, index, download)| {
            self.idle.push_back(lane);
            Arrived { index, download }
        }))
    }
}

/// A batch's result, in the memory of the download. Such memory is limited, so don't keep many.
pub struct Arrived {
    index: usize,
    download: Option<Download>,
}

impl Arrived {
    /// Returns the index of the batch; the first one is 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the result's bytes; none if the batch's work left no result.
    pub fn bytes(&self) -> Result<&[u8]> {
        self.download.as_ref().map_or(Ok(&[]), Download::bytes)
    }
}
