//! Embeds streams of sentences of any length, in bounded memory.

use super::embeddings::Embeddings;
use super::encoder::{EncodeOptions, SentenceEncoder};
use super::tokens::{Tokens, Words};
use adead::{DataLoader, Error, Result};
use std::sync::Arc;

/// The most sentences that are sorted by length at once; fewer at the start, because the caller waits for the first rows.
const SENTENCES: usize = 4096;
const FIRST: usize = 64;
/// Bytes of text after which no further sentences are taken.
const BYTES: usize = 4 << 20;

/// A part of a stream's results: see [`SentenceEncoder::batch_embed`].
#[derive(Debug)]
pub enum EmbeddingPart<'a> {
    /// The number of sentences computed so far, including those whose rows have not been passed yet.
    Progress(u64),
    /// The next rows, in the order of the sentences. `first` is the index of the first row's sentence.
    Rows {
        /// The index of the first row's sentence.
        first: u64,
        /// The rows. The indices in `truncated()` count from `first`.
        rows: &'a Embeddings,
    },
}

impl SentenceEncoder {
    /// Embeds sentences as they arrive, and passes the rows to `sink` in order. Returns the number of sentences. A separate thread
    /// takes the sentences and has them tokenized, a few thousand ahead; no more of a stream is in memory.
    ///
    /// An error of the source, of a sentence or of `sink` ends the stream and is returned. Rows of sentences before an error of the
    /// source may be missing.
    pub fn batch_embed<S, E>(
        &self,
        sentences: impl IntoIterator<Item = Result<S, E>> + Send + 'static,
        options: &EncodeOptions,
        mut sink: impl FnMut(EmbeddingPart<'_>) -> Result<()>,
    ) -> Result<u64>
    where
        S: AsRef<str> + Sync,
        E: Into<Error>,
    {
        let windows = Tokenized { sentences, words: self.words.clone(), threads: self.tokenizers() };
        let mut first = 0;
        // One is made while one is taken.
        for window in DataLoader::new(windows, 2)? {
            let (mut computed, mut failed) = (first, Ok(()));
            let rows = self.encode_tokens(&window?, options, &mut |more| {
                computed += more as u64;
                if failed.is_ok() {
                    failed = sink(EmbeddingPart::Progress(computed));
                }
            })?;
            failed?;
            sink(EmbeddingPart::Rows { first, rows: &rows })?;
            first += rows.len() as u64;
        }
        Ok(first)
    }
}

/// Sentences to be tokenized by the thread that takes them.
struct Tokenized<I> {
    sentences: I,
    words: Arc<Words>,
    threads: usize,
}

impl<S, E, I> IntoIterator for Tokenized<I>
where
    S: AsRef<str> + Sync,
    E: Into<Error>,
    I: IntoIterator<Item = Result<S, E>>,
{
    type Item = Result<Vec<Tokens>>;
    type IntoIter = Windows<I::IntoIter>;

    fn into_iter(self) -> Windows<I::IntoIter> {
        Windows { sentences: self.sentences.into_iter(), words: self.words, threads: self.threads, most: FIRST }
    }
}

/// Tokenized sentences, as many as are sorted at once.
struct Windows<I> {
    sentences: I,
    words: Arc<Words>,
    threads: usize,
    most: usize,
}

impl<S: AsRef<str> + Sync, E: Into<Error>, I: Iterator<Item = Result<S, E>>> Iterator for Windows<I> {
    type Item = Result<Vec<Tokens>>;

    fn next(&mut self) -> Option<Result<Vec<Tokens>>> {
        let (mut window, mut bytes) = (Vec::new(), 0);
        while window.len() < self.most && bytes < BYTES {
            match self.sentences.next() {
                Some(Ok(sentence)) => {
                    bytes += sentence.as_ref().len();
                    window.push(sentence);
                }
                Some(Err(error)) => return Some(Err(error.into())),
                None => break,
            }
        }
        self.most = SENTENCES.min(self.most * 2);
        if window.is_empty() { None } else { Some(self.words.all(&window, self.threads)) }
    }
}
