//! Writes GGUF files: first the header, then the tensors' bytes.

use super::cursor::Name;
use super::kind::Kind;
use super::value::{Described, Value};
use adead::{Error, Result, Status};
use std::collections::HashSet;
use std::io::Write;

/// The header of a file to write: metadata and tensor descriptions.
///
/// ```
/// use adead_models::gguf::{Gguf, Header, Kind};
///
/// let mut header = Header::new();
/// header.set("general.architecture", "llama")?;
/// header.tensor("output_norm.weight", &[2], Kind::F32)?;
/// let mut writer = header.begin(Vec::new())?;
/// writer.write(&1f32.to_le_bytes())?;
/// writer.write(&2f32.to_le_bytes())?;
/// let gguf = Gguf::from_bytes(writer.finish()?)?;
/// assert_eq!(gguf.tensor("output_norm.weight")?.dims(), [2]);
/// # Ok::<(), adead::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Header {
    entries: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
    names: HashSet<String>,
    /// The bytes of all tensors, with the padding between them.
    end: u64,
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    dims: Vec<usize>,
    kind: Kind,
    bytes: u64,
}

const ALIGNMENT: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u32 = 32;
/// The most bytes of a key and of a tensor's name, by the format.
const LONGEST_KEY: usize = 65535;
const LONGEST_NAME: usize = 64;

fn refused<T>(text: String) -> Result<T> {
    Err(Error::new(Status::InvalidArgument, text))
}

impl Header {
    /// Makes an empty header.
    pub fn new() -> Header {
        Header::default()
    }

    /// Sets the value of a key. An existing key keeps its place.
    ///
    /// # Errors `invalid_argument` for a key that is empty or longer than 65535 bytes, and for a `general.alignment` that is not a
    /// u32, a power of two and a multiple of 8, or that is set after a tensor was added.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        if key.is_empty() || key.len() > LONGEST_KEY {
            return refused(format!("the key {} has {} bytes; 1 to {LONGEST_KEY} are allowed", Name(key), key.len()));
        }
        if key == ALIGNMENT {
            let fits = matches!(value, Value::U32(value) if value.is_power_of_two() && value >= 8);
            if !fits {
                let value = Described(&value);
                return refused(format!(
                    "'{ALIGNMENT}' is {value}; it must be a u32, a power of two and a multiple of 8"
                ));
            }
            if !self.tensors.is_empty() {
                return refused(format!("'{ALIGNMENT}' must be set before the first tensor"));
            }
        }
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key.into(), value)),
        }
        Ok(())
    }

    /// Adds a tensor. Its dimensions are outermost first.
    ///
    /// # Errors `invalid_argument` for a name that exists already or is longer than 64 bytes, unless there are 1 to 4 dimensions,
    /// and for rows that are not whole blocks; `unsupported` for [`Kind::Other`].
    pub fn tensor(&mut self, name: &str, dims: &[usize], kind: Kind) -> Result<()> {
        let what = Name(name);
        if name.len() > LONGEST_NAME {
            return refused(format!("the tensor's name {what} has {} bytes; {LONGEST_NAME} are allowed", name.len()));
        }
        if !(1..=4).contains(&dims.len()) {
            return refused(format!("the tensor {what} has {} dimensions; 1 to 4 are allowed", dims.len()));
        }
        let (Some(block), Some(block_bytes), true) = (kind.block(), kind.block_bytes(), Kind::ALL.contains(&kind))
        else {
            let known = Kind::ALL.map(|kind| kind.to_string()).join(", ");
            let text = format!("the tensor {what} can't be stored as {kind}; supported are {known}");
            return Err(Error::new(Status::Unsupported, text));
        };
        let row = dims[dims.len() - 1];
        if !row.is_multiple_of(block) {
            return refused(format!("the tensor {what} has rows of {row} values; {kind} has blocks of {block}"));
        }
        let elements = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim as u64));
        let bytes = elements.and_then(|elements| (elements / block as u64).checked_mul(block_bytes as u64));
        let alignment = u64::from(self.alignment());
        let end =
            bytes.and_then(|bytes| self.end.checked_add(bytes)).and_then(|end| end.checked_next_multiple_of(alignment));
        let Some((bytes, end)) = bytes.zip(end) else {
            return refused(format!("the tensor {what} has dimensions {dims:?} of {kind}: too many bytes"));
        };
        if !self.names.insert(name.into()) {
            return refused(format!("the tensor {what} is there already"));
        }
        self.tensors.push(Tensor { name: name.into(), dims: dims.into(), kind, bytes });
        self.end = end;
        Ok(())
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    fn alignment(&self) -> u32 {
        match self.value(ALIGNMENT) {
            Some(&Value::U32(alignment)) => alignment,
            _ => DEFAULT_ALIGNMENT,
        }
    }

    /// Writes the header. The [`Writer`] then writes the tensors' bytes.
    ///
    /// # Errors
    /// `io` if `out` fails.
    pub fn begin<W: Write>(self, out: W) -> Result<Writer<W>> {
        let alignment = u64::from(self.alignment());
        let mut head = b"GGUF\x03\0\0\0".to_vec();
        head.extend((self.tensors.len() as u64).to_le_bytes());
        head.extend((self.entries.len() as u64).to_le_bytes());
        let string = |to: &mut Vec<u8>, text: &str| {
            to.extend((text.len() as u64).to_le_bytes());
            to.extend(text.as_bytes());
        };
        for (key, value) in &self.entries {
            string(&mut head, key);
            head.extend((value.value_type() as u32).to_le_bytes());
            value.write(&mut head);
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            string(&mut head, &tensor.name);
            head.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().rev().for_each(|&dim| head.extend((dim as u64).to_le_bytes()));
            head.extend(tensor.kind.number().to_le_bytes());
            head.extend(offset.to_le_bytes());
            offset = (offset + tensor.bytes).next_multiple_of(alignment);
        }
        head.resize(head.len().next_multiple_of(alignment as usize), 0);
        let mut writer = Writer { out, tensors: self.tensors, alignment, at: 0, written: 0, size: 0 };
        writer.put(&head)?;
        writer.pass_empty();
        Ok(writer)
    }
}

/// Writes the bytes of a file's tensors after its [`Header`].
pub struct Writer<W> {
    out: W,
    tensors: Vec<Tensor>,
    alignment: u64,
    /// The tensor whose bytes come next, and how many of them are written.
    at: usize,
    written: u64,
    size: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the next bytes: those of the tensors in the header's order. A tensor's bytes may come in several calls; a call must not
    /// go beyond a tensor's end.
    ///
    /// # Errors
    /// `invalid_argument` for more bytes than the tensor has, `io` if the file can't be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(tensor) = self.tensors.get(self.at) else {
            return refused(format!("{} bytes come after those of all {} tensors", bytes.len(), self.tensors.len()));
        };
        let left = tensor.bytes - self.written;
        if bytes.len() as u64 > left {
            let (name, all) = (Name(&tensor.name), tensor.bytes);
            return refused(format!(
                "{} bytes come for the tensor {name}, which has {all} and lacks {left}",
                bytes.len()
            ));
        }
        self.put(bytes)?;
        self.written += bytes.len() as u64;
        if bytes.len() as u64 == left {
            let padding = self.written.next_multiple_of(self.alignment) - self.written;
            self.put(&vec![0; padding as usize])?;
            (self.at, self.written) = (self.at + 1, 0);
            self.pass_empty();
        }
        Ok(())
    }

    /// Ends the file. Returns the `out` that it was written to.
    ///
    /// # Errors
    /// `invalid_argument` if bytes of a tensor are missing, `io` if the file can't be written.
    pub fn finish(mut self) -> Result<W> {
        if let Some(tensor) = self.tensors.get(self.at) {
            let (name, lacks) = (Name(&tensor.name), tensor.bytes - self.written);
            return refused(format!("the tensor {name} lacks {lacks} of its {} bytes", tensor.bytes));
        }
        self.out.flush().map_err(unwritable)?;
        Ok(self.out)
    }

    /// Returns the number of bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(unwritable)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Tensors without values have no bytes to wait for.
    fn pass_empty(&mut self) {
        while self.tensors.get(self.at).is_some_and(|tensor| tensor.bytes == 0) {
            self.at += 1;
        }
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::new(Status::Io, error.to_string())
}
