//! `batch_embed`: order, progress, bounded memory, errors of either side.

mod common;

use adead::{Error, Result, Status};
use adead_models::{EmbeddingPart, EncodeOptions, SentenceEncoder};
use common::{cpu, lines, shared};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn encoder() -> SentenceEncoder {
    SentenceEncoder::open(shared("tiny"), &cpu(2)).unwrap()
}

/// So many sentences: those of the file again and again, each time with other ends.
fn sentences(count: usize) -> impl Iterator<Item = Result<String>> + Send + 'static {
    let lines = lines("tiny.txt");
    (0..count).map(move |i| Ok(format!("{} {}", lines[i % lines.len()], i / lines.len())))
}

#[test]
fn a_stream_gives_the_rows_of_its_sentences_in_their_order() {
    let encoder = encoder();
    for count in [0, 1, 63, 64, 65, 500] {
        let (mut values, mut truncated, mut last) = (Vec::new(), Vec::new(), 0);
        let sink = |part: EmbeddingPart<'_>| {
            match part {
                EmbeddingPart::Progress(computed) => {
                    assert!(computed > last && computed <= count as u64, "{last} {computed}");
                    last = computed;
                }
                EmbeddingPart::Rows { first, rows } => {
                    assert_eq!(first as usize * rows.width(), values.len());
                    values.extend_from_slice(rows.values());
                    truncated.extend(rows.truncated().iter().map(|row| first as usize + row));
                }
            }
            Ok(())
        };
        let options = EncodeOptions { batch: Some(7), padded: None };
        assert_eq!(encoder.batch_embed(sentences(count), &options, sink).unwrap(), count as u64);
        let all: Vec<String> = sentences(count).map(Result::unwrap).collect();
        let expected = encoder.encode(&all).unwrap();
        assert!(values == expected.values() && truncated == expected.truncated(), "{count} sentences");
        assert_eq!(last, count as u64);
    }
}

#[test]
fn only_some_thousand_sentences_are_taken_ahead() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    // There is no end of them.
    let endless = (0..).map(move |_| {
        counted.fetch_add(1, SeqCst);
        Ok::<_, Error>("a")
    });
    let mut given = 0;
    let result = encoder().batch_embed(endless, &EncodeOptions::default(), |part| {
        if let EmbeddingPart::Rows { rows, .. } = part {
            given += rows.len();
            let ahead = taken.load(SeqCst) - given;
            assert!(ahead <= 3 * 4096, "{ahead} sentences are ahead");
        }
        if given > 10_000 { Err(Error::new(Status::NotReady, "enough")) } else { Ok(()) }
    });
    assert_eq!(result.unwrap_err().message(), "enough");
}

#[test]
fn an_error_of_the_caller_ends_it_while_the_next_rows_wait() {
    let result = encoder().batch_embed(sentences(1000), &EncodeOptions::default(), |part| match part {
        EmbeddingPart::Progress(_) => Ok(()),
        EmbeddingPart::Rows { .. } => {
            // Long enough for the next rows, though nothing depends on that but what is tested.
            std::thread::sleep(std::time::Duration::from_millis(300));
            Err(Error::new(Status::NotReady, "enough"))
        }
    });
    assert_eq!(result.unwrap_err().message(), "enough");
}

#[test]
fn an_error_of_the_source_ends_it() {
    let source = sentences(100).chain([Err(Error::new(Status::Io, "the disk is gone"))]).chain(sentences(100));
    let mut given = 0;
    let result = encoder().batch_embed(source, &EncodeOptions::default(), |part| {
        given += if let EmbeddingPart::Rows { rows, .. } = part { rows.len() } else { 0 };
        Ok(())
    });
    assert_eq!(result.unwrap_err().message(), "the disk is gone");
    assert!(given <= 100, "{given}");
}

#[test]
fn a_panic_of_the_source_is_an_error() {
    let source = (0..3).map(|i| if i < 2 { Ok::<_, Error>("a") } else { panic!("no more") });
    let error = encoder().batch_embed(source, &EncodeOptions::default(), |_| Ok(())).unwrap_err();
    assert_eq!(error.status(), Status::Internal);
    assert!(error.message().contains("no more"), "{error}");
}
