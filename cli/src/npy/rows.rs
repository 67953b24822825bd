//! Matrices of f32 in `.npy` files, written and read in groups of rows.

use super::{Header, Npy, little_endian, malformed, preamble};
use crate::failure::{Failure, Result};
use crate::files::NewFile;
use adead::{DType, Status, Tensor};
use std::io::Read;
use std::path::Path;

/// The size of the header, enough for any number of rows.
const START: usize = 128;

/// A file that rows are appended to.
pub struct Writer {
    file: NewFile,
    rows: usize,
    width: usize,
}

impl Writer {
    /// Begins a file of rows of this width. It must be seekable, so it can't be a pipe.
    pub fn create(path: &Path, width: usize) -> Result<Writer> {
        let mut file = NewFile::create(path)?;
        let start = preamble(DType::F32, &[0, width], START)?;
        // Written twice: a file that can't be overwritten at its start fails here.
        file.overwrite_start(&start)?;
        file.overwrite_start(&start)?;
        Ok(Writer { file, rows: 0, width })
    }

    /// Appends rows and returns their bytes in the file.
    pub fn append(&mut self, values: &[f32]) -> Result<Vec<u8>> {
        let tensor = Tensor::new(values, &[values.len()])?;
        let bytes = little_endian(tensor.bytes(), DType::F32).into_owned();
        self.file.write(&bytes)?;
        self.rows += values.len().checked_div(self.width).unwrap_or(0);
        Ok(bytes)
    }

    /// Writes the final header and renames the file to its final name.
    pub fn commit(mut self) -> Result<()> {
        self.file.overwrite_start(&preamble(DType::F32, &[self.rows, self.width], START)?)?;
        self.file.commit()
    }
}

/// A file whose rows are read in order.
pub struct Reader {
    npy: Npy,
    /// The rows not read yet.
    left: usize,
    width: usize,
}

impl Reader {
    /// Opens a file. Returns `unsupported` unless it is a row-major, little-endian matrix of f32.
    pub fn open(path: &Path) -> Result<Reader> {
        let npy = Npy::open(path)?;
        let Header { dtype, dims, fortran, big_endian } = &npy.header;
        let plain = *dtype == DType::F32 && !fortran && !big_endian;
        match dims[..] {
            [rows, width] if plain && width > 0 => Ok(Reader { left: rows, width, npy }),
            _ => {
                let order = if *fortran { ", by columns" } else { "" };
                let text = format!("{} holds {dtype}{dims:?}{order}; expected rows of f32, [n, width]", path.display());
                Err(Failure::new(Status::Unsupported, text))
            }
        }
    }

    /// The number of values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The rows not read yet.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Reads the next rows, at most this many. `None` at the end.
    pub fn next(&mut self, most: usize) -> Result<Option<Tensor>> {
        let count = self.left.min(most);
        if count == 0 {
            return Ok(None);
        }
        let wanted = count * self.width * size_of::<f32>();
        let mut bytes = Vec::new();
        let read = (&mut self.npy.file).take(wanted as u64).read_to_end(&mut bytes);
        read.map_err(|error| Failure::io(self.npy.path.display(), &error))?;
        if bytes.len() != wanted {
            let text =
                format!("truncated: {} bytes of the rows that its header claims are missing", wanted - bytes.len());
            return Err(malformed(&self.npy.path, text));
        }
        self.left -= count;
        let values: Vec<f32> =
            bytes.chunks_exact(4).map(|float| f32::from_le_bytes([float[0], float[1], float[2], float[3]])).collect();
        Ok(Some(Tensor::new(&values, &[count, self.width])?))
    }
}
