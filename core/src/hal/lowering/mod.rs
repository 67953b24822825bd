//! The operations as kernels: which ones a command takes, with what parameters.
//!
//! Kernels of floats compute in f32. Operands stored as f16 and bf16 are widened before and the result narrowed
//! after, in one place, here.

pub mod attention;
mod attention_fixed;
pub mod attention_whole;
mod cast;
mod compare;
mod cumsum;
mod elementwise;
mod encoder;
mod fixed;
mod function;
mod heads;
#[cfg(feature = "integers")]
mod integers;
mod matmul;
mod moves;
mod normalise;
mod operands;
mod parts;
#[cfg_attr(not(feature = "quantized"), path = "without_quantized.rs")]
mod quantized;
#[cfg(feature = "quantized")]
mod quantized_rows;
mod reduce;
mod rope;
mod runs;
pub mod tiles;
mod topk;

#[cfg(feature = "cuda")]
pub use cumsum::CUMSUM;
pub use encoder::{Encoder, Explain, Kernels, Limits, Matrices, PUSH_BYTES, Push};
#[cfg(feature = "cuda")]
pub use fixed::{FEW, few_bytes};
#[cfg(feature = "integers")]
pub use fixed::{cut_matrix, digits_bytes};
#[cfg(feature = "cuda")]
pub use normalise::SOFTMAX as SOFTMAX_ROWS;
#[cfg(feature = "cuda")]
pub use reduce::ROWS;
#[cfg(feature = "cuda")]
pub use runs::WORDS as RUN_WORDS;
#[cfg(test)]
pub use runs::tests as run_tests;
#[cfg(feature = "cuda")]
pub use topk::{MERGE as TOPK_MERGE, SORT as TOPK_SORT};

use crate::command::Command;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::operand::{Meta, Place, View};
use crate::ops::{Attrs, Binary, Op, Reduction, Unary, table};
use crate::shape::Shape;
use smallvec::SmallVec;

/// Elements that an operand may have: kernels count them in 32 bits, past the end of the last workgroup too.
const MOST: usize = 0xffff_0000;

/// An operand on the device.
#[derive(Clone, Copy)]
struct Operand<'a> {
    address: u64,
    dtype: DType,
    shape: &'a Shape,
}

impl<'a> Operand<'a> {
    fn new(address: u64, meta: &'a Meta) -> Operand<'a> {
        Operand { address, dtype: meta.dtype, shape: &meta.shape }
    }

    /// Elements, which fit in a word.
    fn elements(&self) -> u32 {
        self.shape.elements() as u32
    }
}

/// A command whose operands are f32 or moves, as an operation's function gets it.
struct Call<'a> {
    attrs: &'a Attrs,
    /// The command's operands, for plans: they may be stored as f16 or bf16 still.
    views: &'a [Option<View<'a>>],
    inputs: SmallVec<[Option<Operand<'a>>; 4]>,
    output: Operand<'a>,
}

impl<'a> Call<'a> {
    /// Finds the addresses of a command's operands. `unsupported` for more elements than kernels count.
    #[inline(always)]
    fn new(encoder: &mut dyn Encoder, command: &'a Command<'_>) -> Result<Call<'a>> {
        let (op, attrs, views, output) = (command.op(), command.attrs(), command.inputs(), command.output());
        let mut inputs = SmallVec::new();
        for view in views.iter() {
            inputs.push(match view {
                Some(view) => Some(Operand::new(encoder.address(view.place().in_memory())?, view.meta())),
                None => None,
            });
        }
        let output = Operand::new(encoder.address(output.place())?, output.meta());
        let call = Call { attrs, views, inputs, output };
        for operand in call.inputs.iter().flatten().chain([&output]) {
            let n = operand.shape.elements();
            if n > MOST {
                fail!(Unsupported, "{op}: an operand has {n} elements; GPU kernels take up to {MOST}");
            }
        }
        Ok(call)
    }

    /// The same as [`Call::new`], for functions that look at several commands: in their code it is there once.
    #[inline(never)]
    fn of(encoder: &mut dyn Encoder, command: &'a Command<'_>) -> Result<Call<'a>> {
        Call::new(encoder, command)
    }

    /// An operand, if it is there.
    fn input(&self, i: usize) -> Option<Operand<'a>> {
        self.inputs.get(i).copied().flatten()
    }

    /// A required operand.
    fn operand(&self, i: usize) -> Operand<'a> {
        match self.input(i) {
            Some(operand) => operand,
            None => unreachable!("a required operand was checked"),
        }
    }

    /// An operand's address, 0 where it is absent.
    fn address(&self, i: usize) -> u64 {
        self.input(i).map_or(0, |operand| operand.address)
    }
}

/// Elements from one row to the next where rows are read by fours; kernels count a row's bytes in 32 bits.
fn pitch_of(row: u32) -> Result<u32> {
    match row.checked_next_multiple_of(4) {
        Some(pitch) if pitch < 1 << 30 => Ok(pitch),
        _ => fail!(Unsupported, "rows of {row} elements; this device's kernels take fewer than {}", (1u32 << 30) - 3),
    }
}

/// Encodes the first of these commands, or the first few if they share kernels. Returns how many it encoded. There must be at least
/// one command. All operands are on the device.
pub fn encode(encoder: &mut dyn Encoder, commands: &[Command<'_>]) -> Result<usize> {
    let mut count = match commands {
        [first, second, ..] => match (first.op(), second.op()) {
            #[cfg(feature = "quantized")]
            (Op::QuantizedMatmul, Op::QuantizedMatmul) => quantized::encode(encoder, commands)?,
            (Op::Slice | Op::Rope | Op::Where, Op::Slice | Op::Rope | Op::Where) => {
                match heads::encode(encoder, commands)? {
                    #[cfg(feature = "quantized")]
                    0 if first.op() == Op::Slice => quantized_rows::encode(encoder, commands)?,
                    count => count,
                }
            }
            (Op::Add, Op::Rmsnorm | Op::Layernorm) => normalise::encode(encoder, first, second)?,
            #[cfg(feature = "quantized")]
            (Op::QuantizedMatmul, _) | (Op::Rmsnorm, Op::QuantizedMatmul) | (Op::Silu | Op::Gelu, Op::Mul) => {
                quantized_rows::encode(encoder, commands)?
            }
            _ => 0,
        },
        #[cfg(feature = "quantized")]
        [first] if first.op() == Op::QuantizedMatmul => quantized_rows::encode(encoder, commands)?,
        _ => 0,
    };
    if count == 0 && commands.len() > 1 {
        count = runs::encode(encoder, commands)?;
    }
    if count == 0 {
        single(encoder, &commands[0])?;
    }
    Ok(count.max(1))
}

/// Encodes a command.
#[inline(always)]
fn single(encoder: &mut dyn Encoder, command: &Command<'_>) -> Result<()> {
    let op = command.op();
    let mut call = Call::new(encoder, command)?;
    let output = call.output;
    // Ids are still to be checked.
    if output.elements() == 0 && !op.checks_ids() {
        return Ok(());
    }
    let moves = op.is_move();
    let stored = call.operand(0).dtype;
    if moves || !stored.is_half() {
        return run(encoder, op, &call);
    }
    for (input, view) in call.inputs.iter_mut().zip(call.views) {
        // What is packed was widened then.
        if let (Some(input), Some(view)) = (input, view)
            && !(cfg!(feature = "integers") && matches!(view.place(), Place::Packed(_)))
        {
            *input = widened(encoder, *input)?;
        }
    }
    // Indices and bools need no narrowing.
    if !output.dtype.is_float() {
        return run(encoder, op, &call);
    }
    call.output = Operand { address: encoder.scratch(4 * output.elements() as u64)?, dtype: DType::F32, ..output };
    run(encoder, op, &call)?;
    cast::convert(encoder, call.output, output)
}

/// Copies bytes from one address to another, all of them multiples of 16. A driver's own copies moved 0.8 TB/s on an H200, where
/// elementwise kernels move 4.
pub fn copy_bytes(encoder: &mut dyn Encoder, from: u64, to: u64, bytes: u64) -> Result<()> {
    moves::copy(encoder, from, to, bytes, &[])
}

/// An f32 copy.
fn widened<'a>(encoder: &mut dyn Encoder, from: Operand<'a>) -> Result<Operand<'a>> {
    let n = from.elements();
    let to = Operand { address: encoder.scratch(4 * n as u64)?, dtype: DType::F32, ..from };
    if n > 0 {
        cast::convert(encoder, from, to)?;
    }
    Ok(to)
}

macro_rules! dispatch {
    (
        unary { $($(#[$unary_doc:meta])* $unary:ident = $unary_number:literal $unary_name:ident $attrs:tt:
            $unary_family:ident $unary_flops:literal, $of_x:tt $($of_x_integers:ident)?;)* }
        binary { $($(#[$binary_doc:meta])* $binary:ident = $binary_number:literal $binary_name:ident:
            $binary_family:ident $binary_flops:literal, $of_both:tt $($of_both_integers:ident)?;)* }
        comparison { $($(#[$comparison_doc:meta])* $comparison:ident = $comparison_number:literal $comparison_name:ident:
            $comparison_family:ident $comparison_flops:literal, $truths:literal;)* }
        reduction { $($(#[$reduction_doc:meta])* $reduction:ident = $reduction_number:literal
            $reduction_name:ident: $reduction_family:ident, $function:ident = $function_number:literal $gives:ident $($reduction_integers:ident)?;)* }
        own { $($(#[$own_doc:meta])* $own:ident = $own_number:literal
            $own_name:ident: $own_family:ident, $room:ident::$kernel:ident;)* }
    ) => {
        fn run(encoder: &mut dyn Encoder, op: Op, call: &Call<'_>) -> Result<()> {
            #[cfg(feature = "integers")]
            if !call.operand(0).dtype.is_float() && op.takes_integers() {
                return integers::run(encoder, op, call);
            }
            match op {
                $(Op::$unary => {
                    let values = function::values(op, call.attrs);
                    elementwise::unary(encoder, function::of_unary(Unary::$unary, call.attrs), values, call)
                })*
                $(Op::$binary => elementwise::binary(encoder, function::of_binary(Binary::$binary), call),)*
                $(Op::$comparison => compare::compare(encoder, $truths, call),)*
                $(Op::$reduction => reduce::reduce(encoder, Reduction::$reduction, call),)*
                $(Op::$own => $room::$kernel(encoder, call),)*
            }
        }
    };
}
table!(dispatch);

#[cfg(test)]
mod tests {
    use super::pitch_of;
    use crate::error::Status;

    #[test]
    fn a_row_whose_bytes_need_more_than_32_bits_is_refused() {
        for (row, pitch) in [(0, 0), (1, 4), (4, 4), (1021, 1024), ((1 << 30) - 4, (1 << 30) - 4)] {
            assert_eq!(pitch_of(row).unwrap(), pitch);
        }
        for row in [(1 << 30) - 3, 1 << 30, u32::MAX] {
            assert_eq!(pitch_of(row).unwrap_err().status(), Status::Unsupported, "{row}");
        }
    }
}
