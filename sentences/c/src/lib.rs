//! `libadead_sentences.so`: sentence encoders for C. `include/adead/sentences.h` is generated from the comments and signatures
//! here by `tests/header.rs`; docs/sentences.md is the guide.
//!
//! As in `adead-c` nothing is decided here: a function turns pointers into values, calls the crate `adead-sentences` inside
//! `guard` and writes its outputs when the call succeeded.

#![allow(non_camel_case_types)]
// What every function asks of its caller is said once, at the top of include/adead.h.
#![allow(clippy::missing_safety_doc)]

mod encoder;
mod options;
#[path = "../../../bindings/c/artifact/src/runtime.rs"]
mod runtime;
mod sentences;
mod stream;
mod version;

/// What else happens when the library is loaded: nothing.
fn at_load() {}
