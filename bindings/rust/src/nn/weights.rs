//! Weights: the tensors of a safetensors file by name.

use super::header::{self, LONGEST, Stored};
use adead_core::{DType, Error, Meta, Result, Shape, Status, Tensor, contract};
use memmap2::Mmap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// An open safetensors file. Clones share it.
#[derive(Clone)]
pub struct Weights(Arc<Contents>);

struct Contents {
    path: PathBuf,
    source: Source,
    /// The offset of the tensors' bytes.
    start: usize,
    tensors: BTreeMap<String, Stored>,
}

/// The source of a file's bytes.
enum Source {
    File(Mutex<File>),
    Mapped(Mmap),
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(Status::Io, format!("{}: {error}", path.display()))
}

impl Weights {
    /// Opens a safetensors file. Opening reads the header; each tensor is read on request. `io` if it can't be read,
    /// `invalid_argument` if it is not a safetensors file.
    pub fn open(path: impl AsRef<Path>) -> Result<Weights> {
        Weights::opened(path.as_ref(), |file| Ok(Source::File(Mutex::new(file))))
    }

    /// Opens a file as [`Weights::open`] does, and maps it. Tensors share its memory, and so do processes.
    ///
    /// # Safety
    /// The file must not change while the weights, or a tensor from them, live. If the file gets shorter, reading a
    /// value ends the process with SIGBUS.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Weights> {
        Weights::opened(path.as_ref(), |file| {
            // SAFETY: the caller keeps the file unchanged.
            Ok(Source::Mapped(unsafe { Mmap::map(&file) }?))
        })
    }

    fn opened(path: &Path, source: impl FnOnce(File) -> io::Result<Source>) -> Result<Weights> {
        let failed = |error: io::Error| unreadable(path, &error);
        let refused = |what: String| {
            Error::new(Status::InvalidArgument, format!("{}: not a safetensors file: {what}", path.display()))
        };
        let mut file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        // A folder's size means nothing; the read below reports it.
        let size = if found.is_dir() { u64::MAX } else { found.len() };
        if size < 8 {
            return Err(refused(format!("{size} bytes")));
        }
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST.min(size - 8) {
            return Err(refused(format!("a header of {length} bytes in a file of {size}")));
        }
        let mut text = vec![0; length as usize];
        file.read_exact(&mut text).map_err(failed)?;
        let bytes = usize::try_from(size - 8 - length).map_err(|_| refused(format!("{size} bytes")))?;
        let tensors = header::read(&text, bytes).map_err(refused)?;
        let source = source(file).map_err(failed)?;
        Ok(Weights(Arc::new(Contents { path: path.into(), source, start: 8 + text.len(), tensors })))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns every tensor's name, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.tensors.keys().cloned().collect()
    }

    /// Returns whether the file has a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.tensors.contains_key(name)
    }

    /// Returns a tensor's dimensions. `invalid_argument` if there is no tensor of that name.
    pub fn dims(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.info(name)?.dims)
    }

    /// Reads a tensor as f32; f16 and bf16 are widened, f64 is rounded. The f32 of a mapped file are not copied if they are aligned.
    /// `invalid_argument` if there is no tensor of that name, `shape_mismatch` if its dimensions differ,
    /// `dtype_mismatch` for other elements, `io` if it can't be read.
    pub fn tensor(&self, name: &str, dims: &[usize]) -> Result<Tensor> {
        let info = self.info(name)?;
        if info.dims != dims {
            let text = format!("is {:?}; it must be {dims:?}", info.dims);
            return Err(self.refused(Status::ShapeMismatch, name, &text));
        }
        let halves = |widen: fn(u16) -> f32| {
            let bytes = self.bytes(name, info)?;
            let values = bytes.chunks_exact(2).map(|half| widen(u16::from_le_bytes([half[0], half[1]])));
            Tensor::new(&values.collect::<Vec<f32>>(), dims)
        };
        match info.dtype {
            "F32" => self.floats(self.bytes(name, info)?, dims),
            "F16" => halves(contract::f16_to_f32),
            "BF16" => halves(contract::bf16_to_f32),
            "F64" => {
                let bytes = self.bytes(name, info)?;
                let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap_or_default());
                Tensor::new(&bytes.chunks_exact(8).map(|it| number(it) as f32).collect::<Vec<f32>>(), dims)
            }
            other => {
                let text = format!("has elements of {other}; F32, F16, BF16 and F64 are taken");
                Err(self.refused(Status::DtypeMismatch, name, &text))
            }
        }
    }

    /// Returns a tensor's bytes.
    fn bytes(&self, name: &str, info: &Stored) -> Result<Cow<'_, [u8]>> {
        let (begin, end) = (self.0.start + info.begin, self.0.start + info.end);
        let cut = || {
            let text = format!("ends at byte {end} of the file, which has become shorter since it was opened");
            self.refused(Status::Io, name, &text)
        };
        let file = match &self.0.source {
            Source::Mapped(map) => return map.get(begin..end).map(Cow::Borrowed).ok_or_else(cut),
            Source::File(file) => file,
        };
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(end - begin).is_err() {
            let text = format!("has {} bytes, and there is no memory for them", end - begin);
            return Err(self.refused(Status::OutOfMemory, name, &text));
        }
        bytes.resize(end - begin, 0);
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        match file.seek(SeekFrom::Start(begin as u64)).and_then(|_| file.read_exact(&mut bytes)) {
            Ok(()) => Ok(Cow::Owned(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(cut()),
            Err(error) => Err(unreadable(&self.0.path, &error)),
        }
    }

    fn info(&self, name: &str) -> Result<&Stored> {
        self.0.tensors.get(name).ok_or_else(|| {
            let count = self.0.tensors.len();
            self.refused(Status::InvalidArgument, name, &format!("is not among the file's {count} tensors"))
        })
    }

    fn refused(&self, status: Status, name: &str, text: &str) -> Error {
        Error::new(status, format!("{}: the tensor '{name}' {text}", self.0.path.display()))
    }

    /// Converts bytes of the file, which are little endian, to f32.
    fn floats(&self, bytes: Cow<'_, [u8]>, dims: &[usize]) -> Result<Tensor> {
        if cfg!(target_endian = "big") {
            let values =
                bytes.chunks_exact(4).map(|float| f32::from_le_bytes([float[0], float[1], float[2], float[3]]));
            return Tensor::new(&values.collect::<Vec<f32>>(), dims);
        }
        match bytes {
            Cow::Borrowed(bytes) if bytes.as_ptr().addr().is_multiple_of(align_of::<f32>()) => {
                let meta = Meta::new(DType::F32, Shape::new(dims)?);
                // SAFETY: the bytes are in the mapped file, which the tensor keeps. The header's reader checked that
                // they are as many as the shape needs. Nothing writes them, as the caller of `map` vouched.
                unsafe { Tensor::foreign(NonNull::from(bytes).cast(), &meta, Box::new(self.clone())) }
            }
            bytes => Tensor::from_bytes(&bytes, DType::F32, dims),
        }
    }
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weights({}, {} tensors)", self.0.path.display(), self.0.tensors.len())
    }
}
