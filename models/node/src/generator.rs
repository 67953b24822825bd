//! The text generator.

use crate::encoder::floats;
use crate::stream::{GenerateOptions, Message, TextStream, ended, whole};
use adead::config::Config;
use adead::{Context, ContextOptions, Result};
use adead_models::TextGenerator;
use adead_models::text::OpenOptions;
use adead_node_support::args::{Flag, List, Size, Text, Word};
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ObjectFinalize, Unknown};
use napi_derive::napi;

/// A model on its device.
#[napi(custom_finalize)]
pub struct Generator {
    inner: TextGenerator,
    /// What V8 is told that it takes: the bytes of its file, so that the collector runs in time.
    bytes: i64,
}

impl Generator {
    fn new(env: Env, (inner, bytes): (TextGenerator, i64)) -> napi::Result<Generator> {
        env.adjust_external_memory(bytes)?;
        Ok(Generator { inner, bytes })
    }
}

impl ObjectFinalize for Generator {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.bytes).map(drop)
    }
}

/// How to open a model.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct GeneratorOptions {
    #[napi(ts_type = "string")]
    pub device: Option<Text>,
    #[napi(ts_type = "number")]
    pub threads: Option<Word>,
    #[napi(ts_type = "number")]
    pub context_length: Option<Size>,
    #[napi(ts_type = "number")]
    pub chunk: Option<Size>,
    #[napi(ts_type = "boolean")]
    pub map: Option<Flag>,
}

/// The generator and the bytes of its file.
fn open(path: &str, options: &GeneratorOptions) -> Result<(TextGenerator, i64)> {
    let config = Config::load()?;
    let device = options.device.as_deref().or(if config.device.is_none() { Some("cpu") } else { None });
    let threads = options.threads.map(|threads| threads.0 as usize);
    let wanted = ContextOptions { threads, ..ContextOptions::default() };
    let wanted = OpenOptions {
        context: Some(Context::configured(device, &wanted, &config)?),
        context_length: options.context_length.map(|length| length.0),
        chunk: options.chunk.map(|tokens| tokens.0),
        ..OpenOptions::default()
    };
    let generator = match &options.map {
        // SAFETY: the caller, who asked for it, vouches that the file does not change.
        Some(Flag(true)) => unsafe { TextGenerator::map(path, &wanted) }?,
        _ => TextGenerator::open_with(path, &wanted)?,
    };
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    Ok((generator, i64::try_from(bytes).unwrap_or(0)))
}

/// Tokens, which can go to another thread.
fn ids(tokens: List<Word>) -> Vec<u32> {
    tokens.0.into_iter().map(|token| token.0).collect()
}

#[napi]
impl Generator {
    #[napi(factory, ts_args_type = "path: string, options?: GeneratorOptions")]
    pub fn open(env: Env, path: Text, options: Option<GeneratorOptions>) -> napi::Result<Generator> {
        let opened = guard(env, || open(&path, &options.unwrap_or_default()))?;
        Generator::new(env, opened)
    }

    #[napi(ts_args_type = "path: string, options?: GeneratorOptions", ts_return_type = "Promise<Generator>")]
    pub fn open_async(path: Text, options: Option<GeneratorOptions>) -> AsyncTask<Job> {
        promise(Ok(move || open(&path, &options.unwrap_or_default())), Generator::new)
    }

    #[napi(getter)]
    pub fn context_length(&self) -> f64 {
        self.inner.context_length() as f64
    }

    #[napi(getter)]
    pub fn vocabulary(&self) -> f64 {
        self.inner.vocabulary() as f64
    }

    #[napi(getter)]
    pub fn width(&self) -> f64 {
        self.inner.width() as f64
    }

    #[napi(getter)]
    pub fn has_chat_template(&self) -> bool {
        self.inner.has_chat_template()
    }

    #[napi(getter)]
    pub fn device(&self) -> String {
        self.inner.context().device_info().id.clone()
    }

    #[napi(ts_args_type = "prompt: string, options?: GenerateOptions")]
    pub fn stream(&self, env: Env, prompt: Text, options: Option<GenerateOptions>) -> napi::Result<TextStream> {
        guard(env, || self.inner.stream(&prompt, &options.unwrap_or_default().into())).map(TextStream::new)
    }

    #[napi(ts_args_type = "messages: Message[], options?: GenerateOptions")]
    pub fn chat(
        &self,
        env: Env,
        messages: List<Message>,
        options: Option<GenerateOptions>,
    ) -> napi::Result<TextStream> {
        let messages: Vec<_> = messages.0.into_iter().map(Into::into).collect();
        guard(env, || self.inner.chat_stream(&messages, &options.unwrap_or_default().into())).map(TextStream::new)
    }

    #[napi(ts_args_type = "prompt: string, options?: GenerateOptions", ts_return_type = "unknown")]
    pub fn generate(&self, env: Env, prompt: Text, options: Option<GenerateOptions>) -> napi::Result<Unknown<'static>> {
        let found = guard(env, || whole(self.inner.stream(&prompt, &options.unwrap_or_default().into())?))?;
        ended(env, found)
    }

    #[napi(ts_args_type = "prompt: string, options?: GenerateOptions", ts_return_type = "Promise<unknown>")]
    pub fn generate_async(&self, prompt: Text, options: Option<GenerateOptions>) -> AsyncTask<Job> {
        let (generator, options) = (self.inner.clone(), options.unwrap_or_default().into());
        promise(Ok(move || whole(generator.stream(&prompt, &options)?)), ended)
    }

    #[napi(ts_args_type = "messages: Message[], options?: GenerateOptions", ts_return_type = "unknown")]
    pub fn answer(
        &self,
        env: Env,
        messages: List<Message>,
        options: Option<GenerateOptions>,
    ) -> napi::Result<Unknown<'static>> {
        let messages: Vec<_> = messages.0.into_iter().map(Into::into).collect();
        let found = guard(env, || whole(self.inner.chat_stream(&messages, &options.unwrap_or_default().into())?))?;
        ended(env, found)
    }

    #[napi(ts_args_type = "messages: Message[], options?: GenerateOptions", ts_return_type = "Promise<unknown>")]
    pub fn answer_async(&self, messages: List<Message>, options: Option<GenerateOptions>) -> AsyncTask<Job> {
        let messages: Vec<_> = messages.0.into_iter().map(Into::into).collect();
        let (generator, options) = (self.inner.clone(), options.unwrap_or_default().into());
        promise(Ok(move || whole(generator.chat_stream(&messages, &options)?)), ended)
    }

    #[napi(ts_args_type = "text: string")]
    pub fn tokenize(&self, env: Env, text: Text) -> napi::Result<Vec<u32>> {
        guard(env, || self.inner.tokenize(&text))
    }

    #[napi(ts_args_type = "tokens: number[]")]
    pub fn detokenize(&self, env: Env, tokens: List<Word>) -> napi::Result<String> {
        guard(env, || Ok(self.inner.detokenize(&ids(tokens))))
    }

    #[napi(ts_args_type = "text: string")]
    pub fn perplexity(&self, env: Env, text: Text) -> napi::Result<f64> {
        guard(env, || self.inner.perplexity(&text))
    }

    #[napi(ts_args_type = "text: string", ts_return_type = "Promise<number>")]
    pub fn perplexity_async(&self, text: Text) -> AsyncTask<Job> {
        let generator = self.inner.clone();
        promise(Ok(move || generator.perplexity(&text)), |_, value| Ok(value))
    }

    #[napi(ts_args_type = "tokens: number[]", ts_return_type = "Float32Array")]
    pub fn logprobs(&self, env: Env, tokens: List<Word>) -> napi::Result<Unknown<'static>> {
        let found = guard(env, || self.inner.logprobs(&ids(tokens)))?;
        floats(env, &found)
    }

    #[napi(ts_args_type = "tokens: number[]", ts_return_type = "Promise<Float32Array>")]
    pub fn logprobs_async(&self, tokens: List<Word>) -> AsyncTask<Job> {
        let generator = self.inner.clone();
        promise(Ok(move || generator.logprobs(&ids(tokens))), |env, found| floats(env, &found))
    }

    #[napi(ts_args_type = "text: string", ts_return_type = "Float32Array")]
    pub fn embed(&self, env: Env, text: Text) -> napi::Result<Unknown<'static>> {
        let found = guard(env, || self.inner.embed(&text))?;
        floats(env, &found)
    }

    #[napi(ts_args_type = "text: string", ts_return_type = "Promise<Float32Array>")]
    pub fn embed_async(&self, text: Text) -> AsyncTask<Job> {
        let generator = self.inner.clone();
        promise(Ok(move || generator.embed(&text)), |env, found| floats(env, &found))
    }
}
