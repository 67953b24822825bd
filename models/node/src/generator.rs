//! The text generator.

use crate::encoder::floats;
use crate::stream::{GenerateOptions, Message, TextStream, ended};
use adead::config::Config;
use adead::{Context, ContextOptions, Result};
use adead_models::TextGenerator;
use adead_models::gguf::Reading;
use adead_models::text::{self, OpenOptions};
use adead_node_support::args::{Flag, List, Size, Text, Word};
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ObjectFinalize, ToNapiValue, Unknown};
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

/// A model on its device.
#[napi(custom_finalize)]
pub struct Generator {
    /// `None` once it is closed. In a cell, because promises that are under way borrow the object.
    inner: RefCell<Option<TextGenerator>>,
    /// The bytes of its file, reported to V8 so that its garbage collector runs in time.
    bytes: Cell<i64>,
}

/// A generator and the bytes of its file.
type Opened = (TextGenerator, i64);

impl Generator {
    fn new(env: Env, (inner, bytes): Opened) -> napi::Result<Generator> {
        env.adjust_external_memory(bytes)?;
        Ok(Generator { inner: RefCell::new(Some(inner)), bytes: Cell::new(bytes) })
    }

    fn opened(&self) -> Result<TextGenerator> {
        match &*self.inner.borrow() {
            Some(generator) => Ok(generator.clone()),
            None => fail!(InvalidArgument, "the generator is closed"),
        }
    }

    /// Does work on this thread.
    fn now<T>(&self, env: Env, work: impl FnOnce(&TextGenerator) -> Result<T>) -> napi::Result<T> {
        guard(env, || work(&self.opened()?))
    }

    /// Does work on another thread.
    fn later<T: Send + 'static, V: ToNapiValue>(
        &self,
        work: impl FnOnce(&TextGenerator) -> Result<T> + Send + 'static,
        finish: impl FnOnce(Env, T) -> napi::Result<V> + Send + 'static,
    ) -> AsyncTask<Job> {
        promise(self.opened().map(|generator| move || work(&generator)), finish)
    }
}

impl ObjectFinalize for Generator {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.bytes.get()).map(drop)
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

impl GeneratorOptions {
    fn wanted(&self) -> Result<OpenOptions> {
        let config = Config::load()?;
        let device = self.device.as_deref().or(if config.device.is_none() { Some("cpu") } else { None });
        let threads = self.threads.map(|threads| threads.0 as usize);
        let wanted = ContextOptions { threads, ..ContextOptions::default() };
        Ok(OpenOptions {
            context: Some(Context::configured(device, &wanted, &config)?),
            context_length: self.context_length.map(|length| length.0),
            chunk: self.chunk.map(|tokens| tokens.0),
            ..OpenOptions::default()
        })
    }
}

fn open(path: &str, options: &GeneratorOptions) -> Result<Opened> {
    let wanted = options.wanted()?;
    let generator = match &options.map {
        // SAFETY: the caller, who asked for it, vouches that the file does not change.
        Some(Flag(true)) => unsafe { TextGenerator::map(path, &wanted) }?,
        _ => TextGenerator::open_with(path, &wanted)?,
    };
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    Ok((generator, i64::try_from(bytes).unwrap_or(0)))
}

/// A file that is read part by part, for callers that show progress. `None` once a generator was made from it.
#[napi]
pub struct Loading(Arc<Mutex<(Option<Reading>, u64)>>);

impl Loading {
    /// Makes a closure that works on it on any thread.
    fn work<T, W>(&self, work: W) -> impl FnOnce() -> Result<T> + use<T, W>
    where
        W: FnOnce(&mut Option<Reading>, &mut u64) -> Result<T>,
    {
        let state = self.0.clone();
        move || {
            let (reading, bytes) = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
            work(reading, bytes)
        }
    }
}

/// Reads the next part. Returns the bytes read so far and the total.
fn read(reading: &mut Option<Reading>, bytes: &mut u64) -> Result<Option<Vec<f64>>> {
    let Some((read, all)) = reading.as_mut().map(Reading::step).transpose()?.flatten() else { return Ok(None) };
    *bytes = read;
    Ok(Some(vec![read as f64, all as f64]))
}

/// Makes the generator from the file that was read.
fn loaded(reading: &mut Option<Reading>, bytes: u64, options: &GeneratorOptions) -> Result<Opened> {
    let Some(reading) = reading.take() else { fail!(InvalidArgument, "a generator was already made from the file") };
    let generator = TextGenerator::from_gguf(reading.finish()?, &options.wanted()?)?;
    Ok((generator, i64::try_from(bytes).unwrap_or(0)))
}

#[napi]
impl Loading {
    #[napi(factory, ts_args_type = "path: string")]
    pub fn begin(env: Env, path: Text) -> napi::Result<Loading> {
        guard(env, || Ok(Loading(Arc::new(Mutex::new((Some(Reading::begin(&*path)?), 0))))))
    }

    #[napi]
    pub fn step(&self, env: Env) -> napi::Result<Option<Vec<f64>>> {
        guard(env, self.work(read))
    }

    #[napi(ts_return_type = "Promise<number[] | null>")]
    pub fn step_async(&self) -> AsyncTask<Job> {
        promise(Ok(self.work(read)), |_, told| Ok(told))
    }

    #[napi(ts_args_type = "options?: GeneratorOptions")]
    pub fn finish(&self, env: Env, options: Option<GeneratorOptions>) -> napi::Result<Generator> {
        let options = options.unwrap_or_default();
        let opened = guard(env, self.work(|reading, bytes| loaded(reading, *bytes, &options)))?;
        Generator::new(env, opened)
    }

    #[napi(ts_args_type = "options?: GeneratorOptions", ts_return_type = "Promise<Generator>")]
    pub fn finish_async(&self, options: Option<GeneratorOptions>) -> AsyncTask<Job> {
        let options = options.unwrap_or_default();
        promise(Ok(self.work(move |reading, bytes| loaded(reading, *bytes, &options))), Generator::new)
    }
}

/// Texts, which can go to another thread.
fn texts(prompts: List<Text>) -> Vec<String> {
    prompts.0.into_iter().map(String::from).collect()
}

fn written(messages: List<Message>) -> Vec<text::Message> {
    messages.0.into_iter().map(Into::into).collect()
}

/// Whole texts as objects.
fn all(env: Env, found: Vec<text::Generation>) -> napi::Result<Vec<Unknown<'static>>> {
    found.into_iter().map(|one| ended(env, one)).collect()
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

    /// Frees the model after running calls have ended.
    #[napi]
    pub fn close(&self, env: Env) -> napi::Result<()> {
        self.inner.replace(None);
        env.adjust_external_memory(-self.bytes.take()).map(drop)
    }

    #[napi(getter)]
    pub fn context_length(&self, env: Env) -> napi::Result<f64> {
        self.now(env, |generator| Ok(generator.context_length() as f64))
    }

    #[napi(getter)]
    pub fn vocabulary(&self, env: Env) -> napi::Result<f64> {
        self.now(env, |generator| Ok(generator.vocabulary() as f64))
    }

    #[napi(getter)]
    pub fn width(&self, env: Env) -> napi::Result<f64> {
        self.now(env, |generator| Ok(generator.width() as f64))
    }

    #[napi(getter)]
    pub fn has_chat_template(&self, env: Env) -> napi::Result<bool> {
        self.now(env, |generator| Ok(generator.has_chat_template()))
    }

    #[napi(getter)]
    pub fn device(&self, env: Env) -> napi::Result<String> {
        self.now(env, |generator| Ok(generator.context().device_info().id.clone()))
    }

    #[napi(ts_args_type = "prompt: string, options?: GenerateOptions")]
    pub fn stream(&self, env: Env, prompt: Text, options: Option<GenerateOptions>) -> napi::Result<TextStream> {
        let options = options.unwrap_or_default().into();
        self.now(env, |generator| generator.stream(&prompt, &options).map(TextStream::new))
    }

    #[napi(ts_args_type = "prompt: string, options?: GenerateOptions", ts_return_type = "Promise<TextStream>")]
    pub fn stream_async(&self, prompt: Text, options: Option<GenerateOptions>) -> AsyncTask<Job> {
        let options = options.unwrap_or_default().into();
        self.later(move |generator| generator.stream(&prompt, &options), |_, stream| Ok(TextStream::new(stream)))
    }

    #[napi(ts_args_type = "messages: Message[], options?: GenerateOptions")]
    pub fn chat(
        &self,
        env: Env,
        messages: List<Message>,
        options: Option<GenerateOptions>,
    ) -> napi::Result<TextStream> {
        let (messages, options) = (written(messages), options.unwrap_or_default().into());
        self.now(env, |generator| generator.chat_stream(&messages, &options).map(TextStream::new))
    }

    #[napi(ts_args_type = "messages: Message[], options?: GenerateOptions", ts_return_type = "Promise<TextStream>")]
    pub fn chat_async(&self, messages: List<Message>, options: Option<GenerateOptions>) -> AsyncTask<Job> {
        let (messages, options) = (written(messages), options.unwrap_or_default().into());
        self.later(move |generator| generator.chat_stream(&messages, &options), |_, stream| Ok(TextStream::new(stream)))
    }

    #[napi(ts_args_type = "prompts: string[], options?: GenerateOptions", ts_return_type = "unknown[]")]
    pub fn batch(
        &self,
        env: Env,
        prompts: List<Text>,
        options: Option<GenerateOptions>,
    ) -> napi::Result<Vec<Unknown<'static>>> {
        let options = options.unwrap_or_default().into();
        let found = self.now(env, |generator| generator.generate_batch(&texts(prompts), &options))?;
        all(env, found)
    }

    #[napi(ts_args_type = "prompts: string[], options?: GenerateOptions", ts_return_type = "Promise<unknown[]>")]
    pub fn batch_async(&self, prompts: List<Text>, options: Option<GenerateOptions>) -> AsyncTask<Job> {
        let options = options.unwrap_or_default().into();
        self.later(move |generator| generator.generate_batch(&texts(prompts), &options), all)
    }

    #[napi(ts_args_type = "text: string")]
    pub fn tokenize(&self, env: Env, text: Text) -> napi::Result<Vec<u32>> {
        self.now(env, |generator| generator.tokenize(&text))
    }

    #[napi(ts_args_type = "tokens: number[]")]
    pub fn detokenize(&self, env: Env, tokens: List<Word>) -> napi::Result<String> {
        self.now(env, |generator| Ok(generator.detokenize(&ids(tokens))))
    }

    #[napi(ts_args_type = "text: string")]
    pub fn perplexity(&self, env: Env, text: Text) -> napi::Result<f64> {
        self.now(env, |generator| generator.perplexity(&text))
    }

    #[napi(ts_args_type = "text: string", ts_return_type = "Promise<number>")]
    pub fn perplexity_async(&self, text: Text) -> AsyncTask<Job> {
        self.later(move |generator| generator.perplexity(&text), |_, value| Ok(value))
    }

    #[napi(ts_args_type = "tokens: number[]", ts_return_type = "Float32Array")]
    pub fn logprobs(&self, env: Env, tokens: List<Word>) -> napi::Result<Unknown<'static>> {
        let found = self.now(env, |generator| generator.logprobs(&ids(tokens)))?;
        floats(env, &found)
    }

    #[napi(ts_args_type = "tokens: number[]", ts_return_type = "Promise<Float32Array>")]
    pub fn logprobs_async(&self, tokens: List<Word>) -> AsyncTask<Job> {
        self.later(move |generator| generator.logprobs(&ids(tokens)), |env, found| floats(env, &found))
    }

    #[napi(ts_args_type = "text: string", ts_return_type = "Float32Array")]
    pub fn embed(&self, env: Env, text: Text) -> napi::Result<Unknown<'static>> {
        let found = self.now(env, |generator| generator.embed(&text))?;
        floats(env, &found)
    }

    #[napi(ts_args_type = "text: string", ts_return_type = "Promise<Float32Array>")]
    pub fn embed_async(&self, text: Text) -> AsyncTask<Job> {
        self.later(move |generator| generator.embed(&text), |env, found| floats(env, &found))
    }
}
