//! Values of metadata.

use super::array::Array;
use super::cursor::{Cursor, Found, Name};
use super::source::Source;
use std::fmt::{self, Display};
use std::sync::Arc;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(Box<str>),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// The type of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[repr(u32)]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    /// All types, by the format's numbers.
    pub const ALL: [ValueType; 13] = [
        ValueType::U8,
        ValueType::I8,
        ValueType::U16,
        ValueType::I16,
        ValueType::U32,
        ValueType::I32,
        ValueType::F32,
        ValueType::Bool,
        ValueType::String,
        ValueType::Array,
        ValueType::U64,
        ValueType::I64,
        ValueType::F64,
    ];

    /// Returns the name: `u32`, `bool`, `string`, `array`.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::U8 => "u8",
            ValueType::I8 => "i8",
            ValueType::U16 => "u16",
            ValueType::I16 => "i16",
            ValueType::U32 => "u32",
            ValueType::I32 => "i32",
            ValueType::F32 => "f32",
            ValueType::Bool => "bool",
            ValueType::String => "string",
            ValueType::Array => "array",
            ValueType::U64 => "u64",
            ValueType::I64 => "i64",
            ValueType::F64 => "f64",
        }
    }

    /// The bytes of a value; of a string or an array, the least.
    pub(super) fn bytes(self) -> usize {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => 1,
            ValueType::U16 | ValueType::I16 => 2,
            ValueType::U32 | ValueType::I32 | ValueType::F32 => 4,
            ValueType::U64 | ValueType::I64 | ValueType::F64 | ValueType::String => 8,
            ValueType::Array => 12,
        }
    }

    pub(super) fn read(cursor: &mut Cursor, what: impl Display) -> Found<ValueType> {
        let at = cursor.at();
        let number = cursor.u32(format_args!("the type of {what}"))?;
        let known = usize::try_from(number).ok().and_then(|number| ValueType::ALL.get(number));
        known.copied().ok_or_else(|| format!("{what} has type {number} at byte {at}; types are 0 to 12"))
    }
}

impl Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Value {
    /// Returns the type.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::String(_) => ValueType::String,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }

    /// Reads a value of a type. Of arrays it checks all that is in them, and leaves it in the file.
    pub(super) fn read(
        cursor: &mut Cursor,
        kind: ValueType,
        source: &Arc<Source>,
        what: fmt::Arguments<'_>,
    ) -> Found<Value> {
        Ok(match kind {
            ValueType::U8 => Value::U8(u8::from_le_bytes(cursor.array(what)?)),
            ValueType::I8 => Value::I8(i8::from_le_bytes(cursor.array(what)?)),
            ValueType::U16 => Value::U16(u16::from_le_bytes(cursor.array(what)?)),
            ValueType::I16 => Value::I16(i16::from_le_bytes(cursor.array(what)?)),
            ValueType::U32 => Value::U32(cursor.u32(what)?),
            ValueType::I32 => Value::I32(i32::from_le_bytes(cursor.array(what)?)),
            ValueType::F32 => Value::F32(f32::from_le_bytes(cursor.array(what)?)),
            ValueType::Bool => Value::Bool(cursor.bool(what)?),
            ValueType::String => Value::String(cursor.string(u64::MAX, what)?.into()),
            ValueType::Array => Value::Array(Array::read(cursor, source, what)?),
            ValueType::U64 => Value::U64(cursor.u64(what)?),
            ValueType::I64 => Value::I64(i64::from_le_bytes(cursor.array(what)?)),
            ValueType::F64 => Value::F64(f64::from_le_bytes(cursor.array(what)?)),
        })
    }
}

/// Writes the value with its type, for errors: `the u32 7`, `an array of 3 strings`. Strings are shortened.
pub(super) struct Described<'a>(pub &'a Value);

impl Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::U8(value) => write!(f, "the u8 {value}"),
            Value::I8(value) => write!(f, "the i8 {value}"),
            Value::U16(value) => write!(f, "the u16 {value}"),
            Value::I16(value) => write!(f, "the i16 {value}"),
            Value::U32(value) => write!(f, "the u32 {value}"),
            Value::I32(value) => write!(f, "the i32 {value}"),
            Value::F32(value) => write!(f, "the f32 {value:?}"),
            Value::Bool(value) => write!(f, "the bool {value}"),
            Value::String(value) => write!(f, "the string {}", Name(value)),
            Value::Array(array) => write!(f, "the array {array:?}"),
            Value::U64(value) => write!(f, "the u64 {value}"),
            Value::I64(value) => write!(f, "the i64 {value}"),
            Value::F64(value) => write!(f, "the f64 {value:?}"),
        }
    }
}
