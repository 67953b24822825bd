//! Sentences as tokens.

use super::fault;
use adead::{Error, Result, Status};
use std::path::Path;
use tokenizers::{Tokenizer, TruncationParams};

/// The number of sentences from which starting a thread pays.
const SHARE: usize = 16;

/// A sentence's tokens.
pub(crate) struct Tokens {
    pub ids: Vec<u32>,
    /// Whether the sentence had more tokens than the model takes.
    pub truncated: bool,
}

/// The tokenizer of a model.
pub(crate) struct Words(Tokenizer);

impl Words {
    /// Reads the tokenizer of `tokenizer.json`, for at most `most` tokens and a table of `words` words. `invalid_argument` if it is
    /// malformed or has words that the table lacks.
    pub fn new(path: &Path, json: &[u8], most: usize, words: usize) -> Result<Words> {
        let malformed = |error: tokenizers::Error| fault(Status::InvalidArgument, path, error);
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(malformed)?;
        // The file's own limits are those of its training.
        tokenizer.with_padding(None);
        let truncation = TruncationParams { max_length: most, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(malformed)?;
        let last = tokenizer.get_vocab(true).values().copied().max().unwrap_or(0) as usize;
        if last >= words {
            let text = format!("it has a token {last} and the model's table of words {words} rows");
            return Err(fault(Status::InvalidArgument, path, text));
        }
        let this = Words(tokenizer);
        // Pooling takes a mean, which of nothing there is not.
        if this.tokens("")?.ids.is_empty() {
            let text = "an empty sentence has no token: there are no special ones around a sentence";
            return Err(fault(Status::Unsupported, path, text));
        }
        Ok(this)
    }

    /// Tokenizes sentences with at most `threads` threads, and returns the tokens in order, or the first error.
    pub fn all<S: AsRef<str> + Sync>(&self, sentences: &[S], threads: usize) -> Result<Vec<Tokens>> {
        let some = |sentences: &[S]| {
            sentences.iter().map(|sentence| self.tokens(sentence.as_ref())).collect::<Result<Vec<_>>>()
        };
        let share = sentences.len().div_ceil(threads.max(1)).max(SHARE);
        if share >= sentences.len() {
            return some(sentences);
        }
        let mut all = Vec::with_capacity(sentences.len());
        std::thread::scope(|scope| {
            let parts: Vec<_> = sentences.chunks(share).map(|part| scope.spawn(move || some(part))).collect();
            for part in parts {
                all.append(&mut part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(all)
        })
    }

    /// Returns a sentence's tokens, including the special ones.
    pub fn tokens(&self, sentence: &str) -> Result<Tokens> {
        let encoding = self.0.encode_fast(sentence, true).map_err(|error| {
            let start: String = sentence.chars().take(40).collect();
            Error::new(Status::InvalidArgument, format!("the sentence '{start}' can't be tokenized: {error}"))
        })?;
        Ok(Tokens { ids: encoding.get_ids().to_vec(), truncated: !encoding.get_overflowing().is_empty() })
    }
}
