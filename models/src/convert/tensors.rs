//! Hugging Face's tensors by the names of GGUF files, and how their values change.

use super::config::Config;
use super::shards::Shards;
use adead::{Error, Result, Status};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A tensor of the folder that the new file has.
pub(super) struct Mapped {
    pub name: String,
    pub dims: Vec<usize>,
    /// Its name in the folder.
    pub from: String,
    pub change: Change,
}

/// How values change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    None,
    /// 1 is added: such norms multiply by 1 + w.
    AddOne,
    /// Rows of so many heads go from both halves of a head to neighbours.
    Neighbours(usize),
}

/// Finds the tensors of a model, in the order of the new file. `invalid_argument` if one is missing or there are others,
/// `shape_mismatch` if one has another shape.
pub(super) fn map(config: &Config, shards: &Shards) -> Result<Vec<Mapped>> {
    let mut found = Finder { shards, mapped: Vec::new(), used: BTreeSet::new() };
    let architecture = config.architecture;
    let norm = if architecture.norms_after { Change::AddOne } else { Change::None };
    let (width, head) = (config.width, config.head_width);
    let (q, kv) = (config.heads * head, config.kv_heads * head);
    let neighbours = |heads: usize| if architecture.interleaved { Change::Neighbours(heads) } else { Change::None };
    found.add("token_embd.weight", "model.embed_tokens.weight", &[config.words, width], Change::None)?;
    for layer in 0..config.layers {
        let mut linear = |own: &str, from: &str, outputs: usize, inputs: usize, change: Change| {
            let (own, from) = (format!("blk.{layer}.{own}"), format!("model.layers.{layer}.{from}"));
            found.add(&format!("{own}.weight"), &format!("{from}.weight"), &[outputs, inputs], change)?;
            found.optional(&format!("{own}.bias"), &format!("{from}.bias"), &[outputs], change)
        };
        linear("attn_q", "self_attn.q_proj", q, width, neighbours(config.heads))?;
        linear("attn_k", "self_attn.k_proj", kv, width, neighbours(config.kv_heads))?;
        linear("attn_v", "self_attn.v_proj", kv, width, Change::None)?;
        linear("attn_output", "self_attn.o_proj", width, q, Change::None)?;
        linear("ffn_gate", "mlp.gate_proj", config.hidden, width, Change::None)?;
        linear("ffn_up", "mlp.up_proj", config.hidden, width, Change::None)?;
        linear("ffn_down", "mlp.down_proj", width, config.hidden, Change::None)?;
        let mut vector = |own: &str, from: &str, length: usize, must: bool| {
            let (own, from) = (format!("blk.{layer}.{own}.weight"), format!("model.layers.{layer}.{from}.weight"));
            if must { found.add(&own, &from, &[length], norm) } else { found.optional(&own, &from, &[length], norm) }
        };
        vector("attn_norm", "input_layernorm", width, true)?;
        vector("attn_q_norm", "self_attn.q_norm", head, false)?;
        vector("attn_k_norm", "self_attn.k_norm", head, false)?;
        if architecture.norms_after {
            vector("post_attention_norm", "post_attention_layernorm", width, true)?;
            vector("ffn_norm", "pre_feedforward_layernorm", width, true)?;
            vector("post_ffw_norm", "post_feedforward_layernorm", width, true)?;
        } else {
            vector("ffn_norm", "post_attention_layernorm", width, true)?;
        }
    }
    found.add("output_norm.weight", "model.norm.weight", &[width], norm)?;
    const HEAD: &str = "lm_head.weight";
    let tied = config.tied.unwrap_or_else(|| !shards.contains(HEAD));
    if tied {
        // A copy of the table of words, in some files.
        found.used.insert(HEAD.into());
    } else {
        found.add("output.weight", HEAD, &[config.words, width], Change::None)?;
    }
    found.finish()
}

struct Finder<'a> {
    shards: &'a Shards,
    mapped: Vec<Mapped>,
    used: BTreeSet<String>,
}

impl Finder<'_> {
    fn add(&mut self, name: &str, from: &str, dims: &[usize], change: Change) -> Result<()> {
        self.shards.check(from, dims)?;
        self.used.insert(from.into());
        self.mapped.push(Mapped { name: name.into(), dims: dims.into(), from: from.into(), change });
        Ok(())
    }

    fn optional(&mut self, name: &str, from: &str, dims: &[usize], change: Change) -> Result<()> {
        if self.shards.contains(from) { self.add(name, from, dims, change) } else { Ok(()) }
    }

    /// Checks that nothing is left.
    fn finish(self) -> Result<Vec<Mapped>> {
        // Computed from the configuration; files of older versions have them.
        let is_known = |name: &str| self.used.contains(name) || name.ends_with(".rotary_emb.inv_freq");
        let left: Vec<&str> = self.shards.names().filter(|name| !is_known(name)).collect();
        match left.first() {
            None => Ok(self.mapped),
            Some(first) => {
                let text = format!(
                    "{} tensors of the folder have no place in the model, the first is '{first}'; a model of config.json's \
                     architecture has none like it",
                    left.len()
                );
                Err(Error::new(Status::Unsupported, text))
            }
        }
    }
}

impl Change {
    /// Changes values; rows are of `width` values.
    pub fn apply(self, values: &[f32], width: usize) -> Cow<'_, [f32]> {
        match self {
            Change::None => values.into(),
            Change::AddOne => values.iter().map(|value| value + 1.0).collect(),
            Change::Neighbours(heads) => {
                let rows = values.len() / width.max(1);
                let head = rows / heads;
                // Row 2i of a head is row i of its first half, row 2i + 1 that of the second.
                let from = |row: usize| row / head * head + row % head / 2 + row % 2 * (head / 2);
                (0..rows).flat_map(|row| values[from(row) * width..][..width].iter().copied()).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_neighbours() {
        let rows: Vec<f32> = (0..8).map(|row| row as f32).collect();
        assert_eq!(Change::Neighbours(2).apply(&rows, 1)[..], [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
        assert_eq!(Change::Neighbours(1).apply(&rows, 2)[..], [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
        assert_eq!(Change::AddOne.apply(&[-0.5, 2.0], 2)[..], [0.5, 3.0]);
    }
}
