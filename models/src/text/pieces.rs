//! Tokens as bytes, and bytes as text that arrives piece by piece.

use super::vocabulary::{Kind, Method, Vocabulary};

/// SentencePiece's character for a space.
pub(crate) const SPACE: char = '▁';

/// The bytes of every token.
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// Where each token's bytes end.
    ends: Vec<u32>,
}

impl Pieces {
    /// Finds the bytes of a vocabulary's tokens. Control tokens have none.
    pub fn new(vocabulary: &Vocabulary) -> Pieces {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(vocabulary.tokens.len()));
        let of_char = bytes_of_chars();
        for (token, kind) in vocabulary.tokens.iter().zip(&vocabulary.kinds) {
            match (kind, &vocabulary.method) {
                (Kind::Control | Kind::Unknown, _) => {}
                (Kind::UserDefined, _) => bytes.extend_from_slice(token.as_bytes()),
                (Kind::Byte, _) => match byte(token) {
                    Some(byte) => bytes.push(byte),
                    None => bytes.extend_from_slice(token.as_bytes()),
                },
                (_, Method::BytePairs { .. }) => {
                    for c in token.chars() {
                        match of_char.get(c as usize).copied().flatten() {
                            Some(byte) => bytes.push(byte),
                            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                        }
                    }
                }
                (_, Method::Scores { .. }) => {
                    bytes.extend_from_slice(token.replace(SPACE, " ").as_bytes());
                }
            }
            ends.push(bytes.len() as u32);
        }
        Pieces { bytes, ends }
    }

    /// Returns a token's bytes; none for an id outside the vocabulary.
    pub fn of(&self, id: u32) -> &[u8] {
        let Some(&end) = self.ends.get(id as usize) else { return &[] };
        let start = (id as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..end as usize]
    }
}

/// Returns the byte that `<0x0A>` names.
fn byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}

/// Returns, for the characters that byte-level vocabularies write bytes with, their bytes. Printable ones of Latin-1 stand for
/// themselves, the others for the next characters from U+0100 on.
fn bytes_of_chars() -> Vec<Option<u8>> {
    let is_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut table = vec![None; 256 + 256];
    let mut next = 256;
    for byte in 0..=255u8 {
        if is_itself(byte) {
            table[usize::from(byte)] = Some(byte);
        } else {
            table[next] = Some(byte);
            next += 1;
        }
    }
    table
}

/// Text from bytes that arrive in pieces: a character whose bytes are not all there waits.
#[derive(Default)]
pub(crate) struct Utf8 {
    waiting: Vec<u8>,
}

impl Utf8 {
    /// Takes bytes and returns the text that is complete. Bytes that can't become UTF-8 are U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let (mut text, mut done) = (String::new(), 0);
        for chunk in self.waiting.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = done + invalid.len() == self.waiting.len();
            if invalid.is_empty() || is_last && is_begun(invalid) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.waiting.drain(..done);
        text
    }

    /// Returns the rest, in which no character is complete.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.waiting)).into_owned()
    }
}

/// Whether bytes are the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(method: Method, tokens: &[(&str, Kind)]) -> Vocabulary {
        Vocabulary {
            method,
            tokens: tokens.iter().map(|token| token.0.to_owned()).collect(),
            kinds: tokens.iter().map(|token| token.1).collect(),
            bos: None,
            eos: None,
            add_bos: false,
            add_eos: false,
            ends: Vec::new(),
        }
    }

    #[test]
    fn tokens_have_their_bytes() {
        let tokens = [("Ġa", Kind::Normal), ("<|end|>", Kind::Control), ("Ċ", Kind::Normal), ("ÃŁ", Kind::Normal)];
        let pieces = Pieces::new(&vocabulary(Method::BytePairs { pre: String::new(), merges: vec![] }, &tokens));
        let found: Vec<&[u8]> = (0..5).map(|id| pieces.of(id)).collect();
        assert_eq!(found, [&b" a"[..], b"", b"\n", "ß".as_bytes(), b""]);
        let tokens =
            [("▁a▁", Kind::Normal), ("<0xE2>", Kind::Byte), ("▁", Kind::UserDefined), ("<unk>", Kind::Unknown)];
        let scores = Method::Scores { scores: vec![0.0; 4], space_prefix: true };
        let pieces = Pieces::new(&vocabulary(scores, &tokens));
        let found: Vec<&[u8]> = (0..4).map(|id| pieces.of(id)).collect();
        assert_eq!(found, [&b" a "[..], b"\xe2", "▁".as_bytes(), b""]);
    }

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = bytes_of_chars().into_iter().flatten().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        let at = |c: char| bytes_of_chars()[c as usize];
        assert_eq!((at('Ġ'), at('Ċ'), at('ł'), at('Ń')), (Some(b' '), Some(b'\n'), Some(0xa0), Some(0xad)));
    }

    #[test]
    fn text_arrives_whole() {
        let all = "a ß 🦀\n".as_bytes();
        for size in 1..=all.len() {
            let mut stream = Utf8::default();
            let text: String = all.chunks(size).map(|bytes| stream.push(bytes)).collect();
            assert_eq!((text + &stream.finish()).as_bytes(), all, "{size} bytes at a time");
        }
        let mut stream = Utf8::default();
        assert_eq!(stream.push(b"a\xf0\x9f"), "a");
        assert_eq!(stream.push(b"b\xff\xc3"), "\u{fffd}b\u{fffd}");
        assert_eq!((stream.finish().as_str(), stream.finish().as_str()), ("\u{fffd}", ""));
    }
}
