//! Reads settings from TOML text. Only this module uses the crate `toml`.

use std::borrow::Cow;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A setting in a text file.
pub struct Entry<'a> {
    /// The line, counted from 1.
    pub line: usize,
    /// The table's name; empty before the first table.
    pub table: Cow<'a, str>,
    pub key: Cow<'a, str>,
    value: DeValue<'a>,
    /// The value as written in the file.
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

    /// The value, if it is a string.
    pub fn string(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// The value, if it is `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        self.value.as_bool()
    }

    /// The value, if it is a whole number of 0 or more.
    pub fn number(&self) -> Option<usize> {
        self.value.as_integer().and_then(|it| usize::from_str_radix(it.as_str(), it.radix()).ok())
    }
}

/// An error in a text file. Line 0 means the whole file.
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

/// The line number of a byte.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

/// Inserts an entry behind those of earlier lines. The first fault in the file is the one that is reported.
fn add<'a>(entries: &mut Vec<Entry<'a>>, entry: Entry<'a>) {
    entries.insert(entries.partition_point(|other| other.line <= entry.line), entry);
}

/// Reads the settings of a TOML text in the order of their lines: those before any table, and those in tables.
pub fn entries(text: &str) -> Result<Vec<Entry<'_>>, Fault> {
    let all = DeTable::parse(text).map_err(|error| Fault {
        line: error.span().map_or(0, |span| line(text, span.start)),
        what: error.message().replace('\n', ", ").into(),
    })?;
    let mut entries = Vec::new();
    for (key, value) in all.into_inner() {
        if let DeValue::Table(table) = value.get_ref() {
            for (own, value) in table {
                add(&mut entries, Entry::new(text, key.get_ref().clone(), own.clone(), value.clone()));
            }
        } else {
            add(&mut entries, Entry::new(text, "".into(), key, value));
        }
    }
    Ok(entries)
}
