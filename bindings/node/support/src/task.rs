//! Promises: the work runs on a libuv thread, and its result is converted on JavaScript's thread.

use crate::error::{caught, thrown};
use adead::{Result, Status};
use napi::bindgen_prelude::{AbortSignal, AsyncTask, FromNapiValue, JsObjectValue, ToNapiValue, TypeName, Unknown};
use napi::{Env, JsValue, Task, ValueType, sys};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Makes the value that a promise resolves with.
type Finish = Box<dyn FnOnce(Env) -> napi::Result<sys::napi_value> + Send>;

/// The work of a promise. All promises share this type, so that the surrounding code is compiled once.
pub struct Job {
    work: Option<Box<dyn FnOnce() -> Result<Finish> + Send>>,
    /// Set once the promise's signal aborts. `None` without a signal.
    ended: Option<Arc<AtomicBool>>,
}

/// A JavaScript value that exists already.
pub struct Made(sys::napi_value);

impl TypeName for Made {
    fn type_name() -> &'static str {
        "unknown"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl ToNapiValue for Made {
    unsafe fn to_napi_value(_: sys::napi_env, value: Made) -> napi::Result<sys::napi_value> {
        Ok(value.0)
    }
}

impl Task for Job {
    type Output = Result<Finish>;
    type JsValue = Made;

    fn compute(&mut self) -> napi::Result<Result<Finish>> {
        // Taken, so that its captured values are dropped here.
        let work = self.work.take();
        let begin = || match work {
            Some(work) => work(),
            None => Err(adead::Error::new(Status::Internal, "a promise's work began twice")),
        };
        Ok(caught(|| match &self.ended {
            Some(ended) => adead::interruptible(&|| ended.load(Relaxed), begin),
            None => begin(),
        }))
    }

    fn resolve(&mut self, env: Env, output: Result<Finish>) -> napi::Result<Made> {
        match output {
            // A panic here would unwind across C.
            Ok(finish) => match caught(|| Ok(finish(env))) {
                Ok(value) => value.map(Made),
                Err(error) => Err(thrown(env.raw(), &error)),
            },
            Err(error) if error.status() == Status::NotReady && self.is_ended() => Err(aborted(env)?),
            Err(error) => Err(thrown(env.raw(), &error)),
        }
    }
}

impl Job {
    fn is_ended(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.load(Relaxed))
    }
}

/// Makes a promise of `finish(work())`. If `work` is an error, such as a wrong argument, the promise rejects with it.
pub fn promise<T, V, W>(
    work: Result<W>,
    finish: impl FnOnce(Env, T) -> napi::Result<V> + Send + 'static,
) -> AsyncTask<Job>
where
    T: Send + 'static,
    V: ToNapiValue,
    W: FnOnce() -> Result<T> + Send + 'static,
{
    promise_with(work, finish, None)
}

/// Makes a promise like [`promise`], with a signal. If `signal` aborts before a thread is free, the work does not begin. If it
/// aborts later, the work ends early.
pub fn promise_with<T, V, W>(
    work: Result<W>,
    finish: impl FnOnce(Env, T) -> napi::Result<V> + Send + 'static,
    signal: Option<AbortSignal>,
) -> AsyncTask<Job>
where
    T: Send + 'static,
    V: ToNapiValue,
    W: FnOnce() -> Result<T> + Send + 'static,
{
    let work = move || {
        let output = work?()?;
        let finish: Finish = Box::new(move |env| {
            let value = finish(env, output)?;
            // SAFETY: this runs on the environment's thread.
            unsafe { V::to_napi_value(env.raw(), value) }
        });
        Ok(finish)
    };
    let ended = signal.as_ref().map(|signal| {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = ended.clone();
        signal.on_abort(move || flag.store(true, Relaxed));
        ended
    });
    let job = Job { work: Some(Box::new(work)), ended };
    AsyncTask::with_optional_signal(job, signal)
}

/// Returns the error of a promise that a signal stopped. napi-rs makes the same error for a promise that is stopped later.
pub fn aborted(env: Env) -> napi::Result<napi::Error> {
    const NAME: &str = "AbortError";
    let mut error = env.create_error(napi::Error::new(napi::Status::Cancelled, NAME))?;
    error.set_named_property("name", NAME)?;
    // SAFETY: a value of this environment.
    Ok(napi::Error::from(unsafe { Unknown::from_napi_value(env.raw(), error.raw()) }?))
}
