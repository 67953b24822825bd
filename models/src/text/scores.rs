//! Scores of given texts: logits, probabilities, hidden states.

use super::decoder::{Step, Wanted};
use super::generator::TextGenerator;
use adead::{Axis, Error, Result, Status, Tensor};

/// Rows of logits that are in memory at once, where only a number of each is kept.
const ROWS: usize = 64;

impl TextGenerator {
    /// Returns, for each token, the logits of the token after it: `[tokens, vocabulary]`, row by row, see
    /// [`vocabulary`](TextGenerator::vocabulary).
    ///
    /// # Errors `invalid_argument` if there are no tokens or more than the context length, or one is outside the vocabulary.
    pub fn logits(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut logits = Vec::new();
        self.each_chunk(tokens, &mut |_, hidden| {
            logits.extend_from_slice(self.inner().model.logits_of(hidden)?.as_slice::<f32>()?);
            Ok(())
        })?;
        Ok(logits)
    }

    /// Returns the log-probability of each token except the first, given the tokens before it: one value fewer than tokens.
    ///
    /// # Errors
    /// Those of [`logits`](TextGenerator::logits).
    pub fn logprobs(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let (inner, mut found) = (self.inner(), Vec::with_capacity(tokens.len()));
        let vocabulary = inner.model.vocabulary();
        self.each_chunk(tokens, &mut |first, hidden| {
            for start in (0..hidden.dims()[0]).step_by(ROWS) {
                let rows = hidden.dims()[0].min(start + ROWS) - start;
                let logits = inner.model.logits_of(&hidden.rows(start, rows)?)?.to_cpu()?;
                let last = Axis::At(-1);
                let apart = inner.cpu.sub(&logits, &inner.cpu.max(&logits, last, true)?)?;
                let sums = inner.cpu.log(&inner.cpu.sum(&inner.cpu.exp(&apart)?, last, false)?)?;
                let (apart, sums) = (apart.as_slice::<f32>()?, sums.as_slice::<f32>()?);
                for row in 0..rows {
                    if let Some(&token) = tokens.get(first + start + row + 1) {
                        found.push(apart[row * vocabulary + token as usize] - sums[row]);
                    }
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the perplexity of a text: e to the mean of −[`logprobs`](TextGenerator::logprobs), over all tokens except the first.
    /// A text that exceeds the context length is cut into parts of that length, which don't see each other.
    ///
    /// # Errors
    /// `invalid_argument` if the text has fewer than two tokens.
    pub fn perplexity(&self, text: &str) -> Result<f64> {
        let tokens = self.tokenize(text)?;
        let (mut sum, mut count) = (0.0f64, 0usize);
        for part in tokens.chunks(self.context_length()) {
            let logprobs = self.logprobs(part)?;
            sum = logprobs.iter().fold(sum, |sum, &logprob| sum - f64::from(logprob));
            count += logprobs.len();
        }
        if count == 0 {
            let text = format!("the text has {} tokens; perplexity needs at least 2", tokens.len());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        Ok(libm::exp(sum / count as f64))
    }

    /// Returns an embedding of a text: the mean of its tokens' last hidden states, [`width`](TextGenerator::width) values. Language
    /// models are not trained for this, so such embeddings are coarser than those of [`SentenceEncoder`](crate::SentenceEncoder).
    ///
    /// # Errors
    /// `invalid_argument` if the text has no token, or more than the context length.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>> {
        let tokens = self.tokenize(text)?;
        let mut hidden = Vec::with_capacity(tokens.len() * self.width());
        self.each_chunk(&tokens, &mut |_, rows| {
            hidden.extend_from_slice(rows.as_slice::<f32>()?);
            Ok(())
        })?;
        let hidden = Tensor::new(&hidden, &[tokens.len(), self.width()])?;
        self.inner().cpu.mean(&hidden, Axis::At(0), false)?.to_vec()
    }

    /// Gives the hidden states of tokens to `each`, chunk by chunk, with the number of the first.
    fn each_chunk(&self, tokens: &[u32], each: &mut dyn FnMut(usize, &Tensor) -> Result<()>) -> Result<()> {
        let (inner, most) = (self.inner(), self.context_length());
        if tokens.is_empty() || tokens.len() > most {
            let text = format!("{} tokens: pass at least 1, and at most the context length of {most}", tokens.len());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= inner.model.vocabulary()) {
            let text = format!("token {token} is outside the vocabulary of {} tokens", inner.model.vocabulary());
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let mut cache = inner.cache();
        for (number, tokens) in tokens.chunks(inner.chunk).enumerate() {
            let step = Step { cache: &mut cache, tokens, wanted: Wanted::All };
            if let Some(ahead) = inner.model.forward(&mut [step])? {
                each(number * inner.chunk, &inner.model.hidden(&ahead)?)?;
            }
        }
        Ok(())
    }
}
