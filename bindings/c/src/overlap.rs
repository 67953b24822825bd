//! Batches through a device, several under way at once, with copies beside the work. The feature `overlap`;
//! without it `without.rs` has its functions.

use crate::buffer::adead_buffer;
use crate::context::adead_context;
use crate::pointers::{Error, Out, Status, array, exclusive, fail, null, reference};
use crate::status::{adead_status, guard, guard_destroy};
use crate::stream::adead_stream;
use adead::overlap::{Arrived, Brought, Lanes, Stage};
use adead_c_support::{failures, last_error, remember};
use adead_core::gpu::Buffer;
use adead_core::{Context, Result};
use std::ffi::{CStr, c_void};
use std::ptr::null as no_pointer;
use std::sync::Arc;

/// The most batches under way at once.
pub const ADEAD_OVERLAP_MAX_DEPTH: usize = 64;
const _: () = assert!(ADEAD_OVERLAP_MAX_DEPTH == adead::overlap::MAX_DEPTH);

/// What memory of batches is made of: every element is aligned in it.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Word(#[allow(dead_code, reason = "its bytes are the caller's")] [u8; 16]);

/// What an `adead_next` fills in. It is there for the call only.
pub struct adead_batch {
    /// What it has; NULL where it was given nothing.
    pub(crate) data: *const u8,
    pub(crate) bytes: usize,
    /// Its own, for batches that are made in it.
    memory: Vec<Word>,
}

// SAFETY: its bytes are its own, or the caller's who vouches that any thread may read them.
unsafe impl Send for adead_batch {}

/// What the work of a batch is given: a stream, the batch on the device, and buffers. It is there for the call only, and what is
/// asked of it belongs to it.
pub struct adead_stage {
    stage: *mut Stage<'static>,
    stream: *mut adead_stream,
    input: *mut adead_buffer,
    index: usize,
    result: Option<(*const Buffer, usize, usize)>,
}

/// Batches under way, and what they are asked of. One thread at a time.
pub struct adead_batches {
    lanes: Lanes,
    next: Next,
    work: Work,
    batch: adead_batch,
    /// Whether there may be another batch, and what comes behind those that were started.
    more: bool,
    ended: Option<Failure>,
    /// What was given last.
    result: Option<Arrived>,
}

/// Gives the next batch, by `adead_batch_memory` or `adead_batch_borrow`; without either there is none any more. Everything
/// but `ADEAD_OK` ends whatever asked and is returned there, also a number of the caller's own.
pub type adead_next = Option<unsafe extern "C" fn(batch: *mut adead_batch, user: *mut c_void) -> adead_status>;

/// Enqueues the work of a batch on its stream and names its result. Everything but `ADEAD_OK` ends it.
pub type adead_work = Option<unsafe extern "C" fn(stage: *mut adead_stage, user: *mut c_void) -> adead_status>;

/// Takes the result of batch `index`; the first one is 0. The bytes are where the download put them, aligned for every
/// element type, for the call only, and never NULL. Everything but `ADEAD_OK` ends it.
pub type adead_take =
    Option<unsafe extern "C" fn(index: usize, data: *const c_void, bytes: usize, user: *mut c_void) -> adead_status>;

/// Why something ended: an error of the library's, or a status that a callback returned, with what is known of it.
pub(crate) enum Failure {
    Library(Error),
    Callback(adead_status, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

impl Failure {
    /// Of a callback that returned a status; `before` is how often calls had failed on this thread when it was called.
    fn returned(status: adead_status, callback: &str, batch: usize, before: usize) -> Failure {
        let known = Status::ALL.iter().find(|&&known| known as adead_status == status);
        let name = known.map_or_else(|| status.to_string(), |known| known.name().to_string());
        let mut text = format!("{callback} of batch {batch} returned {name}");
        if failures() != before {
            // SAFETY: this thread's text, which stays until the next failure.
            let cause = unsafe { CStr::from_ptr(last_error()) };
            text = format!("{text}: {}", cause.to_string_lossy());
        }
        Failure::Callback(status, text)
    }
}

/// `guard` for calls that may fail with a status of the caller's own.
pub(crate) fn guard_own(call: impl FnOnce() -> Result<(), Failure>) -> adead_status {
    let mut own = 0;
    let status = guard(|| match call() {
        Ok(()) => Ok(()),
        Err(Failure::Library(error)) => Err(error),
        Err(Failure::Callback(status, text)) => {
            remember(&text);
            own = status;
            Ok(())
        }
    });
    if status == 0 { own } else { status }
}

/// What gives batches.
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

    /// Asks for the next batch, into one: whether there is one.
    pub fn ask(&mut self, batch: &mut adead_batch) -> Result<bool, Failure> {
        (batch.data, batch.bytes) = (no_pointer(), 0);
        let before = failures();
        // SAFETY: the caller vouches for the callback and its pointer.
        let status = unsafe { (self.call)(batch, self.user) };
        if status != 0 {
            return Err(Failure::returned(status, "next", self.asked, before));
        }
        self.asked += 1;
        Ok(!batch.data.is_null())
    }
}

/// What is done with batches.
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
        // SAFETY: the caller vouches for the callback and its pointer; the stage stays for the call.
        let status = unsafe { (self.call)(&mut stage, self.user) };
        if status != 0 {
            return Err(Failure::returned(status, "work", index, before));
        }
        Ok(match stage.result {
            // SAFETY: a buffer of the lane's, or one that the caller keeps until the batch is done.
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
        // SAFETY: so many bytes are there, or the caller vouches for them.
        if self.bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.bytes) } }
    }
}

impl adead_batches {
    fn new(context: &Context, depth: usize, next: Next, work: Work) -> Result<adead_batches> {
        let lanes = Lanes::new(context, depth)?;
        Ok(adead_batches { lanes, next, work, batch: adead_batch::new(), more: true, ended: None, result: None })
    }

    /// Starts batches while there is room for them, then waits for the oldest.
    fn advance(&mut self) -> Result<Option<&Arrived>, Failure> {
        self.result = None;
        while self.more && self.lanes.has_room() {
            self.more = match self.start() {
                Ok(more) => more,
                Err(failure) => {
                    // It comes behind the batches before it.
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

/// Where the bytes of a result are, and how many: never NULL, and aligned for every element type.
fn place(arrived: &Arrived) -> Result<(*const c_void, usize)> {
    static NOTHING: Word = Word([0; 16]);
    let bytes = arrived.bytes()?;
    let first = if bytes.is_empty() { (&raw const NOTHING).cast() } else { bytes.as_ptr() };
    Ok((first.cast(), bytes.len()))
}

/// Memory for a batch of so many bytes, to be filled before `next` returns. It is used again for later batches and has what
/// they left. `out_of_memory` with the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batch_memory(
    batch: *mut adead_batch,
    bytes: usize,
    out: *mut *mut c_void,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (batch, out) = unsafe { (exclusive(batch, "batch")?, Out::new(out, "out")?) };
        // A batch of no bytes has memory too, or it would be none.
        let words = bytes.div_ceil(size_of::<Word>()).max(1);
        if batch.memory.len() < words {
            // Nothing in the old one is worth copying.
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

/// A batch of bytes that the caller has. They must stay until `next` is asked again or its batches are given up; those given to a
/// loader until it is given up.
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

/// Takes batches through a device, at most `depth` at once, each on a stream of its own: it is uploaded, `work` enqueues work
/// on it, and what it names as its result is brought to the host and given to `take`. 1 is sequential, 2 double buffering, 3
/// triple buffering. `user` is passed to all three.
///
/// The results are those of a loop that does one batch after the other, whatever the depth: work of a batch begins when the
/// work of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and downloads run
/// beside it. Everything is called in the caller's thread, results in the order of the batches, `next` only when fewer than
/// `depth` are under way.
///
/// What `next`, `work` or the device finds wrong with a batch is returned when the batches before it were given to `take`;
/// what `take` returns, at once. Then nothing more is started, what is under way is waited for, and everything is freed. The text
/// of the error says which callback failed for which batch, and what it was told last by this library. `invalid_argument`
/// unless the depth is from 1 to `ADEAD_OVERLAP_MAX_DEPTH`. As with all functions of batches and loaders, `unsupported` in a
/// library built with ADEAD_MINIMAL.
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
                return Err(Failure::returned(status, "take", index, before));
            }
        }
        Ok(())
    })
}

/// The same without a `take`: its results are asked for one by one, by `adead_batches_next`.
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

/// Starts batches while fewer than the depth are under way, and waits for the oldest: its index and its result, which stays
/// until the next call. Where there is none any more, `data` is NULL. An error comes in its batch's place, once; then
/// there is none any more. Not from a callback of theirs.
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

/// Starts no more, waits for what is under way, and gives all of it up; NULL is fine. Not from a callback of theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_batches_destroy(batches: *mut adead_batches) {
    guard_destroy(batches);
}

/// Of which batch: the first one is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_index(stage: *const adead_stage) -> usize {
    // SAFETY: the caller vouches for the pointer.
    unsafe { stage.as_ref() }.map_or(0, |stage| stage.index)
}

/// The stream of the batch. Work on it finds the batch there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_stream(stage: *const adead_stage) -> *mut adead_stream {
    // SAFETY: the caller vouches for the pointer.
    unsafe { stage.as_ref() }.map_or(std::ptr::null_mut(), |stage| stage.stream)
}

/// The batch on the device: a buffer of exactly its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_input(stage: *const adead_stage) -> *mut adead_buffer {
    // SAFETY: the caller vouches for the pointer.
    unsafe { stage.as_ref() }.map_or(std::ptr::null_mut(), |stage| stage.input)
}

/// A buffer of so many bytes for results and intermediate values. The n-th call for a batch gives what the n-th call gave for
/// an earlier one, with what it had, if that had the same size; else a new one, zeroed. `out_of_memory` with the bytes asked
/// and free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_stage_buffer(
    stage: *mut adead_stage,
    bytes: usize,
    out: *mut *mut adead_buffer,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers, and the stage is there as long as its callback runs.
        let (stage, out) = unsafe { (&mut *exclusive(stage, "stage")?.stage, Out::new(out, "out")?) };
        out.write(Arc::as_ptr(&stage.buffer(bytes)?).cast_mut().cast());
        Ok(())
    })
}

/// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one, a
/// result of no bytes says that the batch is done.
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
