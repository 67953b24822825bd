//! Divides sentences into batches of similar length.

use super::tokens::Tokens;

/// Returns batches of indices, longest sentences first. A batch has at most `most` sentences, and at most `most_tokens` tokens
/// unless it is a single sentence. The longest batch comes first, so that later ones reuse its memory.
pub(crate) fn batches(sentences: &[Tokens], most: usize, most_tokens: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    // Stable: what is of one length stays in the order of the caller.
    order.sort_by_key(|&sentence| std::cmp::Reverse(sentences[sentence].ids.len()));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for sentence in order {
        match batches.last_mut() {
            Some(batch) if batch.len() < most && fits(sentences, batch, most_tokens) => batch.push(sentence),
            _ => batches.push(vec![sentence]),
        }
    }
    batches
}

/// Returns whether a batch has at most `most_tokens` tokens with one more sentence, no longer than its first.
fn fits(sentences: &[Tokens], batch: &[usize], most_tokens: usize) -> bool {
    (batch.len() + 1) * sentences[batch[0]].ids.len() <= most_tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_every_sentence_once_and_keep_both_limits() {
        let lengths = [3usize, 9, 9, 1, 40, 3, 9, 2, 9, 7, 300];
        let sentences: Vec<Tokens> = lengths.iter().map(|&n| Tokens { ids: vec![1; n], truncated: false }).collect();
        let found = batches(&sentences, 4, 36);
        assert_eq!(found, [vec![10], vec![4], vec![1, 2, 6, 8], vec![9, 0, 5, 7], vec![3]]);
        assert_eq!(batches(&sentences, 1, 36).len(), lengths.len());
        assert!(batches(&[], 4, 36).is_empty());
        let tight = batches(&sentences, 100, 20);
        assert!(tight.iter().all(|batch| batch.len() == 1 || batch.len() * lengths[batch[0]] <= 20), "{tight:?}");
    }
}
