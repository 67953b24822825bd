//! Text as it is generated: streams from which the caller takes pieces, and calls that pass pieces to a callback.

use crate::generation::{adead_generation, with_nul};
use crate::generator::adead_text_generator;
use crate::text_options::{adead_generate_options, generate_options};
use adead_c_support::pointers::{Out, array, exclusive, reference, text};
use adead_c_support::{guard, guard_destroy};
use adead_core::Result;
use adead_models::text::{Message, TextStream};
use std::ffi::{c_char, c_void};
use std::ptr::null;

/// The result of a call; see adead.h.
type adead_status = i32;

/// A message of a conversation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_message {
    /// The speaker: "system", "user", "assistant", or another role that the model's chat template accepts.
    pub role: *const c_char,
    /// The text.
    pub content: *const c_char,
}

/// Receives the next piece of a text: `length` bytes of UTF-8, followed by NUL, valid only during the call. A piece is not empty, ends
/// between characters and may have several tokens. Returns 0 to continue; any other number ends the text. It must return: no longjmp and no
/// C++ exception may leave it.
pub type adead_text_piece = Option<unsafe extern "C" fn(user: *mut c_void, text: *const c_char, length: usize) -> i32>;

/// A text that is generated piece by piece. One thread at a time may use it.
pub struct adead_text_stream {
    stream: TextStream,
    /// All pieces so far.
    text: String,
    /// The last piece, followed by a NUL.
    piece: Vec<u8>,
}

impl adead_text_stream {
    fn new(stream: TextStream) -> adead_text_stream {
        adead_text_stream { stream, text: String::new(), piece: Vec::new() }
    }

    /// Computes the next piece; returns its bytes and a NUL.
    fn next(&mut self) -> Result<Option<&[u8]>> {
        let Some(piece) = self.stream.next().transpose()? else { return Ok(None) };
        self.text += &piece;
        self.piece = with_nul(&piece);
        Ok(Some(&self.piece))
    }

    fn generation(&self) -> adead_generation {
        adead_generation::new(&self.stream, &self.text)
    }

    /// Passes pieces to a callback until it ends the text.
    fn run(&mut self, piece: adead_text_piece, user: *mut c_void) -> Result<()> {
        while let Some(text) = self.next()? {
            // SAFETY: the caller's callback, called as documented.
            if piece.is_some_and(|take| unsafe { take(user, text.as_ptr().cast(), text.len() - 1) } != 0) {
                break;
            }
        }
        Ok(())
    }
}

/// # Safety
/// `messages` is NULL or points to `count` messages, whose texts are NULL or end with NUL.
unsafe fn messages_of(messages: *const adead_message, count: usize) -> Result<Vec<Message>> {
    // SAFETY: passed on.
    let messages = unsafe { array(messages, count, "messages") }?;
    let each = |(number, message): (usize, &adead_message)| {
        // SAFETY: passed on.
        let role = unsafe { text(message.role, &format!("role of message {number}")) }?;
        // SAFETY: passed on.
        let content = unsafe { text(message.content, &format!("content of message {number}")) }?;
        Ok(Message::new(role, content))
    };
    messages.iter().enumerate().map(each).collect()
}

/// Generates the text that follows a prompt, and passes pieces to `piece` as they are computed, in the calling thread. `opts`, `piece` and
/// `out` may be NULL. `*out` receives the whole text. It is not an error if `piece` ends the text; `adead_generation_finish` is then
/// `ADEAD_FINISH_NONE`.
///
/// `invalid_argument` for a prompt without tokens or with more than the context length, and for options outside their ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generate(
    generator: *const adead_text_generator,
    prompt: *const c_char,
    opts: *const adead_generate_options,
    piece: adead_text_piece,
    user: *mut c_void,
    out: *mut *mut adead_generation,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let mut stream = unsafe { begin(generator, prompt, opts) }?;
        stream.run(piece, user)?;
        // SAFETY: as above.
        if let Ok(out) = unsafe { Out::new(out, "out") } {
            out.give(stream.generation());
        }
        Ok(())
    })
}

/// Generates an answer to `count` messages, as `adead_text_generate` does. The model's chat template turns the messages into a prompt.
///
/// `unsupported` if the model's file has no chat template; `invalid_argument` if the template refuses the messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_chat(
    generator: *const adead_text_generator,
    messages: *const adead_message,
    count: usize,
    opts: *const adead_generate_options,
    piece: adead_text_piece,
    user: *mut c_void,
    out: *mut *mut adead_generation,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let mut stream = unsafe { begin_chat(generator, messages, count, opts) }?;
        stream.run(piece, user)?;
        // SAFETY: as above.
        if let Ok(out) = unsafe { Out::new(out, "out") } {
            out.give(stream.generation());
        }
        Ok(())
    })
}

/// Generates texts for `count` prompts together, which is faster than one after the other. Writes a generation for each to `out`, which has
/// room for `count` of them. Every text has the same bits as alone; prompt i, counted from 0, has the sequence number of the options plus
/// i. `opts` may be NULL.
///
/// The errors are those of `adead_text_generate`, for any of the prompts. On an error `out` is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generate_batch(
    generator: *const adead_text_generator,
    prompts: *const *const c_char,
    count: usize,
    opts: *const adead_generate_options,
    out: *mut *mut adead_generation,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, prompts, options) =
            unsafe { (reference(generator, "generator")?, array(prompts, count, "prompts")?, generate_options(opts)?) };
        // SAFETY: as above.
        let each = |(number, &prompt): (usize, &*const c_char)| unsafe { text(prompt, &format!("prompt {number}")) };
        let prompts = prompts.iter().enumerate().map(each).collect::<Result<Vec<_>>>()?;
        // SAFETY: as above; checked before the work.
        let out = (0..count).map(|number| unsafe { Out::new(out.wrapping_add(number), "out") });
        let out = out.collect::<Result<Vec<_>>>()?;
        let whole = generator.generator.generate_batch(&prompts, &options)?;
        out.into_iter().zip(whole).for_each(|(out, whole)| out.give(whole.into()));
        Ok(())
    })
}

/// # Safety
/// The pointers are NULL or valid, and texts end with NUL.
unsafe fn begin(
    generator: *const adead_text_generator,
    prompt: *const c_char,
    opts: *const adead_generate_options,
) -> Result<adead_text_stream> {
    // SAFETY: passed on.
    let (generator, prompt, options) =
        unsafe { (reference(generator, "generator")?, text(prompt, "prompt")?, generate_options(opts)?) };
    Ok(adead_text_stream::new(generator.generator.stream(prompt, &options)?))
}

/// # Safety
/// As for [`begin`]; there are `count` messages.
unsafe fn begin_chat(
    generator: *const adead_text_generator,
    messages: *const adead_message,
    count: usize,
    opts: *const adead_generate_options,
) -> Result<adead_text_stream> {
    // SAFETY: passed on.
    let (generator, messages, options) =
        unsafe { (reference(generator, "generator")?, messages_of(messages, count)?, generate_options(opts)?) };
    Ok(adead_text_stream::new(generator.generator.chat_stream(&messages, &options)?))
}

/// Begins the text that follows a prompt. The first `adead_text_stream_next` computes the prompt. `opts` may be NULL. The errors are those
/// of `adead_text_generate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_stream_create(
    generator: *const adead_text_generator,
    prompt: *const c_char,
    opts: *const adead_generate_options,
    out: *mut *mut adead_text_stream,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let out = unsafe { Out::new(out, "out") }?;
        // SAFETY: as above.
        out.give(unsafe { begin(generator, prompt, opts) }?);
        Ok(())
    })
}

/// Begins an answer to `count` messages, as `adead_text_stream_create` does. The errors are those of `adead_text_chat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_stream_create_chat(
    generator: *const adead_text_generator,
    messages: *const adead_message,
    count: usize,
    opts: *const adead_generate_options,
    out: *mut *mut adead_text_stream,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let out = unsafe { Out::new(out, "out") }?;
        // SAFETY: as above.
        out.give(unsafe { begin_chat(generator, messages, count, opts) }?);
        Ok(())
    })
}

/// Destroys a stream, even before its text ends. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_stream_destroy(stream: *mut adead_text_stream) {
    // SAFETY: `create` made it, and the caller gives it up.
    unsafe { guard_destroy(stream) }
}

/// Computes the next piece. `*text` receives `*length` bytes of UTF-8, followed by NUL, valid until the next call with this stream. A piece
/// is not empty, ends between characters and may have several tokens. At the end of the text, and after an error, `*text` receives NULL and
/// `*length` 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_stream_next(
    stream: *mut adead_text_stream,
    text: *mut *const c_char,
    length: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, text, length) =
            unsafe { (exclusive(stream, "stream")?, Out::new(text, "text")?, Out::new(length, "length")?) };
        let piece = stream.next()?;
        text.write(piece.map_or(null(), |piece| piece.as_ptr().cast()));
        length.write(piece.map_or(0, |piece| piece.len() - 1));
        Ok(())
    })
}

/// Returns what a stream has generated so far: the text of its pieces, and their tokens. Before the end of the text
/// `adead_generation_finish` is `ADEAD_FINISH_NONE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_stream_generation(
    stream: *const adead_text_stream,
    out: *mut *mut adead_generation,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (stream, out) = unsafe { (reference(stream, "stream")?, Out::new(out, "out")?) };
        out.give(stream.generation());
        Ok(())
    })
}
