//! Lowers products with matrices of quantised blocks, and their conversion to f32.
//!
//! First a kernel cuts the rows of x into integers of 8 bits. A product with few rows of x then reads blocks as they lie in memory.
//! For more rows, strips of the matrix are unpacked in scratch, so that tiles of the result share the work of unpacking.

use super::{Call, Encoder, Kernels, Limits, Push};
use crate::command::Command;
use crate::contract::BlockFormat;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::ops::{Op, QuantizedPlan};

// The stages of a kernel: values of quantized.comp's STAGE.
const CUT: u32 = 0;
const FEW: u32 = 1;
const UNPACK: u32 = 2;
const TILES: u32 = 3;
const VALUES: u32 = 4;

/// The elements of a unit, which is what one thread unpacks, and the units of a workgroup, one for each thread.
const UNIT: u32 = 32;
const UNITS: u32 = 128;

/// The elements of x that a workgroup cuts.
const CUT_ELEMENTS: u32 = 512;

/// The rows of the matrix and of x in a tile of the result, and the units of a step along K.
const TILE: [u32; 2] = [64, 32];
const STEP: u32 = 2;

/// The rows of x that a workgroup multiplies with blocks as they lie in memory, at most; half as many if less than
/// [`SHARED_OF_ROWS`] bytes of memory are shared.
const ROWS: u32 = 8;
const SHARED_OF_ROWS: u32 = 24 << 10;

/// The most rows of x for which reading blocks again for every [`ROWS`] rows costs less than unpacking them for tiles.
const FEW_ROWS: u32 = 16;

/// The most units of all of up to 32 rows of x with all rows of the matrix for which reading blocks again takes no longer than tiles on
/// tensor cores: on an H200 both take some 9 µs there.
const FEW_UNITS: u64 = 1 << 20;

/// The elements of a strip, at most, unless one tile's rows have more. An H200's L2 cache holds such a strip, unpacked.
const STRIP: u32 = 1 << 24;

/// A product. The addresses are those of cut rows, of the matrix's blocks and of the result.
pub(super) struct Product {
    format: BlockFormat,
    m: u32,
    n: u32,
    /// The units of a row.
    units: u32,
    q: u64,
    q_numbers: u64,
    w: u64,
    y: u64,
}

/// What a kernel of a product does: values of quantized.comp's push constants.
#[derive(Clone, Copy, Default)]
pub(super) struct Work {
    pub from: u64,
    pub w: u64,
    pub w_numbers: u64,
    pub begin: u32,
    pub end: u32,
    pub steps: u32,
    pub rows: u32,
    pub first: u32,
    pub count: u32,
    /// What x is made of, and where its rows go, if the kernel makes them: see `quantized_rows`. The other rows of a sum are at `w`
    /// then, and its result is at `w_numbers`.
    pub origin: u32,
    pub eps: f32,
    pub made: u64,
}

/// Rows of x as integers. Products with the same x share them.
struct Cut {
    x: u64,
    elements: u32,
    /// The elements of a block, which has one scale.
    of_block: usize,
    q: u64,
    q_numbers: u64,
}

/// Encodes the products with which the commands begin, as long as they have the same x. Returns how many there are, or 0 for x of
/// another dtype than f32.
pub fn encode(encoder: &mut dyn Encoder, commands: &[Command<'_>]) -> Result<usize> {
    let mut cut = None;
    for (i, command) in commands.iter().enumerate() {
        if command.op() != Op::QuantizedMatmul {
            return Ok(i);
        }
        let call = Call::of(encoder, command)?;
        let x = call.operand(0);
        let serves = |cut: &Cut| {
            let of_block = call.attrs.format.map_or(0, BlockFormat::elements);
            (cut.x, cut.elements, cut.of_block) == (x.address, x.elements(), of_block)
        };
        let shares = cut.as_ref().map_or(i == 0, serves);
        if !shares || x.dtype != DType::F32 || call.output.elements() == 0 {
            return Ok(i);
        }
        product(encoder, &call, &mut cut)?;
    }
    Ok(commands.len())
}

/// `quantized_matmul` of the op table.
pub fn quantized_matmul(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    product(encoder, call, &mut None)
}

/// Enqueues a product, with rows that are cut already or that it cuts.
fn product(encoder: &mut dyn Encoder, call: &Call<'_>, cut: &mut Option<Cut>) -> Result<()> {
    let QuantizedPlan { format, m, n, k } = QuantizedPlan::new(call.attrs, call.views.into())?;
    // An operand without elements may have a dimension beyond 32 bits, but not here: the result has elements, and K is x's.
    if m as u64 * n as u64 > u32::MAX as u64 || k > u32::MAX as usize {
        fail!(Unsupported, "quantized_matmul: a product of {m}×{k} by {k}×{n} is too large for one kernel");
    }
    let units = k as u32 / UNIT;
    let (m, n, w, y) = (m as u32, n as u32, call.address(1), call.output.address);
    let mut product = Product { format, m, n, units, q: 0, q_numbers: 0, w, y };
    if units == 0 {
        // Without blocks, results are sums of nothing, in whatever rows.
        (product.m, product.n) = (1, m * n);
        return product.few(encoder, &Work::default());
    }
    let elements = m * k as u32;
    if cut.is_none() {
        let (x, of_block) = (call.address(0), format.elements());
        let (q, q_numbers) = (encoder.scratch(elements as u64)?, encoder.scratch(8 * (elements / UNIT) as u64)?);
        *cut = Some(Cut { x, elements, of_block, q, q_numbers });
        (product.q, product.q_numbers) = (q, q_numbers);
        let work = Work { from: x, count: elements, ..Work::default() };
        product.dispatch(encoder, CUT, &work, [elements.div_ceil(CUT_ELEMENTS), 1])?;
    } else if let Some(cut) = cut {
        (product.q, product.q_numbers) = (cut.q, cut.q_numbers);
    }
    let few = match encoder.limits().tensor_tiles {
        true => {
            let units = m as u64 * n as u64 * units as u64;
            m <= ROWS || m <= 4 * ROWS && n >= TILE[0] && units <= FEW_UNITS
        }
        false => m <= FEW_ROWS,
    };
    if few { product.few(encoder, &Work::default()) } else { product.tiles(encoder) }
}

/// `dequantize` of the op table.
pub fn dequantize(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let Some(format) = call.attrs.format else { fail!(Internal, "dequantize has no format") };
    let count = call.output.elements() / UNIT;
    let y = call.output.address;
    let values = Product { format, m: 0, n: 0, units: 0, q: 0, q_numbers: 0, w: 0, y };
    let work = Work { from: call.address(0), count, ..Work::default() };
    values.dispatch(encoder, VALUES, &work, [count.div_ceil(UNITS), 1])
}

/// Returns how many steps a thread may run, with `each` loop iterations in a step, in multiples of `multiple`.
fn most_steps(limits: &Limits, each: u32, multiple: u32) -> u32 {
    (limits.iterations / each / multiple).max(1) * multiple
}

impl Product {
    /// A product of [m, n, k] whose kernel makes x of what is at these addresses.
    pub fn new(call: &Call<'_>, [m, n, k]: [usize; 3], [x, by]: [u64; 2]) -> Result<Product> {
        let Some(format) = call.attrs.format else { fail!(Internal, "quantized_matmul has no format") };
        let (m, n, units) = (m as u32, n as u32, k as u32 / UNIT);
        Ok(Product { format, m, n, units, q: x, q_numbers: by, w: call.address(1), y: call.output.address })
    }

    /// Enqueues a kernel.
    fn dispatch(&self, encoder: &mut dyn Encoder, stage: u32, work: &Work, [x, y]: [u32; 2]) -> Result<()> {
        let Product { format, m, n, units, .. } = *self;
        let Work { from, w, w_numbers, begin, end, steps, rows, first, count, origin, eps, made } = *work;
        let mut push = Push::new();
        for address in [from, self.q, self.q_numbers, w, w_numbers, self.y] {
            push = push.address(address);
        }
        for word in [m, n, units, begin, end, steps, rows, first, count] {
            push = push.word(word);
        }
        if encoder.limits().makes_rows {
            push = push.word(origin).float(eps).word(0).address(made);
        }
        let rows = if stage == FEW { self.rows_at_once(&encoder.limits()) } else { 1 };
        encoder.dispatch(Kernels::Quantized, &[stage, format as u32, rows], &push, [x, y, 1])
    }

    /// Returns the rows of x that a workgroup takes.
    fn rows_at_once(&self, limits: &Limits) -> u32 {
        let most = if limits.shared_memory < SHARED_OF_ROWS { ROWS / 2 } else { ROWS };
        self.m.div_ceil(self.m.div_ceil(most))
    }

    /// Enqueues a product for which workgroups read blocks as they lie in memory. Totals of earlier steps wait in the result. `work` says
    /// what else they do.
    pub fn few(&self, encoder: &mut dyn Encoder, work: &Work) -> Result<()> {
        let Product { m, n, units, w, .. } = *self;
        let limits = encoder.limits();
        let rows = self.rows_at_once(&limits);
        // Whole rows of the matrix are one step.
        let whole = UNITS / units.clamp(1, UNITS);
        let (groups, across) = (n.div_ceil(whole), m.div_ceil(rows));
        // A workgroup goes on to other rows of the matrix, unless the device counts iterations.
        let resident = if limits.iterations == u32::MAX { (16 * limits.units).div_ceil(across).max(1) } else { groups };
        let count = groups.min(resident);
        let steps = units.div_ceil(UNITS).max(1);
        let most = most_steps(&limits, 40 * (rows + 1), 1);
        for begin in (0..steps).step_by(most as usize) {
            let end = steps.min(begin + most.min(steps));
            let work = Work { from: w, begin, end, steps, count, ..*work };
            self.dispatch(encoder, FEW, &work, [count, across])?;
        }
        Ok(())
    }

    /// Enqueues a product in tiles: strips of the matrix are unpacked and multiplied, one after the other, in the same scratch.
    fn tiles(&self, encoder: &mut dyn Encoder) -> Result<()> {
        let Product { format, m, n, units, w, .. } = *self;
        let limits = encoder.limits();
        // At most 8,192 tiles are side by side in a strip.
        let of_strip = n.min((STRIP / (UNIT * units) / TILE[0]).max(1) * TILE[0]);
        let row_bytes = units as u64 * UNIT as u64 / format.elements() as u64 * format.bytes() as u64;
        let count = of_strip as u64 * units as u64;
        if 2 * count > u32::MAX as u64 {
            fail!(Unsupported, "quantized_matmul: rows of {} elements are too long for one kernel", units as u64 * 32);
        }
        let (unpacked, numbers) = (encoder.scratch(32 * count)?, encoder.scratch(16 * count)?);
        let steps = units.div_ceil(STEP);
        // Steps of a kernel are whole chunks of 256.
        let most = most_steps(&limits, 500, 4);
        for first in (0..n).step_by(of_strip as usize) {
            let rows = of_strip.min(n - first);
            let from = w + first as u64 * row_bytes;
            let work = Work {
                from,
                w: unpacked,
                w_numbers: numbers,
                steps,
                rows,
                first,
                count: rows * units,
                ..Work::default()
            };
            self.dispatch(encoder, UNPACK, &work, [(rows * units).div_ceil(UNITS), 1])?;
            for begin in (0..steps).step_by(most as usize) {
                let end = steps.min(begin + most.min(steps));
                self.dispatch(
                    encoder,
                    TILES,
                    &Work { begin, end, ..work },
                    [m.div_ceil(TILE[1]), rows.div_ceil(TILE[0])],
                )?;
            }
        }
        Ok(())
    }
}
