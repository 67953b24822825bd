//! Opens contexts with options.

use crate::fail;
use crate::pointers::{growing, optional_text, options};
use adead_core::config::Config;
use adead_core::contract::Precision;
use adead_core::{Context, ContextOptions, Result};
use std::ffi::c_char;
use std::ptr::null;

/// The precision of a matrix product, one of `ADEAD_PRECISION_…`.
pub type adead_precision = i32;

/// Returns the precision of a number.
pub fn precision(code: adead_precision) -> Result<Precision> {
    match Precision::ALL.into_iter().find(|&known| known as adead_precision == code) {
        Some(precision) => Ok(precision),
        None => fail!(InvalidArgument, "precision is {code}; it must be one of ADEAD_PRECISION_…"),
    }
}

/// Options for opening a context. Start from `ADEAD_CONTEXT_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_context_options {
    /// `sizeof(adead_context_options)`.
    pub struct_size: usize,
    /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon" or "portable". NULL takes the one in `ADEAD_ISA`, or else in
    /// adead.toml, or else the best.
    pub isa: *const c_char,
    /// The number of CPU threads. 0 takes the number in `ADEAD_NUM_THREADS`, or else in adead.toml, or else as many as the
    /// process may use.
    pub threads: usize,
    /// The precision of products that specify none, one of `ADEAD_PRECISION_…`.
    pub precision: adead_precision,
}

// SAFETY: as `Growing` requires; a pointer may have any bits, because it is checked when it is used.
growing!(unsafe adead_context_options, 32);

/// Opens a device by name, with options, as `adead_context_open` does. Both arguments may be NULL.
///
/// # Safety
/// `device` is NULL or a text that ends with NUL; `opts` is NULL or points to as many bytes as its first field says, and its
/// texts end with NUL.
pub unsafe fn open(device: *const c_char, opts: *const adead_context_options) -> Result<Context> {
    let defaults = adead_context_options { struct_size: 0, isa: null(), threads: 0, precision: Precision::F32 as i32 };
    // SAFETY: passed on.
    let (device, opts) = unsafe { (optional_text(device, "device")?, options(opts, defaults)?) };
    // SAFETY: passed on.
    let isa = unsafe { optional_text(opts.isa, "isa") }?.map(str::parse).transpose()?;
    let threads = Some(opts.threads).filter(|&threads| threads > 0);
    let options = ContextOptions { isa, threads, precision: Some(precision(opts.precision)?) };
    Context::configured(device, &options, &Config::load()?)
}
