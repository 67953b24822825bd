//! Special tokens and the chat template, from `tokenizer_config.json`, `config.json` and `generation_config.json`.

use super::json::Object;
use super::tokens::Tokens;
use crate::gguf::Header;
use crate::text::vocabulary::{ENDS, Kind};
use adead::{Result, Status};
use serde_json::Value;
use std::path::Path;

/// Keys of a GGUF file for tokens: their name in Hugging Face's files, and in the new one.
const TOKENS: [(&str, &str); 4] = [("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")];

/// What the files of a folder say about special tokens.
pub(super) struct Special<'a> {
    pub folder: &'a Path,
    pub config: &'a Object<'a>,
    pub tokenizer: &'a Object<'a>,
}

impl Special<'_> {
    /// Sets the keys of special tokens and of the chat template.
    pub fn write(&self, header: &mut Header, tokens: &Tokens) -> Result<()> {
        let settings = Object::open(&self.folder.join("tokenizer_config.json"))?;
        let generation = Object::open(&self.folder.join("generation_config.json"))?;
        let mut eos = None;
        for (name, key) in TOKENS {
            let id = match self.named(settings.as_ref(), tokens, name)? {
                None => self.numbered(self.config, tokens, name)?.first().copied(),
                id => id,
            };
            let Some(id) = id else { continue };
            header.set(&format!("tokenizer.ggml.{key}_token_id"), id)?;
            if name == "eos" {
                eos = Some(id);
            }
        }
        // Other tokens that end an answer. Those of a known text are found without.
        let mut ends = self.numbered(self.config, tokens, "eos")?;
        if let Some(generation) = &generation {
            ends.extend(self.numbered(generation, tokens, "eos")?);
        }
        let is_known = |id: u32| {
            let (text, kind) = (tokens.texts[id as usize].as_str(), tokens.kinds[id as usize]);
            Some(id) == eos || kind == Kind::Control && ENDS.contains(&text)
        };
        let mut others: Vec<u32> = Vec::new();
        for id in ends {
            if !is_known(id) && !others.contains(&id) {
                others.push(id);
            }
        }
        for (id, key) in others.iter().zip(["eot", "eom"]) {
            header.set(&format!("tokenizer.ggml.{key}_token_id"), *id)?;
        }
        for (name, first) in [("bos", true), ("eos", false)] {
            let said = settings.as_ref().map_or(Ok(None), |own| own.optional_bool(&format!("add_{name}_token")))?;
            let id = header.value(&format!("tokenizer.ggml.{name}_token_id"));
            let added = id.is_some() && id == self.at_the_end(tokens, first).map(Into::into).as_ref();
            header.set(&format!("tokenizer.ggml.add_{name}_token"), said.unwrap_or(added))?;
        }
        self.template(header, settings.as_ref())
    }

    /// The token that `tokenizer_config.json` names by its text.
    fn named(&self, settings: Option<&Object>, tokens: &Tokens, name: &str) -> Result<Option<u32>> {
        let key = format!("{name}_token");
        let Some((settings, value)) = settings.and_then(|own| Some((own, own.get(&key)?))) else { return Ok(None) };
        let text = match value {
            Value::String(text) => Some(text.as_str()),
            Value::Object(token) => token.get("content").and_then(Value::as_str),
            _ => None,
        };
        let text = text.ok_or_else(|| settings.wrong(&key, "a token"))?;
        match tokens.ids.get(text) {
            Some(&id) => Ok(Some(id)),
            // Of padding nothing depends.
            None if name == "pad" || name == "unk" => Ok(None),
            None => Err(settings.wrong(&key, "a token of tokenizer.json")),
        }
    }

    /// The tokens that a file names by their ids: one, or several.
    fn numbered(&self, file: &Object, tokens: &Tokens, name: &str) -> Result<Vec<u32>> {
        let key = format!("{name}_token_id");
        let Some(value) = file.get(&key) else { return Ok(Vec::new()) };
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let read = |value: &Value| {
            let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
            match id.filter(|&id| (id as usize) < tokens.texts.len()) {
                Some(id) => Ok(Some(id)),
                // Some models have no padding, and say so by -1 or an id beyond the table.
                None if name == "pad" => Ok(None),
                None => Err(file.wrong(&key, &format!("ids from 0 to {}", tokens.texts.len() - 1))),
            }
        };
        values.iter().filter_map(|value| read(value).transpose()).collect()
    }

    /// The token that `tokenizer.json` puts first, or last.
    fn at_the_end(&self, tokens: &Tokens, first: bool) -> Option<u32> {
        let processor = self.tokenizer.get("post_processor")?;
        let steps = processor.get("processors").and_then(Value::as_array);
        let steps = steps.map_or(std::slice::from_ref(processor), Vec::as_slice);
        let single = steps.iter().find_map(|step| step.get("single")?.as_array())?;
        let token = if first { single.first() } else { single.last() }?;
        tokens.ids.get(token.pointer("/SpecialToken/id")?.as_str()?).copied()
    }

    /// Sets the chat template: of `tokenizer_config.json`, or a file of its own.
    fn template(&self, header: &mut Header, settings: Option<&Object>) -> Result<()> {
        let own = settings.and_then(|settings| Some((settings, settings.get("chat_template")?)));
        match own {
            Some((_, Value::String(template))) => return header.set("tokenizer.chat_template", template.as_str()),
            Some((settings, Value::Array(templates))) => {
                let mut names = Vec::new();
                for entry in templates {
                    let read = |key: &str| entry.get(key).and_then(Value::as_str);
                    let Some((name, template)) = read("name").zip(read("template")) else {
                        return Err(settings.wrong("chat_template", "templates with a name each"));
                    };
                    if name == "default" {
                        header.set("tokenizer.chat_template", template)?;
                    } else {
                        header.set(&format!("tokenizer.chat_template.{name}"), template)?;
                        names.push(name);
                    }
                }
                return if names.is_empty() { Ok(()) } else { header.set("tokenizer.chat_templates", &names[..]) };
            }
            Some((settings, _)) => return Err(settings.wrong("chat_template", "a text, or a list of named ones")),
            None => {}
        }
        let path = self.folder.join("chat_template.jinja");
        match std::fs::read_to_string(&path) {
            Ok(template) => header.set("tokenizer.chat_template", template.as_str()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(crate::text::fault(Status::Io, &path, error)),
        }
    }
}
