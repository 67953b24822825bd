//! Products of one or two rows with quantised blocks, whose kernel also does what stands before and behind them: it makes the rows of x
//! from a norm or a gated function, cuts them, and adds other rows to the result. A kernel for each of these steps takes longer to start
//! than to run.
//!
//! Every workgroup makes the rows for itself, so nothing that all of them read may be written.

use super::quantized::{Product, Work};
use super::{Call, Encoder, Operand};
use crate::command::Command;
use crate::contract::GeluForm;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Op, QuantizedPlan, RMSNORM_RESIDUAL};

// What x is made of: values of quantized.cu.
const ROWS: u32 = 1;
const NORM: u32 = 2;
const SILU_GATE: u32 = 3;
const GELU_GATE: u32 = 4;

/// The most rows, and the most elements of a row.
const MOST_ROWS: usize = 2;
const MOST_K: usize = 4096;

/// Memory: an address and bytes.
type Range = (u64, u64);

fn overlap((a, a_bytes): Range, (b, b_bytes): Range) -> bool {
    a < b + b_bytes && b < a + a_bytes
}

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
    let before = match commands[0].op() {
        Op::QuantizedMatmul => 0,
        Op::Rmsnorm => 1,
        _ => 2,
    };
    let Some(command) = commands.get(before).filter(|command| command.op() == Op::QuantizedMatmul) else {
        return Ok(0);
    };
    if !encoder.limits().makes_rows {
        return Ok(0);
    }
    let call = Call::of(encoder, command)?;
    let QuantizedPlan { m, n, k, .. } = QuantizedPlan::new(call.attrs, call.views.into())?;
    if !(1..=MOST_ROWS).contains(&m) || n == 0 || !(1..=MOST_K).contains(&k) || call.operand(0).dtype != DType::F32 {
        return Ok(0);
    }
    let (x, y, bytes) = (call.address(0), call.output.address, (4 * m * k) as u64);
    let origin = match commands[0].op() {
        Op::QuantizedMatmul => Some(Origin { kind: ROWS, x, by: 0, made: 0, eps: 0.0 }),
        Op::Rmsnorm => norm(&Call::of(encoder, &commands[0])?, x, m * k, k),
        _ => gate(&Call::of(encoder, &commands[0])?, &Call::of(encoder, &commands[1])?, commands, x, m * k),
    };
    let Some(Origin { kind, x, by, made, eps }) = origin else { return Ok(0) };
    let of_by = if kind == NORM { 4 * k as u64 } else { bytes };
    let (reads, result) = ([(x, bytes), (by, if by == 0 { 0 } else { of_by })], (y, (4 * m * n) as u64));
    let is_read = |range: Range| reads.iter().any(|&read| overlap(read, range));
    if is_read(result) || (made != 0 && is_read((made, bytes))) || !(x | by | made).is_multiple_of(16) {
        return Ok(0);
    }
    let mut work = Work { origin: kind, eps, made, ..Work::default() };
    if let Some(sum) = commands.get(before + 1).filter(|command| command.op() == Op::Add) {
        let sum = Call::of(encoder, sum)?;
        if let Some(other) = added(&sum, &call.output) {
            let (to, other) = ((sum.output.address, result.1), (other, result.1));
            let apart = |a: Range, b: Range| a == b || !overlap(a, b);
            // A thread reads only the elements of these rows that it writes.
            let fits = !is_read(to) && apart(to, result) && apart(to, other) && !overlap(other, result);
            if fits && (made == 0 || !overlap(other, (made, bytes)) && !overlap(to, (made, bytes))) {
                (work.w, work.w_numbers) = (other.0, to.0);
            }
        }
    }
    Product::new(&call, [m, n, k], [x, by])?.few(encoder, &work)?;
    Ok(before + 1 + usize::from(work.w != 0))
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
fn gate(function: &Call<'_>, product: &Call<'_>, commands: &[Command<'_>], x: u64, elements: usize) -> Option<Origin> {
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

/// Returns the rows that a sum adds to a result.
fn added(sum: &Call<'_>, result: &Operand<'_>) -> Option<u64> {
    let [a, b] = [sum.operand(0), sum.operand(1)];
    let whole =
        |operand: Operand<'_>| operand.dtype == DType::F32 && operand.shape.elements() == result.shape.elements();
    let fits =
        [a, b, sum.output].into_iter().all(whole) && (a.address == result.address) != (b.address == result.address);
    fits.then_some(if a.address == result.address { b.address } else { a.address })
}
