//! Text as tokens and back, by the vocabulary of the model's own file.

use super::pieces::{Pieces, SPACE, Utf8};
use super::vocabulary::{Kind, Method, Vocabulary};
use adead::{Error, Result, Status};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace, Sequence as Normalizers};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, Tokenizer as Encoder};

/// A model's tokenizer.
pub(crate) struct Tokenizer {
    encoder: Encoder,
    pieces: Pieces,
    vocabulary: Vocabulary,
}

/// Words as GPT-2 divides text into them.
pub(crate) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// A digit each.
pub(crate) const DIGITS: &str = r"\p{N}";
/// As Llama 3 does: up to three digits at once.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As Qwen 2 does: a digit at once.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// How text is divided into words.
struct Words {
    /// The names in `tokenizer.ggml.pre`.
    names: &'static [&'static str],
    patterns: &'static [&'static str],
    /// Whether a word that is a token is taken whole, even if merges would not make it.
    whole: bool,
    /// Whether texts begin with bos if the file does not say it.
    pub add_bos: bool,
}

const KNOWN: [Words; 4] = [
    Words { names: &["gpt-2"], patterns: &[GPT2], whole: false, add_bos: false },
    Words { names: &["llama-bpe", "llama3", "llama-v3"], patterns: &[LLAMA3], whole: true, add_bos: true },
    Words { names: &["qwen2"], patterns: &[QWEN2], whole: false, add_bos: false },
    Words { names: &["smollm"], patterns: &[DIGITS, GPT2], whole: false, add_bos: false },
];

impl Words {
    /// Finds the rules of a name. `unsupported` for others.
    fn of(pre: &str) -> Result<&'static Words> {
        KNOWN.iter().find(|words| words.names.contains(&pre)).ok_or_else(|| {
            let names: Vec<&str> = KNOWN.iter().flat_map(|words| words.names).copied().collect();
            let text = format!("tokenizer.ggml.pre is '{pre}'; supported are {}", names.join(", "));
            Error::new(Status::Unsupported, text)
        })
    }
}

/// Returns the name of the words that these patterns make, one after the other, with whether a word that is a token is taken whole.
pub(crate) fn name_of(patterns: &[&str]) -> Option<(&'static str, bool)> {
    let words = KNOWN.iter().find(|words| words.patterns == patterns)?;
    Some((words.names[0], words.whole))
}

/// Returns the names of all words, for messages.
pub(crate) fn names() -> String {
    KNOWN.map(|words| words.names[0]).join(", ")
}

/// Whether texts begin with bos by the rules of a pre-tokenizer's name, for files that do not say it.
pub(crate) fn adds_bos(pre: &str) -> Result<bool> {
    Ok(Words::of(pre)?.add_bos)
}

fn malformed(error: impl std::fmt::Display) -> Error {
    Error::new(Status::InvalidArgument, format!("the tokenizer can't be made: {error}"))
}

impl Tokenizer {
    /// Makes the tokenizer of a vocabulary. `invalid_argument` for merges that are malformed, `unsupported` for words of unknown
    /// rules.
    pub fn new(vocabulary: Vocabulary) -> Result<Tokenizer> {
        let mut encoder = match &vocabulary.method {
            Method::BytePairs { pre, merges } => byte_pairs(&vocabulary, pre, merges)?,
            Method::Scores { scores, space_prefix } => by_scores(&vocabulary, scores, *space_prefix)?,
        };
        let special = vocabulary.tokens.iter().zip(&vocabulary.kinds).filter_map(|(token, kind)| match kind {
            Kind::Control | Kind::Unknown => Some(AddedToken::from(token.clone(), true).normalized(false)),
            Kind::UserDefined => Some(AddedToken::from(token.clone(), false).normalized(false)),
            _ => None,
        });
        encoder.add_tokens(special).map_err(malformed)?;
        Ok(Tokenizer { encoder, pieces: Pieces::new(&vocabulary), vocabulary })
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Returns a text's tokens. The text of a special token becomes that token. If the vocabulary says so, bos precedes them,
    /// unless the text has it already, and eos follows.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.encoder.encode_fast(text, false).map_err(|error| {
            let start: String = text.chars().take(40).collect();
            Error::new(Status::InvalidArgument, format!("the text '{start}' can't be tokenized: {error}"))
        })?;
        let Vocabulary { bos, eos, add_bos, add_eos, .. } = &self.vocabulary;
        let bos = bos.filter(|bos| *add_bos && encoding.get_ids().first() != Some(bos));
        let eos = eos.filter(|_| *add_eos);
        Ok(bos.into_iter().chain(encoding.get_ids().iter().copied()).chain(eos).collect())
    }

    /// Returns the text of tokens. Control tokens have none.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut text = Utf8::default();
        let decoded: String = ids.iter().map(|&id| text.push(self.piece(id))).collect();
        let decoded = decoded + &text.finish();
        match (&self.vocabulary.method, decoded.strip_prefix(' ')) {
            (Method::Scores { space_prefix: true, .. }, Some(rest)) => rest.to_owned(),
            _ => decoded,
        }
    }

    /// Returns a token's bytes.
    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.of(id)
    }
}

/// Returns the tokens with their ids. Of equal ones the first counts.
fn ids(vocabulary: &Vocabulary) -> Vocab {
    let tokens = vocabulary.tokens.iter().enumerate().rev();
    tokens.map(|(id, token)| (token.clone(), id as u32)).collect()
}

/// GPT-2's byte pairs. Words are without a cache: it would outlive the model.
fn byte_pairs(vocabulary: &Vocabulary, pre: &str, merges: &[String]) -> Result<Encoder> {
    let words = Words::of(pre)?;
    let ids = ids(vocabulary);
    let merges = merges.iter().map(|merge| {
        let halves = merge.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(at, _)| merge.split_at(at));
        let (a, b) = halves.ok_or_else(|| malformed(format!("the merge '{merge}' has no space")))?;
        let (a, b) = (a.to_owned(), b[1..].to_owned());
        // The model's builder panics at some of these.
        let missing = [a.clone(), b.clone(), a.clone() + &b].into_iter().find(|token| !ids.contains_key(token));
        match missing {
            Some(token) => Err(malformed(format!("the merge '{merge}' needs the token '{token}', which is not there"))),
            None => Ok((a, b)),
        }
    });
    let merges = merges.collect::<Result<Vec<_>>>()?;
    let model = BPE::builder().vocab_and_merges(ids, merges).ignore_merges(words.whole).cache_capacity(0);
    let mut encoder = Encoder::new(model.build().map_err(malformed)?);
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in words.patterns {
        let pattern = SplitPattern::Regex((*pattern).to_owned());
        steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(malformed)?.into());
    }
    steps.push(ByteLevel::new(false, false, false).into());
    encoder.with_pre_tokenizer(Some(Sequence::new(steps)));
    Ok(encoder)
}

/// SentencePiece's byte pairs, as merges in the order of their tokens' scores. A character that is no token becomes its bytes.
fn by_scores(vocabulary: &Vocabulary, scores: &[f32], space_prefix: bool) -> Result<Encoder> {
    let ids = ids(vocabulary);
    let mut merges: Vec<(f32, u32, u32)> = Vec::new();
    for (token, &score) in vocabulary.tokens.iter().zip(scores) {
        if ids.get(token).is_none_or(|&id| vocabulary.kinds[id as usize] != Kind::Normal) {
            continue;
        }
        for (at, _) in token.char_indices().skip(1) {
            if let (Some(&left), Some(&right)) = (ids.get(&token[..at]), ids.get(&token[at..])) {
                merges.push((score, left, right));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let text = |id: u32| vocabulary.tokens[id as usize].clone();
    let merges = merges.iter().map(|&(_, left, right)| (text(left), text(right))).collect();
    let model = BPE::builder().vocab_and_merges(ids, merges).byte_fallback(true).fuse_unk(true).cache_capacity(0);
    let unknown = vocabulary.kinds.iter().position(|&kind| kind == Kind::Unknown);
    let model = match unknown {
        Some(id) => model.unk_token(text(id as u32)),
        None => model,
    };
    let mut encoder = Encoder::new(model.build().map_err(malformed)?);
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if space_prefix {
        steps.push(Prepend::new(SPACE.into()).into());
    }
    steps.push(Replace::new(" ", SPACE.to_string()).map_err(malformed)?.into());
    encoder.with_normalizer(Some(Normalizers::new(steps))).map_err(malformed)?;
    Ok(encoder)
}
