//! Models as GGUF files.

use adead_c_support::pointers::{growing, optional_text, options, text};
use adead_c_support::{c_text, fail, guard};
use adead_models::convert::Conversion;
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

/// The result of a call; see adead.h.
type adead_status = i32;

/// Options of a conversion. Start from `ADEAD_CONVERT_OPTIONS_INIT`. The callbacks receive `user` and run in the calling thread. They must
/// return: no longjmp and no C++ exception may leave them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_convert_options {
    /// `sizeof(adead_convert_options)`.
    pub struct_size: usize,
    /// How matrices are stored: "f32", "f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", or llama.cpp's
    /// mixtures "q4_k_m" and "q5_k_m". NULL keeps the types of a folder's tensors; for a GGUF file a name is required.
    pub kind: *const c_char,
    /// Receives the number of values written so far, and the total. May be NULL. Returns 0 to continue; any other number ends the
    /// conversion.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, written: u64, all: u64) -> i32>,
    /// Receives notes for the user before the first value is written: which tensors are stored in another type, and what a GGUF file can't
    /// express. May be NULL. `text` is valid only during the call.
    pub note: Option<unsafe extern "C" fn(user: *mut c_void, text: *const c_char)>,
    /// Passed to the callbacks.
    pub user: *mut c_void,
}

// SAFETY: as `Growing` requires; a pointer may have any bits, because it is checked before use, and the caller vouches for the callbacks.
growing!(unsafe adead_convert_options, 40);

/// Writes a model as the GGUF file `file`. `model` is a folder in Hugging Face's layout, such as SmolLM2-135M-Instruct, or a GGUF file,
/// which is read into memory. `opts` may be NULL. The file appears only when it is complete, and replaces a file of that name. The same
/// model gives the same bytes on every machine.
///
/// `io` if a file is missing, can't be read or can't be written. `invalid_argument` or `shape_mismatch` for a malformed file. `unsupported`
/// for a model of another kind. `invalid_argument` for an unknown `kind`, for a GGUF file without a `kind`, and, with the tensor's name,
/// for values that the kind can't represent. `not_ready` if `progress` ended the conversion.
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
                // SAFETY: the caller's callback, called as documented.
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
