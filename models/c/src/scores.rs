//! Tokens, and the probabilities and hidden states that a model computes for them.

use crate::generator::adead_text_generator;
use adead_c_support::pointers::{Out, array, array_mut, reference, text};
use adead_c_support::{fail, guard};
use adead_core::Result;
use std::ffi::c_char;

/// The result of a call; see adead.h.
type adead_status = i32;

/// Converts a text to tokens, and writes their number to `*count`. `tokens` has room for `capacity` of them; if it is NULL, only the number
/// is written. The text of a special token, such as `<|im_start|>`, becomes that token. A first token (bos) and a last one (eos) are added
/// if the model's file requires them.
///
/// `invalid_argument` if the capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_tokenize(
    generator: *const adead_text_generator,
    text: *const c_char,
    tokens: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, text, count) =
            unsafe { (reference(generator, "generator")?, self::text(text, "text")?, Out::new(count, "count")?) };
        let found = generator.generator.tokenize(text)?;
        if !tokens.is_null() {
            let bytes: Vec<u8> = found.iter().flat_map(|token| token.to_ne_bytes()).collect();
            // SAFETY: as above.
            unsafe { write(&bytes, tokens.cast(), 4, capacity, "tokens") }?;
        }
        count.write(found.len());
        Ok(())
    })
}

/// Converts `count` tokens to text, and writes its number of bytes, without the NUL at its end, to `*length`. `text` has room for
/// `capacity` bytes, including the NUL; if it is NULL, only the number is written. Special tokens have no text. Bytes that are not UTF-8
/// become U+FFFD.
///
/// `invalid_argument` if the capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_detokenize(
    generator: *const adead_text_generator,
    tokens: *const u32,
    count: usize,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, tokens, length) = unsafe {
            (reference(generator, "generator")?, array(tokens, count, "tokens")?, Out::new(length, "length")?)
        };
        let mut found = generator.generator.detokenize(tokens).into_bytes();
        let bytes = found.len();
        if !text.is_null() {
            found.push(0);
            // SAFETY: as above.
            unsafe { write(&found, text.cast(), 1, capacity, "text") }?;
        }
        length.write(bytes);
        Ok(())
    })
}

/// Writes the perplexity of a text to `*out`: e to the power of the mean negative log probability of its tokens, except the first. A text
/// above the context length is cut into parts of that length, which don't see each other.
///
/// `invalid_argument` for a text with fewer than two tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_perplexity(
    generator: *const adead_text_generator,
    text: *const c_char,
    out: *mut f64,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, text, out) =
            unsafe { (reference(generator, "generator")?, self::text(text, "text")?, Out::new(out, "out")?) };
        out.write(generator.generator.perplexity(text)?);
        Ok(())
    })
}

/// Writes the log probability of each of `count` tokens except the first, given the tokens before it: `count` - 1 values. `logprobs` has
/// room for `capacity` values.
///
/// `invalid_argument` if the capacity is too small, for no tokens, for more tokens than the context length, and for a token outside the
/// vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_logprobs(
    generator: *const adead_text_generator,
    tokens: *const u32,
    count: usize,
    logprobs: *mut f32,
    capacity: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, tokens) = unsafe { (reference(generator, "generator")?, array(tokens, count, "tokens")?) };
        room(count.saturating_sub(1), capacity, "logprobs")?;
        let found = generator.generator.logprobs(tokens)?;
        // SAFETY: as above.
        unsafe { write(&bytes_of(&found), logprobs.cast(), 4, capacity, "logprobs") }
    })
}

/// Writes the embedding of a text: the mean of its tokens' last hidden states, `adead_text_generator_width` values. `values` has room for
/// `capacity` values. A sentence encoder's embeddings represent the meaning of a text better.
///
/// `invalid_argument` if the capacity is too small, and for a text without tokens or with more than the context length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_embed(
    generator: *const adead_text_generator,
    text: *const c_char,
    values: *mut f32,
    capacity: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, text) = unsafe { (reference(generator, "generator")?, self::text(text, "text")?) };
        room(generator.generator.width(), capacity, "values")?;
        let found = generator.generator.embed(text)?;
        // SAFETY: as above.
        unsafe { write(&bytes_of(&found), values.cast(), 4, capacity, "values") }
    })
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Checks that an array has room for `wanted` elements.
fn room(wanted: usize, capacity: usize, name: &str) -> Result<()> {
    if wanted > capacity {
        fail!(InvalidArgument, "{name} has room for {capacity}; {wanted} are needed");
    }
    Ok(())
}

/// Writes elements of `size` bytes.
///
/// # Safety
/// `to` is NULL or has room for `capacity` elements, which nothing else uses meanwhile.
unsafe fn write(bytes: &[u8], to: *mut u8, size: usize, capacity: usize, name: &str) -> Result<()> {
    room(bytes.len() / size, capacity, name)?;
    // SAFETY: passed on; at most `capacity` elements.
    unsafe { array_mut(to.cast(), bytes.len(), name) }?.copy_from_slice(bytes);
    Ok(())
}
