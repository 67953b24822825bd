//! Answers in JSON that a schema allows: which tokens may come next. The crate `llguidance` knows schemas and follows the answer.

use super::tokenizer::Tokenizer;
use super::vocabulary::Kind;
use adead::{Error, Result, Status};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

fn invalid<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

/// A vocabulary as grammars need it. It takes some 10 ms to make, and is made when it is first used.
pub(crate) struct Grammars(ParserFactory);

impl Grammars {
    /// Takes a tokenizer's vocabulary. `unsupported` for one without a token that ends an answer.
    pub fn new(tokenizer: &Tokenizer) -> Result<Grammars> {
        /// Longer tokens, such as those of spaces, are never part of an answer.
        const LONGEST: usize = 128;
        let vocabulary = tokenizer.vocabulary();
        let Some(&end) = vocabulary.ends.first() else {
            let text = "JSON answers: the model's vocabulary has no token that ends an answer";
            return Err(Error::new(Status::Unsupported, text));
        };
        let word = |id: usize| match vocabulary.kinds[id] {
            Kind::Control | Kind::Unknown | Kind::Unused => {
                [&[TokTrie::SPECIAL_TOKEN_MARKER], vocabulary.tokens[id].as_bytes()].concat()
            }
            _ => tokenizer.piece(id as u32).to_vec(),
        };
        let words: Vec<Vec<u8>> = (0..vocabulary.tokens.len())
            .map(word)
            .map(|word| if word.len() > LONGEST { vec![] } else { word })
            .collect();
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words).with_eos_tokens(&vocabulary.ends);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory =
            ParserFactory::new_simple(&environment).map_err(|error| Error::new(Status::Internal, error.to_string()))?;
        factory.quiet();
        Ok(Grammars(factory))
    }

    /// Begins an answer that a JSON schema allows. `invalid_argument` if it is no schema, or has something that is not supported.
    pub fn begin(&self, schema: &str) -> Result<Allowed> {
        let mut value: Value = match serde_json::from_str(schema) {
            Ok(value) => value,
            Err(error) => return invalid(format!("json_schema is no JSON: {error}")),
        };
        match &mut value {
            Value::Object(fields) => {
                // A schema may say how JSON is written. Small models otherwise write white space without end.
                fields.entry("x-guidance").or_insert_with(
                    || json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " }),
                );
            }
            Value::Bool(_) => {}
            other => return invalid(format!("json_schema is {other}; a schema is an object, true or false")),
        }
        let parser = self.0.create_parser(TopLevelGrammar::from_json_schema(value));
        let matcher = match parser {
            Ok(parser) => Matcher::new(Ok(parser)),
            Err(error) => return invalid(format!("json_schema: {error}")),
        };
        Ok(Allowed(Mutex::new(matcher)))
    }
}

/// The tokens that may follow in an answer.
pub(crate) struct Allowed(Mutex<Matcher>);

impl Allowed {
    /// Returns the logits with −∞ for every token that may not come next.
    pub fn only(&self, logits: &[f32]) -> Result<Vec<f32>> {
        let mask = self.0.lock().unwrap_or_else(PoisonError::into_inner).compute_mask_or_eos().map_err(failed)?;
        let allowed = |id: usize| id < mask.len() && mask.is_allowed(id as u32);
        let only = |(id, &logit): (usize, &f32)| if allowed(id) { logit } else { f32::NEG_INFINITY };
        Ok(logits.iter().enumerate().map(only).collect())
    }

    /// Takes the next token. Returns whether the answer is complete, so that nothing may follow.
    pub fn push(&mut self, token: u32) -> Result<bool> {
        let matcher = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        matcher.consume_token(token).map_err(failed)?;
        Ok(matcher.is_stopped())
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(Status::InvalidArgument, format!("json_schema: the answer can't go on: {error}"))
}
