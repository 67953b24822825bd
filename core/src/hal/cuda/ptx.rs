//! What a PTX text says about its kernels. Only what is around their bodies is understood; of these, that they are whole.

use super::user::{Entry, MOST_PARAMETERS};
use crate::error::{Error, Result, Status};

/// The kernels of a text, in its order. `invalid_kernel` names the line.
pub fn entries(text: &str) -> Result<Vec<Entry>> {
    let mut reader = Reader { text, line: 1 };
    reader.expect(".version")?;
    let version = reader.some("a version")?;
    let numbers = |(major, minor): (&str, &str)| number(major).is_some() && number(minor).is_some();
    if !version.split_once('.').is_some_and(numbers) {
        return Err(reader.wrong(version, "a version"));
    }
    reader.expect(".target")?;
    let target = reader.some("a target")?;
    if !target.starts_with("sm_") {
        return Err(reader.wrong(target, "an architecture as sm_70"));
    }
    let mut entries = Vec::new();
    let mut wide = false;
    while let Some(token) = reader.next()? {
        match token {
            ".entry" => entries.extend(reader.entry()?),
            ".address_size" => {
                reader.expect("64")?;
                wide = true;
            }
            "{" | "(" | "[" => reader.skip(token)?,
            "}" | ")" | "]" => return Err(reader.wrong(token, "what it closes")),
            _ => {}
        }
    }
    if !wide {
        return Err(reader.bad("there is no '.address_size 64'"));
    }
    Ok(entries)
}

/// A text with what was read of it cut off.
struct Reader<'a> {
    text: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    /// Something that should not be there.
    #[cold]
    #[inline(never)]
    fn wrong(&self, token: &str, wanted: &str) -> Error {
        let line = self.line;
        match token {
            "" => Error::formatted(
                Status::InvalidKernel,
                format_args!("PTX, line {line}: the text ends where {wanted} should be"),
            ),
            _ => Error::formatted(
                Status::InvalidKernel,
                format_args!("PTX, line {line}: '{token}' where {wanted} should be"),
            ),
        }
    }

    /// Something else that is not as it should be.
    #[cold]
    #[inline(never)]
    fn bad(&self, what: &str) -> Error {
        Error::formatted(Status::InvalidKernel, format_args!("PTX, line {}: {what}", self.line))
    }

    /// Takes so many bytes, which end at a character's end.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, left) = self.text.split_at(bytes);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        self.text = left;
        taken
    }

    /// The next word, text in quotes or character; `None` at the end.
    #[inline(never)]
    fn next(&mut self) -> Result<Option<&'a str>> {
        loop {
            let bytes = self.text.as_bytes();
            let Some(&first) = bytes.first() else { return Ok(None) };
            let length = match first {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => {
                    self.take(1);
                    continue;
                }
                b'/' if bytes.starts_with(b"//") => {
                    let end = bytes.iter().position(|&byte| byte == b'\n');
                    self.take(end.unwrap_or(bytes.len()));
                    continue;
                }
                b'/' if bytes.starts_with(b"/*") => {
                    let Some(end) = self.text.find("*/") else {
                        return Err(self.bad("a comment does not end"));
                    };
                    self.take(end + 2);
                    continue;
                }
                b'"' => match bytes[1..].iter().position(|&byte| matches!(byte, b'"' | b'\n')) {
                    Some(end) if bytes[end + 1] == b'"' => end + 2,
                    _ => return Err(self.bad("a text in quotes does not end")),
                },
                _ if is_word(first) => bytes.iter().position(|&byte| !is_word(byte)).unwrap_or(bytes.len()),
                0x21..=0x7e => 1,
                _ => return Err(self.bad("a character that PTX has not")),
            };
            return Ok(Some(self.take(length)));
        }
    }

    /// The next word, which must be there.
    #[inline(never)]
    fn some(&mut self, what: &str) -> Result<&'a str> {
        match self.next()? {
            Some(token) => Ok(token),
            None => Err(self.wrong("", what)),
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<()> {
        match self.some(wanted)? {
            token if token == wanted => Ok(()),
            token => Err(self.wrong(token, wanted)),
        }
    }

    fn number(&mut self, what: &str) -> Result<u32> {
        let token = self.some(what)?;
        match number(token) {
            Some(number) => Ok(number),
            None => Err(self.wrong(token, what)),
        }
    }

    fn name(&mut self) -> Result<&'a str> {
        let token = self.some("a name")?;
        if !is_name(token) {
            return Err(self.wrong(token, "a name"));
        }
        Ok(token)
    }

    /// Skips to what closes a bracket.
    fn skip(&mut self, open: &'a str) -> Result<()> {
        let mut open = vec![open];
        while let Some(&last) = open.last() {
            let token = self.some("a closing bracket")?;
            match token {
                "{" | "(" | "[" => open.push(token),
                "}" | ")" | "]" => {
                    let closes = match last {
                        "{" => "}",
                        "(" => ")",
                        _ => "]",
                    };
                    if token != closes {
                        return Err(self.wrong(token, closes));
                    }
                    open.pop();
                }
                ".entry" => return Err(self.wrong(token, "a closing bracket")),
                _ => {}
            }
        }
        Ok(())
    }

    /// A kernel, behind `.entry`; nothing where it is only declared.
    fn entry(&mut self) -> Result<Option<Entry>> {
        let mut entry = Entry { name: self.name()?.into(), ..Entry::default() };
        let mut token = self.some("'{'")?;
        if token == "(" {
            self.parameters(&mut entry)?;
            token = self.some("'{'")?;
        }
        loop {
            match token {
                "{" => {
                    self.skip(token)?;
                    return Ok(Some(entry));
                }
                ";" => return Ok(None),
                ".pragma" => {
                    while self.some("';'")? != ";" {}
                    token = self.some("'{'")?;
                }
                _ if token.starts_with('.') => {
                    let mut size = [1; 3];
                    let directive = token;
                    let mut axis = 0;
                    token = self.some("'{'")?;
                    while let Some(value) = number(token) {
                        if axis == 3 {
                            return Err(self.wrong(token, "no fourth number"));
                        }
                        size[axis] = value;
                        axis += 1;
                        token = self.some("'{'")?;
                        if token != "," {
                            break;
                        }
                        token = self.some("a number")?;
                        if number(token).is_none() {
                            return Err(self.wrong(token, "a number"));
                        }
                    }
                    if matches!(directive, ".reqntid" | ".maxntid") {
                        if axis == 0 || size.contains(&0) {
                            return Err(self.wrong(directive, "a number of threads"));
                        }
                        let place = if directive == ".reqntid" { &mut entry.required } else { &mut entry.most };
                        *place = Some(size);
                    }
                }
                _ => return Err(self.wrong(token, "a kernel's body")),
            }
        }
    }

    /// The parameters of a kernel, behind `(`.
    fn parameters(&mut self, entry: &mut Entry) -> Result<()> {
        let mut token = self.some("a parameter")?;
        let mut end = 0;
        while token != ")" {
            if token != ".param" {
                return Err(self.wrong(token, ".param"));
            }
            let (mut size, mut align) = (0, 1);
            let name = loop {
                let word = self.some("a parameter's name")?;
                match word {
                    ".align" => align = self.alignment()?,
                    ".ptr" if size > 0 => {}
                    _ if word.starts_with('.') && size == 0 => {
                        let Some(bytes) = bytes_of(word) else {
                            return Err(self.wrong(word, "a parameter's type"));
                        };
                        size = bytes;
                        align = align.max(bytes);
                    }
                    _ => break word,
                }
                // The alignment behind .ptr is that of what it points to.
                if word == ".ptr" {
                    let mut word = self.some("a parameter's name")?;
                    if matches!(word, ".global" | ".const" | ".shared" | ".local") {
                        word = self.some("a parameter's name")?;
                    }
                    if word == ".align" {
                        self.alignment()?;
                        word = self.some("a parameter's name")?;
                    }
                    break word;
                }
            };
            if size == 0 || !is_name(name) {
                return Err(self.wrong(name, "a parameter's type and name"));
            }
            token = self.some("')'")?;
            if token == "[" {
                let count = self.number("an array's length")? as usize;
                self.expect("]")?;
                size = size.saturating_mul(count);
                token = self.some("')'")?;
            }
            let offset = usize::next_multiple_of(end, align);
            end = offset.saturating_add(size);
            if size == 0 || end > MOST_PARAMETERS {
                return Err(self.bad("a parameter has no bytes, or all together more than 32764"));
            }
            entry.parameters.push((offset, size));
            if token == "," {
                token = self.some("a parameter")?;
                if token == ")" {
                    return Err(self.wrong(token, ".param"));
                }
            } else if token != ")" {
                return Err(self.wrong(token, "',' or ')'"));
            }
        }
        Ok(())
    }

    fn alignment(&mut self) -> Result<usize> {
        let align = self.number("an alignment")? as usize;
        if !align.is_power_of_two() || align > MOST_PARAMETERS {
            return Err(self.bad("an alignment that is no power of two"));
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

/// A whole number as PTX has them.
fn number(token: &str) -> Option<u32> {
    let digits = token.strip_suffix('U').unwrap_or(token);
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        _ if digits.starts_with('+') => None,
        _ if digits.len() > 1 && digits.starts_with('0') => u32::from_str_radix(digits, 8).ok(),
        _ => digits.parse().ok(),
    }
}

/// The bytes of a type.
fn bytes_of(kind: &str) -> Option<usize> {
    Some(match kind {
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        ".b128" => 16,
        _ => return None,
    })
}
