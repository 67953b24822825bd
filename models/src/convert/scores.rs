//! Scores of SentencePiece's tokens, from the order of merges.

use crate::text::vocabulary::Kind;
use std::collections::{HashMap, HashSet};

/// Returns a score for each token: those that merges make come first, in the merges' order. Tokens of several characters that no
/// merge makes are marked as unused, because scores would make them. Returns a note if scores don't give the same merges.
pub(super) fn scores(
    texts: &[String],
    kinds: &mut [Kind],
    ids: &HashMap<String, u32>,
    merges: &[(String, String)],
) -> (Vec<f32>, Option<String>) {
    let mut ranks: Vec<Option<u32>> = vec![None; texts.len()];
    let mut order = Vec::new();
    let mut given: HashSet<(u32, u32)> = HashSet::new();
    let mut apart = 0usize;
    for (a, b) in merges {
        if let (Some(&a), Some(&b)) = (ids.get(a), ids.get(b)) {
            given.insert((a, b));
        }
        let made = ids.get(&format!("{a}{b}")).filter(|&&made| kinds[made as usize] == Kind::Normal);
        // Added tokens are found before merges begin, with spaces for ▁.
        let Some(&made) = made else { continue };
        let rank = &mut ranks[made as usize];
        match rank {
            None => {
                *rank = Some(order.len() as u32);
                order.push(made);
            }
            // Another way to a token comes after other tokens.
            Some(rank) if *rank as usize + 1 != order.len() => apart += 1,
            Some(_) => {}
        }
    }
    let mut scores = vec![0.0; texts.len()];
    let mut next = order.len();
    for (id, text) in texts.iter().enumerate() {
        if kinds[id] != Kind::Normal {
            continue;
        }
        match ranks[id] {
            Some(rank) => {
                scores[id] = -(rank as f32);
                // What scores would merge: every way to divide a token into two.
                for (at, _) in text.char_indices().skip(1) {
                    let pair = ids.get(&text[..at]).zip(ids.get(&text[at..]));
                    apart += usize::from(pair.is_some_and(|(&a, &b)| !given.contains(&(a, b))));
                }
            }
            None => {
                scores[id] = -(next as f32);
                next += 1;
                if text.chars().nth(1).is_some() {
                    kinds[id] = Kind::Unused;
                }
            }
        }
    }
    let note = (apart > 0).then(|| {
        format!(
            "{apart} of {} merges differ from those that scores give, so a few texts may become other tokens; a GGUF file \
             has scores instead of merges",
            merges.len()
        )
    });
    (scores, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str], merges: &[(&str, &str)]) -> (Vec<f32>, Vec<Kind>, Option<String>) {
        let texts: Vec<String> = texts.iter().map(|&text| text.into()).collect();
        let ids = texts.iter().zip(0..).map(|(text, id)| (text.clone(), id)).collect();
        let merges: Vec<(String, String)> = merges.iter().map(|&(a, b)| (a.into(), b.into())).collect();
        let mut kinds = vec![Kind::Normal; texts.len()];
        let (scores, note) = scores(&texts, &mut kinds, &ids, &merges);
        (scores, kinds, note)
    }

    #[test]
    fn merges_order_scores() {
        let texts = ["a", "b", "ab", "abab", "aba", "zz"];
        let merges = [("a", "b"), ("ab", "a"), ("ab", "ab"), ("aba", "b")];
        let (scores, kinds, note) = of(&texts, &merges);
        assert_eq!(scores, [-3.0, -4.0, 0.0, -2.0, -1.0, -5.0]);
        assert_eq!((kinds[3], kinds[5], note), (Kind::Normal, Kind::Unused, None));
        // Scores would make "abab" of "aba" and "b" too.
        let (.., note) = of(&texts, &merges[..3]);
        assert!(note.unwrap().starts_with("1 of 3 merges differ"));
        // And "aba" before "abab".
        let (.., note) = of(&texts, &[merges[0], merges[2], merges[1], merges[3]]);
        assert!(note.unwrap().starts_with("1 of 4 merges differ"));
    }
}
