//! How sentences are batched.

use adead_c_support::fail;
use adead_c_support::pointers::{growing, options};
use adead_core::Result;
use adead_models::EncodeOptions;

/// Options of batches of sentences. They don't change any bit of a result. Start from `ADEAD_ENCODE_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_encode_options {
    /// `sizeof(adead_encode_options)`.
    pub struct_size: usize,
    /// The most sentences in a batch. `ADEAD_BATCH_AUTO` chooses what suits the device.
    pub batch: usize,
    /// Whether a batch's sentences are padded to the longest one: 0 or 1. -1 chooses what suits the device.
    pub padded: i32,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_encode_options, 24);

/// `ADEAD_BATCH_AUTO` of the header.
const AUTO: usize = usize::MAX;

/// # Safety
/// `opts` is NULL or points to as many bytes as its first field says.
pub(crate) unsafe fn encode_options(opts: *const adead_encode_options) -> Result<EncodeOptions> {
    // SAFETY: passed on.
    let opts = unsafe { options(opts, adead_encode_options { struct_size: 0, batch: AUTO, padded: -1 }) }?;
    let padded = match opts.padded {
        -1 => None,
        0 => Some(false),
        1 => Some(true),
        other => fail!(InvalidArgument, "padded is {other}; it must be 0, 1, or -1 for what suits the device"),
    };
    Ok(EncodeOptions { batch: Some(opts.batch).filter(|&batch| batch != AUTO), padded })
}
