//! Products of rows with quantised blocks, with what stands before and behind them: rows of x that are made from a norm or a gated
//! function, and other rows that are added to the result. A kernel for each of these steps takes longer to start than to run.
//!
//! The kernel of one or two rows makes the rows itself: every workgroup makes them, so nothing that all of them read may be written. For
//! more rows, the kernel that cuts them makes them.

use super::heads::{Columns, Range, overlap};
use super::quantized::{Product, Sum, Work, products};
use super::{Call, Encoder, Operand};
use crate::command::Command;
use crate::contract::GeluForm;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Op, QuantizedPlan, RMSNORM_RESIDUAL};
use smallvec::SmallVec;

// What x is made of: values of quantized.cu.
const ROWS: u32 = 1;
const NORM: u32 = 2;
const SILU_GATE: u32 = 3;
const GELU_GATE: u32 = 4;

/// The most rows that every workgroup makes for itself, and the most elements of such a row and of one that is normalised.
const MOST_ROWS: usize = 2;
const MOST_K: usize = 4096;

/// How x is made.
struct Origin {
    kind: u32,
    /// The rows, and the factors of a norm or the rows that a function's results are multiplied by; 0 if there are none.
    x: u64,
    by: u64,
    /// Where the rows that are made go; 0 where they are there.
    made: u64,
    eps: f32,
}

/// Encodes the product with which the commands begin, or which follows those that make its x, with a sum behind it. Returns how many
/// commands that are, or 0 if no kernel does that.
pub fn encode(encoder: &mut dyn Encoder, commands: &[Command<'_>]) -> Result<usize> {
    if !encoder.limits().makes_rows() {
        return Ok(0);
    }
    let slices = commands.iter().take_while(|command| command.op() == Op::Slice).count();
    let before = match commands.get(slices).map(Command::op) {
        Some(Op::QuantizedMatmul) => 0,
        Some(Op::Rmsnorm) => 1,
        _ => slices + 2,
    };
    let Some(command) = commands.get(before).filter(|command| command.op() == Op::QuantizedMatmul) else {
        return Ok(0);
    };
    let call = Call::of(encoder, command)?;
    let QuantizedPlan { m, n, k, .. } = QuantizedPlan::new(call.attrs, call.views.into())?;
    if m == 0 || n == 0 || k == 0 || call.operand(0).dtype != DType::F32 {
        return Ok(0);
    }
    let x = call.address(0);
    let origin = match commands[slices].op() {
        Op::QuantizedMatmul => Some(Origin { kind: ROWS, x, by: 0, made: 0, eps: 0.0 }),
        Op::Rmsnorm => norm(&Call::of(encoder, &commands[0])?, x, m * k, k),
        _ => {
            let [function, product] = [&commands[slices], &commands[slices + 1]];
            gate(&Call::of(encoder, function)?, &Call::of(encoder, product)?, [function, product], x, m * k)
        }
    };
    let Some(origin) = origin else { return Ok(0) };
    let alone = m <= MOST_ROWS && k <= MOST_K && slices == 0;
    match (alone, origin.kind) {
        (true, _) => by_all(encoder, &commands[before..], &call, [m, n, k], &origin),
        (false, ROWS) => products(encoder, commands, None),
        (false, NORM) if k > MOST_K => Ok(0),
        _ => {
            let parts = commands[..slices].iter().map(|slice| Ok(Columns::of(&Call::of(encoder, slice)?)));
            match parts.collect::<Result<Option<SmallVec<[Columns; 2]>>>>()? {
                Some(parts) => made_once(encoder, &commands[before..], &call, [m, n, k], &origin, &parts),
                None => Ok(0),
            }
        }
    }
    .map(|count| if count > 0 { before + count } else { 0 })
}

/// Encodes a product whose workgroups make all rows of x.
fn by_all(
    encoder: &mut dyn Encoder,
    commands: &[Command<'_>],
    call: &Call<'_>,
    [m, n, k]: [usize; 3],
    origin: &Origin,
) -> Result<usize> {
    let &Origin { kind, x, by, made, eps } = origin;
    let (bytes, of_norm) = ((4 * m * k) as u64, 4 * k as u64);
    let of_by = if kind == NORM { of_norm } else { bytes };
    let (reads, result) =
        ([(x, bytes), (by, if by == 0 { 0 } else { of_by })], (call.output.address, (4 * m * n) as u64));
    let is_read = |range: Range| reads.iter().any(|&read| overlap(read, range));
    if is_read(result) || (made != 0 && is_read((made, bytes))) || !(x | by | made).is_multiple_of(16) {
        return Ok(0);
    }
    let mut work = Work { origin: kind, eps, made, ..Work::default() };
    if let Some(command) = commands.get(1)
        && let Some(Sum { other, to }) = Sum::behind(encoder, &call.output, command)?
    {
        let of_made = |at: u64| made != 0 && overlap((at, result.1), (made, bytes));
        if !is_read((to, result.1)) && !of_made(other) && !of_made(to) {
            (work.w, work.w_numbers) = (other, to);
        }
    }
    Product::new(call, [m, n, k], [x, by])?.few(encoder, &work)?;
    Ok(1 + usize::from(work.w != 0))
}

/// Encodes the kernel that makes and cuts the rows of x, of which a workgroup has one, and the products with them. What they are made of
/// may be columns of other rows, which then go where their slices do.
fn made_once(
    encoder: &mut dyn Encoder,
    commands: &[Command<'_>],
    call: &Call<'_>,
    [m, n, k]: [usize; 3],
    origin: &Origin,
    parts: &[Columns],
) -> Result<usize> {
    let &Origin { kind, x, by, made, eps } = origin;
    let whole = |from: u64| Columns { from, rows: m, count: k, pitch: k, sliced: 0 };
    let find = |from: u64| parts.iter().find(|part| part.sliced == from).copied().unwrap_or(whole(from));
    let sources =
        if kind == NORM { [whole(x), Columns { rows: 1, pitch: 0, ..whole(by) }] } else { [find(x), find(by)] };
    let used = parts.iter().all(|part| sources.iter().any(|source| source.sliced == part.sliced));
    let copies = sources.map(|source| if source.sliced == made { 0 } else { source.sliced });
    let bytes = (4 * m * k) as u64;
    let writes = [made, copies[0], copies[1]].map(|at| (at, if at == 0 { 0 } else { bytes }));
    // A thread may write over what it alone has read.
    let apart = |(i, &write): (usize, &Range)| {
        let of_reads = |source: &Columns| {
            let same = i == 0 && source.pitch == k && source.read() == write;
            same || !overlap(source.read(), write)
        };
        sources.iter().all(of_reads) && writes[i + 1..].iter().all(|&other| !overlap(write, other))
    };
    let fits = sources.iter().all(|source| {
        let rows = if source.pitch == 0 { 1 } else { m };
        source.count == k && source.rows == rows && source.pitch.is_multiple_of(4) && source.from.is_multiple_of(16)
    });
    let aligned = writes.iter().all(|write| write.0.is_multiple_of(16));
    if !used || !fits || !aligned || !writes.iter().enumerate().all(apart) {
        return Ok(0);
    }
    let [rows, first] = sources.map(|source| source.pitch as u32);
    let work =
        Work { from: sources[0].from, w: sources[1].from, origin: kind, eps, made, rows, first, ..Work::default() };
    let cut = Product::new(call, [m, n, k], [0, 0])?.cut(encoder, made, &work, copies)?;
    products(encoder, commands, Some(cut))
}

/// Rmsnorm of rows, whose result is x.
fn norm(norm: &Call<'_>, x: u64, elements: usize, k: usize) -> Option<Origin> {
    let shape = norm.output.shape;
    let is_float = |operand: Operand<'_>| operand.dtype == DType::F32;
    let fits = norm.output.address == x
        && shape.elements() == elements
        && shape.dims().last() == Some(&k)
        && norm.input(RMSNORM_RESIDUAL).is_none()
        && is_float(norm.operand(0));
    let factors = norm.input(1).filter(|&factors| is_float(factors))?;
    fits.then_some(Origin { kind: NORM, x: norm.address(0), by: factors.address, made: x, eps: norm.attrs.eps })
}

/// A function and a product with other rows, in place, whose result is x.
fn gate(
    function: &Call<'_>,
    product: &Call<'_>,
    commands: [&Command<'_>; 2],
    x: u64,
    elements: usize,
) -> Option<Origin> {
    let kind = match (commands[0].op(), function.attrs.form) {
        (Op::Silu, _) => SILU_GATE,
        (Op::Gelu, GeluForm::Tanh) => GELU_GATE,
        _ => return None,
    };
    let whole = |operand: Operand<'_>| operand.dtype == DType::F32 && operand.shape.elements() == elements;
    let [a, b] = [product.operand(0), product.operand(1)];
    let other = if a.address == x { b } else { a };
    let fits = commands[1].op() == Op::Mul
        && [function.output, function.operand(0), product.output, a, b].into_iter().all(whole)
        && function.output.address == x
        && product.output.address == x
        && (a.address == x) != (b.address == x);
    fits.then_some(Origin { kind, x: function.address(0), by: other.address, made: x, eps: 0.0 })
}
