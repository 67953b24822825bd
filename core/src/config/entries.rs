//! The settings of a text in TOML: the one user of the crate `toml`.

use std::borrow::Cow;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A setting in a text file.
pub struct Entry<'a> {
    /// From 1.
    pub line: usize,
    /// The table's name, empty before any.
    pub table: Cow<'a, str>,
    pub key: Cow<'a, str>,
    value: DeValue<'a>,
    /// The value as it stands there.
    pub text: &'a str,
}

impl<'a> Entry<'a> {
    fn new(text: &'a str, table: Cow<'a, str>, key: Spanned<Cow<'a, str>>, value: Spanned<DeValue<'a>>) -> Entry<'a> {
        Entry {
            line: line(text, key.span().start),
            table,
            key: key.into_inner(),
            text: text.get(value.span()).unwrap_or_default(),
            value: value.into_inner(),
        }
    }

    /// The value, if it is a text.
    pub fn string(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// The value, if it is `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        self.value.as_bool()
    }

    /// The value, if it is a whole number from 0 on.
    pub fn number(&self) -> Option<usize> {
        self.value.as_integer().and_then(|it| usize::from_str_radix(it.as_str(), it.radix()).ok())
    }
}

/// What is wrong with a text file; line 0 is all of it.
pub struct Fault {
    pub line: usize,
    pub what: Cow<'static, str>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

/// The number of the line that a byte is in.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

/// The settings of a text in TOML, in its order: those before any table, and those of its tables.
pub fn entries(text: &str) -> Result<Vec<Entry<'_>>, Fault> {
    let all = DeTable::parse(text).map_err(|error| Fault {
        line: error.span().map_or(0, |span| line(text, span.start)),
        what: error.message().replace('\n', ", ").into(),
    })?;
    let mut entries = Vec::new();
    for (key, value) in all.into_inner() {
        if let DeValue::Table(table) = value.get_ref() {
            for (own, value) in table {
                entries.push(Entry::new(text, key.get_ref().clone(), own.clone(), value.clone()));
            }
        } else {
            entries.push(Entry::new(text, "".into(), key, value));
        }
    }
    // The first fault in the file is the one to tell.
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}
