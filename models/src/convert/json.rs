//! JSON files of a model's folder, whose fields are read with checks.

use crate::text::fault;
use adead::{Error, Result, Status};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// An object of a file, or in one.
pub(super) struct Object<'a> {
    path: PathBuf,
    /// What precedes a field's name in errors: `rope_scaling.`.
    prefix: String,
    fields: Cow<'a, Map<String, Value>>,
}

/// A value in errors, shortened.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    let end = text.char_indices().nth(60).map_or(text.len(), |(end, _)| end);
    if end < text.len() { format!("{}…", &text[..end]) } else { text }
}

impl Object<'_> {
    /// Reads a file. `None` if it is not there; `io` if it can't be read, `invalid_argument` if it is not an object of JSON.
    pub fn open(path: &Path) -> Result<Option<Object<'static>>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(Status::Io, path, error)),
        };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => {
                Ok(Some(Object { path: path.into(), prefix: String::new(), fields: Cow::Owned(fields) }))
            }
            Ok(other) => Err(fault(Status::InvalidArgument, path, format!("it is {}, not an object", shown(&other)))),
            Err(error) => Err(fault(Status::InvalidArgument, path, format!("not JSON: {error}"))),
        }
    }

    /// Reads a file that must be there.
    pub fn required(path: &Path) -> Result<Object<'static>> {
        let missing = || fault(Status::Io, path, "no such file; a model's folder has it");
        Object::open(path)?.ok_or_else(missing)
    }

    /// An error about the file.
    pub fn error(&self, status: Status, text: impl std::fmt::Display) -> Error {
        fault(status, &self.path, text)
    }

    pub fn unsupported(&self, text: impl std::fmt::Display) -> Error {
        self.error(Status::Unsupported, text)
    }

    /// Returns a field. `null` is no field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// Returns the error about a field of another type.
    pub fn wrong(&self, key: &str, wanted: &str) -> Error {
        let value = self.get(key).map_or("missing".into(), shown);
        self.error(Status::InvalidArgument, format!("'{}{key}' is {value}; it must be {wanted}", self.prefix))
    }

    fn optional<T>(&self, key: &str, wanted: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Option<T>> {
        self.get(key).map(|value| read(value).ok_or_else(|| self.wrong(key, wanted))).transpose()
    }

    pub fn optional_size(&self, key: &str) -> Result<Option<usize>> {
        // GGUF files have sizes as u32.
        let read = |value: &Value| value.as_u64().and_then(|size| u32::try_from(size).ok()).map(|size| size as usize);
        self.optional(key, "an integer from 0 to 2^32 - 1", read)
    }

    pub fn size(&self, key: &str) -> Result<usize> {
        self.optional_size(key)?
            .filter(|&size| size > 0)
            .ok_or_else(|| self.wrong(key, "an integer from 1 to 2^32 - 1"))
    }

    pub fn optional_number(&self, key: &str) -> Result<Option<f64>> {
        self.optional(key, "a number", Value::as_f64)
    }

    pub fn number(&self, key: &str) -> Result<f64> {
        self.optional_number(key)?.ok_or_else(|| self.wrong(key, "a number"))
    }

    pub fn optional_bool(&self, key: &str) -> Result<Option<bool>> {
        self.optional(key, "true or false", Value::as_bool)
    }

    pub fn optional_text(&self, key: &str) -> Result<Option<&str>> {
        self.get(key).map(|value| value.as_str().ok_or_else(|| self.wrong(key, "a string"))).transpose()
    }

    pub fn optional_list(&self, key: &str) -> Result<Option<&[Value]>> {
        self.get(key)
            .map(|value| value.as_array().map(Vec::as_slice).ok_or_else(|| self.wrong(key, "a list")))
            .transpose()
    }

    /// Returns an object in this one.
    pub fn object(&self, key: &str) -> Result<Option<Object<'_>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let fields = value.as_object().ok_or_else(|| self.wrong(key, "an object"))?;
        let prefix = format!("{}{key}.", self.prefix);
        Ok(Some(Object { path: self.path.clone(), prefix, fields: Cow::Borrowed(fields) }))
    }

    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }
}
