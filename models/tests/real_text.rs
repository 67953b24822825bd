//! SmolLM2-135M on 50 prompts: one hash of the answers' tokens, however they are computed. `ADEAD_TEST_TEXT_MODEL` names the file,
//! which `ci/text` gets. With `ADEAD_EXHAUSTIVE=1` every way computes all of it.

mod common;

use adead::device::Isa;
use adead::{Context, ContextOptions};
use adead_models::TextGenerator;
use adead_models::text::{GenerateOptions, OpenOptions, Sampling};
use common::{cpu, gpus, lines, open, text};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Tokens of an answer, at most.
const ANSWER: usize = 32;
/// The first prompts are answered by the most likely tokens, the rest by drawn ones.
const GREEDY: usize = 25;
const DRAWN: Sampling = Sampling {
    temperature: 0.9,
    top_k: 100,
    top_p: 0.95,
    min_p: 0.01,
    repeat_penalty: 1.1,
    repeat_last: 32,
    seed: 7,
    sequence: 0,
};

/// Prompts of 1 to 1,500 tokens: English, a dozen other languages, words without sense, code, a chat's beginning.
fn prompts() -> Vec<String> {
    let lines = lines("sentences.txt");
    let mut prompts: Vec<String> =
        lines.iter().skip(8).step_by(25).map(|line| line.chars().take(300).collect()).collect();
    prompts.retain(|prompt| !prompt.is_empty());
    prompts.truncate(46);
    prompts.insert(3, "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n".into());
    prompts.insert(20, "def fibonacci(n):\n    ".into());
    prompts.insert(30, "x".into());
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split(' ')).filter(|word| word.is_ascii()).collect();
    prompts.insert(40, words[..1100].join(" "));
    assert_eq!(prompts.len(), 50);
    prompts
}

fn model(context: Context, chunk: usize) -> Option<TextGenerator> {
    let Some(file) = std::env::var_os("ADEAD_TEST_TEXT_MODEL") else {
        println!("skipped: ADEAD_TEST_TEXT_MODEL names no GGUF file of SmolLM2-135M");
        return None;
    };
    let options = OpenOptions { context: Some(context), chunk: Some(chunk), ..Default::default() };
    Some(TextGenerator::open_with(PathBuf::from(file), &options).unwrap())
}

/// The first tokens of the answers to prompts, which are computed so many at once.
fn answers(model: &TextGenerator, prompts: &[String], numbers: &[usize], most: usize, batch: usize) -> Vec<Vec<u32>> {
    let mut answers = Vec::new();
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        // A batch's prompts have consecutive numbers, and are all greedy or all drawn.
        let sampling = Sampling { sequence: first as u64, ..if first < GREEDY { Sampling::default() } else { DRAWN } };
        let fits = |&(at, &number): &(usize, &usize)| number == first + at && (number < GREEDY) == (first < GREEDY);
        let count = rest.iter().enumerate().take_while(fits).count().min(batch);
        let own: Vec<&str> = rest[..count].iter().map(|&number| prompts[number].as_str()).collect();
        let options = GenerateOptions { max_tokens: most, sampling, ..Default::default() };
        answers.extend(model.generate_batch(&own, &options).unwrap().into_iter().map(|answer| answer.tokens));
        rest = &rest[count..];
    }
    answers
}

#[test]
fn fifty_answers_have_one_hash_however_they_are_computed() {
    let Some(plain) = model(cpu(2), 512) else { return };
    let prompts = prompts();
    let every: Vec<usize> = (0..prompts.len()).collect();
    let lengths: Vec<usize> = prompts.iter().map(|prompt| plain.tokenize(prompt).unwrap().len()).collect();
    assert!(lengths.contains(&1) && lengths.iter().any(|&length| length >= 1500), "{lengths:?}");
    let expected = answers(&plain, &prompts, &every, ANSWER, 50);
    let mut hash = Sha256::new();
    for token in expected.iter().flatten() {
        hash.update(token.to_le_bytes());
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{} prompts, {} tokens: sha256 {hash}", prompts.len(), expected.iter().map(Vec::len).sum::<usize>());
    if std::env::var_os("ADEAD_BLESS").is_some() {
        std::fs::write(text("sha256"), format!("{hash}\n")).unwrap();
    }
    assert_eq!(hash, std::fs::read_to_string(text("sha256")).unwrap().trim());

    let all = std::env::var_os("ADEAD_EXHAUSTIVE").is_some();
    let compare = |what: &str, context: Context, chunk: usize, batch: usize, numbers: &[usize], most: usize| {
        let (numbers, most) = if all { (&every[..], ANSWER) } else { (numbers, most) };
        let start = std::time::Instant::now();
        let model = model(context, chunk).unwrap();
        let found = answers(&model, &prompts, numbers, most, batch);
        for (&number, found) in numbers.iter().zip(&found) {
            let expected = &expected[number][..most.min(expected[number].len())];
            assert_eq!(found, expected, "{what}, prompt {number}: {:?}", prompts[number]);
        }
        println!("{what}: the same, {:.1} s", start.elapsed().as_secs_f64());
    };
    // Long prompts take long on one thread.
    let some = [3, 4, 5, 6, 20, 24, 25, 26, 30, 45];
    for threads in [1, 3, 7] {
        compare(&format!("{threads} threads"), cpu(threads), 512, 8, &some, 8);
    }
    for (chunk, batch) in [(1, 1), (7, 2), (64, 8), (512, 32)] {
        compare(&format!("{chunk} tokens at once, {batch} texts"), cpu(2), chunk, batch, &some, 8);
    }
    for isa in Isa::available() {
        let few: &[usize] = if isa == Isa::Portable { &[30] } else { &[20, 26, 30] };
        let options = ContextOptions { isa: Some(isa), threads: Some(2), precision: None };
        if let Some(context) = open("cpu", &options) {
            compare(isa.name(), context, 512, 4, few, 4);
        }
    }
    let gpus = gpus();
    // A hybrid context says what its processor is, so the GPU alone tells whether both are slow.
    let is_real = gpus.iter().all(|context| context.device_info().kind != adead::device::DeviceKind::Software);
    for context in gpus {
        let name = format!("{context:?}");
        // Mesa's software GPU takes a quarter of a minute for a prompt in pieces.
        let ways: [(usize, usize, &[usize], usize); 2] = match is_real {
            true => [(512, 32, &some, 8), (7, 1, &some, 8)],
            false => [(512, 32, &[30, 31], 2), (7, 1, &[30], 2)],
        };
        for (chunk, batch, prompts, most) in ways {
            compare(&format!("{name}, {chunk} tokens at once"), context.clone(), chunk, batch, prompts, most);
        }
    }
}
