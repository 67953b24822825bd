//! Writes GGUF files, and malformed ones.

use adead_models::gguf::{Kind, ValueType};

/// A value: its type by the format's number, and its bytes.
#[derive(Clone)]
pub struct Item {
    pub kind: u32,
    pub bytes: Vec<u8>,
}

macro_rules! items {
    ($($type:ty: $kind:ident, |$value:ident| $bytes:expr;)*) => {$(
        impl From<$type> for Item {
            fn from($value: $type) -> Item {
                Item { kind: ValueType::$kind as u32, bytes: $bytes }
            }
        }
        impl From<Vec<$type>> for Item {
            fn from(values: Vec<$type>) -> Item {
                Item::array(ValueType::$kind as u32, values.into_iter().map(Item::from).collect())
            }
        }
    )*};
}

items! {
    u8: U8, |value| value.to_le_bytes().into();
    i8: I8, |value| value.to_le_bytes().into();
    u16: U16, |value| value.to_le_bytes().into();
    i16: I16, |value| value.to_le_bytes().into();
    u32: U32, |value| value.to_le_bytes().into();
    i32: I32, |value| value.to_le_bytes().into();
    f32: F32, |value| value.to_le_bytes().into();
    u64: U64, |value| value.to_le_bytes().into();
    i64: I64, |value| value.to_le_bytes().into();
    f64: F64, |value| value.to_le_bytes().into();
    bool: Bool, |value| vec![value.into()];
    &str: String, |value| string(value.as_bytes());
    String: String, |value| string(value.as_bytes());
}

impl Item {
    /// An array of items of one type, which may be arrays.
    pub fn array(kind: u32, items: Vec<Item>) -> Item {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((items.len() as u64).to_le_bytes());
        items.iter().for_each(|item| bytes.extend(&item.bytes));
        Item { kind: ValueType::Array as u32, bytes }
    }
}

/// A string with its length.
pub fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

/// A tensor as the file has it.
#[derive(Clone)]
pub struct Stored {
    pub name: Vec<u8>,
    /// Innermost first.
    pub sizes: Vec<u64>,
    pub kind: u32,
    /// Where its bytes are; `None`: behind those of the tensor before.
    pub offset: Option<u64>,
    pub bytes: Vec<u8>,
}

/// Writes a file: `Builder::new().value("general.architecture", "llama").tensor("a", &[2, 32], Kind::Q8_0, &bytes).finish()`.
/// Its fields may be changed, to write a malformed one.
#[derive(Clone)]
pub struct Builder {
    pub version: u32,
    pub alignment: u64,
    pub entries: Vec<(Vec<u8>, Item)>,
    pub tensors: Vec<Stored>,
    /// What the header counts instead of what there is.
    pub counted_entries: Option<u64>,
    pub counted_tensors: Option<u64>,
}

impl Builder {
    pub fn new() -> Builder {
        Builder {
            version: 3,
            alignment: 32,
            entries: vec![],
            tensors: vec![],
            counted_entries: None,
            counted_tensors: None,
        }
    }

    pub fn version(mut self, version: u32) -> Builder {
        self.version = version;
        self
    }

    /// Aligns the tensors, and says so.
    pub fn alignment(mut self, alignment: u32) -> Builder {
        self.alignment = alignment.into();
        self.value("general.alignment", alignment)
    }

    pub fn value(mut self, key: &str, value: impl Into<Item>) -> Builder {
        self.entries.push((key.into(), value.into()));
        self
    }

    /// Adds a tensor. Its dimensions are outermost first, as `adead`'s are.
    pub fn tensor(self, name: &str, dims: &[usize], kind: Kind, bytes: &[u8]) -> Builder {
        let sizes = dims.iter().rev().map(|&dim| dim as u64).collect();
        self.stored(Stored { name: name.into(), sizes, kind: kind.number(), offset: None, bytes: bytes.into() })
    }

    pub fn stored(mut self, tensor: Stored) -> Builder {
        self.tensors.push(tensor);
        self
    }

    pub fn finish(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend(self.counted_tensors.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        file.extend(self.counted_entries.unwrap_or(self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            file.extend(string(key));
            file.extend(value.kind.to_le_bytes());
            file.extend(&value.bytes);
        }
        let aligned = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(self.alignment as usize), 0);
        let mut values = Vec::new();
        for tensor in &self.tensors {
            aligned(&mut values);
            file.extend(string(&tensor.name));
            file.extend((tensor.sizes.len() as u32).to_le_bytes());
            tensor.sizes.iter().for_each(|size| file.extend(size.to_le_bytes()));
            file.extend(tensor.kind.to_le_bytes());
            file.extend(tensor.offset.unwrap_or(values.len() as u64).to_le_bytes());
            values.extend(&tensor.bytes);
        }
        if !values.is_empty() {
            aligned(&mut file);
        }
        file.extend(values);
        file
    }
}
