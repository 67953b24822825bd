//! Lowers attention whose products are computed in exact integers. A kernel cuts the rows of values. A product gives the scores of all
//! keys. A kernel makes weights of them, in blocks of keys. Products of each block's weights and values follow, and a kernel merges
//! their results.
//!
//! Query rows are taken in chunks, one after the other in the same memory.

use super::attention::Heads;
use super::fixed::{self, Digits, Operand, Products};
use super::{Call, Encoder, Kernels, Push, attention_whole};
use crate::contract::{Activation, KEY_BLOCK, Precision};
use crate::error::{Result, fail};
use crate::ops::AttentionPlan;
use smallvec::smallvec;

// The stages of a kernel: values of attention.comp's STAGE.
const WEIGHTS: u32 = 3;
const JOIN: u32 = 4;
const ROWS: u32 = 5;

// The bits of attention.comp's HAS.
const HIDDEN: u32 = 8;
const MASK: u32 = 16;

pub const BLOCK: u32 = KEY_BLOCK as u32;
/// The threads of a workgroup: one for each key of a block.
const THREADS: u32 = BLOCK;
/// The most bytes of a chunk's scores, weights and results of blocks.
const MOST: u64 = 1 << 28;
/// The most workgroups in each direction, and so the most rows of a chunk.
const GROUPS: u32 = 0xffff;

/// A call.
pub(super) struct Fixed {
    pub precision: Precision,
    pub of: Heads,
    pub matrices: u32,
    /// Of a matrix: the queries of heads that share keys.
    pub rows: u32,
    pub keys: u32,
    pub width: u32,
    pub columns: u32,
    pub blocks: u32,
    pub scale: f32,
    pub q: u64,
    pub k: u64,
    pub v: u64,
    pub y: u64,
}

/// Rows of some matrices: all of them, or some of one matrix.
struct Chunk {
    matrix: u32,
    matrices: u32,
    row: u32,
    rows: u32,
}

/// The digits of keys and values, and memory that chunks use one after the other.
struct Room {
    keys: Digits,
    values: Digits,
    /// The factors of keys' weights: `[matrix][key]`, up to a whole block.
    factors: u64,
    /// The digits of queries and weights.
    queries: Digits,
    weights: Digits,
    /// As they were before.
    scores: u64,
    uncut: u64,
    /// Each block's results, and its MAX and SUM.
    results: u64,
    states: u64,
}

/// `attention` with a precision other than f32. There must be keys.
pub(super) fn encode(encoder: &mut dyn Encoder, call: &Call<'_>, plan: &AttentionPlan) -> Result<()> {
    let of = Heads::new(call, plan);
    let precision = call.attrs.precision();
    let (keys, width, columns) = (plan.keys as u32, plan.width as u32, plan.value_width as u32);
    let matrices = of.batches * of.kv_heads;
    let rows = of.heads / of.kv_heads.max(1) * of.queries;
    let blocks = keys.div_ceil(BLOCK);
    if blocks > GROUPS {
        fail!(
            Unsupported,
            "attention: {keys} keys; in {}, GPU kernels take up to {}",
            precision.name(),
            GROUPS * BLOCK
        );
    }
    let fixed = Fixed {
        precision,
        of,
        matrices,
        rows,
        keys,
        width,
        columns,
        blocks,
        scale: plan.scale(call.attrs),
        q: call.address(0),
        k: call.address(1),
        v: call.address(2),
        y: call.output.address,
    };
    if attention_whole::fits(&fixed, &encoder.limits()) {
        attention_whole::encode(encoder, &fixed)
    } else {
        fixed.chunks(encoder)
    }
}

/// Lines that are contiguous.
fn contiguous(address: u64, lines: u32, matrices: u32, width: u32) -> Operand {
    Operand { address, lines, matrices, line_step: width, k_step: 1 }
}

/// The columns of values, in blocks of keys.
fn by_values(address: u64, matrices: u32, columns: u32) -> Operand {
    Operand { address, lines: columns, matrices, line_step: 1, k_step: columns }
}

impl Fixed {
    /// Encodes kernels for each step, for rows in chunks.
    fn chunks(&self, encoder: &mut dyn Encoder) -> Result<()> {
        let Fixed { precision, keys, width, columns, rows, matrices, blocks, .. } = *self;
        let each = 4 * (keys as u64 + blocks as u64 * (BLOCK + columns + 2) as u64);
        let fits = (MOST / each).clamp(1, GROUPS as u64) as u32;
        let (at_once, of_matrix) = if fits < rows { (1, fits) } else { ((fits / rows).min(matrices), rows) };
        let most = at_once as u64 * of_matrix as u64;
        let padded = matrices as u64 * (blocks * BLOCK) as u64;
        if padded.div_ceil(GROUPS as u64) > GROUPS as u64 {
            fail!(Unsupported, "attention: {matrices} heads of {keys} keys are too many for one kernel");
        }
        let room = Room {
            keys: contiguous(0, keys, matrices, width).room(encoder, precision, width)?,
            values: by_values(0, matrices * blocks, columns).room(encoder, precision, BLOCK)?,
            factors: encoder.scratch(4 * padded)?,
            queries: contiguous(0, of_matrix, at_once, width).room(encoder, precision, width)?,
            weights: contiguous(0, of_matrix, at_once * blocks, BLOCK).room(encoder, precision, BLOCK)?,
            scores: encoder.scratch(4 * most * keys as u64)?,
            uncut: encoder.scratch(4 * most * (blocks * BLOCK) as u64)?,
            results: encoder.scratch(4 * most * blocks as u64 * columns as u64)?,
            states: encoder.scratch(8 * most * blocks as u64)?,
        };
        self.cut(encoder, &room)?;
        for matrix in (0..matrices).step_by(at_once as usize) {
            for row in (0..rows).step_by(of_matrix as usize) {
                let chunk =
                    Chunk { matrix, matrices: at_once.min(matrices - matrix), row, rows: of_matrix.min(rows - row) };
                self.compute(encoder, &chunk, &room)?;
            }
        }
        Ok(())
    }

    /// Cuts the keys and the values.
    fn cut(&self, encoder: &mut dyn Encoder, room: &Room) -> Result<()> {
        let Fixed { precision, keys, width, columns, blocks, matrices, .. } = *self;
        if width > 0 {
            fixed::cut_one(encoder, precision, width, &contiguous(self.k, keys, matrices, width), room.keys)?;
        }
        let rows = matrices * blocks * BLOCK;
        let values = encoder.scratch(4 * rows as u64 * columns as u64)?;
        let all = Chunk { matrix: 0, matrices, row: 0, rows: blocks * BLOCK };
        let push = self.push(encoder, &all, [self.v, values, room.factors, 0])?;
        let across = rows.min(GROUPS);
        self.dispatch(encoder, ROWS, &push, [across, rows.div_ceil(across)])?;
        let values = by_values(values, matrices * blocks, columns);
        fixed::cut_values(encoder, precision, BLOCK, &values, room.values)
    }

    /// Enqueues the kernels of a chunk.
    fn compute(&self, encoder: &mut dyn Encoder, chunk: &Chunk, room: &Room) -> Result<()> {
        let Fixed { precision, keys, width, columns, blocks, .. } = *self;
        let Chunk { matrix, matrices, row, rows } = *chunk;
        let first = matrix as u64 * self.rows as u64 + row as u64;
        let mut products = Products {
            precision,
            m: rows,
            n: keys,
            k: width,
            batches: matrices,
            a: contiguous(self.q + 4 * first * width as u64, rows, matrices, width),
            b: contiguous(0, keys, matrices, width),
            b_digits: None,
            c: 0,
            bias: 0,
            y: room.scores,
            axes: smallvec![[matrices, 1, 1, 0]],
            c_row: 0,
            c_column: 0,
            alpha: 1.0,
            beta: 0.0,
            activation: Activation::None,
        };
        // Without a width, all dot products are 0, and the kernel of weights reads none.
        if width > 0 {
            fixed::cut_one(encoder, precision, width, &products.a, room.queries)?;
            let of_keys = room.keys.from(&products.b, precision, width, matrix);
            fixed::multiply(encoder, &products, [room.queries, of_keys])?;
        }
        let factors = room.factors + 4 * (matrix * blocks * BLOCK) as u64;
        let push = self.push(encoder, chunk, [room.scores, room.uncut, factors, room.states])?;
        self.dispatch(encoder, WEIGHTS, &push, [matrices * rows, blocks])?;
        (products.n, products.k, products.batches) = (columns, BLOCK, matrices * blocks);
        products.a = contiguous(room.uncut, rows, matrices * blocks, BLOCK);
        products.b = by_values(0, matrices * blocks, columns);
        products.y = room.results;
        products.axes = smallvec![[matrices * blocks, 1, 1, 0]];
        fixed::cut_one(encoder, precision, BLOCK, &products.a, room.weights)?;
        let of_values = room.values.from(&products.b, precision, BLOCK, matrix * blocks);
        fixed::multiply(encoder, &products, [room.weights, of_values])?;
        let push = self.push(encoder, chunk, [room.results, self.y, 0, room.states])?;
        self.dispatch(encoder, JOIN, &push, [matrices * rows, columns.div_ceil(THREADS)])
    }

    /// Returns the push constants of `attention.comp`, whose operands here are what a stage reads and what it writes.
    fn push(&self, encoder: &mut dyn Encoder, chunk: &Chunk, [from, to, factors, states]: [u64; 4]) -> Result<Push> {
        let Fixed { of, keys, width, columns, scale, .. } = self;
        let mask = &of.mask;
        let table = mask.table(encoder)?;
        let mut push = Push::new();
        for address in [from, to, factors, mask.address, 0, states, table] {
            push = push.address(address);
        }
        let lead = keys + if of.causal { 1 } else { of.queries };
        let first = chunk.matrix * self.rows + chunk.row;
        let words = [chunk.rows * chunk.matrices, of.queries, *keys, *width, *columns, of.heads, of.kv_heads, lead];
        let more = [first, chunk.rows, mask.axes, mask.row, mask.column, scale.to_bits(), self.precision.digits(), 0];
        Ok(words.iter().chain(&more).fold(push, |push, &word| push.word(word)))
    }

    fn dispatch(&self, encoder: &mut dyn Encoder, stage: u32, push: &Push, [x, y]: [u32; 2]) -> Result<()> {
        encoder.dispatch(Kernels::Attention, &[THREADS, 64, 4, stage, self.bits()], push, [x, y, 1])
    }

    /// The bits of HAS.
    pub fn bits(&self) -> u32 {
        u32::from(self.of.causal) * HIDDEN + u32::from(self.of.mask.address != 0) * MASK
    }
}
