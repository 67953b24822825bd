//! Hugging Face's `tokenizer.json` as a GGUF file's vocabulary.

use super::json::{Object, shown};
use super::scores::scores;
use super::words::{pre_of, space_prefix_of};
use crate::gguf::Header;
use crate::text::pieces::SPACE;
use crate::text::vocabulary::Kind;
use adead::{Error, Result, Status};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// A vocabulary as `tokenizer.json` has it.
pub(super) struct Tokens {
    /// By id. Ids that the file skips have a made-up text.
    pub texts: Vec<String>,
    pub kinds: Vec<Kind>,
    /// The ids of texts.
    pub ids: HashMap<String, u32>,
    method: Method,
    /// What is lost.
    pub notes: Vec<String>,
}

enum Method {
    BytePairs { pre: &'static str, merges: Vec<(String, String)> },
    Scores { space_prefix: bool, merges: Vec<(String, String)> },
}

impl Tokens {
    /// Reads the file, for a table of so many words. `unsupported` for a tokenizer that GGUF files can't have or `adead` can't run,
    /// `invalid_argument` for a malformed one.
    pub fn read(file: &Object, words: usize) -> Result<Tokens> {
        let model = file.object("model")?.ok_or_else(|| file.wrong("model", "an object"))?;
        let kind = model.optional_text("type")?.unwrap_or("BPE");
        if kind != "BPE" {
            return Err(file.unsupported(format!("the tokenizer is of the type '{kind}'; 'BPE' is supported")));
        }
        for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if let Some(mark) = model.optional_text(key)?.filter(|mark| !mark.is_empty()) {
                return Err(file.unsupported(format!("'model.{key}' is '{mark}'; tokenizers without it are supported")));
            }
        }
        let mut notes = Vec::new();
        let merges = merges(&model)?;
        let bytes = model.optional_bool("byte_fallback")?.unwrap_or(false);
        let method = if bytes {
            Method::Scores { space_prefix: space_prefix_of(file, &mut notes)?, merges }
        } else {
            let whole = model.optional_bool("ignore_merges")?.unwrap_or(false);
            Method::BytePairs { pre: pre_of(file, whole)?, merges }
        };
        let mut tokens = Tokens { texts: vec![], kinds: vec![], ids: HashMap::new(), method, notes };
        tokens.fill(file, &model, words)?;
        Ok(tokens)
    }

    fn fill(&mut self, file: &Object, model: &Object, words: usize) -> Result<()> {
        let vocabulary = model.object("vocab")?.ok_or_else(|| model.wrong("vocab", "an object"))?;
        let added = file.optional_list("added_tokens")?.unwrap_or_default();
        let mut texts: Vec<Option<(String, Kind)>> = vec![None; words];
        let malformed = |text: String| file.error(Status::InvalidArgument, text);
        let unknown = model.optional_text("unk_token")?;
        let contents: HashSet<&str> =
            added.iter().filter_map(|token| token.get("content").and_then(Value::as_str)).collect();
        let is_added = |text: &str| contents.contains(text);
        for (text, id) in vocabulary.fields() {
            let id = id.as_u64().ok_or_else(|| vocabulary.wrong(text, "an id"))?;
            let count = vocabulary.fields().len();
            let Some(place) = usize::try_from(id).ok().and_then(|id| texts.get_mut(id)) else {
                if is_added(text) {
                    continue;
                }
                let text = format!(
                    "the token '{text}' has the id {id}, and config.json counts {words} tokens ('vocab_size'); the \
                     tokenizer has {count}"
                );
                return Err(malformed(text));
            };
            let kind = match &self.method {
                _ if Some(text.as_str()) == unknown => Kind::Unknown,
                Method::Scores { .. } if is_byte(text) => Kind::Byte,
                _ => Kind::Normal,
            };
            if let Some((other, _)) = place.replace((text.clone(), kind)) {
                return Err(malformed(format!("the tokens '{other}' and '{text}' have the id {id}")));
            }
        }
        let (mut beyond, mut stripped) = (0, Vec::new());
        for token in added {
            let field = |key: &str| token.get(key).and_then(Value::as_bool).unwrap_or(false);
            let read = token.get("content").and_then(Value::as_str).zip(token.get("id").and_then(Value::as_u64));
            let Some((text, id)) = read else {
                return Err(malformed(format!("the added token {} lacks a content or an id", shown(token))));
            };
            let Some(place) = usize::try_from(id).ok().and_then(|id| texts.get_mut(id)) else {
                beyond += 1;
                continue;
            };
            let unknown = matches!(place, Some((_, Kind::Unknown)));
            let kind = match () {
                () if unknown => Kind::Unknown,
                () if field("special") || looks_special(text) => Kind::Control,
                () => Kind::UserDefined,
            };
            // They are found in the text as it is given, before ▁ stands for spaces.
            let spaced = kind == Kind::UserDefined && matches!(self.method, Method::Scores { .. });
            let own = if spaced { text.replace(SPACE, " ") } else { text.into() };
            if let Some((other, _)) = place.replace((own, kind)).filter(|(other, _)| other != text) {
                return Err(malformed(format!("the tokens '{other}' and '{text}' have the id {id}")));
            }
            if field("lstrip") || field("rstrip") || field("single_word") {
                stripped.push(text);
            }
        }
        if beyond > 0 {
            self.notes
                .push(format!("{beyond} added tokens have ids beyond the model's {words} words and are left out"));
        }
        if let Some(first) = stripped.first() {
            let count = stripped.len();
            self.notes.push(format!(
                "{count} added tokens, such as '{first}', take white space or words around them into account; a GGUF file \
                 can't say so"
            ));
        }
        for (id, token) in texts.into_iter().enumerate() {
            // As llama.cpp's converter names them.
            let (text, kind) = token.unwrap_or_else(|| (format!("[PAD{id}]"), Kind::Unused));
            // Of equal ones the first counts.
            self.ids.entry(text.clone()).or_insert(id as u32);
            self.texts.push(text);
            self.kinds.push(kind);
        }
        Ok(())
    }

    /// Sets the vocabulary's keys.
    pub fn write(&mut self, header: &mut Header) -> Result<()> {
        let scored = match &self.method {
            Method::Scores { merges, .. } => Some(scores(&self.texts, &mut self.kinds, &self.ids, merges)),
            Method::BytePairs { .. } => None,
        };
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        match &self.method {
            Method::BytePairs { pre, merges } => {
                header.set("tokenizer.ggml.model", "gpt2")?;
                header.set("tokenizer.ggml.pre", *pre)?;
                header.set("tokenizer.ggml.tokens", &texts[..])?;
                let merges: Vec<String> = merges.iter().map(|(a, b)| format!("{a} {b}")).collect();
                let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
                header.set("tokenizer.ggml.merges", &merges[..])?;
            }
            Method::Scores { space_prefix, .. } => {
                header.set("tokenizer.ggml.model", "llama")?;
                header.set("tokenizer.ggml.pre", "default")?;
                header.set("tokenizer.ggml.tokens", &texts[..])?;
                header.set("tokenizer.ggml.add_space_prefix", *space_prefix)?;
            }
        }
        if let Some((scores, note)) = scored {
            header.set("tokenizer.ggml.scores", &scores[..])?;
            self.notes.extend(note);
        }
        let kinds: Vec<i32> = self.kinds.iter().map(|&kind| kind as i32 + 1).collect();
        header.set("tokenizer.ggml.token_type", &kinds[..])
    }
}

/// Whether a token is special by its text, as llama.cpp's converter decides it: files don't mark all of them.
fn looks_special(text: &str) -> bool {
    let between = |first: &str, last: &str| text.starts_with(first) && text.ends_with(last);
    matches!(text, "<pad>" | "<mask>") || between("<|", "|>") || between("<｜", "｜>") || between("<unused", ">")
}

/// Whether a token stands for a byte: `<0x0A>`.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}

/// Reads merges: `"a b"`, or `["a", "b"]` as newer files have them.
fn merges(model: &Object) -> Result<Vec<(String, String)>> {
    let merges = model.optional_list("merges")?.ok_or_else(|| model.wrong("merges", "a list"))?;
    let read = |(number, merge): (usize, &Value)| {
        let pair = match merge {
            Value::String(text) => text.split_once(' '),
            Value::Array(pair) => match &pair[..] {
                [Value::String(a), Value::String(b)] => Some((a.as_str(), b.as_str())),
                _ => None,
            },
            _ => None,
        };
        // A space inside could not be told from the one between.
        let pair = pair.filter(|(a, b)| !a.is_empty() && !b.is_empty() && !a.contains(' ') && !b.contains(' '));
        let wrong = || -> Error {
            let text = format!("merge {number} is {}; it must be two texts without spaces", shown(merge));
            model.error(Status::InvalidArgument, text)
        };
        pair.map(|(a, b)| (a.to_owned(), b.to_owned())).ok_or_else(wrong)
    };
    merges.iter().enumerate().map(read).collect()
}
