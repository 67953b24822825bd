//! The small made-up models of `tests/text`: what their oracle computed, and the same bits however they are run.

mod common;

use adead::device::Isa;
use adead::{Context, ContextOptions, Status};
use adead_models::TextGenerator;
use adead_models::gguf::Reading;
use adead_models::text::{Finish, GenerateOptions, Generation, OpenOptions, Sampling};
use common::{bits, cpu, gpus, npy_at, open, text};
use std::sync::{Arc, Mutex};

const MODELS: [&str; 3] = ["llama", "qwen3", "gemma3"];

fn with(model: &str, options: OpenOptions) -> TextGenerator {
    TextGenerator::open_with(text(&format!("{model}.gguf")), &options).unwrap()
}

fn on(model: &str, context: Context, chunk: usize) -> TextGenerator {
    with(model, OpenOptions { context: Some(context), chunk: Some(chunk), ..Default::default() })
}

/// The tokens whose logits the oracle computed.
fn tokens(name: &str, model: &TextGenerator) -> Vec<u32> {
    let length = if name == "gemma3" { 120 } else { 70 };
    (0..length).map(|i| (7 + 31 * i + i * i) % model.vocabulary() as u32).collect()
}

const WARM: Sampling = Sampling {
    temperature: 1.5,
    top_k: 60,
    top_p: 0.98,
    min_p: 0.001,
    repeat_penalty: 1.1,
    repeat_last: 16,
    seed: 42,
    sequence: 0,
};

fn options(max_tokens: usize, sampling: Sampling) -> GenerateOptions {
    GenerateOptions { max_tokens, ignore_end: true, sampling, ..Default::default() }
}

#[test]
fn logits_are_those_of_the_oracle() {
    // Blocks are multiplied with rows that are cut into blocks too; floats are not.
    let kept = [0, 1, 7, 62, 63, 64, 69];
    for (name, most, kept) in
        [("llama", 0.05, &kept[..]), ("qwen3", 2e-5, &kept), ("gemma3", 2e-5, &[0, 23, 24, 64, 100, 119])]
    {
        let model = with(name, OpenOptions::default());
        let tokens = tokens(name, &model);
        let (logits, width) = (model.logits(&tokens).unwrap(), model.vocabulary());
        let expected = npy_at(&text(&format!("{name}.npy")));
        assert_eq!(expected.len(), kept.len() * width);
        for (&row, expected) in kept.iter().zip(expected.chunks(width)) {
            let own = &logits[row * width..][..width];
            let apart = own.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let greatest = expected.iter().map(|x| x.abs()).fold(0.0, f32::max);
            assert!(apart <= most * greatest, "{name}, position {row}: {apart} of {greatest}");
        }
        assert_eq!(logits.len(), tokens.len() * width);
    }
}

#[test]
fn no_chunk_thread_or_instruction_set_changes_a_bit() {
    for name in MODELS {
        let plain = on(name, cpu(2), 512);
        let tokens = tokens(name, &plain);
        let expected = bits(&plain.logits(&tokens).unwrap());
        let mut contexts = gpus();
        contexts.extend([1, 3].map(cpu));
        for isa in Isa::available() {
            contexts.extend(open("cpu", &ContextOptions { isa: Some(isa), threads: Some(2), precision: None }));
        }
        for context in contexts {
            let model = on(name, context.clone(), 512);
            assert!(bits(&model.logits(&tokens).unwrap()) == expected, "{name} {context:?}");
        }
        for chunk in [1, 7, 64] {
            let model = on(name, cpu(2), chunk);
            assert!(bits(&model.logits(&tokens).unwrap()) == expected, "{name}, {chunk} tokens at once");
        }
        for length in [1, 2, 63, 65] {
            let own = bits(&plain.logits(&tokens[..length]).unwrap());
            assert!(own == expected[..own.len()], "{name}: what follows changes nothing");
        }
    }
}

#[test]
fn generated_tokens_are_those_of_whole_sequences() {
    for name in MODELS {
        let model = with(name, OpenOptions::default());
        let answer = model.generate("the ferry", &options(80, Sampling::default())).unwrap();
        assert_eq!((answer.tokens.len(), answer.finish), (80, Finish::MaxTokens));
        let all = [model.tokenize("the ferry").unwrap(), answer.tokens.clone()].concat();
        let (logits, width) = (model.logits(&all).unwrap(), model.vocabulary());
        for (at, &token) in answer.tokens.iter().enumerate() {
            let row = &logits[(answer.prompt_tokens + at - 1) * width..][..width];
            assert!(row.iter().all(|&logit| logit <= row[token as usize]), "{name}, token {at}");
        }
    }
}

#[test]
fn texts_join_and_leave_batches_without_a_change() {
    let long = "the ferry came in ".repeat(9);
    let prompts = ["the ferry", "x", &long, "came", "in the", &long[..40], "12 12"];
    for (name, chunk) in [("llama", 512), ("llama", 7), ("qwen3", 16), ("gemma3", 64)] {
        let model = on(name, cpu(2), chunk);
        for sampling in [Sampling::default(), WARM] {
            // Texts end at various lengths where the model ends them.
            let options = GenerateOptions { ignore_end: false, stop: vec!["the".into()], ..options(40, sampling) };
            let together = model.generate_batch(&prompts, &options).unwrap();
            let alone = prompts.iter().zip(0..).map(|(prompt, sequence)| {
                let sampling = Sampling { sequence, ..sampling };
                model.generate(prompt, &GenerateOptions { sampling, ..options.clone() }).unwrap()
            });
            assert_eq!(together, alone.collect::<Vec<Generation>>(), "{name} {chunk}");
        }
    }
    let model = with("llama", OpenOptions::default());
    let many: Vec<String> = (0..70).map(|i| format!("ferry {i}")).collect();
    let options = options(3, WARM);
    let together = model.generate_batch(&many, &options).unwrap();
    let last = Sampling { sequence: 69, ..WARM };
    assert_eq!(
        together[69],
        model.generate(&many[69], &GenerateOptions { sampling: last, ..options.clone() }).unwrap()
    );
    assert!(model.generate_batch::<&str>(&[], &options).unwrap().is_empty());
    assert!(model.generate_batch(&["a", ""], &options).is_err());
}

#[test]
fn the_same_seed_draws_the_same_text_everywhere() {
    let mut texts = Vec::new();
    for (threads, chunk) in [(1, 1), (2, 512), (3, 7)] {
        texts.push(on("llama", cpu(threads), chunk).generate("the", &options(60, WARM)).unwrap());
    }
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
    let other = with("llama", OpenOptions::default());
    assert_ne!(texts[0].tokens, other.generate("the", &options(60, Sampling { seed: 43, ..WARM })).unwrap().tokens);
}

/// The tests of other languages compare with the same files.
#[test]
fn every_language_has_this_answer() {
    let answer = with("llama", OpenOptions::default()).generate("the ferry", &options(60, WARM)).unwrap();
    let tokens = answer.tokens.iter().map(u32::to_string).collect::<Vec<_>>().join(" ") + "\n";
    for (name, found) in [("answer.txt", answer.text), ("answer.tokens", tokens)] {
        if std::env::var_os("ADEAD_BLESS").is_some() {
            std::fs::write(text(name), &found).unwrap();
        }
        assert_eq!(std::fs::read_to_string(text(name)).unwrap(), found, "{name}: ADEAD_BLESS=1 rewrites it");
    }
}

#[test]
fn a_stream_gives_the_text_in_pieces() {
    for name in MODELS {
        let model = with(name, OpenOptions::default());
        let whole = model.generate("the ferry", &options(90, WARM)).unwrap();
        let mut stream = model.stream("the ferry", &options(90, WARM)).unwrap();
        stream.start().unwrap();
        let pieces: Vec<String> = stream.by_ref().collect::<Result<_, _>>().unwrap();
        assert!(pieces.len() > 10 && pieces.iter().all(|piece| !piece.is_empty()), "{pieces:?}");
        assert_eq!(pieces.concat(), whole.text);
        assert_eq!((stream.tokens(), stream.finish()), (&whole.tokens[..], Some(Finish::MaxTokens)));
        assert_eq!((stream.prompt_tokens(), stream.next().is_none()), (whole.prompt_tokens, true));
    }
}

#[test]
fn a_stop_string_ends_the_text_wherever_tokens_end() {
    let model = with("llama", OpenOptions::default());
    let whole = model.generate("the ferry", &options(60, WARM)).unwrap();
    let chars: Vec<char> = whole.text.chars().collect();
    assert!(chars.len() > 30, "{:?}", whole.text);
    for (first, length) in [(5, 1), (5, 7), (12, 3), (0, 2)] {
        let stop: String = chars[first..first + length].iter().collect();
        let options = GenerateOptions { stop: vec!["no such text".into(), stop.clone()], ..options(60, WARM) };
        let cut = model.generate("the ferry", &options).unwrap();
        let at = whole.text.find(&stop).unwrap();
        assert_eq!((cut.text.as_str(), cut.finish), (&whole.text[..at], Finish::Stop), "{stop:?}");
        assert!(whole.tokens.starts_with(&cut.tokens) && cut.tokens.len() < 60);
    }
}

#[test]
fn a_text_ends_where_the_context_ends() {
    let model = with("llama", OpenOptions { context_length: Some(20), ..Default::default() });
    let prompt = model.tokenize("the ferry came in").unwrap();
    let answer = model.generate("the ferry came in", &options(100, WARM)).unwrap();
    assert_eq!((answer.finish, prompt.len() + answer.tokens.len()), (Finish::ContextFull, 21));
    let none = model.generate("the ferry", &options(0, WARM)).unwrap();
    assert_eq!((none.text.as_str(), none.tokens.len(), none.finish), ("", 0, Finish::MaxTokens));
}

#[test]
fn probabilities_follow_from_logits() {
    for name in MODELS {
        let model = with(name, OpenOptions::default());
        let (tokens, width) = (tokens(name, &model), model.vocabulary());
        let (logits, logprobs) = (model.logits(&tokens).unwrap(), model.logprobs(&tokens).unwrap());
        assert_eq!(logprobs.len(), tokens.len() - 1);
        for (at, &logprob) in logprobs.iter().enumerate() {
            let row = &logits[at * width..][..width];
            let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            let expected = f64::from(row[tokens[at + 1] as usize]) - sum.ln();
            assert!((f64::from(logprob) - expected).abs() < 1e-4, "{name} {at}: {logprob} {expected}");
        }
        let chunked = on(name, cpu(1), 7);
        assert_eq!(bits(&chunked.logprobs(&tokens).unwrap()), bits(&logprobs));

        let ferry = "the ferry came in";
        let logprobs = model.logprobs(&model.tokenize(ferry).unwrap()).unwrap();
        let mean = logprobs.iter().map(|&logprob| f64::from(logprob)).sum::<f64>() / logprobs.len() as f64;
        let perplexity = model.perplexity(ferry).unwrap();
        assert!((perplexity - (-mean).exp()).abs() < 1e-9 * perplexity, "{perplexity} {mean}");
        // Longer texts are cut into parts, of which each first token has no probability.
        assert!(model.perplexity(&ferry.repeat(80)).unwrap() > 1.0);
    }
}

#[test]
fn an_embedding_is_the_mean_of_hidden_states() {
    let model = with("qwen3", OpenOptions::default());
    let embedding = model.embed("the ferry came in").unwrap();
    assert_eq!((embedding.len(), model.width()), (32, 32));
    assert_eq!(bits(&on("qwen3", cpu(3), 2).embed("the ferry came in").unwrap()), bits(&embedding));
    assert_ne!(bits(&model.embed("the ferry").unwrap()), bits(&embedding));
}

#[test]
fn a_file_may_be_read_and_a_prompt_computed_part_by_part() {
    let path = text("llama.gguf");
    let size = std::fs::metadata(&path).unwrap().len();
    let mut reading = Reading::begin(&path).unwrap();
    assert_eq!(reading.step().unwrap(), Some((size, size)));
    assert_eq!(reading.step().unwrap(), None);
    let options = OpenOptions { chunk: Some(10), ..Default::default() };
    let model = TextGenerator::from_gguf(reading.finish().unwrap(), &options).unwrap();
    assert_eq!(Reading::begin("no such file").unwrap_err().status(), Status::Io);
    let other = Reading::begin(text("make_tiny.py")).unwrap().finish();
    assert!(other.map(|_| ()).unwrap_err().message().contains("make_tiny.py"));

    let options = self::options(20, WARM);
    let prompt = "x".repeat(30);
    let mut stream = model.stream(&prompt, &options).unwrap();
    assert_eq!(stream.advance_prompt().unwrap(), Some(10));
    assert_eq!(stream.advance_prompt().unwrap(), Some(20));
    assert_eq!(stream.advance_prompt().unwrap(), None);
    assert_eq!(stream.advance_prompt().unwrap(), None);
    assert_eq!(stream.collect_all().unwrap(), model.generate(&prompt, &options).unwrap());
    let mut none = model.stream(&prompt, &GenerateOptions { max_tokens: 0, ..Default::default() }).unwrap();
    assert_eq!(none.advance_prompt().unwrap(), None);
}

#[test]
fn progress_is_told_by_chunk() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let told = told.clone();
        move |done, all| told.lock().unwrap().push((done, all))
    };
    let model = with("llama", OpenOptions { chunk: Some(4), progress: Some(Arc::new(progress)), ..Default::default() });
    let answer = model.generate("abcdefghij", &options(3, WARM)).unwrap();
    assert_eq!((answer.prompt_tokens, told.lock().unwrap().clone()), (10, vec![(4, 10), (8, 10), (10, 10)]));
}

#[test]
fn threads_share_a_generator() {
    let model = with("llama", OpenOptions::default());
    let expected = model.generate("the ferry", &options(20, WARM)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (model, expected) = (model.clone(), &expected);
            scope.spawn(move || assert_eq!(&model.generate("the ferry", &options(20, WARM)).unwrap(), expected));
        }
    });
}
