//! The common interface of all kinds of jobs: samples, a network, an evaluation, a result.

use super::Measured;
use super::adapting::Adapting;
use super::data::{Data, SIDE};
use super::job::{Job, LossSpec, ModelSpec, StorageSpec};
use super::model::{Measure, record};
use super::pairs::Pairs;
use adead::pipeline::Value;
use adead::train::{Network, Predictor, write_tensors};
use adead::{Result, Tensor};
use std::path::Path;

/// The parameters by name.
pub(super) type Parameters = [(String, Tensor)];

/// A kind of job.
pub(super) trait Task {
    /// The number of samples to train with.
    fn samples(&self) -> usize;

    /// Returns the network's inputs for samples to train with in a step.
    fn batch(&self, numbers: &[usize], step: Option<u64>) -> Result<[Tensor; 2]>;

    /// Records the network for `samples` samples. Returns its loss, and the value to evaluate.
    fn record(&self, net: &mut Network, samples: usize) -> Result<(Value, Value)>;

    /// Measures the held-out samples with a network of `batch` samples.
    fn measure(&self, predictor: &Predictor, parameters: &Parameters, batch: usize) -> Result<Measured>;

    /// Writes what was trained.
    fn save(&self, path: &Path, parameters: &Parameters) -> Result<()> {
        write_tensors(path, parameters)
    }
}

/// Reads a job's samples and model.
pub(super) fn of(job: &Job) -> Result<Box<dyn Task>> {
    Ok(match &job.model {
        ModelSpec::Layers { .. } | ModelSpec::Gpt { .. } => {
            Box::new(Plain { data: Data::read(job)?, model: job.model.clone(), storage: job.storage })
        }
        ModelSpec::Sentences { .. } => Box::new(Pairs::read(job)?),
        ModelSpec::Adapters { .. } => Box::new(Adapting::read(job)?),
    })
}

/// A network that begins from nothing.
struct Plain {
    data: Data,
    model: ModelSpec,
    storage: Option<StorageSpec>,
}

impl Task for Plain {
    fn samples(&self) -> usize {
        self.data.len()
    }

    fn batch(&self, numbers: &[usize], step: Option<u64>) -> Result<[Tensor; 2]> {
        self.data.batch(numbers, step)
    }

    fn record(&self, net: &mut Network, samples: usize) -> Result<(Value, Value)> {
        let input: &[usize] = if let ModelSpec::Layers { .. } = self.model { &[1, SIDE, SIDE] } else { &[] };
        let recorded = record(net, &self.model, input, LossSpec::CrossEntropy, samples, self.storage)?;
        Ok((recorded.loss, recorded.logits))
    }

    fn measure(&self, predictor: &Predictor, parameters: &Parameters, batch: usize) -> Result<Measured> {
        let mut measure = Measure::default();
        for (numbers, count) in filled(self.data.held_out(), batch) {
            let [x, targets] = self.data.batch(&numbers, None)?;
            measure.add(&predictor.run(parameters, &[&x, &targets])?[0], &targets, count)?;
        }
        Ok(measure.mean())
    }
}

/// Numbers below `count` in batches, each with the number of those that count. The last batch is filled up with its last number.
pub(super) fn filled(count: usize, batch: usize) -> impl Iterator<Item = (Vec<usize>, usize)> {
    (0..count).step_by(batch).map(move |first| {
        let numbers = (first..first + batch).map(|number| number.min(count - 1)).collect();
        (numbers, batch.min(count - first))
    })
}
