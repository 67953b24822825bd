//! Makes values of metadata, for files to write.

use super::array::Array;
use super::value::{Value, ValueType};

macro_rules! values {
    ($($type:ty: $kind:ident;)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$kind(value)
            }
        }
        impl From<&[$type]> for Value {
            fn from(values: &[$type]) -> Value {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                Value::Array(Array::made(ValueType::$kind, values.len(), bytes))
            }
        }
    )*};
}

values! {
    u8: U8;
    i8: I8;
    u16: U16;
    i16: I16;
    u32: U32;
    i32: I32;
    f32: F32;
    u64: U64;
    i64: I64;
    f64: F64;
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<&[&str]> for Value {
    fn from(texts: &[&str]) -> Value {
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        Value::Array(Array::made(ValueType::String, texts.len(), bytes))
    }
}

impl Value {
    /// Appends the value as a file has it.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Value::U8(value) => to.extend(value.to_le_bytes()),
            Value::I8(value) => to.extend(value.to_le_bytes()),
            Value::U16(value) => to.extend(value.to_le_bytes()),
            Value::I16(value) => to.extend(value.to_le_bytes()),
            Value::U32(value) => to.extend(value.to_le_bytes()),
            Value::I32(value) => to.extend(value.to_le_bytes()),
            Value::F32(value) => to.extend(value.to_le_bytes()),
            Value::Bool(value) => to.push((*value).into()),
            Value::String(text) => {
                to.extend((text.len() as u64).to_le_bytes());
                to.extend(text.as_bytes());
            }
            Value::Array(array) => {
                to.extend((array.element_type() as u32).to_le_bytes());
                to.extend((array.len() as u64).to_le_bytes());
                to.extend(array.bytes());
            }
            Value::U64(value) => to.extend(value.to_le_bytes()),
            Value::I64(value) => to.extend(value.to_le_bytes()),
            Value::F64(value) => to.extend(value.to_le_bytes()),
        }
    }
}
