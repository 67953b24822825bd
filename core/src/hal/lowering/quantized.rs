//! Lowers products with matrices of quantised blocks, and their conversion to f32.
//!
//! First a kernel cuts the rows of x into integers of 8 bits. A product with few rows of x then reads blocks as they lie in memory.
//! For more rows, strips of the matrix are unpacked in scratch, so that tiles of the result share the work of unpacking.

use super::heads::{Range, overlap};
use super::{Call, Encoder, Kernels, Limits, Operand, Push};
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
pub(super) struct Cut {
    x: u64,
    elements: u32,
    /// The elements of a block, which has one scale.
    of_block: usize,
    q: u64,
    q_numbers: u64,
}

impl Cut {
    /// Memory for the integers of x.
    fn new(encoder: &mut dyn Encoder, x: u64, elements: u32, format: BlockFormat) -> Result<Cut> {
        let (q, q_numbers) = (encoder.scratch(elements.into())?, encoder.scratch(8 * u64::from(elements / UNIT))?);
        Ok(Cut { x, elements, of_block: format.elements(), q, q_numbers })
    }
}

/// Encodes the products with which the commands begin, as long as they have the same x, and a sum behind the last of them. Returns how
/// many commands that are, or 0 for x of another dtype than f32.
pub fn encode(encoder: &mut dyn Encoder, commands: &[Command<'_>]) -> Result<usize> {
    products(encoder, commands, None)
}

/// The same, with rows of x that may be cut already.
pub(super) fn products(encoder: &mut dyn Encoder, commands: &[Command<'_>], mut cut: Option<Cut>) -> Result<usize> {
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
        let sum = match commands.get(i + 1) {
            Some(sum) if encoder.limits().makes_rows() => Sum::behind(encoder, &call.output, sum)?,
            _ => None,
        };
        if product(encoder, &call, &mut cut, sum)? {
            return Ok(i + 2);
        }
    }
    Ok(commands.len())
}

/// `quantized_matmul` of the op table.
pub fn quantized_matmul(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    product(encoder, call, &mut None, None).map(drop)
}

/// Rows that are added to a product's result, and where the sum goes.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    pub other: u64,
    pub to: u64,
}

impl Sum {
    /// What a command adds to a result, if a product's kernel can add it: a thread then reads only the elements that it writes.
    pub fn behind(encoder: &mut dyn Encoder, result: &Operand<'_>, sum: &Command<'_>) -> Result<Option<Sum>> {
        if sum.op() != Op::Add {
            return Ok(None);
        }
        let sum = Call::of(encoder, sum)?;
        let [a, b] = [sum.operand(0), sum.operand(1)];
        let whole =
            |operand: Operand<'_>| operand.dtype == DType::F32 && operand.shape.elements() == result.shape.elements();
        let fits =
            [a, b, sum.output].into_iter().all(whole) && (a.address == result.address) != (b.address == result.address);
        let other = if a.address == result.address { b.address } else { a.address };
        let range = |address| (address, 4 * u64::from(result.elements()));
        let (of_other, of_result, to) = (range(other), range(result.address), range(sum.output.address));
        let apart = |a: Range, b: Range| a == b || !overlap(a, b);
        let fits = fits && apart(to, of_result) && apart(to, of_other) && !overlap(of_other, of_result);
        Ok(fits.then_some(Sum { other, to: sum.output.address }))
    }
}

/// Enqueues a product, with rows that are cut already or that it cuts. Returns whether its kernel adds the sum.
fn product(encoder: &mut dyn Encoder, call: &Call<'_>, cut: &mut Option<Cut>, sum: Option<Sum>) -> Result<bool> {
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
        product.few(encoder, &Work::default())?;
        return Ok(false);
    }
    let cut = match cut {
        Some(cut) => cut,
        none => {
            let x = call.address(0);
            let made = Cut::new(encoder, x, m * k as u32, format)?;
            (product.q, product.q_numbers) = (made.q, made.q_numbers);
            let work = Work { from: x, count: made.elements, ..Work::default() };
            product.dispatch(encoder, CUT, &work, [made.elements.div_ceil(CUT_ELEMENTS), 1])?;
            none.insert(made)
        }
    };
    (product.q, product.q_numbers) = (cut.q, cut.q_numbers);
    let few = match encoder.limits().tensor_tiles {
        true => {
            let units = m as u64 * n as u64 * units as u64;
            m <= ROWS || m <= 4 * ROWS && n >= TILE[0] && units <= FEW_UNITS
        }
        false => m <= FEW_ROWS,
    };
    if !few {
        product.tiles(encoder)?;
        return Ok(false);
    }
    let Sum { other: w, to: w_numbers } = sum.unwrap_or(Sum { other: 0, to: 0 });
    product.few(encoder, &Work { w, w_numbers, ..Work::default() })?;
    Ok(sum.is_some())
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

    /// Enqueues the kernel that makes the rows of x, at `x`, and cuts them. `copies` are where copies of what they are made of go.
    pub fn cut(mut self, encoder: &mut dyn Encoder, x: u64, work: &Work, copies: [u64; 2]) -> Result<Cut> {
        let cut = Cut::new(encoder, x, self.m * UNIT * self.units, self.format)?;
        (self.q, self.q_numbers, self.y) = (cut.q, cut.q_numbers, copies[0]);
        self.dispatch(encoder, CUT, &Work { w_numbers: copies[1], ..*work }, [self.m, 1])?;
        Ok(cut)
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
        if encoder.limits().makes_rows() {
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
