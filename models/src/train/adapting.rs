//! Jobs that train low-rank adapters of a language model with texts.

use super::job::{Job, ModelSpec, Source};
use super::model::Measure;
use super::task::{Parameters, Task, filled};
use super::{Measured, fault};
use crate::text::{ADAPTERS_SCALE, Adapted, AdaptersWanted};
use adead::pipeline::Value;
use adead::train::{Network, Predictor, losses, write_tensors};
use adead::{DType, Error, Result, Status, Tensor};
use std::path::Path;

/// The job's model, and its texts as tokens.
pub(super) struct Adapting {
    model: Adapted,
    tokens: Vec<u32>,
    /// Tokens of a sample.
    context: usize,
    /// Where each sample begins.
    train: Vec<usize>,
    held_out: Vec<usize>,
}

impl Adapting {
    /// Reads the model and the texts. `io` for a file that can't be read, `invalid_argument` for texts that are too short, and the errors
    /// of a model's file.
    pub fn read(job: &Job) -> Result<Adapting> {
        let (ModelSpec::Adapters { file, context, rank, alpha, on, dropout }, Source::Text { files, held_out: one_in }) =
            (&job.model, &job.data)
        else {
            return Err(Error::new(Status::InvalidArgument, "texts train adapters".to_owned()));
        };
        let (path, context) = (job.path(file), *context);
        let scale = alpha.unwrap_or(2.0 * *rank as f32) / (*rank).max(1) as f32;
        let model = Adapted::open(&path, AdaptersWanted { rank: *rank, scale, on: on.clone(), dropout: *dropout })?;
        if context == 0 || context > model.positions() {
            let text =
                format!("model.context is {context}; it must be from 1 to the {} of the model", model.positions());
            return Err(fault(Status::InvalidArgument, &path, text));
        }
        let (mut tokens, mut train, mut held_out) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let path = job.path(file);
            let text = std::fs::read_to_string(&path).map_err(|error| fault(Status::Io, &path, error))?;
            let own = model.tokens(&text)?;
            let (first, cut) = (tokens.len(), own.len() / one_in * (one_in - 1));
            // A sample needs the token behind it too.
            let begins = |from: usize, to: usize| (from..to.saturating_sub(context)).step_by(context);
            train.extend(begins(first, first + cut));
            held_out.extend(begins(first + cut, first + own.len()));
            tokens.extend(own);
        }
        if train.is_empty() || held_out.is_empty() {
            let path = files.first().map_or(Path::new("data"), |path| path.as_path());
            let text =
                format!("{} tokens are too few for samples of {context} to train with and to hold out", tokens.len());
            return Err(fault(Status::InvalidArgument, path, text));
        }
        Ok(Adapting { model, tokens, context, train, held_out })
    }

    /// The embeddings of samples' tokens, and the tokens behind them.
    fn tensors(&self, begins: &[usize]) -> Result<[Tensor; 2]> {
        let tokens: Vec<u32> = begins.iter().flat_map(|&at| &self.tokens[at..at + self.context]).copied().collect();
        let targets = begins.iter().flat_map(|&at| &self.tokens[at + 1..=at + self.context]);
        let targets: Vec<i64> = targets.map(|&token| token.into()).collect();
        let (count, width) = (begins.len(), self.model.width());
        let x = self.model.embedded(&tokens)?.reshape(&[count, self.context, width])?;
        Ok([x, Tensor::new(&targets, &[count, self.context])?])
    }
}

impl Task for Adapting {
    fn samples(&self) -> usize {
        self.train.len()
    }

    fn batch(&self, numbers: &[usize], _: Option<u64>) -> Result<[Tensor; 2]> {
        self.tensors(&numbers.iter().map(|&number| self.train[number]).collect::<Vec<_>>())
    }

    fn record(&self, net: &mut Network, samples: usize) -> Result<(Value, Value)> {
        let x = net.input(DType::F32, &[samples, self.context, self.model.width()])?;
        let targets = net.input(DType::I64, &[samples, self.context])?;
        let logits = self.model.record(net, x)?;
        Ok((losses::cross_entropy(net, logits, targets)?, logits))
    }

    fn measure(&self, predictor: &Predictor, parameters: &Parameters, batch: usize) -> Result<Measured> {
        let mut measure = Measure::default();
        for (numbers, count) in filled(self.held_out.len(), batch) {
            let begins: Vec<usize> = numbers.iter().map(|&number| self.held_out[number]).collect();
            let [x, targets] = self.tensors(&begins)?;
            measure.add(&predictor.run(parameters, &[&x, &targets])?[0], &targets, count)?;
        }
        Ok(measure.mean())
    }

    fn save(&self, path: &Path, parameters: &Parameters) -> Result<()> {
        let scale = (ADAPTERS_SCALE.to_owned(), Tensor::new(&[self.model.scale()], &[1])?);
        write_tensors(path, &[parameters, &[scale]].concat())
    }
}
