//! Sentences from a file or stdin: lines of text, or JSON lines.

use crate::files::{STANDARD, name};
use adead::{Error, Result, Status};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The format of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A sentence as text.
    Text,
    /// JSON: a string, or an object with a string in this field.
    Json(String),
}

/// The default field of an object.
const FIELD: &str = "text";

/// The most bytes of a line, so that a source without line breaks, such as `/dev/zero`, is not read for ever.
const LONGEST: u64 = 16 << 20;

impl Format {
    /// The format of a file: JSON lines if a field is given or the name ends in `.jsonl` or `.ndjson`.
    pub fn of(path: &Path, field: Option<&str>) -> Format {
        let json = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson");
        match field {
            Some(field) => Format::Json(field.into()),
            None if json => Format::Json(FIELD.into()),
            None => Format::Text,
        }
    }
}

/// Reads sentences, one per line. A line ends with `
/// ` or `\r
/// `; the last line may lack it.
pub struct Sentences {
    lines: Box<dyn BufRead + Send>,
    format: Format,
    name: String,
    line: u64,
}

/// Counts the lines of a file. `None` if it can be read only once, such as a pipe.
pub fn count(path: &Path) -> Option<u64> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let (mut file, mut lines, mut last) = (BufReader::with_capacity(1 << 16, file), 0, b'\n');
    loop {
        let bytes = file.fill_buf().ok()?;
        let Some(&end) = bytes.last() else {
            return Some(lines + u64::from(last != b'\n'));
        };
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let read = bytes.len();
        last = end;
        file.consume(read);
    }
}

impl Sentences {
    /// Opens a file, or stdin for `-`.
    pub fn open(path: &Path, format: Format) -> Result<Sentences> {
        let name = name(path);
        let lines: Box<dyn BufRead + Send> = if path.as_os_str() == STANDARD {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(|error| Error::new(Status::Io, format!("{name}: {error}")))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        };
        Ok(Sentences { lines, format, name, line: 0 })
    }

    fn read(&mut self) -> Result<Option<String>> {
        let mut bytes = Vec::new();
        let read = self.lines.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes);
        if read.map_err(|error| Error::new(Status::Io, format!("{}: {error}", self.name)))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if bytes.len() as u64 > LONGEST {
            return Err(self.wrong(format!("it has more than {LONGEST} bytes")));
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            bytes.pop_if(|byte| *byte == b'\r');
        }
        let line = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            self.wrong(format!("byte {} is not UTF-8: {:#04x}", at + 1, error.as_bytes()[at]))
        })?;
        match &self.format {
            Format::Text => Ok(Some(line)),
            Format::Json(field) => self.parsed(&line, field).map(Some),
        }
    }

    fn parsed(&self, line: &str, field: &str) -> Result<String> {
        let value: Value = serde_json::from_str(line).map_err(|error| self.wrong(format!("not JSON: {error}")))?;
        match value {
            Value::String(text) => Ok(text),
            Value::Object(mut object) => match object.remove(field) {
                Some(Value::String(text)) => Ok(text),
                Some(_) => Err(self.wrong(format!("'{field}' is not a string"))),
                None => Err(self.wrong(format!("the object has no '{field}'"))),
            },
            _ => Err(self.wrong("it is neither a string nor an object".into())),
        }
    }

    fn wrong(&self, text: String) -> Error {
        Error::new(Status::InvalidArgument, format!("{}: line {}: {text}", self.name, self.line))
    }
}

impl Iterator for Sentences {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_they_are_read() {
        let folder = std::env::temp_dir().join(format!("adead-cli-count-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("lines.txt");
        let long = "x".repeat(1 << 16);
        for text in ["", "\n", "one", "one\n", "one\r\ntwo", "\n\n\n", &long, &format!("{long}\n{long}\ny")] {
            std::fs::write(&path, text).unwrap();
            let read = Sentences::open(&path, Format::Text).unwrap().count() as u64;
            assert_eq!(count(&path), Some(read), "{} bytes", text.len());
        }
        assert_eq!((count(&folder), count(&folder.join("none"))), (None, None));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
