//! The small made-up model of `tests/sentences`: what its oracle computed, and the same bits everywhere: `tiny_bits.npy`, which
//! `adead embed` writes.

mod common;

use adead::device::Isa;
use adead::{ContextOptions, Precision, Status};
use adead_models::{EncodeOptions, SentenceEncoder};
use common::{bits, cpu, gpus, lines, npy, open, shared};
use sha2::{Digest, Sha256};

fn encoder(threads: usize) -> SentenceEncoder {
    SentenceEncoder::open(shared("tiny"), &cpu(threads)).unwrap()
}

#[test]
fn embeddings_are_those_of_the_oracle() {
    let (encoder, sentences, expected) = (encoder(2), lines("tiny.txt"), npy("tiny.npy"));
    let rows = encoder.encode(&sentences).unwrap();
    assert_eq!((rows.len(), rows.width(), encoder.max_tokens()), (sentences.len(), 32, 24));
    for (i, (row, expected)) in rows.values().chunks(32).zip(expected.chunks(32)).enumerate() {
        let most = row.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 1e-6, "sentence {i}, {:?}: {most}", sentences[i]);
    }
    // Of 24 tokens at most, two of them special: what has more is cut, and said to be.
    let cut: Vec<&str> = rows.truncated().iter().map(|&i| &sentences[i][..9]).collect();
    assert_eq!(cut, ["xxxxxxxxx", "the ferry", "a b c d e"], "{:?}", rows.truncated());
    assert_eq!(rows.row(3), &rows.values()[96..128]);
}

#[test]
fn every_language_has_these_bits() {
    let rows = encoder(2).encode(&lines("tiny.txt")).unwrap();
    let bytes: Vec<u8> = rows.values().iter().flat_map(|value| value.to_le_bytes()).collect();
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!([hash], lines("tiny.sha256")[..], "the tests of C, C++ and Python compare with tiny.sha256");
}

#[test]
fn rows_are_bit_for_bit_those_that_every_language_compares_with() {
    let rows = encoder(2).encode(&lines("tiny.txt")).unwrap();
    assert!(bits(rows.values()) == bits(&npy("tiny_bits.npy")));
}

#[test]
fn a_sentence_has_the_same_bits_alone_and_in_any_batch() {
    let (encoder, sentences) = (encoder(1), lines("tiny.txt"));
    let expected = bits(encoder.encode(&sentences).unwrap().values());
    for padded in [false, true] {
        for batch in [1, 2, 3, 5, 8, 100] {
            let options = EncodeOptions { batch: Some(batch), padded: Some(padded) };
            let rows = encoder.encode_with(&sentences, &options).unwrap();
            assert!(bits(rows.values()) == expected, "{options:?}");
        }
    }
    for (sentence, expected) in sentences.iter().zip(expected.chunks(32)) {
        assert_eq!(bits(encoder.encode(&[sentence]).unwrap().values()), expected, "{sentence:?} alone");
    }
    let reversed: Vec<&String> = sentences.iter().rev().collect();
    let rows = bits(encoder.encode(&reversed).unwrap().values());
    assert!(rows.chunks(32).rev().flatten().eq(&expected), "in another order");
}

#[test]
fn every_device_gives_the_same_bits() {
    let sentences = lines("tiny.txt");
    let plain = bits(encoder(2).encode(&sentences).unwrap().values());
    let mut contexts = gpus();
    contexts.extend([1, 3].map(cpu));
    for isa in Isa::available() {
        contexts.extend(open("cpu", &ContextOptions { isa: Some(isa), threads: Some(2), precision: None }));
    }
    assert!(contexts.len() >= 3, "an instruction set at least");
    for precision in Precision::ALL {
        let mut expected = None;
        for context in &contexts {
            context.set_precision(precision);
            let encoder = SentenceEncoder::open(shared("tiny"), context).unwrap();
            for padded in [None, Some(false), Some(true)] {
                for batch in [None, Some(3)] {
                    let rows = encoder.encode_with(&sentences, &EncodeOptions { batch, padded }).unwrap();
                    let expected = expected.get_or_insert_with(|| bits(rows.values()));
                    assert!(bits(rows.values()) == *expected, "{context:?} {batch:?} {padded:?}");
                }
            }
        }
        let expected: Vec<f32> = expected.unwrap().into_iter().map(f32::from_bits).collect();
        assert_eq!(bits(&expected) == plain, precision == Precision::F32);
        let most = if precision == Precision::Fixed16 { 1e-3 } else { 2e-6 };
        let near = |(x, &y): (&f32, &u32)| (x - f32::from_bits(y)).abs() < most;
        assert!(expected.iter().zip(&plain).all(near), "{precision:?}");
    }
}

#[test]
fn nothing_to_embed_is_no_error_and_a_batch_of_nothing_is() {
    let encoder = encoder(1);
    let none = encoder.encode::<&str>(&[]).unwrap();
    assert_eq!((none.is_empty(), none.len(), none.truncated().len()), (true, 0, 0));
    let options = EncodeOptions { batch: Some(0), padded: None };
    let error = encoder.encode_with(&["a"], &options).unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::InvalidArgument, "a batch has at least 1 sentence, not 0"));
}

#[test]
fn threads_share_an_encoder() {
    let (encoder, sentences) = (encoder(2), lines("tiny.txt"));
    let expected = encoder.encode(&sentences).unwrap();
    std::thread::scope(|scope| {
        for batch in 1..5 {
            let (encoder, sentences, expected) = (encoder.clone(), &sentences, &expected);
            scope.spawn(move || {
                let options = EncodeOptions { batch: Some(batch), padded: Some(batch % 2 == 0) };
                assert_eq!(&encoder.encode_with(sentences, &options).unwrap(), expected);
            });
        }
    });
}
