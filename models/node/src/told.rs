//! Work that reports its progress to JavaScript.

use adead::Result;
use adead_node_support::error::{caught, fail, guard};
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ToNapiValue, Unknown};
use napi_derive::napi;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The result of work, as a function that converts it to a JavaScript value.
pub type Finish = Box<dyn FnOnce(Env) -> napi::Result<Unknown<'static>> + Send>;

/// Makes a `Finish` from a result.
pub fn finish<T: Send + 'static>(
    result: T,
    made: impl FnOnce(Env, T) -> napi::Result<Unknown<'static>> + Send + 'static,
) -> Finish {
    Box::new(move |env| made(env, result))
}

/// A number as a value.
pub fn number(env: Env, number: f64) -> napi::Result<Unknown<'static>> {
    // SAFETY: a value of this environment, given to it at once.
    unsafe {
        let value = f64::to_napi_value(env.raw(), number)?;
        napi::bindgen_prelude::FromNapiValue::from_napi_value(env.raw(), value)
    }
}

/// Work on a thread of its own. After each event it waits until JavaScript asks for the next one, so that JavaScript can end it there. It
/// does not use libuv's pool: the process would wait for such a thread at its end.
#[napi]
pub struct Told(Arc<Mutex<State>>);

struct State {
    events: Option<(Receiver<Vec<f64>>, SyncSender<()>)>,
    /// Whether the work waits for an answer to its last event.
    waits: bool,
    thread: Option<JoinHandle<Result<Finish>>>,
}

/// Starts work, which reports its events to the closure that it receives.
pub fn begin(
    work: impl FnOnce(&mut dyn FnMut(Vec<f64>) -> Result<()>) -> Result<Finish> + Send + 'static,
) -> Result<Told> {
    let (event, events) = sync_channel(1);
    let (go_on, answers) = sync_channel(1);
    let work = move || {
        caught(|| {
            work(&mut |told| {
                if event.send(told).is_err() || answers.recv().is_err() {
                    fail!(NotReady, "onProgress ended the work");
                }
                Ok(())
            })
        })
    };
    match Builder::new().name("adead-told".into()).spawn(work) {
        Ok(thread) => {
            let state = State { events: Some((events, go_on)), waits: false, thread: Some(thread) };
            Ok(Told(Arc::new(Mutex::new(state))))
        }
        Err(error) => fail!(OutOfMemory, "can't start a thread: {error}"),
    }
}

impl State {
    /// Returns the next event, or `None` after the last one.
    fn next(&mut self) -> Result<Option<Vec<f64>>> {
        let Some((events, go_on)) = &self.events else { return Ok(None) };
        if self.waits {
            // If there is no receiver, the work has ended, and there is no event either.
            let _ = go_on.send(());
        }
        let event = events.recv().ok();
        self.waits = event.is_some();
        Ok(event)
    }

    /// Ends the work at its next event if it is still running, and returns its result.
    fn end(&mut self) -> Result<Finish> {
        self.events = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(found)) => found,
            Some(Err(_)) => fail!(Internal, "a thread ended by a panic"),
            None => fail!(InvalidArgument, "the work has ended already"),
        }
    }
}

impl Told {
    /// Makes a closure that works on it on any thread.
    fn work<T, W: FnOnce(&mut State) -> Result<T>>(&self, work: W) -> impl FnOnce() -> Result<T> + use<T, W> {
        let state = self.0.clone();
        move || work(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[napi]
impl Told {
    #[napi]
    pub fn next(&self, env: Env) -> napi::Result<Option<Vec<f64>>> {
        guard(env, self.work(State::next))
    }

    #[napi(ts_return_type = "Promise<number[] | null>")]
    pub fn next_async(&self) -> AsyncTask<Job> {
        promise(Ok(self.work(State::next)), |_, event| Ok(event))
    }

    #[napi(ts_return_type = "unknown")]
    pub fn end(&self, env: Env) -> napi::Result<Unknown<'static>> {
        guard(env, self.work(State::end))?(env)
    }

    #[napi(ts_return_type = "Promise<unknown>")]
    pub fn end_async(&self) -> AsyncTask<Job> {
        promise(Ok(self.work(State::end)), |env, finish| finish(env))
    }
}
