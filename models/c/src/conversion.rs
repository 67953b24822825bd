//! Models as GGUF files.

use adead_c_support::pointers::{growing, optional_text, options, text};
use adead_c_support::{c_text, fail, guard};
use adead_models::convert::Conversion;
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

/// What a call returns, as in adead.h.
type adead_status = i32;

/// Sets how a model is converted. Start from `ADEAD_CONVERT_OPTIONS_INIT`. The functions must return: no longjmp and no C++ exception
/// may leave them. Each gets `user`. The thread that calls the library calls them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_convert_options {
    /// `sizeof(adead_convert_options)`.
    pub struct_size: usize,
    /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or llama.cpp's
    /// mixtures "q4_k_m" and "q5_k_m". NULL stores them as a folder has them; a GGUF file needs a name.
    pub kind: *const c_char,
    /// Gets the number of values written so far, and of all of them. May be NULL. Returns 0 to go on; another number ends the
    /// conversion.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, written: u64, all: u64) -> i32>,
    /// Gets what the user should know, before the first value is written: tensors that are stored in another way, what a GGUF file
    /// can't say. May be NULL. `text` is valid during the call.
    pub note: Option<unsafe extern "C" fn(user: *mut c_void, text: *const c_char)>,
    /// Passed to the functions.
    pub user: *mut c_void,
}

// SAFETY: as asked; a pointer may have any bits, because it is checked when it is used, and the functions are the caller's word.
growing!(unsafe adead_convert_options, 40);

/// Writes a model as the GGUF file `file`. `model` is a folder of Hugging Face, such as SmolLM2-135M-Instruct, or a GGUF file, which is
/// read into memory. `opts` may be NULL. The file appears when it is complete, and then replaces a file of that name. The same model
/// gives the same bytes everywhere.
///
/// `io` if a file is missing, can't be read or can't be written; `invalid_argument` and `shape_mismatch` for a malformed one;
/// `unsupported` for a model of another kind; `invalid_argument` for an unknown kind of values, a GGUF file without a kind, and with
/// the tensor for values that the kind can't hold; `not_ready` if `progress` ended it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_convert(
    model: *const c_char,
    file: *const c_char,
    opts: *const adead_convert_options,
) -> adead_status {
    guard(|| {
        let defaults =
            adead_convert_options { struct_size: 0, kind: null(), progress: None, note: None, user: null_mut() };
        // SAFETY: the caller vouches for the pointers.
        let (model, file, opts) = unsafe { (text(model, "model")?, text(file, "file")?, options(opts, defaults)?) };
        // SAFETY: as above.
        let kind = unsafe { optional_text(opts.kind, "kind") }?.map(str::parse).transpose()?;
        let conversion = Conversion::from_path(model, kind)?;
        if let Some(told) = opts.note {
            for note in conversion.notes() {
                // SAFETY: the caller's function, called as it is described.
                unsafe { told(opts.user, c_text(note).as_ptr()) };
            }
        }
        conversion.write_file(file, |written, all| {
            // SAFETY: as above.
            if opts.progress.is_some_and(|told| unsafe { told(opts.user, written, all) } != 0) {
                fail!(NotReady, "progress ended the conversion after {written} of {all} values");
            }
            Ok(())
        })
    })
}
