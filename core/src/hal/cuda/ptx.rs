//! What PTX says about its kernels. The parser reads everything outside kernels' bodies, and checks that bodies are
//! complete.

use super::user::{Entry, MOST_PARAMETERS};
use crate::error::{Error, Result, Status};
use crate::hal::{NumberKind, PushNumber};

/// Returns the kernels of a text, in its order. `invalid_kernel` names the line with the error.
pub fn entries(text: &str) -> Result<Vec<Entry>> {
    let mut reader = Reader { text, line: 1, malformed: "" };
    reader.expect(".version")?;
    let version = reader.next();
    if version.split_once('.').and_then(|(major, minor)| number(major).and(number(minor))).is_none() {
        return Err(reader.wrong(version, "a version"));
    }
    reader.expect(".target")?;
    let target = reader.next();
    if !target.starts_with("sm_") {
        return Err(reader.wrong(target, "an architecture, such as sm_70"));
    }
    let mut entries = Vec::new();
    let mut wide = false;
    loop {
        match reader.next() {
            ".entry" => entries.extend(reader.entry()?),
            ".address_size" => {
                reader.expect("64")?;
                wide = true;
            }
            open @ ("{" | "(" | "[") => reader.skip(open)?,
            close @ ("}" | ")" | "]") => return Err(reader.wrong(close, "an opening bracket")),
            "" if wide && reader.malformed.is_empty() => return Ok(entries),
            "" => return Err(reader.wrong("", ".address_size 64")),
            _ => {}
        }
    }
}

/// The rest of a text that is being read.
struct Reader<'a> {
    text: &'a str,
    line: usize,
    /// What is wrong with the next bytes, if they are no token.
    malformed: &'static str,
}

impl<'a> Reader<'a> {
    /// Makes the error for an unexpected token.
    #[cold]
    #[inline(never)]
    fn wrong(&self, token: &str, wanted: &str) -> Error {
        let line = self.line;
        let text = match (token, self.malformed) {
            ("", "") => format!("PTX, line {line}: expected {wanted}, got the end"),
            ("", malformed) => format!("PTX, line {line}: {malformed}"),
            _ => format!("PTX, line {line}: expected {wanted}, got '{token}'"),
        };
        Error::new(Status::InvalidKernel, text)
    }

    /// Takes `bytes` bytes, which must end between characters.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, left) = self.text.split_at(bytes);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        self.text = left;
        taken
    }

    /// Returns the next word, quoted text or character. Returns an empty text at the end and at malformed bytes.
    #[inline(never)]
    fn next(&mut self) -> &'a str {
        loop {
            let bytes = self.text.as_bytes();
            let Some(&first) = bytes.first() else { return "" };
            let end = |found: Option<usize>| found.unwrap_or(bytes.len());
            if bytes.starts_with(b"//") {
                self.take(end(bytes.iter().position(|&byte| byte == b'\n')));
            } else if bytes.starts_with(b"/*") {
                let Some(end) = self.text.find("*/") else {
                    self.malformed = "a comment does not end";
                    return "";
                };
                self.take(end + 2);
            } else if first.is_ascii_whitespace() || first == 0x0b {
                self.take(1);
            } else if first == b'"' {
                match bytes[1..].iter().position(|&byte| matches!(byte, b'"' | b'\n')) {
                    Some(end) if bytes[end + 1] == b'"' => return self.take(end + 2),
                    _ => self.malformed = "a text in quotes does not end",
                }
                return "";
            } else if is_word(first) {
                return self.take(end(bytes.iter().position(|&byte| !is_word(byte))));
            } else if first.is_ascii_graphic() {
                return self.take(1);
            } else {
                self.malformed = "a character that PTX does not use";
                return "";
            }
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<()> {
        let token = self.next();
        if token == wanted { Ok(()) } else { Err(self.wrong(token, wanted)) }
    }

    fn number(&mut self, what: &str) -> Result<u32> {
        let token = self.next();
        number(token).ok_or_else(|| self.wrong(token, what))
    }

    /// Skips to the bracket that closes `open`.
    fn skip(&mut self, open: &'a str) -> Result<()> {
        let mut open = vec![open];
        while let Some(&last) = open.last() {
            let closes = match last {
                "{" => "}",
                "(" => ")",
                _ => "]",
            };
            match self.next() {
                token @ ("{" | "(" | "[") => open.push(token),
                token if token == closes => drop(open.pop()),
                token @ ("}" | ")" | "]" | ".entry" | "") => return Err(self.wrong(token, closes)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a kernel, behind `.entry`. Returns `None` if it is only declared.
    fn entry(&mut self) -> Result<Option<Entry>> {
        let name = self.next();
        if !is_name(name) {
            return Err(self.wrong(name, "a name"));
        }
        let mut entry = Entry { name: name.into(), ..Entry::default() };
        let mut token = self.next();
        if token == "(" {
            self.parameters(&mut entry)?;
            token = self.next();
        }
        loop {
            let directive = token;
            match directive {
                "{" => {
                    self.skip(directive)?;
                    return Ok(Some(entry));
                }
                ";" => return Ok(None),
                ".pragma" => {
                    while !matches!(self.next(), ";" | "") {}
                    token = self.next();
                    continue;
                }
                _ if !directive.starts_with('.') => return Err(self.wrong(directive, "a kernel's body")),
                _ => {}
            }
            let (mut size, mut axis) = ([1; 3], 0);
            token = self.next();
            while let Some(value) = number(token) {
                if axis == 3 {
                    return Err(self.wrong(token, "no fourth number"));
                }
                size[axis] = value;
                axis += 1;
                token = self.next();
                if token != "," {
                    break;
                }
                token = self.next();
                if number(token).is_none() {
                    return Err(self.wrong(token, "a number"));
                }
            }
            let place = match directive {
                ".reqntid" => &mut entry.required,
                ".maxntid" => &mut entry.most,
                _ => continue,
            };
            if axis == 0 || size.contains(&0) {
                return Err(self.wrong(directive, "a number of threads"));
            }
            *place = Some(size);
        }
    }

    /// Reads a kernel's parameters, behind `(`.
    fn parameters(&mut self, entry: &mut Entry) -> Result<()> {
        let (mut token, mut end) = (self.next(), 0usize);
        if token == ")" {
            return Ok(());
        }
        loop {
            if token != ".param" {
                return Err(self.wrong(token, ".param"));
            }
            token = self.next();
            let mut align = 1;
            if token == ".align" {
                align = self.alignment()?;
                token = self.next();
            }
            let Some(mut size) = bytes_of(token) else { return Err(self.wrong(token, "a parameter's type")) };
            align = align.max(size);
            let mut kind = kind_of(token, size);
            token = self.next();
            // The state space that it points to, and the alignment there.
            if token == ".ptr" {
                token = self.next();
                if matches!(token, ".global" | ".const" | ".shared" | ".local") {
                    token = self.next();
                }
                if token == ".align" {
                    self.alignment()?;
                    token = self.next();
                }
            }
            if !is_name(token) {
                return Err(self.wrong(token, "a parameter's name"));
            }
            let name = token;
            token = self.next();
            if token == "[" {
                kind = None;
                size = size.saturating_mul(self.number("an array's length")? as usize);
                self.expect("]")?;
                token = self.next();
            }
            let offset = end.next_multiple_of(align);
            end = offset.saturating_add(size);
            if size == 0 || end > MOST_PARAMETERS {
                self.malformed = "a parameter has 0 bytes, or all parameters together have more than 32764";
                return Err(self.wrong("", ""));
            }
            if let Some(kind) = kind {
                // Compilers write numbers in place of parameters' names.
                let own = name.strip_prefix(&*entry.name).and_then(|name| name.strip_prefix('_'));
                let name = own.filter(|name| !name.starts_with("param_")).unwrap_or_default().into();
                entry.numbers.push(PushNumber { name, offset: offset as u32, kind });
            }
            entry.parameters.push((offset, size));
            match token {
                "," => token = self.next(),
                ")" => return Ok(()),
                _ => return Err(self.wrong(token, "',' or ')'")),
            }
        }
    }

    fn alignment(&mut self) -> Result<usize> {
        let align = self.number("an alignment")? as usize;
        if !align.is_power_of_two() || align > MOST_PARAMETERS {
            self.malformed = "an alignment must be a power of two up to 16384";
            return Err(self.wrong("", ""));
        }
        Ok(align)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

fn is_name(token: &str) -> bool {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%');
    token.as_bytes().first().is_some_and(begins) && !token.contains('.')
}

/// Parses an unsigned integer in PTX's forms.
#[inline(never)]
fn number(token: &str) -> Option<u32> {
    let token = token.strip_suffix('U').unwrap_or(token);
    let (digits, radix) = match token.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&token[2..], 16),
        [b'0', _, ..] => (token, 8),
        _ => (token, 10),
    };
    // `from_str_radix` accepts a sign, but PTX doesn't.
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok() }
}

/// Returns the kind of number in a parameter. Compilers write `.u32` for either sign, and `.b32` for any type.
fn kind_of(kind: &str, bytes: usize) -> Option<NumberKind> {
    let wide = bytes as u8;
    match kind.as_bytes() {
        [b'.', b'u' | b's', ..] => Some(NumberKind::Word(wide)),
        b".f16" | b".f32" | b".f64" => Some(NumberKind::Float(wide)),
        _ => None,
    }
}

/// Returns the bytes of a type.
fn bytes_of(kind: &str) -> Option<usize> {
    let kind = kind.strip_prefix('.')?;
    if kind == "f16x2" || kind == "bf16x2" {
        return Some(4);
    }
    let bits = kind.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let exists = match &kind[..kind.len() - bits.len()] {
        "b" => matches!(bits, "8" | "16" | "32" | "64" | "128"),
        "u" | "s" => matches!(bits, "8" | "16" | "32" | "64"),
        "f" => matches!(bits, "16" | "32" | "64"),
        "bf" => bits == "16",
        _ => false,
    };
    if exists { number(bits).map(|bits| bits as usize / 8) } else { None }
}
