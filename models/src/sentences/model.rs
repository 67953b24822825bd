//! BERT as sentence-transformers uses it: embeddings of words, positions and types, the encoder, the mean of each sentence's
//! tokens, normalisation.

use super::ATTENTION;
use super::files::Files;
use adead::nn::{Embedding, Group, Layer, LayerNorm, Sequences, TransformerEncoder};
use adead::{Attrs, Axis, Context, Op, Result, Tensor, device::DeviceKind};

pub(crate) struct Model {
    context: Context,
    words: Embedding,
    /// Of a position and the one type that sentences have.
    positions: Embedding,
    norm: LayerNorm,
    encoder: TransformerEncoder,
    normalised: bool,
}

/// The least length that an embedding is divided by, as in sentence-transformers.
const LEAST_LENGTH: f32 = 1e-12;

impl Model {
    pub fn new(files: &Files, context: &Context) -> Result<Model> {
        let Files { weights, config, .. } = files;
        let root = files.root();
        let table = |name: &str, rows| {
            weights.tensor(&format!("{root}embeddings.{name}_embeddings.weight"), &[rows, config.width])
        };
        files.check_layers()?;
        let encoder =
            TransformerEncoder::load(weights, &format!("{root}encoder.layer"), files.layers, config, context)?;
        let (positions, types) = (table("position", files.positions)?, table("token_type", files.types)?);
        Ok(Model {
            context: context.clone(),
            words: Embedding::new(&table("word", files.words)?, context)?,
            positions: Embedding::new(&context.add(&positions, &types.rows(0, 1)?)?, context)?,
            norm: LayerNorm::load(weights, &format!("{root}embeddings.LayerNorm"), config.width, config.eps, context)?,
            encoder: encoder.with_attention(ATTENTION),
            normalised: files.normalised,
        })
    }

    /// Values of an embedding.
    pub fn width(&self) -> usize {
        self.words.width()
    }

    /// Whether it computes on a GPU, where several batches may be under way.
    pub fn is_on_gpu(&self) -> bool {
        self.context.device_info().kind != DeviceKind::Cpu
    }

    /// The embeddings of sentences, given by their tokens, on their way to the host. With `padded` all are computed at the
    /// length of the longest; else those of one length, which follow each other, together.
    pub fn forward(&self, sentences: &[&[u32]], padded: bool) -> Result<Tensor> {
        let longest = sentences.iter().map(|ids| ids.len()).max().unwrap_or(0);
        let (mut ids, mut positions) = (Vec::new(), Vec::new());
        for sentence in sentences {
            let length = if padded { longest } else { sentence.len() };
            ids.extend_from_slice(sentence);
            // Of the rest nothing is seen; token 0 is in every table.
            ids.resize(ids.len() + length - sentence.len(), 0);
            positions.extend(0..length as u32);
        }
        let groups = if padded {
            let lengths: Vec<usize> = sentences.iter().map(|ids| ids.len()).collect();
            vec![Group::padded(&lengths, longest)?]
        } else {
            let alike = sentences.chunk_by(|a, b| a.len() == b.len());
            alike.map(|group| Group::new(group.len(), group[0].len())).collect()
        };
        let rows = ids.len();
        let words = self.words.forward(&Tensor::new(&ids, &[rows])?)?;
        let places = self.positions.forward(&Tensor::new(&positions, &[rows])?)?;
        let sum = self.context.add(&words, &places)?;
        let sequences = Sequences::new(groups);
        let tokens = self.encoder.forward(&self.norm.forward(&sum)?, &sequences)?;
        let pooled = match padded {
            true => self.pooled_of_padded(&tokens, sentences, longest)?,
            false => self.pooled(&tokens, &sequences, sentences.len())?,
        };
        if self.normalised { self.normalise(&pooled)? } else { pooled }.to_cpu()
    }

    /// The mean of each sentence's rows.
    fn pooled(&self, tokens: &Tensor, sequences: &Sequences, sentences: usize) -> Result<Tensor> {
        let attrs = Attrs { axis: Axis::At(1), ..Attrs::default() };
        let (mut means, mut first) = (Vec::new(), 0);
        for group in sequences.groups() {
            let own = tokens.rows(first, group.rows())?.reshape(&[group.count(), group.length(), self.width()])?;
            means.push(self.context.run(Op::Mean, &attrs, &[Some(&own)])?);
            first += group.rows();
        }
        if let [mean] = &means[..] {
            return Ok(mean.clone());
        }
        let joined = self.context.concat(&means.iter().collect::<Vec<_>>(), 0)?;
        joined.reshape(&[sentences, self.width()])
    }

    /// The same where rows behind a sentence's own are padding. Zeros change no bit of a sum, so it has those of the mean.
    fn pooled_of_padded(&self, tokens: &Tensor, sentences: &[&[u32]], longest: usize) -> Result<Tensor> {
        let count = sentences.len();
        let own = sentences.iter().flat_map(|ids| (0..longest).map(|at| if at < ids.len() { 1.0f32 } else { 0.0 }));
        let own = Tensor::new(&own.collect::<Vec<f32>>(), &[count, longest, 1])?;
        let lengths: Vec<f32> = sentences.iter().map(|ids| ids.len() as f32).collect();
        let lengths = Tensor::new(&lengths, &[count, 1])?;
        let tokens = tokens.reshape(&[count, longest, self.width()])?;
        let kept = self.context.mul(&tokens, &own)?;
        let sums = self.context.run(Op::Sum, &Attrs { axis: Axis::At(1), ..Attrs::default() }, &[Some(&kept)])?;
        self.context.div(&sums, &lengths)
    }

    /// Rows divided by their lengths.
    pub(super) fn normalise(&self, x: &Tensor) -> Result<Tensor> {
        let run = |op, attrs: &Attrs, operands: &[&Tensor]| {
            let operands: Vec<Option<&Tensor>> = operands.iter().copied().map(Some).collect();
            self.context.run(op, attrs, &operands)
        };
        let last = Attrs { axis: Axis::At(-1), keepdim: true, ..Attrs::default() };
        let plain = Attrs::default();
        let length = run(Op::Sqrt, &plain, &[&run(Op::Sum, &last, &[&run(Op::Mul, &plain, &[x, x])?])?])?;
        let rows = x.dims()[0];
        let least = Tensor::new(&vec![LEAST_LENGTH; rows], &[rows, 1])?;
        let both = run(Op::Concat, &Attrs { axis: Axis::At(-1), ..plain }, &[&length, &least])?;
        run(Op::Div, &plain, &[x, &run(Op::Max, &last, &[&both])?])
    }
}
