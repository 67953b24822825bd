//! How sentences are batched.

use adead_c_support::fail;
use adead_c_support::pointers::{growing, options};
use adead_core::Result;
use adead_models::EncodeOptions;

/// Sets how sentences are batched. No choice changes a bit of a result. Start from `ADEAD_ENCODE_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_encode_options {
    /// `sizeof(adead_encode_options)`.
    pub struct_size: usize,
    /// The maximum number of sentences in a batch. With `ADEAD_BATCH_AUTO` the device decides.
    pub batch: usize,
    /// Whether sentences of a batch are padded to the longest one: 0 or 1. With -1 the device decides.
    pub padded: i32,
}

// SAFETY: as asked.
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
        other => fail!(InvalidArgument, "padded is {other}; it is 0, 1, or -1 for what suits the device"),
    };
    Ok(EncodeOptions { batch: Some(opts.batch).filter(|&batch| batch != AUTO), padded })
}
