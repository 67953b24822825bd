//! Samples.

use super::fault;
use super::job::{Job, ModelSpec, Source};
use adead::contract::philox;
use adead::{Result, Status, Tensor};
use serde::Deserialize;
use std::path::Path;

/// Samples to train with, and held-out samples.
pub struct Data {
    kind: Kind,
    /// Where each sample begins.
    train: Vec<usize>,
    held_out: Vec<usize>,
    /// The most pixels by which images are moved, and the seed of it.
    shift: usize,
    seed: u64,
}

enum Kind {
    Images { pixels: Vec<f32>, classes: Vec<i64> },
    Text { bytes: Vec<u8>, context: usize },
}

/// The width and height of a digit's image.
pub(super) const SIDE: usize = 28;
const PIXELS: usize = SIDE * SIDE;

#[derive(Deserialize)]
struct Digits {
    data: Vec<f32>,
}

impl Data {
    /// Reads a job's samples. `io` for a file that can't be read, `invalid_argument` for one that has none.
    pub fn read(job: &Job) -> Result<Data> {
        match (&job.data, &job.model) {
            (Source::Digits { folder, held_out, shift }, _) => {
                let data = Data::digits(&job.path(folder), *held_out)?;
                Ok(Data { shift: *shift, seed: job.seed, ..data })
            }
            (Source::Text { files, held_out }, ModelSpec::Gpt { context, .. }) => {
                let files: Vec<_> = files.iter().map(|file| job.path(file)).collect();
                Data::text(&files, *context, *held_out)
            }
            _ => {
                let text = "these samples are for a model of another kind, which reads them itself";
                Err(adead::Error::new(Status::InvalidArgument, text.to_owned()))
            }
        }
    }

    fn digits(folder: &Path, held_out: usize) -> Result<Data> {
        let (mut pixels, mut classes, mut train, mut held) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for digit in 0..10 {
            let path = folder.join(format!("{digit}.json"));
            let text = std::fs::read(&path).map_err(|error| fault(Status::Io, &path, error))?;
            let own: Digits =
                serde_json::from_slice(&text).map_err(|error| fault(Status::InvalidArgument, &path, error))?;
            if own.data.is_empty() || !own.data.len().is_multiple_of(PIXELS) {
                let text = format!("{} numbers; images of {SIDE} × {SIDE} have a multiple of {PIXELS}", own.data.len());
                return Err(fault(Status::InvalidArgument, &path, text));
            }
            for number in 0..own.data.len() / PIXELS {
                (if number % held_out == held_out - 1 { &mut held } else { &mut train }).push(classes.len());
                classes.push(digit);
            }
            pixels.extend(own.data);
        }
        Ok(Data { kind: Kind::Images { pixels, classes }, train, held_out: held, shift: 0, seed: 0 })
    }

    fn text(files: &[std::path::PathBuf], context: usize, held_out: usize) -> Result<Data> {
        let (mut bytes, mut train, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for path in files {
            let own = std::fs::read(path).map_err(|error| fault(Status::Io, path, error))?;
            let (first, cut) = (bytes.len(), own.len() / held_out * (held_out - 1));
            // A sample needs the byte behind it too. Samples overlap by half.
            let begins = |from: usize, to: usize| (from..to.saturating_sub(context)).step_by((context / 2).max(1));
            train.extend(begins(first, first + cut));
            held.extend(begins(first + cut, first + own.len()));
            bytes.extend(own);
        }
        if train.is_empty() || held.is_empty() {
            let path = files.first().map_or(Path::new("data"), |path| path.as_path());
            let text =
                format!("{} bytes are too few for samples of {context} to train with and to hold out", bytes.len());
            return Err(fault(Status::InvalidArgument, path, text));
        }
        Ok(Data { kind: Kind::Text { bytes, context }, train, held_out: held, shift: 0, seed: 0 })
    }

    /// Samples to train with.
    pub fn len(&self) -> usize {
        self.train.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.train.is_empty()
    }

    /// Samples that are held out.
    pub fn held_out(&self) -> usize {
        self.held_out.len()
    }

    /// An image moved by pixels that are drawn by the seed, the step and the sample; zeros come in.
    fn moved<'a>(&self, image: &'a [f32], sample: usize, step: u64) -> impl Iterator<Item = f32> + use<'a> {
        /// After the trainer's own streams.
        const PURPOSE: u32 = 4;
        let [a, b, ..] = philox([sample as u32, step as u32, 0, PURPOSE], [self.seed as u32, (self.seed >> 32) as u32]);
        let by =
            [a, b].map(|word| ((u64::from(word) * (2 * self.shift as u64 + 1)) >> 32) as isize - self.shift as isize);
        (0..PIXELS).map(move |at| {
            let from = [(at / SIDE) as isize + by[0], (at % SIDE) as isize + by[1]];
            let inside = from.iter().all(|place| (0..SIDE as isize).contains(place));
            if inside { image[from[0] as usize * SIDE + from[1] as usize] } else { 0.0 }
        })
    }

    /// The inputs and the targets of samples to train with in a step, or without a step of held-out ones.
    pub(super) fn batch(&self, numbers: &[usize], step: Option<u64>) -> Result<[Tensor; 2]> {
        let samples = if step.is_none() { &self.held_out } else { &self.train };
        let samples = numbers.iter().map(|&number| samples[number]);
        match &self.kind {
            Kind::Images { pixels, classes } => {
                let mut images = Vec::with_capacity(numbers.len() * PIXELS);
                for at in samples.clone() {
                    let image = &pixels[at * PIXELS..(at + 1) * PIXELS];
                    match step {
                        Some(step) if self.shift > 0 => images.extend(self.moved(image, at, step)),
                        _ => images.extend_from_slice(image),
                    }
                }
                let classes: Vec<i64> = samples.map(|at| classes[at]).collect();
                Ok([Tensor::new(&images, &[numbers.len(), 1, SIDE, SIDE])?, Tensor::new(&classes, &[numbers.len()])?])
            }
            Kind::Text { bytes, context } => {
                let part = |behind: usize| {
                    let ids = samples.clone().flat_map(|at| &bytes[at + behind..at + behind + context]);
                    Tensor::new(&ids.map(|&byte| i64::from(byte)).collect::<Vec<i64>>(), &[numbers.len(), *context])
                };
                Ok([part(0)?, part(1)?])
            }
        }
    }
}
