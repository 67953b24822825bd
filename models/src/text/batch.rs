//! Several texts at once.

use super::decoder::Step;
use super::generator::{Inner, TextGenerator};
use super::options::{GenerateOptions, Generation};
use super::run::Run;
use super::sampling::Sampling;
use crate::spread::spread;
use adead::{Result, Tensor};

/// The most sequences in flight at once; others begin when one ends.
const SEQUENCES: usize = 64;

impl TextGenerator {
    /// Generates texts for several prompts at once, which is faster than one by one: a step computes the next tokens of all of
    /// them. Each text has the same bits as alone. Prompt i uses the sequence number of the options plus i
    /// ([`Sampling::sequence`]).
    ///
    /// # Errors
    /// Those of [`generate`](TextGenerator::generate), for any of the prompts.
    pub fn generate_batch<S: AsRef<str>>(&self, prompts: &[S], options: &GenerateOptions) -> Result<Vec<Generation>> {
        let inner = self.inner();
        let begin = |number: usize| -> Result<(Run, String)> {
            let sequence = options.sampling.sequence.wrapping_add(number as u64);
            let options = GenerateOptions { sampling: Sampling { sequence, ..options.sampling }, ..options.clone() };
            let prompt = inner.tokenizer.encode(prompts[number].as_ref())?;
            Ok((Run::new(inner, inner.cache(), prompt, &options)?, String::new()))
        };
        // An error of any prompt comes before the work.
        let mut runs = (0..prompts.len()).map(begin).collect::<Result<Vec<_>>>()?;
        loop {
            let (mut room, mut steps, mut choosing): (usize, Vec<Step<'_>>, Vec<usize>) = (inner.chunk, vec![], vec![]);
            let under_way = runs.iter_mut().enumerate().filter(|(_, (run, _))| run.finish.is_none());
            for (number, (run, _)) in under_way.take(SEQUENCES) {
                let left = run.left();
                // A token of an answer always has room, so that no text waits for another one's prompt.
                let (step, complete) = run.step(if left == 1 { 1 } else { room });
                room = room.saturating_sub(step.tokens.len());
                if complete {
                    choosing.push(number);
                }
                if !step.tokens.is_empty() {
                    steps.push(step);
                }
            }
            if steps.is_empty() {
                break;
            }
            let Some(ahead) = inner.model.forward(&mut steps)? else { continue };
            let greedy = choosing.iter().all(|&number| runs[number].0.is_greedy());
            let greatest = if greedy { inner.model.greatest(&ahead)? } else { None };
            let chosen = match greatest {
                Some(tokens) => choosing.into_iter().zip(tokens).collect(),
                None => chosen(inner, &runs, &choosing, &inner.model.logits(&ahead)?)?,
            };
            for (number, token) in chosen {
                let (run, text) = &mut runs[number];
                *text += &run.accept(inner, token)?;
                if run.finish.is_some() {
                    // Its keys and values are of no use any more.
                    run.cache = inner.cache();
                }
            }
        }
        Ok(runs.into_iter().map(|(run, text)| run.generation(text)).collect())
    }
}

/// Chooses the next tokens of the runs with these numbers, whose logits are rows.
fn chosen(inner: &Inner, runs: &[(Run, String)], choosing: &[usize], logits: &Tensor) -> Result<Vec<(usize, u32)>> {
    let rows = logits.as_slice::<f32>()?.chunks_exact(inner.model.vocabulary());
    let choosing: Vec<(usize, &[f32])> = choosing.iter().copied().zip(rows).collect();
    // A draw sorts the whole vocabulary, which takes longer than starting a thread.
    let draws = choosing.first().is_some_and(|&(number, _)| !runs[number].0.is_greedy());
    let threads = if draws { inner.cpu.device_info().units } else { 1 };
    let choose = |&(number, logits): &(usize, &[f32])| runs[number].0.choose(inner, logits);
    let mut chosen = Vec::with_capacity(choosing.len());
    match threads.min(choosing.len()) {
        0 | 1 => {
            for of_run in &choosing {
                chosen.push((of_run.0, choose(of_run)?));
            }
        }
        threads => spread(&choosing, threads, &choose, |&(number, _), token| {
            chosen.push((number, token));
            Ok(())
        })?,
    }
    Ok(chosen)
}
