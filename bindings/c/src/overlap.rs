//! Batches on a device: several are in flight at once, and copies overlap with the work. Needs the feature `overlap`;
//! without it `without.rs` has the functions.

use crate::buffer::adead_buffer;
use crate::callback::{Failure, guard_own};
use crate::context::adead_context;
use crate::pointers::{Out, array, exclusive, fail, null, reference};
use crate::status::{adead_status, guard, guard_destroy};
use crate::stream::adead_stream;
use adead::overlap::{Arrived, Brought, Lanes, Stage};
use adead_c_support::failures;
use adead_core::gpu::Buffer;
use adead_core::{Context, Result};
use std::ffi::c_void;
use std::ptr::null as no_pointer;
use std::sync::Arc;

/// The most batches in flight at once.
pub const ADEAD_OVERLAP_MAX_DEPTH: usize = 64;
const _: () = assert!(ADEAD_OVERLAP_MAX_DEPTH == adead::overlap::MAX_DEPTH);

/// The unit of batch memory. Its alignment suits every element type.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Word(#[allow(dead_code, reason = "its bytes are the caller's")] [u8; 16]);

/// A batch that an `adead_next` fills in. It is valid only during the call.
pub struct adead_batch {
    /// The batch's bytes; NULL until `adead_batch_memory` or `adead_batch_borrow` sets them.
    pub(crate) data: *const u8,
    pub(crate) bytes: usize,
    /// The batch's own memory, for `adead_batch_memory`.
    memory: Vec<Word>,
}

// SAFETY: the bytes are the batch's own, or the caller's, who vouches that any thread may read them.
unsafe impl Send for adead_batch {}

/// The context of a batch's work: a stream, the batch on the device, and buffers. It is valid only during the call, and
/// owns everything that it returns.
pub struct adead_stage {
    stage: *mut Stage<'static>,
    stream: *mut adead_stream,
    input: *mut adead_buffer,
    index: usize,
    result: Option<(*const Buffer, usize, usize)>,
}

/// A run of batches, whose results `adead_batches_next` returns. One thread at a time may use it.
pub struct adead_batches {
    lanes: Lanes,
    next: Next,
    work: Work,
    batch: adead_batch,
    /// Whether there may be another batch.
    more: bool,
    /// The error to return after the started batches.
    ended: Option<Failure>,
    /// The result that was returned last.
    result: Option<Arrived>,
}

/// Provides the next batch by `adead_batch_memory` or `adead_batch_borrow`; without either call, no batch is left. Any
/// status other than `ADEAD_OK` ends the run, which returns it. The status may be a number of the caller's own.
pub type adead_next = Option<unsafe extern "C" fn(batch: *mut adead_batch, user: *mut c_void) -> adead_status>;

/// Enqueues the work of a batch on its stream and names its result. Any status other than `ADEAD_OK` ends the run.
pub type adead_work = Option<unsafe extern "C" fn(stage: *mut adead_stage, user: *mut c_void) -> adead_status>;

/// Takes the result of batch `index`; the first one is 0. `data` points into the download, valid only during the call,
/// aligned for every element type, and never NULL. Any status other than `ADEAD_OK` ends the run.
pub type adead_take =
    Option<unsafe extern "C" fn(index: usize, data: *const c_void, bytes: usize, user: *mut c_void) -> adead_status>;

/// The source of batches.
pub(crate) struct Next {
    call: unsafe extern "C" fn(*mut adead_batch, *mut c_void) -> adead_status,
    user: *mut c_void,
    asked: usize,
}

// SAFETY: the caller vouches that the thread of a loader may call it.
unsafe impl Send for Next {}

impl Next {
    pub fn new(call: adead_next, user: *mut c_void) -> Result<Next> {
        Ok(Next { call: call.ok_or_else(|| null("next"))?, user, asked: 0 })
    }

    /// Asks for the next batch and fills it in. Returns whether there is one.
    pub fn ask(&mut self, batch: &mut adead_batch) -> Result<bool, Failure> {
        (batch.data, batch.bytes) = (no_pointer(), 0);
        let before = failures();
        // SAFETY: the caller vouches for the callback and its pointer.
        let status = unsafe { (self.call)(batch, self.user) };
        if status != 0 {
            return Err(Failure::returned(status, &format!("next of batch {}", self.asked), before));
        }
        self.asked += 1;
        Ok(!batch.data.is_null())
    }
}

/// The callback that enqueues work on batches.
struct Work {
    call: unsafe extern "C" fn(*mut adead_stage, *mut c_void) -> adead_status,
    user: *mut c_void,
}

impl Work {
    fn enqueue(&self, stage: &mut Stage<'_>) -> Result<Brought<'static>, Failure> {
        let (index, input) = (stage.index(), stage.input());
        let stream: *mut adead_stream = (&raw mut **stage).cast();
        let input = Arc::as_ptr(&input).cast_mut().cast();
        let mut stage = adead_stage { stage: (&raw mut *stage).cast(), stream, input, index, result: None };
        let before = failures();
        // SAFETY: the caller vouches for the callback and its pointer; the stage lives until the call returns.
        let status = unsafe { (self.call)(&mut stage, self.user) };
        if status != 0 {
            return Err(Failure::returned(status, &format!("work of batch {index}"), before));
        }
        Ok(match stage.result {
            // SAFETY: the buffer is the lane's, or one that the caller keeps until the batch is done.
            Some((buffer, offset, bytes)) => Brought::Lent(unsafe { &*buffer }, offset, bytes),
            None => Brought::Nothing,
        })
    }
}

impl adead_batch {
    pub(crate) fn new() -> adead_batch {
        adead_batch { data: no_pointer(), bytes: 0, memory: Vec::new() }
    }

    fn contents(&self) -> &[u8] {
        // SAFETY: the batch holds this many bytes, or the caller vouches for them.
        if self.bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.bytes) } }
    }
}

impl adead_batches {
    fn new(context: &Context, depth: usize, next: Next, work: Work) -> Result<adead_batches> {
        let lanes = Lanes::new(context, depth)?;
        Ok(adead_batches { lanes, next, work, batch: adead_batch::new(), more: true, ended: None, result: None })
    }

    /// Starts batches while fewer than the depth are in flight, then waits for the oldest.
    fn advance(&mut self) -> Result<Option<&Arrived>, Failure> {
        self.result = None;
        while self.more && self.lanes.has_room() {
            self.more = match self.start() {
                Ok(more) => more,
                Err(failure) => {
                    // `advance` returns the error after the results of the batches before it.
                    self.ended = Some(failure);
                    false
                }
            };
        }
        match self.lanes.finish() {
            Some(Ok(arrived)) => Ok(Some(self.result.insert(arrived))),
            Some(Err(error)) => {
                (self.more, self.ended) = (false, None);
                Err(error.into())
            }
            None => self.ended.take().map_or(Ok(None), Err),
        }
    }

    fn start(&mut self) -> Result<bool, Failure> {
        if !self.next.ask(&mut self.batch)? {
            return Ok(false);
        }
        let work = &self.work;
        self.lanes.start(self.batch.contents(), |stage| work.enqueue(stage))?;
        Ok(true)
    }
}

/// Returns the address and the size of a result. The address is never NULL, and is aligned for every element type.
fn place(arrived: &Arrived) -> Result<(*const c_void, usize)> {
    static NOTHING: Word = Word([0; 16]);
    let bytes = arrived.bytes()?;
    let first = if bytes.is_empty() { (&raw const NOTHING).cast() } else { bytes.as_ptr() };
    Ok((first.cast(), bytes.len()))
}

/// Returns memory for a batch of `bytes` bytes, which `next` must fill before it returns. Later batches reuse the
/// memory, which then still holds the earlier bytes. `out_of_memory` reports the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batch_memory(
    batch: *mut adead_batch,
    bytes: usize,
    out: *mut *mut c_void,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (batch, out) = unsafe { (exclusive(batch, "batch")?, Out::new(out, "out")?) };
        // A batch of no bytes needs an address too, or it would count as no batch.
        let words = bytes.div_ceil(size_of::<Word>()).max(1);
        if batch.memory.len() < words {
            // A new allocation, because growing the old one would copy bytes that nothing needs.
            let mut memory = Vec::new();
            if memory.try_reserve_exact(words).is_err() {
                fail!(OutOfMemory, "no memory for a batch of {bytes} bytes");
            }
            memory.resize(words, Word([0; 16]));
            batch.memory = memory;
        }
        let memory = batch.memory.as_mut_ptr();
        (batch.data, batch.bytes) = (memory.cast(), bytes);
        out.write(memory.cast());
        Ok(())
    })
}

/// Uses bytes that the caller owns as the batch, without a copy. They must stay valid until `next` is called again or
/// the run is destroyed; for a loader, until the loader is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batch_borrow(
    batch: *mut adead_batch,
    data: *const c_void,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (batch, data) = unsafe { (exclusive(batch, "batch")?, array(data.cast::<u8>(), bytes, "data")?) };
        (batch.data, batch.bytes) = (data.as_ptr(), bytes);
        Ok(())
    })
}

/// Processes batches on a device, at most `depth` at once, each on its own stream. A batch is uploaded, and `work`
/// enqueues work on it and names a result. The result is downloaded and passed to `take`. Depth 1 is sequential, 2
/// double buffering, 3 triple buffering. `user` is passed to all three callbacks.
///
/// At every depth the results equal those of a loop that processes one batch after the other. A batch's work starts
/// when the work of the previous batch is done, so `work` may read and write buffers that all batches share. Uploads
/// and downloads overlap with the work. All callbacks run on the calling thread. `take` gets results in the order of
/// the batches. `next` is called only while fewer than `depth` batches are in flight.
///
/// An error that `next`, `work` or the device finds in a batch is returned after `take` got the earlier batches. An
/// error of `take` is returned at once. Then no other batch starts, the batches in flight finish, and everything is
/// freed. The error's text says which callback failed for which batch, and has the last error text that this library
/// gave the callback. `invalid_argument` unless the depth is from 1 to `ADEAD_OVERLAP_MAX_DEPTH`. Like all functions of
/// batches and loaders, it is `unsupported` in a library built with ADEAD_MINIMAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_overlap(
    context: *const adead_context,
    depth: usize,
    next: adead_next,
    work: adead_work,
    take: adead_take,
    user: *mut c_void,
) -> adead_status {
    guard_own(|| {
        // SAFETY: the caller vouches for the pointer.
        let context = unsafe { reference(context, "context") }?;
        let next = Next::new(next, user)?;
        let work = Work { call: work.ok_or_else(|| null("work"))?, user };
        let take = take.ok_or_else(|| null("take"))?;
        let mut batches = adead_batches::new(&context.0, depth, next, work)?;
        while let Some(arrived) = batches.advance()? {
            let (index, (data, bytes)) = (arrived.index(), place(arrived)?);
            let before = failures();
            // SAFETY: the caller vouches for the callback and its pointer.
            let status = unsafe { take(index, data, bytes, user) };
            if status != 0 {
                return Err(Failure::returned(status, &format!("take of batch {index}"), before));
            }
        }
        Ok(())
    })
}

/// Creates a run like that of `adead_overlap`, without `take`: `adead_batches_next` returns each result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batches_create(
    context: *const adead_context,
    depth: usize,
    next: adead_next,
    work: adead_work,
    user: *mut c_void,
    out: *mut *mut adead_batches,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
        let next = Next::new(next, user)?;
        let work = Work { call: work.ok_or_else(|| null("work"))?, user };
        out.give(adead_batches::new(&context.0, depth, next, work)?);
        Ok(())
    })
}

/// Starts batches while fewer than the depth are in flight, and waits for the oldest. Returns its index and its result,
/// which is valid until the next call. `data` is NULL when no batch is left. An error is returned once, in its batch's
/// place; then no batch is left. Must not be called from one of the run's callbacks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batches_next(
    batches: *mut adead_batches,
    index: *mut usize,
    data: *mut *const c_void,
    bytes: *mut usize,
) -> adead_status {
    guard_own(|| {
        // SAFETY: the caller vouches for the pointers.
        let (batches, index, data, bytes) = unsafe {
            let batches = exclusive(batches, "batches")?;
            (batches, Out::new(index, "index")?, Out::new(data, "data")?, Out::new(bytes, "bytes")?)
        };
        let (number, (first, count)) = match batches.advance()? {
            Some(arrived) => (arrived.index(), place(arrived)?),
            None => (0, (no_pointer(), 0)),
        };
        index.write(number);
        data.write(first);
        bytes.write(count);
        Ok(())
    })
}

/// Destroys a run: starts no more batches, and waits for those in flight. NULL is allowed. Must not be called from one
/// of the run's callbacks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batches_destroy(batches: *mut adead_batches) {
    guard_destroy(batches);
}

/// Returns the index of the batch; the first one is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_index(stage: *const adead_stage) -> usize {
    // SAFETY: the caller vouches for the pointer.
    unsafe { stage.as_ref() }.map_or(0, |stage| stage.index)
}

/// Returns the stream of the batch. Its upload comes before all work on this stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_stream(stage: *const adead_stage) -> *mut adead_stream {
    // SAFETY: the caller vouches for the pointer.
    unsafe { stage.as_ref() }.map_or(std::ptr::null_mut(), |stage| stage.stream)
}

/// Returns the batch on the device: a buffer of exactly its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_input(stage: *const adead_stage) -> *mut adead_buffer {
    // SAFETY: the caller vouches for the pointer.
    unsafe { stage.as_ref() }.map_or(std::ptr::null_mut(), |stage| stage.input)
}

/// Returns a buffer of `bytes` bytes for results and intermediate values. The n-th call for a batch reuses the buffer
/// of an earlier batch's n-th call, with its old bytes, if the size is the same. Otherwise it returns a new buffer of
/// zeros. `out_of_memory` reports the bytes requested and free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_buffer(
    stage: *mut adead_stage,
    bytes: usize,
    out: *mut *mut adead_buffer,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers, and the stage lives as long as its callback runs.
        let (stage, out) = unsafe { (&mut *exclusive(stage, "stage")?.stage, Out::new(out, "out")?) };
        out.write(Arc::as_ptr(&stage.buffer(bytes)?).cast_mut().cast());
        Ok(())
    })
}

/// Sets the result of the batch: bytes of a buffer from an offset on, to be downloaded when the work is done. The last
/// call counts. Without a call, the result has 0 bytes, and its arrival means that the batch is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_result(
    stage: *mut adead_stage,
    buffer: *const adead_buffer,
    offset: usize,
    bytes: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stage, buffer) = unsafe { (exclusive(stage, "stage")?, reference(buffer, "buffer")?) };
        stage.result = Some((&raw const buffer.0, offset, bytes));
        Ok(())
    })
}
