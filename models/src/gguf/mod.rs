//! Reads and writes GGUF files: the metadata and tensors of language models, as ggml and llama.cpp store them.
//!
//! [`Gguf::open`] reads a file of version 2 or 3, little endian, and [`Gguf::map`] maps it. Both check everything except the
//! tensors' values before they return: counts, types, lengths, UTF-8, keys and names that occur twice, dimensions, blocks,
//! alignment, tensors that overlap or are cut off. An error names the numbers and the offset in the file. Checking allocates less
//! than 4 times the file's size, whatever counts the file claims: arrays stay in the file until they are decoded.
//!
//! ```
//! use adead_models::gguf::{Gguf, Value};
//!
//! // Version 3, no tensors, one key: `layers`, of type 4 (u32), is 30.
//! let mut file = b"GGUF\x03\0\0\0".to_vec();
//! for number in [0, 1, 6] {
//!     file.extend(u64::to_le_bytes(number));
//! }
//! file.extend(b"layers\x04\0\0\0\x1e\0\0\0");
//!
//! let gguf = Gguf::from_bytes(file)?;
//! assert_eq!(gguf.value("layers"), Some(&Value::U32(30)));
//! assert_eq!(gguf.require::<usize>("layers")?, 30);
//! let error = gguf.require::<&str>("layers").unwrap_err();
//! assert_eq!(error.message(), "the value of 'layers' is the u32 30; it must be a string");
//! # Ok::<(), adead::Error>(())
//! ```
//!
//! [`Header`] and [`Writer`] write a file tensor by tensor. [`quantize`] encodes values as blocks.

mod array;
mod convert;
mod cursor;
mod kind;
mod layout;
mod make;
mod quantize;
mod read;
mod source;
mod tensor;
mod value;
mod write;

pub use array::Array;
pub use convert::FromValue;
pub use kind::Kind;
pub(crate) use quantize::{Rows, blocks};
pub use quantize::{quantize, quantize_tensor};
pub use source::Reading;
pub use tensor::TensorInfo;
pub use value::{Value, ValueType};
pub use write::{Header, Writer};

use adead::{Error, Result, Status};
use cursor::Name;
use source::Source;
use std::path::Path;
use std::sync::Arc;

/// A GGUF file: metadata by key and tensors by name.
pub struct Gguf {
    source: Arc<Source>,
    contents: read::Contents,
}

/// A key of the metadata and its value.
struct Entry {
    key: Box<str>,
    value: Value,
}

/// The value of a key.
fn find<'a>(entries: &'a [Entry], keys: &[usize], key: &str) -> Option<&'a Value> {
    let found = keys.binary_search_by(|&index| entries[index].key.as_ref().cmp(key)).ok()?;
    Some(&entries[keys[found]].value)
}

impl Gguf {
    /// Opens a file and reads all of it.
    ///
    /// # Errors
    /// `io` if the file can't be read, `invalid_argument` if it is not a GGUF file of version 2 or 3, little endian.
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf> {
        Gguf::read(Source::read(path.as_ref())?)
    }

    /// Opens a file as [`open`](Gguf::open) does, and maps it. Only the metadata are read; the bytes of tensors are read on use.
    /// Processes share the memory.
    ///
    /// # Errors
    /// Those of [`open`](Gguf::open).
    ///
    /// # Safety
    /// The file must not change while the `Gguf`, or anything made from it, lives. If it gets shorter, reading it ends the
    /// process with SIGBUS.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Gguf> {
        // SAFETY: passed on.
        Gguf::read(unsafe { Source::map(path.as_ref()) }?)
    }

    /// Reads a file that is in memory, with the checks of [`open`](Gguf::open).
    ///
    /// # Errors
    /// `invalid_argument` if the bytes are not a GGUF file of version 2 or 3, little endian.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf> {
        Gguf::read(Source::Memory(bytes))
    }

    fn read(source: Source) -> Result<Gguf> {
        let source = Arc::new(source);
        match read::read(&source) {
            Ok(contents) => Ok(Gguf { source, contents }),
            Err(what) => Err(source.error(Status::InvalidArgument, format!("not a valid GGUF file: {what}"))),
        }
    }

    /// The file's path, or what stands for it.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    /// An error about the file, which it names if it has a path.
    pub(crate) fn error(&self, status: Status, text: String) -> Error {
        self.source.error(status, text)
    }

    /// Returns the format's version: 2 or 3.
    pub fn version(&self) -> u32 {
        self.contents.version
    }

    /// Returns the alignment of tensors in bytes: `general.alignment`, or 32.
    pub fn alignment(&self) -> u64 {
        self.contents.alignment
    }

    /// Returns all keys and values, in the file's order.
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.contents.entries.iter().map(|entry| (&*entry.key, &entry.value))
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        find(&self.contents.entries, &self.contents.keys, key)
    }

    /// Returns the value of a key as a type of Rust: `gguf.require::<u32>("llama.block_count")`. [`FromValue`] lists the
    /// types.
    ///
    /// # Errors
    /// `invalid_argument` if the file doesn't have the key, `dtype_mismatch` if the value is of another type or doesn't fit.
    pub fn require<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T> {
        self.optional(key)?.ok_or_else(|| {
            let count = self.contents.entries.len();
            let text = format!("the key {} is not among the file's {count} keys; it must be {}", Name(key), T::WANTED);
            self.source.error(Status::InvalidArgument, text)
        })
    }

    /// Returns the value of a key, as [`require`](Gguf::require) does, or `None` if the file doesn't have the key.
    ///
    /// # Errors
    /// `dtype_mismatch` if the value is of another type or doesn't fit.
    pub fn optional<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        T::from_value(value).map(Some).map_err(|what| {
            let text = format!("the value of {} is {what}; it must be {}", Name(key), T::WANTED);
            self.source.error(Status::DtypeMismatch, text)
        })
    }

    /// Returns all tensors of any kind, in the file's order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.contents.tensors
    }

    /// Returns a tensor by name.
    ///
    /// # Errors
    /// `invalid_argument` if the file doesn't have the tensor, `unsupported` if its kind is [`Kind::Other`].
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        let (tensors, names) = (&self.contents.tensors, &self.contents.names);
        let Ok(found) = names.binary_search_by(|&index| tensors[index].name.as_ref().cmp(name)) else {
            let text = format!("the tensor {} is not among the file's {} tensors", Name(name), tensors.len());
            return Err(self.source.error(Status::InvalidArgument, text));
        };
        let tensor = &tensors[names[found]];
        if let Kind::Other(number) = tensor.kind {
            let known = Kind::ALL.map(|kind| kind.to_string()).join(", ");
            let text =
                format!("the tensor {} is stored as {} ({number}); supported are {known}", Name(name), tensor.kind);
            return Err(self.source.error(Status::Unsupported, text));
        }
        Ok(tensor)
    }

    /// Returns a tensor's bytes: rows of blocks, not copied. They begin at a multiple of the file's alignment, and so does their
    /// address if the file is [mapped](Gguf::map) and the alignment is at most a page. Empty if `info` is from another file and its
    /// range is not in this file.
    pub fn bytes(&self, info: &TensorInfo) -> &[u8] {
        self.source.bytes().get(info.range()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (keys, tensors) = (self.contents.entries.len(), self.contents.tensors.len());
        write!(f, "Gguf(version {}, {keys} keys, {tensors} tensors)", self.version())
    }
}
