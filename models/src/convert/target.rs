//! What the matrices of a new file are stored as: all as one kind, or as one of llama.cpp's mixtures.

use super::kinds;
use crate::gguf::Kind;
use adead::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How the matrices of a new file are stored. Vectors are f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All as one kind, and as F16 if their rows are not whole blocks.
    Kind(Kind),
    /// As llama.cpp's Q4_K_M: most as Q4_K. As Q6_K the head, and `attn_v` and `ffn_down` of the first and last eighth of the layers and of
    /// every third layer between them. Rows that are not whole blocks of 256 values have blocks of 32: Q5_0 and Q8_0.
    Q4KM,
    /// The same with Q5_K, and Q5_1 where its rows are not whole blocks.
    Q5KM,
}

impl From<Kind> for Target {
    fn from(kind: Kind) -> Target {
        Target::Kind(kind)
    }
}

impl FromStr for Target {
    type Err = Error;

    /// Reads a name: that of a kind, `q4_k_m` or `q5_k_m`, in any case.
    fn from_str(name: &str) -> Result<Target> {
        let mixed = [Target::Q4KM, Target::Q5KM].into_iter().find(|mixed| mixed.to_string().eq_ignore_ascii_case(name));
        match mixed {
            Some(mixed) => Ok(mixed),
            None => name
                .parse()
                .map(Target::Kind)
                .map_err(|error: Error| Error::new(error.status(), format!("{}, q4_k_m, q5_k_m", error.message()))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Kind(kind) => kind.fmt(f),
            Target::Q4KM => f.write_str("Q4_K_M"),
            Target::Q5KM => f.write_str("Q5_K_M"),
        }
    }
}

impl Target {
    /// The kind of most matrices.
    pub(super) fn main(self) -> Kind {
        match self {
            Target::Kind(kind) => kind,
            Target::Q4KM => Kind::Q4_K,
            Target::Q5KM => Kind::Q5_K,
        }
    }

    /// Returns `general.file_type`. `unsupported` for a kind that is not written.
    pub(super) fn file_type(self) -> Result<u32> {
        match self {
            Target::Kind(kind) => kinds::file_type(kind),
            Target::Q4KM => Ok(15),
            Target::Q5KM => Ok(17),
        }
    }
}

/// A target for the tensors of one model.
pub(super) struct Plan {
    pub target: Target,
    /// The number of layers.
    pub layers: usize,
    /// Whether the model has a head of its own, not the table of words.
    pub head: bool,
}

impl Plan {
    /// Returns how a tensor is stored, and whether its rows allow what the target has for it. Vectors are f32.
    pub fn kind(&self, name: &str, dims: &[usize]) -> (Kind, bool) {
        let &[.., row] = dims else { return (Kind::F32, true) };
        if dims.len() == 1 {
            return (Kind::F32, true);
        }
        let wanted = self.wanted(name);
        let fits = |kind: Kind| kind.block().is_some_and(|block| row.is_multiple_of(block));
        let smaller = match (self.target, wanted) {
            (Target::Kind(_), _) => Kind::F16,
            (_, Kind::Q4_K) => Kind::Q5_0,
            (_, Kind::Q5_K) => Kind::Q5_1,
            _ => Kind::Q8_0,
        };
        match wanted {
            wanted if fits(wanted) => (wanted, true),
            _ if fits(smaller) => (smaller, false),
            _ => (Kind::F16, false),
        }
    }

    /// What the target has for a matrix.
    fn wanted(&self, name: &str) -> Kind {
        if let Target::Kind(kind) = self.target {
            return kind;
        }
        let head = if self.head { "output.weight" } else { "token_embd.weight" };
        let layer = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        let more = layer.is_some_and(|(number, rest)| {
            matches!(rest, "attn_v.weight" | "ffn_down.weight")
                && number.parse().is_ok_and(|number| self.is_better(number))
        });
        if name == head || more { Kind::Q6_K } else { self.target.main() }
    }

    /// Whether a layer's most sensitive matrices have more bits.
    fn is_better(&self, layer: usize) -> bool {
        let eighth = self.layers / 8;
        layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2
    }

    /// Returns the note about matrices that are stored as other kinds than the target's.
    pub fn note(&self, others: &[Kind], how: &str) -> Option<String> {
        let main = self.target.main();
        let block = main.block().unwrap_or(1);
        let hint = match self.target {
            Target::Kind(_) if block > 32 => "; Q8_0, Q5_1, Q5_0, Q4_1 and Q4_0 have blocks of 32",
            _ => "",
        };
        let count = others.len();
        let mut names: Vec<String> = others.iter().map(Kind::to_string).collect();
        names.sort();
        names.dedup();
        let how = how.replace("{}", &names.join(" and "));
        (count > 0).then(|| {
            format!("{count} matrices have rows that {main}'s blocks of {block} values don't divide: they {how}{hint}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixtures_are_those_of_llama_cpp() {
        let plan = Plan { target: Target::Q4KM, layers: 30, head: false };
        // 30 layers: the first 3, the last 4, and every third one between.
        let better: Vec<usize> = (0..30).filter(|&layer| plan.is_better(layer)).collect();
        assert_eq!(better, [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29]);
        let kind = |name: &str, row: usize| plan.kind(name, &[512, row]);
        assert_eq!(kind("token_embd.weight", 512), (Kind::Q6_K, true));
        assert_eq!(kind("blk.3.attn_v.weight", 512), (Kind::Q4_K, true));
        assert_eq!(kind("blk.5.attn_v.weight", 512), (Kind::Q6_K, true));
        assert_eq!(kind("blk.29.ffn_down.weight", 1536), (Kind::Q6_K, true));
        assert_eq!(kind("blk.29.ffn_up.weight", 512), (Kind::Q4_K, true));
        // Rows of 576 are blocks of 32 only.
        assert_eq!(kind("blk.3.attn_q.weight", 576), (Kind::Q5_0, false));
        assert_eq!(kind("blk.5.attn_v.weight", 576), (Kind::Q8_0, false));
        assert_eq!(kind("blk.5.attn_v.weight", 80), (Kind::F16, false));
        assert_eq!(plan.kind("blk.5.attn_norm.weight", &[576]), (Kind::F32, true));
        let own_head = Plan { target: Target::Q5KM, layers: 32, head: true };
        assert_eq!(own_head.kind("token_embd.weight", &[9, 256]), (Kind::Q5_K, true));
        assert_eq!(own_head.kind("output.weight", &[9, 256]), (Kind::Q6_K, true));
        assert_eq!(own_head.kind("blk.4.attn_q.weight", &[9, 32]), (Kind::Q5_1, false));
    }

    #[test]
    fn names_are_read_in_any_case() {
        assert_eq!("q4_k_m".parse::<Target>().unwrap(), Target::Q4KM);
        assert_eq!("Q5_K_M".parse::<Target>().unwrap(), Target::Q5KM);
        assert_eq!("q8_0".parse::<Target>().unwrap(), Target::Kind(Kind::Q8_0));
        let error = "q9".parse::<Target>().unwrap_err();
        assert!(error.message().starts_with("no kind of values 'q9'") && error.message().ends_with("q4_k_m, q5_k_m"));
    }
}
