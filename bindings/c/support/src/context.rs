//! Opening of contexts with options.

use crate::pointers::{growing, optional_text, options};
use adead_core::config::Config;
use adead_core::{Context, ContextOptions, Result};
use std::ffi::c_char;
use std::ptr::null;

/// Options for opening a context. Start from `ADEAD_CONTEXT_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_context_options {
    /// `sizeof(adead_context_options)`.
    pub struct_size: usize,
    /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon" or "portable". NULL takes the one in `ADEAD_ISA`, or
    /// else the best.
    pub isa: *const c_char,
    /// The number of CPU threads. 0 takes `ADEAD_NUM_THREADS`, or else as many as the process may use.
    pub threads: usize,
}

// SAFETY: as asked; a pointer may have any bits, because it is checked when it is used.
growing!(unsafe adead_context_options, 24);

/// Opens the context of a device's name, with options, as `adead_context_open` does. Both may be NULL.
///
/// # Safety
/// `device` is NULL or a text that ends with NUL; `opts` is NULL or points to as many bytes as its first field says, and its
/// texts end with NUL.
pub unsafe fn open(device: *const c_char, opts: *const adead_context_options) -> Result<Context> {
    let defaults = adead_context_options { struct_size: 0, isa: null(), threads: 0 };
    // SAFETY: passed on.
    let (device, opts) = unsafe { (optional_text(device, "device")?, options(opts, defaults)?) };
    // SAFETY: passed on.
    let isa = unsafe { optional_text(opts.isa, "isa") }?.map(str::parse).transpose()?;
    let options = ContextOptions { isa, threads: Some(opts.threads).filter(|&threads| threads > 0) };
    Context::configured(device, &options, &Config::load()?)
}
