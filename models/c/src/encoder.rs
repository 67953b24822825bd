//! Encoders: opened models.

use crate::options::{adead_encode_options, encode_options};
use crate::sentences::text_of;
use adead_c_support::context::{adead_context_options, open};
use adead_c_support::pointers::{Out, array, array_mut, reference, text};
use adead_c_support::{c_text, fail, guard, guard_destroy};
use adead_core::Context;
use adead_models::SentenceEncoder;
use std::ffi::{CString, c_char};

/// The result of a call; see adead.h.
type adead_status = i32;

/// A model in sentence-transformers' format (tokenizer, network, pooling), opened for a device, that embeds sentences. It never changes, so
/// threads may share one.
pub struct adead_sentence_encoder {
    pub(crate) encoder: SentenceEncoder,
    device: CString,
}

/// Opens a model's folder, such as all-MiniLM-L6-v2, for a device. `device` and `opts` are as for `adead_context_open`; either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_open(
    folder: *const c_char,
    device: *const c_char,
    opts: *const adead_context_options,
    out: *mut *mut adead_sentence_encoder,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (folder, out) = unsafe { (text(folder, "folder")?, Out::new(out, "out")?) };
        // SAFETY: as above.
        let context = unsafe { open(device, opts) }?;
        let device = c_text(&device_name(&context));
        out.give(adead_sentence_encoder { encoder: SentenceEncoder::open(folder, &context)?, device });
        Ok(())
    })
}

/// Returns the device's id, such as "cpu" or "cuda:0"; several devices are separated by commas.
fn device_name(context: &Context) -> String {
    if context.dispatcher().is_hybrid() {
        return context.devices().into_iter().map(|info| info.id).collect::<Vec<_>>().join(",");
    }
    context.device_info().id.clone()
}

/// Destroys an encoder; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_destroy(encoder: *mut adead_sentence_encoder) {
    // SAFETY: `open` made it, and the caller gives it up.
    unsafe { guard_destroy(encoder) }
}

/// Returns the number of values in an embedding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_width(
    encoder: *const adead_sentence_encoder,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (encoder, out) = unsafe { (reference(encoder, "encoder")?, Out::new(out, "out")?) };
        out.write(encoder.encoder.width());
        Ok(())
    })
}

/// Returns the most tokens of a sentence, including the special tokens at its ends. Later tokens are ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_max_tokens(
    encoder: *const adead_sentence_encoder,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (encoder, out) = unsafe { (reference(encoder, "encoder")?, Out::new(out, "out")?) };
        out.write(encoder.encoder.max_tokens());
        Ok(())
    })
}

/// Returns the encoder's device: "cpu", "cuda:0", or several, separated by commas. The text lives as long as the encoder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_device(
    encoder: *const adead_sentence_encoder,
    out: *mut *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (encoder, out) = unsafe { (reference(encoder, "encoder")?, Out::new(out, "out")?) };
        out.write(encoder.device.as_ptr());
        Ok(())
    })
}

/// Embeds `count` sentences. Writes a row of `adead_sentence_encoder_width` values for each sentence, in order, to `rows`, which has room
/// for `capacity` values.
///
/// `sentences` points to a UTF-8 text for each sentence, and `lengths` to its number of bytes. If `lengths` is NULL, the texts end with
/// NUL. If `truncated` is not NULL, it receives `count` bytes: 1 for a truncated sentence, which has more tokens than the model
/// accepts; else 0. `opts` may be NULL.
///
/// `invalid_argument` if `rows` is too small, if the batch size is 0, and, with the sentence's number, if a text is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_sentence_encoder_encode(
    encoder: *const adead_sentence_encoder,
    sentences: *const *const c_char,
    lengths: *const usize,
    count: usize,
    opts: *const adead_encode_options,
    rows: *mut f32,
    capacity: usize,
    truncated: *mut u8,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (encoder, texts, options) = unsafe {
            (&reference(encoder, "encoder")?.encoder, array(sentences, count, "sentences")?, encode_options(opts)?)
        };
        // SAFETY: as above.
        let lengths = if lengths.is_null() { None } else { Some(unsafe { array(lengths, count, "lengths") }?) };
        let width = encoder.width();
        if count.checked_mul(width).is_none_or(|values| values > capacity) {
            fail!(
                InvalidArgument,
                "rows has room for {capacity} values; {count} sentences take {width} each, {}",
                count as u128 * width as u128
            );
        }
        let texts: Vec<&str> = (0..count)
            // SAFETY: as above.
            .map(|i| unsafe { text_of(texts[i], lengths.map(|lengths| lengths[i]), i as u64) })
            .collect::<adead_core::Result<_>>()?;
        // SAFETY: as above; bytes have no alignment.
        let (rows, truncated) = unsafe {
            let told = if truncated.is_null() { 0 } else { count };
            (array_mut(rows.cast(), count * width * 4, "rows")?, array_mut(truncated.cast(), told, "truncated")?)
        };
        let embeddings = encoder.encode_with(&texts, &options)?;
        for (to, value) in rows.chunks_exact_mut(4).zip(embeddings.values()) {
            to.copy_from_slice(&value.to_ne_bytes());
        }
        truncated.fill(0);
        if !truncated.is_empty() {
            embeddings.truncated().iter().for_each(|&sentence| truncated[sentence] = 1);
        }
        Ok(())
    })
}
