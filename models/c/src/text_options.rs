//! Options for opening text generators and for generating text.

use adead_c_support::fail;
use adead_c_support::pointers::{array, growing, optional_text, options, text};
use adead_core::config::Config;
use adead_core::{Context, ContextOptions, Result};
use adead_models::text::{GenerateOptions, OpenOptions, Sampling};
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Options for opening a text generator. They don't change any bit of a result. Start from `ADEAD_TEXT_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_text_options {
    /// `sizeof(adead_text_options)`.
    pub struct_size: usize,
    /// The device, named as for `adead_context_open`. NULL takes the name in `ADEAD_DEVICE`, or else in adead.toml, or else the CPU.
    pub device: *const c_char,
    /// The number of CPU threads. 0 takes the number in `ADEAD_NUM_THREADS`, or else in adead.toml, or else as many as the
    /// process may use.
    pub threads: usize,
    /// The most tokens of a sequence, prompt and answer together. 0 takes the context length in the model's file, which is also the largest
    /// allowed value.
    pub context_length: usize,
    /// The most tokens that are computed at once. 0 selects 512 on the CPU and 2,048 on a GPU.
    pub chunk: usize,
    /// Whether the file is mapped into memory: 0 or 1. If 1, weights are read when they are first used, and the file must not change until
    /// the generator is destroyed. If the file is truncated, the process ends.
    pub map: i32,
    /// Receives the number of the prompt's tokens computed so far, and the total, after each chunk. May be NULL. It runs in the thread
    /// whose call computes. It must return: no longjmp and no C++ exception may leave it.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, computed: usize, all: usize)>,
    /// Passed to `progress`.
    pub user: *mut c_void,
}

// SAFETY: as `Growing` requires; the caller vouches for the callback.
growing!(unsafe adead_text_options, 64);

/// The caller's pointer, which is passed to the caller's callback.
struct User(*mut c_void);

// SAFETY: the documentation says that `progress` runs in the threads that use the generator.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    /// A method, so that a closure captures the struct and not its field.
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Returns the options for opening a model, with the device opened, and whether the file is mapped.
///
/// # Safety
/// `opts` is NULL or points to as many bytes as its first field says, and its texts end with NUL.
pub(crate) unsafe fn open_options(opts: *const adead_text_options) -> Result<(OpenOptions, bool)> {
    let defaults = adead_text_options {
        struct_size: 0,
        device: null(),
        threads: 0,
        context_length: 0,
        chunk: 0,
        map: 0,
        progress: None,
        user: null_mut(),
    };
    // SAFETY: passed on.
    let opts = unsafe { options(opts, defaults) }?;
    // SAFETY: passed on.
    let device = unsafe { optional_text(opts.device, "device") }?;
    let given = |number: usize| Some(number).filter(|&number| number > 0);
    let map = match opts.map {
        0 => false,
        1 => true,
        other => fail!(InvalidArgument, "map is {other}; it must be 0 or 1"),
    };
    let config = Config::load()?;
    let device = device.or(if config.device.is_none() { Some("cpu") } else { None });
    let threads = ContextOptions { threads: given(opts.threads), ..ContextOptions::default() };
    let user = User(opts.user);
    let progress = opts.progress.map(|told| -> adead_models::text::Progress {
        // SAFETY: the caller's callback, called as documented.
        Arc::new(move |computed, all| unsafe { told(user.get(), computed, all) })
    });
    let options = OpenOptions {
        context: Some(Context::configured(device, &threads, &config)?),
        context_length: given(opts.context_length),
        chunk: given(opts.chunk),
        progress,
        ..OpenOptions::default()
    };
    Ok((options, map))
}

/// Options of generation. Start from `ADEAD_GENERATE_OPTIONS_INIT`, which always takes the most likely token, for at most 512 tokens.
/// docs/text-generation.md describes the steps of sampling.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_generate_options {
    /// `sizeof(adead_generate_options)`.
    pub struct_size: usize,
    /// The most tokens of an answer.
    pub max_tokens: usize,
    /// Texts that end an answer, even if they begin or end within a token. The answer does not contain them. NULL if `stop_count` is 0.
    pub stop: *const *const c_char,
    /// The number of stop texts.
    pub stop_count: usize,
    /// Whether an answer continues after a token that would end it: 0 or 1.
    pub ignore_end: i32,
    /// The temperature, which flattens the distribution. 0 takes the most likely token; 1 draws with the model's own probabilities.
    pub temperature: f32,
    /// The most tokens to draw from; 0 means all (top-k).
    pub top_k: usize,
    /// The sum of probabilities that the tokens to draw from reach together, 0 to 1; 1 means all tokens (top-p).
    pub top_p: f32,
    /// The least probability of a token to draw from, as a fraction of the most likely token's, 0 to 1; 0 means all tokens (min-p).
    pub min_p: f32,
    /// The penalty of recent tokens; 1 means none.
    pub repeat_penalty: f32,
    /// How many of the last tokens are recent, including the prompt's.
    pub repeat_last: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The sequence's number. Sequences with the same seed and different numbers draw different random numbers.
    pub sequence: u64,
    /// A JSON schema. The answer is JSON that the schema allows, and ends when the JSON is complete. `{}` allows any JSON; NULL allows any
    /// text.
    pub json_schema: *const c_char,
}

// SAFETY: as `Growing` requires; a pointer may have any bits, because it is checked when it is used.
growing!(unsafe adead_generate_options, 88);

/// # Safety
/// `opts` is NULL or points to as many bytes as its first field says. `stop` points to `stop_count` texts that end with NUL. `json_schema`
/// is NULL or ends with NUL.
pub(crate) unsafe fn generate_options(opts: *const adead_generate_options) -> Result<GenerateOptions> {
    let (usual, sampling) = (GenerateOptions::default(), Sampling::default());
    let defaults = adead_generate_options {
        struct_size: 0,
        max_tokens: usual.max_tokens,
        stop: null(),
        stop_count: 0,
        ignore_end: 0,
        temperature: sampling.temperature,
        top_k: sampling.top_k,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repeat_penalty: sampling.repeat_penalty,
        repeat_last: sampling.repeat_last,
        seed: sampling.seed,
        sequence: sampling.sequence,
        json_schema: null(),
    };
    // SAFETY: passed on.
    let opts = unsafe { options(opts, defaults) }?;
    let ignore_end = match opts.ignore_end {
        0 => false,
        1 => true,
        other => fail!(InvalidArgument, "ignore_end is {other}; it must be 0 or 1"),
    };
    // SAFETY: passed on.
    let stops = unsafe { array(opts.stop, opts.stop_count, "stop") }?;
    let each = |(number, &stop): (usize, &*const c_char)| {
        // SAFETY: passed on.
        unsafe { text(stop, &format!("stop text {number}")) }.map(String::from)
    };
    Ok(GenerateOptions {
        max_tokens: opts.max_tokens,
        stop: stops.iter().enumerate().map(each).collect::<Result<_>>()?,
        ignore_end,
        // SAFETY: passed on.
        json_schema: unsafe { optional_text(opts.json_schema, "json_schema") }?.map(String::from),
        sampling: Sampling {
            temperature: opts.temperature,
            top_k: opts.top_k,
            top_p: opts.top_p,
            min_p: opts.min_p,
            repeat_penalty: opts.repeat_penalty,
            repeat_last: opts.repeat_last,
            seed: opts.seed,
            sequence: opts.sequence,
        },
    })
}
