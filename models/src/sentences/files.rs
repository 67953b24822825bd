//! A model's folder: what its files say, checked.

use super::fault;
use adead::nn::{TransformerConfig, Weights};
use adead::{Activation, Error, Result, Status};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// What is known of a model before its weights are laid out.
pub(crate) struct Files {
    pub config: TransformerConfig,
    pub layers: usize,
    /// Rows of the tables of words, positions and types.
    pub words: usize,
    pub positions: usize,
    pub types: usize,
    /// Tokens of a sentence at most, the special ones counted.
    pub most: usize,
    /// Whether embeddings are divided by their length.
    pub normalised: bool,
    pub weights: Weights,
    pub tokenizer: Vec<u8>,
}

/// `config.json`.
#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: String,
    layer_norm_eps: f64,
    vocab_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    #[serde(default = "absolute")]
    position_embedding_type: String,
}

fn absolute() -> String {
    "absolute".into()
}

/// `modules.json`, of sentence-transformers: what follows the transformer.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Limits {
    max_seq_length: Option<usize>,
}

/// `config.json` of the pooling's folder.
#[derive(Deserialize)]
struct Pooling {
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
}

impl Files {
    /// What the names of all weights begin with: some files name everything below the model's own name.
    pub fn root(&self) -> &'static str {
        if self.weights.contains("bert.embeddings.word_embeddings.weight") { "bert." } else { "" }
    }

    /// Returns an error if there are more layers of weights than the configuration says: with fewer, it would be another model.
    pub fn check_layers(&self) -> Result<()> {
        let surplus = format!("{}encoder.layer.{}.", self.root(), self.layers);
        if self.weights.names().iter().any(|name| name.starts_with(&surplus)) {
            let text = format!("it has a layer {0} and the model's configuration {0} layers", self.layers);
            return Err(fault(Status::InvalidArgument, self.weights.path(), text));
        }
        Ok(())
    }

    /// Reads a folder. `io` for a file that is missing or can't be read, `invalid_argument` for one that is malformed,
    /// `unsupported` for a model of another kind.
    pub fn read(folder: &Path) -> Result<Files> {
        match fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(fault(Status::InvalidArgument, folder, "a model is a folder, and this is a file")),
            Err(error) => return Err(fault(Status::Io, folder, error)),
        }
        let path = folder.join("config.json");
        let config: Config = required(&path)?;
        let unsupported = |text: String| Err(fault(Status::Unsupported, &path, text));
        if config.model_type != "bert" {
            return unsupported(format!("the model is of the type '{}'; 'bert' is supported", config.model_type));
        }
        if config.position_embedding_type != "absolute" {
            return unsupported(format!("positions are '{}'; 'absolute' is supported", config.position_embedding_type));
        }
        let activation = match config.hidden_act.as_str() {
            "gelu" => Activation::GeluErf,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            other => return unsupported(format!("the activation is '{other}'; gelu, gelu_new and relu are supported")),
        };
        let zero = [config.hidden_size, config.num_attention_heads, config.intermediate_size, config.type_vocab_size];
        if zero.contains(&0) || !config.hidden_size.is_multiple_of(config.num_attention_heads) {
            let (width, heads) = (config.hidden_size, config.num_attention_heads);
            return Err(fault(
                Status::InvalidArgument,
                &path,
                format!("{heads} heads don't divide a width of {width}"),
            ));
        }
        let normalised = modules(folder)?;
        let limits: Option<Limits> = optional(&folder.join("sentence_bert_config.json"))?;
        let most = limits.and_then(|limits| limits.max_seq_length).unwrap_or(config.max_position_embeddings);
        let positions = config.max_position_embeddings;
        if !(3..=positions).contains(&most) {
            let text = format!("max_seq_length is {most}; it must be from 3 to the {positions} positions of the model");
            return Err(fault(Status::InvalidArgument, &folder.join("sentence_bert_config.json"), text));
        }
        Ok(Files {
            config: TransformerConfig {
                width: config.hidden_size,
                heads: config.num_attention_heads,
                hidden: config.intermediate_size,
                activation,
                eps: config.layer_norm_eps as f32,
            },
            layers: config.num_hidden_layers,
            words: config.vocab_size,
            positions,
            types: config.type_vocab_size,
            most,
            normalised,
            tokenizer: bytes(&folder.join("tokenizer.json"))?,
            weights: Weights::open(folder.join("model.safetensors"))?,
        })
    }
}

/// Whether `modules.json` lists normalisation behind mean pooling. A folder without it is a plain transformer, which
/// sentence-transformers takes with mean pooling alone.
fn modules(folder: &Path) -> Result<bool> {
    let path = folder.join("modules.json");
    let Some(modules) = optional::<Vec<Module>>(&path)? else { return Ok(false) };
    let kinds: Vec<&str> = modules.iter().map(|module| module.kind.rsplit('.').next().unwrap_or_default()).collect();
    let normalised = match kinds[..] {
        ["Transformer", "Pooling"] => false,
        ["Transformer", "Pooling", "Normalize"] => true,
        _ => {
            let text = format!("the modules are {kinds:?}; Transformer, Pooling and Normalize are supported");
            return Err(fault(Status::Unsupported, &path, text));
        }
    };
    let path = folder.join(&modules[1].path).join("config.json");
    let pooling: Pooling = required(&path)?;
    let others = [
        pooling.pooling_mode_cls_token,
        pooling.pooling_mode_max_tokens,
        pooling.pooling_mode_mean_sqrt_len_tokens,
        pooling.pooling_mode_weightedmean_tokens,
        pooling.pooling_mode_lasttoken,
    ];
    if !pooling.pooling_mode_mean_tokens || others.contains(&true) {
        return Err(fault(Status::Unsupported, &path, "tokens are pooled otherwise; their mean alone is supported"));
    }
    Ok(normalised)
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| fault(Status::Io, path, error))
}

fn parsed<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| fault(Status::InvalidArgument, path, error))
}

fn required<T: DeserializeOwned>(path: &Path) -> Result<T> {
    parsed(path, &bytes(path)?)
}

/// `None` where there is no such file.
fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    match fs::read(path) {
        Ok(bytes) => parsed(path, &bytes).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(Status::Io, path, error)),
    }
}
