//! Streams of sentences, of any length in bounded memory.

use crate::encoder::adead_sentence_encoder;
use crate::options::{adead_encode_options, encode_options};
use crate::sentences::text_of;
use adead_c_support::pointers::{Out, growing, options, reference};
use adead_c_support::{fail, guard};
use adead_core::{Error, Result, Status};
use adead_models::{EmbeddingPart, Embeddings};
use std::ffi::{c_char, c_void};
use std::ptr::null;

/// The result of a call; see adead.h.
type adead_status = i32;

/// The source and the consumer of a stream of sentences. Start from `ADEAD_SENTENCE_STREAM_INIT`. The callbacks receive `user`. They must
/// return: no longjmp and no C++ exception may leave them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_sentence_stream {
    /// `sizeof(adead_sentence_stream)`.
    pub struct_size: usize,
    /// Passed to the callbacks.
    pub user: *mut c_void,
    /// Provides the next sentence. Returns 1 after it has set `*text`, which must stay valid until the next call, and `*length`, the number
    /// of bytes; for a text that ends with NUL it leaves `*length` unchanged. Returns 0 at the end of the stream, and any other number on
    /// failure. It runs in the library's own thread, ahead of `take`.
    pub next: Option<unsafe extern "C" fn(user: *mut c_void, text: *mut *const c_char, length: *mut usize) -> i32>,
    /// Takes the next `count` rows, in the order of the sentences. `first` is the number of the first row's sentence, counted from 0.
    /// `truncated` has `count` bytes: 1 for a truncated sentence, else 0. Both arrays are valid only during the call. Returns 0 to
    /// continue; any other number ends the stream. It runs in the calling thread.
    pub take: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            first: u64,
            rows: *const f32,
            truncated: *const u8,
            count: usize,
        ) -> i32,
    >,
    /// Receives the number of sentences computed so far, including the rows that `take` receives next. May be NULL. Returns 0 to continue,
    /// and runs in the calling thread, as `take` does.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, computed: u64) -> i32>,
}

// SAFETY: as `Growing` requires; the caller vouches for the callbacks.
growing!(unsafe adead_sentence_stream, 40);

/// The `length` of a text that ends with NUL.
const UP_TO_NUL: usize = usize::MAX;

/// The sentences that `next` provides, in the library's thread that calls it.
struct Source {
    stream: adead_sentence_stream,
    given: u64,
}

// SAFETY: the documentation says that a thread of the library calls the callbacks with `user`.
unsafe impl Send for Source {}

impl Iterator for Source {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        let (next, mut text, mut length) = (self.stream.next?, null(), UP_TO_NUL);
        // SAFETY: the caller's callback, called as documented.
        match unsafe { next(self.stream.user, &mut text, &mut length) } {
            0 => None,
            1 => {
                let length = Some(length).filter(|&length| length != UP_TO_NUL);
                // SAFETY: `next` vouches for its text until it is called again.
                let text = unsafe { text_of(text, length, self.given) };
                self.given += 1;
                Some(text.map(String::from))
            }
            other => {
                let text = format!("the source of sentences failed at sentence {} with {other}", self.given);
                Some(Err(Error::new(Status::Io, text)))
            }
        }
    }
}

/// Embeds the sentences of a stream as they arrive, and passes the rows to `take` in the same order. `*count` receives the number of rows
/// that `take` received. A few thousand sentences are in memory at once. `opts` may be NULL.
///
/// It is not an error if `take` or `progress` ends the stream. `io` if `next` failed. `invalid_argument`, with the sentence's number, for a
/// text that is not UTF-8. In both cases `take` may not have received all rows before that sentence. The call waits for a running `next`;
/// after it returns, the library calls no callback of the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_batch_embed(
    encoder: *const adead_sentence_encoder,
    stream: *const adead_sentence_stream,
    opts: *const adead_encode_options,
    count: *mut u64,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (encoder, stream, opts, count) = unsafe {
            let none = adead_sentence_stream {
                struct_size: 0,
                user: std::ptr::null_mut(),
                next: None,
                take: None,
                progress: None,
            };
            let encoder = &reference(encoder, "encoder")?.encoder;
            let stream = options(reference(stream, "stream")?, none)?;
            (encoder, stream, encode_options(opts)?, Out::new(count, "count")?)
        };
        let (Some(_), Some(take)) = (stream.next, stream.take) else {
            fail!(InvalidArgument, "next and take of a stream must not be NULL");
        };
        let (mut given, mut stopped) = (0, false);
        let result = encoder.batch_embed(Source { stream, given: 0 }, &opts, |part| {
            let answer = match part {
                EmbeddingPart::Progress(computed) => stream.progress.map_or(0, |told| {
                    // SAFETY: the caller's callback, called as documented.
                    unsafe { told(stream.user, computed) }
                }),
                EmbeddingPart::Rows { first, rows } => {
                    given = first + rows.len() as u64;
                    let truncated = flags(rows);
                    // SAFETY: as above; both arrays have `rows.len()` rows.
                    unsafe { take(stream.user, first, rows.values().as_ptr(), truncated.as_ptr(), rows.len()) }
                }
            };
            stopped = answer != 0;
            if stopped { Err(Error::new(Status::NotReady, "the stream was ended")) } else { Ok(()) }
        });
        if !stopped {
            result?;
        }
        count.write(given);
        Ok(())
    })
}

/// Returns 1 for each row whose sentence was truncated, else 0.
fn flags(rows: &Embeddings) -> Vec<u8> {
    let mut flags = vec![0; rows.len()];
    rows.truncated().iter().for_each(|&row| flags[row] = 1);
    flags
}
