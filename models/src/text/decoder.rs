//! The forward pass: from tokens to the logits of the next ones.

use super::cache::Cache;
use super::config::Config;
use super::layer::{Layer, Now};
use super::recordings::Recordings;
use super::rope::{Rope, Scaling};
use super::slots::{self, Slots};
use super::weights::{Linear, Table, Weights};
use super::window::Seen;
use adead::device::DeviceKind;
use adead::{Attrs, Context, DType, Meta, Op, Result, Shape, Tensor, View};

/// A model's network.
pub(crate) struct Decoder {
    pub(super) config: Config,
    context: Context,
    words: Table,
    pub(super) rope: Rope,
    /// For layers with a window.
    pub(super) local_rope: Option<Rope>,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Tensor,
    pub(super) head: Linear,
    vocabulary: usize,
    /// Whether only GPUs compute.
    on_device: bool,
    /// Whether steps of one token are recorded, and the recordings.
    records: bool,
    recordings: Recordings,
}

/// The keys and the values that a head attends to.
type KeysAndValues<'a> = (&'a [f32], &'a [f32]);

/// The tokens of a step whose results the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    None,
    Last,
    All,
}

/// The next tokens of a sequence.
pub(crate) struct Step<'a> {
    pub cache: &'a mut Cache,
    pub tokens: &'a [u32],
    pub wanted: Wanted,
}

/// A step's results for the wanted tokens.
pub(crate) struct Ahead {
    /// Rows of the last hidden states, `[rows, width]`, and which of them are wanted.
    hidden: Tensor,
    wanted: Vec<u32>,
    /// The logits and choices that a recording computes for all rows; `None` without a recording.
    choices: Option<Choices>,
}

/// A recording's results for the next tokens: the logits, `[rows, vocabulary]`, and the token with the greatest one of each row,
/// i32. It is −1 if a logit is NaN.
pub(crate) struct Choices {
    pub logits: Tensor,
    pub greatest: Tensor,
}

/// The positions that a step's layers attend to: all, or those of a window.
struct Sight {
    /// The cosines and sines of the step's positions.
    angles: [Tensor; 2],
    /// The positions that each sequence's rows attend to; empty for all.
    seen: Vec<Seen>,
}

impl Decoder {
    /// Finds a model's weights. `invalid_argument` for a missing one, `shape_mismatch` for one of another shape.
    pub fn new(config: Config, weights: &Weights, context: &Context) -> Result<Decoder> {
        let Config { width, head_width, .. } = config;
        let vocabulary = weights.rows("token_embd.weight")?;
        let layers = (0..config.layers).map(|number| Layer::new(number, &config, weights, context));
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let factors = weights.optional_vector("rope_freqs.weight", head_width / 2)?;
        let factors = factors.as_ref().map(|factors| factors.as_slice::<f32>()).transpose()?;
        // Without a matrix of its own the head uses the table of words.
        let head = if weights.contains("output.weight") { "output" } else { "token_embd" };
        Ok(Decoder {
            words: weights.table("token_embd.weight", vocabulary, width)?,
            rope: Rope::new(config.rope_base, head_width, config.scaling, factors),
            local_rope: config.window.map(|window| Rope::new(window.rope_base, head_width, Scaling::None, None)),
            norm: weights.vector("output_norm.weight", width)?,
            head: weights.linear(head, width, vocabulary, context)?,
            on_device: context.device_info().kind != DeviceKind::Cpu,
            records: context.device_info().kind != DeviceKind::Cpu
                && context.dispatcher().forced().is_some()
                && layers.iter().all(Layer::is_of_blocks),
            recordings: Recordings::default(),
            context: context.clone(),
            config,
            layers,
            vocabulary,
        })
    }

    /// If only GPUs compute, computes a few tokens in advance, so that kernels and weights are loaded before the first text.
    /// Skipped on a CPU that emulates a GPU, where it would take seconds.
    pub fn prepare(&self, most: usize) -> Result<()> {
        if !self.on_device || self.context.device_info().kind == DeviceKind::Software {
            return Ok(());
        }
        let mut cache = self.cache(most);
        for tokens in [&[0; 32][..], &[0]] {
            if cache.length() + tokens.len() <= most {
                let ahead = self.forward(&mut [Step { cache: &mut cache, tokens, wanted: Wanted::Last }])?;
                ahead.map(|ahead| self.logits(&ahead)?.as_slice::<f32>().map(drop)).transpose()?;
            }
        }
        Ok(())
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Records a step of the next tokens of `sequences` sequences with up to `longest` positions.
    pub fn record(&self, [sequences, longest]: [usize; 2]) -> Result<Slots> {
        Slots::new(&self.context, &self.config, &self.layers, &self.norm, &self.head, [sequences, longest])
    }

    /// Returns the number of positions that the model was made for.
    pub fn positions(&self) -> usize {
        self.config.context_length
    }

    /// Returns the number of values between layers.
    pub fn width(&self) -> usize {
        self.config.width
    }

    /// Returns the number of tokens in the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Makes the cache of a sequence of at most `most` tokens.
    pub fn cache(&self, most: usize) -> Cache {
        let Config { layers, kv_heads, head_width, .. } = self.config;
        match self.on_device {
            true => Cache::on_device(layers, most),
            false => Cache::new(layers, kv_heads, head_width, most),
        }
    }

    /// Computes the next tokens of sequences, and adds them to the caches. Returns what is known of those that are wanted, in their
    /// order, or `None` if none is.
    ///
    /// A row's bits depend on its own sequence alone: products, norms and functions compute each row on its own, and attention
    /// goes through the keys in blocks of 64 from the first one on. So neither the other sequences nor the number of tokens in a
    /// step change them. After an error no cache has changed.
    pub fn forward(&self, steps: &mut [Step<'_>]) -> Result<Option<Ahead>> {
        for step in &mut *steps {
            step.cache.reserve(step.tokens.len())?;
        }
        // By step: whether it is recorded, and the numbers of its wanted rows among those of its kind.
        let (mut kinds, mut counts) = (Vec::new(), [0u32; 2]);
        for step in &*steps {
            let recorded = self.records && step.tokens.len() == 1;
            let wanted = match step.wanted {
                Wanted::None => 0,
                Wanted::Last => step.tokens.len().min(1),
                Wanted::All => step.tokens.len(),
            } as u32;
            let count = &mut counts[usize::from(recorded)];
            kinds.push((recorded, *count..*count + wanted));
            *count += wanted;
        }
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for (step, (recorded, _)) in steps.iter_mut().zip(&kinds) {
            if *recorded { short.push(step) } else { long.push(step) }
        }
        let long = self.computed(&mut long)?;
        let short = if short.is_empty() { None } else { self.replayed(&mut short)? };
        for step in steps {
            step.cache.advance(step.tokens.len());
        }
        let (long, short) = match (long, short) {
            (Some(long), Some(short)) => (long, short),
            (one, other) => return Ok(one.or(other)),
        };
        let hidden = self.context.concat(&[&self.hidden(&long)?, &self.hidden(&short)?], 0)?;
        let places = kinds.into_iter().flat_map(|(recorded, rows)| {
            let first = if recorded { counts[0] } else { 0 };
            rows.map(move |row| first + row)
        });
        Ok(Some(Ahead { hidden, wanted: places.collect(), choices: None }))
    }

    /// Returns rows by their numbers.
    fn chosen(&self, x: &Tensor, rows: &[u32]) -> Result<Tensor> {
        if rows.len() == x.dims()[0] && rows.iter().enumerate().all(|(at, &row)| at as u32 == row) {
            return Ok(x.clone());
        }
        self.context.embedding(x, &Tensor::new(rows, &[rows.len()])?)
    }

    /// Returns the embeddings of tokens.
    pub fn embedded<'a>(&self, tokens: impl Iterator<Item = &'a u32>) -> Result<Tensor> {
        let x = self.words.lookup(tokens, &self.context)?;
        match self.config.architecture.scales_words {
            true => self.context.scale(&x, (self.config.width as f32).sqrt()),
            false => Ok(x),
        }
    }

    /// Computes steps of any number of tokens. The caches are not advanced.
    fn computed(&self, steps: &mut [&mut Step<'_>]) -> Result<Option<Ahead>> {
        let (mut positions, mut wanted) = (Vec::new(), Vec::new());
        for step in &mut *steps {
            let (first, rows) = (positions.len() as u32, step.tokens.len() as u32);
            wanted.extend(match step.wanted {
                Wanted::None => 0..0,
                Wanted::Last => first + rows.saturating_sub(1)..first + rows,
                Wanted::All => first..first + rows,
            });
            let before = step.cache.length();
            positions.extend(before..before + step.tokens.len());
            if let Some(cache) = &mut step.cache.on_device {
                cache.leave(&self.context, before)?;
            }
        }
        if positions.is_empty() {
            return Ok(None);
        }
        let everything = Sight { angles: self.rope.tables(&positions)?.into(), seen: Vec::new() };
        let local = match (&self.local_rope, &self.config.window) {
            (Some(rope), Some(window)) => {
                let seen = steps.iter().map(|step| window.seen(step.cache.length(), step.tokens.len()));
                Some((window, Sight { angles: rope.tables(&positions)?.into(), seen: seen.collect::<Result<_>>()? }))
            }
            _ => None,
        };
        let mut x = self.embedded(steps.iter().flat_map(|step| step.tokens))?;
        for (number, layer) in self.layers.iter().enumerate() {
            let sight = match &local {
                Some((window, sight)) if window.applies_to(number) => sight,
                _ => &everything,
            };
            let ([cos, sin], mut now) = (&sight.angles, Now(&self.context));
            let parts = layer.before(&mut now, &self.config, positions.len(), &x, [cos, sin])?;
            let attended = self.attended(number, &parts, sight, steps)?;
            x = layer.behind(&mut now, &self.config, positions.len(), &x, &attended)?;
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        let x = self.chosen(&x, &wanted)?;
        let hidden = self.context.rmsnorm(&x, Some(&self.norm), self.config.eps)?;
        Ok(Some(Ahead { hidden, wanted: (0..wanted.len() as u32).collect(), choices: None }))
    }

    /// Returns the last hidden states of the tokens that are wanted, `[wanted, width]`.
    pub fn hidden(&self, ahead: &Ahead) -> Result<Tensor> {
        self.chosen(&ahead.hidden, &ahead.wanted)
    }

    /// Returns the logits of the tokens behind those that are wanted, `[wanted, vocabulary]`.
    pub fn logits(&self, ahead: &Ahead) -> Result<Tensor> {
        match &ahead.choices {
            Some(choices) => self.chosen(&choices.logits, &ahead.wanted),
            None => self.logits_of(&self.hidden(ahead)?),
        }
    }

    /// Returns the logits of hidden states, `[rows, vocabulary]`.
    pub fn logits_of(&self, hidden: &Tensor) -> Result<Tensor> {
        self.head.apply(hidden)
    }

    /// Returns the tokens with the greatest logits behind those that are wanted, if the device has chosen them and no logit is NaN.
    pub fn greatest(&self, ahead: &Ahead) -> Result<Option<Vec<u32>>> {
        let Some(Choices { greatest, .. }) = &ahead.choices else { return Ok(None) };
        let all = greatest.as_slice::<i32>()?;
        Ok(ahead.wanted.iter().map(|&row| u32::try_from(all[row as usize]).ok()).collect())
    }

    /// Computes steps of one token each by a recording. The caches are not advanced.
    fn replayed(&self, steps: &mut [&mut Step<'_>]) -> Result<Option<Ahead>> {
        let slots = self.recordings.place(self, steps)?;
        let [count, capacity] = [slots.count(), slots.capacity()];
        let (mut tokens, mut positions) = (vec![0; count], vec![None; count]);
        let mut wanted = Vec::with_capacity(steps.len());
        for step in &*steps {
            let Some(slot) = step.cache.on_device.as_ref().and_then(|cache| cache.slot()) else { continue };
            (tokens[slot.number()], positions[slot.number()]) = (step.tokens[0], Some(step.cache.length()));
            if step.wanted != Wanted::None {
                wanted.push(slot.number() as u32);
            }
        }
        let all: Vec<usize> = positions.iter().map(|position| position.unwrap_or_default()).collect();
        let sight = |rope: &Rope, begins: &dyn Fn(usize) -> usize| -> Result<slots::Sight> {
            let mask = positions.iter().flat_map(|position| {
                let seen = position.map_or(0..0, |position| begins(position)..position + 1);
                (0..capacity).map(move |key| if seen.contains(&key) { 0.0 } else { f32::NEG_INFINITY })
            });
            let mask = Tensor::new(&mask.collect::<Vec<f32>>(), &[count, 1, 1, capacity])?;
            Ok(slots::Sight { angles: rope.tables(&all)?.into(), mask })
        };
        let everything = sight(&self.rope, &|_| 0)?;
        let local = match (&self.local_rope, &self.config.window) {
            (Some(rope), Some(window)) => Some(sight(rope, &|position| window.begins(position))?),
            _ => None,
        };
        let x = self.embedded(tokens.iter())?;
        let sights: Vec<&slots::Sight> = std::iter::once(&everything).chain(&local).collect();
        let (hidden, choices) = slots.run(&x, &positions, &sights)?;
        Ok((!wanted.is_empty()).then_some(Ahead { hidden, wanted, choices }))
    }

    /// Computes the attention of all sequences' rows, `[rows, heads·head_width]`.
    fn attended(
        &self,
        number: usize,
        [queries, keys, values]: &[Tensor; 3],
        sight: &Sight,
        steps: &mut [&mut Step<'_>],
    ) -> Result<Tensor> {
        let (mut attended, mut first) = (Vec::with_capacity(steps.len()), 0);
        let everything = Seen::default();
        for (at, step) in steps.iter_mut().enumerate() {
            let count = step.tokens.len();
            if count > 0 {
                let own = |of: &Tensor| of.rows(first, count);
                let seen = sight.seen.get(at).unwrap_or(&everything);
                let new = [own(keys)?, own(values)?];
                attended.push(self.attention(number, &own(queries)?, new, step.cache, seen)?);
                first += count;
            }
        }
        self.joined(attended)
    }

    /// Computes a sequence's attention of its last rows, `[rows, heads, head_width]`, as `[rows, heads·head_width]`, and adds their
    /// keys and values to the cache, where they are used.
    fn attention(
        &self,
        layer: usize,
        queries: &Tensor,
        new: [Tensor; 2],
        cache: &mut Cache,
        seen: &Seen,
    ) -> Result<Tensor> {
        let Config { heads, kv_heads, head_width, score_scale, .. } = self.config;
        let (context, rows, group) = (&self.context, queries.dims()[0], heads / kv_heads);
        // One row has the same order in memory.
        let queries = match rows {
            1 => queries.reshape(&[heads, 1, head_width])?,
            _ => context.permute(queries, &[1, 0, 2])?,
        };
        let length = cache.length();
        let attrs = Attrs { causal: true, scale: score_scale, ..Attrs::DEFAULT };
        let attended = if let Some(cache) = &mut cache.on_device {
            let [keys, values] = cache.append(context, layer, length, new)?;
            let operands = |keys, values| [Some(&queries), Some(keys), Some(values), seen.mask.as_ref()];
            if seen.first == 0 {
                context.run(Op::Attention, &attrs, &operands(keys, values))?
            } else {
                let last = |of: &Tensor| context.slice(of, &[0, seen.first as i32], &[], &[]);
                context.run(Op::Attention, &attrs, &operands(&last(keys)?, &last(values)?))?
            }
        } else {
            cache.write(context, layer, new[0].as_slice::<f32>()?, new[1].as_slice::<f32>()?);
            let positions = seen.first..length + rows;
            let meta = Meta::new(DType::F32, Shape::new(&[1, positions.len(), head_width])?);
            let mask = seen.mask.as_ref();
            let read = |head| (head, cache.read(layer, head, positions.clone()));
            let all: Vec<_> = (0..kv_heads).map(read).collect();
            let head = |(head, (keys, values)): (usize, KeysAndValues<'_>)| {
                let (keys, values) = (View::f32(keys, &meta)?, View::f32(values, &meta)?);
                let queries = queries.rows(head * group, group)?;
                let operands = [Some(queries.view()), Some(keys), Some(values), mask.map(Tensor::view)];
                context.run_views(Op::Attention, &attrs, &operands)
            };
            // Prompts' heads side by side: each has too few parts for many threads.
            let parts = if rows > 1 { context.map(all, head) } else { all.into_iter().map(head).collect() };
            self.joined(parts.into_iter().collect::<Result<_>>()?)?
        };
        match rows {
            1 => attended.reshape(&[1, heads * head_width]),
            _ => context.permute(&attended, &[1, 0, 2])?.reshape(&[rows, heads * head_width]),
        }
    }

    /// Joins tensors along their first axis.
    fn joined(&self, mut parts: Vec<Tensor>) -> Result<Tensor> {
        match parts.len() {
            1 => Ok(parts.swap_remove(0)),
            _ => self.context.concat(&parts.iter().collect::<Vec<_>>(), 0),
        }
    }
}
