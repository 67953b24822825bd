//! What a model's file says of its text: tokens, chat templates; and files that are refused.

mod common;

use adead::Status;
use adead_models::TextGenerator;
use adead_models::text::{GenerateOptions, Message, OpenOptions, Sampling};
use common::text;
use std::path::PathBuf;

fn model(name: &str) -> TextGenerator {
    TextGenerator::open(text(&format!("{name}.gguf"))).unwrap()
}

const TEXTS: [&str; 12] = [
    "the ferry came in",
    " the  ferry",
    "",
    " ",
    "a\n\n\nb\tc\r\n",
    "1212 it's 3.14",
    "über 🌊 \u{301}e 漢字 עברית",
    "<tool>x<tool> y",
    "    indented\n        more",
    "\u{0}\u{1}",
    "<|im_start",
    "ferry ferry ferry ferry ferry ferry",
];

#[test]
fn texts_come_back_from_their_tokens() {
    for name in ["llama", "qwen3"] {
        let model = model(name);
        for text in TEXTS {
            assert_eq!(model.detokenize(&model.tokenize(text).unwrap()), text, "{name}");
        }
    }
}

#[test]
fn byte_pairs_are_merged_within_words() {
    let model = model("llama");
    let ids = |text: &str| model.tokenize(text).unwrap();
    // Bytes begin at 4, merges at 260.
    let byte = |byte: u8| 4 + u32::from(byte);
    assert_eq!(ids("the ferry came in"), [261, 268, 272, 273]);
    assert_eq!(ids(" the"), [262]);
    // Each digit is a word, so they don't merge.
    assert_eq!(ids("12"), [byte(b'1'), byte(b'2')]);
    assert_eq!(ids("\n\n"), [274]);
    // Of several spaces the last belongs to the word behind them.
    assert_eq!(ids("   the"), [275, 262]);
    assert_eq!(ids("ü🌊"), [277, 279, byte(0x8a)]);
    assert_eq!(ids("<|im_start|>the<tool><|im_end|>"), [1, 261, 3, 2]);
    assert!(ids("").is_empty());
}

#[test]
fn scores_order_merges_and_missing_characters_are_bytes() {
    let model = model("qwen3");
    let ids = |text: &str| model.tokenize(text).unwrap();
    // Bytes begin at 3, pieces at 259, letters at 276; a space precedes the text, and bos that.
    let (byte, piece, letter) = (|byte: u8| 3 + u32::from(byte), |n: u32| 259 + n, |n: u8| 277 + u32::from(n - b'a'));
    assert_eq!(ids("the ferry came in"), [1, piece(2), piece(7), piece(12), piece(13)]);
    assert_eq!(ids("fe"), [1, piece(5), letter(b'e')], "▁f has a higher score than fe");
    assert_eq!(ids("漢"), [1, 276, byte(0xe6), byte(0xbc), byte(0xa2)]);
    assert_eq!(ids(""), [1]);
    assert_eq!(ids("<s>in"), [1, piece(13)], "bos is not added twice");
    assert_eq!(model.detokenize(&[1, piece(2), piece(13), 2]), "the in");
}

#[test]
fn messages_are_written_by_the_template() {
    let llama = model("llama");
    let messages = [Message::system("in"), Message::user("the ferry")];
    let text = "<|im_start|>system\nin<|im_end|>\n<|im_start|>user\nthe ferry<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(llama.tokenize_messages(&messages).unwrap(), llama.tokenize(text).unwrap());
    let options = GenerateOptions { max_tokens: 12, ..Default::default() };
    assert_eq!(llama.chat(&messages, &options).unwrap(), llama.generate(text, &options).unwrap());
    let error = model("qwen3").chat(&messages, &options).unwrap_err();
    assert!(error.status() == Status::Unsupported && error.message().contains("has no chat template"), "{error}");
}

#[test]
fn a_conversation_goes_on_as_if_it_were_computed_again() {
    let model = model("llama");
    let sampling = Sampling { temperature: 1.0, seed: 3, ..Default::default() };
    let options = GenerateOptions { max_tokens: 10, sampling, ..Default::default() };
    let mut conversation = model.conversation(vec![Message::system("in")]);
    let mut messages = conversation.messages().to_vec();
    for text in ["the ferry", "came", "in"] {
        messages.push(Message::user(text));
        let mut heard = String::new();
        let hear = |piece: &str| {
            heard += piece;
            Ok(())
        };
        let answer = conversation.say(text, &options, hear).unwrap();
        assert_eq!(answer, model.chat(&messages, &options).unwrap());
        assert_eq!(heard, answer.text);
        messages.push(Message::assistant(answer.text));
        assert_eq!(conversation.messages(), messages);
    }
    // An error takes the message back, and the conversation goes on.
    let error = conversation.say("x", &options, |_| Err(adead::Error::new(Status::Io, "closed"))).unwrap_err();
    assert_eq!((error.message(), conversation.messages().len()), ("closed", messages.len()));
    assert!(conversation.say(&"x".repeat(300), &options, |_| Ok(())).is_err());
    messages.push(Message::user("the"));
    assert_eq!(conversation.say("the", &options, |_| Ok(())).unwrap(), model.chat(&messages, &options).unwrap());
}

/// A copy of a model's file in which some bytes are others.
struct Changed(PathBuf);

impl Changed {
    fn new(name: &str, model: &str, change: impl FnOnce(&mut Vec<u8>)) -> Changed {
        let mut bytes = std::fs::read(text(&format!("{model}.gguf"))).unwrap();
        change(&mut bytes);
        let path = std::env::temp_dir().join(format!("adead-text-{}-{name}.gguf", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Changed(path)
    }

    fn refusal(&self) -> (Status, String) {
        let error = TextGenerator::open(&self.0).unwrap_err();
        let text = error.message().strip_prefix(&format!("{}: ", self.0.display())).unwrap_or(error.message());
        (error.status(), text.to_owned())
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Where a text first is in a file.
fn at(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap_or_else(|| panic!("no {text}"))
}

fn replaced(name: &str, model: &str, from: &str, to: &str) -> (Status, String) {
    assert_eq!(from.len(), to.len());
    let change = |bytes: &mut Vec<u8>| {
        let at = at(bytes, from);
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    };
    Changed::new(name, model, change).refusal()
}

/// The same file with another number for a key.
fn numbered(name: &str, model: &str, key: &str, number: [u8; 4]) -> (Status, String) {
    let change = |bytes: &mut Vec<u8>| {
        let at = at(bytes, key) + key.len() + 4;
        bytes[at..at + 4].copy_from_slice(&number);
    };
    Changed::new(name, model, change).refusal()
}

#[test]
fn other_models_are_refused() {
    let (status, text) = replaced("architecture", "llama", "llama", "lhama");
    assert_eq!(
        (status, text.as_str()),
        (Status::Unsupported, "the architecture is 'lhama'; supported are llama, qwen2, qwen3, gemma3")
    );
    let (status, text) = numbered("window", "gemma3", "attention.sliding_window", [0; 4]);
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.ends_with("gemma3.attention.sliding_window is missing or 0; it must be more than 0"), "{text}");
    let (status, text) = replaced("pre", "llama", "smollm", "smelly");
    assert_eq!(status, Status::Unsupported);
    assert!(text.starts_with("tokenizer.ggml.pre is 'smelly'; supported are gpt-2, llama-bpe,"), "{text}");
    let (status, text) = replaced("scaling", "qwen3", "linear", "yarned");
    assert_eq!(status, Status::Unsupported);
    assert!(text.starts_with("positions are scaled by 'yarned'; supported are none, linear"), "{text}");
}

#[test]
fn malformed_models_are_refused_with_what_is_wrong() {
    let (status, text) = replaced("missing", "llama", "blk.1.ffn_up.weight", "blk.1.ffn_xx.weight");
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.contains("blk.1.ffn_up.weight") && text.contains("is not among the file's 29 tensors"), "{text}");
    let key = "llama.feed_forward_length";
    let (status, text) = numbered("shape", "llama", key, 64i32.to_le_bytes());
    let expected = "the tensor 'blk.0.ffn_gate.weight' is [96, 64]; it must be [64, 64]";
    assert_eq!((status, text.as_str()), (Status::ShapeMismatch, expected));
    let (status, text) = numbered("heads", "llama", "llama.attention.head_count_kv", 3i32.to_le_bytes());
    let expected = "4 heads share 3 heads of keys; the first must be a multiple of the second";
    assert_eq!((status, text.as_str()), (Status::InvalidArgument, expected));
    let (status, _) = numbered("none", "llama", "llama.block_count", 0i32.to_le_bytes());
    assert_eq!(status, Status::InvalidArgument);
    let (status, text) = numbered("bos", "llama", "tokenizer.ggml.bos_token_id", 999i32.to_le_bytes());
    let expected = "the file names token 999 as a special one, and the vocabulary has 281 tokens";
    assert_eq!((status, text.as_str()), (Status::InvalidArgument, expected));
    let (status, _) = numbered("factor", "qwen3", "qwen3.rope.scaling.factor", (-1f32).to_le_bytes());
    assert_eq!(status, Status::InvalidArgument);
    let (status, text) = replaced("merge", "llama", "th e", "th~e");
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.contains("the merge 'th~e' has no space"), "{text}");
    let (status, text) = replaced("token", "llama", "Ġf erry", "the ĠĠ");
    assert_eq!(status, Status::InvalidArgument);
    assert!(text.ends_with("the merge 'the ĠĠ' needs the token 'theĠĠ', which is not there"), "{text}");
    assert_eq!(TextGenerator::open(text_of_no_file()).unwrap_err().status(), Status::Io);
}

fn text_of_no_file() -> PathBuf {
    text("none.gguf")
}

#[test]
fn calls_are_refused_with_the_numbers() {
    let llama = model("llama");
    let message = |result: adead::Result<adead_models::text::Generation>| result.unwrap_err().message().to_owned();
    let options = GenerateOptions::default();
    let none = "the prompt has no tokens, and the model's texts begin with no token of their own (bos): pass some text";
    assert_eq!(message(llama.generate("", &options)), none);
    let long = message(llama.generate(&"x".repeat(300), &options));
    assert_eq!(long, "the prompt has 300 tokens and the context length is 256: shorten the prompt");
    let sampling = Sampling { top_p: 2.0, ..Default::default() };
    assert_eq!(
        message(llama.generate("x", &GenerateOptions { sampling, ..options })),
        "top_p is 2; it must be from 0 to 1"
    );
    let text = |tokens: &[u32]| llama.logits(tokens).unwrap_err().message().to_owned();
    assert_eq!(text(&[]), "0 tokens: pass at least 1, and at most the context length of 256");
    assert_eq!(text(&[0; 257]), "257 tokens: pass at least 1, and at most the context length of 256");
    assert_eq!(text(&[1, 281]), "token 281 is outside the vocabulary of 281 tokens");
    assert_eq!(llama.perplexity("x").unwrap_err().message(), "the text has 1 tokens; perplexity needs at least 2");
    assert_eq!(llama.stream_tokens(vec![999], &GenerateOptions::default()).unwrap().start().map_err(|_| ()), Ok(()));
    let outside = llama.stream_tokens(vec![999], &GenerateOptions::default()).unwrap().collect_all();
    assert!(message(outside).starts_with("token 999 is outside"));
    let open = |options: OpenOptions| {
        let error = TextGenerator::open_with(common::text("llama.gguf"), &options).unwrap_err();
        (error.status(), error.message().to_owned())
    };
    let refused = |text: &str| (Status::InvalidArgument, text.to_owned());
    let length = open(OpenOptions { context_length: Some(257), ..Default::default() });
    assert_eq!(length, refused("a context length of 257; it must be from 1 to the model's 256"));
    let chunk = open(OpenOptions { chunk: Some(0), ..Default::default() });
    assert_eq!(chunk, refused("a chunk has at least 1 token, not 0"));
}
