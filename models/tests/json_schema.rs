//! Answers in JSON that a schema allows, of the small made-up models, whose weights know no JSON.

mod common;

use adead::{Status, device::Isa};
use adead_models::TextGenerator;
use adead_models::text::{Finish, GenerateOptions, OpenOptions, Sampling};
use common::{cpu, gpus, text};
use serde_json::Value;

const PERSON: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "kind": {"enum": ["red", "green", "blue"]},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": false
}"#;

fn open(name: &str) -> TextGenerator {
    TextGenerator::open_with(text(&format!("{name}.gguf")), &OpenOptions::default()).unwrap()
}

fn options(schema: &str, temperature: f32, seed: u64) -> GenerateOptions {
    GenerateOptions {
        max_tokens: 120,
        json_schema: Some(schema.into()),
        sampling: Sampling { temperature, seed, ..Default::default() },
        ..Default::default()
    }
}

/// Whether a text is what [`PERSON`] asks for.
fn is_person(text: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return false };
    fields.len() == 4
        && fields["name"].as_str().is_some_and(|name| name.chars().count() <= 6)
        && fields["age"].as_u64().is_some_and(|age| age <= 130)
        && ["red", "green", "blue"].iter().any(|&kind| fields["kind"] == kind)
        && fields["tags"].as_array().is_some_and(|tags| tags.len() <= 3 && tags.iter().all(Value::is_boolean))
}

#[test]
fn every_answer_is_what_the_schema_allows() {
    for name in ["llama", "qwen3", "gemma3"] {
        let model = open(name);
        for seed in 0..12 {
            let answer = model.generate("A person:", &options(PERSON, 1.5, seed)).unwrap();
            assert_eq!(answer.finish, Finish::End, "{name}, seed {seed}: {}", answer.text);
            assert!(is_person(&answer.text), "{name}, seed {seed}: {}", answer.text);
        }
        let greedy = model.generate("A person:", &options(PERSON, 0.0, 0)).unwrap();
        assert!(greedy.finish == Finish::End && is_person(&greedy.text), "{name}: {}", greedy.text);
        // The most likely token of all would have been another one.
        let free = model.generate("A person:", &GenerateOptions { max_tokens: 20, ..Default::default() }).unwrap();
        assert_ne!(free.tokens[0], greedy.tokens[0]);
    }
}

#[test]
fn a_number_a_constant_and_a_choice() {
    let model = open("llama");
    let answer = |schema: &str, seed: u64| model.generate("It is", &options(schema, 1.0, seed)).unwrap().text;
    for seed in 0..8 {
        let number: i64 = answer(r#"{"type": "integer", "minimum": -5, "maximum": 17}"#, seed).parse().unwrap();
        assert!((-5..=17).contains(&number), "{number}");
        assert_eq!(answer(r#"{"const": {"a": [1, null]}}"#, seed), r#"{"a": [1, null]}"#);
        let either = answer(
            r##"{"$defs": {"yes": {"const": "yes"}}, "anyOf": [{"$ref": "#/$defs/yes"}, {"type": "null"}]}"##,
            seed,
        );
        assert!(either == "\"yes\"" || either == "null", "{either}");
    }
}

#[test]
fn a_batch_and_every_device_give_the_same_answers() {
    let model = open("llama");
    let prompts = ["A person:", "Somebody", "", "The third one is"].map(|prompt| format!("x{prompt}"));
    let expected = model.generate_batch(&prompts, &options(PERSON, 1.2, 3)).unwrap();
    assert!(expected.iter().all(|answer| is_person(&answer.text)), "{expected:?}");
    for (number, prompt) in prompts.iter().enumerate() {
        let mut alone = options(PERSON, 1.2, 3);
        alone.sampling.sequence = number as u64;
        assert_eq!(model.generate(prompt, &alone).unwrap(), expected[number]);
        let stream = model.stream(prompt, &alone).unwrap();
        assert_eq!(stream.map(Result::unwrap).collect::<String>(), expected[number].text);
    }
    let mut contexts = gpus();
    contexts.extend(Isa::available().filter_map(|isa| {
        common::open("cpu", &adead::ContextOptions { isa: Some(isa), threads: Some(3), precision: None })
    }));
    contexts.push(cpu(1));
    for context in contexts {
        let device = format!("{context:?}");
        let options = OpenOptions { context: Some(context), chunk: Some(2), ..Default::default() };
        let other = TextGenerator::open_with(text("llama.gguf"), &options).unwrap();
        assert_eq!(other.generate_batch(&prompts, &self::options(PERSON, 1.2, 3)).unwrap(), expected, "{device}");
    }
}

#[test]
fn an_answer_that_is_too_long_is_cut_off() {
    let model = open("llama");
    let cut = model.generate("A person:", &GenerateOptions { max_tokens: 5, ..options(PERSON, 0.0, 0) }).unwrap();
    assert_eq!((cut.finish, cut.tokens.len()), (Finish::MaxTokens, 5));
    assert!(!is_person(&cut.text));
}

#[test]
fn what_is_no_schema_is_refused() {
    let model = open("llama");
    for (schema, expected) in [
        ("{", "json_schema is no JSON: EOF while parsing"),
        ("3", "json_schema is 3; a schema is an object, true or false"),
        (r#"{"type": "colour"}"#, "json_schema: "),
        (r##"{"$ref": "#/nowhere"}"##, "json_schema: "),
        ("false", "json_schema: "),
    ] {
        let error = model.generate("A person:", &options(schema, 0.0, 0)).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{schema}: {error}");
        assert!(error.message().starts_with(expected), "{schema}: {error}");
        println!("{error}");
    }
}
