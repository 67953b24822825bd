//! How a `tokenizer.json` divides text before its merges, as the rules that GGUF files can name.

use super::json::{Object, shown};
use crate::text::pieces::SPACE;
use crate::text::tokenizer::{self, DIGITS, GPT2};
use adead::{Error, Result};
use serde_json::Value;

fn text<'a>(step: &'a Value, key: &str) -> Option<&'a str> {
    step.get(key).and_then(Value::as_str)
}

/// The steps of a field that is one step or a sequence of them.
fn steps<'a>(file: &'a Object<'_>, field: &str, list: &str) -> Vec<&'a Value> {
    let Some(step) = file.get(field) else { return Vec::new() };
    match step.get(list).and_then(Value::as_array) {
        Some(steps) if text(step, "type") == Some("Sequence") => steps.iter().collect(),
        _ => vec![step],
    }
}

fn normalizers<'a>(file: &'a Object<'_>) -> Vec<&'a Value> {
    steps(file, "normalizer", "normalizers")
}

fn pre_tokenizers<'a>(file: &'a Object<'_>) -> Vec<&'a Value> {
    steps(file, "pre_tokenizer", "pretokenizers")
}

/// Whether a step makes ▁ of every space.
fn replaces_spaces(step: &Value) -> bool {
    let from = step.get("pattern").and_then(|pattern| text(pattern, "String"));
    text(step, "type") == Some("Replace") && from == Some(" ") && text(step, "content") == Some("▁")
}

/// Returns the name of the words of GPT-2's byte pairs. `unsupported` for others than `text/tokenizer.rs` has.
pub(super) fn pre_of(file: &Object, whole: bool) -> Result<&'static str> {
    let refused = |what: String| -> Error {
        let known = tokenizer::names();
        file.unsupported(format!(
            "{what}; supported are the words of {known}, or '\"byte_fallback\": true' with ▁ for spaces"
        ))
    };
    // Composed characters, which text mostly has: llama.cpp omits this step too.
    if let Some(step) = normalizers(file).into_iter().find(|step| text(step, "type") != Some("NFC")) {
        return Err(refused(format!("text is changed by the normalizer {}", shown(step))));
    }
    let (mut patterns, mut bytes) = (Vec::new(), false);
    for step in pre_tokenizers(file) {
        let other = || refused(format!("text is divided by the pre-tokenizer {}", shown(step)));
        let is = |key: &str| step.get(key).and_then(Value::as_bool);
        match text(step, "type") {
            _ if bytes => return Err(other()),
            Some("Split") if text(step, "behavior") == Some("Isolated") && is("invert") != Some(true) => {
                let pattern = step.get("pattern").and_then(|pattern| text(pattern, "Regex"));
                patterns.push(pattern.ok_or_else(other)?);
            }
            Some("Digits") if is("individual_digits") == Some(true) => patterns.push(DIGITS),
            Some("ByteLevel") if is("add_prefix_space") != Some(true) => {
                bytes = true;
                if is("use_regex") != Some(false) {
                    patterns.push(GPT2);
                }
            }
            _ => return Err(other()),
        }
    }
    if !bytes {
        return Err(refused("text is not turned into bytes (the pre-tokenizer ByteLevel is missing)".into()));
    }
    match tokenizer::name_of(&patterns) {
        Some((name, takes_whole)) if takes_whole || !whole => Ok(name),
        Some((name, _)) => Err(refused(format!("'model.ignore_merges' is true, which the words of {name} don't have"))),
        None => Err(refused(format!("text is divided into words by {}", shown(&Value::from(patterns))))),
    }
}

/// Returns whether SentencePiece's pairs put a space before a text. `unsupported` for steps that a GGUF file can't name.
pub(super) fn space_prefix_of(file: &Object, notes: &mut Vec<String>) -> Result<bool> {
    let refused = |kind: &str, step: &Value| -> Error {
        let known = "supported are those that make ▁ of spaces, and put one before a text or not";
        file.unsupported(format!("text is changed by the {kind} {}; {known}", shown(step)))
    };
    let (mut prefix, mut replaced) = (false, false);
    for step in normalizers(file) {
        match text(step, "type") {
            Some("Prepend") if text(step, "prepend") == Some("▁") => prefix = true,
            _ if replaces_spaces(step) => replaced = true,
            _ => return Err(refused("normalizer", step)),
        }
    }
    for step in pre_tokenizers(file) {
        match text(step, "type") {
            Some("Metaspace")
                if step.get("split").and_then(Value::as_bool) == Some(false)
                    && text(step, "replacement").is_none_or(|mark| mark == SPACE.to_string()) =>
            {
                replaced = true;
                prefix |= match text(step, "prepend_scheme") {
                    Some("never") => false,
                    Some("first") => {
                        notes.push(
                            "a space precedes the first word only; a GGUF file says it of words behind special \
                                    tokens too"
                                .into(),
                        );
                        true
                    }
                    Some(_) => true,
                    None => step.get("add_prefix_space").and_then(Value::as_bool) != Some(false),
                };
            }
            // No spaces are left that it could divide.
            Some("Split") if replaced && step.pointer("/pattern/String").and_then(Value::as_str) == Some(" ") => {}
            _ => return Err(refused("pre-tokenizer", step)),
        }
    }
    if !replaced {
        return Err(file.unsupported("no step makes ▁ of spaces; tokenizers with byte_fallback are supported with one"));
    }
    Ok(prefix)
}
