//! Streams of generated text.

use super::generator::{Inner, TextGenerator};
use super::options::{Finish, Generation};
use super::run::Run;
use adead::Result;

/// Iterates over the pieces of a text while it is generated. A piece is non-empty text of whole characters, from one or more
/// tokens. An error is the last item.
pub struct TextStream {
    generator: TextGenerator,
    run: Run,
    failed: bool,
}

impl TextStream {
    pub(crate) fn new(generator: TextGenerator, run: Run) -> TextStream {
        TextStream { generator, run, failed: false }
    }

    /// Returns the tokens of the answer so far.
    pub fn tokens(&self) -> &[u32] {
        self.run.answer()
    }

    /// Returns the number of the prompt's tokens.
    pub fn prompt_tokens(&self) -> usize {
        self.run.prompt_tokens()
    }

    /// Returns why the text ended, or `None` before its end.
    pub fn finish(&self) -> Option<Finish> {
        self.run.finish
    }

    /// Computes the prompt except its last token, which is computed with the first token of the answer. The iterator does this too;
    /// call it to measure prompt and answer separately.
    pub fn start(&mut self) -> Result<()> {
        let inner: &Inner = self.generator.inner();
        let all = self.run.tokens.len();
        while self.run.finish.is_none() && self.run.left() > 1 {
            let most = inner.chunk.min(self.run.left() - 1);
            inner.model.forward(&mut [self.run.step(most).0])?;
            inner.tell(self.run.cache.length(), all);
        }
        Ok(())
    }

    /// Computes the prompt's next chunk, unless it is the last one. Returns the number of the prompt's tokens computed so far, or
    /// `None` if only the last chunk is left; it is computed with the first token of the answer. The iterator computes the chunks
    /// too; call this to show progress.
    pub fn advance_prompt(&mut self) -> Result<Option<usize>> {
        let inner: &Inner = self.generator.inner();
        if self.failed || self.run.finish.is_some() || self.run.left() <= inner.chunk {
            return Ok(None);
        }
        let computed = inner.model.forward(&mut [self.run.step(inner.chunk).0]);
        self.failed = computed.is_err();
        computed?;
        inner.tell(self.run.cache.length(), self.run.tokens.len());
        Ok(Some(self.run.cache.length()))
    }

    /// Computes the rest, and returns the whole text.
    pub fn collect_all(mut self) -> Result<Generation> {
        let text = self.by_ref().collect::<Result<String>>()?;
        Ok(self.run.generation(text))
    }

    pub(crate) fn into_run(self) -> Run {
        self.run
    }

    pub(crate) fn advance(&mut self) -> Result<String> {
        let inner: &Inner = self.generator.inner();
        let prompt = self.run.answer().is_empty();
        loop {
            let (step, complete) = self.run.step(inner.chunk);
            let ahead = inner.model.forward(&mut [step])?;
            if prompt {
                inner.tell(self.run.cache.length(), self.run.tokens.len());
            }
            let Some(ahead) = ahead.filter(|_| complete) else { continue };
            let greatest = if self.run.is_greedy() { inner.model.greatest(&ahead)? } else { None };
            let token = match greatest.as_deref() {
                Some(&[token]) => token,
                _ => self.run.choose(inner, inner.model.logits(&ahead)?.as_slice()?)?,
            };
            return self.run.accept(inner, token);
        }
    }
}

impl Iterator for TextStream {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        while !self.failed && self.run.finish.is_none() {
            match self.advance() {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return Some(Ok(text)),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl std::fmt::Debug for TextStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (prompt, tokens) = (self.prompt_tokens(), self.tokens().len());
        write!(f, "TextStream({prompt} tokens of the prompt, {tokens} of the answer, {:?})", self.finish())
    }
}
