//! matmul, dot and ffn: products cut into blocks that the threads claim.

use super::fixed::Fixed;
use super::gemm::{BLOCK_COLUMNS, BLOCK_ROWS, Block, Epilogue, Matrix, Packing, Width};
use super::{Call, Exec, Shared};
use crate::contract::{Activation, K_BLOCK, Precision};
use crate::error::Result;
use crate::hal::cpu::simd::{self, Kernel, Simd, dispatch_m, dispatch_product};
use crate::interrupt::{self, Looks, PIECE};
use crate::isa::Isa;
use crate::operand::Packed;
use crate::operand::Place;
use crate::ops::{FfnPlan, MatmulPlan, ffn_activation};

/// Multiply-adds that are not worth handing to another thread: about 40 µs of them, as waking one that sleeps costs that much.
fn small(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 3 << 20,
        Isa::Avx2 => 3 << 19,
        // As long on a core of eight multiply-adds a cycle.
        Isa::Neon => 2 << 20,
        Isa::Sse2 | Isa::Portable => 256 << 10,
    }
}

/// What products cost, in multiply-adds: with few rows the other operand's way from memory takes the time.
fn work(m: usize, n: usize, k: usize, count: usize) -> usize {
    let (rows, columns) = if n == 1 { (m, 8) } else { (m.max(8), n) };
    count.saturating_mul(rows).saturating_mul(columns).saturating_mul(k.max(1))
}

/// Multiply-adds of a product whose call would take as long as the product.
const TINY: usize = 256 << 10;

/// Products of a batch, all of one size. Index functions give each one's operands.
struct Batch<'a> {
    m: usize,
    n: usize,
    k: usize,
    count: usize,
    operands: &'a (dyn Fn(usize) -> (Matrix, Matrix, Epilogue) + Sync),
    /// B of every product, where it was packed before; then the matrix that `operands` give for it is not read.
    packed: Option<&'a Packed>,
    out: Shared<f32>,
}

impl Batch<'_> {
    /// Computes all products, blocks spread over the threads.
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
            // SAFETY: (i, j) lies inside the result; blocks are disjoint; a seat's scratch is one task's at a time.
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
            // SAFETY: the whole of one product; the scratch is this call's.
            unsafe { self.block(batch, 0, 0, self.m, self.n, packing).compute_with(exec.isa, scratch, panels) };
        }
        Ok(())
    }

    /// What blocks of m rows pack.
    fn packing(&self, exec: &Exec<'_>, m: usize) -> Packing {
        let (a, b, _) = (self.operands)(0);
        let packing = Packing::choose(exec.cache, m, a, b);
        Packing { b: packing.b && self.packed.is_none(), ..packing }
    }

    /// The part of one product that begins at (i, j).
    ///
    /// # Safety
    /// It lies inside the result, which the operands fit.
    unsafe fn block(&self, batch: usize, i: usize, j: usize, m: usize, n: usize, packing: Packing) -> Block {
        let (a, b, epilogue) = (self.operands)(batch);
        // SAFETY: as the caller says.
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

/// Block sizes that cut a product evenly: several for every thread, as far as each is worth a task.
fn block_size(isa: Isa, m: usize, n: usize, k: usize, count: usize, threads: usize) -> (usize, usize) {
    let even = |size: usize, most: usize, unit: usize| {
        let parts = size.div_ceil(most);
        size.div_ceil(parts).next_multiple_of(unit).min(most.max(unit))
    };
    let (mut rows, mut columns) = (even(m, BLOCK_ROWS, 12), even(n, BLOCK_COLUMNS, 32));
    let worth = work(m, n, k, count) / small(isa);
    let wanted = worth.clamp(threads, 4 * threads);
    while threads > 1 && count * m.div_ceil(rows) * n.div_ceil(columns) < wanted {
        // Columns first: blocks side by side share nothing that each would pack for itself.
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

/// `matmul` of the op table.
pub(super) fn matmul(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let plan = MatmulPlan::new(call.attrs, call.inputs)?;
    let MatmulPlan { mut m, n, k, mut batches, .. } = plan;
    let attrs = call.attrs;
    // B may be packed: then its own pointer stands for it and is never followed.
    let packed = match call.inputs[1].map(|view| view.place()) {
        Some(Place::Packed(packed)) => Some(packed),
        _ => None,
    };
    let b = match packed {
        Some(packed) => packed.fits(exec.isa).map(|()| packed.panels(0).data)?,
        None => call.f32(1)?,
    };
    let (a, c, bias) = (call.f32(0)?, call.f32(2)?, call.f32(3)?);
    let use_c = attrs.beta != 0.0;
    let c_strides = match (use_c, call.inputs.get(2)) {
        (true, Some(Some(c))) => plan.c_strides(c.shape()),
        _ => [0; 8],
    };
    let rank = plan.batch_rank();
    // Every batch times one B is one tall product, if A's batches and C's follow each other as rows do.
    let tall = batches > 1 && plan.shares_b() && !attrs.trans_a && (!use_c || plan.c_follows(&c_strides, m));
    if tall {
        m *= batches;
        batches = 1;
    }
    let fixed = attrs.precision != Precision::F32;
    // One small product, without anything that only several need.
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
        let floats = packing.scratch(exec.isa, m, n, k);
        if floats == 0 {
            // SAFETY: the operands and the result are those the plan was made for; nothing is packed.
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
        return Fixed {
            precision: attrs.precision,
            m,
            n,
            k,
            count: batches,
            a: Matrix::new(a, m, k, attrs.trans_a),
            b: Matrix::new(b, k, n, attrs.trans_b),
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

/// The columns of a packed matrix's panels.
pub fn panel_width(isa: Isa) -> usize {
    // SAFETY: whoever has an instruction set was given it by a device that runs it.
    unsafe { dispatch_product(isa, Width) }
}

impl Exec<'_> {
    /// Packs a `k × n` matrix of f32, or the transpose of the one stored so: K blocks of panels, one behind the other.
    /// Done once for each matrix, so plain code for every instruction set.
    ///
    /// # Safety
    /// `b` has k·n values; `to` is this call's alone and has room for k rows of n columns, rounded up to whole panels.
    pub unsafe fn pack(&self, b: *const f32, k: usize, n: usize, transposed: bool, to: *mut f32) -> Result<()> {
        let width = panel_width(self.isa);
        let panels = n.div_ceil(width);
        let Matrix { row, column, .. } = Matrix::new(b, k, n, transposed);
        let (b, to) = (Shared(b.cast_mut()), Shared(to));
        self.pool.try_run(k.div_ceil(K_BLOCK) * panels, &|task, _| {
            let (p, j) = (task / panels * K_BLOCK, task % panels * width);
            let (depth, columns) = (K_BLOCK.min(k - p), width.min(n - j));
            // SAFETY: the panel's values lie inside both; tasks have one each.
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

/// Hidden values that `ffn` keeps at a time: some rows of them, whatever the operands' sizes.
const HIDDEN: usize = 1 << 22;

/// `ffn` of the op table: two products for a group of rows, the hidden values in scratch.
pub(super) fn ffn(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let FfnPlan { rows, width, hidden, out, .. } = FfnPlan::new(call.inputs.into())?;
    let group = (HIDDEN / hidden.max(1)).clamp(1, rows.max(1));
    let middle = exec.scratch.take(group * hidden)?;
    let middle = Shared(middle.pointer());
    let activation = ffn_activation(call.attrs);
    let pointer = |i| call.f32(i).map(|p| Shared(p.cast_mut()));
    let (x, w1, b1, w2, b2) = (pointer(0)?, pointer(1)?, pointer(2)?, pointer(3)?, pointer(4)?);
    let y = Shared(call.out()?);
    for start in (0..rows).step_by(group) {
        let m = group.min(rows - start);
        let first = |_| {
            let x = Matrix::new(x.get().wrapping_add(start * width), m, width, false);
            let b = Matrix::new(w1.get(), width, hidden, false);
            (x, b, Epilogue { bias: b1.get(), activation, ..Epilogue::NONE })
        };
        Batch { m, n: hidden, k: width, count: 1, operands: &first, packed: None, out: middle }.compute(exec)?;
        let second = |_| {
            let a = Matrix::new(middle.get(), m, hidden, false);
            (a, Matrix::new(w2.get(), hidden, out, false), Epilogue { bias: b2.get(), ..Epilogue::NONE })
        };
        let y = Shared(y.get().wrapping_add(start * out));
        Batch { m, n: out, k: hidden, count: 1, operands: &second, packed: None, out: y }.compute(exec)?;
    }
    Ok(())
}

/// `dot` of the op table.
pub(super) fn dot(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let n = call.meta(0).shape.elements();
    let (a, b, y) = (call.f32(0)?, call.f32(1)?, call.out()?);
    // SAFETY: both operands cover n values, and y is the one result.
    let mut work = || unsafe { y.write(dispatch_m(exec.isa, Dot { a, b, n })) };
    if n <= PIECE {
        work();
        return Ok(());
    }
    interrupt::alone(&mut work)
}

/// An inner product: a lane for each K block, as the chains are independent.
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
            // SAFETY: every index stays below n; missing values are zeros, which the contract makes invisible.
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
        // SAFETY: sixteen floats hold any vector.
        unsafe { S::store(lanes.as_mut_ptr(), simd::canonical::<S>(S::add(S::splat(total), S::splat(0.0)))) };
        lanes[0]
    }
}
