//! Generators: opened models that write text.

use crate::text_options::{adead_text_options, open_options};
use adead_c_support::pointers::{Out, reference, text};
use adead_c_support::{c_text, guard, guard_destroy};
use adead_models::TextGenerator;
use std::ffi::{CString, c_char};

/// The result of a call; see adead.h.
type adead_status = i32;

/// A language model from a GGUF file, opened for a device, that generates text. It never changes, so threads may share one.
pub struct adead_text_generator {
    pub(crate) generator: TextGenerator,
    device: CString,
}

/// Opens a model in a GGUF file. `opts` may be NULL.
///
/// `io` if the file can't be read. `invalid_argument`, `dtype_mismatch` or `shape_mismatch` if it is malformed. `unsupported` for a model
/// of another kind. `invalid_argument` for a context length above the model's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_open(
    path: *const c_char,
    opts: *const adead_text_options,
    out: *mut *mut adead_text_generator,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (path, out) = unsafe { (text(path, "path")?, Out::new(out, "out")?) };
        // SAFETY: as above.
        let (options, map) = unsafe { open_options(opts) }?;
        let generator = match map {
            // SAFETY: the caller, who asked for it, vouches that the file does not change.
            true => unsafe { TextGenerator::map(path, &options) }?,
            false => TextGenerator::open_with(path, &options)?,
        };
        let device = c_text(&generator.context().device_info().id);
        out.give(adead_text_generator { generator, device });
        Ok(())
    })
}

/// Destroys a generator; NULL is allowed. Its streams and generations stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_destroy(generator: *mut adead_text_generator) {
    // SAFETY: `open` made it, and the caller gives it up.
    unsafe { guard_destroy(generator) }
}

/// Returns the most tokens of a sequence, prompt and answer together.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_context_length(
    generator: *const adead_text_generator,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, out) = unsafe { (reference(generator, "generator")?, Out::new(out, "out")?) };
        out.write(generator.generator.context_length());
        Ok(())
    })
}

/// Returns the number of tokens in the vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_vocabulary(
    generator: *const adead_text_generator,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, out) = unsafe { (reference(generator, "generator")?, Out::new(out, "out")?) };
        out.write(generator.generator.vocabulary());
        Ok(())
    })
}

/// Returns the number of values that `adead_text_embed` writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_width(
    generator: *const adead_text_generator,
    out: *mut usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, out) = unsafe { (reference(generator, "generator")?, Out::new(out, "out")?) };
        out.write(generator.generator.width());
        Ok(())
    })
}

/// Returns whether the model's file has a chat template, which `adead_text_chat` needs: 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_has_chat_template(
    generator: *const adead_text_generator,
    out: *mut i32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, out) = unsafe { (reference(generator, "generator")?, Out::new(out, "out")?) };
        out.write(generator.generator.has_chat_template().into());
        Ok(())
    })
}

/// Returns the generator's device: "cpu" or "cuda:0". The text lives as long as the generator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_text_generator_device(
    generator: *const adead_text_generator,
    out: *mut *const c_char,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (generator, out) = unsafe { (reference(generator, "generator")?, Out::new(out, "out")?) };
        out.write(generator.device.as_ptr());
        Ok(())
    })
}
