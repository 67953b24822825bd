//! sum, mean, max and argmax, along an axis or of everything.

use super::sum::{max_key, sum};
use super::{Call, Exec, Shared, chunks};
use crate::contract::{self, SUM_BLOCK, SUM_LANES};
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch};
use crate::interrupt::{Looks, pieces};
use crate::ops::{Lines, Reduction};

/// Values of lines that lie across, and of argmax, that are worth handing to another thread.
const GRAIN: usize = 64 * 1024;

/// The same of contiguous lines, which go as fast as memory does.
const LINE_GRAIN: usize = 512 * 1024;

/// Dispatches on the operation and the layout of its lines.
pub(super) fn reduce(exec: &Exec<'_>, op: Reduction, call: &mut Call<'_, '_>) -> Result<()> {
    let lines = Lines::of_reduction(&call.meta(0).shape, call.attrs.axis);
    let x = Shared(call.f32(0)?.cast_mut());
    let y = call.output.host()?;
    let Lines { outer, n, inner } = lines;
    if outer * inner == 0 {
        return Ok(());
    }
    if outer * inner == 1 && n > LINE_GRAIN && op != Reduction::Argmax {
        return one_line(exec, op, x, n, y.cast());
    }
    let sink = Sink { op, y: Shared(y), dtype: call.output.dtype(), n };
    if inner == 1 {
        let grain = if op == Reduction::Argmax { GRAIN } else { LINE_GRAIN };
        chunks(exec, outer, grain.div_ceil(n.max(1)), |start, end| {
            for line in start..end {
                // SAFETY: the view covers outer·n values.
                let kernel = Line { op, x: unsafe { x.get().add(line * n) }, n };
                // SAFETY: as above, and `line` is below the number of results.
                unsafe { sink.put(line, dispatch(exec.isa, kernel)) };
            }
        })?;
        return Ok(());
    }
    // Lines that lie across: columns are taken 16 at a time, each keeping its own 32 lanes.
    let strips = inner.div_ceil(Columns::WIDTH);
    chunks(exec, outer * strips, GRAIN.div_ceil(n.max(1) * Columns::WIDTH), |start, end| {
        for task in start..end {
            let (o, first) = (task / strips, task % strips * Columns::WIDTH);
            let width = Columns::WIDTH.min(inner - first);
            // SAFETY: the strip lies inside the view.
            let kernel = Columns { op, x: unsafe { x.get().add(o * n * inner + first) }, n, stride: inner, width };
            // SAFETY: as above.
            let results = unsafe { dispatch(exec.isa, kernel) };
            for (i, &result) in results[..width].iter().enumerate() {
                // SAFETY: below outer·inner results.
                unsafe { sink.put(o * inner + first + i, result) };
            }
        }
    })?;
    Ok(())
}

/// What a line gives: a value, or for argmax an index.
#[derive(Clone, Copy)]
union Outcome {
    value: f32,
    index: usize,
}

/// Where results go.
struct Sink {
    op: Reduction,
    y: Shared<u8>,
    dtype: DType,
    n: usize,
}

impl Sink {
    /// # Safety
    /// `i` is below the number of results.
    unsafe fn put(&self, i: usize, outcome: Outcome) {
        // SAFETY: the output has that many elements of this dtype; which field is set follows from the operation.
        unsafe {
            match (self.op, self.dtype) {
                (Reduction::Argmax, DType::I64) => self.y.get().cast::<i64>().add(i).write(outcome.index as i64),
                (Reduction::Argmax, _) => self.y.get().cast::<u32>().add(i).write(outcome.index as u32),
                (op, _) => self.y.get().cast::<f32>().add(i).write(finish(op, outcome.value, self.n)),
            }
        }
    }
}

/// From SUM to mean.
fn finish(op: Reduction, value: f32, n: usize) -> f32 {
    contract::canonical(if op == Reduction::Mean { value / n as f32 } else { value })
}

/// One long line, its blocks of 1024 spread over the threads.
fn one_line(exec: &Exec<'_>, op: Reduction, x: Shared<f32>, n: usize, y: *mut f32) -> Result<()> {
    let blocks = n.div_ceil(SUM_BLOCK);
    let scratch = exec.scratch.take(blocks)?;
    let partial = Shared(scratch.pointer());
    chunks(exec, blocks, LINE_GRAIN / SUM_BLOCK, |start, end| {
        for block in start..end {
            let (at, end) = (block * SUM_BLOCK, n.min((block + 1) * SUM_BLOCK));
            // SAFETY: the block lies inside the line, and the scratch has one place for each.
            unsafe {
                let kernel = Line { op, x: x.get().add(at), n: end - at };
                partial.get().add(block).write(dispatch(exec.isa, kernel).value);
            }
        }
    })?;
    // SAFETY: every block has written its place; y is the one result.
    unsafe {
        let partial = std::slice::from_raw_parts(partial.get(), blocks);
        let total = match op {
            Reduction::Max => contract::max(partial).unwrap_or(contract::NAN),
            _ => contract::sum(partial),
        };
        y.write(finish(op, total, n));
    }
    Ok(())
}

/// A contiguous line.
struct Line {
    op: Reduction,
    x: *const f32,
    n: usize,
}

impl Kernel for Line {
    type Output = Outcome;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Outcome {
        let Line { op, x, n } = self;
        // SAFETY: the line covers n values.
        unsafe {
            match op {
                Reduction::Max | Reduction::Argmax => {
                    let mut best = i32::MIN;
                    pieces!(n, |at, count| best = best.max(max_key::<S>(x.add(at), count)));
                    if op == Reduction::Max {
                        return Outcome { value: contract::max_of_keys(best) };
                    }
                    let mut index = None;
                    pieces!(n, |at, count| {
                        index = index.or_else(|| (at..at + count).find(|&i| contract::max_key(*x.add(i)) == best));
                    });
                    Outcome { index: index.unwrap_or(0) }
                }
                _ => Outcome { value: sum::<S>(x, n) },
            }
        }
    }
}

/// Up to 16 neighbouring columns, reduced downwards.
struct Columns {
    op: Reduction,
    x: *const f32,
    n: usize,
    stride: usize,
    width: usize,
}

impl Columns {
    const WIDTH: usize = 16;
}

/// A row of a strip.
type Strip = [f32; Columns::WIDTH];

/// The SUM of each column from those of its blocks, for every instruction set.
#[inline(never)]
fn total(blocks: &[Strip]) -> Strip {
    if let [one] = blocks {
        return *one;
    }
    std::array::from_fn(|column| contract::sum(&blocks.iter().map(|strip| strip[column]).collect::<Vec<_>>()))
}

impl Kernel for Columns {
    type Output = [Outcome; Columns::WIDTH];

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> [Outcome; Columns::WIDTH] {
        // SAFETY: rows of `width` values lie `stride` apart, n of them.
        unsafe {
            match self.op {
                Reduction::Max => self.max::<S>().map(|key| Outcome { value: contract::max_of_keys(key) }),
                Reduction::Argmax => {
                    let best = self.max::<S>();
                    let mut found = [Outcome { index: 0 }; Columns::WIDTH];
                    for (column, found) in found[..self.width].iter_mut().enumerate() {
                        let at = |i: usize| *self.x.add(i * self.stride + column);
                        let mut index = None;
                        pieces!(self.n, |first, count| {
                            let mut rows = first..first + count;
                            index = index.or_else(|| rows.find(|&i| contract::max_key(at(i)) == best[column]));
                        });
                        found.index = index.unwrap_or(0);
                    }
                    found
                }
                _ => self.sum::<S>().map(|value| Outcome { value }),
            }
        }
    }
}

impl Columns {
    /// The vector at offset `at` of row `i`, zeros beyond the width.
    #[inline(always)]
    unsafe fn load<S: Simd>(&self, i: usize, at: usize) -> S::F {
        // SAFETY: the row lies inside the view.
        unsafe {
            let from = self.x.add(i * self.stride + at);
            if at + S::LANES <= self.width { S::load(from) } else { S::load_head(from, self.width - at) }
        }
    }

    #[inline(always)]
    unsafe fn max<S: Simd>(&self) -> [i32; Columns::WIDTH] {
        let mut best = [i32::MIN; Columns::WIDTH];
        let (mut looks, mut start) = (Looks::NEW, 0);
        while start < self.n && !looks.before(SUM_BLOCK * Columns::WIDTH) {
            let end = self.n.min(start + SUM_BLOCK);
            for i in start..end {
                let mut at = 0;
                while at < self.width {
                    // SAFETY: rows below n; WIDTH is a multiple of every vector's length.
                    unsafe {
                        let p = best.as_mut_ptr().add(at).cast::<f32>();
                        let key = simd::max_key::<S>(self.load::<S>(i, at));
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
    unsafe fn sum<S: Simd>(&self) -> Strip {
        let mut blocks: Vec<Strip> = Vec::with_capacity(self.n.div_ceil(SUM_BLOCK));
        let (mut looks, mut start) = (Looks::NEW, 0);
        while blocks.is_empty() || (start < self.n && !looks.before(SUM_BLOCK * Columns::WIDTH)) {
            let end = self.n.min(start + SUM_BLOCK);
            // SAFETY: rows below n.
            blocks.push(unsafe { self.sum_block::<S>(start, end) });
            start += SUM_BLOCK;
        }
        total(&blocks)
    }

    #[inline(always)]
    unsafe fn sum_block<S: Simd>(&self, start: usize, end: usize) -> Strip {
        let mut lanes = [[0.0f32; Columns::WIDTH]; SUM_LANES];
        for i in start..end {
            let lane = lanes[(i - start) % SUM_LANES].as_mut_ptr();
            let mut at = 0;
            while at < self.width {
                // SAFETY: the row is below n; WIDTH is a multiple of every vector's length.
                unsafe { S::store(lane.add(at), S::add(S::load(lane.add(at)), self.load::<S>(i, at))) };
                at += S::LANES;
            }
        }
        let mut step = SUM_LANES / 2;
        while step > 0 {
            for l in 0..step {
                let (low, high) = (lanes[l].as_mut_ptr(), lanes[l + step].as_ptr());
                let mut at = 0;
                while at < Columns::WIDTH {
                    // SAFETY: both rows hold WIDTH values.
                    unsafe { S::store(low.add(at), S::add(S::load(low.add(at)), S::load(high.add(at)))) };
                    at += S::LANES;
                }
            }
            step /= 2;
        }
        lanes[0]
    }
}
