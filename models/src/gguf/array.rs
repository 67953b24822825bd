//! Arrays of metadata: they stay in the file.

use super::cursor::{Cursor, Found};
use super::source::Source;
use super::value::{Value, ValueType};
use std::fmt;
use std::sync::Arc;

/// The most arrays around a value.
const DEEPEST: usize = 4;

/// An array of the metadata. It is a range of the file, or made by the caller (`Value::from(&[1u32, 2][..])`). Elements are decoded
/// on request.
#[derive(Clone)]
pub struct Array(Box<Stored>);

#[derive(Clone)]
struct Stored {
    source: Arc<Source>,
    kind: ValueType,
    len: usize,
    /// The offset of the elements in the file.
    start: usize,
    bytes: usize,
}

impl Array {
    /// Checks an array with all that is in it.
    pub(super) fn read(cursor: &mut Cursor, source: &Arc<Source>, what: fmt::Arguments<'_>) -> Found<Array> {
        let (kind, len, start) = check(cursor, 1, what)?;
        Ok(Array(Box::new(Stored { source: source.clone(), kind, len, start, bytes: cursor.at() - start })))
    }

    /// An array whose elements' bytes are made, not read.
    pub(super) fn made(kind: ValueType, len: usize, bytes: Vec<u8>) -> Array {
        let (start, size) = (0, bytes.len());
        Array(Box::new(Stored { source: Arc::new(Source::Memory(bytes)), kind, len, start, bytes: size }))
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the elements' type.
    pub fn element_type(&self) -> ValueType {
        self.0.kind
    }

    /// Returns the elements as they are in the file. Numbers are little endian. A string is its length in 8 bytes, then
    /// UTF-8. An array is its elements' type in 4 bytes, their count in 8, then the elements.
    pub fn bytes(&self) -> &[u8] {
        self.0.source.bytes().get(self.0.start..self.0.start + self.0.bytes).unwrap_or_default()
    }

    /// Decodes the elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        let (kind, source) = (self.0.kind, &self.0.source);
        let mut cursor = self.cursor();
        // Every element was checked when the file was opened: the iterator ends early only if the file has changed.
        (0..self.0.len).map_while(move |_| Value::read(&mut cursor, kind, source, format_args!("an element")).ok())
    }

    /// Returns the strings in order. They are not copied. `None` if the elements are not strings.
    pub fn strings(&self) -> Option<impl Iterator<Item = &str> + '_> {
        let mut cursor = self.cursor();
        let strings = (0..self.0.len).map_while(move |_| cursor.string(u64::MAX, "an element").ok());
        (self.0.kind == ValueType::String).then_some(strings)
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self.0.source.bytes(), self.0.start)
    }
}

/// Goes behind an array that is `depth` deep. Returns its elements' type, their count and their offset.
fn check(cursor: &mut Cursor, depth: usize, what: fmt::Arguments<'_>) -> Found<(ValueType, usize, usize)> {
    let at = cursor.at();
    if depth > DEEPEST {
        return Err(format!("{what} at byte {at} is array {depth} of nested arrays; at most {DEEPEST} are allowed"));
    }
    let kind = ValueType::read(cursor, format_args!("the elements of {what}"))?;
    let count = cursor.u64(format_args!("the count of {what}"))?;
    let (start, left, least) = (cursor.at(), cursor.left(), kind.bytes());
    // What is counted is in the file: the elements are at most as many as its bytes.
    let len = usize::try_from(count).ok().filter(|&len| len <= left / least);
    let Some(len) = len else {
        return Err(format!(
            "{what} at byte {at} counts {count} elements of type {kind}, each of at least {least} bytes; the file \
             has {left} bytes left"
        ));
    };
    for element in 0..len {
        let what = format_args!("element {element} of {what}");
        match kind {
            ValueType::Bool => drop(cursor.bool(what)?),
            ValueType::String => drop(cursor.string(u64::MAX, what)?),
            ValueType::Array => drop(check(cursor, depth + 1, what)?),
            _ => {
                cursor.take((len * least) as u64, what)?;
                break;
            }
        }
    }
    Ok((kind, len, start))
}

/// Arrays are equal if their types, counts and bytes are.
impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.0.kind == other.0.kind && self.0.len == other.0.len && self.bytes() == other.bytes()
    }
}

/// Writes `[u32; 7]`.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}]", self.0.kind, self.0.len)
    }
}
