//! The forward pass: from tokens to what a model says about the next ones.

use super::architecture::Gate;
use super::cache::Cache;
use super::config::Config;
use super::rope::{Rope, Scaling};
use super::weights::{Linear, Table, Weights};
use super::window::Seen;
use adead::device::DeviceKind;
use adead::{Attrs, Context, DType, GeluForm, Meta, Op, Result, Shape, Tensor, View};

/// A model's network.
pub(crate) struct Decoder {
    config: Config,
    context: Context,
    words: Table,
    rope: Rope,
    /// For layers with a window.
    local_rope: Option<Rope>,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Linear,
    vocabulary: usize,
    /// Whether only GPUs compute.
    on_device: bool,
}

struct Layer {
    attention_norm: Tensor,
    query: Linear,
    key: Linear,
    value: Linear,
    /// The norms of each head's queries and keys.
    query_norm: Option<Tensor>,
    key_norm: Option<Tensor>,
    output: Linear,
    /// The norms of what attention and the feed-forward layers give.
    attention_after: Option<Tensor>,
    feed_after: Option<Tensor>,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// Which tokens of a step the caller wants to know more of.
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

/// What the layers of a step see: all positions, or those of a window.
struct Sight {
    /// The cosines and sines of the step's positions.
    angles: (Tensor, Tensor),
    /// What each sequence's rows see; empty for everything.
    seen: Vec<Seen>,
}

impl Decoder {
    /// Finds a model's weights. `invalid_argument` for a missing one, `shape_mismatch` for one of another shape.
    pub fn new(config: Config, weights: &Weights, context: &Context) -> Result<Decoder> {
        let Config { width, heads, kv_heads, head_width, hidden, .. } = config;
        let vocabulary = weights.rows("token_embd.weight")?;
        let layer = |number: usize| -> Result<Layer> {
            let name = |rest: &str| format!("blk.{number}.{rest}");
            let linear = |rest: &str, inputs, outputs| weights.linear(&name(rest), inputs, outputs, context);
            let after =
                |rest: &str| config.architecture.norms_after.then(|| weights.vector(&name(rest), width)).transpose();
            Ok(Layer {
                attention_norm: weights.vector(&name("attn_norm.weight"), width)?,
                query: linear("attn_q", width, heads * head_width)?,
                key: linear("attn_k", width, kv_heads * head_width)?,
                value: linear("attn_v", width, kv_heads * head_width)?,
                query_norm: weights.optional_vector(&name("attn_q_norm.weight"), head_width)?,
                key_norm: weights.optional_vector(&name("attn_k_norm.weight"), head_width)?,
                output: linear("attn_output", heads * head_width, width)?,
                attention_after: after("post_attention_norm.weight")?,
                feed_after: after("post_ffw_norm.weight")?,
                feed_norm: weights.vector(&name("ffn_norm.weight"), width)?,
                gate: linear("ffn_gate", width, hidden)?,
                up: linear("ffn_up", width, hidden)?,
                down: linear("ffn_down", hidden, width)?,
            })
        };
        let layers = (0..config.layers).map(layer).collect::<Result<Vec<_>>>()?;
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
            context: context.clone(),
            config,
            layers,
            vocabulary,
        })
    }

    /// Computes some tokens for nothing where only GPUs compute, so that their kernels and the weights are there before the first
    /// text. Not on a processor that emulates a GPU, where this would take seconds.
    pub fn prepare(&self, most: usize) -> Result<()> {
        if !self.on_device || self.context.device_info().kind == DeviceKind::Software {
            return Ok(());
        }
        let mut cache = self.cache(most);
        for tokens in [&[0; 32][..], &[0]] {
            if cache.length() + tokens.len() <= most {
                let hidden = self.forward(&mut [Step { cache: &mut cache, tokens, wanted: Wanted::Last }])?;
                hidden.map(|hidden| self.logits(&hidden)?.as_slice::<f32>().map(drop)).transpose()?;
            }
        }
        Ok(())
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the number of values between layers.
    pub fn width(&self) -> usize {
        self.config.width
    }

    /// Returns the number of tokens that it tells apart.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Makes the cache of a sequence of at most so many tokens.
    pub fn cache(&self, most: usize) -> Cache {
        let Config { layers, kv_heads, head_width, .. } = self.config;
        match self.on_device {
            true => Cache::on_device(layers, most),
            false => Cache::new(layers, kv_heads, head_width, most),
        }
    }

    /// Computes the next tokens of sequences, and adds them to the caches. Returns the last hidden states of those that are
    /// wanted, `[wanted, width]`, in their order, or `None` if none is.
    ///
    /// A row's bits depend on its own sequence alone: products, norms and functions compute each row on its own, and attention
    /// goes through the keys in blocks of 64 from the first one on. So neither the other sequences nor the number of tokens in a
    /// step change them. After an error no cache has changed.
    pub fn forward(&self, steps: &mut [Step<'_>]) -> Result<Option<Tensor>> {
        let (mut positions, mut wanted) = (Vec::new(), Vec::new());
        for step in &mut *steps {
            step.cache.reserve(step.tokens.len())?;
            let (first, rows) = (positions.len() as u32, step.tokens.len() as u32);
            wanted.extend(match step.wanted {
                Wanted::None => 0..0,
                Wanted::Last => first + rows.saturating_sub(1)..first + rows,
                Wanted::All => first..first + rows,
            });
            let before = step.cache.length();
            positions.extend(before..before + step.tokens.len());
        }
        if positions.is_empty() {
            return Ok(None);
        }
        let everything = Sight { angles: self.rope.tables(&positions)?, seen: Vec::new() };
        let local = match (&self.local_rope, &self.config.window) {
            (Some(rope), Some(window)) => {
                let seen = steps.iter().map(|step| window.seen(step.cache.length(), step.tokens.len()));
                Some((window, Sight { angles: rope.tables(&positions)?, seen: seen.collect::<Result<_>>()? }))
            }
            _ => None,
        };
        let mut x = self.words.lookup(steps.iter().flat_map(|step| step.tokens))?;
        if self.config.architecture.scales_words {
            x = self.context.scale(&x, (self.config.width as f32).sqrt())?;
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let sight = match &local {
                Some((window, sight)) if window.applies_to(number) => sight,
                _ => &everything,
            };
            x = self.layer(number, layer, &x, sight, steps)?;
        }
        for step in steps {
            step.cache.advance(step.tokens.len());
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        if wanted.len() < positions.len() {
            x = self.context.embedding(&x, &Tensor::new(&wanted, &[wanted.len()])?)?;
        }
        self.context.rmsnorm(&x, Some(&self.norm), self.config.eps).map(Some)
    }

    /// Returns the logits of hidden states, `[rows, vocabulary]`.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        self.head.apply(hidden)
    }

    fn layer(&self, number: usize, layer: &Layer, x: &Tensor, sight: &Sight, steps: &mut [Step<'_>]) -> Result<Tensor> {
        let (context, eps) = (&self.context, self.config.eps);
        let Config { heads, kv_heads, head_width, architecture, .. } = self.config;
        let (rows, (cos, sin)) = (x.dims()[0], &sight.angles);
        let after = |x: Tensor, norm: &Option<Tensor>| match norm {
            Some(norm) => context.rmsnorm(&x, Some(norm), eps),
            None => Ok(x),
        };
        let normed = context.rmsnorm(x, Some(&layer.attention_norm), eps)?;
        let rotated = |linear: &Linear, norm: &Option<Tensor>, heads: usize| {
            let x = after(linear.apply(&normed)?.reshape(&[rows, heads, head_width])?, norm)?;
            context.rope(&x, cos, sin, architecture.interleaved)
        };
        let queries = rotated(&layer.query, &layer.query_norm, heads)?;
        let keys = rotated(&layer.key, &layer.key_norm, kv_heads)?;
        let values = layer.value.apply(&normed)?.reshape(&[rows, kv_heads, head_width])?;
        let (mut attended, mut first) = (Vec::with_capacity(steps.len()), 0);
        let everything = Seen::default();
        for (at, step) in steps.iter_mut().enumerate() {
            let count = step.tokens.len();
            if count > 0 {
                let own = |of: &Tensor| of.rows(first, count);
                let seen = sight.seen.get(at).unwrap_or(&everything);
                let new = [own(&keys)?, own(&values)?];
                attended.push(self.attention(number, &own(&queries)?, new, step.cache, seen)?);
                first += count;
            }
        }
        let attended = layer.output.apply(&self.joined(attended)?)?;
        let x = context.add(x, &after(attended, &layer.attention_after)?)?;
        let normed = context.rmsnorm(&x, Some(&layer.feed_norm), eps)?;
        let gate = layer.gate.apply(&normed)?;
        let gate = match architecture.gate {
            Gate::Silu => context.silu(&gate)?,
            Gate::Gelu => context.gelu(&gate, GeluForm::Tanh)?,
        };
        let between = context.mul(&gate, &layer.up.apply(&normed)?)?;
        context.add(&x, &after(layer.down.apply(&between)?, &layer.feed_after)?)
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
            cache.write(layer, new[0].as_slice::<f32>()?, new[1].as_slice::<f32>()?);
            let positions = seen.first..length + rows;
            let meta = Meta::new(DType::F32, Shape::new(&[1, positions.len(), head_width])?);
            let mask = seen.mask.as_ref().map(Tensor::view);
            let head = |head: usize| {
                let (keys, values) = cache.read(layer, head, positions.clone());
                let (keys, values) = (View::f32(keys, &meta)?, View::f32(values, &meta)?);
                let queries = queries.rows(head * group, group)?;
                context.run_views(Op::Attention, &attrs, &[Some(queries.view()), Some(keys), Some(values), mask])
            };
            self.joined((0..kv_heads).map(head).collect::<Result<Vec<_>>>()?)?
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
