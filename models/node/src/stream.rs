//! Text as it is generated.

use adead::Result;
use adead_models::text;
use adead_node_support::args::{Flag, List, Long, Number, Size, Text};
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, Object, Unknown};
use napi::{Env, JsValue};
use napi_derive::napi;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

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
    #[napi(ts_type = "string")]
    pub json_schema: Option<Text>,
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
            json_schema: given.json_schema.map(String::from),
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

/// A generation so far, and whether it has ended.
type Generated = (text::Generation, bool);

/// A stream and the text of its pieces so far, or its generation when it was closed.
enum State {
    Open { stream: Box<text::TextStream>, text: String },
    Closed(Generated),
}

impl State {
    fn new(stream: text::TextStream) -> State {
        State::Open { stream: Box::new(stream), text: String::new() }
    }

    /// Computes the next piece. After the last one and after an error, the keys and values are freed.
    fn next(&mut self) -> Result<Option<String>> {
        let State::Open { stream, text } = self else { return Ok(None) };
        let piece = stream.next().transpose();
        match &piece {
            Ok(Some(piece)) => text.push_str(piece),
            _ => self.close(),
        }
        piece
    }

    /// Computes the next chunk of a long prompt. Returns the tokens computed so far and the total.
    fn advance_prompt(&mut self) -> Result<Option<Vec<f64>>> {
        let State::Open { stream, .. } = self else { return Ok(None) };
        let computed = stream.advance_prompt()?;
        Ok(computed.map(|computed| vec![computed as f64, stream.prompt_tokens() as f64]))
    }

    /// Keeps the generation, and frees the stream.
    fn close(&mut self) {
        *self = State::Closed(self.generation());
    }

    fn generation(&self) -> Generated {
        match self {
            State::Open { stream, text } => {
                let finish = stream.finish();
                let generation = text::Generation {
                    text: text.clone(),
                    tokens: stream.tokens().to_vec(),
                    finish: finish.unwrap_or(text::Finish::MaxTokens),
                    prompt_tokens: stream.prompt_tokens(),
                };
                (generation, finish.is_some())
            }
            State::Closed(generated) => generated.clone(),
        }
    }
}

/// A text that is generated piece by piece.
#[napi]
pub struct TextStream(Arc<Mutex<State>>);

impl TextStream {
    pub(crate) fn new(stream: text::TextStream) -> TextStream {
        TextStream(Arc::new(Mutex::new(State::new(stream))))
    }

    /// Makes a closure that works on the stream on another thread.
    fn work<T, W: FnOnce(&mut State) -> Result<T>>(&self, work: W) -> impl FnOnce() -> Result<T> + use<T, W> {
        let state = self.0.clone();
        move || work(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the state, unless another thread is using it.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        match self.0.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Does work on this thread, unless another one computes.
    fn now<T>(&self, env: Env, work: impl FnOnce(&mut State) -> Result<T>) -> napi::Result<T> {
        guard(env, || match self.state() {
            Some(mut state) => work(&mut state),
            None => fail!(NotReady, "the stream is computing its next piece: await it first"),
        })
    }
}

/// Computes a whole text.
fn whole(state: &mut State) -> Result<Generated> {
    while state.next()?.is_some() {}
    Ok(state.generation())
}

/// A text as an object.
pub(crate) fn ended(env: Env, generation: text::Generation) -> napi::Result<Unknown<'static>> {
    object(env, (generation, true))
}

/// A generated text as an object. `finish` is null if it has not ended.
fn object(env: Env, (generation, ended): Generated) -> napi::Result<Unknown<'static>> {
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
        promise(Ok(self.work(State::next)), |_, piece| Ok(piece))
    }

    #[napi]
    pub fn advance_prompt(&self, env: Env) -> napi::Result<Option<Vec<f64>>> {
        self.now(env, State::advance_prompt)
    }

    #[napi(ts_return_type = "Promise<number[] | null>")]
    pub fn advance_prompt_async(&self) -> AsyncTask<Job> {
        promise(Ok(self.work(State::advance_prompt)), |_, told| Ok(told))
    }

    #[napi(ts_return_type = "unknown")]
    pub fn whole(&self, env: Env) -> napi::Result<Unknown<'static>> {
        let found = self.now(env, whole)?;
        object(env, found)
    }

    #[napi(ts_return_type = "Promise<unknown>")]
    pub fn whole_async(&self) -> AsyncTask<Job> {
        promise(Ok(self.work(whole)), object)
    }

    #[napi(ts_return_type = "unknown")]
    pub fn generation(&self, env: Env) -> napi::Result<Unknown<'static>> {
        let found = self.now(env, |state| Ok(state.generation()))?;
        object(env, found)
    }

    /// Frees the stream unless another thread is using it, and returns whether it was freed.
    #[napi]
    pub fn close(&self) -> bool {
        let state = self.state();
        let free = state.is_some();
        if let Some(mut state) = state {
            state.close();
        }
        free
    }

    /// Frees the stream after the running computation has ended.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close_async(&self) -> AsyncTask<Job> {
        let close = |state: &mut State| {
            state.close();
            Ok(())
        };
        promise(Ok(self.work(close)), |_, ()| Ok(()))
    }
}
