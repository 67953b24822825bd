//! Jobs that train a model of sentence-transformers with pairs of sentences.

use super::job::{Job, ModelSpec, Source};
use super::task::{Parameters, Task, filled};
use super::{Measured, fault};
use crate::sentences::Tuned;
use adead::pipeline::Value;
use adead::train::{Network, Predictor, losses};
use adead::{Attrs, DType, Error, Op, PerAxis, Result, Status, Tensor};
use std::path::Path;

/// The job's model, and its pairs as tokens.
pub(super) struct Pairs {
    model: Tuned,
    scale: f32,
    dropout: f32,
    train: Vec<[Vec<u32>; 2]>,
    held_out: Vec<[Vec<u32>; 2]>,
}

impl Pairs {
    /// Reads the model and the pairs. `io` for a file that can't be read, `invalid_argument` for a line that is no pair, and the errors
    /// of a model's folder.
    pub fn read(job: &Job) -> Result<Pairs> {
        let (ModelSpec::Sentences { folder, length, scale, dropout }, Source::Pairs { files, held_out: one_in }) =
            (&job.model, &job.data)
        else {
            return Err(Error::new(Status::InvalidArgument, "pairs train a model of sentences".to_owned()));
        };
        let folder = job.path(folder);
        if job.result.as_ref().is_some_and(|result| same(&job.path(result), &folder)) {
            let text = "the result would replace the model that the job begins from; name another folder";
            return Err(fault(Status::InvalidArgument, &folder, text));
        }
        let mut texts = Vec::new();
        for file in files {
            let path = job.path(file);
            let text = std::fs::read_to_string(&path).map_err(|error| fault(Status::Io, &path, error))?;
            for (number, line) in text.lines().enumerate() {
                let Some((a, b)) = line.split_once('\t').filter(|(_, b)| !b.contains('\t')) else {
                    let text = format!("line {} has no pair: two sentences with one tab between them", number + 1);
                    return Err(fault(Status::InvalidArgument, &path, text));
                };
                texts.push([a.to_owned(), b.to_owned()]);
            }
        }
        let (model, tokens) = Tuned::open(&folder, *length, &texts)?;
        let (mut train, mut held_out) = (Vec::new(), Vec::new());
        for (number, pair) in tokens.into_iter().enumerate() {
            (if number % one_in == one_in - 1 { &mut held_out } else { &mut train }).push(pair);
        }
        if held_out.len() < 2 {
            let text = format!("{} pairs, and one in {one_in} is held out: that must be 2 or more", texts.len());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        Ok(Pairs { model, scale: *scale, dropout: *dropout, train, held_out })
    }

    /// Pairs as the network takes them: ids and which of them count, `[pairs, 2, length]`.
    fn tensors<'a>(&self, pairs: impl ExactSizeIterator<Item = &'a [Vec<u32>; 2]>) -> Result<[Tensor; 2]> {
        let (count, length) = (pairs.len(), self.model.length());
        let (mut ids, mut kept) = (Vec::new(), Vec::new());
        for sentence in pairs.flatten() {
            // What is not kept has no effect.
            ids.extend((0..length).map(|at| i64::from(sentence.get(at).copied().unwrap_or_default())));
            kept.extend((0..length).map(|at| if at < sentence.len() { 1.0f32 } else { 0.0 }));
        }
        let dims = [count, 2, length];
        Ok([Tensor::new(&ids, &dims)?, Tensor::new(&kept, &dims)?])
    }
}

/// Whether two paths are one folder.
fn same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl Task for Pairs {
    fn samples(&self) -> usize {
        self.train.len()
    }

    fn batch(&self, numbers: &[usize], _: Option<u64>) -> Result<[Tensor; 2]> {
        self.tensors(numbers.iter().map(|&number| &self.train[number]))
    }

    fn record(&self, net: &mut Network, samples: usize) -> Result<(Value, Value)> {
        let length = self.model.length();
        let ids = net.input(DType::I64, &[samples, 2, length])?;
        let kept = net.input(DType::F32, &[samples, 2, length])?;
        let rows = self.model.record(net, ids, kept, self.dropout)?;
        let width = self.model.width();
        let pairs = net.pipeline().reshape(rows, &[samples, 2, width])?;
        let side = |net: &mut Network, number: i32| {
            let (start, stop) = (PerAxis::new(&[0, number])?, PerAxis::new(&[samples as i32, number + 1])?);
            let own = net.op_with(Op::Slice, &Attrs { start, stop, ..Attrs::DEFAULT }, &[pairs])?;
            net.pipeline().reshape(own, &[samples, width])
        };
        let (a, b) = (side(net, 0)?, side(net, 1)?);
        Ok((losses::contrastive(net, a, b, self.scale)?, rows))
    }

    /// Compares each first sentence with the second ones of all held-out pairs.
    fn measure(&self, predictor: &Predictor, parameters: &Parameters, batch: usize) -> Result<Measured> {
        let width = self.model.width();
        let mut rows: [Vec<Vec<f64>>; 2] = [Vec::new(), Vec::new()];
        for (numbers, count) in filled(self.held_out.len(), batch) {
            let [ids, kept] = self.tensors(numbers.iter().map(|&number| &self.held_out[number]))?;
            let found = predictor.run(parameters, &[&ids, &kept])?;
            for (at, row) in found[0].as_slice::<f32>()?.chunks(width).take(2 * count).enumerate() {
                let length = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt().max(1e-12);
                rows[at % 2].push(row.iter().map(|&x| f64::from(x) / length).collect());
            }
        }
        let (mut loss, mut right) = (0.0, 0);
        for (number, a) in rows[0].iter().enumerate() {
            let scores =
                rows[1].iter().map(|b| f64::from(self.scale) * a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>());
            let scores: Vec<f64> = scores.collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            loss += scores.iter().map(|score| (score - most).exp()).sum::<f64>().ln() - (scores[number] - most);
            right += usize::from(scores.iter().position(|&score| score == most) == Some(number));
        }
        let count = rows[0].len() as f64;
        Ok(Measured { loss: loss / count, accuracy: right as f64 / count })
    }

    fn save(&self, path: &Path, parameters: &Parameters) -> Result<()> {
        self.model.save(path, parameters)
    }
}
