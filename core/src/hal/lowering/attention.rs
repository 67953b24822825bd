//! Lowers attention to kernels: whole in one kernel, or in blocks of keys that a second kernel merges.

use super::{Call, attention_fixed, moves, pitch_of};
use super::{Encoder, Kernels, Push};
use crate::contract::{K_BLOCK, KEY_BLOCK, Precision};
use crate::error::{Result, fail};
use crate::ops::AttentionPlan;

// The stages of a kernel: values of attention.comp's STAGE.
const WHOLE: u32 = 0;
const BLOCKS: u32 = 1;
const MERGE: u32 = 2;

/// A workgroup's part of attention: its threads, its query rows, its columns of the values, and the rows of results of
/// each thread.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    pub threads: u32,
    pub queries: u32,
    pub columns: u32,
    pub of_thread: u32,
    /// Whether a workgroup takes one block of keys only, so that blocks are always merged.
    pub of_block: bool,
}

/// What a device's tile for attention follows from.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Heads of all batches.
    pub heads: u64,
    /// Of a head.
    pub queries: u32,
    pub keys: u32,
    pub width: u32,
    pub value_width: u32,
}

impl Sizes {
    /// Returns the bytes of all rows' blocks, if they are stored.
    pub fn stored(&self) -> u64 {
        let blocks = self.keys.div_ceil(KEY_BLOCK as u32) as u64;
        16 * blocks * self.heads * self.queries as u64 * (self.value_width.div_ceil(4) + 1) as u64
    }

    /// Whether blocks can be stored.
    pub fn splits(&self) -> bool {
        self.stored() <= MOST_STORED && self.keys.div_ceil(KEY_BLOCK as u32) <= 0xffff
    }
}

/// The threads of a workgroup that merges.
const MERGING: u32 = 64;

/// The most queries or keys of a head.
const MOST_LINES: u32 = 1 << 30;

/// The most bytes of stored blocks.
const MOST_STORED: u64 = 1 << 28;

/// `attention` of the op table.
pub(super) fn attention(encoder: &mut dyn Encoder, call: &Call<'_>) -> Result<()> {
    let plan = AttentionPlan::new(call.views.into())?;
    if cfg!(feature = "integers") && call.attrs.precision() != Precision::F32 && plan.keys > 0 {
        return attention_fixed::encode(encoder, call, &plan);
    }
    let Heads { batches, heads, kv_heads, queries, causal, mask } = Heads::new(call, &plan);
    let (keys, width, value_width) = (plan.keys as u32, plan.width as u32, plan.value_width as u32);
    let rows = batches * heads * queries;
    let blocks = keys.div_ceil(KEY_BLOCK as u32);

    let limits = encoder.limits();
    let sizes = Sizes { heads: batches as u64 * heads as u64, queries, keys, width, value_width };
    let Tile { threads, queries: of_tile, columns, of_thread, of_block } = (limits.attention)(&limits, &sizes);
    let (tiles, parts) = (queries.div_ceil(of_tile), value_width.div_ceil(columns));
    let groups = batches as u64 * heads as u64 * tiles as u64 * parts as u64;
    if groups > i32::MAX as u64 {
        fail!(Unsupported, "attention: {groups} blocks of queries are too many for one kernel");
    }
    // Too few workgroups for the device also divide the keys among them.
    let stored = sizes.stored();
    let few = of_block || groups <= limits.units as u64 / 2 && blocks >= 4 && stored <= MOST_STORED;
    let each = iterations(width, columns, of_thread, threads);
    let far = limits.iterations < u32::MAX && each * blocks as u64 > limits.iterations as u64;
    let split = (few || far) && blocks <= 0xffff;
    if far && (!split || each.max(8 * blocks as u64) > limits.iterations as u64) {
        fail!(
            Unsupported,
            "attention: {keys} keys of width {width} need more loop iterations than this device's driver allows a kernel"
        );
    }
    let scratch = if split { encoder.scratch(stored)? } else { 0 };

    if keys.max(queries) > MOST_LINES {
        fail!(Unsupported, "attention: {queries} queries and {keys} keys; GPU kernels take up to {MOST_LINES}");
    }
    let lead = keys + if causal { 1 } else { queries };
    let [mut q, mut k, mut v, y] = [call.address(0), call.address(1), call.address(2), call.output.address];
    let mut pitches = [width, value_width];
    if limits.pitched {
        let of_keys = batches as u64 * kv_heads as u64 * keys as u64;
        q = in_rows(encoder, q, rows as u64, width)?;
        k = in_rows(encoder, k, of_keys, width)?;
        v = in_rows(encoder, v, of_keys, value_width)?;
        pitches = [pitch_of(width)?, pitch_of(value_width)?];
    }
    let table = mask.table(encoder)?;
    // Copied operands can always be read in fours, so only the result decides.
    let read = limits.pitched || ((q | k | v).is_multiple_of(16) && width.is_multiple_of(4));
    let vectors = read && y.is_multiple_of(16) && value_width.is_multiple_of(4);
    let hidden = causal || !keys.is_multiple_of(KEY_BLOCK as u32);
    let has = [vectors, !width.is_multiple_of(16), width > K_BLOCK as u32, hidden, mask.address != 0];
    let has = has.iter().rev().fold(0, |bits, &has| bits << 1 | u32::from(has));
    let mut push = Push::new();
    for address in [q, k, v, mask.address, y, scratch, table] {
        push = push.address(address);
    }
    let words = [
        rows,
        queries,
        keys,
        width,
        value_width,
        heads,
        kv_heads,
        lead,
        tiles,
        parts,
        mask.axes,
        mask.row,
        mask.column,
    ];
    let push = words
        .iter()
        .fold(push, |push, &word| push.word(word))
        .float(plan.scale(call.attrs))
        .word(pitches[0])
        .word(pitches[1]);
    // Without keys there is nothing to merge, and the results are zeros.
    if keys > 0 {
        let stage = if split { BLOCKS } else { WHOLE };
        let constants = [threads, columns, of_thread, stage, has];
        let each = if split { blocks } else { 1 };
        encoder.dispatch(Kernels::Attention, &constants, &push, [groups as u32, each, 1])?;
    }
    if split || keys == 0 {
        let groups = match limits.merges_by_warps {
            true => (rows as u64).div_ceil(MERGING as u64 / 32),
            false => (rows as u64 * value_width.div_ceil(4) as u64).div_ceil(MERGING as u64),
        };
        encoder.dispatch(Kernels::Attention, &[MERGING, 64, 4, MERGE, has], &push, [groups as u32, 1, 1])?;
    }
    Ok(())
}

/// The heads as kernels see them, and the mask.
pub(super) struct Heads {
    pub batches: u32,
    pub heads: u32,
    pub kv_heads: u32,
    /// Of a head.
    pub queries: u32,
    pub causal: bool,
    pub mask: Mask,
}

impl Heads {
    pub fn new(call: &Call<'_>, plan: &AttentionPlan) -> Heads {
        let (mut heads, mut queries, mut causal) = (plan.heads as u32, plan.queries as u32, call.attrs.causal);
        let mask = call.input(3);
        let strides = mask.map(|mask| mask.shape.broadcast_strides(&plan.scores));
        // Heads with one query that share keys, and the mask if there is one, become queries of one head. The only query sees all keys,
        // so causality hides none.
        let axes = plan.scores.rank() - 2;
        let joined = queries == 1 && strides.is_none_or(|strides| axes == 0 || strides[axes - 1] == 0);
        if joined {
            (heads, queries, causal) = (plan.kv_heads as u32, heads / plan.kv_heads as u32, false);
        }
        let mut of_heads = Mask::default();
        if let (Some(mask), Some(strides)) = (mask, strides) {
            let size = |axis| if axis + 1 == axes { heads } else { plan.scores.dims()[axis] as u32 };
            of_heads = Mask {
                address: mask.address,
                axes: axes as u32,
                row: if joined { 0 } else { strides[axes] as u32 },
                column: strides[axes + 1] as u32,
                words: (0..axes).rev().flat_map(|axis| [size(axis), strides[axis] as u32]).collect(),
            };
        }
        let (batches, kv_heads) = (plan.batches as u32, plan.kv_heads as u32);
        Heads { batches, heads, kv_heads, queries, causal, mask: of_heads }
    }
}

/// How kernels find a score's mask. The address is 0 if there is no mask.
#[derive(Default)]
pub(super) struct Mask {
    pub address: u64,
    /// The axes of heads, and the steps from one query and from one key to the next.
    pub axes: u32,
    pub row: u32,
    pub column: u32,
    /// The length of each axis of heads and the step along it, the innermost first.
    words: Vec<u32>,
}

impl Mask {
    /// Returns the address of the axes' table, for the next dispatch.
    pub fn table(&self, encoder: &mut dyn Encoder) -> Result<u64> {
        if self.words.is_empty() { Ok(0) } else { encoder.parameters(&self.words) }
    }
}

/// Returns an operand whose rows can be read in fours: the operand itself if it is laid out so, or else a copy.
fn in_rows(encoder: &mut dyn Encoder, address: u64, rows: u64, row: u32) -> Result<u64> {
    let pitch = pitch_of(row)?;
    if (row == pitch && address.is_multiple_of(16)) || rows == 0 || row == 0 {
        return Ok(address);
    }
    let (of_row, of_copy) = (4 * row as u64, 4 * pitch as u64);
    let copy = encoder.scratch(rows * of_copy)?;
    moves::copy_rows(encoder, address, copy, rows, of_row, of_copy)?;
    Ok(copy)
}

/// Returns an upper bound of the loop iterations in a thread of `attention.comp` for a block of keys, with no loop
/// unrolled.
fn iterations(width: u32, columns: u32, of_thread: u32, threads: u32) -> u64 {
    // A slice of 16 columns is fetched and staged element by element, and multiplied.
    let moved = 10 * (2 + (KEY_BLOCK as u32 * 4).div_ceil(threads));
    let slice = 1 + moved + 16 * (1 + 2 * 5 + 4 * 9);
    let own = columns / (2 * of_thread);
    let values = KEY_BLOCK as u32 * (1 + (of_thread + own) / 4 * 5 + of_thread * (1 + own)) + 32 * moved;
    width.div_ceil(16) as u64 * (slice + 64) as u64 + (values + 1000) as u64
}
