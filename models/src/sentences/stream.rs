//! Embeds streams of sentences of any length, in bounded memory.

use super::embeddings::Embeddings;
use super::encoder::{EncodeOptions, SentenceEncoder};
use super::tokens::{Tokens, Words};
use adead::{DataLoader, Error, Result, Status};
use std::sync::Arc;
use std::sync::mpsc::channel;

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
    /// takes the sentences and has them tokenized, and another one computes while `sink` runs. At most some ten thousand sentences are
    /// in memory.
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
        // One is made while one is taken.
        let windows = DataLoader::new(windows, 2)?;
        let (sender, parts) = channel();
        let (give, taken) = channel();
        let compute = move || {
            let mut computed = 0;
            for window in windows {
                let rows = window.and_then(|window| {
                    self.encode_tokens(&window, options, &mut |more| {
                        computed += more as u64;
                        sender.send(Ok(Part::Progress(computed))).map_err(|_| nobody_waits())
                    })
                });
                // After an error no more is computed. Else the caller has done with the rows before.
                let failed = rows.is_err();
                if sender.send(rows.map(Part::Rows)).is_err() || failed || taken.recv().is_err() {
                    return;
                }
            }
        };
        // The ends of both channels go with the closure, before the thread is waited for.
        std::thread::scope(move |scope| {
            let started = std::thread::Builder::new().name("adead-embed".into()).spawn_scoped(scope, compute);
            started.map_err(|error| Error::new(Status::Io, format!("no thread can be started: {error}")))?;
            let mut first = 0;
            // Of a thread that panicked less comes, and the scope goes on with its panic.
            for part in parts {
                match part? {
                    Part::Progress(computed) => sink(EmbeddingPart::Progress(computed))?,
                    Part::Rows(rows) => {
                        give.send(()).ok();
                        sink(EmbeddingPart::Rows { first, rows: &rows })?;
                        first += rows.len() as u64;
                    }
                }
            }
            Ok(first)
        })
    }
}

/// The error that ends a batch's thread whose caller has gone. Nobody sees it.
fn nobody_waits() -> Error {
    Error::new(Status::NotReady, "nobody takes the rows any more")
}

/// What the thread that computes tells the caller's.
enum Part {
    Progress(u64),
    Rows(Embeddings),
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
