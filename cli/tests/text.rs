//! Tests of `adead generate` and `adead chat` with the small model of `tests/text`, and of their errors.
#![cfg(feature = "models")]

mod common;

use common::{Ended, adead, adead_with, after, bad, good, repository};

fn model() -> String {
    repository("tests/text/llama.gguf")
}

fn generate(more: &[&str]) -> Ended {
    let model = model();
    adead(&[&["generate", "--model", &model, "--prompt", "the ferry", "--max-tokens", "30"], more].concat())
}

/// The text and the hash of an answer that went well.
fn answer(ended: &Ended) -> (&str, &str) {
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.out.ends_with('\n'), "{ended:?}");
    (&ended.out, after(&ended.err, "sha256  "))
}

#[test]
fn the_text_is_the_same_however_it_is_computed() {
    for drawn in [&[][..], &["--temperature", "1.5", "--seed", "7", "--top-k", "50", "--min-p", "0.001"]] {
        let plain = generate(drawn);
        let (text, hash) = answer(&plain);
        assert!(text.len() > 10 && hash.len() >= 64, "{plain:?}");
        assert!(plain.err.starts_with("prompt  2 tokens, ") && plain.err.contains("\ndevice  cpu ("), "{plain:?}");
        for more in
            [&["--threads", "1"][..], &["--chunk", "1"], &["--threads", "3", "--chunk", "7"], &["--context", "64"]]
        {
            assert_eq!(answer(&generate(&[drawn, more].concat())), (text, hash), "{drawn:?} {more:?}");
        }
        let json = generate(&[drawn, &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!((json["text"].as_str(), json["sha256"].as_str()), (text.strip_suffix('\n'), Some(hash.trim_end())));
        assert_eq!(json["prompt_tokens"], 2);
        assert!(json["tokens"].as_array().unwrap().len() <= 30 && json["finish"].is_string(), "{json}");
    }
    let one = generate(&["--temperature", "2", "--seed", "1"]);
    assert_ne!(answer(&one), answer(&generate(&["--temperature", "2", "--seed", "2"])));
    assert_eq!(
        answer(&one),
        answer(&generate(&["--temperature", "2", "--seed", "1", "--top-p", "1", "--repeat-penalty", "1"]))
    );
}

#[test]
fn an_answer_is_json_that_a_schema_allows() {
    let schema = r#"{"const": {"a": [1, null]}}"#;
    let given = generate(&["--json-schema", schema]);
    assert_eq!(answer(&given).0, "{\"a\": [1, null]}\n");
    let file = std::env::temp_dir().join(format!("adead-schema-{}.json", std::process::id()));
    std::fs::write(&file, schema).unwrap();
    assert_eq!(answer(&generate(&["--json-schema", file.to_str().unwrap()])), answer(&given));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn prompts_come_from_stdin_and_as_messages() {
    let model = model();
    let plain = generate(&[]);
    let piped = ["generate", "--model", &model, "--prompt", "-", "--max-tokens", "30"];
    let (code, out, err) = adead_with(&piped, b"the ferry");
    assert_eq!((code, &out[..]), (0, plain.out.as_bytes()), "{err}");
    let written = "<|im_start|>system\nin<|im_end|>\n<|im_start|>user\nthe ferry<|im_end|>\n<|im_start|>assistant\n";
    let chat = generate(&["--chat", "--system", "in"]);
    let by_hand = adead(&["generate", "--model", &model, "--prompt", written, "--max-tokens", "30"]);
    assert_eq!(answer(&chat), answer(&by_hand));
    // The conversation's first answer is the same one.
    let talk = ["chat", "--model", &model, "--system", "in", "--max-tokens", "30"];
    let (code, out, err) = adead_with(&talk, b"\nthe ferry\r\n");
    assert_eq!((code, &out[..], err.as_str()), (0, chat.out.as_bytes(), ""));
    let (code, both, err) = adead_with(&talk, b"the ferry\ncame in");
    assert!(code == 0 && both.starts_with(&out) && both.len() > out.len() && err.is_empty(), "{err}");
}

#[test]
fn a_stop_string_ends_the_text() {
    let plain = generate(&["--temperature", "2"]);
    let text = plain.out.strip_suffix('\n').unwrap();
    let stop: String = text.chars().skip(4).take(2).collect();
    let cut = generate(&["--temperature", "2", "--stop", "no such text", "--stop", &stop]);
    assert_eq!(cut.out, format!("{}\n", &text[..text.find(&stop).unwrap()]));
    assert!(cut.err.contains(", stop\n"), "{cut:?}");
}

#[test]
fn a_file_of_prompts_is_continued_together() {
    let model = model();
    let all =
        ["generate", "--model", &model, "--prompts", "-", "--max-tokens", "30", "--temperature", "1.5", "--seed", "7"];
    let (code, out, err) = adead_with(&all, "the ferry\ncame in\nthe ferry\n".as_bytes());
    assert_eq!(code, 0, "{err}");
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = lines.iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(
        lines.iter().map(|line| line["prompt"].as_str().unwrap()).collect::<Vec<_>>(),
        ["the ferry", "came in", "the ferry"]
    );
    // The first is the text alone; the third is another sequence, with random numbers of its own.
    let alone = generate(&["--temperature", "1.5", "--seed", "7"]);
    assert_eq!(format!("{}\n", texts[0]), alone.out);
    assert_eq!(lines[0]["sha256"].as_str().unwrap(), answer(&alone).1.trim());
    assert_ne!(texts[0], texts[2]);
    assert!(err.contains("prompts  3, ") && err.contains("tokens/s with the prompts"), "{err}");
    let (code, out, _) = adead_with(&all, b"");
    assert_eq!((code, out.len()), (0, 0));
}

#[test]
fn what_goes_wrong_is_said() {
    let model = model();
    let says = |code, args: &[&str], part: &str| {
        let said = bad(code, args);
        assert!(said.contains(part), "{args:?}: {said}");
    };
    says(21, &["generate", "--model", "none.gguf", "--prompt", "x"], "none.gguf");
    says(11, &["generate", "--model", &repository("README.md"), "--prompt", "x"], "README.md");
    says(11, &["generate", "--model", &model, "--prompt", ""], "the prompt has no tokens");
    says(
        21,
        &["generate", "--model", &model, "--prompt", "x", "--json-schema", "none.json"],
        "--json-schema none.json: ",
    );
    says(11, &["generate", "--model", &model, "--prompt", "x", "--json-schema", "{"], "json_schema is no JSON: ");
    says(11, &["generate", "--model", &model, "--prompt", "x", "--temperature=-1"], "temperature is -1");
    says(11, &["generate", "--model", &model, "--prompt", "x", "--context", "257"], "from 1 to the model's 256");
    let long = "x".repeat(300);
    says(11, &["generate", "--model", &model, "--prompt", &long], "300 tokens and the context length is 256");
    says(2, &["generate", "--model", &model], "--prompt");
    says(2, &["generate", "--model", &model, "--prompt", "x", "--chunk", "0"], "--chunk");
    says(2, &["generate", "--model", &model, "--prompt", "x", "--system", "y"], "--chat");
    let other = repository("tests/text/qwen3.gguf");
    says(19, &["generate", "--model", &other, "--prompt", "x", "--chat"], "has no chat template");
    let (code, out, err) = adead_with(&["chat", "--model", &model], b"\xff\n");
    assert!(code == 11 && out.is_empty() && err.contains("stdin: line 1: byte 1 is not UTF-8"), "{err}");
    assert!(good(&["generate", "--help"]).contains("EXAMPLES") && good(&["chat", "--help"]).contains("EXAMPLES"));
}
