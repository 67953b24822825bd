//! A job's run.

use super::fault;
use super::job::{GradientSum, Job};
use super::model::network;
use super::task;
use adead::train::ranks::Transport;
use adead::train::{Network, Predictor, Trainer};
use adead::{Context, Error, Result, Status, Tensor};
use std::time::{Duration, Instant};

/// An event of a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// The end of a step.
    Step {
        /// The epoch, counted from 1.
        epoch: u32,
        /// The number of steps so far.
        step: u64,
        /// The number of all steps of the job.
        steps: u64,
        /// The loss of the step's batch.
        loss: f32,
    },
    /// The end of an epoch.
    Epoch(Epoch),
}

/// The results of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// Its number, counted from 1.
    pub number: u32,
    /// The mean loss of its batches.
    pub loss: f64,
    /// The mean loss of the held-out samples.
    pub held_out_loss: f64,
    /// The fraction of the held-out samples, or of their bytes, whose most likely class is the right one.
    pub accuracy: f64,
    /// Its duration, including its evaluation.
    pub took: Duration,
}

/// The result of a run.
pub struct Outcome {
    /// The epochs of this run. Only rank 0 has them.
    pub epochs: Vec<Epoch>,
    /// The number of steps, including those before a checkpoint.
    pub steps: u64,
    /// The parameters by name; their averages, if the job keeps averages.
    pub parameters: Vec<(String, Tensor)>,
    /// The device that trained the network.
    pub device: String,
}

/// Options for running a job.
#[derive(Default)]
pub struct RunOptions {
    /// Whether to continue from the job's checkpoint, if it exists. The bits are the same as without the interruption.
    pub resume: bool,
    /// The ranks to train with. Every rank needs the job and its data. Only rank 0 reads and writes the checkpoint, and evaluates
    /// the held-out samples.
    pub ranks: Option<Box<dyn Transport>>,
}

impl Job {
    /// Runs the job on a context. `tell` is called after every step and epoch; its error ends the run.
    ///
    /// # Errors
    /// Those of the files, of the network's operations, of [`Trainer::step`] and of [`Trainer::join`].
    pub fn run(
        &self,
        context: &Context,
        options: RunOptions,
        tell: &mut dyn FnMut(&Event) -> Result<()>,
    ) -> Result<Outcome> {
        let RunOptions { resume, ranks } = options;
        let first = ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0);
        let task = task::of(self)?;
        let per_epoch = (task.samples() / self.batch) as u64;
        if per_epoch == 0 {
            let text = format!("a batch of {} is more than the {} samples to train with", self.batch, task.samples());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let steps = per_epoch * u64::from(self.epochs);
        let optimizer =
            self.optimizer.optimizer(Some(steps)).map_err(|text| Error::new(Status::InvalidArgument, text))?;
        let mut net = network(context, self.seed, self.loss_scale.as_ref(), self.recompute, self.gradient_sum)?;
        let (loss, _) = task.record(&mut net, self.batch / self.shards)?;
        let mut trainer = match self.shards {
            1 if ranks.is_none() && self.gradient_sum == GradientSum::Tree => Trainer::new(net, loss, optimizer)?,
            shards => Trainer::in_shards(net, loss, optimizer, shards)?,
        };
        let mut net = Network::for_prediction(context);
        let (_, found) = task.record(&mut net, self.batch)?;
        let predictor = Predictor::new(net, &[found])?;
        let file = self.checkpoint.as_ref().map(|checkpoint| (self.path(&checkpoint.file), checkpoint.every.max(1)));
        if let Some((file, _)) = file.as_ref().filter(|(file, _)| resume && first && file.exists()) {
            trainer.load(file)?;
            if trainer.steps() > steps || trainer.steps() % per_epoch != 0 {
                let text = format!("it has {} steps; the job has {steps}, {per_epoch} an epoch", trainer.steps());
                return Err(fault(Status::InvalidArgument, file, text));
            }
        }
        if let Some(ranks) = ranks {
            trainer.join(ranks)?;
        }
        let (mut epochs, shard, own) = (Vec::new(), self.batch / self.shards, trainer.own_shards());
        let begin = (trainer.steps() / per_epoch) as u32 + 1;
        for number in begin..=self.epochs {
            let (start, mut sum) = (Instant::now(), 0.0);
            let order = trainer.order(number, task.samples());
            for numbers in order.chunks_exact(self.batch) {
                let numbers = &numbers[own.start * shard..own.end * shard];
                let [x, targets] = task.batch(numbers, Some(trainer.steps()))?;
                let loss = trainer.step(&[&x, &targets])?;
                sum += f64::from(loss);
                tell(&Event::Step { epoch: number, step: trainer.steps(), steps, loss })?;
            }
            if !first {
                continue;
            }
            let held_out = task.measure(&predictor, &trainer.trained()?, self.batch)?;
            if let Some((file, _)) = file.as_ref().filter(|(_, every)| number % every == 0 || number == self.epochs) {
                trainer.save(file)?;
            }
            let epoch = Epoch {
                number,
                loss: sum / per_epoch as f64,
                held_out_loss: held_out.loss,
                accuracy: held_out.accuracy,
                took: start.elapsed(),
            };
            tell(&Event::Epoch(epoch.clone()))?;
            epochs.push(epoch);
        }
        let (steps, device, parameters) = (trainer.steps(), trainer.device().to_owned(), trainer.trained()?);
        if let Some(result) = self.result.as_ref().filter(|_| first) {
            task.save(&self.path(result), &parameters)?;
        }
        Ok(Outcome { epochs, steps, parameters, device })
    }
}
