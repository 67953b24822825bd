//! all-MiniLM-L6-v2 against sentence-transformers, where `ADEAD_TEST_MODEL` names its folder: `ci/models` gets it.

mod common;

use adead_models::{EncodeOptions, SentenceEncoder};
use common::{bits, cpu, lines, npy};

/// The lines of `sentences.txt` that `reference.npy` has.
const STEP: usize = 12;

#[test]
fn embeddings_are_those_of_sentence_transformers() {
    let Some(folder) = std::env::var_os("ADEAD_TEST_MODEL") else {
        println!("skipped: ADEAD_TEST_MODEL names no folder of all-MiniLM-L6-v2");
        return;
    };
    let encoder = SentenceEncoder::open(folder, &cpu(2)).unwrap();
    let sentences: Vec<String> = lines("sentences.txt").into_iter().step_by(STEP).collect();
    let (rows, reference) = (encoder.encode(&sentences).unwrap(), npy("reference.npy"));
    assert_eq!((rows.width(), rows.values().len(), encoder.max_tokens()), (384, reference.len(), 256));
    let (mut lowest, mut largest) = (f64::INFINITY, 0.0f64);
    for (own, other) in rows.values().chunks(384).zip(reference.chunks(384)) {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        lowest = lowest.min(dot(own, other) / (dot(own, own) * dot(other, other)).sqrt());
        let differences = own.iter().zip(other).map(|(a, b)| f64::from((a - b).abs()));
        largest = differences.fold(largest, f64::max);
    }
    println!("{} sentences: lowest cosine {lowest:.9}, largest difference {largest:.3e}", rows.len());
    assert!(lowest >= 0.999999 && largest <= 2e-6, "{lowest} {largest}");
    // Padded, in other batches, with one thread: the same bits.
    let one = SentenceEncoder::open(std::env::var_os("ADEAD_TEST_MODEL").unwrap(), &cpu(1)).unwrap();
    let options = EncodeOptions { batch: Some(5), padded: Some(true) };
    let again = one.encode_with(&sentences[..48], &options).unwrap();
    assert!(bits(again.values()) == bits(&rows.values()[..48 * 384]));
}
