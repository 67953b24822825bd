//! Trains a network that a description defines, with arrays. The other languages' trainers use it.

use super::job::{GradientSum, LossScaleSpec, LossSpec, ModelSpec, OptimizerSpec, StorageSpec};
use super::model::{Measure, Sample, network, record};
use super::{Measured, hash};
use adead::train::ranks::Transport;
use adead::train::{self, Network, Predictor};
use adead::{Context, DType, Element, Error, Result, Status, Tensor};
use serde::Deserialize;
use std::path::Path;

/// A network, its loss and its optimiser. In JSON, with the names of a job's file:
///
/// ```
/// # use adead_models::train::Description;
/// let description: Description = r#"{
///     "model": { "kind": "layers", "layers": ["flatten", { "linear": 256 }, "relu", { "linear": 10 }] },
///     "input": [1, 28, 28], "loss": "cross_entropy", "batch": 50, "seed": 7,
///     "optimizer": { "kind": "adam", "rate": 0.001 }
/// }"#.parse()?;
/// # Ok::<(), adead::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The network.
    pub model: ModelSpec,
    /// A sample's shape. A `gpt` takes it from its context, so it may be omitted.
    #[serde(default)]
    pub input: Vec<usize>,
    /// The loss.
    #[serde(default)]
    pub loss: LossSpec,
    /// The optimiser.
    pub optimizer: OptimizerSpec,
    /// The number of samples in a step.
    pub batch: usize,
    /// The number of shards of a batch, whose gradients are added; it divides the batch, and is a power of two if they are added in a tree.
    #[serde(default = "one")]
    pub shards: usize,
    /// How the shards' gradients are added.
    #[serde(default)]
    pub gradient_sum: GradientSum,
    /// The seed of parameters, dropout and the order of samples.
    #[serde(default)]
    pub seed: u64,
    /// The number of steps of the whole training, which a schedule needs.
    pub steps: Option<u64>,
    /// The loss scale: the factor of the loss before gradients are computed.
    pub loss_scale: Option<LossScaleSpec>,
    /// The type to which values between layers, and their gradients, are rounded.
    pub storage: Option<StorageSpec>,
    /// Whether the backward pass computes values of layers again instead of keeping them.
    #[serde(default)]
    pub recompute: bool,
}

fn one() -> usize {
    1
}

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl std::str::FromStr for Description {
    type Err = Error;

    /// Reads JSON. An `invalid_argument` names the line and the problem.
    fn from_str(text: &str) -> Result<Description> {
        serde_json::from_str(text).or_else(|error| invalid(format!("the training's description: {error}")))
    }
}

/// A network in training. Samples are tensors `[n, …]`. Targets are classes (i64) for cross-entropy, and f32 with the shape of the
/// outputs for the other losses.
pub struct Trainer {
    inner: train::Trainer,
    predictor: Predictor,
    sample: Sample,
    batch: usize,
    shards: usize,
    loss: LossSpec,
    gpt: bool,
}

impl Trainer {
    /// Compiles a network for training on a context. `invalid_argument` or `shape_mismatch` if the description does not define a
    /// network.
    pub fn new(context: &Context, description: &Description) -> Result<Trainer> {
        let Description { model, input, loss, optimizer, batch, shards, seed, steps, loss_scale, storage, .. } =
            description;
        if *batch == 0 {
            return invalid(format!("batch is 0 and shards {shards}; a batch must have a sample"));
        }
        description.gradient_sum.check(*batch, *shards).or_else(invalid)?;
        let optimizer = optimizer.optimizer(*steps).or_else(invalid)?;
        let mut net = network(context, *seed, loss_scale.as_ref(), description.recompute, description.gradient_sum)?;
        let recorded = record(&mut net, model, input, *loss, batch / shards, *storage)?;
        let inner = match shards {
            1 if description.gradient_sum == GradientSum::Tree => train::Trainer::new(net, recorded.loss, optimizer)?,
            _ => train::Trainer::in_shards(net, recorded.loss, optimizer, *shards)?,
        };
        let mut net = Network::for_prediction(context);
        let recorded = record(&mut net, model, input, *loss, *batch, *storage)?;
        Ok(Trainer {
            predictor: Predictor::new(net, &[recorded.logits])?,
            sample: recorded.sample,
            inner,
            batch: *batch,
            shards: *shards,
            loss: *loss,
            gpt: matches!(model, ModelSpec::Gpt { .. }),
        })
    }

    /// Joins other ranks, which then train together: [`train::Trainer::join`].
    pub fn join(&mut self, ranks: Box<dyn Transport>) -> Result<()> {
        self.inner.join(ranks)
    }

    /// Returns the types and shapes of a sample, its target and its output.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Bytes of a step's values: [`train::Trainer::memory`].
    pub fn memory(&self) -> usize {
        self.inner.memory()
    }

    /// The number of samples in a step.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Trains with a batch, and returns the loss before the step. With ranks, pass the whole batch to every rank; each computes its
    /// own part. `shape_mismatch` for a wrong shape, and the errors of [`train::Trainer::step`].
    pub fn step(&mut self, x: &Tensor, targets: &Tensor) -> Result<f32> {
        let count = self.check(x, Some(targets))?;
        if count != self.batch {
            let text = format!("{count} samples; a step takes a batch of {}", self.batch);
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        let (own, shard) = (self.inner.own_shards(), self.batch / self.shards);
        let part = |tensor: &Tensor| tensor.rows(own.start * shard, own.len() * shard);
        self.inner.step(&[&part(x)?, &part(targets)?])
    }

    /// Trains with all samples `epochs` times, in an order that the seed determines for each epoch. Samples that don't fill a batch
    /// are skipped in that epoch. `tell` receives the epoch, the step and the loss after each step; its error ends the training.
    /// Returns the mean loss of the last epoch.
    pub fn fit(
        &mut self,
        x: &Tensor,
        targets: &Tensor,
        epochs: u32,
        tell: &mut dyn FnMut(u32, u64, f32) -> Result<()>,
    ) -> Result<f64> {
        let count = self.check(x, Some(targets))?;
        let per_epoch = count / self.batch;
        if per_epoch == 0 || epochs == 0 {
            return invalid(format!("{count} samples and {epochs} epochs; a batch has {} samples", self.batch));
        }
        let mut mean = 0.0;
        for epoch in 1..=epochs {
            let number = (self.inner.steps() / per_epoch as u64) as u32 + 1;
            let (order, mut sum) = (self.inner.order(number, count), 0.0);
            for numbers in order.chunks_exact(self.batch) {
                let loss = self.step(&rows(x, numbers)?, &rows(targets, numbers)?)?;
                sum += f64::from(loss);
                tell(epoch, self.inner.steps(), loss)?;
            }
            mean = sum / per_epoch as f64;
        }
        Ok(mean)
    }

    /// Computes the outputs for any number of samples, with the averages of the parameters if the optimiser keeps averages.
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        let count = self.check(x, None)?;
        let mut values = Vec::new();
        let dims: Vec<usize> = [&[count][..], &self.sample.outputs].concat();
        let targets = self.sample.no_targets(self.batch)?;
        let parameters = self.trained()?;
        for first in (0..count).step_by(self.batch) {
            // The last batch is filled up with its last sample.
            let numbers: Vec<usize> = (first..first + self.batch).map(|number| number.min(count - 1)).collect();
            let found = self.predictor.run(&parameters, &[&rows(x, &numbers)?, &targets])?;
            let width: usize = self.sample.outputs.iter().product();
            values.extend_from_slice(&found[0].as_slice::<f32>()?[..width * self.batch.min(count - first)]);
        }
        Tensor::new(&values, &dims)
    }

    /// Computes the mean loss and the accuracy on samples with known classes. `unsupported` for a loss without classes.
    pub fn evaluate(&self, x: &Tensor, targets: &Tensor) -> Result<Measured> {
        if self.check(x, Some(targets))? == 0 {
            return invalid("there are no samples to measure".into());
        }
        if self.loss != LossSpec::CrossEntropy {
            let text = "evaluate counts classes, and the loss has none; compare what predict returns";
            return Err(Error::new(Status::Unsupported, text.to_owned()));
        }
        let mut measure = Measure::default();
        measure.add(&self.predict(x)?, targets, x.dims()[0])?;
        Ok(measure.mean())
    }

    /// Returns the parameters by name; their averages, if the optimiser keeps averages.
    pub fn trained(&self) -> Result<Vec<(String, Tensor)>> {
        self.inner.trained()
    }

    /// Returns the SHA-256 of [`Trainer::trained`], as `adead train` prints it.
    pub fn sha256(&self) -> Result<String> {
        hash(&self.trained()?)
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.inner.steps()
    }

    /// Returns the factor of the loss at the next step, if the description has a loss scale.
    pub fn loss_scale(&self) -> Option<f32> {
        self.inner.loss_scale()
    }

    /// Returns the number of steps that were skipped because their gradients were not finite.
    pub fn skipped(&self) -> u64 {
        self.inner.skipped()
    }

    /// Returns the device that trains.
    pub fn device(&self) -> &str {
        self.inner.device()
    }

    /// Writes a checkpoint: [`train::Trainer::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.inner.save(path)
    }

    /// Continues from a checkpoint: [`train::Trainer::load`].
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.inner.load(path)
    }

    /// Returns the number of samples. `shape_mismatch` and `dtype_mismatch` for tensors that are no samples of this network.
    fn check(&self, x: &Tensor, targets: Option<&Tensor>) -> Result<usize> {
        let Some(&count) = x.dims().first() else { return invalid("x has no samples; it is a single number".into()) };
        let both = [
            (Some(x), self.sample.dtype, &self.sample.dims, "x"),
            (targets, self.sample.target, &self.sample.targets, "targets"),
        ];
        for (tensor, dtype, dims, name) in both {
            let Some(tensor) = tensor else { continue };
            if tensor.dtype() != dtype {
                let text = format!("{name} is {}; the network takes {dtype}", tensor.dtype());
                return Err(Error::new(Status::DtypeMismatch, text));
            }
            if tensor.dims().first() != Some(&count) || tensor.dims()[1..] != dims[..] {
                let expected = [&[count][..], dims].concat();
                let text = format!("{name} is {:?}; for {count} samples it must be {expected:?}", tensor.dims());
                return Err(Error::new(Status::ShapeMismatch, text));
            }
        }
        let classes = self.sample.outputs.last().copied().unwrap_or(1) as i64;
        let (ids, what) = if self.gpt { (Some(x), "x") } else { (None, "x") };
        let wanted = targets.filter(|_| self.sample.target == DType::I64).map(|tensor| (tensor, "targets"));
        for (tensor, name) in ids.map(|x| (x, what)).into_iter().chain(wanted) {
            if let Some(at) = tensor.as_slice::<i64>()?.iter().position(|id| !(0..classes).contains(id)) {
                let id = tensor.as_slice::<i64>()?[at];
                return invalid(format!("element {at} of {name} is {id}; there are {classes} classes, from 0 on"));
            }
        }
        Ok(count)
    }
}

/// The samples of these numbers.
fn rows(tensor: &Tensor, numbers: &[usize]) -> Result<Tensor> {
    fn of<T: Element + Copy>(tensor: &Tensor, numbers: &[usize]) -> Result<Tensor> {
        let (values, dims) = (tensor.as_slice::<T>()?, tensor.dims());
        let width: usize = dims[1..].iter().product();
        let rows = numbers.iter().flat_map(|&number| &values[number * width..(number + 1) * width]);
        Tensor::new(&rows.copied().collect::<Vec<T>>(), &[&[numbers.len()][..], &dims[1..]].concat())
    }
    match tensor.dtype() {
        DType::I64 => of::<i64>(tensor, numbers),
        _ => of::<f32>(tensor, numbers),
    }
}
