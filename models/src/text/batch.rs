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

/// Fewer tokens than these are computed again, because others would wait for them.
const SHARED: usize = 32;

impl TextGenerator {
    /// Generates texts for several prompts at once, which is faster than one by one: a step computes the next tokens of all of
    /// them, and what prompts have in common at the beginning, such as a system message, is computed once. Each text has the same bits as
    /// alone. Prompt i uses the sequence number of the options plus i ([`Sampling::sequence`]).
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
            let computing = self.computing(&mut runs)?;
            let under_way = runs.iter_mut().enumerate().filter(|(number, _)| computing.binary_search(number).is_ok());
            for (number, (run, _)) in under_way {
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

    /// Returns the numbers of the sequences that the next step computes, in order. One that has not begun takes the first tokens that
    /// it shares with another one's keys and values, or waits until they are computed.
    fn computing(&self, runs: &mut [(Run, String)]) -> Result<Vec<usize>> {
        let under_way = (0..runs.len()).filter(|&number| runs[number].0.finish.is_none()).take(SEQUENCES);
        let mut computing: Vec<usize> = Vec::new();
        for number in under_way.collect::<Vec<_>>() {
            if runs[number].0.cache.length() == 0
                && let Some((from, length)) = shared(runs, &computing, number)
            {
                let from = &runs[from].0.cache;
                if from.length() < length {
                    continue;
                }
                runs[number].0.cache = from.fork(self.inner().model.context(), length)?;
            }
            computing.push(number);
        }
        Ok(computing)
    }
}

/// Returns which of some sequences has the most of a sequence's first tokens, and how many. The last token has to be computed.
fn shared(runs: &[(Run, String)], of: &[usize], number: usize) -> Option<(usize, usize)> {
    let own = &runs[number].0.tokens;
    let common = |other: &[u32]| own[..own.len() - 1].iter().zip(other).take_while(|(a, b)| a == b).count();
    let found = of.iter().map(|&other| (other, common(&runs[other].0.tokens)));
    // The first one of several: `max_by_key` would return the last.
    found.rev().max_by_key(|&(_, length)| length).filter(|&(_, length)| length >= SHARED)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::OpenOptions;

    fn open(device: &str, chunk: usize) -> Result<TextGenerator> {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/text/llama.gguf");
        let options = OpenOptions { device: Some(device.into()), chunk: Some(chunk), ..OpenOptions::default() };
        TextGenerator::open_with(model, &options)
    }

    #[test]
    fn what_prompts_have_in_common_is_computed_once() {
        let model = open("cpu", 64).unwrap();
        let inner = model.inner();
        let begin = |tokens: Vec<u32>| {
            (Run::new(inner, inner.cache(), tokens, &GenerateOptions::default()).unwrap(), String::new())
        };
        let common = |count: u32, last: u32| (0..count).map(|i| 3 + i % 50).chain([last]).collect::<Vec<u32>>();
        let mut runs = [common(100, 1), common(100, 2), common(70, 1), common(31, 4), common(100, 1)].map(begin);
        let lengths = |runs: &[(Run, String)]| runs.iter().map(|(run, _)| run.cache.length()).collect::<Vec<_>>();
        let compute = |runs: &mut [(Run, String)]| {
            let computing = model.computing(runs).unwrap();
            for &number in &computing {
                inner.model.forward(&mut [runs[number].0.step(64).0]).unwrap();
            }
            computing
        };
        // The fourth one has too little in common with the first one.
        assert_eq!(compute(&mut runs), [0, 3]);
        assert_eq!(lengths(&runs), [64, 0, 0, 32, 0]);
        assert_eq!(compute(&mut runs), [0, 3]);
        assert_eq!(lengths(&runs), [101, 0, 0, 32, 0]);
        assert_eq!(model.computing(&mut runs).unwrap(), [0, 1, 2, 3, 4]);
        assert_eq!(lengths(&runs), [101, 100, 70, 32, 100]);
        // One that has ended shares nothing.
        let mut runs = [common(100, 1), common(100, 2)].map(begin);
        compute(&mut runs);
        runs[0].0.finish = Some(crate::text::Finish::Stop);
        assert_eq!(model.computing(&mut runs).unwrap(), [1]);
        assert_eq!(lengths(&runs)[1], 0);
    }

    #[test]
    fn prompts_with_a_common_beginning_have_the_bits_that_they_have_alone() {
        let backend = std::env::var("ADEAD_TEST_BACKEND");
        // Whoever names the back end wants the test to run.
        let model = open(&backend.map_or("cpu".into(), |backend| format!("{backend}:0")), 40).unwrap();
        let system = "the ferry came in and the boat was calm ".repeat(2);
        let prompts = ["x", "the sea", &system, "the ferry", "12 12"].map(|end| format!("{system}{end}"));
        let options = GenerateOptions { max_tokens: 6, ignore_end: true, ..GenerateOptions::default() };
        let together = model.generate_batch(&prompts, &options).unwrap();
        for (prompt, found) in prompts.iter().zip(together) {
            assert_eq!(found, open("cpu", 512).unwrap().generate(prompt, &options).unwrap());
        }
    }
}
