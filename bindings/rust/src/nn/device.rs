//! Where layers compute.

use super::array::Array;
use super::memory::{Block, Memory, Pool};
use adead_core::contract::Activation;
use adead_core::gpu::{self, Buffer, Stream};
use adead_core::hal::DeviceKind;
use adead_core::{
    Attrs, Command, Context, DType, Element, Error, Meta, Op, Packed, Permutation, Result, Shape, Status, Tensor, View,
};
use std::sync::{Arc, Mutex, PoisonError};

/// Where layers have their weights and compute, with memory that is used again. Clones share all of it.
///
/// On a GPU weights are uploaded once and everything between stays there: work is enqueued on one stream, and whoever takes
/// a result waits. On the CPU weights are packed for its instruction set. Where a context divides work among devices, or was
/// told to choose for each operation, weights are kept as they are and every operation asks the dispatcher.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    context: Context,
    place: Place,
    pool: Arc<Pool>,
}

enum Place {
    Host {
        packed: bool,
    },
    Gpu(Mutex<Stream>),
    /// Wherever the context has tensors' values and computes.
    Tensors {
        packed: bool,
    },
}

/// A right operand of products: what a layer multiplies with.
#[derive(Clone)]
pub(super) enum Matrix {
    Packed(Arc<Packed>),
    Plain(Array),
}

impl Device {
    /// The device of a context: the GPU that it was opened on, or that `auto` found; the devices of `hybrid` together; else the
    /// CPU. A GPU that nobody named and that can't be used is left alone.
    pub fn new(context: &Context) -> Result<Device> {
        let dispatcher = context.dispatcher();
        let place = if dispatcher.is_hybrid() && dispatcher.forced().is_none() {
            Place::Host { packed: false }
        } else {
            match on_host(context) {
                Ok(false) => Place::Gpu(Mutex::new(context.stream()?)),
                Err(error) if dispatcher.forced().is_some() => return Err(error),
                _ => Place::Host { packed: true },
            }
        };
        let threads = if let Place::Gpu(_) = place { 1 } else { context.device_info().units };
        Ok(Device(Arc::new(Inner { context: context.clone(), place, pool: Arc::new(Pool::new(threads)) })))
    }

    /// The device of modules, whose arrays are tensors: the context decides for each operation where it computes, and leaves
    /// results there. Weights are packed where it has no device but the CPU.
    pub(super) fn of_tensors(context: &Context) -> Device {
        let packed = context.devices().iter().all(|device| device.kind == DeviceKind::Cpu);
        let (context, place) = (context.clone(), Place::Tensors { packed });
        Device(Arc::new(Inner { context, place, pool: Arc::new(Pool::new(1)) }))
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Whether arrays are in a GPU's memory.
    pub fn is_gpu(&self) -> bool {
        matches!(self.0.place, Place::Gpu(_))
    }

    /// Gives back the memory that is kept for the next arrays.
    pub fn trim(&self) {
        self.0.pool.clear();
    }

    /// A tensor's values where layers compute: on the CPU without a copy.
    pub fn array(&self, tensor: &Tensor) -> Result<Array> {
        let meta = *tensor.view().meta();
        match &self.0.place {
            Place::Host { .. } | Place::Tensors { .. } => Ok(Array::new(self, Block::of(tensor), meta)),
            Place::Gpu(_) => self.upload(tensor.host_bytes()?, meta),
        }
    }

    /// Values where layers compute. `shape_mismatch` if they are not as many as the dimensions say.
    pub fn array_of<T: Element>(&self, values: &[T], dims: &[usize]) -> Result<Array> {
        self.array(&Tensor::new(values, dims)?)
    }

    /// The matrix `[K, N]` or, `transposed`, `[N, K]`, laid out for products.
    pub(super) fn matrix(&self, tensor: &Tensor, transposed: bool) -> Result<Matrix> {
        if let Place::Host { packed: true } | Place::Tensors { packed: true } = self.0.place {
            return Ok(Matrix::Packed(Arc::new(self.context().pack(tensor, transposed)?)));
        }
        let turned;
        let tensor = if transposed {
            turned = self.context().transpose(tensor)?;
            &turned
        } else {
            tensor
        };
        Ok(Matrix::Plain(self.array(tensor)?))
    }

    pub(super) fn keeps_tensors(&self) -> bool {
        matches!(self.0.place, Place::Tensors { .. })
    }

    /// An array with any contents, to be written.
    fn empty(&self, meta: Meta) -> Result<Array> {
        Ok(Array::new(self, self.0.pool.take(self.context(), self.is_gpu(), meta.bytes())?, meta))
    }

    fn upload(&self, bytes: &[u8], meta: Meta) -> Result<Array> {
        let array = self.empty(meta)?;
        if let (Place::Gpu(stream), Memory::Gpu(buffer)) = (&self.0.place, array.block.memory()) {
            stream.lock().unwrap_or_else(PoisonError::into_inner).upload(buffer, 0, bytes)?;
        }
        Ok(array)
    }

    pub(super) fn download(&self, buffer: &Buffer, offset: usize, bytes: usize) -> Result<gpu::Download> {
        match &self.0.place {
            Place::Gpu(stream) => stream.lock().unwrap_or_else(PoisonError::into_inner).download(buffer, offset, bytes),
            Place::Host { .. } | Place::Tensors { .. } => {
                Err(Error::new(Status::Internal, "an array on a GPU has the device of another place"))
            }
        }
    }

    /// An operation on arrays of this device, in the operation's order, `None` where an optional operand is left out. The
    /// errors are those of the operation, and `invalid_argument` for an array of another device. On a GPU it returns when the
    /// operation is enqueued, and what only the GPU can find comes with the result that somebody takes.
    pub fn run(&self, op: Op, attrs: &Attrs, operands: &[Option<&Array>]) -> Result<Array> {
        if self.keeps_tensors() {
            let views = operands.iter().map(|array| array.map(Array::view).transpose()).collect::<Result<Vec<_>>>()?;
            return self.array(&self.context().run_views(op, attrs, &views)?);
        }
        let metas: Vec<_> = operands.iter().map(|array| array.map(Array::meta)).collect();
        let mut output = self.empty(op.info().infer(attrs, &metas)?)?;
        self.run_into(op, attrs, operands, &mut output)?;
        Ok(output)
    }

    /// A matrix `[rows, width]` whose rows are those of parts behind each other, each with its axes in another order.
    pub(super) fn stacked(&self, rows: usize, width: usize, axes: &[i32], parts: &[Array]) -> Result<Array> {
        if self.keeps_tensors() {
            let permuted = |part| self.permuted(part, axes)?.to_tensor();
            let tensors = parts.iter().map(permuted).collect::<Result<Vec<_>>>()?;
            let rows_of = |tensor: &Tensor| tensor.reshape(&[tensor.len().checked_div(width).unwrap_or(0), width]);
            let tensors = tensors.iter().map(rows_of).collect::<Result<Vec<_>>>()?;
            return match &tensors[..] {
                [one] => self.array(one),
                several => self.array(&self.context().concat(&several.iter().collect::<Vec<_>>(), 0)?),
            };
        }
        let output = self.empty(Meta::new(DType::F32, Shape::new(&[rows, width])?))?;
        let (attrs, mut first) = (permutation(axes)?, 0);
        for x in parts {
            let meta = Op::Transpose.info().infer(&attrs, &[Some(x.meta())])?;
            let count = meta.shape.elements().checked_div(width).unwrap_or(0);
            let mut part = output.rows(first, count)?.reshape(meta.shape.dims())?;
            self.run_into(Op::Transpose, &attrs, &[Some(x)], &mut part)?;
            first += count;
        }
        if first != rows {
            return Err(Error::new(Status::Internal, format!("{first} of {rows} rows were written")));
        }
        Ok(output)
    }

    /// An operation into an array that nobody has read yet.
    fn run_into(&self, op: Op, attrs: &Attrs, operands: &[Option<&Array>], output: &mut Array) -> Result<()> {
        match &self.0.place {
            Place::Host { .. } | Place::Tensors { .. } => {
                let views =
                    operands.iter().map(|array| array.map(Array::view).transpose()).collect::<Result<Vec<_>>>()?;
                self.execute(op, attrs, &views, output)
            }
            Place::Gpu(stream) => {
                let operands: Result<Vec<_>> =
                    operands.iter().map(|array| array.map(Array::operand).transpose()).collect();
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                stream.run(op, attrs, &operands?, output.operand()?)
            }
        }
    }

    fn execute(&self, op: Op, attrs: &Attrs, inputs: &[Option<View<'_>>], output: &mut Array) -> Result<()> {
        // SAFETY: the output is from the pool and nobody else's yet; `Command::lent` refuses one that overlaps an operand.
        let output = unsafe { output.view_mut() }?;
        self.context().execute(&mut Command::lent(op, attrs, inputs, output)?)
    }

    /// `activation(x·matrix + residual + bias)`.
    pub(super) fn product(
        &self,
        x: &Array,
        matrix: &Matrix,
        residual: Option<&Array>,
        bias: Option<&Array>,
        activation: Activation,
    ) -> Result<Array> {
        let beta = if residual.is_some() { 1.0 } else { 0.0 };
        let attrs = Attrs { beta, activation: Some(activation), ..Attrs::default() };
        let packed = match matrix {
            Matrix::Plain(matrix) => {
                return self.run(Op::Matmul, &attrs, &[Some(x), Some(matrix), residual, bias]);
            }
            Matrix::Packed(packed) => packed,
        };
        let residual = residual.map(Array::view).transpose()?;
        let bias = bias.map(Array::view).transpose()?;
        let inputs = [Some(x.view()?), Some(View::packed(packed)), residual, bias];
        if self.keeps_tensors() {
            return self.array(&self.context().run_views(Op::Matmul, &attrs, &inputs)?);
        }
        let mut output = self.empty(Op::Matmul.info().infer(&attrs, &inputs)?)?;
        self.execute(Op::Matmul, &attrs, &inputs, &mut output)?;
        Ok(output)
    }

    /// The axes in another order.
    pub(super) fn permuted(&self, x: &Array, axes: &[i32]) -> Result<Array> {
        self.run(Op::Transpose, &permutation(axes)?, &[Some(x)])
    }
}

/// The attributes of `transpose`.
fn permutation(axes: &[i32]) -> Result<Attrs> {
    Ok(Attrs { perm: Permutation::new(axes)?, ..Attrs::default() })
}

/// Whether a context's buffers are in host memory.
fn on_host(context: &Context) -> Result<bool> {
    Ok(context.buffer_zeroed(1)?.device().kind == DeviceKind::Cpu)
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({:?})", self.context())
    }
}
