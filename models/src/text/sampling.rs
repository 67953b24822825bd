//! Which token comes next: the most likely one, or one that a random number chooses.

use adead::contract::uniform;
use adead::{Context, Error, Result, Status, Tensor};

/// Options for choosing each token. [`Sampling::default`] takes the most likely one.
///
/// The steps, in this order:
///
/// 1. `repeat_penalty` lowers the logits of the last `repeat_last` tokens: positive ones are divided by it, others multiplied.
/// 2. With `temperature` 0 the token with the greatest logit is chosen; of equal ones, the one with the lowest id. The later steps
///    are skipped.
/// 3. Tokens are sorted by their logits, greatest first, equal ones by id.
/// 4. `top_k` keeps the first tokens, then `top_p` the first ones whose probabilities together reach it, then `min_p` those whose
///    probability is at least this part of the first one's. The first token always stays.
/// 5. Logits are divided by `temperature`, and `softmax` makes weights of them.
/// 6. The first token whose running sum of weights exceeds r times the sum of all is chosen.
///
/// Probabilities are those of the operation `softmax`, sums and products f32, all rounded in this order, so the same token is
/// chosen on every machine. r is a multiple of 2⁻²⁴ in [0, 1) that Philox4x32-10 computes from `seed`, the number of the sequence
/// and the position of the token in it, and from nothing else. `docs/contract.md` has the details.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The temperature: 0 takes the most likely token, 1 samples by the model's own probabilities, more flattens the distribution.
    pub temperature: f32,
    /// The number of most likely tokens to sample from; 0 is all.
    pub top_k: usize,
    /// Sample from the most likely tokens whose probabilities together reach this, 0 to 1; 1 is all tokens.
    pub top_p: f32,
    /// The least probability of a token to sample, as a fraction of the most likely token's, 0 to 1; 0 is all tokens.
    pub min_p: f32,
    /// The penalty for recent tokens; 1 is none.
    pub repeat_penalty: f32,
    /// How many of the last tokens count as recent, including the prompt's.
    pub repeat_last: usize,
    /// The key of the random numbers.
    pub seed: u64,
    /// The number of the sequence. Sequences with the same seed and different numbers draw different random numbers. In a batch,
    /// text i uses `sequence` + i.
    pub sequence: u64,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repeat_penalty: 1.0,
            repeat_last: 64,
            seed: 0,
            sequence: 0,
        }
    }
}

impl Sampling {
    /// Checks the numbers. `invalid_argument` for one outside its range.
    pub(crate) fn check(&self) -> Result<()> {
        let refused = |name: &str, value: f32, range: &str| {
            Err(Error::new(Status::InvalidArgument, format!("{name} is {value}; it must be {range}")))
        };
        if !(0.0..=f32::MAX).contains(&self.temperature) {
            return refused("temperature", self.temperature, "0 or more, and finite");
        }
        for (name, value) in [("top_p", self.top_p), ("min_p", self.min_p)] {
            if !(0.0..=1.0).contains(&value) {
                return refused(name, value, "from 0 to 1");
            }
        }
        if !(self.repeat_penalty > 0.0 && self.repeat_penalty <= f32::MAX) {
            return refused("repeat_penalty", self.repeat_penalty, "more than 0, and finite");
        }
        Ok(())
    }

    /// Chooses the token that follows `before`, with the logits of every token. `cpu` is a context of the CPU alone.
    pub(crate) fn choose(&self, cpu: &Context, logits: &[f32], before: &[u32]) -> Result<u32> {
        if let Some(id) = logits.iter().position(|logit| logit.is_nan()) {
            let text =
                format!("the logit of token {id} is NaN: the model's weights are not finite, or too large for f32");
            return Err(Error::new(Status::InvalidArgument, text));
        }
        let penalised = self.penalised(logits, before);
        let logits = penalised.as_deref().unwrap_or(logits);
        if self.temperature == 0.0 {
            let greatest = (0..logits.len()).reduce(|best, id| if logits[id] > logits[best] { id } else { best });
            return Ok(greatest.unwrap_or(0) as u32);
        }
        let mut candidates = self.sorted(logits);
        // The first token always stays.
        candidates.truncate(candidates.iter().rposition(|(logit, _)| *logit > f32::NEG_INFINITY).unwrap_or(0) + 1);
        let weights = |candidates: &[(f32, u32)], temperature: f32| {
            let logits: Vec<f32> = candidates.iter().map(|(logit, _)| logit / temperature).collect();
            cpu.softmax(&Tensor::new(&logits, &[logits.len()])?, 0)?.to_vec::<f32>()
        };
        if self.top_p < 1.0 || self.min_p > 0.0 {
            let probabilities = weights(&candidates, 1.0)?;
            let mut sum = 0.0f32;
            let enough = probabilities.iter().position(|probability| {
                sum += probability;
                sum >= self.top_p
            });
            let least = self.min_p * probabilities[0];
            let likely = probabilities.iter().take_while(|&&probability| probability >= least).count();
            candidates.truncate(enough.map_or(candidates.len(), |last| last + 1).min(likely).max(1));
        }
        let weights = weights(&candidates, self.temperature)?;
        let total = weights.iter().fold(0.0f32, |sum, weight| sum + weight);
        let limit = uniform(self.seed, self.sequence, before.len() as u32) * total;
        let mut sum = 0.0f32;
        let chosen = weights.iter().position(|weight| {
            sum += weight;
            sum > limit
        });
        Ok(candidates[chosen.unwrap_or(candidates.len() - 1)].1)
    }

    /// Whether the token with the greatest logit is always chosen.
    pub(crate) fn is_greedy(&self) -> bool {
        self.temperature == 0.0 && !self.penalises()
    }

    fn penalises(&self) -> bool {
        self.repeat_penalty != 1.0 && self.repeat_last > 0
    }

    /// Returns the logits with the penalty of repetitions, if there is one.
    fn penalised(&self, logits: &[f32], before: &[u32]) -> Option<Vec<f32>> {
        if !self.penalises() {
            return None;
        }
        let mut lately = before[before.len().saturating_sub(self.repeat_last)..].to_vec();
        lately.sort_unstable();
        lately.dedup();
        let mut logits = logits.to_vec();
        for id in lately {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit = if *logit > 0.0 { *logit / self.repeat_penalty } else { *logit * self.repeat_penalty };
            }
        }
        Some(logits)
    }

    /// Returns the `top_k` candidates, greatest logit first, equal ones by id.
    fn sorted(&self, logits: &[f32]) -> Vec<(f32, u32)> {
        let mut all: Vec<u64> = logits.iter().zip(0..).map(|(&logit, id)| place(logit, id)).collect();
        if self.top_k > 0 && self.top_k < all.len() {
            all.select_nth_unstable(self.top_k - 1);
            all.truncate(self.top_k);
        }
        all.sort_unstable();
        all.into_iter().map(|place| (logits[place as u32 as usize], place as u32)).collect()
    }
}

/// A number by which candidates are sorted, because numbers sort faster than pairs: the logit's place above the id. Zeros of both signs
/// have one place, and there is no NaN.
fn place(logit: f32, id: u32) -> u64 {
    let bits = (logit + 0.0).to_bits();
    let descending = if bits >> 31 == 1 { bits } else { !(bits | 1 << 31) };
    u64::from(descending) << 32 | u64::from(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu() -> Context {
        Context::open("cpu").unwrap()
    }

    fn drawn(sampling: Sampling, logits: &[f32]) -> Vec<u32> {
        let (cpu, mut drawn) = (cpu(), Vec::new());
        for sequence in 0..400 {
            drawn.push(Sampling { sequence, ..sampling }.choose(&cpu, logits, &[1, 2]).unwrap());
        }
        drawn
    }

    fn seen(sampling: Sampling, logits: &[f32]) -> Vec<u32> {
        let mut seen = drawn(sampling, logits);
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    const WARM: Sampling = Sampling {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repeat_penalty: 1.0,
        repeat_last: 64,
        seed: 11,
        sequence: 0,
    };

    #[test]
    fn the_greatest_logit_wins_and_of_equal_ones_the_lower_id() {
        let greedy = |logits: &[f32]| Sampling::default().choose(&cpu(), logits, &[]).unwrap();
        assert_eq!(greedy(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(greedy(&[-0.0, 0.0]), 0);
        assert_eq!(greedy(&[f32::NEG_INFINITY, f32::NEG_INFINITY]), 0);
        let error = Sampling::default().choose(&cpu(), &[0.0, f32::NAN], &[]).unwrap_err();
        assert!(error.message().starts_with("the logit of token 1 is NaN"), "{error}");
    }

    #[test]
    fn candidates_are_in_order() {
        let logits = [1.0, -0.0, f32::NEG_INFINITY, 3.5, 0.0, -2.0, f32::INFINITY, -2.0, 1e-40, -1e-40, 3.5, f32::MAX];
        let ids =
            |top_k| -> Vec<u32> { Sampling { top_k, ..WARM }.sorted(&logits).into_iter().map(|(_, id)| id).collect() };
        let expected = [6, 11, 3, 10, 0, 8, 1, 4, 9, 5, 7, 2];
        for top_k in [0, 1, 3, 7, 12, 100] {
            let count = if top_k == 0 { 12 } else { top_k.min(12) };
            assert_eq!(ids(top_k), expected[..count], "{top_k}");
        }
    }

    #[test]
    fn draws_follow_the_probabilities() {
        // e^0 : e^1 : e^2, in no order.
        let drawn = drawn(WARM, &[1.0, 0.0, 2.0]);
        let share = |id| drawn.iter().filter(|&&drawn| drawn == id).count() as f64 / drawn.len() as f64;
        for (id, expected) in [(0, 0.245), (1, 0.090), (2, 0.665)] {
            assert!((share(id) - expected).abs() < 0.06, "{id}: {} {expected}", share(id));
        }
        // A low temperature takes nearly only the first, a high one all alike.
        assert_eq!(seen(Sampling { temperature: 0.01, ..WARM }, &[1.0, 0.0, 2.0]), [2]);
        assert_eq!(seen(Sampling { temperature: 100.0, ..WARM }, &[1.0, 0.0, 2.0]), [0, 1, 2]);
    }

    #[test]
    fn limits_keep_the_likely_ones() {
        let logits = [0.0, 2.0, 1.0, 2.0, -1.0];
        assert_eq!(seen(WARM, &logits), [0, 1, 2, 3, 4]);
        assert_eq!(seen(Sampling { top_k: 2, ..WARM }, &logits), [1, 3]);
        assert_eq!(seen(Sampling { top_k: 1, ..WARM }, &logits), [1], "of equal ones the lower id");
        // 0.383, 0.383, 0.141, 0.052, 0.019 of the whole.
        assert_eq!(seen(Sampling { top_p: 0.3, ..WARM }, &logits), [1]);
        assert_eq!(seen(Sampling { top_p: 0.5, ..WARM }, &logits), [1, 3]);
        assert_eq!(seen(Sampling { top_p: 0.9, ..WARM }, &logits), [1, 2, 3]);
        assert_eq!(seen(Sampling { top_p: 0.0, ..WARM }, &logits), [1]);
        assert_eq!(seen(Sampling { min_p: 0.3, ..WARM }, &logits), [1, 2, 3]);
        assert_eq!(seen(Sampling { min_p: 1.0, ..WARM }, &logits), [1, 3]);
        assert_eq!(seen(Sampling { top_k: 4, min_p: 0.3, top_p: 0.7, ..WARM }, &logits), [1, 3]);
    }

    #[test]
    fn repeated_tokens_are_penalised_once() {
        let greedy = Sampling { repeat_penalty: 2.0, repeat_last: 3, ..Sampling::default() };
        let choose = |logits: &[f32], before: &[u32]| greedy.choose(&cpu(), logits, before).unwrap();
        assert_eq!(choose(&[3.0, 2.0, 1.0], &[0, 0, 0]), 1);
        assert_eq!(choose(&[3.0, 2.0, 1.0], &[1, 0]), 0, "1.5, 1 and 1");
        assert_eq!(choose(&[3.0, 2.0, 1.0], &[0, 2, 2, 2]), 0, "it came before the last three");
        assert_eq!(choose(&[-1.0, -1.5], &[0]), 1, "negative logits are multiplied");
        assert_eq!(choose(&[3.0, 1.0], &[9]), 0, "an id outside is no fault");
    }

    #[test]
    fn a_draw_depends_on_seed_sequence_and_position() {
        let logits = vec![0.0; 1000];
        let at = |seed, sequence, before: &[u32]| {
            Sampling { seed, sequence, ..WARM }.choose(&cpu(), &logits, before).unwrap()
        };
        let first = at(1, 0, &[5]);
        assert_eq!(first, at(1, 0, &[7]), "the tokens before have no part");
        assert_ne!(first, at(2, 0, &[5]));
        assert_ne!(first, at(1, 1, &[5]));
        assert_ne!(first, at(1, 0, &[5, 5]));
    }

    #[test]
    fn numbers_outside_their_range_are_refused() {
        let message = |sampling: Sampling| sampling.check().map_err(|error| error.message().to_owned());
        assert_eq!(message(WARM), Ok(()));
        let expected = "temperature is -1; it must be 0 or more, and finite";
        assert_eq!(message(Sampling { temperature: -1.0, ..WARM }), Err(expected.into()));
        assert!(message(Sampling { temperature: f32::NAN, ..WARM }).is_err());
        assert_eq!(message(Sampling { top_p: 1.5, ..WARM }), Err("top_p is 1.5; it must be from 0 to 1".into()));
        assert!(message(Sampling { min_p: -0.1, ..WARM }).is_err());
        assert!(message(Sampling { repeat_penalty: 0.0, ..WARM }).is_err());
    }
}
