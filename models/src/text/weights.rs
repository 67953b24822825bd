//! A model's weights: matrices, tables and vectors, which stay as the file has them.

use super::blocks;
use super::fault;
use crate::gguf::{Gguf, TensorInfo};
use adead::nn::{self, Layer};
use adead::{Context, Error, Result, Status, Tensor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A file whose tensors are taken by name and shape.
#[derive(Clone)]
pub(crate) struct Weights {
    gguf: Arc<Gguf>,
    path: Arc<PathBuf>,
}

impl Weights {
    pub fn new(gguf: Arc<Gguf>, path: &Path) -> Weights {
        Weights { gguf, path: Arc::new(path.to_owned()) }
    }

    /// Whether the file has a tensor.
    pub fn contains(&self, name: &str) -> bool {
        self.gguf.tensors().iter().any(|info| info.name() == name)
    }

    /// Returns a tensor of these dimensions. `invalid_argument` if the file lacks it, `shape_mismatch` for others, `unsupported`
    /// for elements that this version can't read.
    fn stored(&self, name: &str, dims: &[usize]) -> Result<Stored> {
        let info = self.gguf.tensor(name)?;
        if info.dims() != dims {
            let text = format!("the tensor '{name}' is {:?}; it must be {dims:?}", info.dims());
            return Err(fault(Status::ShapeMismatch, &self.path, text));
        }
        blocks::check(info.kind())
            .map_err(|error| fault(error.status(), &self.path, format!("the tensor '{name}': {}", error.message())))?;
        Ok(Stored { gguf: self.gguf.clone(), info: info.clone() })
    }

    /// Returns a vector as f32.
    pub fn vector(&self, name: &str, length: usize) -> Result<Tensor> {
        self.stored(name, &[length])?.tensor()
    }

    /// Returns a vector as f32 if the file has it.
    pub fn optional_vector(&self, name: &str, length: usize) -> Result<Option<Tensor>> {
        if self.contains(name) { self.vector(name, length).map(Some) } else { Ok(None) }
    }

    /// Returns the matrix `PREFIX.weight`, `[outputs, inputs]`, with the vector `PREFIX.bias` if the file has it.
    pub fn linear(&self, prefix: &str, inputs: usize, outputs: usize, context: &Context) -> Result<Linear> {
        let bias = self.optional_vector(&format!("{prefix}.bias"), outputs)?;
        let stored = self.stored(&format!("{prefix}.weight"), &[outputs, inputs])?;
        Ok(Linear { stored, bias, context: context.clone(), layer: OnceLock::new(), making: Mutex::new(()) })
    }

    /// Returns the table of a name, `[rows, width]`.
    pub fn table(&self, name: &str, rows: usize, width: usize) -> Result<Table> {
        Ok(Table { stored: self.stored(name, &[rows, width])?, rows, width })
    }

    /// Returns the number of rows of a matrix.
    pub fn rows(&self, name: &str) -> Result<usize> {
        Ok(self.gguf.tensor(name)?.dims()[0])
    }
}

/// A tensor in the file.
struct Stored {
    gguf: Arc<Gguf>,
    info: TensorInfo,
}

impl Stored {
    /// Returns all of it as f32.
    fn tensor(&self) -> Result<Tensor> {
        Tensor::new(&blocks::floats(self.info.kind(), self.gguf.bytes(&self.info))?, self.info.dims())
    }
}

/// A product with a matrix of the file, made ready when it is first used.
pub(crate) struct Linear {
    stored: Stored,
    bias: Option<Tensor>,
    context: Context,
    layer: OnceLock<nn::Linear>,
    /// Held by the thread that makes the layer.
    making: Mutex<()>,
}

impl Linear {
    /// Computes `x·Wᵀ + bias` for x of `[rows, inputs]`.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        if let Some(layer) = self.layer.get() {
            return layer.forward(x);
        }
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.layer.get().is_none() {
            let layer = nn::Linear::new(&self.stored.tensor()?, self.bias.as_ref(), &self.context)?;
            // No other thread is here.
            let _ = self.layer.set(layer);
        }
        drop(making);
        self.apply(x)
    }
}

/// A table of the file, of which rows are read by number.
pub(crate) struct Table {
    stored: Stored,
    rows: usize,
    width: usize,
}

impl Table {
    /// Returns rows as f32, `[ids, width]`. `invalid_argument` for an id outside the table.
    pub fn lookup<'a>(&self, ids: impl Iterator<Item = &'a u32>) -> Result<Tensor> {
        let bytes = self.stored.gguf.bytes(&self.stored.info);
        let row = bytes.len() / self.rows.max(1);
        let (mut found, mut count) = (Vec::new(), 0);
        for &id in ids {
            if id as usize >= self.rows {
                let text = format!("token {id} is outside the model's vocabulary of {} tokens", self.rows);
                return Err(Error::new(Status::InvalidArgument, text));
            }
            let own = bytes.get(id as usize * row..).and_then(|rest| rest.get(..row)).unwrap_or_default();
            found.extend(blocks::floats(self.stored.info.kind(), own)?);
            count += 1;
        }
        Tensor::new(&found, &[count, self.width])
    }
}
