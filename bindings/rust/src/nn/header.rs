//! Reads the header of a safetensors file. It accepts only the JSON that such a header may contain.

use std::collections::BTreeMap;

/// A tensor in the file.
pub(super) struct Stored {
    /// The element type, by the format's name.
    pub dtype: &'static str,
    pub dims: Vec<usize>,
    /// The start of its bytes, counted from the header's end.
    pub begin: usize,
    pub end: usize,
}

/// The most bytes of a header. The format's own library has the same limit.
pub(super) const LONGEST: u64 = 100_000_000;

/// The format's element types, with the bits of an element.
const DTYPES: [(&str, usize); 22] = [
    ("BOOL", 8),
    ("F4", 4),
    ("F6_E2M3", 6),
    ("F6_E3M2", 6),
    ("U8", 8),
    ("I8", 8),
    ("F8_E5M2", 8),
    ("F8_E4M3", 8),
    ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8),
    ("F8_E5M2FNUZ", 8),
    ("I16", 16),
    ("U16", 16),
    ("F16", 16),
    ("BF16", 16),
    ("I32", 32),
    ("U32", 32),
    ("F32", 32),
    ("C64", 64),
    ("F64", 64),
    ("I64", 64),
    ("U64", 64),
];

/// Reads a header that is followed by `bytes` bytes. Returns its tensors by name. The error is a text that says what is
/// wrong, and where.
pub(super) fn read(text: &[u8], bytes: usize) -> Result<BTreeMap<String, Stored>, String> {
    let mut reader = Reader { text, at: 0 };
    let tensors = reader.tensors().map_err(|what| format!("byte {} of the header: {what}", reader.at))?;
    check(&tensors, bytes)?;
    Ok(tensors)
}

/// Checks that the tensors cover the bytes after the header exactly.
fn check(tensors: &BTreeMap<String, Stored>, bytes: usize) -> Result<(), String> {
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_unstable_by_key(|(_, stored)| (stored.begin, stored.end));
    let mut next = 0;
    for (name, stored) in order {
        let Stored { dtype, dims, begin, end } = stored;
        let bits = DTYPES.iter().find(|(known, _)| known == dtype).map_or(0, |(_, bits)| *bits);
        // Saturates, because no file has that many bytes.
        let bits = dims.iter().fold(bits, |product, &dim| product.saturating_mul(dim));
        let size = bits / 8;
        if *begin != next || end.checked_sub(*begin) != Some(size) || bits % 8 != 0 {
            return Err(format!(
                "the tensor '{name}' of {size} bytes has offsets [{begin}, {end}]; {next} is the next"
            ));
        }
        next = *end;
    }
    if next != bytes {
        return Err(format!("the tensors have {next} bytes and the file {bytes} for them"));
    }
    Ok(())
}

/// The result of reading; the error says why the header is refused.
type Found<T> = Result<T, &'static str>;

const FORM: &str = "a tensor has dtype, shape and two data_offsets, each once";

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn tensors(&mut self) -> Found<BTreeMap<String, Stored>> {
        if let Err(error) = std::str::from_utf8(self.text) {
            self.at = error.valid_up_to();
            return Err("this is not UTF-8");
        }
        let mut tensors = BTreeMap::new();
        self.object(|reader, name| {
            if name == "__metadata__" {
                return reader.object(|reader, _| reader.string().map(drop));
            }
            let stored = reader.stored()?;
            if tensors.insert(name, stored).is_some() {
                return Err("the name occurs twice");
            }
            Ok(())
        })?;
        self.space();
        if self.at < self.text.len() { Err("the header continues after its object") } else { Ok(tensors) }
    }

    fn stored(&mut self) -> Found<Stored> {
        let (mut dtype, mut dims, mut offsets) = (None, None, None);
        self.object(|reader, key| {
            let again = match key.as_str() {
                "dtype" => {
                    let name = reader.string()?;
                    let known = DTYPES.iter().find(|(known, _)| *known == name);
                    dtype.replace(known.ok_or("there is no such dtype")?.0).is_some()
                }
                "shape" => dims.replace(reader.numbers()?).is_some(),
                "data_offsets" => offsets.replace(reader.numbers()?).is_some(),
                _ => true,
            };
            if again { Err(FORM) } else { Ok(()) }
        })?;
        match (dtype, dims, offsets.as_deref()) {
            (Some(dtype), Some(dims), Some(&[begin, end])) => Ok(Stored { dtype, dims, begin, end }),
            _ => Err(FORM),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> bool {
        self.space();
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    /// Calls `field` with each key; `field` reads the value.
    fn object(&mut self, mut field: impl FnMut(&mut Reader<'a>, String) -> Found<()>) -> Found<()> {
        if !self.take(b'{') {
            return Err("'{' is missing");
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            if !self.take(b':') {
                return Err("':' is missing");
            }
            field(self, key)?;
            if !self.take(b',') {
                return if self.take(b'}') { Ok(()) } else { Err("'}' is missing") };
            }
        }
    }

    fn numbers(&mut self) -> Found<Vec<usize>> {
        let mut all = Vec::new();
        if !self.take(b'[') {
            return Err("'[' is missing");
        }
        if self.take(b']') {
            return Ok(all);
        }
        loop {
            all.push(self.number()?);
            if !self.take(b',') {
                return if self.take(b']') { Ok(all) } else { Err("']' is missing") };
            }
        }
    }

    fn number(&mut self) -> Found<usize> {
        self.space();
        let digits = self.text[self.at..].iter().take_while(|digit| digit.is_ascii_digit()).count();
        let digits = &self.text[self.at..self.at + digits];
        if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
            return Err("a whole number is missing");
        }
        let value = digits
            .iter()
            .try_fold(0usize, |value, digit| value.checked_mul(10)?.checked_add(usize::from(digit - b'0')))
            .ok_or("the number is too large")?;
        self.at += digits.len();
        Ok(value)
    }

    fn string(&mut self) -> Found<String> {
        if !self.take(b'"') {
            return Err("'\"' is missing");
        }
        let mut bytes = Vec::new();
        loop {
            let letter = self.peek().ok_or("'\"' is missing")?;
            self.at += 1;
            match letter {
                b'"' => break,
                b'\\' => bytes.extend(self.escaped()?.encode_utf8(&mut [0; 4]).bytes()),
                0..0x20 => return Err("a control character in a string"),
                _ => bytes.push(letter),
            }
        }
        // It is UTF-8, because the whole header is.
        String::from_utf8(bytes).map_err(|_| "this is not UTF-8")
    }

    fn escaped(&mut self) -> Found<char> {
        const NAMES: [(u8, char); 8] = [
            (b'"', '"'),
            (b'\\', '\\'),
            (b'/', '/'),
            (b'b', '\u{8}'),
            (b'f', '\u{c}'),
            (b'n', '\n'),
            (b'r', '\r'),
            (b't', '\t'),
        ];
        const HALF: &str = "half of a surrogate pair";
        let letter = self.peek().unwrap_or(0);
        self.at += 1;
        if letter != b'u' {
            let known = NAMES.iter().find(|(name, _)| *name == letter);
            return known.map(|(_, meant)| *meant).ok_or("there is no such escape");
        }
        let code = self.unit()?;
        if !(0xd800..0xdc00).contains(&code) {
            return char::from_u32(code).ok_or(HALF);
        }
        if !self.text[self.at..].starts_with(b"\\u") {
            return Err(HALF);
        }
        self.at += 2;
        match self.unit()? {
            low @ 0xdc00..0xe000 => char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)).ok_or(HALF),
            _ => Err(HALF),
        }
    }

    /// Reads four hexadecimal digits.
    fn unit(&mut self) -> Found<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or("an escape has four hexadecimal digits")?;
        let code = digits.iter().try_fold(0, |code, &digit| Some(code * 16 + char::from(digit).to_digit(16)?));
        self.at += 4;
        code.ok_or("an escape has four hexadecimal digits")
    }
}
