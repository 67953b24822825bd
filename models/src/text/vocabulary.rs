//! A vocabulary: tokens with their kinds, and the rules of a file about them.

use adead::{Error, Result, Status};

/// The kinds of tokens, with the numbers of `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    /// Such as the end of a text: never text.
    Control,
    /// Text that is always one token.
    UserDefined,
    Unused,
    /// A single byte, `<0x0A>`.
    Byte,
}

impl Kind {
    /// Returns the kind with this number, or `None`.
    pub fn of(number: i64) -> Option<Kind> {
        let kinds = [Kind::Normal, Kind::Unknown, Kind::Control, Kind::UserDefined, Kind::Unused, Kind::Byte];
        kinds.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
    }
}

/// How text becomes tokens.
#[derive(Clone, Debug)]
pub(crate) enum Method {
    /// GPT-2's byte pairs: words by the rules of `pre`, then merges in this order.
    BytePairs { pre: String, merges: Vec<String> },
    /// SentencePiece's byte pairs: the pair whose token has the highest score is merged first.
    Scores { scores: Vec<f32>, space_prefix: bool },
}

/// A model's vocabulary.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    pub method: Method,
    pub tokens: Vec<String>,
    pub kinds: Vec<Kind>,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    /// Whether a text begins with bos, and ends with eos.
    pub add_bos: bool,
    pub add_eos: bool,
    /// Tokens that end an answer, sorted.
    pub ends: Vec<u32>,
}

/// Control tokens that end an answer, by their text.
pub(crate) const ENDS: [&str; 13] = [
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
];

impl Vocabulary {
    /// Completes a vocabulary: adds the tokens that end an answer by their text to those that the file names. `invalid_argument`
    /// for a token that it lacks, `shape_mismatch` for lists of other lengths.
    pub fn checked(mut self) -> Result<Vocabulary> {
        let count = self.tokens.len();
        let mismatch = |what: &str, length: usize| {
            let text = format!("the vocabulary has {count} tokens and {length} {what}; the numbers must be equal");
            Err(Error::new(Status::ShapeMismatch, text))
        };
        if self.kinds.len() != count {
            return mismatch("token types", self.kinds.len());
        }
        if let Method::Scores { scores, .. } = &self.method
            && scores.len() != count
        {
            return mismatch("scores", scores.len());
        }
        let named = self.bos.iter().chain(&self.eos).chain(&self.ends);
        if let Some(&id) = named.max().filter(|&&id| id as usize >= count) {
            let text = format!("the file names token {id} as a special one, and the vocabulary has {count} tokens");
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let ending =
            (0..count).filter(|&id| self.kinds[id] == Kind::Control && ENDS.contains(&self.tokens[id].as_str()));
        let ending: Vec<u32> = ending.map(|id| id as u32).collect();
        self.ends.extend(ending);
        self.ends.extend(self.eos);
        self.ends.sort_unstable();
        self.ends.dedup();
        Ok(self)
    }

    /// Whether a token ends an answer.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.binary_search(&id).is_ok()
    }

    /// Returns a token's text as templates know it, or nothing for no token.
    pub fn text(&self, id: Option<u32>) -> &str {
        id.and_then(|id| self.tokens.get(id as usize)).map_or("", String::as_str)
    }
}
