//! Weights: the tensors of a safetensors file by name.

use adead_core::{DType, Error, Meta, Result, Shape, Status, Tensor, contract};
use memmap2::Mmap;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// A safetensors file in memory. Clones share it.
#[derive(Clone)]
pub struct Weights(Arc<Contents>);

struct Contents {
    path: PathBuf,
    bytes: Bytes,
    /// Where the tensors' bytes begin.
    start: usize,
    metadata: Metadata,
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(Status::Io, format!("{}: {error}", path.display()))
}

/// Where a file's bytes are.
enum Bytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

impl Weights {
    /// Reads a file. `io` if it can't be read, `invalid_argument` if it is no safetensors file.
    pub fn open(path: impl AsRef<Path>) -> Result<Weights> {
        let path = path.as_ref();
        Weights::of(path, Bytes::Read(std::fs::read(path).map_err(|error| unreadable(path, &error))?))
    }

    /// As [`Weights::open`], with the file mapped: what is not used is not read, and processes share what is.
    ///
    /// # Safety
    /// The file stays as it is while the weights, or a tensor from them, are there. Where it gets shorter, reading a value ends the
    /// process with SIGBUS.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Weights> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        // SAFETY: the caller keeps the file as it is.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| unreadable(path, &error))?;
        Weights::of(path, Bytes::Mapped(map))
    }

    fn of(path: &Path, bytes: Bytes) -> Result<Weights> {
        let (header, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| {
            let text = format!("{}: no safetensors file: {error}", path.display());
            Error::new(Status::InvalidArgument, text)
        })?;
        // The header's length takes 8 bytes.
        Ok(Weights(Arc::new(Contents { path: path.into(), bytes, start: header + 8, metadata })))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Every tensor's name, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.0.metadata.offset_keys();
        names.sort_unstable();
        names
    }

    /// Whether there is a tensor of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.metadata.info(name).is_some()
    }

    /// A tensor's dimensions. `invalid_argument` if there is none of that name.
    pub fn dims(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.info(name)?.shape)
    }

    /// A tensor as f32, f16 and bf16 widened. Without a copy where the file has f32 at an address that suits it.
    /// `invalid_argument` if there is none of that name, `shape_mismatch` if its dimensions are others, `dtype_mismatch` if
    /// it has other elements.
    pub fn tensor(&self, name: &str, dims: &[usize]) -> Result<Tensor> {
        let info = self.info(name)?;
        if info.shape != dims {
            let text = format!("is {:?}; it must be {dims:?}", info.shape);
            return Err(self.refused(Status::ShapeMismatch, name, &text));
        }
        let (begin, end) = info.data_offsets;
        let bytes = &self.0.bytes[self.0.start + begin..self.0.start + end];
        let halves = |widen: fn(u16) -> f32| {
            let values = bytes.chunks_exact(2).map(|half| widen(u16::from_le_bytes([half[0], half[1]])));
            Tensor::new(&values.collect::<Vec<f32>>(), dims)
        };
        match info.dtype {
            Dtype::F32 => self.floats(bytes, dims),
            Dtype::F16 => halves(contract::f16_to_f32),
            Dtype::BF16 => halves(contract::bf16_to_f32),
            other => {
                let text = format!("has elements of {other:?}; F32, F16 and BF16 are taken");
                Err(self.refused(Status::DtypeMismatch, name, &text))
            }
        }
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.0.metadata.info(name).ok_or_else(|| {
            let count = self.0.metadata.offset_keys().len();
            self.refused(Status::InvalidArgument, name, &format!("is not among the file's {count} tensors"))
        })
    }

    fn refused(&self, status: Status, name: &str, text: &str) -> Error {
        Error::new(status, format!("{}: the tensor '{name}' {text}", self.0.path.display()))
    }

    /// Bytes of the file as f32, which are stored little endian.
    fn floats(&self, bytes: &[u8], dims: &[usize]) -> Result<Tensor> {
        let aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<f32>());
        if !aligned || cfg!(target_endian = "big") {
            let values =
                bytes.chunks_exact(4).map(|float| f32::from_le_bytes([float[0], float[1], float[2], float[3]]));
            return Tensor::new(&values.collect::<Vec<f32>>(), dims);
        }
        let meta = Meta::new(DType::F32, Shape::new(dims)?);
        // SAFETY: the bytes are in the file's memory, which the tensor keeps; the file's reader checked that they are as many as the
        // shape says; nobody writes them, as the type says.
        unsafe { Tensor::foreign(NonNull::from(bytes).cast(), &meta, Box::new(self.clone())) }
    }
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weights({}, {} tensors)", self.0.path.display(), self.0.metadata.offset_keys().len())
    }
}
