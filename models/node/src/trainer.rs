//! Training on arrays.

use crate::encoder::{OpenOptions, floats};
use crate::job::patience;
use crate::told::{Told, begin, finish, number};
use adead::{DType, Result, Tensor};
use adead_models::train::{self, Description, Measured, Sample, connect};
use adead_node_support::args::{Number, Text, Word};
use adead_node_support::array::Array;
use adead_node_support::error::{fail, guard};
use adead_node_support::task::{Job, promise};
use napi::bindgen_prelude::{AsyncTask, FromNapiValue, Object, ObjectFinalize, ToNapiValue, Unknown};
use napi::{Env, JsValue};
use napi_derive::napi;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of the network.
enum State {
    Free(Box<train::Trainer>),
    /// A call is using it.
    Busy,
    Closed,
    /// A call panicked.
    Broken,
}

/// A network in training. A call takes the network out and puts it back, so other calls fail meanwhile, also from `onProgress`.
#[napi(custom_finalize)]
pub struct Trainer {
    state: Arc<Mutex<State>>,
    sample: Sample,
    batch: usize,
    device: String,
    /// The bytes reported to V8, so that its garbage collector runs in time.
    bytes: Cell<i64>,
}

/// The network during a call.
struct Lease {
    state: Arc<Mutex<State>>,
    trainer: Option<Box<train::Trainer>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lease {
    fn with<T>(&mut self, work: impl FnOnce(&mut train::Trainer) -> Result<T>) -> Result<T> {
        match &mut self.trainer {
            Some(trainer) => work(trainer),
            None => fail!(Internal, "a call has no trainer"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let trainer = self.trainer.take();
        let mut state = lock(&self.state);
        // It may have been closed meanwhile.
        if let (State::Busy, Some(trainer)) = (&*state, trainer) {
            *state = if std::thread::panicking() { State::Broken } else { State::Free(trainer) };
        }
    }
}

fn create(description: &str, options: &OpenOptions) -> Result<Box<train::Trainer>> {
    let description: Description = description.parse()?;
    Ok(Box::new(train::Trainer::new(&options.context()?, &description)?))
}

/// Returns the caller's samples as a tensor `[n, …]`, and n. If a number is given, the array must have that many samples.
fn samples(array: &Array, dtype: DType, dims: &[usize], name: &str, count: Option<usize>) -> Result<(Tensor, usize)> {
    let given = array.dtype(None)?;
    if given != dtype {
        fail!(DtypeMismatch, "{name} is {given}; the network takes {dtype}");
    }
    let (values, size) = (array.bytes().len() / dtype.size(), dims.iter().product::<usize>());
    let found = values.checked_div(size).unwrap_or(0);
    if found * size != values || found == 0 {
        fail!(ShapeMismatch, "{name} has {values} values; pass samples of {size} values each");
    }
    if let Some(count) = count.filter(|&count| count != found) {
        fail!(ShapeMismatch, "there are {count} samples and {found} {name}");
    }
    Ok((Tensor::from_bytes(array.bytes(), dtype, &[&[found][..], dims].concat())?, found))
}

impl Trainer {
    fn new(env: Env, inner: Box<train::Trainer>) -> napi::Result<Trainer> {
        // The parameters, their gradients and two tensors of the optimiser.
        let all = guard(env, || inner.trained())?;
        let values: usize = all.iter().map(|(_, tensor)| tensor.shape().elements()).sum();
        let bytes = i64::try_from(16 * values).unwrap_or(0);
        env.adjust_external_memory(bytes)?;
        let (sample, batch, device) = (inner.sample().clone(), inner.batch(), inner.device().to_owned());
        let state = Arc::new(Mutex::new(State::Free(inner)));
        Ok(Trainer { state, sample, batch, device, bytes: Cell::new(bytes) })
    }

    fn lease(&self) -> Result<Lease> {
        let mut state = lock(&self.state);
        let trainer = match &*state {
            State::Free(_) => match std::mem::replace(&mut *state, State::Busy) {
                State::Free(trainer) => Some(trainer),
                _ => None,
            },
            State::Busy => fail!(NotReady, "the trainer is computing in another call: await it first"),
            State::Closed => fail!(InvalidArgument, "the trainer is closed"),
            State::Broken => fail!(Internal, "the trainer can't be used after a panic in an earlier call"),
        };
        Ok(Lease { state: self.state.clone(), trainer })
    }

    /// Does work on this thread.
    fn now<T>(&self, env: Env, work: impl FnOnce(&mut train::Trainer) -> Result<T>) -> napi::Result<T> {
        guard(env, || self.lease()?.with(work))
    }

    /// Does work on another thread. `work` already has its arguments, or their error. The trainer is free again when the promise settles on
    /// JavaScript's thread. Other calls are refused until then, however fast the work was.
    fn later<T: Send + 'static, V: ToNapiValue, W>(
        &self,
        work: Result<W>,
        finish: impl FnOnce(Env, T) -> napi::Result<V> + Send + 'static,
    ) -> AsyncTask<Job>
    where
        W: FnOnce(&mut train::Trainer) -> Result<T> + Send + 'static,
    {
        let work = work.and_then(|work| {
            self.lease().map(|mut lease| {
                move || {
                    let found = lease.with(work);
                    Ok((found, lease))
                }
            })
        });
        promise(work, move |env, (found, lease)| {
            drop(lease);
            finish(env, guard(env, || found)?)
        })
    }

    /// Returns a value that never changes, unless the trainer is closed.
    fn fixed<T>(&self, env: Env, value: impl FnOnce() -> T) -> napi::Result<T> {
        guard(env, || match &*lock(&self.state) {
            State::Closed => fail!(InvalidArgument, "the trainer is closed"),
            _ => Ok(value()),
        })
    }

    fn x(&self, x: &Array) -> Result<(Tensor, usize)> {
        samples(x, self.sample.dtype, &self.sample.dims, "x", None)
    }

    fn pair(&self, x: &Array, targets: &Array) -> Result<[Tensor; 2]> {
        let (x, count) = self.x(x)?;
        let (targets, _) = samples(targets, self.sample.target, &self.sample.targets, "targets", Some(count))?;
        Ok([x, targets])
    }
}

impl ObjectFinalize for Trainer {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-self.bytes.get()).map(drop)
    }
}

/// Converts the outputs of a network.
fn outputs(env: Env, found: Tensor) -> napi::Result<Unknown<'static>> {
    let values = guard(env, || found.as_slice::<f32>())?;
    floats(env, values)
}

fn measured(_: Env, found: Measured) -> napi::Result<Vec<f64>> {
    Ok(vec![found.loss, found.accuracy])
}

fn sizes(dims: &[usize]) -> Vec<f64> {
    dims.iter().map(|&dim| dim as f64).collect()
}

#[napi]
impl Trainer {
    #[napi(factory, ts_args_type = "description: string, options?: OpenOptions")]
    pub fn create(env: Env, description: Text, options: Option<OpenOptions>) -> napi::Result<Trainer> {
        let made = guard(env, || create(&description, &options.unwrap_or_default()))?;
        Trainer::new(env, made)
    }

    #[napi(ts_args_type = "description: string, options?: OpenOptions", ts_return_type = "Promise<Trainer>")]
    pub fn create_async(description: Text, options: Option<OpenOptions>) -> AsyncTask<Job> {
        promise(Ok(move || create(&description, &options.unwrap_or_default())), Trainer::new)
    }

    /// Frees the network after a running call has ended.
    #[napi]
    pub fn close(&self, env: Env) -> napi::Result<()> {
        let before = std::mem::replace(&mut *lock(&self.state), State::Closed);
        // Freed after the lock is released.
        drop(before);
        env.adjust_external_memory(-self.bytes.take()).map(drop)
    }

    #[napi(getter)]
    pub fn steps(&self, env: Env) -> napi::Result<f64> {
        self.now(env, |trainer| Ok(trainer.steps() as f64))
    }

    #[napi(getter)]
    pub fn batch(&self, env: Env) -> napi::Result<f64> {
        self.fixed(env, || self.batch as f64)
    }

    #[napi(getter)]
    pub fn device(&self, env: Env) -> napi::Result<String> {
        self.fixed(env, || self.device.clone())
    }

    #[napi(getter, ts_return_type = "unknown")]
    pub fn sample(&self, env: Env) -> napi::Result<Unknown<'static>> {
        let sample = self.fixed(env, || self.sample.clone())?;
        let mut object = Object::new(&env)?;
        object.set("dtype", sample.dtype.name())?;
        object.set("dims", sizes(&sample.dims))?;
        object.set("target", sample.target.name())?;
        object.set("targets", sizes(&sample.targets))?;
        object.set("outputs", sizes(&sample.outputs))?;
        // SAFETY: a value of this environment, given to it at once.
        unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }
    }

    #[napi(ts_args_type = "place: string, patience?: number")]
    pub fn join(&self, env: Env, place: Text, given: Option<Number>) -> napi::Result<()> {
        let patience = guard(env, || patience(given))?;
        self.now(env, |trainer| trainer.join(connect(&place, patience)?))
    }

    #[napi(ts_args_type = "place: string, patience?: number", ts_return_type = "Promise<void>")]
    pub fn join_async(&self, place: Text, given: Option<Number>) -> AsyncTask<Job> {
        let work = patience(given)
            .map(|patience| move |trainer: &mut train::Trainer| trainer.join(connect(&place, patience)?));
        self.later(work, |_, ()| Ok(()))
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array")]
    pub fn step(&self, env: Env, x: Array, targets: Array) -> napi::Result<f64> {
        let [x, targets] = guard(env, || self.pair(&x, &targets))?;
        self.now(env, |trainer| trainer.step(&x, &targets).map(f64::from))
    }

    #[napi(
        ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array",
        ts_return_type = "Promise<number>"
    )]
    pub fn step_async(&self, x: Array, targets: Array) -> AsyncTask<Job> {
        let work = self
            .pair(&x, &targets)
            .map(|[x, targets]| move |trainer: &mut train::Trainer| trainer.step(&x, &targets).map(f64::from));
        self.later(work, |_, loss| Ok(loss))
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array, epochs: number")]
    pub fn fit(&self, env: Env, x: Array, targets: Array, epochs: Word) -> napi::Result<f64> {
        let [x, targets] = guard(env, || self.pair(&x, &targets))?;
        self.now(env, |trainer| trainer.fit(&x, &targets, epochs.0, &mut |_, _, _| Ok(())))
    }

    #[napi(
        ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array, epochs: number",
        ts_return_type = "Promise<number>"
    )]
    pub fn fit_async(&self, x: Array, targets: Array, epochs: Word) -> AsyncTask<Job> {
        let work = self.pair(&x, &targets).map(|[x, targets]| {
            move |trainer: &mut train::Trainer| trainer.fit(&x, &targets, epochs.0, &mut |_, _, _| Ok(()))
        });
        self.later(work, |_, loss| Ok(loss))
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array, epochs: number")]
    pub fn fit_told(&self, env: Env, x: Array, targets: Array, epochs: Word) -> napi::Result<Told> {
        guard(env, || {
            let [x, targets] = self.pair(&x, &targets)?;
            let mut lease = self.lease()?;
            begin(move |tell| {
                let loss = lease.with(|trainer| {
                    trainer.fit(&x, &targets, epochs.0, &mut |epoch, step, loss| {
                        tell(vec![f64::from(epoch), step as f64, f64::from(loss)])
                    })
                });
                // As in `later`.
                Ok(finish((loss, lease), |env, (loss, lease)| {
                    drop(lease);
                    number(env, guard(env, || loss)?)
                }))
            })
        })
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array", ts_return_type = "Float32Array")]
    pub fn predict(&self, env: Env, x: Array) -> napi::Result<Unknown<'static>> {
        let (x, _) = guard(env, || self.x(&x))?;
        let found = self.now(env, |trainer| trainer.predict(&x))?;
        outputs(env, found)
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array", ts_return_type = "Promise<Float32Array>")]
    pub fn predict_async(&self, x: Array) -> AsyncTask<Job> {
        let work = self.x(&x).map(|(x, _)| move |trainer: &mut train::Trainer| trainer.predict(&x));
        self.later(work, outputs)
    }

    #[napi(ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array")]
    pub fn evaluate(&self, env: Env, x: Array, targets: Array) -> napi::Result<Vec<f64>> {
        let [x, targets] = guard(env, || self.pair(&x, &targets))?;
        let found = self.now(env, |trainer| trainer.evaluate(&x, &targets))?;
        measured(env, found)
    }

    #[napi(
        ts_args_type = "x: Float32Array | BigInt64Array, targets: Float32Array | BigInt64Array",
        ts_return_type = "Promise<number[]>"
    )]
    pub fn evaluate_async(&self, x: Array, targets: Array) -> AsyncTask<Job> {
        let work = self
            .pair(&x, &targets)
            .map(|[x, targets]| move |trainer: &mut train::Trainer| trainer.evaluate(&x, &targets));
        self.later(work, measured)
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

    /// Names, dimensions and values, one after another.
    #[napi(ts_return_type = "unknown[]")]
    pub fn parameters(&self, env: Env) -> napi::Result<Vec<Unknown<'static>>> {
        let all = self.now(env, |trainer| trainer.trained())?;
        let mut found = Vec::with_capacity(all.len());
        for (name, tensor) in all {
            let mut object = Object::new(&env)?;
            object.set("name", name)?;
            object.set("dims", sizes(tensor.dims()))?;
            object.set("values", outputs(env, tensor)?)?;
            // SAFETY: a value of this environment, given to it at once.
            found.push(unsafe { Unknown::from_napi_value(env.raw(), object.raw()) }?);
        }
        Ok(found)
    }
}
