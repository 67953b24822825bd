//! Training jobs: files that describe a training.

use crate::encoder::OpenOptions;
use crate::told::{Told, begin, finish};
use adead::{Context, Result};
use adead_models::train::{self, Event, RunOptions, connect, hash};
use adead_node_support::args::{Flag, Number, Text, Word};
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, Object, Unknown};
use napi::{Env, JsValue};
use napi_derive::napi;
use std::time::Duration;

/// How a job runs.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct TrainOptions {
    #[napi(ts_type = "string")]
    pub device: Option<Text>,
    #[napi(ts_type = "number")]
    pub threads: Option<Word>,
    #[napi(ts_type = "boolean")]
    pub resume: Option<Flag>,
    #[napi(ts_type = "number")]
    pub epochs: Option<Word>,
    #[napi(ts_type = "string")]
    pub ranks: Option<Text>,
    #[napi(ts_type = "number")]
    pub patience: Option<Number>,
}

/// The most time that a rank may take.
pub(crate) fn patience(given: Option<Number>) -> Result<Duration> {
    train::patience(given.map_or(300.0, |given| given.0))
}

/// A job that can run.
struct Ready {
    job: train::Job,
    context: Context,
    options: RunOptions,
}

/// The outcome of a job.
struct Outcome {
    steps: u64,
    held_out_loss: f64,
    accuracy: f64,
    sha256: String,
    device: String,
}

fn ready(path: &str, options: TrainOptions) -> Result<Ready> {
    let TrainOptions { device, threads, resume, epochs, ranks, patience: given } = options;
    let patience = patience(given)?;
    let mut job = train::Job::read(path)?;
    match epochs {
        Some(Word(0)) => fail!(InvalidArgument, "epochs is 0; it must be at least 1"),
        Some(Word(epochs)) => job.epochs = epochs,
        None => {}
    }
    let context = OpenOptions { device, threads, precision: None }.context()?;
    let ranks = ranks.map(|place| connect(&place, patience)).transpose()?;
    Ok(Ready { job, context, options: RunOptions { resume: resume.is_some_and(|resume| resume.0), ranks } })
}

/// Runs a job. `tell` receives each event as the numbers of `adead_train_event`, in their order.
fn run(ready: Ready, tell: &mut dyn FnMut(Vec<f64>) -> Result<()>) -> Result<Outcome> {
    let Ready { job, context, options } = ready;
    let (mut step, mut steps) = (0.0, 0.0);
    let outcome = job.run(&context, options, &mut |event| {
        const NONE: f64 = f64::NAN;
        tell(match event {
            Event::Step { epoch, step: now, steps: all, loss } => {
                (step, steps) = (*now as f64, *all as f64);
                vec![0.0, f64::from(*epoch), step, steps, f64::from(*loss), NONE, NONE, NONE]
            }
            Event::Epoch(it) => {
                let seconds = it.took.as_secs_f64();
                vec![1.0, f64::from(it.number), step, steps, it.loss, it.held_out_loss, it.accuracy, seconds]
            }
        })
    })?;
    let last = outcome.epochs.last();
    Ok(Outcome {
        steps: outcome.steps,
        held_out_loss: last.map_or(f64::NAN, |epoch| epoch.held_out_loss),
        accuracy: last.map_or(f64::NAN, |epoch| epoch.accuracy),
        sha256: hash(&outcome.parameters)?,
        device: outcome.device,
    })
}

fn alone(path: &str, options: Option<TrainOptions>) -> Result<Outcome> {
    run(ready(path, options.unwrap_or_default())?, &mut |_| Ok(()))
}

fn object(env: Env, outcome: Outcome) -> napi::Result<Unknown<'static>> {
    let mut object = Object::new(&env)?;
    object.set("steps", outcome.steps as f64)?;
    object.set("heldOutLoss", outcome.held_out_loss)?;
    object.set("accuracy", outcome.accuracy)?;
    object.set("sha256", outcome.sha256)?;
    object.set("device", outcome.device)?;
    // SAFETY: a value of this environment, given to it at once.
    unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }
}

#[napi(ts_args_type = "path: string, options?: TrainOptions", ts_return_type = "unknown")]
pub fn train(env: Env, path: Text, options: Option<TrainOptions>) -> napi::Result<Unknown<'static>> {
    let outcome = guard(env, || alone(&path, options))?;
    object(env, outcome)
}

#[napi(ts_args_type = "path: string, options?: TrainOptions", ts_return_type = "Promise<unknown>")]
pub fn train_async(path: Text, options: Option<TrainOptions>) -> AsyncTask<Job> {
    promise(Ok(move || alone(&path, options)), object)
}

#[napi(ts_args_type = "path: string, options?: TrainOptions")]
pub fn train_told(env: Env, path: Text, options: Option<TrainOptions>) -> napi::Result<Told> {
    guard(env, || {
        begin(move |tell| {
            let outcome = run(ready(&path, options.unwrap_or_default())?, tell)?;
            Ok(finish(outcome, object))
        })
    })
}
