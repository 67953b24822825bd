//! What callers choose, and what they get.

use super::sampling::Sampling;
use adead::Context;
use std::path::PathBuf;
use std::sync::Arc;

/// Called with the number of a prompt's tokens that are computed, and of all of them.
pub type Progress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// How a model is opened. No choice changes a bit of a result but `adapters`, and `context_length` limits what can be computed.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// The context that computes, on one of its devices ([`Context::undivided`]). `None` opens `device`.
    pub context: Option<Context>,
    /// The device to open, by the names that [`Context::open`] takes. `None` is the CPU.
    pub device: Option<String>,
    /// Threads of the CPU. `None` is what the machine allows.
    pub threads: Option<usize>,
    /// Tokens of a sequence at most. `None` is what the model's file says, which is the largest number too.
    pub context_length: Option<usize>,
    /// Tokens that are computed at once at most. `None` is 512 on the CPU and 2,048 on a GPU. More are faster up to a point, and take more memory.
    pub chunk: Option<usize>,
    /// Called behind every chunk of a prompt.
    pub progress: Option<Progress>,
    /// A safetensors file of adapters, as `adead train` writes it. What they compute is added to the model's own products, so the
    /// model's weights stay in blocks.
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

/// How text is generated. [`Default`] takes the most likely tokens, 512 at most.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Tokens of an answer at most.
    pub max_tokens: usize,
    /// Texts that end an answer, wherever the borders of tokens are. They are no part of it.
    pub stop: Vec<String>,
    /// Whether tokens that end an answer are passed over, so that it goes on.
    pub ignore_end: bool,
    /// A JSON schema: the answer is JSON that it allows, and ends when the JSON is complete. `{}` allows any JSON. An answer that has
    /// `max_tokens` tokens before is cut off. `docs/text-generation.md` says what schemas may have.
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
    /// A stop string came.
    Stop,
    /// It has `max_tokens` tokens.
    MaxTokens,
    /// The sequence has as many tokens as the context length.
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
    /// Its tokens. If a token ended it, that one is the last. Tokens of a stop string are here, and not in the text.
    pub tokens: Vec<u32>,
    /// Why it ended.
    pub finish: Finish,
    /// The number of the prompt's tokens.
    pub prompt_tokens: usize,
}
