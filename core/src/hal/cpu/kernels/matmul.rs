//! matmul, dot and ffn, as matrix products that are cut into blocks. Threads claim the blocks.

use super::fixed::Fixed;
use super::gemm::{BLOCK_COLUMNS, BLOCK_ROWS, Block, Epilogue, Matrix, Packing, STREAMED, Width};
use super::{Call, Exec, Shared};
use crate::contract::{Activation, K_BLOCK, Precision};
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch_m, dispatch_product};
use crate::interrupt::{self, Looks, PIECE};
use crate::isa::Isa;
use crate::operand::{Layout, Packed, Place};
use crate::ops::{FfnPlan, MatmulPlan, ffn_activation};

/// Returns the most multiply-adds that are not worth another thread: about 40 µs of work, the cost of waking a sleeping
/// thread.
fn small(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 3 << 20,
        Isa::Avx2 => 3 << 19,
        // The same duration on a core with eight multiply-adds a cycle.
        Isa::Neon => 2 << 20,
        Isa::Sse2 | Isa::Portable => 256 << 10,
    }
}

/// Estimates the cost of products, in multiply-adds. With few rows, reading the other operand from memory takes the
/// time.
fn work(m: usize, n: usize, k: usize, count: usize) -> usize {
    let (rows, columns) = if n == 1 { (m, 8) } else { (m.max(8), n) };
    count.saturating_mul(rows).saturating_mul(columns).saturating_mul(k.max(1))
}

/// The most multiply-adds of a product that takes no longer than the overhead of its call.
const TINY: usize = 256 << 10;

/// A batch of products of one size. Index functions return the operands of each.
struct Batch<'a> {
    m: usize,
    n: usize,
    k: usize,
    count: usize,
    operands: &'a (dyn Fn(usize) -> (Matrix, Matrix, Epilogue) + Sync),
    /// The packed B of every product. If there is one, the matrix that `operands` returns for B is not read.
    packed: Option<&'a Packed>,
    out: Shared<f32>,
}

impl Batch<'_> {
    /// Computes all products, with their blocks spread over the threads.
    fn compute(&self, exec: &Exec<'_>) -> Result<()> {
        let Batch { m, n, k, count, .. } = *self;
        if m * n * count == 0 {
            return Ok(());
        }
        if work(m, n, k, count) <= small(exec.isa) && m <= BLOCK_ROWS && n <= BLOCK_COLUMNS {
            return self.compute_here(exec);
        }
        let (rows, columns) = block_size(exec.isa, m, n, k, count, exec.pool.threads());
        let (down, across) = (m.div_ceil(rows), n.div_ceil(columns));
        let packing = self.packing(exec, rows.min(m));
        let each = packing.scratch(exec.isa, rows.min(m), columns.min(n), k);
        let tasks = count * down * across;
        let scratch = exec.scratch.take(each * exec.pool.threads().min(tasks))?;
        let scratch = Shared(scratch.pointer());
        exec.pool.try_run(tasks, &|task, seat| {
            let (batch, rest) = (task / (down * across), task % (down * across));
            let (i, j) = (rest % down * rows, rest / down * columns);
            // SAFETY: (i, j) lies inside the result, and blocks are disjoint. Only one task at a time uses a seat's
            // scratch.
            unsafe {
                let (m, n) = (rows.min(m - i), columns.min(n - j));
                let panels = self.packed.map(|packed| packed.panels(j));
                let block = self.block(batch, i, j, m, n, packing);
                block.compute_with(exec.isa, scratch.get().add(each * seat), panels);
            }
        })?;
        Ok(())
    }

    /// Computes all products on this thread, each as one block.
    fn compute_here(&self, exec: &Exec<'_>) -> Result<()> {
        let packing = self.packing(exec, self.m);
        let panels = self.packed.map(|packed| packed.panels(0));
        let floats = packing.scratch(exec.isa, self.m, self.n, self.k);
        let scratch = if floats > 0 { Some(exec.scratch.take(floats)?) } else { None };
        let scratch = scratch.as_ref().map_or(std::ptr::null_mut(), |scratch| scratch.pointer());
        for batch in 0..self.count {
            // SAFETY: the block is the whole of one product, and only this call uses the scratch.
            unsafe { self.block(batch, 0, 0, self.m, self.n, packing).compute_with(exec.isa, scratch, panels) };
        }
        Ok(())
    }

    /// Returns which operands blocks of m rows pack.
    fn packing(&self, exec: &Exec<'_>, m: usize) -> Packing {
        let (a, b, _) = (self.operands)(0);
        let packing = Packing::choose(exec.cache, m, a, b);
        Packing { b: packing.b && self.packed.is_none(), ..packing }
    }

    /// Returns the part of one product that begins at (i, j).
    ///
    /// # Safety
    /// The part lies inside the result, and the operands fit the result.
    unsafe fn block(&self, batch: usize, i: usize, j: usize, m: usize, n: usize, packing: Packing) -> Block {
        let (a, b, epilogue) = (self.operands)(batch);
        // SAFETY: the caller promises that (i, j) lies inside the result, so it lies inside the operands.
        unsafe {
            Block {
                m,
                n,
                k: self.k,
                a: a.at(i, 0),
                b: b.at(0, j),
                out: self.out.get().add((batch * self.m + i) * self.n + j),
                out_row: self.n,
                packing,
                epilogue: epilogue.at(i, j),
            }
        }
    }
}

/// Returns block sizes that cut a product evenly: several blocks for every thread, as long as each is worth a task.
fn block_size(isa: Isa, m: usize, n: usize, k: usize, count: usize, threads: usize) -> (usize, usize) {
    let even = |size: usize, most: usize, unit: usize| {
        let parts = size.div_ceil(most);
        size.div_ceil(parts).next_multiple_of(unit).min(most.max(unit))
    };
    let worth = work(m, n, k, count) / small(isa);
    // A few rows stream B past them: in long pieces, and without any scratch.
    let streams = m <= STREAMED;
    let (mut rows, mut columns) = (even(m, BLOCK_ROWS, 12), even(n, if streams { n } else { BLOCK_COLUMNS }, 32));
    let wanted = if streams { threads } else { worth.clamp(threads, 4 * threads) };
    while threads > 1 && count * m.div_ceil(rows) * n.div_ceil(columns) < wanted {
        // Cuts columns first, because blocks side by side don't each pack the same operand.
        if columns > 192 || (columns > 96 && columns >= rows) {
            columns = (columns / 2).next_multiple_of(32);
        } else if rows > 48 {
            rows = (rows / 2).next_multiple_of(12);
        } else if columns > 96 {
            columns = (columns / 2).next_multiple_of(32);
        } else {
            break;
        }
    }
    (rows, columns)
}

/// Computes a small row-major product, if this instruction set has a way for it. Returns whether it did; if not, nothing is written.
///
/// # Safety
/// The operands cover the sizes, and only this call uses `out`.
#[inline]
pub unsafe fn multiply_small(isa: Isa, a: *const f32, b: *const f32, out: *mut f32, [m, n, k]: [usize; 3]) -> bool {
    let (a, b) = (Matrix::new(a, m, k, false), Matrix::new(b, k, n, false));
    let packing = Packing { a: false, b: false, cache: 0 };
    let block = Block { m, n, k, a, b, out, out_row: n, packing, epilogue: Epilogue::NONE };
    // SAFETY: the caller's promise covers this.
    unsafe { block.compute_small(isa) }
}

/// `matmul` of the op table.
pub(super) fn matmul(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let plan = MatmulPlan::new(call.attrs, call.inputs)?;
    let MatmulPlan { mut m, n, k, mut batches, .. } = plan;
    let attrs = call.attrs;
    // B may be packed. Its pointer then only stands for it and is never read through.
    let packed = match call.inputs[1].map(|view| view.place()) {
        Some(Place::Packed(packed)) => Some(packed),
        _ => None,
    };
    let b = match packed {
        Some(packed) => packed.fits(exec.isa).map(|()| packed.elements())?,
        None => call.f32(1)?,
    };
    let (a, c, bias) = (call.f32(0)?, call.f32(2)?, call.f32(3)?);
    let use_c = attrs.beta != 0.0;
    let c_strides = match (use_c, call.inputs.get(2)) {
        (true, Some(Some(c))) => plan.c_strides(c.shape()),
        _ => [0; 8],
    };
    let rank = plan.batch_rank();
    // If every batch multiplies the same B, and A's and C's batches follow each other like rows, the batches form one
    // tall product.
    let tall = batches > 1 && plan.shares_b() && !attrs.trans_a && (!use_c || plan.c_follows(&c_strides, m));
    if tall {
        m *= batches;
        batches = 1;
    }
    let precision = packed.map_or(attrs.precision(), Packed::precision);
    let fixed = precision != Precision::F32;
    // One small product skips all that only several blocks need.
    let plain = !use_c && packed.is_none() && batches == 1 && !fixed;
    if plain && m * n > 0 && m.saturating_mul(n).saturating_mul(k) <= TINY {
        let epilogue = Epilogue {
            alpha: attrs.alpha,
            bias,
            activation: attrs.activation.unwrap_or(Activation::None),
            ..Epilogue::NONE
        };
        let (a, b) = (Matrix::new(a, m, k, attrs.trans_a), Matrix::new(b, k, n, attrs.trans_b));
        let packing = Packing::choose(exec.cache, m, a, b);
        let block = Block { m, n, k, a, b, out: call.out()?, out_row: n, packing, epilogue };
        // SAFETY: the plan was made for these operands and this result.
        if unsafe { block.compute_small(exec.isa) } {
            // SAFETY: as above, and the result holds the totals.
            unsafe { block.finish(exec.isa) };
            return Ok(());
        }
        let floats = packing.scratch(exec.isa, m, n, k);
        if floats == 0 {
            // SAFETY: the plan was made for these operands and this result, and nothing is packed.
            unsafe { block.compute(exec.isa, std::ptr::null_mut()) };
            return Ok(());
        }
    }
    let shared = (Shared(a.cast_mut()), Shared(b.cast_mut()), Shared(c.cast_mut()), Shared(bias.cast_mut()));
    let follows = |batch: usize| {
        let (c, bias) = (shared.2.get(), shared.3.get());
        let c = if use_c {
            let at = if tall { 0 } else { plan.batch_offset(batch, &c_strides) };
            Matrix { data: c.wrapping_add(at), row: c_strides[rank], column: c_strides[rank + 1] }
        } else {
            Epilogue::NONE.c
        };
        let activation = attrs.activation.unwrap_or(Activation::None);
        Epilogue { alpha: attrs.alpha, beta: attrs.beta, c, bias, activation }
    };
    let places = |batch: usize| if tall { (0, 0) } else { plan.operands(batch) };
    let out = Shared(call.out()?);
    if fixed {
        let operands = |batch: usize| {
            let (a_at, b_at) = places(batch);
            (a_at, b_at, follows(batch))
        };
        let matrices = |i: usize| {
            let dims = call.meta(i).shape.dims();
            if tall { 1 } else { dims[..dims.len().saturating_sub(2)].iter().product() }
        };
        let trans_b = match packed.map(|packed| packed.layout) {
            Some(Layout::Plain { transposed, .. }) => transposed,
            _ => attrs.trans_b,
        };
        let digits = packed.filter(|packed| matches!(packed.layout, Layout::Digits(_))).map(Packed::elements);
        return Fixed {
            precision,
            m,
            n,
            k,
            count: batches,
            a: Matrix::new(a, m, k, attrs.trans_a),
            b: Matrix::new(b, k, n, trans_b),
            digits,
            matrices: [matrices(0), matrices(1)],
            operands: &operands,
            out,
        }
        .compute(exec);
    }
    let operands = |batch: usize| {
        let ((a_at, b_at), a, b) = (places(batch), shared.0.get(), shared.1.get());
        let a = Matrix::new(a.wrapping_add(a_at * m * k), m, k, attrs.trans_a);
        let b = Matrix::new(b.wrapping_add(b_at * k * n), k, n, attrs.trans_b);
        (a, b, follows(batch))
    };
    Batch { m, n, k, count: batches, operands: &operands, packed, out }.compute(exec)
}

/// Returns the number of columns in a panel of a packed matrix.
pub fn panel_width(isa: Isa) -> usize {
    // SAFETY: an `Isa` value comes only from a device that runs that instruction set.
    unsafe { dispatch_product(isa, Width) }
}

impl Exec<'_> {
    /// Packs a `k × n` matrix of f32, or the transpose of one that is stored transposed, as panels for each K block in
    /// turn. A matrix is packed once, so all instruction sets share plain code.
    ///
    /// # Safety
    /// `b` has k·n values. Only this call uses `to`, which has room for k rows of n columns, rounded up to whole
    /// panels.
    pub unsafe fn pack(&self, b: *const f32, k: usize, n: usize, transposed: bool, to: *mut f32) -> Result<()> {
        let width = panel_width(self.isa);
        let panels = n.div_ceil(width);
        let Matrix { row, column, .. } = Matrix::new(b, k, n, transposed);
        let (b, to) = (Shared(b.cast_mut()), Shared(to));
        self.pool.try_run(k.div_ceil(K_BLOCK) * panels, &|task, _| {
            let (p, j) = (task / panels * K_BLOCK, task % panels * width);
            let (depth, columns) = (K_BLOCK.min(k - p), width.min(n - j));
            // SAFETY: the panel's values lie inside both, and each task has its own panel.
            unsafe {
                let from = b.get().add(p * row + j * column);
                let to = to.get().add(p * panels * width + j * depth);
                if columns < width {
                    to.write_bytes(0, depth * width);
                }
                if column == 1 {
                    for q in 0..depth {
                        to.add(q * width).copy_from_nonoverlapping(from.add(q * row), columns);
                    }
                    return;
                }
                for c in 0..columns {
                    for q in 0..depth {
                        to.add(q * width + c).write(*from.add(q + c * column));
                    }
                }
            }
        })
    }
}

/// The most hidden values that `ffn` keeps at a time. It limits the rows of a group, whatever the operands' sizes.
const HIDDEN: usize = 1 << 22;

/// `ffn` of the op table: two products for each group of rows, with the hidden values in scratch.
pub(super) fn ffn(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let FfnPlan { rows, width, hidden, out, .. } = FfnPlan::new(call.inputs.into())?;
    let group = (HIDDEN / hidden.max(1)).clamp(1, rows.max(1));
    let middle = exec.scratch.take(group * hidden)?;
    let middle = Shared(middle.pointer());
    let activation = ffn_activation(call.attrs);
    let precision = call.attrs.precision();
    let pointer = |i| call.f32(i).map(|p| Shared(p.cast_mut()));
    let (x, b1, b2) = (pointer(0)?, pointer(2)?, pointer(4)?);
    // A packed matrix has digits: a pipeline packs no other.
    let right = |i: usize| match call.inputs[i].map(|view| view.place()) {
        Some(Place::Packed(packed)) if cfg!(feature = "integers") => {
            packed.fits(exec.isa).map(|()| (Shared(std::ptr::null_mut()), Some(packed)))
        }
        _ => Ok((pointer(i)?, None)),
    };
    let ((w1, d1), (w2, d2)) = (right(1)?, right(3)?);
    let y = Shared(call.out()?);
    for start in (0..rows).step_by(group) {
        let m = group.min(rows - start);
        let x = Shared(x.get().wrapping_add(start * width));
        let y = Shared(y.get().wrapping_add(start * out));
        let first = Single { sizes: [m, hidden, width], a: x, b: w1, digits: d1, bias: b1, activation, out: middle };
        let second = Single {
            sizes: [m, out, hidden],
            a: middle,
            b: w2,
            digits: d2,
            bias: b2,
            activation: Activation::None,
            out: y,
        };
        first.compute(exec, precision)?;
        second.compute(exec, precision)?;
    }
    Ok(())
}

/// One product of contiguous matrices.
struct Single<'a> {
    /// m, n and k.
    sizes: [usize; 3],
    a: Shared<f32>,
    b: Shared<f32>,
    /// What is read instead of B.
    digits: Option<&'a Packed>,
    /// n values, or null.
    bias: Shared<f32>,
    activation: Activation,
    out: Shared<f32>,
}

impl Single<'_> {
    fn compute(&self, exec: &Exec<'_>, precision: Precision) -> Result<()> {
        let Single { sizes: [m, n, k], a, b, digits, bias, activation, out } = *self;
        let matrices = || (Matrix::new(a.get(), m, k, false), Matrix::new(b.get(), k, n, false));
        let epilogue = || Epilogue { bias: bias.get(), activation, ..Epilogue::NONE };
        if precision == Precision::F32 {
            let operands = |_| (matrices().0, matrices().1, epilogue());
            return Batch { m, n, k, count: 1, operands: &operands, packed: None, out }.compute(exec);
        }
        let (a, b) = matrices();
        let operands = |_| (0, 0, epilogue());
        let digits = digits.map(Packed::elements);
        Fixed { precision, m, n, k, count: 1, a, b, digits, matrices: [1, 1], operands: &operands, out }.compute(exec)
    }
}

/// `dot` of the op table.
pub(super) fn dot(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let n = call.meta(0).shape.elements();
    let (a, b, y) = (call.f32(0)?, call.f32(1)?, call.out()?);
    // SAFETY: both operands cover n values, and y has room for the one result.
    let mut work = || unsafe { y.write(dispatch_m(exec.isa, Dot { a, b, n })) };
    if n <= PIECE {
        work();
        return Ok(());
    }
    interrupt::alone(&mut work)
}

/// An inner product. Each vector lane computes one K block, because the chains are independent.
#[derive(Clone, Copy)]
struct Dot {
    a: *const f32,
    b: *const f32,
    n: usize,
}

impl Kernel for Dot {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        let Dot { a, b, n } = self;
        let mut total = 0.0f32;
        let mut start = 0;
        let mut looks = Looks::NEW;
        while start < n && !looks.before(S::LANES * K_BLOCK) {
            // SAFETY: every index stays below n. Missing values are zeros, which don't change a chain's result.
            unsafe {
                let mut p = S::splat(0.0);
                let depth = K_BLOCK.min(n - start);
                let blocks = S::LANES.min((n - start).div_ceil(K_BLOCK));
                for k in 0..depth {
                    let (mut left, mut right) = ([0.0f32; 16], [0.0f32; 16]);
                    for lane in 0..blocks {
                        let at = start + lane * K_BLOCK + k;
                        if at < n {
                            left[lane] = *a.add(at);
                            right[lane] = *b.add(at);
                        }
                    }
                    p = S::fmaz(S::load(left.as_ptr()), S::load(right.as_ptr()), p);
                }
                let mut chains = [0.0f32; 16];
                S::store(chains.as_mut_ptr(), p);
                for &p in &chains[..blocks] {
                    let t = S::fmaz(S::splat(p), S::splat(1.0), S::splat(total));
                    let mut lanes = [0.0f32; 16];
                    S::store(lanes.as_mut_ptr(), t);
                    total = lanes[0];
                }
                start += blocks * K_BLOCK;
            }
        }
        let mut lanes = [0.0f32; 16];
        // SAFETY: any vector fits in sixteen floats.
        unsafe { S::store(lanes.as_mut_ptr(), simd::canonical::<S>(S::add(S::splat(total), S::splat(0.0)))) };
        lanes[0]
    }
}
