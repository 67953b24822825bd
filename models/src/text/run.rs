//! A sequence during generation: its computed tokens, the next ones, and its end.

use super::cache::Cache;
use super::decoder::{Step, Wanted};
use super::generator::Inner;
use super::grammar::Allowed;
use super::options::{Finish, GenerateOptions, Generation};
use super::pieces::Utf8;
use super::sampling::Sampling;
use super::stops::Stops;
use adead::{Error, Result, Status};

/// A prompt and its answer so far.
pub(crate) struct Run {
    /// Of the tokens before the first one that is not computed yet.
    pub cache: Cache,
    /// The prompt's, then the answer's.
    pub tokens: Vec<u32>,
    prompt: usize,
    sampling: Sampling,
    max_tokens: usize,
    ignore_end: bool,
    /// What may come next, if not everything.
    allowed: Option<Allowed>,
    stops: Stops,
    utf8: Utf8,
    pub finish: Option<Finish>,
}

/// Tokens of an answer for which there is room from the beginning.
const ANSWER: usize = 512;

impl Run {
    /// Begins an answer to a prompt. The cache may have the prompt's first tokens already, at least one less than all.
    /// `invalid_argument` for an empty prompt or one that exceeds the context length, and for options outside their ranges.
    pub fn new(inner: &Inner, mut cache: Cache, prompt: Vec<u32>, options: &GenerateOptions) -> Result<Run> {
        options.sampling.check()?;
        if prompt.is_empty() {
            let text = "the prompt has no tokens, and the model's texts begin with no token of their own (bos): pass some text";
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let (length, most) = (prompt.len(), inner.context_length);
        if length > most {
            let text = format!("the prompt has {length} tokens and the context length is {most}: shorten the prompt");
            return Err(Error::new(Status::InvalidArgument, text));
        }
        cache.expect(length + options.max_tokens.min(ANSWER));
        Ok(Run {
            cache,
            prompt: length,
            tokens: prompt,
            sampling: options.sampling,
            max_tokens: options.max_tokens,
            ignore_end: options.ignore_end,
            allowed: options.json_schema.as_deref().map(|schema| inner.grammars()?.begin(schema)).transpose()?,
            stops: Stops::new(&options.stop),
            utf8: Utf8::default(),
            finish: (options.max_tokens == 0).then_some(Finish::MaxTokens),
        })
    }

    /// Returns the answer's tokens.
    pub fn answer(&self) -> &[u32] {
        &self.tokens[self.prompt..]
    }

    pub fn prompt_tokens(&self) -> usize {
        self.prompt
    }

    /// Returns how many tokens the cache lacks.
    pub fn left(&self) -> usize {
        self.tokens.len() - self.cache.length()
    }

    /// Returns the next tokens to compute, `most` at most, and whether the next token follows from them.
    pub fn step(&mut self, most: usize) -> (Step<'_>, bool) {
        let (first, count) = (self.cache.length(), self.left().min(most));
        let complete = first + count == self.tokens.len();
        let wanted = if complete { Wanted::Last } else { Wanted::None };
        (Step { cache: &mut self.cache, tokens: &self.tokens[first..first + count], wanted }, complete)
    }

    /// Whether the token with the greatest logit is always the next one.
    pub fn is_greedy(&self) -> bool {
        self.sampling.is_greedy() && self.allowed.is_none()
    }

    /// Chooses the next token by its logits.
    pub fn choose(&self, inner: &Inner, logits: &[f32]) -> Result<u32> {
        let allowed = self.allowed.as_ref().map(|allowed| allowed.only(logits)).transpose()?;
        self.sampling.choose(&inner.cpu, allowed.as_deref().unwrap_or(logits), &self.tokens)
    }

    /// Adds a token. Returns the text that is certain now, which may be empty.
    pub fn accept(&mut self, inner: &Inner, token: u32) -> Result<String> {
        let complete = self.allowed.as_mut().map_or(Ok(false), |allowed| allowed.push(token))?;
        self.tokens.push(token);
        let ends = inner.tokenizer.vocabulary().is_end(token) && !self.ignore_end;
        let piece = if ends { String::new() } else { self.utf8.push(inner.tokenizer.piece(token)) };
        let (mut text, stopped) = self.stops.push(&piece);
        self.finish = if stopped {
            Some(Finish::Stop)
        } else if ends || complete {
            Some(Finish::End)
        } else if self.answer().len() >= self.max_tokens {
            Some(Finish::MaxTokens)
        } else if self.tokens.len() > inner.context_length {
            Some(Finish::ContextFull)
        } else {
            None
        };
        if self.finish.is_some() && !stopped {
            let (rest, stopped) = self.stops.push(&self.utf8.finish());
            text += &rest;
            if stopped {
                self.finish = Some(Finish::Stop);
            } else {
                text += &self.stops.finish();
            }
        }
        Ok(text)
    }

    /// Returns the whole answer, whose text the caller has collected.
    pub fn generation(&self, text: String) -> Generation {
        Generation {
            text,
            tokens: self.answer().to_vec(),
            finish: self.finish.unwrap_or(Finish::MaxTokens),
            prompt_tokens: self.prompt,
        }
    }
}
