//! The code that `adead generate` and `adead chat` share: the model, how tokens are chosen, how text is written.

use crate::args::DeviceArgs;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use adead::Status;
use adead_models::TextGenerator;
use adead_models::text::{GenerateOptions, OpenOptions, Sampling};
use clap::{Args, ValueHint};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The model, and how it is opened.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// The model: a GGUF file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub model: PathBuf,
    /// Adapters of the model, as `adead train` writes them: a safetensors file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub adapters: Option<PathBuf>,
    /// The maximum number of tokens of the prompt and the answer [default: the model's limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// The maximum number of prompt tokens computed at once [default: 512 on the CPU, 2048 on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub chunk: Option<u32>,
}

/// How tokens are chosen.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// The maximum number of tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub max_tokens: u32,
    /// End the answer before this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// A JSON schema that the answer must match: a file, or the schema itself
    #[arg(long, value_name = "SCHEMA", value_hint = ValueHint::FilePath)]
    pub json_schema: Option<String>,
    /// How random the choice of tokens is: 0 takes the most likely token, 1 draws with the model's probabilities
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub temperature: f32,
    /// Draw from the K most likely tokens; 0 means all
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub top_k: u32,
    /// Draw from the most likely tokens whose probabilities add up to P
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub top_p: f32,
    /// Draw from tokens with at least P times the probability of the most likely token
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub min_p: f32,
    /// Make the last 64 tokens less likely; 1 changes nothing
    #[arg(long, value_name = "R", default_value_t = 1.0)]
    pub repeat_penalty: f32,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

impl ModelArgs {
    /// Opens the model. Without a device in the command line or the configuration, it is opened on the CPU.
    pub fn open(&self, device: &DeviceArgs) -> Result<TextGenerator> {
        let progress = Mutex::new(Progress::new());
        let show = move |done: usize, all: usize| {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.part(done, all, || format!("{done} of {all} tokens of the prompt"));
            if done == all {
                progress.clear();
            }
        };
        let options = OpenOptions {
            context: Some(device.open_or(Some("cpu"))?),
            context_length: self.context.map(|length| length as usize),
            chunk: self.chunk.map(|chunk| chunk as usize),
            progress: Some(Arc::new(show)),
            adapters: self.adapters.clone(),
            ..OpenOptions::default()
        };
        // SAFETY: the command writes to no file. If another program shortens this one meanwhile, the command ends.
        Ok(unsafe { TextGenerator::map(&self.model, &options) }?)
    }
}

impl SamplingArgs {
    pub fn options(&self) -> Result<GenerateOptions> {
        let json_schema = match &self.json_schema {
            Some(text) if text.trim_start().starts_with('{') => Some(text.clone()),
            Some(path) => {
                let fault = |error| Failure::new(Status::Io, format!("--json-schema {path}: {error}"));
                Some(fs::read_to_string(path).map_err(fault)?)
            }
            None => None,
        };
        Ok(GenerateOptions {
            json_schema,
            max_tokens: self.max_tokens as usize,
            stop: self.stop.clone(),
            sampling: Sampling {
                temperature: self.temperature,
                top_k: self.top_k as usize,
                top_p: self.top_p,
                min_p: self.min_p,
                repeat_penalty: self.repeat_penalty,
                seed: self.seed,
                ..Sampling::default()
            },
            ..GenerateOptions::default()
        })
    }
}

/// Returns the SHA-256 of tokens, 32 bits each, little endian.
pub fn hash(tokens: &[u32]) -> String {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the error of an answer's writer, if there is one, instead of the error that ended the answer.
pub fn written<T>(result: adead::Result<T>, failed: Option<Failure>) -> Result<T> {
    match failed {
        Some(failure) => Err(failure),
        None => Ok(result?),
    }
}
