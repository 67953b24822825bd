//! `libadead_models.so`: models for C: sentence encoders, text generators and training. `include/adead/models.h` is generated from the
//! comments and signatures here by `tests/header.rs`. docs/sentences.md and docs/text-generation.md are the guides.
//!
//! Like `adead-c`, this crate decides nothing: a function turns pointers into values, calls the crate `adead-models` inside `guard`, and
//! writes its outputs if the call succeeded.

#![allow(non_camel_case_types)]
// The top of include/adead.h states once what every function requires of its caller.
#![allow(clippy::missing_safety_doc)]

mod blocks;
mod conversion;
mod encoder;
mod generation;
mod generator;
mod job;
mod options;
mod scores;
mod sentences;
mod stream;
mod text_options;
mod text_stream;
mod trainer;
mod transport;
mod version;

// Nothing else happens when the library is loaded.
adead_c_support::runtime!(|| ());
