//! Lowers matrix products of fixed-point numbers to kernels: operands are cut into digits, whose products are added up.
//!
//! [`cut`] encodes the cutting of both operands: the largest elements of their lines along K, the lines' scales, and
//! their digits. [`encode`] encodes this and the products after it.

use super::{Encoder, Kernels, Limits, Matrices, Push};
use super::{elementwise, matmul::Axis};
use crate::contract::{Activation, Precision};
use crate::error::{Result, fail};
#[cfg(feature = "integers")]
use crate::hal::{Buffer, Slice, check_slice};
#[cfg(feature = "integers")]
use crate::operand::Place;
use smallvec::SmallVec;

// The stages of a kernel: values of fixed.comp's STAGE.
const PRODUCT: u32 = 1;
const WIDE: u32 = 2;
const MOST_OF_PARTS: u32 = 3;
const DIGITS: u32 = 4;
/// Products of few rows with digits of B, which CUDA's kernels of integers have.
pub const FEW: u32 = 2;

/// The bytes of shared memory that this kernel has besides: the rows' largest elements and scales.
const FEW_OWN: u32 = 32;

/// The most rows of these, and the columns of a workgroup.
const FEW_ROWS: u32 = 4;
const FEW_COLUMNS: u32 = 32;

// The bits of fixed.comp's HAS.
const HAS_C: u32 = 1;
const HAS_BIAS: u32 = 2;
const RELU: u32 = 4;
const FIRST: u32 = 8;
const LAST: u32 = 16;
const A_ALONG: u32 = 32;
const B_ALONG: u32 = 64;
const GIVEN: u32 = 128;

/// The rows and columns of a tile of matrices.comp.
const MATRICES_TILE: [u32; 2] = [64, 64];

/// Digits are stored in blocks of LINES lines and DEPTH of K. K is padded with zeros; lines that no matrix has may hold anything.
const LINES: u32 = 128;
const DEPTH: u32 = 64;

/// The number of lines of a workgroup that looks for the largest elements of parts of them.
const PARTED: u32 = 32;

/// The elements along K that a workgroup of CUDA's kernel has in registers when it cuts PARTED whole lines.
const HELD: u32 = 512;

/// The most of K that one kernel adds up. The sums of the digits' products fit in 32 bits up to this length.
const MOST: u32 = 1 << 15;

/// A batch of products. The addresses of absent operands are 0.
pub struct Products {
    pub precision: Precision,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub batches: u32,
    pub a: Operand,
    pub b: Operand,
    /// B's digits, if it has been cut: it is not read then.
    pub b_digits: Option<Digits>,
    pub c: u64,
    pub bias: u64,
    pub y: u64,
    /// The batch axes, the last one first. A step counts matrices for A and B, and elements for C.
    pub axes: SmallVec<[Axis; 4]>,
    pub c_row: u32,
    pub c_column: u32,
    pub alpha: f32,
    pub beta: f32,
    pub activation: Activation,
}

/// An operand in memory: matrices of lines along K.
#[derive(Clone, Copy)]
pub struct Operand {
    pub address: u64,
    pub lines: u32,
    pub matrices: u32,
    /// The elements from one line to the next, and from one element of a line to the next.
    pub line_step: u32,
    pub k_step: u32,
}

/// The addresses of an operand's digits and of its lines' scales.
#[derive(Clone, Copy)]
pub struct Digits {
    pub planes: u64,
    pub scales: u64,
}

impl Digits {
    const NONE: Digits = Digits { planes: 0, scales: 0 };

    /// Returns those of a matrix B of sizes `[k, n]`, which [`cut_matrix`] has cut.
    pub fn at(address: u64, precision: Precision, [k, n]: [u32; 2]) -> Digits {
        Digits { planes: address, scales: address + planes_bytes(precision, [k as usize, n as usize]) as u64 }
    }

    /// Returns those from a matrix on.
    pub fn from(self, operand: &Operand, precision: Precision, k: u32, matrix: u32) -> Digits {
        let each = operand.lines.div_ceil(LINES) as u64 * k.div_ceil(DEPTH) as u64 * (LINES * DEPTH) as u64;
        Digits {
            planes: self.planes + matrix as u64 * each * precision.digits() as u64,
            scales: self.scales + 4 * matrix as u64 * operand.lines as u64,
        }
    }
}

impl Operand {
    /// Returns the number of blocks of LINES lines in all matrices.
    fn tiles(&self) -> u64 {
        self.matrices as u64 * self.lines.div_ceil(LINES) as u64
    }

    /// An operand that isn't there.
    pub const NONE: Operand = Operand { address: 0, lines: 0, matrices: 0, line_step: 1, k_step: 1 };

    /// Allocates its digits, `[matrix][tile of LINES lines][block of DEPTH of K][plane, highest digit first][16 bytes
    /// of K][line][byte]`, and its scales, one word each, `[matrix][line]`.
    pub fn room(&self, encoder: &mut dyn Encoder, precision: Precision, k: u32) -> Result<Digits> {
        let Operand { lines, matrices, .. } = *self;
        let chunks = self.tiles() * k.div_ceil(DEPTH) as u64 * precision.digits() as u64 * (LINES * DEPTH / 16) as u64;
        if chunks > u32::MAX as u64 {
            fail!(
                Unsupported,
                "matmul: {matrices} matrices of {lines} lines of {k} have too many digits for one kernel"
            );
        }
        Ok(Digits {
            planes: encoder.scratch(16 * chunks)?,
            scales: encoder.scratch(4 * lines as u64 * matrices as u64)?,
        })
    }
}

/// The cutting of two operands into digits.
struct Cutting<'a> {
    precision: Precision,
    k: u32,
    operands: [&'a Operand; 2],
    digits: [Digits; 2],
    /// B has the scale of attention's values.
    given: bool,
}

impl Cutting<'_> {
    /// The bits that say which operands' lines are contiguous, and whether B's scale is given.
    fn bits(&self) -> u32 {
        let [a, b] = self.operands;
        let of = |operand: &Operand, bit| if operand.k_step == 1 { bit } else { 0 };
        of(a, A_ALONG) | of(b, B_ALONG) | if self.given { GIVEN } else { 0 }
    }

    /// Encodes a kernel that has so many workgroups for each operand. `most` is where the largest elements of parts of
    /// lines are.
    fn dispatch(
        &self,
        encoder: &mut dyn Encoder,
        stage: u32,
        groups: [u64; 2],
        most: [u64; 2],
        part: u32,
    ) -> Result<()> {
        let ([a, b], [of_a, of_b], [a_to, b_to]) = (self.operands, groups, self.digits);
        if of_a + of_b > i32::MAX as u64 {
            fail!(Unsupported, "matmul: operands of {of_a} and {of_b} groups of lines are too many for one kernel");
        }
        let mut push = Push::new();
        for address in [a.address, b.address, a_to.planes, b_to.planes, a_to.scales, b_to.scales, most[0], most[1], 0] {
            push = push.address(address);
        }
        let steps = [a.line_step, a.k_step, b.line_step, b.k_step];
        for word in [self.k, of_a as u32, a.lines, b.lines, part].into_iter().chain(steps).chain([0; 4]) {
            push = push.word(word);
        }
        let constants = [stage, self.precision.digits(), self.bits()];
        encoder.dispatch(Kernels::Fixed, &constants, &push, [(of_a + of_b) as u32, 1, 1])
    }
}

/// Returns the bytes of the planes of a matrix `[k, n]`.
fn planes_bytes(precision: Precision, [k, n]: [usize; 2]) -> usize {
    n.next_multiple_of(LINES as usize) * k.next_multiple_of(DEPTH as usize) * precision.digits() as usize
}

/// Returns the bytes of the digits and scales of a matrix `[k, n]`. `None` if it is empty or too large for one kernel.
#[cfg(feature = "integers")]
pub fn digits_bytes(precision: Precision, [k, n]: [usize; 2]) -> Option<usize> {
    let fits = k > 0 && n > 0 && k.checked_mul(n)? <= super::MOST;
    let bytes = planes_bytes(precision, [k, n]);
    (fits && bytes / 16 <= u32::MAX as usize).then(|| bytes + 4 * n)
}

/// Encodes the cutting of a matrix `[k, n]`, which lies there as `[n, k]` if it is `transposed`. `to` has [`digits_bytes`].
#[cfg(feature = "integers")]
#[inline(never)]
pub fn cut_matrix(
    encoder: &mut dyn Encoder,
    from: Slice<'_>,
    precision: Precision,
    [k, n]: [usize; 2],
    transposed: bool,
    to: &dyn Buffer,
) -> Result<()> {
    check_slice("cut", from.buffer.size(), from.offset, from.bytes)?;
    if from.bytes != 4 * k * n || digits_bytes(precision, [k, n]) != Some(to.size()) {
        fail!(InvalidArgument, "cut: {} bytes to {} are not those of {k}×{n}", from.bytes, to.size());
    }
    let (k, n) = (k as u32, n as u32);
    let (line_step, k_step) = if transposed { (k, 1) } else { (1, n) };
    let address = encoder.address(Place::Buffer(from.buffer, from.offset))?;
    let operand = Operand { address, lines: n, matrices: 1, line_step, k_step };
    let to = encoder.address(Place::Buffer(to, 0))?;
    cut_one(encoder, precision, k, &operand, Digits::at(to, precision, [k, n]))
}

/// Encodes the cutting of one operand.
pub fn cut_one(encoder: &mut dyn Encoder, precision: Precision, k: u32, operand: &Operand, to: Digits) -> Result<()> {
    let (operands, digits) = ([operand, &Operand::NONE], [to, Digits::NONE]);
    cut(encoder, Cutting { precision, k, operands, digits, given: false })
}

/// Encodes the cutting of attention's values, which have their scale.
pub fn cut_values(encoder: &mut dyn Encoder, precision: Precision, k: u32, values: &Operand, to: Digits) -> Result<()> {
    let (operands, digits) = ([&Operand::NONE, values], [Digits::NONE, to]);
    cut(encoder, Cutting { precision, k, operands, digits, given: true })
}

fn cut(encoder: &mut dyn Encoder, cutting: Cutting<'_>) -> Result<()> {
    let (k, operands) = (cutting.k, cutting.operands);
    let limits = encoder.limits();
    let of = |lines: u32, steps: u32| {
        operands.map(|operand| operand.matrices as u64 * operand.lines.div_ceil(lines) as u64 * steps as u64)
    };
    // One kernel finds the largest elements and cuts, unless it would read long lines twice on few multiprocessors.
    let groups: u64 = of(PARTED, 1).iter().sum();
    let whole = limits.finds_most() && !cutting.given && (k <= HELD || 4 * groups >= 3 * limits.units as u64);
    let lines = operands.map(|operand| operand.lines as u64 * operand.matrices as u64);
    let part = if whole { k } else { k.div_ceil(16).next_multiple_of(DEPTH) };
    let parts = k.div_ceil(part);
    let mut most = [0; 2];
    if !whole && !cutting.given {
        most[0] = encoder.scratch(4 * (lines[0] + lines[1]) * parts as u64)?;
        most[1] = most[0] + 4 * lines[0] * parts as u64;
        cutting.dispatch(encoder, MOST_OF_PARTS, of(PARTED, parts), most, part)?;
    }
    let groups = if whole { of(PARTED, 1) } else { of(LINES, k.div_ceil(DEPTH)) };
    cutting.dispatch(encoder, DIGITS, groups, most, part)
}

/// Returns the bytes of shared memory of the kernel for few rows: their digits, in whose place the totals of 16 warps are later.
pub fn few_bytes(m: u32, blocks: u32) -> u32 {
    (3 * DEPTH * blocks * m).max(8 * 32 * 16 * m)
}

/// Whether the kernel for few rows computes products, whose B is digits.
fn few(products: &Products, limits: &Limits) -> bool {
    let Products { m, k, batches, ref a, .. } = *products;
    limits.finds_most()
        && m <= FEW_ROWS
        && batches == 1
        && a.k_step == 1
        && k <= MOST
        && few_bytes(m, k.div_ceil(DEPTH)) + FEW_OWN <= limits.shared_memory
}

/// Enqueues a product of few rows with digits of B. The kernel cuts the rows.
fn multiply_few(encoder: &mut dyn Encoder, products: &Products, b: Digits) -> Result<()> {
    let Products { precision, m, n, k, c, bias, y, c_row, c_column, alpha, beta, .. } = *products;
    let mut push = Push::new();
    for address in [products.a.address, b.planes, b.scales, c, bias, y] {
        push = push.address(address);
    }
    for word in [m, n, k, k.div_ceil(DEPTH), c_row, c_column] {
        push = push.word(word);
    }
    let push = push.float(alpha).float(beta);
    let constants = [FEW, precision.digits(), products.bits()];
    encoder.dispatch(Kernels::Integers, &constants, &push, [n.div_ceil(FEW_COLUMNS), 1, 1])
}

impl Products {
    /// The bits that say what follows the product.
    fn bits(&self) -> u32 {
        let bit = |there: bool, bit: u32| if there { bit } else { 0 };
        bit(self.c != 0, HAS_C) | bit(self.bias != 0, HAS_BIAS) | bit(self.activation == Activation::Relu, RELU)
    }
}

/// Enqueues products. The result must have elements, and K must not be 0.
pub fn encode(encoder: &mut dyn Encoder, products: &Products) -> Result<()> {
    let Products { precision, k, .. } = *products;
    let operands = [&products.a, &products.b];
    let digits = match products.b_digits {
        Some(b) if cfg!(feature = "integers") => {
            if few(products, &encoder.limits()) {
                multiply_few(encoder, products, b)?;
                return activate(encoder, products);
            }
            let a = operands[0].room(encoder, precision, k)?;
            cut_one(encoder, precision, k, operands[0], a)?;
            [a, b]
        }
        _ => {
            let a = operands[0].room(encoder, precision, k)?;
            let digits = [a, operands[1].room(encoder, precision, k)?];
            cut(encoder, Cutting { precision, k, operands, digits, given: false })?;
            digits
        }
    };
    multiply(encoder, products, digits)?;
    activate(encoder, products)
}

/// Enqueues the activation, unless it is one of the product's kernel.
fn activate(encoder: &mut dyn Encoder, products: &Products) -> Result<()> {
    let Products { m, n, batches, y, activation, .. } = *products;
    match activation {
        Activation::None | Activation::Relu => Ok(()),
        _ => elementwise::activate(encoder, activation, y, batches * m * n),
    }
}

/// Enqueues the products of digits. Each kernel takes a part of K, and totals of 96 bits go from one to the next.
pub fn multiply(encoder: &mut dyn Encoder, products: &Products, [a, b]: [Digits; 2]) -> Result<()> {
    let Products { precision, m, n, k, batches, c, bias, y, c_row, c_column, alpha, beta, .. } = *products;
    let axes = &products.axes;
    let limits = encoder.limits();
    let [bm, bn] = match (limits.fixed_wide, limits.matrices) {
        (Some(wide), _) => wide(&limits, precision.digits(), [m, n, batches]),
        (None, Some(_)) => MATRICES_TILE,
        (None, None) => limits.fixed_tile,
    };
    let groups = m.div_ceil(bm) as u64 * n.div_ceil(bn) as u64 * batches as u64;
    if groups > i32::MAX as u64 {
        fail!(Unsupported, "matmul: {batches} products of {m}×{k} by {k}×{n} are too many for one kernel");
    }
    // A thread runs about 140 iterations for each 64 of K.
    let most = (limits.iterations / 200).clamp(4, MOST / DEPTH) / 4 * 4;
    let blocks = k.div_ceil(DEPTH);
    if blocks > most && groups * (bm * bn) as u64 * 4 > u32::MAX as u64 {
        fail!(Unsupported, "matmul: {batches} products of {m}×{k} by {k}×{n} have too many totals for one kernel");
    }
    let totals = if blocks > most { encoder.scratch(groups * (bm * bn) as u64 * 16)? } else { 0 };
    let [_, a_step, b_step, c_step] = axes.last().copied().unwrap_or_default();
    let inner = axes.len().saturating_sub(1);
    let has = products.bits();
    for begin in (0..blocks).step_by(most as usize) {
        let end = blocks.min(begin + most);
        let part = if begin == 0 { FIRST } else { 0 } | if end == blocks { LAST } else { 0 };
        let table = if inner == 0 { 0 } else { encoder.parameters(axes[..inner].as_flattened())? };
        let mut push = Push::new();
        for address in [a.planes, b.planes, a.scales, b.scales, c, bias, y, totals, table] {
            push = push.address(address);
        }
        for word in [m, n, blocks, begin, end, inner as u32, a_step, b_step, c_step, c_row, c_column] {
            push = push.word(word);
        }
        let push = push.float(alpha).float(beta);
        let (digits, groups) = (precision.digits(), groups as u32);
        if limits.fixed_wide.is_some() {
            // A workgroup has a multiprocessor to itself, and takes one tile after the other.
            let resident = groups.min(limits.units);
            encoder.dispatch(Kernels::Fixed, &[WIDE, digits, has | part, groups, bn], &push, [resident, 1, 1])?;
        } else if let Some(Matrices { subgroup, k }) = limits.matrices {
            let constants = [4 * subgroup, digits, has | part, k];
            encoder.dispatch(Kernels::Matrices, &constants, &push, [groups, 1, 1])?;
        } else {
            encoder.dispatch(Kernels::Fixed, &[PRODUCT, digits, has | part], &push, [groups, 1, 1])?;
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    /// Their digits, and what the kernel has besides, fit in the GPU's shared memory.
    #[test]
    fn few_rows_fit_in_shared_memory() {
        for kibibytes in [48, 64, 96, 99, 163, 227] {
            let limits = Limits { shared_memory: kibibytes << 10, ..crate::hal::cuda::test_limits(80) };
            let takes = |m: u32, k: u32| {
                let a = Operand { address: 0, lines: m, matrices: 1, line_step: k, k_step: 1 };
                let products = Products {
                    precision: Precision::Fixed24,
                    m,
                    n: 64,
                    k,
                    batches: 1,
                    a,
                    b: Operand::NONE,
                    b_digits: None,
                    c: 0,
                    bias: 0,
                    y: 0,
                    axes: SmallVec::new(),
                    c_row: 0,
                    c_column: 0,
                    alpha: 1.0,
                    beta: 0.0,
                    activation: Activation::None,
                };
                few(&products, &limits)
            };
            assert!(takes(1, 4096) && takes(4, 1024) && !takes(5, 64) && !takes(1, MOST + 1));
            for m in 1..=FEW_ROWS {
                for blocks in 1..=MOST / DEPTH {
                    let fits = few_bytes(m, blocks) < limits.shared_memory;
                    assert_eq!(takes(m, DEPTH * blocks), fits, "{kibibytes} KiB, {m} rows, {blocks} blocks");
                }
            }
        }
    }
}
