//! Generated texts.

use adead_c_support::pointers::{Out, reference};
use adead_c_support::{guard, guard_destroy};
use adead_models::text::{Finish, Generation, TextStream};
use std::ffi::c_char;

/// The result of a call; see adead.h.
type adead_status = i32;

/// Why a text ended, one of `ADEAD_FINISH_...`.
pub type adead_finish = i32;

/// A generated text and its tokens.
pub struct adead_generation {
    /// UTF-8, followed by a NUL.
    text: Vec<u8>,
    tokens: Vec<u32>,
    finish: adead_finish,
    prompt_tokens: usize,
}

impl adead_generation {
    /// Returns what a stream has generated so far. `text` is the concatenation of its pieces.
    pub(crate) fn new(stream: &TextStream, text: &str) -> adead_generation {
        adead_generation {
            text: with_nul(text),
            tokens: stream.tokens().to_vec(),
            finish: number(stream.finish()),
            prompt_tokens: stream.prompt_tokens(),
        }
    }
}

impl From<Generation> for adead_generation {
    fn from(whole: Generation) -> adead_generation {
        adead_generation {
            text: with_nul(&whole.text),
            tokens: whole.tokens,
            finish: number(Some(whole.finish)),
            prompt_tokens: whole.prompt_tokens,
        }
    }
}

/// Returns the bytes of a text, followed by a NUL.
pub(crate) fn with_nul(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// The header's constants.
fn number(finish: Option<Finish>) -> adead_finish {
    match finish {
        None => 0,
        Some(Finish::End) => 1,
        Some(Finish::Stop) => 2,
        Some(Finish::MaxTokens) => 3,
        Some(Finish::ContextFull) => 4,
    }
}

/// Destroys a generation; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_generation_destroy(generation: *mut adead_generation) {
    // SAFETY: this library made it, and the caller gives it up.
    unsafe { guard_destroy(generation) }
}

/// Returns the text, without the prompt, and its number of bytes. `length` may be NULL. The text is UTF-8, ends with NUL and lives as long
/// as the generation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_generation_text(
    generation: *const adead_generation,
    text: *mut *const c_char,
    length: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generation, text) = unsafe { (reference(generation, "generation")?, Out::new(text, "text")?) };
        text.write(generation.text.as_ptr().cast());
        // SAFETY: as above.
        if let Ok(length) = unsafe { Out::new(length, "length") } {
            length.write(generation.text.len() - 1);
        }
        Ok(())
    })
}

/// Returns the tokens and their number. A token that ended the text is included, as the last one. The tokens of a stop text are also
/// included. They live as long as the generation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_generation_tokens(
    generation: *const adead_generation,
    tokens: *mut *const u32,
    count: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generation, tokens, count) =
            unsafe { (reference(generation, "generation")?, Out::new(tokens, "tokens")?, Out::new(count, "count")?) };
        tokens.write(generation.tokens.as_ptr());
        count.write(generation.tokens.len());
        Ok(())
    })
}

/// Returns the number of the prompt's tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_generation_prompt_tokens(
    generation: *const adead_generation,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generation, out) = unsafe { (reference(generation, "generation")?, Out::new(out, "out")?) };
        out.write(generation.prompt_tokens);
        Ok(())
    })
}

/// Returns why the text ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_generation_finish(
    generation: *const adead_generation,
    out: *mut adead_finish,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generation, out) = unsafe { (reference(generation, "generation")?, Out::new(out, "out")?) };
        out.write(generation.finish);
        Ok(())
    })
}
