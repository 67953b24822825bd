//! A model's sizes and rules, from Hugging Face's `config.json`, and the metadata that they become.

use super::json::{Object, shown};
use super::rope::Rope;
use crate::gguf::{Header, Kind};
use crate::text::architecture::{Architecture, Gate};
use adead::{Result, Status};
use serde_json::Value;

/// What is known of a model before its tensors are looked at.
pub(super) struct Config {
    pub architecture: &'static Architecture,
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_width: usize,
    pub hidden: usize,
    /// Rows of the table of words.
    pub words: usize,
    /// Whether the head shares the table of words; `None` if the file doesn't say it.
    pub tied: Option<bool>,
    /// How the weights are stored, by the file.
    pub kind: Kind,
    pub rope: Rope,
    context_length: usize,
    eps: f64,
    window: Option<Window>,
}

struct Window {
    length: usize,
    /// The last of so many layers sees everything; `None` where the window is no layer's alone.
    period: Option<usize>,
}

impl Config {
    /// Reads the file. `unsupported` for another architecture, or a variant of one that would give other results.
    pub fn read(file: &Object) -> Result<Config> {
        let architecture = architecture(file)?;
        if let Some(scheme) = file.get("quantization_config") {
            let text = format!("the weights are quantised ({}); convert the model of floats instead", shown(scheme));
            return Err(file.unsupported(text));
        }
        let (width, heads) = (file.size("hidden_size")?, file.size("num_attention_heads")?);
        let kv_heads = file.optional_size("num_key_value_heads")?.unwrap_or(heads);
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            let text =
                format!("{heads} heads share {kv_heads} heads of keys; the first must be a multiple of the second");
            return Err(file.error(Status::InvalidArgument, text));
        }
        let head_width = match file.optional_size("head_dim")? {
            Some(width) => width,
            None if architecture.local.is_none() && width.is_multiple_of(heads) => width / heads,
            None => return Err(file.wrong("head_dim", "the number of a head's values")),
        };
        if head_width == 0 || !head_width.is_multiple_of(2) {
            let text = format!("a head has {head_width} values; it must be an even number from 2");
            return Err(file.error(Status::InvalidArgument, text));
        }
        let layers = file.size("num_hidden_layers")?;
        gate(file, architecture)?;
        for cap in ["attn_logit_softcapping", "final_logit_softcapping"] {
            if let Some(at) = file.optional_number(cap)? {
                return Err(file.unsupported(format!("'{cap}' is {at}; models without such a cap are supported")));
            }
        }
        if file.optional_bool("use_bidirectional_attention")? == Some(true) {
            return Err(file.unsupported("attention sees what follows too; models that write text are supported"));
        }
        score_scale(file, architecture, layers, width, heads, head_width)?;
        Ok(Config {
            architecture,
            layers,
            width,
            heads,
            kv_heads,
            head_width,
            hidden: file.size("intermediate_size")?,
            words: file.size("vocab_size")?,
            tied: file.optional_bool("tie_word_embeddings")?.or(architecture.local.is_some().then_some(true)),
            kind: stored(file)?,
            rope: Rope::read(file, architecture.local.as_ref(), head_width)?,
            context_length: file.size("max_position_embeddings")?,
            eps: file.number("rms_norm_eps")?,
            window: window(file, architecture, layers)?,
        })
    }

    /// Sets the metadata, with the keys of llama.cpp's converter.
    pub fn write(&self, header: &mut Header) -> Result<()> {
        let name = self.architecture.name;
        let key = |rest: &str| format!("{name}.{rest}");
        let sizes = [
            ("block_count", self.layers),
            ("context_length", self.context_length),
            ("embedding_length", self.width),
            ("feed_forward_length", self.hidden),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_width),
            ("attention.value_length", self.head_width),
            ("rope.dimension_count", self.head_width),
            ("vocab_size", self.words),
        ];
        for (rest, size) in sizes {
            // They were read as u32.
            header.set(&key(rest), size as u32)?;
        }
        header.set(&key("attention.layer_norm_rms_epsilon"), self.eps as f32)?;
        if let Some(window) = &self.window {
            header.set(&key("attention.sliding_window"), window.length as u32)?;
            if let Some(period) = window.period {
                header.set(&key("attention.sliding_window_pattern"), period as u32)?;
            }
        }
        self.rope.write(header, name)
    }
}

fn architecture(file: &Object) -> Result<&'static Architecture> {
    let supported = Architecture::classes();
    let wanted = || file.wrong("architectures", &format!("a list of one of {supported}"));
    let class = match file.optional_list("architectures")?.ok_or_else(wanted)? {
        [class] => class.as_str().ok_or_else(wanted)?,
        _ => return Err(wanted()),
    };
    let unknown = || file.unsupported(format!("the architecture is '{class}'; supported are {supported}"));
    Architecture::of_class(class).ok_or_else(unknown)
}

/// Checks the function of the feed-forward layers' gate.
fn gate(file: &Object, architecture: &Architecture) -> Result<()> {
    let wanted = match architecture.gate {
        Gate::Silu => "silu",
        Gate::Gelu => "gelu_pytorch_tanh",
    };
    for key in ["hidden_act", "hidden_activation"] {
        if let Some(name) = file.optional_text(key)?.filter(|&name| name != wanted) {
            let text = format!("'{key}' is '{name}'; {} is supported with '{wanted}'", architecture.name);
            return Err(file.unsupported(text));
        }
    }
    Ok(())
}

/// Checks that queries have the scale that `text/config.rs` gives them.
fn score_scale(
    file: &Object,
    architecture: &Architecture,
    layers: usize,
    width: usize,
    heads: usize,
    head_width: usize,
) -> Result<()> {
    let Some(local) = &architecture.local else { return Ok(()) };
    let expected = if layers == local.layers_scaled_by_width { width / heads } else { head_width };
    match file.optional_number("query_pre_attn_scalar")? {
        Some(scalar) if scalar != expected as f64 => {
            Err(file.unsupported(format!("'query_pre_attn_scalar' is {scalar}; {expected} is supported")))
        }
        _ => Ok(()),
    }
}

/// How the weights are stored, by the file; f16 if it doesn't say it.
fn stored(file: &Object) -> Result<Kind> {
    let named = match file.optional_text("dtype")? {
        None => file.optional_text("torch_dtype")?,
        named => named,
    };
    Ok(match named {
        Some("float32") => Kind::F32,
        Some("bfloat16") => Kind::BF16,
        _ => Kind::F16,
    })
}

/// The layers' windows.
fn window(file: &Object, architecture: &Architecture, layers: usize) -> Result<Option<Window>> {
    let length = file.optional_size("sliding_window")?.filter(|&length| length > 0);
    let Some(local) = &architecture.local else {
        // Where the file says that the window is not used, it has no effect.
        let used = file.optional_bool("use_sliding_window")?.unwrap_or(true);
        return Ok(length.filter(|_| used).map(|length| Window { length, period: None }));
    };
    let length = length.ok_or_else(|| file.wrong("sliding_window", "more than 0"))?;
    let named = match file.optional_size("sliding_window_pattern")? {
        None => file.optional_size("_sliding_window_pattern")?,
        named => named,
    };
    let types = file.optional_list("layer_types")?;
    let is_whole = |kind: &Value| kind.as_str() == Some("full_attention");
    let period = match (named, types) {
        (Some(period), _) => period.max(1),
        (None, Some(types)) => types.iter().position(is_whole).map_or(local.period.max(layers + 1), |first| first + 1),
        (None, None) => local.period,
    };
    if let Some(types) = types {
        let fits = |(layer, kind): (usize, &Value)| {
            let whole = layer % period == period - 1;
            kind.as_str() == Some(if whole { "full_attention" } else { "sliding_attention" })
        };
        if types.len() != layers || !types.iter().enumerate().all(fits) {
            let text = format!(
                "'layer_types' has {} entries, not those of {layers} layers of which the last of {period} sees \
                 everything; only such windows are supported",
                types.len()
            );
            return Err(file.unsupported(text));
        }
    }
    Ok(Some(Window { length, period: Some(period).filter(|&period| period != local.period) }))
}
