//! A model's sizes and rules, from the metadata of its file.

use super::architecture::Architecture;
use super::rope::Scaling;
use super::vocabulary::{Kind, Method, Vocabulary};
use super::window::Window;
use super::{fault, tokenizer};
use crate::gguf::Gguf;
use adead::{Result, Status};
use std::path::Path;

/// What is known of a model before its weights are laid out.
pub(crate) struct Config {
    pub architecture: &'static Architecture,
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// Values of a head.
    pub head_width: usize,
    /// Values of the feed-forward layers.
    pub hidden: usize,
    /// Positions at most.
    pub context_length: usize,
    pub eps: f32,
    pub rope_base: f64,
    pub scaling: Scaling,
    /// The factor of attention's scores; 0 for 1/sqrt of a head's values.
    pub score_scale: f32,
    pub window: Option<Window>,
}

impl Config {
    /// Reads the metadata. `unsupported` for another architecture, or a variant of one that would give other results.
    pub fn read(gguf: &Gguf, path: &Path) -> Result<Config> {
        let unsupported = |text: String| Err(fault(Status::Unsupported, path, text));
        let name: &str = gguf.require("general.architecture")?;
        let Some(architecture) = Architecture::of(name) else {
            return unsupported(format!("the architecture is '{name}'; supported are {}", Architecture::names()));
        };
        let key = |rest: &str| format!("{name}.{rest}");
        let size = |rest: &str| gguf.require::<usize>(&key(rest));
        let optional = |rest: &str| gguf.optional::<usize>(&key(rest));
        let (width, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let kv_heads = optional("attention.head_count_kv")?.unwrap_or(heads);
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            let text =
                format!("{heads} heads share {kv_heads} heads of keys; the first must be a multiple of the second");
            return Err(fault(Status::InvalidArgument, path, text));
        }
        let head_width = match optional("attention.key_length")? {
            Some(width) => width,
            None if width.is_multiple_of(heads) => width / heads,
            None => {
                let text = format!(
                    "{heads} heads don't divide a width of {width}, and {} is missing",
                    key("attention.key_length")
                );
                return Err(fault(Status::InvalidArgument, path, text));
            }
        };
        if heads.checked_mul(head_width).is_none() {
            let text = format!("{heads} heads of {head_width} values are more than memory has addresses");
            return Err(fault(Status::InvalidArgument, path, text));
        }
        for same in ["attention.value_length", "rope.dimension_count"] {
            if let Some(other) = optional(same)?.filter(|&other| other != head_width) {
                return unsupported(format!(
                    "{} is {other} and a head has {head_width} values; they must be equal",
                    key(same)
                ));
            }
        }
        if let Some(experts) = optional("expert_count")?.filter(|&experts| experts > 0) {
            return unsupported(format!(
                "the model is a mixture of {experts} experts; models without experts are supported"
            ));
        }
        let (layers, hidden, length) = (size("block_count")?, size("feed_forward_length")?, size("context_length")?);
        if [layers, width, hidden, length, head_width].contains(&0) || !head_width.is_multiple_of(2) {
            let text = format!(
                "it has {layers} layers, a width of {width}, {hidden} values between, {length} positions and \
                 {head_width} values of a head; none may be 0, and the last must be even"
            );
            return Err(fault(Status::InvalidArgument, path, text));
        }
        let length_of_window = optional("attention.sliding_window")?.filter(|&window| window > 0);
        // Where an architecture has no layers with a window, one has no effect up to its length.
        let (mut context_length, mut window, mut score_scale) = (length, None, 0.0);
        match (&architecture.local, length_of_window) {
            (Some(local), Some(length)) => {
                let period = optional("attention.sliding_window_pattern")?.unwrap_or(local.period).max(1);
                let rope_base = gguf.optional::<f64>(&key("rope.freq_base_swa"))?.unwrap_or(local.rope_base);
                window = Some(Window { length, period, rope_base });
                if layers == local.layers_scaled_by_width {
                    score_scale = 1.0 / (width as f32 / heads as f32).sqrt();
                }
            }
            (Some(_), None) => {
                let text = format!("{} is missing or 0; it must be more than 0", key("attention.sliding_window"));
                return Err(fault(Status::InvalidArgument, path, text));
            }
            (None, Some(window)) => context_length = length.min(window),
            (None, None) => {}
        }
        for cap in ["attn_logit_softcapping", "final_logit_softcapping"] {
            if let Some(cap_at) = gguf.optional::<f64>(&key(cap))?.filter(|&cap| cap > 0.0) {
                return unsupported(format!("{} is {cap_at}; models without such a cap are supported", key(cap)));
            }
        }
        let eps: f32 = gguf.require(&key("attention.layer_norm_rms_epsilon"))?;
        let rope_base = gguf.optional::<f64>(&key("rope.freq_base"))?.unwrap_or(10_000.0);
        for (base, rest) in
            [(Some(rope_base), "rope.freq_base"), (window.map(|window| window.rope_base), "rope.freq_base_swa")]
        {
            if let Some(base) = base.filter(|base| !(*base > 0.0 && base.is_finite())) {
                let text = format!("{} is {base}; it must be more than 0", key(rest));
                return Err(fault(Status::InvalidArgument, path, text));
            }
        }
        let factor = match gguf.optional::<f64>(&key("rope.scaling.factor"))? {
            None => gguf.optional::<f64>(&key("rope.scale_linear"))?,
            factor => factor,
        };
        let scaling = match (gguf.optional::<&str>(&key("rope.scaling.type"))?, factor) {
            (Some("none") | None, None | Some(0.0 | 1.0)) | (Some("none"), _) => Scaling::None,
            (Some("linear") | None, Some(factor)) if factor > 0.0 && factor.is_finite() => Scaling::Linear(factor),
            (Some("linear") | None, factor) => {
                let text = format!("{} is {factor:?}; it must be more than 0", key("rope.scaling.factor"));
                return Err(fault(Status::InvalidArgument, path, text));
            }
            (Some(other), _) => {
                return unsupported(format!(
                    "positions are scaled by '{other}'; supported are none, linear, and the factors of the tensor \
                     rope_freqs.weight"
                ));
            }
        };
        Ok(Config {
            architecture,
            layers,
            width,
            heads,
            kv_heads,
            head_width,
            hidden,
            context_length,
            eps,
            rope_base,
            scaling,
            score_scale,
            window,
        })
    }
}

/// Reads a file's vocabulary. `unsupported` for a tokenizer of another kind, `invalid_argument`, `dtype_mismatch` and
/// `shape_mismatch` for keys that are missing, malformed or don't fit each other.
pub(crate) fn vocabulary(gguf: &Gguf, path: &Path) -> Result<Vocabulary> {
    let key = |rest: &str| format!("tokenizer.ggml.{rest}");
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<String>>();
    let tokens = owned(gguf.require(&key("tokens"))?);
    let kinds = match gguf.optional::<Vec<i64>>(&key("token_type"))? {
        Some(numbers) => numbers.into_iter().map(|number| Kind::of(number).unwrap_or(Kind::Normal)).collect(),
        None => vec![Kind::Normal; tokens.len()],
    };
    let (method, adds_bos) = match gguf.require::<&str>(&key("model"))? {
        "gpt2" => {
            let pre: &str = gguf.require(&key("pre"))?;
            let adds_bos = tokenizer::adds_bos(pre).map_err(|error| fault(error.status(), path, error.message()))?;
            let merges = owned(gguf.require(&key("merges"))?);
            (Method::BytePairs { pre: pre.to_owned(), merges }, adds_bos)
        }
        "llama" => {
            let space_prefix = gguf.optional(&key("add_space_prefix"))?.unwrap_or(true);
            (Method::Scores { scores: gguf.require(&key("scores"))?, space_prefix }, true)
        }
        other => {
            let text = format!("the tokenizer is of the kind '{other}'; supported are gpt2 and llama");
            return Err(fault(Status::Unsupported, path, text));
        }
    };
    let id = |rest: &str| gguf.optional::<u32>(&key(rest));
    let bos = id("bos_token_id")?;
    let vocabulary = Vocabulary {
        method,
        tokens,
        kinds,
        bos,
        eos: id("eos_token_id")?,
        add_bos: gguf.optional(&key("add_bos_token"))?.unwrap_or(adds_bos && bos.is_some()),
        add_eos: gguf.optional(&key("add_eos_token"))?.unwrap_or(false),
        ends: id("eot_token_id")?.into_iter().chain(id("eom_token_id")?).collect(),
    };
    vocabulary.checked().map_err(|error| fault(error.status(), path, error.message()))
}
