//! Options of generators, and their results.

use super::sampling::Sampling;
use adead::Context;
use std::path::PathBuf;
use std::sync::Arc;

/// Called with the number of a prompt's tokens computed so far, and the total.
pub type Progress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// Options for opening a model. Only `adapters` changes results; `context_length` limits the length of a sequence.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// The context that computes, on one of its devices ([`Context::undivided`]). `None` opens `device`.
    pub context: Option<Context>,
    /// The device to open, named as for [`Context::open`]. `None` is the CPU.
    pub device: Option<String>,
    /// The number of CPU threads. `None` is as many as the machine allows.
    pub threads: Option<usize>,
    /// The most tokens of a sequence, prompt and answer together. The file's context length is the default and the maximum.
    pub context_length: Option<usize>,
    /// The most tokens that are computed at once. `None` is 512 on the CPU and 2,048 on a GPU. A greater number is faster up to a
    /// point, and takes more memory.
    pub chunk: Option<usize>,
    /// Called after each chunk of a prompt.
    pub progress: Option<Progress>,
    /// A safetensors file of adapters, as `adead train` writes it. Their products are added to those of the model, so the model's
    /// weights stay in blocks.
    pub adapters: Option<PathBuf>,
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("context", &self.context)
            .field("device", &self.device)
            .field("threads", &self.threads)
            .field("context_length", &self.context_length)
            .field("chunk", &self.chunk)
            .field("progress", &self.progress.is_some())
            .field("adapters", &self.adapters)
            .finish()
    }
}

/// Options for generating text. [`Default`] takes the most likely token each time, for at most 512 tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// The most tokens of an answer.
    pub max_tokens: usize,
    /// Stop strings: one that appears ends the answer, even across tokens, and is not part of it.
    pub stop: Vec<String>,
    /// Whether an answer continues after tokens that would end it.
    pub ignore_end: bool,
    /// A JSON schema: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any JSON. An answer that
    /// reaches `max_tokens` first is cut off. `docs/text-generation.md` lists what schemas may contain.
    pub json_schema: Option<String>,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

impl Default for GenerateOptions {
    fn default() -> GenerateOptions {
        GenerateOptions {
            max_tokens: 512,
            stop: Vec::new(),
            ignore_end: false,
            json_schema: None,
            sampling: Sampling::default(),
        }
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended it.
    End,
    /// A stop string appeared.
    Stop,
    /// It reached `max_tokens` tokens.
    MaxTokens,
    /// The sequence reached the context length.
    ContextFull,
}

impl Finish {
    /// Returns the reason as a word: `end`, `stop`, `max_tokens`, `context_full`.
    pub fn name(self) -> &'static str {
        match self {
            Finish::End => "end",
            Finish::Stop => "stop",
            Finish::MaxTokens => "max_tokens",
            Finish::ContextFull => "context_full",
        }
    }
}

/// A generated text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// The text, without the prompt.
    pub text: String,
    /// Its tokens, including the token that ended it, if one did. Tokens of a stop string are included here, but not in the text.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: Finish,
    /// The number of the prompt's tokens.
    pub prompt_tokens: usize,
}
