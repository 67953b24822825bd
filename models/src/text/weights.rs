//! A model's weights: matrices, tables and vectors, kept in the format of the file.

use super::adapters::{Adapter, Adapters};
use super::blocks;
use super::fault;
use crate::gguf::{Gguf, TensorInfo};
use adead::contract::BlockFormat;
use adead::device::DeviceKind;
use adead::nn::{self, Layer};
use adead::pipeline::{Pipeline, Value};
use adead::{Attrs, Context, DType, Error, Meta, Op, Result, Shape, Status, Tensor};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A file whose tensors are taken by name and shape.
#[derive(Clone)]
pub(crate) struct Weights {
    gguf: Arc<Gguf>,
    path: Arc<PathBuf>,
    /// What is added to products.
    adapters: Option<Adapters>,
}

impl Weights {
    pub fn new(gguf: Arc<Gguf>, path: &Path) -> Weights {
        Weights { gguf, path: Arc::new(path.to_owned()), adapters: None }
    }

    /// Adds what adapters compute to the products of the matrices that have one.
    pub fn with_adapters(self, adapters: Option<Adapters>) -> Weights {
        Weights { adapters, ..self }
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
        let matrix = match blocks::format(stored.info.kind()) {
            Some(format) => Matrix::Blocks(stored.bytes(outputs)?, format),
            None => Matrix::Floats(Box::new(Floats { stored, layer: OnceLock::new(), making: Mutex::new(()) })),
        };
        let adapter = self.adapters.as_ref().map(|all| all.of(prefix, [outputs, inputs])).transpose()?.flatten();
        let (name, dims) = (prefix.into(), [outputs, inputs]);
        Ok(Linear { name, dims, matrix, bias, adapter, context: context.clone() })
    }

    /// Returns one matrix with the rows of several, `[sum of outputs, inputs]`, in the memory of a context's only device. `None` if that
    /// is no GPU, and for matrices of floats, of different formats, with biases or with adapters.
    pub fn joined(
        &self,
        prefixes: &[String],
        inputs: usize,
        outputs: &[usize],
        context: &Context,
    ) -> Result<Option<Linear>> {
        let device = context.device_info();
        if device.kind == DeviceKind::Cpu || context.dispatcher().forced().is_none() {
            return Ok(None);
        }
        let (mut bytes, mut format) = (Vec::new(), None);
        for (prefix, &outputs) in prefixes.iter().zip(outputs) {
            if self.adapters.as_ref().is_some_and(|adapters| adapters.contains(prefix)) {
                return Ok(None);
            }
            let stored = self.stored(&format!("{prefix}.weight"), &[outputs, inputs])?;
            let own = blocks::format(stored.info.kind());
            if own.is_none() || format.is_some_and(|format| format != own) || self.contains(&format!("{prefix}.bias")) {
                return Ok(None);
            }
            format = Some(own);
            bytes.extend_from_slice(stored.gguf.bytes(&stored.info));
        }
        let (Some(Some(format)), rows) = (format, outputs.iter().sum::<usize>()) else { return Ok(None) };
        let all = Tensor::from_bytes(&bytes, DType::U8, &[rows, bytes.len() / rows.max(1)])?;
        let matrix = Matrix::Blocks(context.to(&all, &device.id)?, format);
        let (name, dims) = (prefixes.join(", ").into(), [rows, inputs]);
        Ok(Some(Linear { name, dims, matrix, bias: None, adapter: None, context: context.clone() }))
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
    /// Returns its bytes as a u8 tensor of so many rows, in the memory of the file.
    fn bytes(&self, rows: usize) -> Result<Tensor> {
        let bytes = self.gguf.bytes(&self.info);
        let meta = Meta::new(DType::U8, Shape::new(&[rows, bytes.len() / rows.max(1)])?);
        // SAFETY: the memory has these bytes, which are initialised, and lives as long as the file, which the tensor keeps. Nothing
        // writes it: who maps a file vouches that nothing else does.
        unsafe { Tensor::foreign(NonNull::from(bytes).cast(), &meta, Box::new(self.gguf.clone())) }
    }

    /// Returns all of it as f32.
    fn tensor(&self) -> Result<Tensor> {
        Tensor::new(&blocks::floats(self.info.kind(), self.gguf.bytes(&self.info))?, self.info.dims())
    }
}

/// A product with a matrix of the file.
pub(crate) struct Linear {
    /// The matrix's name in the file, without `.weight`.
    name: Box<str>,
    /// Outputs and inputs.
    dims: [usize; 2],
    matrix: Matrix,
    bias: Option<Tensor>,
    adapter: Option<Adapter>,
    context: Context,
}

enum Matrix {
    /// Quantised blocks, `[outputs, bytes of a row]`, where the file has them.
    Blocks(Tensor, BlockFormat),
    Floats(Box<Floats>),
}

/// A matrix of floats, made ready for products when it is first used.
struct Floats {
    stored: Stored,
    layer: OnceLock<nn::Linear>,
    /// Held by the thread that makes the layer.
    making: Mutex<()>,
}

impl Linear {
    /// Computes `x·Wᵀ + bias` for x of `[rows, inputs]`, and adds what the adapter computes.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.product(x)?;
        match &self.adapter {
            Some(adapter) => adapter.apply(&self.context, x, &y),
            None => Ok(y),
        }
    }

    /// Returns the matrix's name in the file, without `.weight`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of outputs and of inputs.
    pub fn dims(&self) -> [usize; 2] {
        self.dims
    }

    fn product(&self, x: &Tensor) -> Result<Tensor> {
        let Floats { stored, layer, making } = match &self.matrix {
            Matrix::Blocks(matrix, format) => {
                let y = self.context.quantized_matmul(x, matrix, *format)?;
                return match &self.bias {
                    Some(bias) => self.context.add(&y, bias),
                    None => Ok(y),
                };
            }
            Matrix::Floats(floats) => &**floats,
        };
        if layer.get().is_none() {
            let _making = making.lock().unwrap_or_else(PoisonError::into_inner);
            if layer.get().is_none() {
                // No other thread is here, so the cell is empty.
                let _ = layer.set(nn::Linear::new(&stored.tensor()?, self.bias.as_ref(), &self.context)?);
            }
        }
        match layer.get() {
            Some(layer) => layer.forward(x),
            None => unreachable!("the layer was made"),
        }
    }
}

impl Linear {
    /// Whether the file has the matrix in blocks. Those alone should be recorded more than once: floats would be copied each time.
    pub fn is_of_blocks(&self) -> bool {
        matches!(self.matrix, Matrix::Blocks(..))
    }

    /// Records what [`apply`](Linear::apply) computes.
    pub fn record(&self, pipeline: &mut Pipeline, x: Value) -> Result<Value> {
        let bias = self.bias.as_ref().map(|bias| pipeline.constant(bias)).transpose()?;
        let y = match &self.matrix {
            Matrix::Blocks(matrix, format) => {
                let matrix = pipeline.constant(matrix)?;
                let attrs = Attrs { format: Some(*format), ..Attrs::DEFAULT };
                let y = pipeline.op(Op::QuantizedMatmul, &attrs, &[Some(x), Some(matrix)])?;
                match bias {
                    Some(bias) => pipeline.op(Op::Add, &Attrs::DEFAULT, &[Some(y), Some(bias)])?,
                    None => y,
                }
            }
            Matrix::Floats(floats) => {
                let matrix = pipeline.constant(&floats.stored.tensor()?)?;
                let attrs = Attrs { trans_b: true, ..Attrs::DEFAULT };
                pipeline.op(Op::Matmul, &attrs, &[Some(x), Some(matrix), None, bias])?
            }
        };
        match &self.adapter {
            Some(adapter) => adapter.record(pipeline, x, y),
            None => Ok(y),
        }
    }
}

/// A table of the file, of which rows are read by number.
pub(crate) struct Table {
    stored: Stored,
    rows: usize,
    width: usize,
}

impl Table {
    /// Returns rows as f32, `[ids, width]`, in a context's memory if there are many. `invalid_argument` for an id outside the table.
    pub fn lookup<'a>(&self, ids: impl Iterator<Item = &'a u32>, context: &Context) -> Result<Tensor> {
        let bytes = self.stored.gguf.bytes(&self.stored.info);
        let row = bytes.len() / self.rows.max(1);
        let (mut found, mut count) = (Vec::new(), 0);
        for &id in ids {
            if id as usize >= self.rows {
                let text = format!("token {id} is outside the model's vocabulary of {} tokens", self.rows);
                return Err(Error::new(Status::InvalidArgument, text));
            }
            found
                .extend_from_slice(bytes.get(id as usize * row..).and_then(|rest| rest.get(..row)).unwrap_or_default());
            count += 1;
        }
        match blocks::format(self.stored.info.kind()) {
            Some(format) if count >= MANY => {
                let blocks = Tensor::from_bytes(&found, DType::U8, &[count, row])?;
                context.dequantize(&blocks, format)
            }
            _ => Tensor::new(&blocks::floats(self.stored.info.kind(), &found)?, &[count, self.width]),
        }
    }
}

/// So many rows of blocks become floats on the device that uses them.
const MANY: usize = 32;
