//! The generator.

use super::adapters::Adapters;
use super::cache::Cache;
use super::config::{Config, vocabulary};
use super::conversation::Conversation;
use super::decoder::Decoder;
use super::fault;
use super::grammar::Grammars;
use super::options::{GenerateOptions, Generation, OpenOptions, Progress};
use super::run::Run;
use super::stream::TextStream;
use super::template::{Message, Template};
use super::tokenizer::Tokenizer;
use super::weights::Weights;
use crate::gguf::Gguf;
use adead::device::DeviceKind;
use adead::{Context, ContextOptions, Error, Result, Status};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A language model that generates text. Clones share the model. Threads may share a generator.
///
/// ```no_run
/// use adead_models::TextGenerator;
/// use adead_models::text::{GenerateOptions, Message};
///
/// let model = TextGenerator::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
/// let answer = model.chat(&[Message::user("Why is the sky blue?")], &GenerateOptions::default())?;
/// println!("{}", answer.text);
/// # Ok::<(), adead::Error>(())
/// ```
#[derive(Clone)]
pub struct TextGenerator(Arc<Inner>);

/// What clones share.
pub(crate) struct Inner {
    pub model: Decoder,
    pub tokenizer: Tokenizer,
    /// The source of the chat template, if the file has one.
    template: Option<String>,
    /// For what the CPU does: choices, sums.
    pub cpu: Context,
    pub context_length: usize,
    pub chunk: usize,
    progress: Option<Progress>,
    grammars: OnceLock<Result<Grammars>>,
}

/// Tokens that are computed at once, if the caller doesn't say it: on the CPU and on a GPU, which needs more of them to be busy.
const CHUNKS: [usize; 2] = [512, 2048];

impl Inner {
    /// Makes the cache of a sequence.
    pub fn cache(&self) -> Cache {
        self.model.cache(self.context_length)
    }

    /// Tells the caller how much of a prompt is computed.
    pub fn tell(&self, done: usize, all: usize) {
        if let Some(progress) = &self.progress {
            progress(done, all);
        }
    }

    /// Returns the vocabulary as grammars need it.
    pub fn grammars(&self) -> Result<&Grammars> {
        self.grammars.get_or_init(|| Grammars::new(&self.tokenizer)).as_ref().map_err(Clone::clone)
    }

    /// Returns messages as tokens, with the beginning of an answer.
    pub fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>> {
        let Some(template) = &self.template else {
            let text =
                "the model's file has no chat template (tokenizer.chat_template): pass a prompt instead of messages";
            return Err(Error::new(Status::Unsupported, text));
        };
        let vocabulary = self.tokenizer.vocabulary();
        let (bos, eos) = (vocabulary.text(vocabulary.bos), vocabulary.text(vocabulary.eos));
        self.tokenizer.encode(&Template::new(template)?.render(messages, bos, eos)?)
    }
}

impl TextGenerator {
    /// Opens a model in a GGUF file, for the CPU: [`open_with`](TextGenerator::open_with) with default options.
    ///
    /// # Errors
    /// Those of [`open_with`](TextGenerator::open_with).
    pub fn open(path: impl AsRef<Path>) -> Result<TextGenerator> {
        TextGenerator::open_with(path, &OpenOptions::default())
    }

    /// Opens a model in a GGUF file, which is read into memory.
    ///
    /// The architectures `llama`, `qwen2`, `qwen3` and `gemma3` are supported, with the tokenizers `gpt2` (gpt-2, llama-bpe, qwen2, smollm)
    /// and `llama`.
    ///
    /// # Errors `io` if the file can't be read; `invalid_argument`, `dtype_mismatch` or `shape_mismatch` if it is malformed, lacks
    /// a tensor or has one of a wrong shape; `unsupported` for another kind of model; and the errors of opening a device.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<TextGenerator> {
        TextGenerator::from_gguf(Gguf::open(path)?, options)
    }

    /// Opens a model as [`open_with`](TextGenerator::open_with) does, and maps the file: weights are read on use, and processes
    /// share their memory.
    ///
    /// # Errors
    /// Those of [`open_with`](TextGenerator::open_with).
    ///
    /// # Safety
    /// The file must not change while the model lives. If it gets shorter, reading it ends the process with SIGBUS.
    pub unsafe fn map(path: impl AsRef<Path>, options: &OpenOptions) -> Result<TextGenerator> {
        // SAFETY: passed on.
        TextGenerator::from_gguf(unsafe { Gguf::map(path) }?, options)
    }

    /// Opens a model in a GGUF file that was already read or mapped, for example by a [`Reading`](crate::gguf::Reading).
    ///
    /// # Errors
    /// Those of [`open_with`](TextGenerator::open_with).
    pub fn from_gguf(gguf: Gguf, options: &OpenOptions) -> Result<TextGenerator> {
        let gguf = Arc::new(gguf);
        let path = &gguf.path().to_owned();
        let config = Config::read(&gguf, path)?;
        let tokenizer =
            Tokenizer::new(vocabulary(&gguf, path)?).map_err(|error| fault(error.status(), path, error.message()))?;
        let refused = |text: String| Err(Error::new(Status::InvalidArgument, text));
        let context_length = match options.context_length {
            Some(length) if length == 0 || length > config.context_length => {
                return refused(format!(
                    "a context length of {length}; it must be from 1 to the model's {}",
                    config.context_length
                ));
            }
            length => length.unwrap_or(config.context_length),
        };
        if options.chunk == Some(0) {
            return refused("a chunk has at least 1 token, not 0".into());
        }
        let context = match &options.context {
            Some(context) => context.clone(),
            None => {
                let device = options.device.as_deref().unwrap_or(DeviceKind::Cpu.name());
                Context::with_options(device, &ContextOptions { threads: options.threads, ..Default::default() })?
            }
        };
        let context = context.undivided()?;
        let on_gpu = context.device_info().kind != DeviceKind::Cpu;
        let chunk = options.chunk.unwrap_or(CHUNKS[usize::from(on_gpu)]);
        let cpu = if context.is_host_only() { context.clone() } else { Context::open(DeviceKind::Cpu.name())? };
        let template = gguf.optional::<&str>("tokenizer.chat_template")?.map(str::to_owned);
        let adapters = options.adapters.as_deref().map(|file| Adapters::open(file, config.layers)).transpose()?;
        let model = Decoder::new(config, &Weights::new(gguf, path).with_adapters(adapters), &context)?;
        let (words, rows) = (tokenizer.vocabulary().tokens.len(), model.vocabulary());
        if words > rows {
            let text = format!("the tokenizer has {words} tokens and the table of their embeddings {rows} rows");
            return Err(fault(Status::ShapeMismatch, path, text));
        }
        model.prepare(context_length)?;
        let (progress, grammars) = (options.progress.clone(), OnceLock::new());
        Ok(TextGenerator(Arc::new(Inner {
            model,
            tokenizer,
            template,
            cpu,
            context_length,
            chunk,
            progress,
            grammars,
        })))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Returns the context that computes.
    pub fn context(&self) -> &Context {
        self.0.model.context()
    }

    /// Returns the most tokens of a sequence, prompt and answer together.
    pub fn context_length(&self) -> usize {
        self.0.context_length
    }

    /// Returns the number of tokens in the vocabulary: the length of a row of logits.
    pub fn vocabulary(&self) -> usize {
        self.0.model.vocabulary()
    }

    /// Returns the number of values in a hidden state.
    pub fn width(&self) -> usize {
        self.0.model.width()
    }

    /// Returns a text's tokens. The text of a special token, such as `<|im_start|>`, becomes that token. If the file says so, a
    /// first token (bos) is added, unless the text starts with it, and a last one (eos).
    ///
    /// # Errors
    /// `invalid_argument` if the tokenizer refuses the text.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>> {
        self.0.tokenizer.encode(text)
    }

    /// Returns the tokens that [`chat`](TextGenerator::chat) computes for messages: the text of the model's chat template, with the
    /// beginning of an answer.
    ///
    /// # Errors
    /// `unsupported` if the model's file has no chat template, `invalid_argument` if the template refuses the messages.
    pub fn tokenize_messages(&self, messages: &[Message]) -> Result<Vec<u32>> {
        self.0.prompt(messages)
    }

    /// Returns the text of tokens. Special tokens have no text. Bytes that are not UTF-8 become U+FFFD.
    pub fn detokenize(&self, tokens: &[u32]) -> String {
        self.0.tokenizer.decode(tokens)
    }

    /// Returns whether the model's file has a chat template.
    pub fn has_chat_template(&self) -> bool {
        self.0.template.is_some()
    }

    /// Generates the text that follows a prompt.
    ///
    /// # Errors `invalid_argument` if the prompt has no tokens or more than the context length, or an option is outside its range;
    /// the errors of the device.
    pub fn generate(&self, prompt: &str, options: &GenerateOptions) -> Result<Generation> {
        self.stream(prompt, options)?.collect_all()
    }

    /// Generates the text that follows a prompt, piece by piece. Work begins with the first piece.
    ///
    /// # Errors
    /// Those of [`generate`](TextGenerator::generate).
    pub fn stream(&self, prompt: &str, options: &GenerateOptions) -> Result<TextStream> {
        self.stream_tokens(self.tokenize(prompt)?, options)
    }

    /// Generates the text that follows these tokens, piece by piece.
    ///
    /// # Errors
    /// Those of [`generate`](TextGenerator::generate).
    pub fn stream_tokens(&self, prompt: Vec<u32>, options: &GenerateOptions) -> Result<TextStream> {
        Ok(self.stream_of(Run::new(&self.0, self.0.cache(), prompt, options)?))
    }

    /// Generates an answer to messages. The model's chat template makes the prompt.
    ///
    /// # Errors
    /// Those of [`generate`](TextGenerator::generate) and [`tokenize_messages`](TextGenerator::tokenize_messages).
    pub fn chat(&self, messages: &[Message], options: &GenerateOptions) -> Result<Generation> {
        self.chat_stream(messages, options)?.collect_all()
    }

    /// Generates an answer to messages, piece by piece.
    ///
    /// # Errors
    /// Those of [`chat`](TextGenerator::chat).
    pub fn chat_stream(&self, messages: &[Message], options: &GenerateOptions) -> Result<TextStream> {
        self.stream_tokens(self.tokenize_messages(messages)?, options)
    }

    /// Begins a conversation after the given messages, such as a system message. It keeps keys and values from one answer to the
    /// next.
    pub fn conversation(&self, messages: Vec<Message>) -> Conversation {
        Conversation::new(self.clone(), messages)
    }

    pub(crate) fn stream_of(&self, run: Run) -> TextStream {
        TextStream::new(self.clone(), run)
    }
}

impl std::fmt::Debug for TextGenerator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (vocabulary, length) = (self.vocabulary(), self.context_length());
        write!(f, "TextGenerator({vocabulary} tokens, context length {length}, {:?})", self.context())
    }
}
