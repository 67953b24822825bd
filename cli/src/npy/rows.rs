//! Matrices of f32 in `.npy` files, written and read some rows at a time.

use super::{Header, Npy, little_endian, malformed, preamble};
use crate::failure::{Failure, Result};
use crate::files::NewFile;
use adead::{DType, Status, Tensor};
use std::io::Read;
use std::path::Path;

/// Bytes before the data: the header of any number of rows fits.
const START: usize = 128;

/// A file that rows are appended to.
pub struct Writer {
    file: NewFile,
    rows: usize,
    width: usize,
}

impl Writer {
    /// Begins a file of rows of that width. It must be one that can be written anywhere: no pipe.
    pub fn create(path: &Path, width: usize) -> Result<Writer> {
        let mut file = NewFile::create(path)?;
        let start = preamble(DType::F32, &[0, width], START)?;
        // Twice: what can't be written at its start again says so now.
        file.overwrite_start(&start)?;
        file.overwrite_start(&start)?;
        Ok(Writer { file, rows: 0, width })
    }

    /// Appends rows; their bytes as they are in the file.
    pub fn append(&mut self, values: &[f32]) -> Result<Vec<u8>> {
        let tensor = Tensor::new(values, &[values.len()])?;
        let bytes = little_endian(tensor.bytes(), DType::F32).into_owned();
        self.file.write(&bytes)?;
        self.rows += values.len().checked_div(self.width).unwrap_or(0);
        Ok(bytes)
    }

    /// Lets it take its place.
    pub fn commit(mut self) -> Result<()> {
        self.file.overwrite_start(&preamble(DType::F32, &[self.rows, self.width], START)?)?;
        self.file.commit()
    }
}

/// A file whose rows are read in order.
pub struct Reader {
    npy: Npy,
    /// Rows that are still to come.
    left: usize,
    width: usize,
}

impl Reader {
    /// Opens a file. `unsupported` unless it is a row-major matrix of f32 in little endian.
    pub fn open(path: &Path) -> Result<Reader> {
        let npy = Npy::open(path)?;
        let Header { dtype, dims, fortran, big_endian } = &npy.header;
        let plain = *dtype == DType::F32 && !fortran && !big_endian;
        match dims[..] {
            [rows, width] if plain && width > 0 => Ok(Reader { left: rows, width, npy }),
            _ => {
                let order = if *fortran { ", by columns" } else { "" };
                let text = format!("{} holds {dtype}{dims:?}{order}; rows of f32 [n, width] are taken", path.display());
                Err(Failure::new(Status::Unsupported, text))
            }
        }
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows that are still to come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next rows, at most so many; `None` when all were read.
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
            let text = format!("it ends {} bytes before the rows that its header promises", wanted - bytes.len());
            return Err(malformed(&self.npy.path, text));
        }
        self.left -= count;
        let values: Vec<f32> =
            bytes.chunks_exact(4).map(|float| f32::from_le_bytes([float[0], float[1], float[2], float[3]])).collect();
        Ok(Some(Tensor::new(&values, &[count, self.width])?))
    }
}
