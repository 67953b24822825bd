//! Matrix products of fixed-point numbers: operands are cut into digits, whose products are added up.
//!
//! [`Operand::cut`] encodes one operand's way: the largest elements of its lines along K, their scales, its digits. [`encode`] encodes
//! both, and the products behind them.

use super::{Encoder, Kernels, Push};
use super::{elementwise, matmul::Axis};
use crate::contract::{Activation, Precision};
use crate::error::{Result, fail};
use smallvec::SmallVec;

// What a kernel does: values of fixed.comp's STAGE.
const LARGEST_ALONG: u32 = 0;
const LARGEST_ACROSS: u32 = 1;
const SCALES: u32 = 2;
const CUT: u32 = 3;
const PRODUCT: u32 = 4;
const WIDE: u32 = 5;

// Bits of its HAS.
const HAS_C: u32 = 1;
const HAS_BIAS: u32 = 2;
const RELU: u32 = 4;
const FIRST: u32 = 8;
const LAST: u32 = 16;
const ALONG: u32 = 32;
const ALONE: u32 = 64;

/// Digits lie in blocks of so many lines and so much of K, and lines are padded to whole blocks with zeros.
pub const LINES: u32 = 128;
pub const DEPTH: u32 = 64;

/// The most of K that one kernel adds up: 32-bit sums of digits' products hold it.
const MOST: u32 = 1 << 15;

/// How much of K a thread, or 32, looks through for the largest element.
const PART: u32 = 1 << 14;

/// A batch of products. Addresses are 0 where there is nothing.
pub struct Products {
    pub precision: Precision,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub batches: u32,
    pub a: Operand,
    pub b: Operand,
    pub c: u64,
    pub bias: u64,
    pub y: u64,
    /// Steps of A and B are matrices, those of C elements. The last one first.
    pub axes: SmallVec<[Axis; 4]>,
    pub c_row: u32,
    pub c_column: u32,
    pub alpha: f32,
    pub beta: f32,
    pub activation: Activation,
}

/// An operand as it lies in memory: matrices of lines along K.
#[derive(Clone, Copy)]
pub struct Operand {
    pub address: u64,
    pub lines: u32,
    pub matrices: u32,
    /// Elements from one line to the next, from one element of a line to the next.
    pub line_step: u32,
    pub k_step: u32,
}

/// An operand's digits and its lines' scales, at these addresses.
#[derive(Clone, Copy)]
pub struct Digits {
    pub planes: u64,
    pub scales: u64,
}

impl Operand {
    /// Encodes its digits: `[matrix][tile of LINES lines][block of DEPTH of K][plane, highest digit first][16 bytes of K][line][byte]`,
    /// and its scales, `[matrix][line]`, words.
    pub fn cut(&self, encoder: &mut dyn Encoder, precision: Precision, k: u32) -> Result<Digits> {
        let Operand { address, lines, matrices, line_step, k_step } = *self;
        let all = lines as u64 * matrices as u64;
        let along = k_step == 1;
        let blocks = matrices as u64 * lines.div_ceil(LINES) as u64 * k.div_ceil(DEPTH) as u64;
        let chunks = blocks * precision.digits() as u64 * (LINES * DEPTH / 16) as u64;
        // Few lines are looked through in parts.
        let part = if along { PART } else { PART.min(k.div_ceil(64).max(64)) };
        let parts = k.div_ceil(part);
        let of_group = if along { encoder.limits().fixed_lines } else { LINES };
        let groups = all.div_ceil(of_group as u64) * parts as u64;
        if chunks > u32::MAX as u64
            || blocks > i32::MAX as u64
            || groups > i32::MAX as u64
            || all * parts as u64 > u32::MAX as u64
        {
            fail!(
                Unsupported,
                "matmul: {matrices} matrices of {lines} lines of {k} are too many digits for one kernel"
            );
        }
        if parts > encoder.limits().iterations / 8 {
            fail!(
                Unsupported,
                "products of {k} terms are longer than this device's driver lets a kernel run its loops"
            );
        }
        let planes = encoder.scratch(16 * chunks)?;
        let scales = encoder.scratch(4 * all)?;
        let largest = if parts == 1 { scales } else { encoder.scratch(4 * all * parts as u64)? };
        let mut push = Push::new();
        for address in [address, largest, planes, scales, 0, 0, 0, 0, 0] {
            push = push.address(address);
        }
        for word in [lines, matrices, k, parts, part, line_step, k_step, lines * k, 0, 0, 0, 0, 0] {
            push = push.word(word);
        }
        let mut step = |stage, has, groups: u64| {
            encoder.dispatch(Kernels::Fixed, &[stage, precision.digits(), has], &push, [groups as u32, 1, 1])
        };
        let alone = if parts == 1 { ALONE } else { 0 };
        step(if along { LARGEST_ALONG } else { LARGEST_ACROSS }, alone, groups)?;
        if parts > 1 {
            step(SCALES, 0, all.div_ceil(LINES as u64))?;
        }
        step(CUT, if along { ALONG } else { 0 }, blocks)?;
        Ok(Digits { planes, scales })
    }
}

/// Enqueues products. The result has elements, and K is not 0.
pub fn encode(encoder: &mut dyn Encoder, products: &Products) -> Result<()> {
    let Products { precision, m, n, k, batches, activation, .. } = *products;
    let a = products.a.cut(encoder, precision, k)?;
    let b = products.b.cut(encoder, precision, k)?;
    multiply(encoder, products, a, b)?;
    match activation {
        Activation::None | Activation::Relu => Ok(()),
        _ => elementwise::activate(encoder, activation, products.y, batches * m * n),
    }
}

/// Enqueues the products of digits: some of K at a time, totals of 96 bits between them.
fn multiply(encoder: &mut dyn Encoder, products: &Products, a: Digits, b: Digits) -> Result<()> {
    let Products { precision, m, n, k, batches, c, bias, y, c_row, c_column, alpha, beta, activation, .. } = *products;
    let axes = &products.axes;
    let limits = encoder.limits();
    let [bm, bn] = limits.fixed_wide.map_or(limits.fixed_tile, |wide| wide(precision.digits()));
    let groups = m.div_ceil(bm) as u64 * n.div_ceil(bn) as u64 * batches as u64;
    if groups > i32::MAX as u64 {
        fail!(Unsupported, "matmul: {batches} products of {m}×{k} by {k}×{n} are too many for one kernel");
    }
    // Behind 64 of K a thread has gone through some 140 iterations.
    let most = (limits.iterations / 200).clamp(4, MOST / DEPTH) / 4 * 4;
    let blocks = k.div_ceil(DEPTH);
    if blocks > most && groups * (bm * bn) as u64 * 4 > u32::MAX as u64 {
        fail!(Unsupported, "matmul: {batches} products of {m}×{k} by {k}×{n} have too many totals for one kernel");
    }
    let totals = if blocks > most { encoder.scratch(groups * (bm * bn) as u64 * 16)? } else { 0 };
    let [_, a_step, b_step, c_step] = axes.last().copied().unwrap_or_default();
    let inner = axes.len().saturating_sub(1);
    let mut has = if c != 0 { HAS_C } else { 0 } | if bias != 0 { HAS_BIAS } else { 0 };
    has |= if activation == Activation::Relu { RELU } else { 0 };
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
            // A workgroup has a multiprocessor to itself, and takes tiles in turn.
            let resident = groups.min(limits.units);
            encoder.dispatch(Kernels::Fixed, &[WIDE, digits, has | part, groups], &push, [resident, 1, 1])?;
        } else {
            encoder.dispatch(Kernels::Fixed, &[PRODUCT, digits, has | part], &push, [groups, 1, 1])?;
        }
    }
    Ok(())
}
