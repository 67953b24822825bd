//! Text as it is generated.

use adead::Result;
use adead_models::text;
use adead_node_support::args::{Flag, List, Number, Size, Text, kind};
use adead_node_support::error::{fail, guard, refused};
use adead_node_support::task::{Job, promise};
use napi::bindgen_prelude::{AsyncTask, BigInt, FromNapiValue, Object, Unknown};
use napi::{Env, JsValue, ValueType, sys};
use napi_derive::napi;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// A number of 64 bits: a bigint, or a number up to 2⁵³ - 1.
#[derive(Clone, Copy)]
pub struct Long(u64);

impl FromNapiValue for Long {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Long> {
        if kind(env, value) != ValueType::BigInt {
            // SAFETY: the caller's guarantee is passed on.
            return unsafe { Size::from_napi_value(env, value) }.map(|size| Long(size.0 as u64));
        }
        // SAFETY: as above.
        match unsafe { BigInt::from_napi_value(env, value) }?.get_u64() {
            (false, number, true) => Ok(Long(number)),
            _ => Err(refused(env, "a bigint must be from 0 to 2^64 - 1")),
        }
    }
}

/// How text is generated.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct GenerateOptions {
    #[napi(ts_type = "number")]
    pub max_tokens: Option<Size>,
    #[napi(ts_type = "string[]")]
    pub stop: Option<List<Text>>,
    #[napi(ts_type = "boolean")]
    pub ignore_end: Option<Flag>,
    #[napi(ts_type = "number")]
    pub temperature: Option<Number>,
    #[napi(ts_type = "number")]
    pub top_k: Option<Size>,
    #[napi(ts_type = "number")]
    pub top_p: Option<Number>,
    #[napi(ts_type = "number")]
    pub min_p: Option<Number>,
    #[napi(ts_type = "number")]
    pub repeat_penalty: Option<Number>,
    #[napi(ts_type = "number")]
    pub repeat_last: Option<Size>,
    #[napi(ts_type = "number | bigint")]
    pub seed: Option<Long>,
    #[napi(ts_type = "number | bigint")]
    pub sequence: Option<Long>,
}

impl From<GenerateOptions> for text::GenerateOptions {
    fn from(given: GenerateOptions) -> text::GenerateOptions {
        let (usual, sampling) = (text::GenerateOptions::default(), text::Sampling::default());
        let number = |given: Option<Number>, usual: f32| given.map_or(usual, |number| number.0 as f32);
        let size = |given: Option<Size>, usual: usize| given.map_or(usual, |size| size.0);
        text::GenerateOptions {
            max_tokens: size(given.max_tokens, usual.max_tokens),
            stop: given.stop.map_or(usual.stop, |stop| stop.0.into_iter().map(String::from).collect()),
            ignore_end: given.ignore_end.map_or(usual.ignore_end, |flag| flag.0),
            sampling: text::Sampling {
                temperature: number(given.temperature, sampling.temperature),
                top_k: size(given.top_k, sampling.top_k),
                top_p: number(given.top_p, sampling.top_p),
                min_p: number(given.min_p, sampling.min_p),
                repeat_penalty: number(given.repeat_penalty, sampling.repeat_penalty),
                repeat_last: size(given.repeat_last, sampling.repeat_last),
                seed: given.seed.map_or(sampling.seed, |seed| seed.0),
                sequence: given.sequence.map_or(sampling.sequence, |sequence| sequence.0),
            },
        }
    }
}

/// A message of a conversation.
#[napi(object, object_to_js = false)]
pub struct Message {
    #[napi(ts_type = "string")]
    pub role: Text,
    #[napi(ts_type = "string")]
    pub content: Text,
}

impl From<Message> for text::Message {
    fn from(message: Message) -> text::Message {
        text::Message::new(String::from(message.role), String::from(message.content))
    }
}

/// A stream and the text of its pieces so far.
struct State {
    stream: text::TextStream,
    text: String,
}

impl State {
    fn next(&mut self) -> Result<Option<String>> {
        let piece = self.stream.next().transpose()?;
        self.text.extend(piece.as_deref());
        Ok(piece)
    }

    /// What is generated so far, and whether it has ended.
    fn generation(&self) -> (text::Generation, bool) {
        let finish = self.stream.finish();
        let generation = text::Generation {
            text: self.text.clone(),
            tokens: self.stream.tokens().to_vec(),
            finish: finish.unwrap_or(text::Finish::MaxTokens),
            prompt_tokens: self.stream.prompt_tokens(),
        };
        (generation, finish.is_some())
    }
}

/// A text that is generated piece by piece.
#[napi]
pub struct TextStream(Arc<Mutex<State>>);

impl TextStream {
    pub(crate) fn new(stream: text::TextStream) -> TextStream {
        TextStream(Arc::new(Mutex::new(State { stream, text: String::new() })))
    }
}

/// A whole text, computed on this thread.
pub(crate) fn whole(stream: text::TextStream) -> Result<text::Generation> {
    let mut state = State { stream, text: String::new() };
    while state.next()?.is_some() {}
    Ok(state.generation().0)
}

/// A whole text as an object.
pub(crate) fn ended(env: Env, generation: text::Generation) -> napi::Result<Unknown<'static>> {
    object(env, (generation, true))
}

/// A generated text as an object. `finish` is null if it has not ended.
fn object(env: Env, (generation, ended): (text::Generation, bool)) -> napi::Result<Unknown<'static>> {
    let mut object = Object::new(&env)?;
    object.set("text", generation.text)?;
    object.set("tokens", generation.tokens)?;
    object.set("finish", ended.then(|| generation.finish.name()))?;
    object.set("promptTokens", generation.prompt_tokens as f64)?;
    // SAFETY: a value of this environment, given to it at once.
    unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }
}

#[napi]
impl TextStream {
    #[napi(ts_return_type = "Promise<string | null>")]
    pub fn next_async(&self) -> AsyncTask<Job> {
        let state = self.0.clone();
        promise(Ok(move || state.lock().unwrap_or_else(PoisonError::into_inner).next()), |_, piece| Ok(piece))
    }

    #[napi(ts_return_type = "unknown")]
    pub fn generation(&self, env: Env) -> napi::Result<Unknown<'static>> {
        let found = guard(env, || match self.0.try_lock() {
            Ok(state) => Ok(state.generation()),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner().generation()),
            Err(TryLockError::WouldBlock) => fail!(NotReady, "the stream computes its next piece: await it first"),
        })?;
        object(env, found)
    }
}
