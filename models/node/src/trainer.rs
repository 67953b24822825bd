//! Trainers and training jobs. train.js has what is public.

use crate::encoder::floats;
use adead::config::Config;
use adead::{Context, ContextOptions, DType, Result, Tensor};
use adead_models::train::{self, Description, Epoch, Measured, Outcome, RunOptions, connect, hash};
use adead_node_support::args::{Flag, Number, Text, Word};
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::JsValue;
use napi::bindgen_prelude::{AsyncTask, BigInt64Array, Either, Float32Array, FromNapiValue, Object, Unknown};
use napi_derive::napi;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// How a device is opened.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct DeviceOptions {
    #[napi(ts_type = "string")]
    pub device: Option<Text>,
    #[napi(ts_type = "number")]
    pub threads: Option<Word>,
    #[napi(ts_type = "'f32' | 'fixed24' | 'fixed16'")]
    pub precision: Option<Text>,
}

impl DeviceOptions {
    fn context(&self) -> Result<Context> {
        let threads = self.threads.map(|threads| threads.0 as usize);
        let precision = self.precision.as_deref().map(str::parse).transpose()?;
        let wanted = ContextOptions { threads, precision, ..ContextOptions::default() };
        Context::configured(self.device.as_deref(), &wanted, &Config::load()?)
    }
}

type Shared = Arc<Mutex<train::Trainer>>;

/// Samples or targets: a copy, because JavaScript may write to the array meanwhile.
enum Given {
    Floats(Vec<f32>),
    Ids(Vec<i64>),
}

type Array = Either<Float32Array, BigInt64Array>;

impl From<Array> for Given {
    fn from(array: Array) -> Given {
        match array {
            Either::A(values) => Given::Floats(values.to_vec()),
            Either::B(ids) => Given::Ids(ids.to_vec()),
        }
    }
}

impl Given {
    /// The samples as a tensor.
    fn tensor(&self, name: &str, dtype: DType, dims: &[usize]) -> Result<Tensor> {
        let (length, given) = match self {
            Given::Floats(values) => (values.len(), DType::F32),
            Given::Ids(ids) => (ids.len(), DType::I64),
        };
        if given != dtype {
            let array = if dtype == DType::I64 { "a BigInt64Array" } else { "a Float32Array" };
            fail!(DtypeMismatch, "{name} holds {given}; it must be {array}");
        }
        let size = dims.iter().product::<usize>().max(1);
        if length % size != 0 {
            fail!(ShapeMismatch, "{name} has {length} values; a sample has {size}");
        }
        let dims = [&[length / size][..], dims].concat();
        match self {
            Given::Floats(values) => Tensor::new(values, &dims),
            Given::Ids(ids) => Tensor::new(ids, &dims),
        }
    }
}

fn pair(trainer: &train::Trainer, x: &Given, targets: &Given) -> Result<[Tensor; 2]> {
    let sample = trainer.sample();
    Ok([x.tensor("x", sample.dtype, &sample.dims)?, targets.tensor("targets", sample.target, &sample.targets)?])
}

fn lock(trainer: &Shared) -> Result<MutexGuard<'_, train::Trainer>> {
    match trainer.try_lock() {
        Ok(trainer) => Ok(trainer),
        Err(TryLockError::WouldBlock) => fail!(NotReady, "the trainer computes in another call"),
        Err(TryLockError::Poisoned(_)) => fail!(Internal, "an earlier call left the trainer unfinished"),
    }
}

fn fit(trainer: &mut train::Trainer, x: &Given, targets: &Given, epochs: u32) -> Result<f64> {
    let [x, targets] = pair(trainer, x, targets)?;
    trainer.fit(&x, &targets, epochs, &mut |_, _, _| Ok(()))
}

fn predict(trainer: &train::Trainer, x: &Given) -> Result<Vec<f32>> {
    let sample = trainer.sample();
    trainer.predict(&x.tensor("x", sample.dtype, &sample.dims)?)?.to_vec()
}

/// An object that the caller fills.
fn object(env: Env, fill: impl FnOnce(&mut Object<'_>) -> napi::Result<()>) -> napi::Result<Unknown<'static>> {
    let mut object = Object::new(&env)?;
    fill(&mut object)?;
    // SAFETY: a value of this environment, given to it at once.
    unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }
}

fn sizes(dims: &[usize]) -> Vec<f64> {
    dims.iter().map(|&dim| dim as f64).collect()
}

fn patience(seconds: f64) -> Result<Duration> {
    match Duration::try_from_secs_f64(seconds).ok().filter(|patience| !patience.is_zero()) {
        Some(patience) => Ok(patience),
        None => fail!(InvalidArgument, "patience is {seconds}; it is a number of seconds above 0"),
    }
}

/// A network in training.
#[napi]
pub struct Trainer {
    /// `None` once it is closed. In a cell, because promises that are under way borrow the object.
    inner: RefCell<Option<Shared>>,
}

impl Trainer {
    fn new(trainer: train::Trainer) -> Trainer {
        Trainer { inner: RefCell::new(Some(Arc::new(Mutex::new(trainer)))) }
    }

    fn opened(&self) -> Result<Shared> {
        match &*self.inner.borrow() {
            Some(trainer) => Ok(trainer.clone()),
            None => fail!(InvalidArgument, "the trainer is closed"),
        }
    }

    fn now<T>(&self, env: Env, work: impl FnOnce(&mut train::Trainer) -> Result<T>) -> napi::Result<T> {
        guard(env, || work(&mut *lock(&self.opened()?)?))
    }
}

fn create(description: &str, options: &DeviceOptions) -> Result<train::Trainer> {
    let description: Description = description.parse()?;
    train::Trainer::new(&options.context()?, &description)
}

#[napi]
impl Trainer {
    #[napi(factory, ts_args_type = "description: string, options?: DeviceOptions")]
    pub fn create(env: Env, description: Text, options: Option<DeviceOptions>) -> napi::Result<Trainer> {
        guard(env, || create(&description, &options.unwrap_or_default())).map(Trainer::new)
    }

    #[napi(ts_args_type = "description: string, options?: DeviceOptions", ts_return_type = "Promise<Trainer>")]
    pub fn create_async(description: Text, options: Option<DeviceOptions>) -> AsyncTask<Job> {
        let options = options.unwrap_or_default();
        promise(Ok(move || create(&description, &options)), |_, trainer| Ok(Trainer::new(trainer)))
    }

    #[napi]
    pub fn close(&self) {
        self.inner.replace(None);
    }

    #[napi(getter)]
    pub fn steps(&self, env: Env) -> napi::Result<f64> {
        self.now(env, |trainer| Ok(trainer.steps() as f64))
    }

    #[napi(getter)]
    pub fn batch(&self, env: Env) -> napi::Result<f64> {
        self.now(env, |trainer| Ok(trainer.batch() as f64))
    }

    #[napi(getter)]
    pub fn device(&self, env: Env) -> napi::Result<String> {
        self.now(env, |trainer| Ok(trainer.device().to_owned()))
    }

    #[napi(getter, ts_return_type = "unknown")]
    pub fn sample(&self, env: Env) -> napi::Result<Unknown<'static>> {
        let sample = self.now(env, |trainer| Ok(trainer.sample().clone()))?;
        object(env, |object| {
            object.set("dtype", sample.dtype.to_string())?;
            object.set("dims", sizes(&sample.dims))?;
            object.set("target", sample.target.to_string())?;
            object.set("targets", sizes(&sample.targets))?;
            object.set("outputs", sizes(&sample.outputs))
        })
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array")]
    pub fn step(&self, env: Env, x: Array, targets: Array) -> napi::Result<f64> {
        self.now(env, |trainer| {
            let [x, targets] = pair(trainer, &x.into(), &targets.into())?;
            trainer.step(&x, &targets).map(f64::from)
        })
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array, epochs: number")]
    pub fn fit(&self, env: Env, x: Array, targets: Array, epochs: Word) -> napi::Result<f64> {
        self.now(env, |trainer| fit(trainer, &x.into(), &targets.into(), epochs.0))
    }

    #[napi(
        ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array, epochs: number",
        ts_return_type = "Promise<number>"
    )]
    pub fn fit_async(&self, x: Array, targets: Array, epochs: Word) -> AsyncTask<Job> {
        let (x, targets): (Given, Given) = (x.into(), targets.into());
        let work = self.opened().map(|it| move || fit(&mut *lock(&it)?, &x, &targets, epochs.0));
        promise(work, |_, loss| Ok(loss))
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array", ts_return_type = "Float32Array")]
    pub fn predict(&self, env: Env, x: Array) -> napi::Result<Unknown<'static>> {
        let found = self.now(env, |trainer| predict(trainer, &x.into()))?;
        floats(env, &found)
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array", ts_return_type = "Promise<Float32Array>")]
    pub fn predict_async(&self, x: Array) -> AsyncTask<Job> {
        let x: Given = x.into();
        let work = self.opened().map(|it| move || predict(&*lock(&it)?, &x));
        promise(work, |env, found| floats(env, &found))
    }

    #[napi(
        ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array",
        ts_return_type = "unknown"
    )]
    pub fn evaluate(&self, env: Env, x: Array, targets: Array) -> napi::Result<Unknown<'static>> {
        let Measured { loss, accuracy } = self.now(env, |trainer| {
            let [x, targets] = pair(trainer, &x.into(), &targets.into())?;
            trainer.evaluate(&x, &targets)
        })?;
        object(env, |object| {
            object.set("loss", loss)?;
            object.set("accuracy", accuracy)
        })
    }

    #[napi(ts_args_type = "path: string")]
    pub fn save(&self, env: Env, path: Text) -> napi::Result<()> {
        self.now(env, |trainer| trainer.save(&*path))
    }

    #[napi(ts_args_type = "path: string")]
    pub fn load(&self, env: Env, path: Text) -> napi::Result<()> {
        self.now(env, |trainer| trainer.load(&*path))
    }

    #[napi]
    pub fn sha256(&self, env: Env) -> napi::Result<String> {
        self.now(env, |trainer| trainer.sha256())
    }

    /// Names, dimensions and values of all parameters.
    #[napi(ts_return_type = "unknown[]")]
    pub fn parameters(&self, env: Env) -> napi::Result<Vec<Unknown<'static>>> {
        let all = self.now(env, |trainer| {
            let values = trainer.trained().into_iter();
            values
                .map(|(name, tensor)| Ok((name, sizes(tensor.dims()), tensor.to_vec::<f32>()?)))
                .collect::<Result<Vec<_>>>()
        })?;
        let one = |(name, dims, values): (String, Vec<f64>, Vec<f32>)| {
            object(env, |object| {
                object.set("name", name)?;
                object.set("dims", dims)?;
                object.set("values", floats(env, &values)?)
            })
        };
        all.into_iter().map(one).collect()
    }

    #[napi(ts_args_type = "place: string, patience: number", ts_return_type = "Promise<void>")]
    pub fn join(&self, place: Text, seconds: Number) -> AsyncTask<Job> {
        let work = self.opened().map(|it| {
            move || {
                let ranks = connect(&place, patience(seconds.0)?)?;
                lock(&it)?.join(ranks)
            }
        });
        promise(work, |_, ()| Ok(()))
    }
}

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

fn run(path: &str, options: TrainOptions) -> Result<Outcome> {
    let mut job = train::Job::read(path)?;
    match options.epochs {
        Some(Word(0)) => fail!(InvalidArgument, "epochs is 0; it is at least 1"),
        Some(Word(epochs)) => job.epochs = epochs,
        None => {}
    }
    let patience = patience(options.patience.map_or(300.0, |seconds| seconds.0))?;
    let context = DeviceOptions { device: options.device, threads: options.threads, precision: None }.context()?;
    let ranks = options.ranks.as_deref().map(|place| connect(place, patience)).transpose()?;
    let resume = options.resume.is_some_and(|flag| flag.0);
    job.run(&context, RunOptions { resume, ranks }, &mut |_| Ok(()))
}

/// The outcome of a job as an object.
fn outcome(env: Env, found: Outcome) -> napi::Result<Unknown<'static>> {
    let sha256 = guard(env, || hash(&found.parameters))?;
    let epoch = |it: &Epoch| {
        object(env, |object| {
            object.set("epoch", it.number)?;
            object.set("loss", it.loss)?;
            object.set("heldOutLoss", it.held_out_loss)?;
            object.set("accuracy", it.accuracy)?;
            object.set("seconds", it.took.as_secs_f64())
        })
    };
    let epochs = found.epochs.iter().map(epoch).collect::<napi::Result<Vec<_>>>()?;
    object(env, |object| {
        object.set("epochs", epochs)?;
        object.set("steps", found.steps as f64)?;
        object.set("sha256", sha256)?;
        object.set("device", found.device)
    })
}

#[napi(ts_args_type = "job: string, options?: TrainOptions", ts_return_type = "Promise<unknown>")]
pub fn train_async(job: Text, options: Option<TrainOptions>) -> AsyncTask<Job> {
    let options = options.unwrap_or_default();
    promise(Ok(move || run(&job, options)), outcome)
}
