//! The encoder: it computes a row for each sentence.

use super::batches::batches;
use super::divide::{Worker, divide};
use super::embeddings::Embeddings;
use super::files::Files;
use super::model::Model;
use super::tokens::{Tokens, Words};
use crate::spread::spread;
use adead::dispatch::Kind;
use adead::{Context, Error, Result, Status, Tensor, single_threaded};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Options for batching sentences. They never change a bit of a result. `Default` suits the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// The most sentences of a batch. With `None`, a batch on a GPU has at most 256 sentences. On the CPU it has about 512 tokens,
    /// and each thread computes its own batches if there are enough. Several devices share the batches, which are smaller if there
    /// are few sentences.
    pub batch: Option<usize>,
    /// Whether sentences of a batch are padded to the longest one. `None` pads only on a GPU.
    pub padded: Option<bool>,
}

/// The most tokens of a batch, for each sentence that it may have: a batch of long sentences has fewer of them.
const TOKENS: usize = 128;

/// The most sentences of a batch on a GPU.
const ON_GPU: usize = 256;

/// The tokens of a batch on the CPU for each thread, and of the smallest batch: intermediate values then stay in the caches.
const FOR_THREAD: usize = 256;
const LEAST: usize = 512;

/// The fewest batches for each thread, if threads have their own batches.
const SHARES: usize = 4;

/// The number of batches in flight at once on a GPU.
const DEPTH: usize = 3;

/// The fewest batches for each of several devices, as long as batches have [`FEW`] sentences.
const FOR_DEVICE: usize = 6;
const FEW: usize = 16;

/// The most threads that tokenize at once: eight are no faster than an H200 that computes in exact integers.
const MOST_TOKENIZERS: usize = 16;

/// A model of sentence-transformers: tokenizer, encoder, pooling. Clones share the model. Threads may share an encoder.
#[derive(Clone)]
pub struct SentenceEncoder {
    pub(crate) words: Arc<Words>,
    /// If several devices work as one: the model on each of them, the CPU's last.
    models: Arc<[Model]>,
    context: Context,
    most: usize,
}

/// A device with the batches that it claims.
struct Share<'a> {
    model: &'a Model,
    tokens: &'a [Tokens],
    batches: &'a [Vec<usize>],
    padded: Option<bool>,
}

impl Worker for Share<'_> {
    type Sent = Tensor;
    type Done = Vec<f32>;

    fn is_slow(&self) -> bool {
        !self.model.is_on_gpu()
    }

    fn depth(&self) -> usize {
        if self.model.is_on_gpu() { DEPTH } else { 1 }
    }

    fn start(&self, batch: usize) -> Result<Tensor> {
        let ids: Vec<&[u32]> = self.batches[batch].iter().map(|&sentence| &self.tokens[sentence].ids[..]).collect();
        self.model.forward(&ids, self.padded.unwrap_or(self.model.is_on_gpu()))
    }

    fn wait(&self, _: usize, sent: Tensor) -> Result<Vec<f32>> {
        sent.to_vec()
    }
}

impl SentenceEncoder {
    /// Opens a model's folder for a context's device. It reads `config.json`, `tokenizer.json` and `model.safetensors`, and the
    /// files of sentence-transformers: `modules.json`, `sentence_bert_config.json` and `1_Pooling/config.json`. BERT with mean
    /// pooling is supported.
    ///
    /// Errors: `io` for a missing file, `invalid_argument` or `shape_mismatch` for one that is malformed or does not fit the
    /// others, `unsupported` for another kind of model.
    pub fn open(folder: impl AsRef<Path>, context: &Context) -> Result<SentenceEncoder> {
        let folder = folder.as_ref();
        let files = Files::read(folder)?;
        let words = Words::new(&folder.join("tokenizer.json"), &files.tokenizer, files.most, files.words)?;
        let dispatcher = context.dispatcher();
        let several = dispatcher.is_hybrid() && dispatcher.forced().is_none() && dispatcher.profiles().len() > 1;
        let model = |context: &Context| Model::new(&files, &context.undivided()?);
        let models: Result<Vec<Model>> = if several {
            let (cpus, gpus): (Vec<_>, Vec<_>) = dispatcher.profiles().iter().partition(|it| it.kind == Kind::Cpu);
            gpus.into_iter().chain(cpus).map(|profile| model(&context.alone(&profile.id)?)).collect()
        } else {
            Ok(vec![model(context)?])
        };
        let (models, context) = (models?.into(), context.clone());
        Ok(SentenceEncoder { words: Arc::new(words), models, context, most: files.most })
    }

    /// Returns the number of values in an embedding.
    pub fn width(&self) -> usize {
        self.models[0].width()
    }

    /// Returns the most tokens of a sentence, including the special ones at its ends. Further tokens have no effect.
    pub fn max_tokens(&self) -> usize {
        self.most
    }

    /// Returns the context that computes.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Computes the embeddings of sentences, in order.
    pub fn encode<S: AsRef<str> + Sync>(&self, sentences: &[S]) -> Result<Embeddings> {
        self.encode_with(sentences, &EncodeOptions::default())
    }

    /// Computes the embeddings of sentences with options. `invalid_argument` for batches of 0 sentences.
    pub fn encode_with<S: AsRef<str> + Sync>(&self, sentences: &[S], options: &EncodeOptions) -> Result<Embeddings> {
        let tokens = self.words.all(sentences, self.tokenizers())?;
        self.encode_tokens(&tokens, options, &mut |_| Ok(()))
    }

    /// Returns the number of threads that tokenize at once: on the CPU, no more than compute.
    pub(crate) fn tokenizers(&self) -> usize {
        let device = self.context().device_info();
        let most = if device.id == "cpu" { device.units } else { usize::MAX };
        std::thread::available_parallelism().map_or(1, usize::from).min(MOST_TOKENIZERS).min(most)
    }

    /// Computes the embeddings of tokenized sentences. `done` receives the number of newly computed sentences each time, and may end the
    /// work with an error.
    pub(crate) fn encode_tokens(
        &self,
        tokens: &[Tokens],
        options: &EncodeOptions,
        done: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Embeddings> {
        let limits = self.limits(tokens, options)?;
        let batches = batches(tokens, limits.sentences, limits.tokens);
        let width = self.width();
        let mut values = vec![0.0; tokens.len() * width];
        let mut put = |batch: &[usize], rows: &[f32]| {
            for (&sentence, row) in batch.iter().zip(rows.chunks_exact(width)) {
                values[sentence * width..][..width].copy_from_slice(row);
            }
            done(batch.len())
        };
        let [model] = &*self.models else {
            let padded = options.padded;
            let share = |model| Share { model, tokens, batches: &batches, padded };
            let workers: Vec<Share<'_>> = self.models.iter().map(share).collect();
            let cost = |batch: &Vec<usize>| batch.iter().map(|&sentence| tokens[sentence].ids.len() as f64).sum();
            let costs: Vec<f64> = batches.iter().map(cost).collect();
            divide(&workers, &costs, |batch, rows| put(&batches[batch], &rows))?;
            return Ok(Embeddings { values, width, truncated: truncated(tokens) });
        };
        let mut finish = |batch: &[usize], rows: Tensor| -> Result<()> { put(batch, rows.as_slice()?) };
        let forward = |batch: &Vec<usize>| {
            let ids: Vec<&[u32]> = batch.iter().map(|&sentence| &tokens[sentence].ids[..]).collect();
            model.forward(&ids, limits.padded)
        };
        if limits.workers > 1 && batches.len() >= limits.workers {
            let forward = |batch: &Vec<usize>| single_threaded(|| forward(batch));
            spread(&batches, limits.workers, &forward, |batch, rows| finish(batch, rows))?;
        } else {
            // On the CPU a batch is computed when `forward` returns.
            let depth = if model.is_on_gpu() { DEPTH } else { 1 };
            let mut under_way: VecDeque<(&Vec<usize>, Tensor)> = VecDeque::new();
            for batch in &batches {
                under_way.push_back((batch, forward(batch)?));
                while under_way.len() >= depth {
                    under_way.pop_front().map_or(Ok(()), |(batch, rows)| finish(batch, rows))?;
                }
            }
            under_way.into_iter().try_for_each(|(batch, rows)| finish(batch, rows))?;
        }
        Ok(Embeddings { values, width, truncated: truncated(tokens) })
    }

    /// Returns how to batch these sentences. `invalid_argument` for batches of 0 sentences.
    fn limits(&self, tokens: &[Tokens], options: &EncodeOptions) -> Result<Limits> {
        let devices = self.models.len();
        let gpu = self.models[0].is_on_gpu();
        let padded = options.padded.unwrap_or(gpu);
        let chosen = |sentences, tokens| Limits { sentences, tokens, padded, workers: 1 };
        let together = gpu || self.context.dispatcher().is_hybrid();
        let threads = if together { 1 } else { self.context.device_info().units };
        match options.batch {
            Some(0) => Err(Error::new(Status::InvalidArgument, "a batch has at least 1 sentence, not 0")),
            Some(most) => Ok(chosen(most, most.saturating_mul(TOKENS))),
            // Enough batches for all to end at about one time.
            None if devices > 1 => {
                let most = (tokens.len() / (devices * FOR_DEVICE)).clamp(FEW, ON_GPU);
                Ok(chosen(most, most * TOKENS))
            }
            None if together => Ok(chosen(ON_GPU, ON_GPU * TOKENS)),
            None => {
                let all: usize = tokens.iter().map(|sentence| sentence.ids.len()).sum();
                // A thread that has batches of its own waits for nobody, if there are enough to end at one time.
                let share = all / (threads * SHARES);
                if threads > 1 && share >= FOR_THREAD {
                    return Ok(Limits { workers: threads, ..chosen(usize::MAX, share.min(LEAST)) });
                }
                Ok(chosen(usize::MAX, LEAST.max(FOR_THREAD * threads)))
            }
        }
    }
}

/// Returns the indices of sentences that were cut.
fn truncated(tokens: &[Tokens]) -> Vec<usize> {
    (0..tokens.len()).filter(|&sentence| tokens[sentence].truncated).collect()
}

/// How sentences are batched.
struct Limits {
    /// The most sentences of a batch.
    sentences: usize,
    tokens: usize,
    padded: bool,
    /// The number of threads with their own batches.
    workers: usize,
}

impl std::fmt::Debug for SentenceEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SentenceEncoder({} values, {} tokens at most, {:?})", self.width(), self.most, self.context())
    }
}
