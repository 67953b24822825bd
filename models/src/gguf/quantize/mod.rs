//! Values as quantised blocks: the rules of `docs/contract.md`, "Quantising".

mod large;
mod small;

use crate::spread::spread;
use adead::contract::{BlockFormat, bf16_to_f32, f16_from_f32, f16_to_f32};
use adead::{DType, Error, Result, Status, Tensor};
use std::borrow::Cow;
use std::fmt::{self, Display};

/// Why a block can't be written.
enum Fault {
    /// A value is NaN or infinite: its place in the block.
    NotFinite(usize),
    /// A value, or a scale or minimum of the block, is too large for the format.
    Large(f32),
}

/// A scale as the two bytes of an f16.
fn half(x: f32) -> std::result::Result<[u8; 2], Fault> {
    let half = f16_from_f32(x);
    if half & 0x7fff == 0x7c00 { Err(Fault::Large(x)) } else { Ok(half.to_le_bytes()) }
}

/// The values that a thread takes at a time, a multiple of every block.
const CLAIM: usize = 1 << 16;

/// Writes values as blocks of a format: what a GGUF file stores, and what [`quantized_matmul`](adead::Context::quantized_matmul) takes
/// as a row. The same values give the same bytes everywhere.
///
/// For `q8_0`, `q4_0`, `q4_1`, `q5_0` and `q5_1` the block's largest value decides the scale, as in ggml. For `q4_k`, `q5_k` and
/// `q6_k` a search finds the scales with the least weighted squared error. `docs/contract.md` states every rounding.
///
/// ```
/// use adead::BlockFormat;
/// use adead_models::gguf::quantize;
///
/// let values: Vec<f32> = (0..64).map(|i| i as f32 / 8.0).collect();
/// let blocks = quantize(&values, BlockFormat::Q8_0)?;
/// assert_eq!(blocks.len(), 2 * 34);
/// # Ok::<(), adead::Error>(())
/// ```
///
/// # Errors
/// `shape_mismatch` if the values are not whole blocks, `invalid_argument` with the position of a value that is NaN or infinite, or of
/// a block whose scale is beyond f16's 65504.
pub fn quantize(values: &[f32], format: BlockFormat) -> Result<Vec<u8>> {
    if !values.len().is_multiple_of(format.elements()) {
        let text = format!(
            "{} values; {} takes a multiple of {}, the values of a block",
            values.len(),
            format.name(),
            format.elements()
        );
        return Err(Error::new(Status::ShapeMismatch, text));
    }
    blocks(values, format, None)
}

/// Writes the rows of a tensor `[…, K]` of f32, f16 or bf16 as blocks: a u8 tensor `[…, bytes of a row]`, which
/// [`quantized_matmul`](adead::Context::quantized_matmul) takes as its second operand if it has two dimensions. The bytes are those of
/// [`quantize`].
///
/// ```
/// use adead::{BlockFormat, Context, Tensor};
/// use adead_models::gguf::quantize_tensor;
///
/// let weights: Vec<f32> = (0..96).map(|i| (i % 7) as f32 - 3.0).collect();
/// let w = quantize_tensor(&Tensor::new(&weights, &[3, 32])?, BlockFormat::Q4_0)?;
/// assert_eq!(w.dims(), [3, 18]);
/// let y = Context::open("cpu")?.quantized_matmul(&Tensor::new(&[1f32; 32], &[1, 32])?, &w, BlockFormat::Q4_0)?;
/// assert_eq!(y.dims(), [1, 3]);
/// # Ok::<(), adead::Error>(())
/// ```
///
/// # Errors
/// Those of [`quantize`], `dtype_mismatch` for elements of another type, and the errors of reading a tensor from a device.
pub fn quantize_tensor(tensor: &Tensor, format: BlockFormat) -> Result<Tensor> {
    let (elements, dims) = (format.elements(), tensor.dims());
    let Some((&width, outer)) = dims.split_last().filter(|(width, _)| width.is_multiple_of(elements)) else {
        let text = format!(
            "the tensor is {dims:?}; {} takes rows whose length is a multiple of {elements}, the values of a block",
            format.name()
        );
        return Err(Error::new(Status::ShapeMismatch, text));
    };
    let halves = |widen: fn(u16) -> f32| -> Result<Cow<'_, [f32]>> {
        let bytes = tensor.host_bytes()?.chunks_exact(2);
        Ok(bytes.map(|half| widen(u16::from_ne_bytes([half[0], half[1]]))).collect())
    };
    let values = match tensor.dtype() {
        DType::F32 => {
            tensor.host_bytes()?;
            Cow::Borrowed(tensor.as_slice()?)
        }
        DType::F16 => halves(f16_to_f32)?,
        DType::BF16 => halves(bf16_to_f32)?,
        other => {
            let text = format!("the tensor has elements of {other}; f32, f16 and bf16 can be quantised");
            return Err(Error::new(Status::DtypeMismatch, text));
        }
    };
    let bytes = blocks(&values, format, Some(Rows { width, first: 0 }))?;
    let dims: Vec<usize> = outer.iter().copied().chain([width / elements * format.bytes()]).collect();
    Tensor::new(&bytes, &dims)
}

/// The rows that values are: their width, and the number of the first.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub width: usize,
    pub first: usize,
}

/// The place of a value, in rows if there are rows.
struct Position(usize, Option<Rows>);

impl Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Position(index, None) => write!(f, "{index}"),
            Position(index, Some(Rows { width, first })) => {
                write!(f, "{} of row {}", index % width, first + index / width)
            }
        }
    }
}

/// Writes whole blocks, with several threads if there are many. Errors name rows if there are rows.
pub(crate) fn blocks(values: &[f32], format: BlockFormat, rows: Option<Rows>) -> Result<Vec<u8>> {
    let (elements, bytes) = (format.elements(), format.bytes());
    let some = |values: &[f32], out: &mut [u8]| {
        let mut pairs = values.chunks_exact(elements).zip(out.chunks_exact_mut(bytes)).enumerate();
        pairs.try_for_each(|(index, (x, out))| block(format, x, out).map_err(|fault| (index, fault)))
    };
    let mut out = vec![0; values.len() / elements * bytes];
    let failed = |first: usize, (index, fault): (usize, Fault)| {
        let first = first + index * elements;
        let text = match fault {
            Fault::NotFinite(at) => {
                let (value, at) = (values[first + at], Position(first + at, rows));
                format!("value {at} is {value}; {} takes finite values", format.name())
            }
            Fault::Large(large) => format!(
                "the block from value {} on needs {large:e}; {} stores factors of a block as f16, at most 65504",
                Position(first, rows),
                format.name()
            ),
        };
        Error::new(Status::InvalidArgument, text)
    };
    if values.len() <= CLAIM {
        some(values, &mut out).map_err(|fault| failed(0, fault))?;
        return Ok(out);
    }
    let parts: Vec<(usize, &[f32])> = values.chunks(CLAIM).enumerate().collect();
    let threads = threads().min(parts.len());
    // Of several faults the first is told.
    let mut first_fault: Option<(usize, (usize, Fault))> = None;
    let work = |&(part, values): &(usize, &[f32])| {
        let mut out = vec![0; values.len() / elements * bytes];
        let done = some(values, &mut out);
        Ok((done.err().map(|fault| (part, fault)), out))
    };
    spread(&parts, threads, &work, |&(part, _), (fault, done)| {
        if let Some(fault) = fault.filter(|&(part, _)| first_fault.as_ref().is_none_or(|&(first, _)| part < first)) {
            first_fault = Some(fault);
        }
        out[part * (CLAIM / elements * bytes)..][..done.len()].copy_from_slice(&done);
        Ok(())
    })?;
    match first_fault {
        Some((part, fault)) => Err(failed(part * CLAIM, fault)),
        None => Ok(out),
    }
}

/// The number of threads: what `ADEAD_NUM_THREADS` or `adead.toml` says, else as many as the process may run at a time.
fn threads() -> usize {
    let of_variable = || std::env::var("ADEAD_NUM_THREADS").ok()?.parse::<usize>().ok();
    let set = of_variable().or_else(|| adead::config::Config::load().ok()?.threads);
    set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |threads| threads.get())).clamp(1, 1024)
}

/// Writes a block.
fn block(format: BlockFormat, x: &[f32], out: &mut [u8]) -> std::result::Result<(), Fault> {
    if let Some(at) = x.iter().position(|x| !x.is_finite()) {
        return Err(Fault::NotFinite(at));
    }
    if format.elements() == 32 { small::block(format, x, out) } else { large::block(format, x, out) }
}
