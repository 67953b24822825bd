//! Lowers matmul, dot and ffn to kernels.

use super::tiles::{Sizes, Tile, choose};
use super::{Call, elementwise, fixed, moves, pitch_of};
use super::{Encoder, Kernels, Operand, Push};
use crate::contract::{Activation, K_BLOCK, Precision};
use crate::error::{Error, Result, Status, fail};
use crate::operand::{Packed, Place};
use crate::ops::{FfnPlan, MatmulPlan, ffn_activation};
use smallvec::SmallVec;

// The stages of a kernel: values of matmul.comp's STAGE.
const WHOLE: u32 = 0;
const BLOCKS: u32 = 1;
const MERGE: u32 = 2;
const VECTORS: u32 = 3;

/// The threads of a workgroup that merges, if the device allows that many, and of a workgroup for vectors.
const MERGING: u32 = 256;
const OF_VECTORS: u32 = 64;

/// The most hidden values that `ffn` keeps at a time.
const HIDDEN: u32 = 1 << 26;

/// A batch axis: its length, and the steps of A, B and C along it.
pub(super) type Axis = [u32; 4];

/// A batch of matrix products. The addresses of absent operands are 0.
#[derive(Clone)]
struct Product {
    sizes: Sizes,
    a: u64,
    b: u64,
    c: u64,
    bias: u64,
    y: u64,
    /// The batch axes, the last one first. Neighbouring axes are merged if their steps allow it.
    axes: SmallVec<[Axis; 4]>,
    c_row: u32,
    c_column: u32,
    alpha: f32,
    beta: f32,
    activation: Activation,
    /// The elements from one row to the next in memory, of A and B.
    pitches: [u32; 2],
}

/// `matmul` of the op table.
pub fn matmul(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let attrs = call.attrs;
    let plan = MatmulPlan::new(attrs, call.views)?;
    let (a, b) = (call.operand(0), call.operand(1));
    let c = call.input(2).filter(|_| attrs.beta != 0.0);
    let rank = plan.batch_rank();
    let strides = c.map_or([0; crate::shape::MAX_RANK], |c| plan.c_strides(c.shape));
    let mut sizes = Sizes {
        m: plan.m as u32,
        n: plan.n as u32,
        k: plan.k as u32,
        batches: plan.batches as u32,
        trans_a: attrs.trans_a,
        trans_b: attrs.trans_b,
    };
    let packed = match call.views[1].map(|view| view.place()) {
        Some(Place::Packed(packed)) if cfg!(feature = "integers") => Some(packed),
        _ => None,
    };
    let precision = packed.map_or(attrs.precision(), Packed::precision);
    let fixed = precision != Precision::F32 && sizes.k > 0;
    let mut axes = SmallVec::new();
    // Matrices that are all multiplied by one B form the rows of one matrix.
    if plan.shares_b() && !attrs.trans_a && (c.is_none() || plan.c_follows(&strides, plan.m)) {
        (sizes.m, sizes.batches) = (sizes.m * sizes.batches, 1);
    } else {
        let (mut a_step, mut b_step) = if fixed { (1, 1) } else { (sizes.m * sizes.k, sizes.k * sizes.n) };
        for i in 1..=rank {
            let n = plan.batch(i) as u32;
            // An operand that is repeated along a dimension has length 1 there, or lacks the dimension.
            let step = |shape: &crate::shape::Shape, step: &mut u32| {
                let own = if shape.rank() > 2 { shape.from_end(i + 1) as u32 } else { 1 };
                let here = if own == 1 { 0 } else { *step };
                *step *= own;
                here
            };
            let axis = [n, step(a.shape, &mut a_step), step(b.shape, &mut b_step), strides[rank - i] as u32];
            append(&mut axes, axis);
        }
    }
    if fixed {
        let Sizes { m, n, k, batches, trans_a, trans_b } = sizes;
        let operand = |from: &Operand<'_>, lines: u32, along: bool| fixed::Operand {
            address: from.address,
            lines,
            matrices: (from.elements() / k) / lines,
            line_step: if along { k } else { 1 },
            k_step: if along { 1 } else { lines },
        };
        let products = fixed::Products {
            precision,
            m,
            n,
            k,
            batches,
            a: operand(&a, m, !trans_a),
            b: operand(&b, n, trans_b),
            b_digits: packed.map(|_| fixed::Digits::at(b.address, precision, [k, n])),
            c: c.map_or(0, |c| c.address),
            bias: call.address(3),
            y: call.output.address,
            axes,
            c_row: strides[rank] as u32,
            c_column: strides[rank + 1] as u32,
            alpha: attrs.alpha,
            beta: attrs.beta,
            activation: attrs.activation.unwrap_or(Activation::None),
        };
        return fixed::encode(encoder, &products);
    }
    let product = Product {
        sizes,
        a: a.address,
        b: b.address,
        c: c.map_or(0, |c| c.address),
        bias: call.address(3),
        y: call.output.address,
        axes,
        c_row: strides[rank] as u32,
        c_column: strides[rank + 1] as u32,
        alpha: attrs.alpha,
        beta: attrs.beta,
        activation: attrs.activation.unwrap_or(Activation::None),
        pitches: [if attrs.trans_a { sizes.m } else { sizes.k }, if attrs.trans_b { sizes.k } else { sizes.n }],
    };
    product.encode(encoder)
}

/// Returns whether a matrix whose rows (or columns) have this length can be read in fours.
fn in_vectors(address: u64, side: u32) -> bool {
    address.is_multiple_of(16) && side.is_multiple_of(4)
}

#[cold]
fn too_long(k: u32) -> Error {
    let text = format!("K is {k}, which needs more loop iterations than this device's driver allows a kernel");
    Error::new(Status::Unsupported, text)
}

/// Adds an axis outside the others, or extends the outermost one.
fn append(axes: &mut SmallVec<[Axis; 4]>, axis: Axis) {
    if axis[0] == 1 {
        return;
    }
    match axes.last_mut() {
        Some(last) if (1..4).all(|i| axis[i] == last[0].wrapping_mul(last[i])) => last[0] *= axis[0],
        _ => axes.push(axis),
    }
}

/// `dot` of the op table.
pub fn dot(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let k = call.operand(0).elements();
    let product = Product::plain([1, 1, k], call.address(0), call.address(1), call.output.address);
    product.encode(encoder)
}

/// `ffn` of the op table: two products for a group of rows at a time, with the hidden values in scratch.
pub fn ffn(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let FfnPlan { rows, width, hidden, out, .. } = FfnPlan::new(call.views.into())?;
    let (rows, width, hidden, out) = (rows as u32, width as u32, hidden as u32, out as u32);
    let most = (HIDDEN / hidden.max(1)).clamp(1, rows);
    let middle = encoder.scratch(4 * (most as u64 * hidden as u64).max(1))?;
    let is_packed = |i: usize| {
        cfg!(feature = "integers") && matches!(call.views[i].map(|view| view.place()), Some(Place::Packed(_)))
    };
    let mut start = 0;
    while start < rows {
        let m = most.min(rows - start);
        let x = call.address(0) + 4 * start as u64 * width as u64;
        let y = call.output.address + 4 * start as u64 * out as u64;
        let precision = call.attrs.precision();
        if hidden > 0 {
            let mut first = Product::plain([m, hidden, width], x, call.address(1), middle);
            (first.bias, first.activation) = (call.address(2), ffn_activation(call.attrs));
            first.encode_in(encoder, precision, is_packed(1))?;
        }
        let mut second = Product::plain([m, out, hidden], middle, call.address(3), y);
        second.bias = call.address(4);
        second.encode_in(encoder, precision, is_packed(3))?;
        start += m;
    }
    Ok(())
}

impl Product {
    /// Describes a·b without anything else, for `[m, n, k]`.
    fn plain([m, n, k]: [u32; 3], a: u64, b: u64, y: u64) -> Product {
        Product {
            sizes: Sizes { m, n, k, batches: 1, trans_a: false, trans_b: false },
            a,
            b,
            c: 0,
            bias: 0,
            y,
            axes: SmallVec::new(),
            c_row: 0,
            c_column: 0,
            alpha: 1.0,
            beta: 0.0,
            activation: Activation::None,
            pitches: [k, n],
        }
    }

    /// Enqueues one product of contiguous matrices, with this precision. If b is `packed`, it is digits. The result must have elements.
    fn encode_in(self, encoder: &mut dyn Encoder, precision: Precision, packed: bool) -> Result<()> {
        let Product { sizes: Sizes { m, n, k, .. }, a, b, bias, y, activation, .. } = self;
        if precision == Precision::F32 || k == 0 {
            return self.encode(encoder);
        }
        let products = fixed::Products {
            precision,
            m,
            n,
            k,
            batches: 1,
            a: fixed::Operand { address: a, lines: m, matrices: 1, line_step: k, k_step: 1 },
            b: fixed::Operand { address: b, lines: n, matrices: 1, line_step: 1, k_step: n },
            b_digits: packed.then(|| fixed::Digits::at(b, precision, [k, n])),
            c: 0,
            bias,
            y,
            axes: SmallVec::new(),
            c_row: 0,
            c_column: 0,
            alpha: 1.0,
            beta: 0.0,
            activation,
        };
        fixed::encode(encoder, &products)
    }

    /// Enqueues the products. The result must have elements.
    fn encode(mut self, encoder: &mut dyn Encoder) -> Result<()> {
        let Product { sizes: Sizes { m, n, k, batches, .. }, y, activation, .. } = self;
        if m == 1 && n == 1 && batches == 1 && k > 0 {
            self.vectors(encoder)?;
        } else if k == 0 {
            self.merge(encoder, 0)?;
        } else {
            if encoder.limits().pitched {
                self.a = self.in_rows(encoder, 0, self.a)?;
                self.b = self.in_rows(encoder, 1, self.b)?;
            }
            self.tiles(encoder)?;
        }
        match activation {
            Activation::None | Activation::Relu => Ok(()),
            _ => elementwise::activate(encoder, activation, y, batches * m * n),
        }
    }

    /// Returns an operand whose rows can be read in fours: the operand itself if it is laid out so, or else a copy.
    fn in_rows(&mut self, encoder: &mut dyn Encoder, operand: usize, address: u64) -> Result<u64> {
        let Sizes { m, n, k, .. } = self.sizes;
        let (row, size) = (self.pitches[operand], if operand == 0 { m * k } else { k * n });
        let pitch = pitch_of(row)?;
        if row == pitch && address.is_multiple_of(16) {
            return Ok(address);
        }
        self.pitches[operand] = pitch;
        let (rows, mut matrices) = (size / row, 1);
        for axis in &mut self.axes {
            if axis[1 + operand] > 0 {
                matrices *= axis[0];
                axis[1 + operand] = axis[1 + operand] / size * rows * pitch;
            }
        }
        let rows = matrices as u64 * rows as u64;
        let (of_row, of_copy) = (4 * row as u64, 4 * pitch as u64);
        let copy = encoder.scratch(rows * of_copy)?;
        moves::copy_rows(encoder, address, copy, rows, of_row, of_copy)?;
        Ok(copy)
    }

    fn tiles(&self, encoder: &mut dyn Encoder) -> Result<()> {
        let Sizes { m, n, k, batches, .. } = self.sizes;
        let (tile, split) = choose(self.sizes, &encoder.limits(), encoder.costs());
        let tiles = [m.div_ceil(tile.bm), n.div_ceil(tile.bn)];
        let groups = tiles[0] as u64 * tiles[1] as u64 * batches as u64;
        if groups > i32::MAX as u64 {
            fail!(Unsupported, "matmul: {batches} products of {m}×{k} by {k}×{n} are too many for one kernel");
        }
        let blocks = k.div_ceil(K_BLOCK as u32);
        if !split && !tile.reaches(k, &encoder.limits()) {
            return Err(too_long(k));
        }
        let stored = 4 * blocks as u64 * batches as u64 * m as u64 * n.next_multiple_of(4) as u64;
        let scratch = if split { encoder.scratch(stored)? } else { 0 };
        let stage = if split { BLOCKS } else { WHOLE };
        let constants = self.constants(tile, stage);
        let table = match self.axes.len() {
            0 | 1 => 0,
            n => encoder.parameters(self.axes[..n - 1].as_flattened())?,
        };
        let push = self.push(scratch, table, tiles);
        let y_groups = if split { blocks } else { 1 };
        encoder.dispatch(Kernels::Matmul, &constants, &push, [groups as u32, y_groups, 1])?;
        if split { self.merge(encoder, scratch) } else { Ok(()) }
    }

    /// Enqueues the product of two vectors: first the chains of the blocks, then the merge.
    fn vectors(&self, encoder: &mut dyn Encoder) -> Result<()> {
        let blocks = self.sizes.k.div_ceil(K_BLOCK as u32);
        let scratch = encoder.scratch(16 * blocks as u64)?;
        let tile = Tile { threads: OF_VECTORS, bm: 4, bn: 4, tm: 4, tn: 4, bk: 4, buffers: 1, held: 0 };
        let mut constants = self.constants(tile, VECTORS);
        // The bit of A stands for both vectors.
        constants[8] = u32::from(in_vectors(self.a | self.b, self.sizes.k)) << 2;
        let push = self.push(scratch, 0, [1, 1]);
        encoder.dispatch(Kernels::Matmul, &constants, &push, [blocks.div_ceil(OF_VECTORS), 1, 1])?;
        self.merge(encoder, scratch)
    }

    /// Enqueues the sum of stored blocks. If K is 0, there are no blocks, and the results are computed from zeros.
    fn merge(&self, encoder: &mut dyn Encoder, scratch: u64) -> Result<()> {
        let Sizes { m, n, k, batches, .. } = self.sizes;
        let vectors = batches * m * n.div_ceil(4);
        // `own` threads of a workgroup add up results, few enough that all multiprocessors have work. The others fetch
        // blocks for them.
        let limits = encoder.limits();
        // Fetching four blocks and adding them to four results takes about 25 iterations.
        if k.div_ceil(K_BLOCK as u32) > limits.iterations / 8 {
            return Err(too_long(k));
        }
        let threads = MERGING.min(limits.threads);
        let mut own = threads;
        while own > 1 && k > 4 * K_BLOCK as u32 && vectors.div_ceil(own) < 2 * limits.units {
            own /= 2;
        }
        let tile = Tile { threads, bm: 4, bn: 4, tm: 4, tn: 4, bk: 4, buffers: own, held: 0 };
        let table = match self.axes.len() {
            0 | 1 => 0,
            n => encoder.parameters(self.axes[..n - 1].as_flattened())?,
        };
        let push = self.push(scratch, table, [1, 1]);
        let constants = self.constants(tile, MERGE);
        encoder.dispatch(Kernels::Matmul, &constants, &push, [vectors.div_ceil(own), 1, 1])
    }

    /// Returns the kernel's constants from id 10 on.
    fn constants(&self, tile: Tile, stage: u32) -> [u32; 9] {
        let Sizes { m, n, k, trans_a, trans_b, .. } = self.sizes;
        let Tile { threads, bm, bn, tm, tn, bk, buffers, .. } = tile;
        let has = [
            !trans_a,
            trans_b,
            in_vectors(self.a, if trans_a { m } else { k }),
            in_vectors(self.b, if trans_b { k } else { n }),
            in_vectors(self.y, n),
            !k.is_multiple_of(bk),
            stage == WHOLE && k > K_BLOCK as u32,
            self.c != 0,
            self.bias != 0,
            self.activation == Activation::Relu,
            trans_a && tm == 4 && bm == 4 * threads,
            !trans_b && tn == 4 && bn == 4 * threads,
        ];
        let has = has.iter().rev().fold(0, |bits, &has| bits << 1 | u32::from(has));
        [threads, bm, bn, tm, tn, bk, stage, buffers, has]
    }

    fn push(&self, scratch: u64, table: u64, tiles: [u32; 2]) -> Push {
        let Sizes { m, n, k, batches, .. } = self.sizes;
        let mut push = Push::new();
        for address in [self.a, self.b, self.c, self.bias, self.y, scratch, table] {
            push = push.address(address);
        }
        let [_, a_step, b_step, c_step] = self.axes.last().copied().unwrap_or_default();
        let inner = self.axes.len().saturating_sub(1) as u32;
        let words = [m, n, k, batches, tiles[0], tiles[1], inner, a_step, b_step, c_step, self.c_row, self.c_column];
        let push = words.iter().fold(push, |push, &word| push.word(word)).float(self.alpha).float(self.beta);
        push.word(self.pitches[0]).word(self.pitches[1])
    }
}
