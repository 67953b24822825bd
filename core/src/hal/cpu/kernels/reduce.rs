//! Reductions along one axis, several axes or all.

use super::sum::{max_key, product, sum};
use super::{Call, Exec, Shared, chunks, moves};
use crate::contract::{self, SUM_BLOCK, SUM_LANES};
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch};
use crate::interrupt::{Looks, pieces};
use crate::ops::{Gives, Lines, Reduced, Reduction};

/// The least number of values that is worth another thread, for lines that are not contiguous and for indices.
const GRAIN: usize = 64 * 1024;

/// The same for contiguous lines, whose speed is that of memory.
const LINE_GRAIN: usize = 128 * 1024;

/// What a reduction computes from a line.
#[derive(Clone, Copy, PartialEq)]
enum Fold {
    Sum,
    Product,
    /// The greatest element after the sign bits are flipped by this value. Flipped by the sign bit, it is the least
    /// element.
    Greatest(i32),
}

impl Fold {
    const LEAST: Fold = Fold::Greatest(i32::MIN);

    fn of(op: Reduction) -> Fold {
        match op {
            Reduction::Sum | Reduction::Mean => Fold::Sum,
            Reduction::Prod => Fold::Product,
            Reduction::Max | Reduction::Argmax => Fold::Greatest(0),
            Reduction::Min | Reduction::Argmin => Fold::LEAST,
        }
    }

    /// Combines the results of a line's blocks.
    fn again(self, blocks: &[f32]) -> f32 {
        match self {
            Fold::Sum => contract::sum(blocks),
            Fold::Product => contract::prod(blocks),
            Fold::LEAST => contract::min(blocks).unwrap_or(contract::NAN),
            Fold::Greatest(_) => contract::max(blocks).unwrap_or(contract::NAN),
        }
    }
}

/// Returns the key of an element.
fn key(x: f32, flip: i32) -> i32 {
    contract::max_key(f32::from_bits(x.to_bits() ^ flip as u32))
}

/// Returns the element of a key.
fn of_key(key: i32, flip: i32) -> f32 {
    f32::from_bits(contract::max_of_keys(key).to_bits() ^ flip as u32)
}

/// Computes a reduction. The operation and the layout of its lines choose the kernel.
pub(super) fn reduce(exec: &Exec<'_>, op: Reduction, call: &mut Call<'_, '_>) -> Result<()> {
    let shape = &call.meta(0).shape;
    let Reduced { order, lines } = Reduced::new(shape, call.attrs);
    let mut x = Shared(call.f32(0)?.cast_mut());
    let sink = &Sink { op, y: Shared(call.output.host()?), dtype: call.output.dtype(), n: lines.n };
    let ordered;
    if let Some(order) = order {
        // If the reduced axes are not adjacent, the elements are permuted first.
        ordered = exec.scratch.take(shape.elements())?;
        moves::permute(exec, shape, &order, 4, Shared(x.get().cast()), Shared(ordered.pointer().cast()))?;
        x = Shared(ordered.pointer());
    }
    let Lines { outer, n, inner } = lines;
    let (fold, index) = (Fold::of(op), op.gives() == Gives::Index);
    if outer * inner == 0 {
        return Ok(());
    }
    if outer * inner == 1 && n > LINE_GRAIN && !index {
        return one_line(exec, fold, x, n, sink);
    }
    if n == 1 && matches!(fold, Fold::Sum) {
        // SUM of one value is 0 + x. Gradients of `gather` have many such lines.
        return chunks(exec, outer * inner, GRAIN, |start, end| {
            for i in start..end {
                // SAFETY: there are as many results as values.
                unsafe { sink.put(i, Outcome { value: 0.0 + *x.get().add(i) }) };
            }
        });
    }
    if inner == 1 {
        let grain = if index { GRAIN } else { LINE_GRAIN };
        chunks(exec, outer, grain.div_ceil(n.max(1)), |start, end| {
            for line in start..end {
                // SAFETY: the view covers outer·n values.
                let kernel = Line { fold, index, x: unsafe { x.get().add(line * n) }, n };
                // SAFETY: the kernel's line lies inside the view, and `line` is below the number of results.
                unsafe { sink.put(line, dispatch(exec.isa, kernel)) };
            }
        })?;
        return Ok(());
    }
    // The lines are not contiguous. Columns are taken 64 at a time, and each keeps its own 32 lanes.
    let strips = inner.div_ceil(Columns::WIDTH);
    chunks(exec, outer * strips, GRAIN.div_ceil(n.max(1) * Columns::WIDTH), |start, end| {
        for task in start..end {
            let (o, first) = (task / strips, task % strips * Columns::WIDTH);
            let width = Columns::WIDTH.min(inner - first);
            // SAFETY: the strip lies inside the view.
            let x = unsafe { x.get().add(o * n * inner + first) };
            // SAFETY: the strip's rows lie inside the view.
            let results = unsafe { dispatch(exec.isa, Columns { fold, index, x, n, stride: inner, width }) };
            for (i, &result) in results[..width].iter().enumerate() {
                // SAFETY: the index is below the outer·inner results.
                unsafe { sink.put(o * inner + first + i, result) };
            }
        }
    })?;
    Ok(())
}

/// The result of a line: a value or an index.
#[derive(Clone, Copy)]
union Outcome {
    value: f32,
    index: usize,
}

/// Stores results in the output.
struct Sink {
    op: Reduction,
    y: Shared<u8>,
    dtype: DType,
    n: usize,
}

impl Sink {
    /// Stores result `i`.
    ///
    /// # Safety
    /// `i` is below the number of results, and `outcome` has the field that the operation gives.
    unsafe fn put(&self, i: usize, outcome: Outcome) {
        // SAFETY: the output has more than `i` elements of this dtype. The operation decides which field is set.
        unsafe {
            match (self.op.gives(), self.dtype) {
                (Gives::Index, DType::I64) => self.y.get().cast::<i64>().add(i).write(outcome.index as i64),
                (Gives::Index, _) => self.y.get().cast::<u32>().add(i).write(outcome.index as u32),
                (gives, _) => self.y.get().cast::<f32>().add(i).write(finish(gives, outcome.value, self.n)),
            }
        }
    }
}

/// Computes the stored value from SUM: the mean, or the value itself.
fn finish(gives: Gives, value: f32, n: usize) -> f32 {
    contract::canonical(if gives == Gives::Mean { value / n as f32 } else { value })
}

/// Reduces one long line. Threads compute its blocks of 1024.
fn one_line(exec: &Exec<'_>, fold: Fold, x: Shared<f32>, n: usize, sink: &Sink) -> Result<()> {
    let blocks = n.div_ceil(SUM_BLOCK);
    let scratch = exec.scratch.take(blocks)?;
    let partial = Shared(scratch.pointer());
    chunks(exec, blocks, LINE_GRAIN / SUM_BLOCK, |start, end| {
        for block in start..end {
            let (at, end) = (block * SUM_BLOCK, n.min((block + 1) * SUM_BLOCK));
            // SAFETY: the block lies inside the line, and the scratch has one value for each block.
            unsafe {
                let kernel = Line { fold, index: false, x: x.get().add(at), n: end - at };
                partial.get().add(block).write(dispatch(exec.isa, kernel).value);
            }
        }
    })?;
    // SAFETY: every block has written its value, and the output has one result.
    unsafe {
        let value = fold.again(std::slice::from_raw_parts(partial.get(), blocks));
        sink.put(0, Outcome { value });
    }
    Ok(())
}

/// A contiguous line.
struct Line {
    fold: Fold,
    index: bool,
    x: *const f32,
    n: usize,
}

impl Kernel for Line {
    type Output = Outcome;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Outcome {
        let Line { fold, index, x, n } = self;
        // SAFETY: the line covers n values.
        unsafe {
            match fold {
                Fold::Greatest(flip) => {
                    let mut best = i32::MIN;
                    pieces!(n, |at, count| best = best.max(max_key::<S>(x.add(at), count, flip)));
                    if !index {
                        return Outcome { value: of_key(best, flip) };
                    }
                    let mut index = None;
                    pieces!(n, |at, count| {
                        index = index.or_else(|| (at..at + count).find(|&i| key(*x.add(i), flip) == best));
                    });
                    Outcome { index: index.unwrap_or(0) }
                }
                Fold::Product => Outcome { value: product::<S>(x, n) },
                Fold::Sum => Outcome { value: sum::<S>(x, n) },
            }
        }
    }
}

/// Up to 64 neighbouring columns, which are reduced downwards: several cache lines of each row, as rows often lie pages apart.
struct Columns {
    fold: Fold,
    index: bool,
    x: *const f32,
    n: usize,
    stride: usize,
    width: usize,
}

impl Columns {
    const WIDTH: usize = 64;
}

/// A row of a strip.
type Strip = [f32; Columns::WIDTH];

/// Returns each column's SUM or PROD from those of its blocks. Compiled once for all instruction sets.
#[inline(never)]
fn total(fold: Fold, blocks: &[Strip]) -> Strip {
    if let [one] = blocks {
        return *one;
    }
    std::array::from_fn(|column| fold.again(&blocks.iter().map(|strip| strip[column]).collect::<Vec<_>>()))
}

impl Kernel for Columns {
    type Output = [Outcome; Columns::WIDTH];

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> [Outcome; Columns::WIDTH] {
        // SAFETY: n rows of `width` values lie `stride` apart.
        unsafe {
            match self.fold {
                Fold::Greatest(flip) => {
                    let best = self.greatest::<S>(flip);
                    if !self.index {
                        return best.map(|key| Outcome { value: of_key(key, flip) });
                    }
                    let mut found = [Outcome { index: 0 }; Columns::WIDTH];
                    for (column, found) in found[..self.width].iter_mut().enumerate() {
                        let at = |i: usize| *self.x.add(i * self.stride + column);
                        let mut index = None;
                        pieces!(self.n, |first, count| {
                            let mut rows = first..first + count;
                            index = index.or_else(|| rows.find(|&i| key(at(i), flip) == best[column]));
                        });
                        found.index = index.unwrap_or(0);
                    }
                    found
                }
                Fold::Sum => self.blocks::<S, false>().map(|value| Outcome { value }),
                Fold::Product => self.blocks::<S, true>().map(|value| Outcome { value }),
            }
        }
    }
}

impl Columns {
    /// Loads the vector at offset `at` of row `i`, with zeros beyond the width.
    #[inline(always)]
    unsafe fn load<S: Simd>(&self, i: usize, at: usize) -> S::F {
        // SAFETY: the row lies inside the view, and the loads don't go beyond its width.
        unsafe {
            let from = self.x.add(i * self.stride + at);
            if at + S::LANES <= self.width { S::load(from) } else { S::load_head(from, self.width - at) }
        }
    }

    #[inline(always)]
    unsafe fn greatest<S: Simd>(&self, flip: i32) -> [i32; Columns::WIDTH] {
        let mut best = [i32::MIN; Columns::WIDTH];
        let (mut looks, mut start) = (Looks::NEW, 0);
        while start < self.n && !looks.before(SUM_BLOCK * Columns::WIDTH) {
            let end = self.n.min(start + SUM_BLOCK);
            for i in start..end {
                let mut at = 0;
                while at < self.width {
                    // SAFETY: rows are below n, and WIDTH is a multiple of every vector's lanes.
                    unsafe {
                        let p = best.as_mut_ptr().add(at).cast::<f32>();
                        let flipped = S::xor_i(S::bits(self.load::<S>(i, at)), S::splat_i(flip));
                        let key = simd::max_key::<S>(S::from_bits(flipped));
                        S::store(p, S::from_bits(S::max_i(S::bits(S::load(p)), key)));
                    }
                    at += S::LANES;
                }
            }
            start = end;
        }
        best
    }

    #[inline(always)]
    unsafe fn blocks<S: Simd, const PRODUCT: bool>(&self) -> Strip {
        let mut blocks: Vec<Strip> = Vec::with_capacity(self.n.div_ceil(SUM_BLOCK));
        let (mut looks, mut start) = (Looks::NEW, 0);
        while blocks.is_empty() || (start < self.n && !looks.before(SUM_BLOCK * Columns::WIDTH)) {
            let end = self.n.min(start + SUM_BLOCK);
            // SAFETY: rows are below n.
            blocks.push(unsafe { self.block::<S, PRODUCT>(start, end) });
            start += SUM_BLOCK;
        }
        total(self.fold, &blocks)
    }

    #[inline(always)]
    unsafe fn block<S: Simd, const PRODUCT: bool>(&self, start: usize, end: usize) -> Strip {
        // SAFETY: only kernels call this.
        let both = |a: S::F, b: S::F| unsafe { if PRODUCT { S::mul(a, b) } else { S::add(a, b) } };
        let mut lanes = [[if PRODUCT { 1.0f32 } else { 0.0 }; Columns::WIDTH]; SUM_LANES];
        for i in start..end {
            let lane = lanes[(i - start) % SUM_LANES].as_mut_ptr();
            let mut at = 0;
            while at < self.width {
                // SAFETY: the row is below n, and WIDTH is a multiple of every vector's lanes.
                unsafe { S::store(lane.add(at), both(S::load(lane.add(at)), self.load::<S>(i, at))) };
                at += S::LANES;
            }
        }
        let mut step = SUM_LANES / 2;
        while step > 0 {
            for l in 0..step {
                let (low, high) = (lanes[l].as_mut_ptr(), lanes[l + step].as_ptr());
                let mut at = 0;
                while at < self.width {
                    // SAFETY: both rows hold WIDTH values, a multiple of every vector's lanes.
                    unsafe { S::store(low.add(at), both(S::load(low.add(at)), S::load(high.add(at)))) };
                    at += S::LANES;
                }
            }
            step /= 2;
        }
        lanes[0]
    }
}
